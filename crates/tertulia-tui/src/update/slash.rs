//! Executes slash commands. Those that [`must_wait`] for the end of an answer do not get here before.

use tertulia_agents::approval::PermissionChange;
use tertulia_core::entry::Kind;
use tertulia_core::id::Seq;
use tertulia_core::query::Filter;
use tertulia_engine::text::entries as show;
use tertulia_engine::text::grouped;
use tertulia_engine::text::members::{MemberRow, member_lines};
use tertulia_engine::text::permissions as words;

use super::{act, change, end, held, leave, open, queued, start_turn, switch};
use crate::effect::{Effect, IfOpen, Next, Now, TeamOverride};
use crate::item::Tone;
use crate::keymap::Action;
use crate::live::LiveCommand;
use crate::picker::Picker;
use crate::rewind::Rewind;
use crate::search::Search;
use crate::sheet::{Line, Sheet, facts, plain};
use crate::slash::Slash;
use crate::state::{Layer, State, Wish};
use crate::status::dollars;
use crate::store_service::Request;
use crate::toast::Until;

/// Why a command is not possible during a turn.
pub(super) const BUSY: &str = "an agent is answering: press Esc first to stop it";

/// Executes a command.
pub fn done(state: &mut State, command: Slash, now: Now) -> Vec<Effect> {
    match command {
        Slash::Help => act(state, Action::Help, now),
        Slash::Sessions | Slash::Resume(None) => {
            sessions(state);
            Vec::new()
        }
        Slash::Resume(Some(reference)) => ask(Request::Find(reference)),
        Slash::New => {
            let next = state.info.start_over();
            change(state, next, now)
        }
        Slash::Search(words) => {
            let search = Search::new(Filter::default(), state.info.project.clone(), &words);
            open(state, Layer::Search(Box::new(search)));
            Vec::new()
        }
        Slash::Undo => ask(Request::Undo),
        Slash::Agents(None) => switch::agents(state),
        Slash::Agents(Some(name)) => switch::named_agent(state, name, now),
        Slash::TeamDeploy(config) => {
            let fresh = false;
            change(state, Next::Team { config, fresh }, now)
        }
        Slash::TeamList => ask(Request::Teams),
        Slash::TeamMap(map) => team_map(state, map, now),
        Slash::Models => switch::models(state, now),
        Slash::Model { name, anyway } => switch::named_model(state, name, anyway, now),
        Slash::Approve(_) | Slash::Permissions | Slash::Revoke(_) => {
            permissions(state, command, now)
        }
        Slash::Members | Slash::Queue | Slash::Task | Slash::Info => {
            tell(state, &command);
            Vec::new()
        }
        Slash::As(name) => vec![start_turn(state, LiveCommand::As(name), now)],
        Slash::Compact => vec![start_turn(state, LiveCommand::Compact, now)],
        Slash::Retry if state.info.kind == Kind::Team => warn(
            state,
            "/retry is not for teams: address the member again",
            now,
        ),
        Slash::Retry if state.meta.is_none() => warn(state, "no messages yet", now),
        Slash::Retry => vec![start_turn(state, LiveCommand::Say(String::new()), now)],
        Slash::Go if state.info.kind == Kind::Pair => {
            vec![start_turn(state, LiveCommand::Say(String::new()), now)]
        }
        Slash::Go => warn(state, "/go is for pairs: it continues unfinished work", now),
        Slash::End => end(state),
        Slash::Exit => leave(state, None),
        _ if state.meta.is_none() => warn(state, "no messages yet", now),
        command => with_session(state, command),
    }
}

/// Returns true if a command cannot run while an agent answers.
pub fn must_wait(state: &State, command: &Slash) -> bool {
    let is_busy = state.is_running();
    match command {
        Slash::As(_)
        | Slash::Compact
        | Slash::Go
        | Slash::Retry
        | Slash::Fork(_)
        | Slash::Rewind(_) => is_busy,
        // A session on a server runs on when another one is shown.
        Slash::New
        | Slash::Resume(Some(_))
        | Slash::TeamDeploy(_)
        | Slash::TeamMap(_)
        | Slash::Agents(Some(_))
        | Slash::Model { .. } => is_busy && !state.info.is_remote,
        _ => false,
    }
}

/// Says why a command has to wait, and what to do.
pub fn why_wait(state: &State, words: &str) -> String {
    let command = words.split_whitespace().next().unwrap_or_default();
    let who = match &state.running {
        Some(running) => running.who.display_name.as_str(),
        None => state.info.agent.as_str(),
    };
    format!("{who} is answering; Esc first, then {command}")
}

/// Switches to the next tool policy.
pub fn switch_mode(state: &mut State, now: Now) -> Vec<Effect> {
    let mode = state.permissions.mode.next();
    permissions(state, Slash::Approve(mode), now)
}

/// Shows or changes the tool permissions.
fn permissions(state: &mut State, command: Slash, now: Now) -> Vec<Effect> {
    let (words, change) = match command {
        Slash::Approve(mode) => (
            format!("tool policy: {} ({})", mode.name(), words::meaning(mode)),
            PermissionChange::Mode(mode),
        ),
        Slash::Revoke(what) => match words::revocation(&what, &state.permissions) {
            Err(why) => return warn(state, &why, now),
            Ok(PermissionChange::Revoke(key)) => (
                format!("revoked: {key} asks again"),
                PermissionChange::Revoke(key),
            ),
            Ok(change) => ("revoked: everything asks again".to_owned(), change),
        },
        _ => {
            let lines = plain(words::lines(&state.permissions));
            let sheet = Sheet::new("Tool permissions", lines);
            open(state, Layer::Sheet(Box::new(sheet)));
            return Vec::new();
        }
    };
    if state.info.follows.is_some() {
        return warn(state, held::NO_TOOLS, now);
    }
    state.toasts.push(Tone::Note, &words, now.at);
    vec![Effect::Permit(change)]
}

/// Executes a command that needs a saved session.
fn with_session(state: &mut State, command: Slash) -> Vec<Effect> {
    let session = state.id;
    match command {
        Slash::Rename(title) => ask(Request::Rename(session, title)),
        Slash::Tag { add, remove } => ask(Request::Tag {
            session,
            add,
            remove,
        }),
        Slash::Fork(at) => {
            state.wish = Some(Wish::Resume(None));
            ask(Request::Fork(session, at.map(Seq)))
        }
        Slash::Rewind(None) => {
            open(state, Layer::Rewind(Box::<Rewind>::default()));
            Vec::new()
        }
        Slash::Rewind(Some(at)) => ask(Request::Words(session, Seq(at))),
        Slash::Export { format, file } => ask(Request::Export {
            session,
            format,
            file,
        }),
        Slash::Compare(with) => ask(Request::Compare { session, with }),
        Slash::Tree => ask(Request::Tree(session)),
        Slash::Stats => ask(Request::Stats(session)),
        _ => Vec::new(),
    }
}

fn ask(request: Request) -> Vec<Effect> {
    vec![Effect::Ask(Box::new(request))]
}

pub(super) fn warn(state: &mut State, words: &str, now: Now) -> Vec<Effect> {
    let until = match words == BUSY {
        true => Until::Turn,
        false => Until::Prompt,
    };
    state.toasts.push_until(until, Tone::Warning, words, now.at);
    Vec::new()
}

/// Runs `then`, or warns if an agent is answering.
pub(super) fn busy_or(
    state: &mut State,
    now: Now,
    then: impl FnOnce(&mut State) -> Vec<Effect>,
) -> Vec<Effect> {
    match state.is_running() {
        true => warn(state, BUSY, now),
        false => then(state),
    }
}

/// Opens the session list.
pub fn sessions(state: &mut State) {
    let picker = Picker::new(Filter::default(), state.info.project.clone());
    open(state, Layer::Picker(Box::new(picker)));
}

/// Maps earlier speakers to members of the current team.
fn team_map(state: &mut State, map: Vec<String>, now: Now) -> Vec<Effect> {
    let (Some(config), Some(_)) = (state.info.team_file.clone(), &state.meta) else {
        return warn(
            state,
            "/team map is for a team's session that was resumed here",
            now,
        );
    };
    let next = Next::Resume {
        id: state.id,
        at: None,
        draft: None,
        team: Some(TeamOverride { config, map }),
        if_open: IfOpen::Ask,
    };
    change(state, next, now)
}

/// Shows facts that the state already holds.
fn tell(state: &mut State, command: &Slash) {
    let (title, lines) = match command {
        Slash::Members => ("Members", plain(members(state))),
        Slash::Queue => ("Queue", plain(queued::lines(state))),
        Slash::Task => ("Task", plain(task(state))),
        _ => ("This session", info(state)),
    };
    open(state, Layer::Sheet(Box::new(Sheet::new(title, lines))));
}

fn members(state: &State) -> Vec<String> {
    if state.info.members.is_empty() {
        return vec![state.info.introduction.clone()];
    }
    let speaks = state.running.as_ref().map(|running| &running.who.id);
    let everybody = state.info.members.iter();
    let rows: Vec<MemberRow<'_>> = everybody
        .map(|member| MemberRow {
            display_name: &member.display_name,
            name: &member.name,
            role: member.role.as_deref(),
            agent: member.agent.as_deref(),
            is_human: member.is_human,
            does: match () {
                () if speaks == Some(&member.id) => "speaking",
                () if state.queue.has(&member.display_name) => "queued",
                () => "",
            },
        })
        .collect();
    member_lines(&rows)
}

fn task(state: &State) -> Vec<String> {
    let task = state.meta.as_ref().and_then(|meta| meta.task.clone());
    let none = "the team has no task: [TEAM_TASK: text] gives it one";
    let task = task.unwrap_or_else(|| none.to_owned());
    task.lines().map(str::to_owned).collect()
}

/// Says what the session has cost, and for which models no price is known.
fn cost(state: &State) -> Option<String> {
    let cost = state.bill.dollars().and_then(dollars);
    let unpriced: Vec<&str> = state.bill.unpriced().collect();
    let unpriced = unpriced.join(", ");
    match (cost, unpriced.is_empty()) {
        (cost, true) => cost,
        (Some(cost), false) => Some(format!("{cost}, without {unpriced}: no price is known")),
        (None, false) => Some(format!("no price is known for {unpriced}")),
    }
}

fn info(state: &State) -> Vec<Line> {
    let mut lines = plain(vec![state.info.introduction.clone(), String::new()]);
    let mut rows = vec![("id", state.id.to_string())];
    let Some(meta) = &state.meta else {
        lines.extend(facts(&rows));
        lines.extend(plain(vec!["no messages yet".to_owned()]));
        return lines;
    };
    rows.push(("title", meta.title_or_untitled().to_owned()));
    if !meta.tags.is_empty() {
        rows.push(("tags", meta.tags.join(", ")));
    }
    if let Some(project) = &meta.project {
        rows.push(("project", project.clone()));
    }
    let messages = format!("{}: {}", meta.messages, show::statistics(meta));
    rows.push(("messages", messages));
    rows.extend(cost(state).map(|cost| ("cost", cost)));
    rows.extend(state.context.map(|context| {
        let words = "% of {} tokens; above that, older messages are summarised";
        let words = words.replace("{}", &grouped(context.limit));
        ("context", format!("{} {words}", context.percent()))
    }));
    if let Some(parent) = &meta.parent {
        let relation = match parent.place() {
            Some(_) => "continues",
            None => "subagent of",
        };
        rows.push((relation, parent.id.to_string()));
    }
    lines.extend(facts(&rows));
    lines
}
