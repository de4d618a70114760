//! Finding a talk on a server, and following it.

use std::path::PathBuf;

use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_server::call::Call;
use tertulia_server::protocol::{Answer, Ask, Detail, TalkInfo, TalkState};

use super::effect::Next;
use crate::commands::ps::unexpected;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;

/// A server, and the store that it keeps its talks in.
#[derive(Clone)]
pub struct Server {
    /// Its socket.
    pub path: PathBuf,
    /// The same store that it has.
    pub workspace: Workspace,
}

/// A talk that is followed.
pub struct Attachment {
    /// The connection.
    pub call: Call,
    /// The store.
    pub workspace: Workspace,
    /// The session.
    pub id: SessionId,
    /// What the store has of it.
    pub row: Option<Row>,
}

impl Server {
    /// Follows a session.
    pub fn follow(&self, id: SessionId) -> CommandResult<Attachment> {
        let mut call = Call::connect(&self.path)?;
        subscribe(&mut call, id)?;
        self.attached(call, id)
    }

    /// Follows the talk that was spoken in last, or begins one.
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
        let mut call = Call::connect(&self.path)?;
        if let Some(agent) = agent {
            let ask = Ask::Initialize {
                demo_mode: false,
                agent: Some(agent.to_owned()),
            };
            match call.ask(ask)? {
                Answer::Initialized { .. } => {}
                other => return Err(unexpected(other)),
            }
        }
        let id = match call.ask(Ask::SessionCreate { title: None })? {
            Answer::SessionCreated { session_id } => parsed(&session_id)?,
            other => return Err(unexpected(other)),
        };
        subscribe(&mut call, id)?;
        self.attached(call, id)
    }

    /// The next talk on this server.
    pub fn prepare(&self, next: &Next) -> CommandResult<Attachment> {
        match next {
            Next::Resume {
                id, model: None, ..
            } => self.follow(*id),
            Next::New { model: None, .. } => self.begin(None),
            _ => Err(CommandError::new(
                ErrorKind::Usage,
                "the model cannot be changed while attached",
            )
            .hint(
                "detach with /exit (the session keeps running) and start it with tertulia itself",
            )),
        }
    }

    /// What the store has is read after the session is followed, so that nothing is missed in between.
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

/// The talk in which somebody is answering, or the one that was opened last.
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
