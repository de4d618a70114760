//! Draws the whole screen: the session with the lines below it, and the overlays.

use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Position;
use ratatui::widgets::{Clear, Widget};
use tertulia_agents::approval::{Approval, PermissionState};
use tertulia_core::entry::{Kind, Usage};
use tertulia_core::pair::Budget;
use tertulia_engine::event::ContextUse;

use super::brush::{Look, clear, hints, keep_in_cells, rule};
use crate::activity::Doing;
use crate::dialog::question::Question;
use crate::geometry::{above_rule, question_area, right_of_gutter, rows, screen_areas, toast_area};
use crate::links;
use crate::state::{Layer, Phase, State};
use crate::status::{AgentState, PairStatus, Saving, Status, TeamStatus};
use crate::text::{cut, one_line};
use crate::view;

/// Maximum width of an always-allowed tool in the status line.
const ALWAYS_COLUMNS: usize = 20;

/// Keys of reading mode.
const READING: &[(&str, &str)] = &[
    ("Esc", "back"),
    ("↑↓ g G", "move"),
    ("/ n N", "find"),
    ("v V", "select"),
    ("y", "copy"),
    ("o", "unfold"),
    ("a", "all"),
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
    let covered = state.overlays.iter().any(Layer::hides_session);
    if !covered {
        cursor = draw_talk(state, look, buffer);
        if state.links {
            let joints = links::joints(state.transcript.rows().map(|seen| seen.row));
            let area = right_of_gutter(screen_areas(state).transcript);
            links = links::find(buffer, area, &joints);
        }
    }
    // Toasts are drawn below dialogs: an agent can cause toasts, which would otherwise cover the
    // details of its permission request.
    let (below, questions) = state.overlays.split_at(first_question(state));
    for overlay in below {
        if overlay.hides_session() {
            Clear.render(whole, buffer);
        } else if overlay.is_whole() {
            buffer.set_style(whole, state.theme.dim());
        }
        cursor = overlay.get().view(look, whole, buffer);
    }
    let (row, rule) = (toast_area(state), screen_areas(state).rule);
    if covered {
        // The keys of an overlay stand at the left.
        view::toast::draw_right(&state.toasts, look, row, buffer);
    } else {
        if row != rule && state.toasts.seen(now).next().is_some() {
            clear(buffer, row);
        }
        view::toast::draw(&state.toasts, look, row, buffer);
    }
    for question in questions {
        let (area, written) = match question {
            // Only the one that is answered next is seen.
            Layer::Question(asked) if !is_front(state, asked) => continue,
            Layer::Question(asked) => {
                let area = question_area(state).intersection(whole);
                (area, cursor.filter(|_| asked.is_writing()))
            }
            _ => (whole, None),
        };
        cursor = question.get().view(look, area, buffer).or(written);
    }
    keep_in_cells(buffer, state.has_flags);
    links::lay(&links, buffer);
    cursor
}

fn is_front(state: &State, asked: &Question) -> bool {
    let front = state.question();
    front.is_some_and(|front| std::ptr::eq(front, asked))
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
    view::transcript::draw(&state.transcript, theme, areas.transcript, buffer);
    if state.is_blank() {
        // Notices come first, and the card takes the rows that they leave.
        let taken = state.transcript.rows().count();
        let first = if taken == 0 { 0 } else { taken + 1 };
        let free = rows(
            areas.transcript,
            first,
            usize::from(areas.transcript.height),
        );
        view::start_card::draw(state, look, free, buffer);
    }
    view::todos::draw(&state.todos, look, areas.todos, buffer);
    view::queue::draw(&state.queue, look, areas.queue, buffer);
    view::queue::draw_ahead(&state.ahead, look, areas.ahead, buffer);
    view::activity::draw(&state.activity, look, areas.activity, buffer);
    rule(buffer, areas.rule, theme);
    if state.reading {
        hints(buffer, areas.input, theme, READING);
        view::status::draw(&status(state, look.now), look, areas.status, buffer);
        return None;
    }
    let cursor = view::input::draw(&state.input, areas.input, buffer, theme);
    view::input::draw_popup(&state.input, above_rule(&areas), buffer, theme);
    view::status::draw(&status(state, look.now), look, areas.status, buffer);
    cursor
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
        folder: Some(state.folder.clone()).filter(|folder| !folder.is_empty()),
        is_elsewhere: state.is_elsewhere,
        restored: state.info.restored.as_ref().map(|meta| meta.messages),
        messages: meta.map_or(0, |meta| meta.messages),
        tokens: meta.map_or(Usage::default(), |meta| meta.tokens),
        context: state.context.map(ContextUse::percent),
        cost: state.bill.dollars(),
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
        policy: policy(state),
        permissions: permissions(&state.permissions),
        reading: state.reading,
        unseen: state.transcript.new_rows(),
    }
}

/// Names the tool policy if it asks for every tool. Teams and pairs have no room for it.
fn policy(state: &State) -> Option<String> {
    let is_plain = state.permissions.mode == Approval::Ask && state.permissions.always.is_empty();
    let is_shown = is_plain && state.info.kind == Kind::Chat && state.info.follows.is_none();
    is_shown.then(|| format!("approve: {}", Approval::Ask.name()))
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
    if let (Phase::Open, Some(question)) = (state.phase, state.question()) {
        return AgentState::Waiting(question.subject().wish());
    }
    match (&state.phase, &state.running) {
        (Phase::Opening, _) => AgentState::Opening,
        (Phase::Leaving | Phase::Gone, _) => AgentState::Leaving,
        (Phase::Open, Some(running)) => match &running.doing {
            Doing::Thinking | Doing::SummingUp => AgentState::Thinking,
            Doing::Speaking => AgentState::Speaking,
            Doing::Using { name, .. } => AgentState::UsingTool(name.clone()),
            Doing::Running(command) => AgentState::Running(one_line(command).trim().to_owned()),
            Doing::Waiting => AgentState::Waiting(running.tool.clone()),
            Doing::Retrying { attempt, of, .. } => AgentState::Retrying {
                attempt: *attempt,
                of: *of,
            },
        },
        (Phase::Open, None) if state.failed => AgentState::Failed,
        (Phase::Open, None) if state.is_unavailable => AgentState::Unavailable,
        (Phase::Open, None) => AgentState::Ready,
    }
}

fn saving(state: &State) -> Saving {
    let running = state.running.as_ref();
    let is_unheard = running.is_some_and(|running| running.unheard.is_some());
    if state.info.follows.is_some() {
        Saving::ReadOnly
    } else if state.info.ephemeral {
        Saving::Nothing
    } else if state.held > 0 {
        Saving::Unsaved
    } else if is_unheard {
        Saving::Saving
    } else if state.meta.as_ref().is_none_or(|meta| meta.messages == 0) {
        Saving::Blank
    } else if state.meta.as_ref().is_some_and(|meta| meta.seal.is_some()) {
        Saving::Sealed
    } else {
        Saving::Saved
    }
}
