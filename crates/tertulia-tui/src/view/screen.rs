//! Draws the whole screen: the session with the lines below it, and the overlays.

use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::widgets::{Clear, Widget};
use tertulia_agents::approval::{Approval, PermissionState};
use tertulia_core::entry::{Kind, Usage};
use tertulia_core::pair::Budget;

use super::brush::{Look, hints, keep_in_cells, rule, write};
use crate::activity::Doing;
use crate::geometry::{question_area, row, screen_areas};
use crate::links;
use crate::state::{Layer, Phase, State};
use crate::status::{AgentState, PairStatus, Saving, Status, TeamStatus};
use crate::text::{cut, fold, one_line};
use crate::view;

/// Maximum width of an always-allowed tool in the status line.
const ALWAYS_COLUMNS: usize = 20;

/// Keys of reading mode.
const READING: &[(&str, &str)] = &[
    ("Esc", "back"),
    ("↑↓ PgUp PgDn g G", "move"),
    ("/ n N", "find"),
    ("v V", "select"),
    ("y", "copy"),
    ("o a", "unfold one, all"),
];

/// Draws everything and returns the cursor position.
pub fn draw(state: &State, now: Timestamp, buffer: &mut Buffer) -> Option<Position> {
    let look = Look {
        theme: state.theme,
        now,
    };
    let whole = buffer.area;
    let mut cursor = None;
    let mut links = Vec::new();
    let covered = state.overlays.iter().any(Layer::is_whole);
    if !covered {
        cursor = draw_talk(state, look, buffer);
        if state.links {
            let joints = links::joints(state.transcript.rows().map(|(row, _)| row));
            links = links::find(buffer, screen_areas(state).transcript, &joints);
        }
    }
    // Toasts are drawn over everything but dialogs: an agent can cause toasts, which would
    // otherwise cover the details of its permission request.
    let (below, questions) = state.overlays.split_at(first_question(state));
    for overlay in below {
        if overlay.is_whole() {
            Clear.render(whole, buffer);
        }
        cursor = overlay.get().view(look, whole, buffer);
    }
    view::toast::draw(&state.toasts, look, whole, buffer);
    for question in questions {
        let is_writing = matches!(question, Layer::Approval(_, asked) if asked.is_writing());
        let (area, written) = match question {
            Layer::Approval(..) => (question_area(state).intersection(whole), cursor),
            _ => (whole, None),
        };
        cursor = question
            .get()
            .view(look, area, buffer)
            .or(written.filter(|_| is_writing));
    }
    keep_in_cells(buffer);
    links::lay(&links, buffer);
    cursor
}

/// Index of the first dialog that is not below a full-screen overlay.
fn first_question(state: &State) -> usize {
    let last_other = state
        .overlays
        .iter()
        .rposition(|overlay| overlay.is_whole());
    last_other.map_or(0, |last| last + 1)
}

fn draw_talk(state: &State, look: Look, buffer: &mut Buffer) -> Option<Position> {
    let areas = screen_areas(state);
    let theme = look.theme;
    match state.transcript.is_empty() {
        true => draw_welcome(state, look, areas.transcript, buffer),
        false => view::transcript::draw(&state.transcript, theme, areas.transcript, buffer),
    }
    view::todos::draw(&state.todos, look, areas.todos, buffer);
    view::queue::draw(&state.queue, look, areas.queue, buffer);
    if let Some(words) = state.ahead.front() {
        let more = match state.ahead.len() {
            1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        let text = format!("then you say: {}{more}", one_line(words));
        write(buffer, areas.ahead, &text, theme.dim());
    }
    view::activity::draw(&state.activity, look, areas.activity, buffer);
    rule(buffer, areas.rule, theme);
    if state.reading {
        hints(buffer, areas.input, theme, READING);
        view::status::draw(&status(state, look.now), look, areas.status, buffer);
        return None;
    }
    let cursor = view::input::draw(&state.input, areas.input, buffer, theme);
    let above = Rect {
        height: areas.input.y,
        ..Rect::new(0, 0, buffer.area.width, 0)
    };
    view::input::draw_popup(&state.input, above, buffer, theme);
    view::status::draw(&status(state, look.now), look, areas.status, buffer);
    cursor
}

/// Draws the introduction of a session without messages.
fn draw_welcome(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let kept = match state.info.ephemeral {
        true => "Nothing of this session is saved.",
        false => "Every word is saved before it is answered.",
    };
    let mut lines = vec![(state.info.introduction.as_str(), theme.text())];
    lines.extend(
        state
            .info
            .mention
            .as_deref()
            .map(|mention| (mention, theme.text())),
    );
    lines.extend([
        ("", theme.text()),
        (
            "Enter sends, Alt+Enter begins a new line, Esc stops an answer, F1 shows all keys.",
            theme.dim(),
        ),
        (
            match state.info.kind {
                Kind::Team => {
                    "/sessions lists earlier sessions, /help the commands; @name first asks that member."
                }
                Kind::Chat | Kind::Pair => {
                    "/sessions lists earlier sessions, /help shows the commands, @ names a file."
                }
            },
            theme.dim(),
        ),
        (kept, theme.dim()),
    ]);
    let width = usize::from(area.width).max(1);
    let mut rows = Vec::new();
    for (text, style) in lines {
        let (folded, _) = fold(text, width, usize::from(area.height));
        rows.extend(folded.into_iter().map(|row| (row, style)));
    }
    for (number, (text, style)) in rows.iter().enumerate() {
        write(buffer, row(area, number), text, *style);
    }
}

/// Collects the content of the status line.
pub fn status(state: &State, now: Timestamp) -> Status {
    let meta = state.meta.as_ref();
    let who = match &state.running {
        Some(running) => running.who.display_name.clone(),
        None => state.info.agent.clone(),
    };
    Status {
        agent: agent_state(state),
        who,
        model: state.info.model.clone(),
        title: meta.and_then(|meta| meta.title.clone()),
        short: state.id.short().to_string(),
        restored: state.info.restored.as_ref().map(|meta| meta.messages),
        messages: meta.map_or(0, |meta| meta.messages),
        tokens: meta.map_or(Usage::default(), |meta| meta.tokens),
        cost: None,
        saving: saving(state),
        // Without a speaker, `who` already names the team.
        team: (state.info.kind == Kind::Team && state.is_running()).then(|| TeamStatus {
            name: state.info.agent.clone(),
            members: state.info.members.len(),
        }),
        pair: state.progress.as_ref().map(|(progress, at)| PairStatus {
            round: progress.round,
            remaining: match progress.remaining {
                Budget::Unlimited => "no limit".to_owned(),
                Budget::Calls(calls) => format!("{calls} left"),
            },
            elapsed: match &state.running {
                Some(_) => progress.elapsed + now.duration_since(*at),
                None => progress.elapsed,
            },
        }),
        permissions: permissions(&state.permissions),
        reading: state.reading,
        unseen: state.transcript.unseen(),
    }
}

/// Describes the permissions that differ from asking for every tool, for the status line.
fn permissions(state: &PermissionState) -> Option<String> {
    let always = match state.always.as_slice() {
        [] => None,
        [one] => Some(format!("always: {}", cut(one, ALWAYS_COLUMNS))),
        [first, rest @ ..] => Some(format!(
            "always: {} +{}",
            cut(first, ALWAYS_COLUMNS),
            rest.len()
        )),
    };
    let mode = match state.mode {
        Approval::Ask => None,
        mode => Some(format!("approve: {}", mode.name())),
    };
    let both: Vec<String> = mode.into_iter().chain(always).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

fn agent_state(state: &State) -> AgentState {
    match (&state.phase, &state.running) {
        (Phase::Opening, _) => AgentState::Opening,
        (Phase::Leaving | Phase::Gone, _) => AgentState::Leaving,
        (Phase::Open, Some(running)) => match &running.doing {
            Doing::Thinking | Doing::SummingUp => AgentState::Thinking,
            Doing::Speaking => AgentState::Speaking,
            Doing::Using { name, .. } => AgentState::UsingTool(name.clone()),
            Doing::Waiting => AgentState::Waiting(running.tool.clone()),
            Doing::Retrying { attempt, of, .. } => AgentState::Retrying {
                attempt: *attempt,
                of: *of,
            },
        },
        (Phase::Open, None) if state.failed => AgentState::Failed,
        (Phase::Open, None) => AgentState::Ready,
    }
}

fn saving(state: &State) -> Saving {
    let running = state.running.as_ref();
    let is_unheard = running.is_some_and(|running| running.unheard);
    if state.info.follows.is_some() {
        Saving::ReadOnly
    } else if state.info.ephemeral {
        Saving::Nothing
    } else if state.held > 0 {
        Saving::Unsaved
    } else if is_unheard || state.is_running() && state.transcript.is_streaming() {
        Saving::Saving
    } else if state.meta.as_ref().is_some_and(|meta| meta.seal.is_some()) {
        Saving::Sealed
    } else {
        Saving::Saved
    }
}
