//! `update`: changes the state for each event and returns the effects to perform.

mod answers;
mod held;
mod mouse;
mod overlay;
mod session;
mod slash;
#[cfg(test)]
mod tests;

use crossterm::event::{KeyEvent, KeyEventKind};
use ratatui::layout::Size;
use tertulia_agents::approval::PermissionChange;
use tertulia_engine::text::permissions::meaning;

use super::activity::Doing;
use super::effect::{Effect, Event, Next, Now};
use super::geometry;
use super::help::{Help, HelpRow};
use super::input;
use super::item::Tone;
use super::keymap::{self, Action, Where};
use super::live::LiveCommand;
use super::overlay::Overlay;
use super::rewind::Rewind;
use super::slash::{self as commands, Slash};
use super::state::{Layer, Phase, Running, State};
use super::store_service::Request;
use super::transcript;
pub use slash::sessions;

/// Signal number (SIGINT) recorded when the user leaves by pressing Ctrl+C twice.
const INTERRUPT: u8 = 2;
/// Signal number (SIGHUP) of a terminal that is gone.
const HANG_UP: u8 = 1;

/// Applies an event to the state.
pub fn update(state: &mut State, event: Event, now: Now) -> Vec<Effect> {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
        Event::Key(key) => pressed(state, key, now),
        Event::Paste(text) => pasted(state, &text, now),
        Event::Mouse(mouse) => mouse::pointed(state, mouse, now),
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
    state.input.set_placeholder(hint(state));
    state.input.resize(state.size.width, state.size.height);
    let areas = geometry::screen_areas(state);
    let above = geometry::question_area(state).as_size();
    for overlay in &mut state.overlays {
        if let Layer::Approval(_, approval) = overlay {
            approval.resize(above);
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
    effects.extend(overlay::requests(state, now));
    effects
}

/// Placeholder of the empty input.
fn hint(state: &State) -> &'static str {
    if let Some(Layer::Approval(..)) = state.overlays.last() {
        return "y, a or n and Enter answers; anything else is written here";
    }
    match (state.phase, &state.running) {
        (Phase::Leaving | Phase::Gone, _) => "",
        (Phase::Open, _) if state.info.follows.is_some() => held::PLACEHOLDER,
        (Phase::Open, None) => "say something, or / for commands",
        (Phase::Opening, _) | (Phase::Open, Some(_)) => {
            "type ahead: sent when the current answer ends"
        }
    }
}

/// Applies a new terminal size.
fn resize(state: &mut State, size: Size) {
    state.size = size;
    for overlay in &mut state.overlays {
        overlay.get_mut().resize(size);
    }
}

fn pressed(state: &mut State, key: KeyEvent, now: Now) -> Vec<Effect> {
    if keymap::only(Where::Anywhere, key) == Some(Action::Redraw) {
        return vec![Effect::Redraw];
    }
    if keymap::only(Where::Anywhere, key) == Some(Action::Detach) {
        return detach(state, now);
    }
    if keymap::only(Where::Anywhere, key) == Some(Action::Suspend) {
        return vec![Effect::Suspend];
    }
    if !state.overlays.is_empty() {
        return overlay::pressed(state, key, now);
    }
    if state.reading {
        return read(state, key, now);
    }
    match state.input.key(key) {
        input::Did::Nothing | input::Did::Changed => {
            state.keys.forget();
            Vec::new()
        }
        input::Did::Complete(asked) => {
            state.keys.forget();
            vec![Effect::Ask(Box::new(Request::Complete(asked)))]
        }
        input::Did::Submit(words) => {
            state.keys.forget();
            submitted(state, words, now)
        }
        input::Did::Leave => leave(state, None),
        input::Did::Pass(key) => match state.keys.action(Where::Talk, key, now.tick) {
            Some(action) => act(state, action, now),
            None => Vec::new(),
        },
    }
}

/// Handles a key in reading mode.
fn read(state: &mut State, key: KeyEvent, now: Now) -> Vec<Effect> {
    let did = state.transcript.key(key);
    followed(state, did, now)
}

/// Applies the outcome of a transcript action.
fn followed(state: &mut State, did: transcript::Did, now: Now) -> Vec<Effect> {
    match did {
        transcript::Did::Nothing | transcript::Did::Changed => {
            state.keys.forget();
            Vec::new()
        }
        transcript::Did::Copy(text) => copy(state, text, now),
        transcript::Did::NotFound(words) => {
            let text = format!("'{words}' not found in the loaded part; /search looks everywhere");
            state.toasts.push(Tone::Note, &text, now.at);
            Vec::new()
        }
        transcript::Did::Leave => {
            state.reading = false;
            state.transcript.go_to_end();
            Vec::new()
        }
        transcript::Did::Pass(key) => match state.keys.action(Where::Transcript, key, now.tick) {
            Some(Action::Close) => {
                state.reading = false;
                Vec::new()
            }
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
        Action::Mode => switch_mode(state, now),
        Action::Help => {
            open(state, Layer::Help(Box::new(Help::new(help_rows()))));
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// Switches to the next tool policy.
fn switch_mode(state: &mut State, now: Now) -> Vec<Effect> {
    let mode = state.permissions.mode.next();
    let words = format!("tool policy: {} ({})", mode.name(), meaning(mode));
    state.toasts.push(Tone::Note, &words, now.at);
    vec![Effect::Permit(PermissionChange::Mode(mode))]
}

fn scrolled(state: &mut State, scroll: impl FnOnce(&mut transcript::Transcript)) -> Vec<Effect> {
    scroll(&mut state.transcript);
    Vec::new()
}

/// Cancels the current turn and returns queued messages to the input.
fn stop(state: &mut State, now: Now, otherwise: &str) -> Vec<Effect> {
    let Some(running) = &mut state.running else {
        if state.input.is_empty() {
            state.toasts.push(Tone::Note, otherwise, now.at);
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
    let mut words: Vec<String> = state.ahead.drain(..).collect();
    if !state.input.is_empty() {
        words.push(state.input.text());
    }
    state.input.set_text(&words.join("\n"));
}

fn interrupt(state: &mut State, now: Now) -> Vec<Effect> {
    if state.phase == Phase::Leaving {
        return vec![Effect::Abort];
    }
    // Keep text the user does not see (reading mode) or typed ahead.
    if !state.is_running() && !state.reading {
        state.input.clear();
    }
    let again = "press Ctrl+C again to exit; the session is saved";
    state.toasts.push(Tone::Note, again, now.at);
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
    take_back(state);
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
        let words = "an agent is answering: press Esc first to stop it";
        state.toasts.push(Tone::Warning, words, now.at);
    }
    !is_busy
}

fn submitted(state: &mut State, words: String, now: Now) -> Vec<Effect> {
    match commands::parse(&words) {
        Some(Ok(Slash::End | Slash::Exit)) if state.is_leaving() => leave(state, None),
        _ if state.is_leaving() => {
            // The session takes no more messages; the text moves on to the next one.
            state.input.set_text(&words);
            Vec::new()
        }
        None => say(state, words, now),
        Some(Ok(command)) => {
            let mut effects = vec![Effect::Ask(Box::new(Request::Remember(words)))];
            effects.extend(slash::done(state, command, now));
            effects
        }
        Some(Err(wrong)) => {
            // Put the command back so that a typo can be corrected.
            state.input.set_text(&words);
            state.toasts.push(Tone::Warning, &wrong.to_string(), now.at);
            Vec::new()
        }
    }
}

/// Sends a message now, or queues it until the current turn ends.
pub(super) fn say(state: &mut State, words: String, now: Now) -> Vec<Effect> {
    if state.info.follows.is_some() {
        return held::say(state, &words, now);
    }
    let remembered = Effect::Ask(Box::new(Request::Remember(words.clone())));
    if state.phase != Phase::Open || state.is_running() || state.is_undecided {
        state.ahead.push_back(words);
        return vec![remembered];
    }
    vec![remembered, start_turn(state, LiveCommand::Say(words), now)]
}

/// Returns the command that starts a turn, and marks the turn as running.
fn start_turn(state: &mut State, command: LiveCommand, now: Now) -> Effect {
    let doing = match command {
        LiveCommand::Compact => Doing::SummingUp,
        _ => Doing::Thinking,
    };
    begin(state, doing, now);
    if let Some(running) = &mut state.running {
        running.unheard = matches!(&command, LiveCommand::Say(words) if !words.is_empty());
    }
    Effect::Command(command)
}

/// Marks a turn as running.
fn begin(state: &mut State, doing: Doing, now: Now) {
    let who = state.info.speaker();
    state.failed = false;
    state.transcript.go_to_end();
    state.activity.begin(&who.display_name, now.at);
    state.activity.does(doing.clone());
    state.running = Some(Running {
        since: now.at,
        who,
        doing,
        tool: String::new(),
        then: Doing::Thinking,
        letters: 0,
        stopped: false,
        unheard: false,
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
        input::Did::Complete(asked) => vec![Effect::Ask(Box::new(Request::Complete(asked)))],
        _ => Vec::new(),
    }
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

/// Rows of the help overlay: commands, keys and mouse.
fn help_rows() -> Vec<HelpRow> {
    let keys = keymap::help().into_iter().map(|row| HelpRow {
        part: row.at.heading().to_owned(),
        keys: row.keys,
        what: row.meaning.to_owned(),
    });
    let commands = commands::COMMANDS.iter().map(|command| HelpRow {
        part: "Commands".to_owned(),
        keys: format!("{} {}", command.name, command.arguments)
            .trim_end()
            .to_owned(),
        what: command.help.to_owned(),
    });
    let mouse = HelpRow {
        part: "The mouse".to_owned(),
        keys: "wheel, drag".to_owned(),
        what: "scroll; copy what is dragged over (hold Shift for the terminal's own selection)"
            .to_owned(),
    };
    commands.chain(keys).chain([mouse]).collect()
}
