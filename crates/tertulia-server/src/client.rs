//! Handles the requests of one client; `sessions` are those about sessions, `browse` those of a
//! client that shows them, `messages` sends messages, each once.

mod browse;
mod messages;
mod sessions;

use std::sync::Arc;

use tertulia_agents::approval::Verdict;
use tertulia_core::id::SessionId;
use tertulia_engine::spec::{AgentSpec, ParticipantSpec};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::host::{Host, HostResult, Which};
use crate::hosted::{HostedSession, ReplyTo, SessionAction, SessionRequest};
use crate::hub::{ClientHandle, Hub};
pub use crate::protocol::Access;
use crate::protocol::{Answer, Ask, Detail, ErrorBody, ErrorKind, Id, PROTOCOL, Request};

/// Long reads of a client that are answered at the same time.
const BESIDE: usize = 4;

/// Request handler of one client.
pub struct Client {
    hub: Arc<Hub>,
    guest: Arc<ClientHandle>,
    access: Access,
    /// The participants of sessions that this client creates.
    participants: ParticipantSpec,
    /// Long reads that are answered beside later requests. They end with the client.
    beside: JoinSet<()>,
}

impl Client {
    /// Creates the handler of an admitted client.
    pub fn new(hub: Arc<Hub>, guest: Arc<ClientHandle>, access: Access) -> Client {
        Client {
            hub,
            guest,
            access,
            participants: ParticipantSpec::default(),
            beside: JoinSet::new(),
        }
    }

    /// Executes a request and sends its reply. A long read with an id is answered later, beside the
    /// requests that follow; without an id, clients know replies by their order.
    pub async fn handle(&mut self, request: Request) {
        if request.id.is_none() || !request.ask.reads_long() {
            return self.execute(request).await;
        }
        while self.beside.try_join_next().is_some() {}
        while self.beside.len() >= BESIDE {
            self.beside.join_next().await;
        }
        let mut reader = Client::new(self.hub.clone(), self.guest.clone(), self.access);
        self.beside
            .spawn(async move { reader.execute(request).await });
    }

    /// Waits for the reads that are still answered.
    pub async fn finish(&mut self) {
        while self.beside.join_next().await.is_some() {}
    }

    async fn execute(&mut self, request: Request) {
        let id = request.id.clone();
        let answered = self.answer(request).await;
        let answer = match answered {
            Ok(Some(answer)) => answer,
            Ok(None) => return,
            Err(trouble) => Answer::Error(trouble),
        };
        self.guest.outbox.post(id.as_ref(), answer);
    }

    /// Executes a request. Returns `None` if the reply is sent elsewhere or later.
    async fn answer(&mut self, request: Request) -> HostResult<Option<Answer>> {
        let Request { id, ask } = request;
        if self.access == Access::ReadOnly && ask.writes() {
            let words = "this access may only read";
            return Err(ErrorBody::new(ErrorKind::Forbidden, words)
                .hint("log in with a token that is not read-only"));
        }
        Ok(Some(match ask {
            Ask::Authenticate { .. } => return Err(authenticated()),
            Ask::Initialize { demo_mode, agent } => self.initialize(demo_mode, agent).await?,
            Ask::Query { query, client_id } => return self.query(id, query, client_id).await,
            Ask::ToolApprove {
                tool_id,
                approved,
                always,
                reason,
                session_id,
            } => {
                let verdict = match (approved, always) {
                    (false, _) => Verdict::No,
                    (true, false) => Verdict::Yes,
                    (true, true) => Verdict::Always,
                };
                let verdict = with_reason(verdict, reason)?;
                let within = self.named(session_id.as_deref()).await?;
                return self.settle(&tool_id, verdict, within).map(|()| None);
            }
            Ask::Cancel { session_id } => {
                return self.cancel(session_id.as_deref()).await.map(|()| None);
            }
            Ask::Subscribe {
                session_id,
                detail,
                since,
                open,
            } => {
                let which = self.known(&session_id).await?;
                let opens = open && detail == Detail::Full && self.access == Access::Full;
                self.subscribe(id, which, (detail, opens), since)?;
                self.show_drafts(which).await;
                return Ok(None);
            }
            Ask::Detach { session_id } => self.detach(&session_id).await?,
            ask @ (Ask::Say { .. }
            | Ask::EditQueued { .. }
            | Ask::Withdraw { .. }
            | Ask::KeepDraft { .. }) => self.about_messages(ask).await?,
            Ask::As { session_id, name } => self.give(&session_id, SessionAction::As(name)).await?,
            Ask::Compact { session_id } => self.give(&session_id, SessionAction::Compact).await?,
            Ask::Verdict {
                session_id,
                tool_id,
                verdict,
                reason,
            } => {
                let verdict = with_reason(verdict, reason)?;
                let within = self.known(&session_id).await?.id();
                self.settle(&tool_id, verdict, Some(within))?;
                accepted(within)
            }
            Ask::SessionSave => match self.save(id).await? {
                Some(success) => Answer::SessionSaved { success },
                None => return Ok(None),
            },
            Ask::Ps => Answer::PsResult {
                access: self.access,
                server: self.hub.info(),
                talks: self.hub.running(),
            },
            Ask::Stop { session_id } => self.stop(&session_id).await?,
            Ask::Shutdown => {
                self.hub.ending().cancel();
                return Ok(None);
            }
            ask => self.about_sessions(ask).await?,
        }))
    }

    fn host(&self) -> &dyn Host {
        self.hub.host()
    }

    fn reply_to(&self, id: Option<Id>) -> ReplyTo {
        ReplyTo {
            client: self.guest.client,
            id,
            outbox: self.guest.outbox.clone(),
            speaks: self.guest.speaks.clone(),
        }
    }

    async fn initialize(&mut self, demo_mode: bool, agent: Option<String>) -> HostResult<Answer> {
        let wanted = match demo_mode {
            true => Some("demo".to_owned()),
            false => agent,
        };
        let agent = self.host().agent(wanted.as_deref()).await?;
        self.participants = match wanted {
            Some(_) => ParticipantSpec::Chat(AgentSpec {
                agent: wanted,
                model: None,
            }),
            None => ParticipantSpec::Recorded,
        };
        Ok(Answer::Initialized {
            version: self.host().version(),
            protocol: PROTOCOL,
            access: self.access,
            agent,
        })
    }

    /// Answers a tool approval request, in the session `within` or in the session that asks for it.
    fn settle(&self, tool_id: &str, verdict: Verdict, within: Option<SessionId>) -> HostResult<()> {
        let mut hosted = self.hub.asking_about(tool_id);
        if let Some(within) = within {
            hosted.retain(|hosted| hosted.id() == within);
        }
        let ours = |hosted: &Arc<HostedSession>| hosted.works_for(self.guest.client);
        if hosted.iter().any(ours) {
            hosted.retain(ours);
        }
        match &hosted[..] {
            [hosted] if hosted.answer(tool_id, verdict) => Ok(()),
            [] | [_] => Err(ErrorBody::new(
                ErrorKind::NotFound,
                format!("no permission request is open for the call '{tool_id}'"),
            )),
            _ => Err(ErrorBody::new(
                ErrorKind::Ambiguous,
                format!(
                    "{} sessions have a permission request for a call '{tool_id}'",
                    hosted.len()
                ),
            )
            .hint("add the `session_id`")),
        }
    }

    async fn cancel(&self, session: Option<&str>) -> HostResult<()> {
        let id = self.named(session).await?;
        let id = id.or_else(|| self.guest.current().map(Which::id));
        let hosted = id.and_then(|id| self.hub.hosted(id));
        match hosted.is_some_and(|hosted| hosted.cancel(self.guest.client)) {
            true => Ok(()),
            false => Err(ErrorBody::new(
                ErrorKind::NotFound,
                "no turn is running in this session",
            )),
        }
    }

    /// Resolves an optional session reference.
    async fn named(&self, session: Option<&str>) -> HostResult<Option<SessionId>> {
        Ok(match session {
            Some(session) => Some(self.known(session).await?.id()),
            None => None,
        })
    }

    /// Resolves a session reference. A running session need not be in the store yet, nor one that this
    /// client is about to begin.
    async fn known(&self, name: &str) -> HostResult<Which> {
        if let Ok(id) = name.parse::<SessionId>() {
            let current = self.guest.current();
            if current == Some(Which::New(id)) || self.hub.hosted(id).is_some() {
                return Ok(Which::New(id));
            }
        }
        match self.host().find(name).await {
            Ok(row) => Ok(Which::Known(row.meta.id)),
            Err(trouble) if trouble.kind == ErrorKind::NotFound => {
                let running = self.hub.running_as(name);
                running.map(Which::New).ok_or(trouble)
            }
            Err(trouble) => Err(trouble),
        }
    }

    fn subscribe(
        &self,
        id: Option<Id>,
        which: Which,
        (detail, opens): (Detail, bool),
        since: Option<u64>,
    ) -> HostResult<()> {
        let reply_to = self.reply_to(id);
        if opens {
            let talks = self
                .hub
                .hosted(which.id())
                .is_some_and(|hosted| hosted.task().is_some());
            if !talks {
                self.hub.submit(
                    &self.guest,
                    which,
                    &self.participants,
                    self.session_request(SessionAction::Open),
                )?;
            }
        }
        self.hub
            .follow(&self.guest, which.id(), reply_to, detail, since);
        Ok(())
    }

    async fn detach(&self, session: &str) -> HostResult<Answer> {
        let id = self.known(session).await?.id();
        match self.hub.unfollow(id, self.guest.client) {
            true => Ok(Answer::Detached {
                session_id: id.to_string(),
            }),
            false => Err(ErrorBody::new(
                ErrorKind::NotFound,
                "this session is not followed",
            )),
        }
    }

    fn session_request(&self, action: SessionAction) -> SessionRequest {
        SessionRequest {
            action,
            client: self.guest.client,
            asker: None,
            cancel: CancellationToken::new(),
        }
    }

    async fn give(&self, session: &str, action: SessionAction) -> HostResult<Answer> {
        let which = self.known(session).await?;
        self.hub.submit(
            &self.guest,
            which,
            &self.participants,
            self.session_request(action),
        )?;
        Ok(accepted(which.id()))
    }

    async fn stop(&self, session: &str) -> HostResult<Answer> {
        let id = self.known(session).await?.id();
        let Some(task) = self.hub.stop(id) else {
            let words = format!("session {} is not running on this server", id.short());
            return Err(ErrorBody::new(ErrorKind::NotFound, words));
        };
        self.gone(&task.gone, &task.insist).await;
        Ok(Answer::Stopped {
            session_id: id.to_string(),
        })
    }

    /// Waits until a conversation has ended, and aborts its turn if that takes too long.
    async fn gone(&self, gone: &CancellationToken, insist: &CancellationToken) {
        let leave = self.hub.limits().leave;
        if tokio::time::timeout(leave, gone.cancelled()).await.is_err() {
            insist.cancel();
            // A conversation that still does not end is left running.
            let _ = tokio::time::timeout(self.hub.limits().grace, gone.cancelled()).await;
        }
    }
}

/// Adds the words of a client to its denial.
fn with_reason(verdict: Verdict, reason: Option<String>) -> HostResult<Verdict> {
    match (verdict.allows(), reason) {
        (_, None) => Ok(verdict),
        (false, Some(words)) => Ok(Verdict::denied(&words)),
        (true, Some(_)) => Err(ErrorBody::new(
            ErrorKind::Usage,
            "`reason` says what to do instead of a denied call, but this answer allows the call",
        )),
    }
}

fn accepted(id: SessionId) -> Answer {
    Answer::Accepted {
        session_id: id.to_string(),
        duplicate: false,
    }
}

/// The error of a client that authenticates where it need not, or twice.
fn authenticated() -> ErrorBody {
    ErrorBody::new(ErrorKind::Usage, "this client has authenticated already")
}
