//! Finds a session on a server and follows it.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use tertulia_core::entry::Kind;
use tertulia_core::id::{IdError, SessionId};
use tertulia_core::query::Row;
use tertulia_engine::error::ErrorKind;
use tertulia_server::call::{Call, unexpected};
use tertulia_server::protocol::{Answer, Ask, Detail, LivePhase, LiveSessionInfo};

use super::effect::Next;
use super::error::{TuiError, TuiResult};
use super::host::Host;

/// A server, and the store that it uses.
#[derive(Clone)]
pub struct Server {
    /// Path of its socket.
    pub path: PathBuf,
    /// Host with the server's store.
    pub host: Arc<dyn Host>,
}

/// A session that is being followed.
pub struct Attachment {
    /// Connection to the server.
    pub call: Call,
    /// The server.
    pub server: Server,
    /// Id of the session.
    pub id: SessionId,
    /// The session as the store has it.
    pub row: Option<Row>,
    /// Since when an agent has been answering, if one is.
    pub busy_since: Option<Timestamp>,
}

impl Server {
    /// Follows a session.
    pub async fn follow(&self, id: SessionId) -> TuiResult<Attachment> {
        self.attached(Call::connect(&self.path)?, id).await
    }

    /// Follows the most recently active session, or starts one.
    pub async fn follow_newest(&self) -> TuiResult<Attachment> {
        let mut call = Call::connect(&self.path)?;
        match newest(&running(&mut call)?) {
            Some(talk) => {
                let id = parsed(&talk.session_id)?;
                self.attached(call, id).await
            }
            None => self.begin(None).await,
        }
    }

    /// Starts a session, with `agent` if one is named, and follows it.
    pub async fn begin(&self, agent: Option<&str>) -> TuiResult<Attachment> {
        self.create(&Next::New {
            agent: agent.map(str::to_owned),
            model: None,
        })
        .await
    }

    /// Starts a session with the participants of `next`, and follows it.
    async fn create(&self, next: &Next) -> TuiResult<Attachment> {
        let (mut kind, mut agent, mut model, mut team) = (None, None, None, None);
        match next {
            Next::New { agent: a, model: m } => (agent, model) = (a.clone(), m.clone()),
            Next::Team { config, .. } => {
                // The server may run in another folder.
                let file = self.host.team_file(config)?;
                team = Some(file.display().to_string());
            }
            Next::Pair => kind = Some(Kind::Pair),
            Next::Resume { id, .. } => return self.follow(*id).await,
        }
        let mut call = Call::connect(&self.path)?;
        let ask = Ask::SessionCreate {
            title: None,
            kind,
            // The server's own, or that of the session.
            cwd: None,
            agent,
            model,
            team,
            instructor: None,
            worker: None,
            max_rounds: None,
            approve: None,
            // Nothing is left behind if nothing is said. Of a team or a pair the store tells who is in it.
            deferred: matches!(next, Next::New { .. }),
        };
        let id = match call.ask(ask)? {
            Answer::SessionCreated { session_id } => parsed(&session_id)?,
            other => return Err(unexpected(other).into()),
        };
        self.attached(call, id).await
    }

    /// Prepares the next session on this server.
    pub async fn prepare(&self, next: &Next) -> TuiResult<Attachment> {
        match next {
            Next::Resume {
                team: Some(team), ..
            } if !team.map.is_empty() => Err(TuiError::new(
                ErrorKind::Usage,
                "members cannot be mapped while attached",
            )
            .hint(
                "detach with /exit (the session keeps running) and resume it with `tertulia team CONFIG --resume REF --map OLD=NEW`",
            )),
            next => self.create(next).await,
        }
    }

    /// Subscribes to a session, and reads it from the store: in this order, so that no entry is
    /// missed in between.
    async fn attached(&self, mut call: Call, id: SessionId) -> TuiResult<Attachment> {
        let talks = running(&mut call)?;
        let busy = talks.iter().find(|talk| {
            let answers = matches!(talk.state, LivePhase::Answering | LivePhase::Asking);
            answers && talk.session_id == id.to_string()
        });
        let busy_since = busy.and_then(|talk| talk.since.parse().ok());
        subscribe(&mut call, id)?;
        let row = self.host.workspace().sessions.row(id).await.ok();
        Ok(Attachment {
            call,
            server: self.clone(),
            id,
            row,
            busy_since,
        })
    }
}

/// Returns the sessions that the server runs.
fn running(call: &mut Call) -> TuiResult<Vec<LiveSessionInfo>> {
    match call.ask(Ask::Ps)? {
        Answer::PsResult { talks, .. } => Ok(talks),
        other => Err(unexpected(other).into()),
    }
}

fn subscribe(call: &mut Call, id: SessionId) -> TuiResult<()> {
    let ask = Ask::Subscribe {
        session_id: id.to_string(),
        detail: Detail::Full,
        since: None,
        open: true,
    };
    match call.ask(ask)? {
        Answer::Subscribed { .. } => Ok(()),
        other => Err(unexpected(other).into()),
    }
}

/// Returns the session that changed its state last, among those that are answering if there are
/// any.
fn newest(talks: &[LiveSessionInfo]) -> Option<&LiveSessionInfo> {
    let answering = |talk: &&LiveSessionInfo| talk.state == LivePhase::Answering;
    let candidates: Vec<&LiveSessionInfo> = match talks.iter().any(|talk| answering(&talk)) {
        true => talks.iter().filter(answering).collect(),
        false => talks.iter().collect(),
    };
    candidates.into_iter().max_by(|a, b| a.since.cmp(&b.since))
}

fn parsed(id: &str) -> TuiResult<SessionId> {
    id.parse()
        .map_err(|error: IdError| TuiError::new(ErrorKind::Usage, error.to_string()))
}
