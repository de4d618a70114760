//! Keys for overlays and dialogs, and their requests to the store service.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Size;
use tertulia_agents::approval::Verdict;
use tertulia_core::id::Seq;

use super::{change, copy, leave, news, order};
use crate::activity::Doing;
use crate::dialog::{approval, confirm, failure, restore};
use crate::effect::{Effect, Next, Now};
use crate::news::Order;
use crate::state::{Overlay, State, Wish};
use crate::store_service::Request;
use crate::{help, picker, press, rewind, search, sheet, stats, tree};

/// Whether the overlay stays open, and the effects to perform.
enum Then {
    Stays(Vec<Effect>),
    Goes(Vec<Effect>),
    /// The overlay does not use these keys: pass them to the layer below.
    Passes(Vec<KeyEvent>),
}

const STAYS: Then = Then::Stays(Vec::new());
const GOES: Then = Then::Goes(Vec::new());

/// Passes the screen size to an overlay.
pub fn resize(overlay: &mut Overlay, size: Size) {
    match overlay {
        Overlay::Help(help) => help.resize(size),
        Overlay::Picker(picker) => picker.resize(size),
        Overlay::Search(search) => search.resize(size),
        Overlay::Tree(tree) => tree.resize(size),
        Overlay::Stats(stats) => stats.resize(size),
        Overlay::Rewind(rewind) => rewind.resize(size),
        Overlay::Sheet(sheet) => sheet.resize(size),
        Overlay::Approval(_, approval) => approval.resize(size),
        Overlay::Failure(failure) => failure.resize(size),
        Overlay::Restore(_) | Overlay::GoOn(_) => {}
    }
}

/// Collects the requests of all overlays.
pub fn wishes(state: &mut State, now: Now) -> Vec<Effect> {
    let session = state.id;
    let mut wanted = Vec::new();
    for overlay in &mut state.overlays {
        match overlay {
            Overlay::Picker(picker) => {
                while let Some((ticket, wish)) = picker.wants(now.at) {
                    wanted.push(Request::Picker(ticket, wish));
                }
            }
            Overlay::Search(search) => {
                while let Some((ticket, wish)) = search.wants(now.at) {
                    wanted.push(Request::Search(ticket, wish));
                }
            }
            Overlay::Rewind(rewind) => {
                while let Some((ticket, wish)) = rewind.wants() {
                    wanted.push(Request::Rewind(session, ticket, wish));
                }
            }
            _ => {}
        }
    }
    let asked = wanted.into_iter();
    asked
        .map(|request| Effect::Ask(Box::new(request)))
        .collect()
}

/// Handles a key for the front overlay.
pub fn pressed(state: &mut State, key: KeyEvent, now: Now) -> Vec<Effect> {
    let Some(mut overlay) = state.overlays.pop() else {
        return Vec::new();
    };
    let before = state.overlays.len();
    let then = match &mut overlay {
        Overlay::Help(help) => match help.key(key) {
            help::Outcome::Leave => GOES,
            help::Outcome::Nothing | help::Outcome::Changed => STAYS,
        },
        Overlay::Picker(picker) => picked(state, picker.key(key, now.at), now),
        Overlay::Search(search) => match search.key(key, now.at) {
            search::Outcome::Leave => GOES,
            search::Outcome::Jump(spot) => Then::Goes(jump(state, spot, now)),
            search::Outcome::Fork(spot) => {
                state.wish = Some(Wish::Resume(None));
                Then::Stays(vec![ask(Request::Fork(spot.session, Some(spot.seq)))])
            }
            search::Outcome::Nothing | search::Outcome::Changed => STAYS,
        },
        Overlay::Tree(tree) => match tree.key(key) {
            tree::Outcome::Leave => GOES,
            tree::Outcome::Choose(id) if id == state.id => GOES,
            tree::Outcome::Choose(id) => Then::Goes(change(state, Next::resume(id), now)),
            tree::Outcome::Nothing | tree::Outcome::Changed => STAYS,
        },
        Overlay::Stats(stats) => match stats.key(key) {
            stats::Outcome::Leave => GOES,
            stats::Outcome::Nothing | stats::Outcome::Changed => STAYS,
        },
        Overlay::Rewind(rewind) => match rewind.key(key) {
            rewind::Outcome::Leave => GOES,
            rewind::Outcome::Rewind(seq) => Then::Goes(vec![ask(Request::Words(state.id, seq))]),
            rewind::Outcome::Nothing | rewind::Outcome::Changed => STAYS,
        },
        Overlay::Sheet(sheet) => match sheet.key(key) {
            sheet::Outcome::Leave => GOES,
            sheet::Outcome::Copy(text) => Then::Stays(copy(state, text, now)),
            sheet::Outcome::Nothing | sheet::Outcome::Changed => STAYS,
        },
        Overlay::Approval(..) | Overlay::Restore(_) | Overlay::GoOn(_) | Overlay::Failure(_) => {
            answered(state, &mut overlay, key, now)
        }
    };
    if !matches!(then, Then::Passes(_)) {
        state.keys.forget();
    }
    match then {
        Then::Goes(effects) => effects,
        Then::Passes(keys) => passed(state, overlay, keys, now),
        Then::Stays(effects) => {
            // An overlay opened by the key stays in front.
            let place = before.min(state.overlays.len());
            state.overlays.insert(place, overlay);
            effects
        }
    }
}

/// Handles a key for a dialog.
fn answered(state: &mut State, question: &mut Overlay, key: KeyEvent, now: Now) -> Then {
    match question {
        // While a completion is open, Tab is for the input.
        Overlay::Approval(_, approval)
            if approval.is_writing()
                && key.code == KeyCode::Tab
                && state.input.completion().is_open() =>
        {
            Then::Passes(vec![key])
        }
        Overlay::Approval(ticket, approval) => match approval.key(key, now.at) {
            approval::Outcome::Answer(verdict) => {
                if let Some(running) = &mut state.running {
                    let then = match verdict {
                        Verdict::Yes | Verdict::Always => running.then.clone(),
                        Verdict::No => Doing::Thinking,
                    };
                    running.doing.clone_from(&then);
                    state.activity.does(then);
                }
                Then::Goes(vec![Effect::Verdict(*ticket, verdict)])
            }
            approval::Outcome::Pass(letter, key) => {
                Then::Passes(letter.into_iter().chain([key]).collect())
            }
            approval::Outcome::Nothing | approval::Outcome::Changed => STAYS,
        },
        Overlay::Restore(restore) => match restore.key(key, now.at) {
            // Resume with the team file named now, not the file the session was started with.
            restore::Outcome::Resume(id) => {
                let next = Next::resume_with(id, state.scene.team_file.clone());
                Then::Goes(change(state, next, now))
            }
            restore::Outcome::New => {
                state.is_undecided = false;
                Then::Goes(news::go_on(state, now))
            }
            restore::Outcome::Leave => {
                // Without a decision, return to the previous session.
                let before = state.before.take();
                Then::Goes(leave(state, before))
            }
            restore::Outcome::NotYet(key) => Then::Passes(vec![key]),
            restore::Outcome::Nothing | restore::Outcome::Changed => STAYS,
        },
        Overlay::GoOn(confirm) => match confirm.key(key, now.at) {
            confirm::Outcome::Yes => Then::Goes(vec![order(state, Order::Say(String::new()), now)]),
            confirm::Outcome::No => GOES,
            confirm::Outcome::NotYet(key) => Then::Passes(vec![key]),
            confirm::Outcome::Nothing | confirm::Outcome::Changed => STAYS,
        },
        Overlay::Failure(failure) => match failure.key(key) {
            failure::Outcome::Leave => GOES,
            failure::Outcome::Copy(text) => Then::Stays(vec![Effect::Copy(text)]),
            failure::Outcome::Nothing | failure::Outcome::Changed => STAYS,
        },
        _ => STAYS,
    }
}

/// Passes keys that do not answer a dialog to the layer below. The dialog stays open unless the
/// keys made it obsolete; overlays opened by the keys lie above it.
fn passed(state: &mut State, mut question: Overlay, keys: Vec<KeyEvent>, now: Now) -> Vec<Effect> {
    let place = state.overlays.len();
    let is_text = keys.iter().any(|key| press::typed(*key).is_some());
    let mut effects = Vec::new();
    for key in keys {
        effects.extend(super::pressed(state, key, now));
    }
    let goes_on = matches!(question, Overlay::GoOn(_)) && state.is_running();
    if state.is_leaving() || goes_on {
        return effects;
    }
    if let Overlay::Approval(_, approval) = &mut question {
        approval.set_writing(match place {
            0 => !state.input.is_empty(),
            _ => is_text,
        });
    }
    let place = place.min(state.overlays.len());
    state.overlays.insert(place, question);
    effects
}

fn ask(request: Request) -> Effect {
    Effect::Ask(Box::new(request))
}

/// Applies the outcome of the session list.
fn picked(state: &mut State, outcome: picker::Outcome, now: Now) -> Then {
    match outcome {
        picker::Outcome::Nothing | picker::Outcome::Changed => STAYS,
        picker::Outcome::Leave => GOES,
        picker::Outcome::Resume { id, at } if id == state.id => {
            if let Some(seq) = at {
                state.transcript.jump(seq);
            }
            GOES
        }
        picker::Outcome::Resume { id, at } => {
            let next = Next::Resume {
                id,
                at,
                draft: None,
                model: None,
                team: None,
            };
            Then::Goes(change(state, next, now))
        }
        picker::Outcome::Rename(id, title) => Then::Stays(vec![ask(Request::Rename(id, title))]),
        picker::Outcome::Tag { id, add, remove } => Then::Stays(vec![ask(Request::Tag {
            session: id,
            add,
            remove,
        })]),
        picker::Outcome::Fork(id) => {
            state.wish = Some(Wish::Resume(None));
            Then::Stays(vec![ask(Request::Fork(id, None))])
        }
        picker::Outcome::Trash(id) => Then::Stays(vec![ask(Request::Trash(id))]),
    }
}

/// Goes to a search hit.
fn jump(state: &mut State, spot: search::Spot, now: Now) -> Vec<Effect> {
    if spot.session == state.id {
        state.transcript.jump(spot.seq);
        return Vec::new();
    }
    let next = Next::Resume {
        id: spot.session,
        at: Some(spot.seq),
        draft: None,
        model: None,
        team: None,
    };
    change(state, next, now)
}

/// Pastes text into the front overlay.
pub fn pasted(state: &mut State, text: &str, now: Now) -> Vec<Effect> {
    match state.overlays.last_mut() {
        Some(Overlay::Picker(picker)) => {
            picker.paste(text, now.at);
        }
        Some(Overlay::Search(search)) => {
            search.paste(text, now.at);
        }
        // Text is no answer to a dialog: it goes to the input, which stays visible.
        Some(overlay) if !overlay.is_whole() => {
            if let Overlay::Approval(_, approval) = overlay {
                approval.set_writing(true);
            }
            return super::written(state, text);
        }
        _ => {}
    }
    Vec::new()
}

/// The mouse wheel acts like the arrow keys.
pub fn wheeled(state: &mut State, by: isize, now: Now) -> Vec<Effect> {
    let code = match by < 0 {
        true => KeyCode::Up,
        false => KeyCode::Down,
    };
    let mut effects = Vec::new();
    // Among the dialogs that ask a question, only one that scrolls uses the wheel; the wheel never
    // changes an answer.
    let listens = match state.overlays.last() {
        Some(Overlay::Approval(_, approval)) => approval.is_awake(now.at),
        Some(Overlay::Restore(_) | Overlay::GoOn(_)) | None => false,
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
