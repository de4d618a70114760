//! Prepares the next session of the TUI, in the same way as the command line does.

use tertulia_core::entry::Kind;
use tertulia_engine::setup::Participants;
use tertulia_engine::spec::{AgentSpec, PairSpec, ParticipantSpec, TeamSpec};

use super::attach::{Attachment, Server};
use super::driver::Driver;
use super::effect::Next;
use super::item::Tone;
use super::local::LocalSession;
use super::mailbox::Mailbox;
use super::remote::Remote;
use super::scene::Scene;
use super::state::State;
use super::store_service::StoreService;
use crate::args::{ApproveMode, GlobalArgs};
use crate::commands::team;
use crate::error::CommandResult;
use crate::participants::Existing;
use crate::talk::opening::{Opening, Prepared};
use crate::talk::{self, TalkArgs};
use crate::ui::{Told, Ui};

/// Settings that apply to every session of this TUI.
pub struct Course {
    /// The server that runs the sessions, if attached to one.
    server: Option<Server>,
    global: GlobalArgs,
    approve: Option<ApproveMode>,
    ephemeral: bool,
}

impl Course {
    /// Takes the settings from the flags of the first session.
    pub fn new(args: &TalkArgs, global: &GlobalArgs) -> Course {
        Course {
            server: None,
            global: global.clone(),
            approve: args.approve,
            ephemeral: args.ephemeral,
        }
    }

    /// Uses a server.
    pub fn on(server: Server, global: &GlobalArgs) -> Course {
        Course {
            server: Some(server),
            ..Course::new(&TalkArgs::default(), global)
        }
    }

    /// Prepares a session.
    pub fn prepare(&self, next: &Next, ui: &mut Ui) -> CommandResult<Source> {
        Ok(match &self.server {
            Some(server) => Source::There(Box::new(server.prepare(next)?)),
            None => Source::Here(Box::new(self.prepare_here(next, ui)?)),
        })
    }

    fn prepare_here(&self, next: &Next, ui: &mut Ui) -> CommandResult<Prepared> {
        let resume = match next {
            Next::Resume { id, .. } => Some(*id),
            Next::New { .. } | Next::Team { .. } | Next::Pair => None,
        };
        let args = TalkArgs {
            approve: self.approve,
            ephemeral: self.ephemeral,
            resume: resume.map(|id| Some(id.to_string())),
            ..TalkArgs::default()
        };
        let workspace = talk::workspace(&args, &self.global, ui)?;
        let row = match resume {
            Some(id) => Some(workspace.wait(workspace.sessions.row(id))?),
            None => None,
        };
        let earlier = match next {
            Next::Team { config, fresh } => team::named(config, &args, *fresh, &workspace, ui)?,
            _ => None,
        };
        let existing = Existing { row, mirror: None };
        let mut opening = Opening::prepare(participants(next), existing, args, workspace, ui)?;
        opening.setup.options.model_switched = matches!(next, Next::Resume { model: Some(_), .. });
        opening.earlier = earlier;
        Ok(Prepared {
            opening,
            words: None,
        })
    }
}

/// Returns the participants of the next session.
fn participants(next: &Next) -> ParticipantSpec {
    let chat = |agent: &Option<String>, model: &Option<String>| {
        ParticipantSpec::Chat(AgentSpec {
            agent: agent.clone(),
            model: model.clone(),
        })
    };
    match next {
        Next::Resume {
            team: Some(team), ..
        } => ParticipantSpec::Team(TeamSpec {
            config: Some(team.config.clone()),
            map: team.map.clone(),
            ..TeamSpec::default()
        }),
        Next::Resume { model: None, .. } => ParticipantSpec::Recorded,
        Next::Resume { model, .. } => chat(&None, model),
        Next::New { agent, model } => chat(agent, model),
        Next::Team { config, .. } => ParticipantSpec::Team(TeamSpec {
            config: Some(config.clone()),
            ..TeamSpec::default()
        }),
        Next::Pair => ParticipantSpec::Pair(PairSpec::default()),
    }
}

/// Returns how to get back to a session that was left.
pub fn back(state: &State) -> Next {
    match &state.meta {
        Some(_) => Next::resume_with(state.id, state.scene.team_file.clone()),
        None => state.scene.anew(),
    }
}

/// Combines the given draft with the text that was left in the input of the last session.
pub fn draft(given: Option<String>, written: String) -> Option<String> {
    let pieces = given.into_iter().chain([written]);
    let pieces: Vec<String> = pieces.filter(|piece| !piece.trim().is_empty()).collect();
    (!pieces.is_empty()).then(|| pieces.join("\n"))
}

/// A session that is about to be shown.
pub enum Source {
    /// Runs in this process.
    Here(Box<Prepared>),
    /// Runs on a server.
    There(Box<Attachment>),
}

impl Source {
    /// Returns what is known of the session before it is opened.
    pub fn scene(&self) -> Scene {
        match self {
            Source::Here(prepared) => Scene::of(&prepared.opening),
            Source::There(attachment) => Scene::attached(attachment),
        }
    }

    /// Returns its first message.
    pub fn words(&self) -> Option<String> {
        match self {
            Source::Here(prepared) => prepared.words.clone(),
            Source::There(_) => None,
        }
    }

    /// Returns true if the user picks a session first.
    pub fn picks(&self) -> bool {
        match self {
            Source::Here(prepared) => prepared.opening.args.opens_picker(),
            Source::There(_) => false,
        }
    }

    /// Creates the store service.
    pub fn store_service(&self) -> StoreService {
        match self {
            Source::Here(prepared) => store_service(&prepared.opening),
            Source::There(attachment) => {
                let meta = attachment.row.as_ref().map(|row| &row.meta);
                let chat = meta.filter(|meta| meta.kind == Kind::Chat);
                let agent = chat.and_then(|meta| meta.last_agent().map(str::to_owned));
                StoreService::new(attachment.workspace.clone(), agent, false)
            }
        }
    }

    /// Starts the session, or follows it on its server.
    pub fn drive(self) -> CommandResult<Driver> {
        let news = Mailbox::default();
        Ok(match self {
            Source::Here(prepared) => {
                Driver::Here(LocalSession::start(prepared.opening.setup, news)?)
            }
            Source::There(attachment) => {
                let remote = Remote::follow(attachment.call, attachment.id, news)?;
                Driver::There(remote)
            }
        })
    }
}

/// Creates the store service for a local session.
fn store_service(opening: &Opening) -> StoreService {
    let agent = match &opening.setup.participants {
        Participants::Chat(agent) => Some(agent.name().to_owned()),
        Participants::Team { .. } | Participants::Pair { .. } => None,
    };
    StoreService::new(opening.workspace.clone(), agent, opening.args.ephemeral)
}

/// Converts a message of the command line for the transcript.
pub fn toned(told: Told) -> (Tone, String) {
    match told {
        Told::Note(text) | Told::Data(text) => (Tone::Note, text),
        Told::Warning(text) => (Tone::Warning, text),
        Told::Error { message, hints, .. } => {
            let mut text = message;
            for hint in hints {
                text.push_str("; ");
                text.push_str(&hint);
            }
            (Tone::Error, text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_goes_along_to_the_next_talk() {
        let check = |given: Option<&str>, written: &str, expected: Option<&str>| {
            let draft = draft(given.map(str::to_owned), written.to_owned());
            assert_eq!(draft.as_deref(), expected);
        };
        check(None, "", None);
        check(None, "half a sen", Some("half a sen"));
        check(Some("said before"), " ", Some("said before"));
        check(Some("said before"), "half", Some("said before\nhalf"));
    }
}
