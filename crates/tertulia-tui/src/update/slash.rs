//! Executes slash commands.

use tertulia_agents::approval::PermissionChange;
use tertulia_core::entry::Kind;
use tertulia_core::id::Seq;
use tertulia_core::query::Filter;
use tertulia_engine::text::entries as show;
use tertulia_engine::text::permissions as words;

use super::{act, change, end, leave, open, start_turn};
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
use crate::store_service::Request;

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
        Slash::Agents => ask(Request::Agents),
        Slash::TeamDeploy(config) => {
            let fresh = false;
            change(state, Next::Team { config, fresh }, now)
        }
        Slash::TeamList => ask(Request::Teams),
        Slash::TeamMap(map) => team_map(state, map, now),
        Slash::Models | Slash::Model { .. } if state.info.kind != Kind::Chat => warn(
            state,
            "each agent here has its own model: the team's file or the flags of pair name it",
            now,
        ),
        // The server knows its agents' models.
        Slash::Model { name, .. } if state.info.is_remote => with_model(state, name, now),
        Slash::Models => ask(Request::Models(None)),
        Slash::Model { name, anyway: true } => with_model(state, name, now),
        Slash::Model { name, .. } => busy_or(state, now, |_| ask(Request::Models(Some(name)))),
        Slash::Approve(_) | Slash::Permissions | Slash::Revoke(_) => {
            permissions(state, command, now)
        }
        Slash::Members | Slash::Queue | Slash::Task | Slash::Info => {
            tell(state, &command);
            Vec::new()
        }
        Slash::As(name) => busy_or(state, now, |state| {
            vec![start_turn(state, LiveCommand::As(name), now)]
        }),
        Slash::Compact => busy_or(state, now, |state| {
            vec![start_turn(state, LiveCommand::Compact, now)]
        }),
        Slash::Go if state.info.kind == Kind::Pair => busy_or(state, now, |state| {
            vec![start_turn(state, LiveCommand::Say(String::new()), now)]
        }),
        Slash::Go => warn(state, "/go is for pairs: it continues unfinished work", now),
        Slash::End => end(state),
        Slash::Exit => leave(state, None),
        _ if state.meta.is_none() => warn(state, "no messages yet", now),
        command => with_session(state, command, now),
    }
}

/// Shows or changes the tool permissions.
fn permissions(state: &mut State, command: Slash, now: Now) -> Vec<Effect> {
    let (words, change) = match command {
        Slash::Approve(mode) => (
            format!("tool policy {}: {}", mode.name(), words::meaning(mode)),
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
    state.toasts.push(Tone::Note, &words, now.at);
    vec![Effect::Permit(change)]
}

/// Executes a command that needs a saved session.
fn with_session(state: &mut State, command: Slash, now: Now) -> Vec<Effect> {
    let session = state.id;
    match command {
        Slash::Rename(title) => ask(Request::Rename(session, title)),
        Slash::Tag { add, remove } => ask(Request::Tag {
            session,
            add,
            remove,
        }),
        Slash::Fork(at) => busy_or(state, now, |state| {
            state.wish = Some(Wish::Resume(None));
            ask(Request::Fork(session, at.map(Seq)))
        }),
        Slash::Rewind(None) => busy_or(state, now, |state| {
            open(state, Layer::Rewind(Box::<Rewind>::default()));
            Vec::new()
        }),
        Slash::Rewind(Some(at)) => busy_or(state, now, |_| ask(Request::Words(session, Seq(at)))),
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

fn warn(state: &mut State, words: &str, now: Now) -> Vec<Effect> {
    state.toasts.push(Tone::Warning, words, now.at);
    Vec::new()
}

/// Runs `then`, or warns if an agent is answering.
fn busy_or(
    state: &mut State,
    now: Now,
    then: impl FnOnce(&mut State) -> Vec<Effect>,
) -> Vec<Effect> {
    match state.is_running() {
        true => warn(
            state,
            "an agent is answering: press Esc first to stop it",
            now,
        ),
        false => then(state),
    }
}

/// Opens the session list.
pub fn sessions(state: &mut State) {
    let picker = Picker::new(Filter::default(), state.info.project.clone());
    open(state, Layer::Picker(Box::new(picker)));
}

/// Switches to another model. The user asked for it, so the session counts neither as restored nor
/// needs a warning.
pub fn with_model(state: &mut State, name: String, now: Now) -> Vec<Effect> {
    let model = Some(name);
    let next = match &state.meta {
        None => Next::New {
            agent: Some(state.info.agent.clone()),
            model,
        },
        Some(_) => Next::Resume {
            id: state.id,
            at: None,
            draft: None,
            model,
            team: None,
            if_open: IfOpen::Ask,
        },
    };
    change(state, next, now)
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
        model: None,
        team: Some(TeamOverride { config, map }),
        if_open: IfOpen::Ask,
    };
    change(state, next, now)
}

/// Shows facts that the state already holds.
fn tell(state: &mut State, command: &Slash) {
    let (title, lines) = match command {
        Slash::Members => ("Members", plain(members(state))),
        Slash::Queue => ("Queue", plain(queue(state))),
        Slash::Task => ("Task", plain(task(state))),
        _ => ("This session", info(state)),
    };
    open(state, Layer::Sheet(Box::new(Sheet::new(title, lines))));
}

fn members(state: &State) -> Vec<String> {
    if state.info.members.is_empty() {
        return vec![state.info.introduction.clone()];
    }
    let everybody = state.info.members.iter();
    everybody
        .map(|member| {
            let kind = match member.is_human {
                true => "person",
                false => "agent",
            };
            format!("{}  [NEXT: {}]  {kind}", member.display_name, member.name)
        })
        .collect()
}

fn queue(state: &State) -> Vec<String> {
    match state.queue.seen(usize::MAX).0 {
        names if names.is_empty() => vec!["the queue is empty".to_owned()],
        names => names,
    }
}

fn task(state: &State) -> Vec<String> {
    let task = state.meta.as_ref().and_then(|meta| meta.task.clone());
    let none = "the team has no task: [TEAM_TASK: text] gives it one";
    let task = task.unwrap_or_else(|| none.to_owned());
    task.lines().map(str::to_owned).collect()
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
    rows.push(("messages", meta.messages.to_string()));
    rows.push(("figures", show::statistics(meta)));
    if let Some(parent) = &meta.parent {
        rows.push(("continues", parent.id.to_string()));
    }
    lines.extend(facts(&rows));
    lines
}
