//! Keys for overlays and dialogs, and their requests to the store service.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Position;
use tertulia_core::id::{Seq, SessionId};

use super::slash::{BUSY, warn};
use super::{change, copy, held, leave, may_change, queued, start_turn, switch};
use crate::activity::Doing;
use crate::dialog::question::Question;
use crate::dialog::subject::Subject;
use crate::effect::{Effect, IfOpen, Next, Now};
use crate::key_event;
use crate::live::LiveCommand;
use crate::overlay::Reaction;
use crate::state::{Layer, State, Wish};
use crate::store_service::Request;

/// Whether the overlay stays open, and the effects to perform.
enum Then {
    Stays(Vec<Effect>),
    Goes(Vec<Effect>),
}

/// Collects the requests of all overlays.
pub fn requests(state: &mut State, now: Now) -> Vec<Effect> {
    let session = state.id;
    let mut wanted = Vec::new();
    for layer in &mut state.overlays {
        while let Some(request) = layer.get_mut().wants(session, now.at) {
            wanted.push(ask(request));
        }
    }
    wanted
}

/// Handles a key for the front overlay.
pub fn pressed(state: &mut State, key: KeyEvent, now: Now) -> Vec<Effect> {
    let Some(mut layer) = state.overlays.pop() else {
        return Vec::new();
    };
    let reaction = match &layer {
        // While a completion is open, Tab is for the input.
        Layer::Question(question)
            if question.is_writing()
                && key.code == KeyCode::Tab
                && state.input.completion().is_open() =>
        {
            Reaction::Pass(vec![key])
        }
        _ => layer.get_mut().key(key, now.at),
    };
    if let Reaction::Pass(keys) = reaction {
        return pass_keys(state, layer, keys, now);
    }
    apply(state, layer, reaction, now)
}

/// Handles a click on the front overlay.
pub fn clicked(state: &mut State, at: Position, now: Now) -> Vec<Effect> {
    let Some(mut layer) = state.overlays.pop() else {
        return Vec::new();
    };
    let reaction = layer.get_mut().click(at, now.at);
    apply(state, layer, reaction, now)
}

/// Applies the reaction of the front overlay, which was taken off the others.
fn apply(state: &mut State, layer: Layer, reaction: Reaction, now: Now) -> Vec<Effect> {
    let before = state.overlays.len();
    state.keys.forget();
    match reacted(state, &layer, reaction, now) {
        Then::Goes(effects) => effects,
        Then::Stays(effects) => {
            // An overlay opened by the key stays in front.
            let place = before.min(state.overlays.len());
            state.overlays.insert(place, layer);
            effects
        }
    }
}

/// Does what a key in an overlay asks for.
fn reacted(state: &mut State, layer: &Layer, reaction: Reaction, now: Now) -> Then {
    match reaction {
        Reaction::Nothing | Reaction::Changed | Reaction::Pass(_) => Then::Stays(Vec::new()),
        // The program was started to choose a session: without one there is nothing to do.
        Reaction::Close if state.picks && matches!(layer, Layer::Picker(_)) => {
            Then::Goes(leave(state, None))
        }
        Reaction::Close => Then::Goes(Vec::new()),
        Reaction::Resume { id, at } => Then::Goes(go_to(state, id, at, now)),
        // The fork could not be shown now, and would be left behind unseen.
        Reaction::Fork(..) if !may_change(state, now) => Then::Stays(Vec::new()),
        Reaction::Fork(id, at) => {
            state.wish = Some(Wish::Resume(None));
            Then::Stays(vec![ask(Request::Fork(id, at))])
        }
        Reaction::Rename(id, title) => Then::Stays(vec![ask(Request::Rename(id, title))]),
        Reaction::Tag { id, add, remove } => Then::Stays(vec![ask(Request::Tag {
            session: id,
            add,
            remove,
        })]),
        Reaction::Trash(id) => Then::Stays(vec![ask(Request::Trash(id))]),
        Reaction::Undo => Then::Stays(vec![ask(Request::Undo)]),
        Reaction::Rewind(seq) => Then::Goes(vec![ask(Request::Words(state.id, seq))]),
        // A dialog shows by itself that its text was copied.
        Reaction::Copy(text) => Then::Stays(match layer.is_whole() {
            true => copy(state, text, now),
            false => vec![Effect::Copy(text)],
        }),
        Reaction::Answer(verdict) => {
            let Some(Subject::Permission(asked)) = layer.question().map(Question::subject) else {
                return Then::Goes(Vec::new());
            };
            if let Some(running) = &mut state.running {
                let then = match verdict.allows() {
                    true => running.then.clone(),
                    false => Doing::Thinking,
                };
                running.doing.clone_from(&then);
                state.activity.does(then);
            }
            Then::Goes(vec![Effect::Verdict(asked.ticket, verdict)])
        }
        Reaction::UseAgent(_) | Reaction::UseModel(_) | Reaction::AskModel(_)
            if state.is_running() =>
        {
            Then::Stays(warn(state, BUSY, now))
        }
        Reaction::UseAgent(name) => Then::Goes(switch::use_agent(state, name, now)),
        Reaction::UseModel(name) => Then::Goes(switch::use_model(state, name, now)),
        Reaction::AskModel(name) => Then::Goes(switch::ask_model(state, name, now)),
        Reaction::Continue if state.is_running() => Then::Goes(warn(state, BUSY, now)),
        Reaction::Continue => {
            let command = LiveCommand::Say(String::new());
            Then::Goes(vec![start_turn(state, command, now)])
        }
        // Resume with the team file named now, not the file the session was started with.
        Reaction::ResumeEarlier(id) => {
            let next = Next::resume_with(id, state.info.team_file.clone());
            Then::Goes(change(state, next, now))
        }
        Reaction::Open(_, IfOpen::Fork) => Then::Goes(held::fork(state, now)),
        Reaction::Open(id, if_open) => {
            let next = Next::resume_if_open(id, if_open);
            Then::Goes(change(state, next, now))
        }
        Reaction::StartNew => {
            state.is_undecided = false;
            Then::Goes(queued::go_on(state, now))
        }
        Reaction::Return => {
            let before = state.before.take();
            Then::Goes(leave(state, before))
        }
    }
}

/// Goes to a session, or to an entry of it.
fn go_to(state: &mut State, id: SessionId, at: Option<Seq>, now: Now) -> Vec<Effect> {
    if id == state.id {
        if let Some(seq) = at {
            state.transcript.jump(seq);
        }
        return Vec::new();
    }
    let next = Next::Resume {
        id,
        at,
        draft: None,
        team: None,
        if_open: IfOpen::Ask,
    };
    change(state, next, now)
}

/// Passes keys that do not answer a dialog to the layer below. The dialog stays open unless the
/// keys made it obsolete; overlays opened by the keys lie above it.
fn pass_keys(state: &mut State, mut question: Layer, keys: Vec<KeyEvent>, now: Now) -> Vec<Effect> {
    let place = state.overlays.len();
    let is_text = keys.iter().any(|key| key_event::typed(*key).is_some());
    let mut effects = Vec::new();
    for key in keys {
        effects.extend(super::pressed(state, key, now));
    }
    if state.is_leaving() {
        return effects;
    }
    if let Layer::Question(question) = &mut question {
        let subject = question.subject();
        if is_obsolete(state, subject) {
            return effects;
        }
        question.set_writing(match place {
            0 => !state.input.is_empty(),
            _ => is_text,
        });
    }
    let place = place.min(state.overlays.len());
    state.overlays.insert(place, question);
    effects
}

/// Returns true if the keys passed on from a question answered it in another way: they began a turn,
/// or asked the same again.
fn is_obsolete(state: &State, subject: &Subject) -> bool {
    let again = state.question().is_some_and(|other| {
        std::mem::discriminant(other.subject()) == std::mem::discriminant(subject)
    });
    again || subject.ends_with_turn() && state.is_running()
}

fn ask(request: Request) -> Effect {
    Effect::Ask(Box::new(request))
}

/// Pastes text into the front overlay.
pub fn pasted(state: &mut State, text: &str, now: Now) -> Vec<Effect> {
    let Some(layer) = state.overlays.last_mut() else {
        return Vec::new();
    };
    if layer.get_mut().paste(text, now.at) || layer.is_whole() {
        return Vec::new();
    }
    // Text is no answer to a dialog: it goes to the input, which stays visible, after a letter that
    // it continues.
    let mut words = String::new();
    if let Layer::Question(question) = layer {
        words.extend(question.take_letter().and_then(key_event::typed));
        question.set_writing(true);
    }
    let mut effects = match words.is_empty() {
        true => Vec::new(),
        false => super::written(state, &words),
    };
    effects.extend(super::written(state, text));
    effects
}

/// The mouse wheel acts like the arrow keys.
pub fn wheeled(state: &mut State, by: isize, now: Now) -> Vec<Effect> {
    let code = match by < 0 {
        true => KeyCode::Up,
        false => KeyCode::Down,
    };
    let mut effects = Vec::new();
    // A question scrolls its details; the wheel never changes an answer.
    let listens = match state.overlays.last() {
        Some(Layer::Question(question)) => question.is_awake(now.at),
        None => false,
        Some(_) => true,
    };
    if !listens {
        return effects;
    }
    for _ in 0..by.abs() {
        effects.extend(pressed(state, KeyEvent::from(code), now));
    }
    effects
}

/// Sequence number of the preceding entry.
pub fn before(seq: Seq) -> Seq {
    Seq(seq.0.saturating_sub(1))
}
