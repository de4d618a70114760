//! `update`: changes the state for each event and returns the effects to perform.

mod answers;
mod asking;
mod command;
mod held;
mod help;
mod mouse;
mod notify;
mod overlay;
mod queued;
mod reading;
mod session;
mod slash;
mod switch;
#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind};
use ratatui::layout::Size;
use tertulia_core::entry::Kind;

use super::activity::Doing;
use super::completion::Asked;
use super::effect::{Effect, Event, Next, Now};
use super::geometry;
use super::input;
use super::item::Tone;
use super::keymap::{self, Action, Where};
use super::live::LiveCommand;
use super::overlay::Overlay;
use super::rewind::Rewind;
use super::slash::{self as commands, Slash};
use super::state::{Layer, Phase, Running, State};
use super::store_service::Request;
use super::toast::Until;
use super::transcript;
use asking::ask;
pub use slash::sessions;

/// Signal number (SIGINT) recorded when the user leaves by pressing Ctrl+C twice.
const INTERRUPT: u8 = 2;
/// Signal number (SIGHUP) of a terminal that is gone.
const HANG_UP: u8 = 1;

/// Applies an event to the state.
pub fn update(state: &mut State, event: Event, now: Now) -> Vec<Effect> {
    let mut effects = apply(state, event, now);
    if matches!(state.phase, Phase::Open) && !state.is_undecided && state.info.follows.is_none() {
        state.ahead.hand_over(now.at);
    }
    let leaves = |effect: &Effect| {
        matches!(
            effect,
            Effect::Command(LiveCommand::Leave | LiveCommand::End)
        )
    };
    // A session that is left is told before.
    let place = effects.iter().position(leaves).unwrap_or(effects.len());
    let told = queued::changed_draft(state)
        .into_iter()
        .chain(state.ahead.take_commands());
    effects.splice(place..place, told.map(Effect::Command));
    effects
}

fn apply(state: &mut State, event: Event, now: Now) -> Vec<Effect> {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
        Event::Key(key) => pressed(state, key, now),
        Event::Paste(text) => pasted(state, &text, now),
        Event::Mouse(mouse) => mouse::pointed(state, mouse, now),
        Event::Focus(has_focus) => {
            state.has_focus = Some(has_focus);
            Vec::new()
        }
        Event::Resize(size) => {
            resize(state, size);
            // Redraws even if the size is unchanged: a terminal that shrank for a moment has lost
            // the content beyond its edge.
            vec![Effect::Redraw]
        }
        Event::Live(event) => session::apply(state, event, now),
        Event::Answer(answer) => answers::apply(state, *answer, now),
        Event::Edited(Ok(text)) => {
            state.input.set_text(text.trim_end_matches('\n'));
            Vec::new()
        }
        Event::Edited(Err(why)) => {
            state.toasts.push(Tone::Error, &why, now.at);
            Vec::new()
        }
        // A hang-up is not urgent: the lost terminal and the signal report the same event, and
        // pending writes are finished.
        Event::Unplugged | Event::Signal(HANG_UP) if state.is_leaving() => {
            // There is no terminal for the next session.
            if state.next.take().is_some() {
                state.signal = Some(HANG_UP);
            }
            Vec::new()
        }
        Event::Signal(number) => ended(state, number),
        Event::Unplugged => ended(state, HANG_UP),
        Event::Tick => {
            state.toasts.sweep(now.at);
            Vec::new()
        }
    }
}

/// Lays everything out before drawing, and requests the data that is missing.
pub fn arrange(state: &mut State, now: Now) -> Vec<Effect> {
    let hint = asking::hint(state);
    state.input.set_placeholder(&hint);
    state.input.resize(state.size.width, state.size.height);
    let areas = geometry::screen_areas(state);
    let above = geometry::question_area(state).as_size();
    for overlay in &mut state.overlays {
        if let Layer::Question(question) = overlay {
            question.resize(above);
        }
    }
    state
        .transcript
        .fit(areas.transcript.as_size(), state.theme);
    let mut effects = Vec::new();
    if state.phase != Phase::Opening
        && let Some(wanted) = state.transcript.wants()
    {
        effects.push(Effect::Ask(Box::new(Request::Transcript {
            session: state.id,
            kind: state.info.kind,
            wanted,
        })));
    }
    if let Some(scan) = state.transcript.wants_scan() {
        effects.push(Effect::Ask(Box::new(Request::Scan {
            session: state.id,
            kind: state.info.kind,
            scan,
        })));
    }
    effects.extend(overlay::requests(state, now));
    effects
}

/// Applies a new terminal size.
fn resize(state: &mut State, size: Size) {
    state.size = size;
    for overlay in &mut state.overlays {
        overlay.get_mut().resize(size);
    }
}

fn pressed(state: &mut State, key: KeyEvent, now: Now) -> Vec<Effect> {
    state.toasts.end(Until::Key);
    match keymap::only(Where::Anywhere, key) {
        Some(Action::Redraw) => return vec![Effect::Redraw],
        Some(Action::Detach) => return detach(state, now),
        Some(Action::Suspend) => return vec![Effect::Suspend],
        // In the help itself, the key closes it.
        Some(Action::Help) if !matches!(state.overlays.last(), Some(Layer::Help(_))) => {
            help::open(state);
            return Vec::new();
        }
        _ => {}
    }
    if !state.overlays.is_empty() {
        return overlay::pressed(state, key, now);
    }
    if state.reading {
        return reading::pressed(state, key, now);
    }
    if queued::moves(state, key) {
        state.keys.forget();
        return Vec::new();
    }
    // An answer is stopped by one key, in vim mode, too.
    let stops = key.code == KeyCode::Esc && state.is_running();
    let did = match stops && state.input.is_inserting_nothing() {
        true => input::Did::Pass(key),
        false => state.input.key(key),
    };
    written_to(state, did, now)
}

/// Applies the outcome of a key or a click in the input.
fn written_to(state: &mut State, did: input::Did, now: Now) -> Vec<Effect> {
    match did {
        input::Did::Nothing | input::Did::Changed => {
            state.keys.forget();
            queued::emptied(state, now)
        }
        input::Did::Complete(asked) => {
            state.keys.forget();
            vec![complete(state, asked)]
        }
        input::Did::Submit(words) => {
            state.keys.forget();
            submitted(state, words, now)
        }
        input::Did::Run(command) => {
            state.keys.forget();
            command::run(state, command, now)
        }
        input::Did::SubmitNothing => {
            state.keys.forget();
            match state.offered().map(|last| last.id) {
                Some(id) => change(state, Next::resume(id), now),
                None => Vec::new(),
            }
        }
        input::Did::Leave => leave(state, None),
        input::Did::Pass(key) => match state.keys.action(Where::Talk, key, now.tick) {
            Some(action) => act(state, action, now),
            None => Vec::new(),
        },
    }
}

/// Copies text to the clipboard and confirms with a toast.
fn copy(state: &mut State, text: String, now: Now) -> Vec<Effect> {
    let lines = text.lines().count();
    let words = match lines {
        1 => "copied".to_owned(),
        lines => format!("copied {lines} lines"),
    };
    state.toasts.push(Tone::Note, &words, now.at);
    vec![Effect::Copy(text)]
}

fn act(state: &mut State, action: Action, now: Now) -> Vec<Effect> {
    match action {
        // Without messages there is nothing to go back to.
        Action::Cancel if state.meta.is_none() && !state.is_running() => Vec::new(),
        Action::Cancel => stop(state, now, "Esc again: choose a message to go back to"),
        Action::Interrupt => interrupt(state, now),
        Action::Leave => ended(state, INTERRUPT),
        Action::Rewind => {
            if !state.is_running() && state.meta.is_some() {
                open(state, Layer::Rewind(Box::<Rewind>::default()));
            }
            Vec::new()
        }
        Action::Transcript => {
            state.reading = !state.reading;
            Vec::new()
        }
        Action::PageUp => scrolled(state, |transcript| transcript.page(-1)),
        Action::PageDown => scrolled(state, |transcript| transcript.page(1)),
        Action::LineUp => scrolled(state, |transcript| transcript.scroll(-1)),
        Action::LineDown => scrolled(state, |transcript| transcript.scroll(1)),
        Action::ToTop => scrolled(state, transcript::Transcript::go_to_top),
        Action::ToEnd => scrolled(state, transcript::Transcript::go_to_end),
        Action::Edit => vec![Effect::Edit(state.input.text())],
        Action::Todos => {
            state.todos.toggle();
            Vec::new()
        }
        Action::Mode => slash::switch_mode(state, now),
        Action::Unqueue => queued::remove(state, now),
        Action::Help => {
            help::open(state);
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn scrolled(state: &mut State, scroll: impl FnOnce(&mut transcript::Transcript)) -> Vec<Effect> {
    scroll(&mut state.transcript);
    Vec::new()
}

/// Cancels the current turn and returns queued messages to the input.
fn stop(state: &mut State, now: Now, otherwise: &str) -> Vec<Effect> {
    let Some(running) = &mut state.running else {
        if state.input.is_empty() {
            let toasts = &mut state.toasts;
            toasts.push_until(Until::Key, Tone::Note, otherwise, now.at);
        }
        return Vec::new();
    };
    running.stopped = true;
    take_back(state);
    vec![Effect::Cancel]
}

/// Moves queued messages back to the input.
fn take_back(state: &mut State) {
    if state.ahead.is_empty() {
        return;
    }
    let words = state.ahead.take_all(state.input.text());
    state.input.recall(&words.join("\n"));
}

fn interrupt(state: &mut State, now: Now) -> Vec<Effect> {
    if state.phase == Phase::Leaving {
        return vec![Effect::Abort];
    }
    // Keep text the user does not see (reading mode) or typed ahead.
    if !state.ahead.is_empty() {
        take_back(state);
    } else if !state.is_running() && !state.reading {
        state.input.clear();
    }
    let again = "press Ctrl+C again to exit; the session is saved";
    let toasts = &mut state.toasts;
    toasts.push_until(Until::Key, Tone::Note, again, now.at);
    match state.is_running() {
        true => stop(state, now, again),
        false => Vec::new(),
    }
}

/// Leaves the session, for `next` or to exit.
pub(super) fn leave(state: &mut State, next: Option<Next>) -> Vec<Effect> {
    if state.phase == Phase::Leaving {
        return vec![Effect::Abort];
    }
    state.phase = Phase::Leaving;
    let mut effects = vec![Effect::Cancel, Effect::Command(LiveCommand::Leave)];
    if state.info.is_remote {
        // A session on a server keeps running: do not cancel its turn.
        effects.remove(0);
    }
    // The draft moves on to the next session. Without one, it is saved in the input history.
    if next.is_none() && !state.input.is_empty() {
        let words = state.input.text();
        effects.push(Effect::Ask(Box::new(Request::Remember(words))));
    }
    state.next = next;
    // What waits in a session on a server is sent there.
    if !state.info.is_remote {
        take_back(state);
    }
    state.overlays.clear();
    effects
}

/// Leaves a session on a server, which keeps running.
fn detach(state: &mut State, now: Now) -> Vec<Effect> {
    if state.info.is_remote {
        return leave(state, None);
    }
    let words =
        "this session ends with the screen; to keep it running, use tertulia serve and attach";
    state.toasts.push(Tone::Note, words, now.at);
    Vec::new()
}

/// Ends the session, here or on the server, and leaves.
pub(super) fn end(state: &mut State) -> Vec<Effect> {
    let is_remote = state.info.is_remote;
    let effects = leave(state, None).into_iter();
    effects
        .map(|effect| match effect {
            Effect::Command(LiveCommand::Leave) if is_remote => Effect::Command(LiveCommand::End),
            effect => effect,
        })
        .collect()
}

/// Leaves because of a signal, or because of a double Ctrl+C, which counts as one.
fn ended(state: &mut State, number: u8) -> Vec<Effect> {
    state.signal = Some(number);
    let effects = leave(state, None);
    // A switch to another session may have been pending.
    state.next = None;
    effects
}

/// Switches to another session, unless an agent is answering in a local one.
pub(super) fn change(state: &mut State, next: Next, now: Now) -> Vec<Effect> {
    match may_change(state, now) {
        true => leave(state, Some(next)),
        false => Vec::new(),
    }
}

/// Returns true if another session may be shown now; says why not if an agent is answering.
pub(super) fn may_change(state: &mut State, now: Now) -> bool {
    if state.is_leaving() {
        return false;
    }
    let is_busy = state.is_running() && !state.info.is_remote;
    if is_busy {
        slash::warn(state, slash::BUSY, now);
    }
    !is_busy
}

fn submitted(state: &mut State, words: String, now: Now) -> Vec<Effect> {
    state.toasts.end(Until::Prompt);
    match commands::parse(&words) {
        Some(Ok(Slash::End | Slash::Exit)) if state.is_leaving() => leave(state, None),
        _ if state.is_leaving() => {
            // The session takes no more messages; the text moves on to the next one.
            state.input.set_text(&words);
            Vec::new()
        }
        None => say(state, words, now),
        Some(Ok(command)) if slash::must_wait(state, &command) => {
            // Put the command back: it can be sent when the answer has ended.
            state.input.set_text(&words);
            let why = slash::why_wait(state, &words);
            let toasts = &mut state.toasts;
            toasts.push_until(Until::Turn, Tone::Warning, &why, now.at);
            Vec::new()
        }
        Some(Ok(command)) => {
            state.ahead.drop_edited();
            let mut effects = vec![Effect::Ask(Box::new(Request::Remember(words)))];
            effects.extend(slash::done(state, command, now));
            effects.extend(queued::go_on(state, now));
            effects
        }
        Some(Err(wrong)) => {
            // Put the command back so that a typo can be corrected.
            state.input.set_text(&words);
            slash::warn(state, &wrong.to_string(), now)
        }
    }
}

/// Sends a message now, or queues it until the current turn ends.
pub(super) fn say(state: &mut State, words: String, now: Now) -> Vec<Effect> {
    if state.info.follows.is_some() {
        return held::say(state, &words, now);
    }
    let remembered = Effect::Ask(Box::new(Request::Remember(words.clone())));
    if state.phase != Phase::Open || !state.is_free() {
        state.ahead.put(words);
        return vec![remembered];
    }
    state.ahead.drop_edited();
    vec![remembered, start_turn(state, LiveCommand::Say(words), now)]
}

/// Returns the command that starts a turn, and marks the turn as running.
fn start_turn(state: &mut State, command: LiveCommand, now: Now) -> Effect {
    let doing = match command {
        LiveCommand::Compact => Doing::SummingUp,
        LiveCommand::Run(ref command) => Doing::running(command),
        _ => Doing::Thinking,
    };
    begin(state, doing, now);
    if let Some(running) = &mut state.running {
        running.unheard = match &command {
            LiveCommand::Say(words) if !words.is_empty() => Some(words.clone()),
            _ => None,
        };
    }
    Effect::Command(command)
}

/// Marks a turn as running.
fn begin(state: &mut State, doing: Doing, now: Now) {
    let who = state.info.speaker();
    // From the first turn on, it is a session like any other.
    state.info.restored = None;
    state.failed = false;
    state.transcript.go_to_end();
    let since = state.info.busy_since.unwrap_or(now.at);
    state.activity.begin(&who.display_name, since);
    state.activity.does(doing.clone());
    state.running = Some(Running {
        since,
        began: since,
        who,
        doing,
        tool: String::new(),
        then: Doing::Thinking,
        letters: 0,
        stopped: false,
        unheard: None,
        refused: false,
    });
}

fn pasted(state: &mut State, text: &str, now: Now) -> Vec<Effect> {
    if !state.overlays.is_empty() {
        return overlay::pasted(state, text, now);
    }
    written(state, text)
}

/// Inserts pasted text into the input.
fn written(state: &mut State, text: &str) -> Vec<Effect> {
    state.reading = false;
    match state.input.paste(text) {
        input::Did::Complete(asked) => vec![complete(state, asked)],
        _ => Vec::new(),
    }
}

/// Requests completion candidates.
fn complete(state: &State, asked: Asked) -> Effect {
    let agent = (state.info.kind == Kind::Chat).then(|| state.info.agent.clone());
    Effect::Ask(Box::new(Request::Complete(asked, agent)))
}

/// Opens an overlay.
pub(super) fn open(state: &mut State, mut layer: Layer) {
    state.opened += 1;
    let overlay = layer.get_mut();
    overlay.resize(state.size);
    // An answer to an overlay that was closed must not reach the next one of its kind.
    overlay.number(state.opened << 32);
    state.overlays.push(layer);
}
