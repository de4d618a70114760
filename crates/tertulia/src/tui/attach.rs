//! Finds a session on a server and follows it.

use std::path::PathBuf;

use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_server::call::Call;
use tertulia_server::protocol::{Answer, Ask, Detail, TalkInfo, TalkState};

use super::effect::Next;
use crate::commands::ps::unexpected;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::teams;

/// A server, and the store that it uses.
#[derive(Clone)]
pub struct Server {
    /// Path of its socket.
    pub path: PathBuf,
    /// Workspace with the server's store.
    pub workspace: Workspace,
}

/// A session that is being followed.
pub struct Attachment {
    /// Connection to the server.
    pub call: Call,
    /// Workspace with the server's store.
    pub workspace: Workspace,
    /// Id of the session.
    pub id: SessionId,
    /// The session as the store has it.
    pub row: Option<Row>,
}

impl Server {
    /// Follows a session.
    pub fn follow(&self, id: SessionId) -> CommandResult<Attachment> {
        let mut call = Call::connect(&self.path)?;
        subscribe(&mut call, id)?;
        self.attached(call, id)
    }

    /// Follows the most recently active session, or starts one.
    pub fn follow_newest(&self) -> CommandResult<Attachment> {
        let mut call = Call::connect(&self.path)?;
        let talks = match call.ask(Ask::Ps)? {
            Answer::PsResult { talks, .. } => talks,
            other => return Err(unexpected(other)),
        };
        match newest(&talks) {
            Some(talk) => {
                let id = parsed(&talk.session_id)?;
                subscribe(&mut call, id)?;
                self.attached(call, id)
            }
            None => self.begin(None),
        }
    }

    /// Starts a session, with `agent` if one is named, and follows it.
    pub fn begin(&self, agent: Option<&str>) -> CommandResult<Attachment> {
        self.create(&Next::New {
            agent: agent.map(str::to_owned),
            model: None,
        })
    }

    /// Starts a session with the participants of `next`, and follows it.
    fn create(&self, next: &Next) -> CommandResult<Attachment> {
        let (mut kind, mut agent, mut model, mut team) = (None, None, None, None);
        match next {
            Next::New { agent: a, model: m } => (agent, model) = (a.clone(), m.clone()),
            Next::Team { config, .. } => {
                // The server may run in another folder.
                let (file, _) = teams::read(&self.workspace.settings.cwd, config)?;
                let file = std::path::absolute(&file).unwrap_or(file);
                team = Some(file.display().to_string());
            }
            Next::Pair => kind = Some(Kind::Pair),
            Next::Resume { id, .. } => return self.follow(*id),
        }
        let mut call = Call::connect(&self.path)?;
        let ask = Ask::SessionCreate {
            title: None,
            kind,
            agent,
            model,
            team,
            instructor: None,
            worker: None,
            max_rounds: None,
            approve: None,
        };
        let id = match call.ask(ask)? {
            Answer::SessionCreated { session_id } => parsed(&session_id)?,
            other => return Err(unexpected(other)),
        };
        subscribe(&mut call, id)?;
        self.attached(call, id)
    }

    /// Switches the model of a session, and follows it.
    fn switch_model(&self, id: SessionId, model: &str) -> CommandResult<Attachment> {
        let mut call = Call::connect(&self.path)?;
        let ask = Ask::SessionConfigure {
            session_id: Some(id.to_string()),
            agent: None,
            model: Some(model.to_owned()),
            approve: None,
            revoke: Vec::new(),
        };
        match call.ask(ask)? {
            Answer::SessionConfigured { .. } => {}
            other => return Err(unexpected(other)),
        }
        subscribe(&mut call, id)?;
        self.attached(call, id)
    }

    /// Prepares the next session on this server.
    pub fn prepare(&self, next: &Next) -> CommandResult<Attachment> {
        match next {
            Next::Resume {
                team: Some(team), ..
            } if !team.map.is_empty() => Err(CommandError::new(
                ErrorKind::Usage,
                "members cannot be mapped while attached",
            )
            .hint(
                "detach with /exit (the session keeps running) and resume it with `tertulia team CONFIG --resume REF --map OLD=NEW`",
            )),
            Next::Resume {
                id,
                model: Some(model),
                ..
            } => self.switch_model(*id, model),
            next => self.create(next),
        }
    }

    /// Reads the session from the store. Called after subscribing, so that no entry is missed in
    /// between.
    fn attached(&self, call: Call, id: SessionId) -> CommandResult<Attachment> {
        let row = self.workspace.wait(self.workspace.sessions.row(id)).ok();
        Ok(Attachment {
            call,
            workspace: self.workspace.clone(),
            id,
            row,
        })
    }
}

fn subscribe(call: &mut Call, id: SessionId) -> CommandResult<()> {
    let ask = Ask::Subscribe {
        session_id: id.to_string(),
        detail: Detail::Full,
        since: None,
    };
    match call.ask(ask)? {
        Answer::Subscribed { .. } => Ok(()),
        other => Err(unexpected(other)),
    }
}

/// Returns the session that changed its state last, among those that are answering if there are
/// any.
fn newest(talks: &[TalkInfo]) -> Option<&TalkInfo> {
    let answering = |talk: &&TalkInfo| talk.state == TalkState::Answering;
    let candidates: Vec<&TalkInfo> = match talks.iter().any(|talk| answering(&talk)) {
        true => talks.iter().filter(answering).collect(),
        false => talks.iter().collect(),
    };
    candidates.into_iter().max_by(|a, b| a.since.cmp(&b.since))
}

fn parsed(id: &str) -> CommandResult<SessionId> {
    Ok(id.parse()?)
}
