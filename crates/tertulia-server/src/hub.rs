//! [`Hub`]: the running conversations and the connected clients.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tertulia_core::id::{SHORTEST_PART, SessionId};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::host::{Host, Which};
use crate::hosted::{ClientId, HostedSession, Opening, ReplyTo, SessionRequest, TaskHandle, gone};
use crate::outbox::{self, Outbox};
use crate::protocol::{Answer, Detail, ErrorBody, ErrorKind, LiveSessionInfo, ServerInfo};
use crate::read_along;
use crate::session_task;
use crate::spec::Specs;
use tertulia_engine::event::{SessionEnd, UserMessage};
use tertulia_engine::spec::{ParticipantSpec, SessionSpec};

/// Server limits and timeouts.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of clients.
    pub clients: usize,
    /// Maximum number of open conversations.
    pub sessions: usize,
    /// Limits of a client's outbox.
    pub outbox: outbox::OutboxLimits,
    /// Time after which an unneeded conversation is closed.
    pub idle: Duration,
    /// Time after which an unanswered approval request is denied.
    pub patience: Duration,
    /// Time for a conversation to end. An agent has five seconds before it is killed.
    pub leave: Duration,
    /// Maximum bytes of incomplete lines, for all clients together.
    pub begun: usize,
    /// Time for a disconnected client to read the reason.
    pub grace: Duration,
    /// Whether an approval request waits for a client that is not connected now, such as a phone that
    /// sleeps. If not, it is denied at once.
    pub awaits_clients: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            clients: 256,
            sessions: 64,
            outbox: outbox::OutboxLimits::default(),
            idle: Duration::from_secs(10),
            patience: Duration::from_secs(600),
            leave: Duration::from_secs(8),
            begun: 100_000_000,
            grace: Duration::from_secs(2),
            awaits_clients: false,
        }
    }
}

/// State of the server, shared by all connections and conversations.
pub struct Hub {
    host: Arc<dyn Host>,
    limits: Limits,
    since: Timestamp,
    /// Locked while a hosted session is created, started, moved or removed, and never across an await.
    sessions: Mutex<HashMap<SessionId, Arc<HostedSession>>>,
    clients: Mutex<HashMap<ClientId, Arc<ClientHandle>>>,
    numbers: AtomicU64,
    malformed: AtomicU64,
    begun: AtomicUsize,
    /// Final messages of conversations that could not be saved.
    unsaved: Mutex<Vec<(SessionId, Vec<UserMessage>)>>,
    /// Participants that clients chose for sessions.
    specs: Mutex<Specs>,
    ending: CancellationToken,
    tasks: TaskTracker,
    /// Runtime of the conversations, separate from that of the clients, so that neither delays the
    /// other.
    workshop: Handle,
}

/// A connected client.
#[derive(Debug)]
pub struct ClientHandle {
    /// Client number.
    pub client: ClientId,
    /// Replies to be written.
    pub outbox: Outbox,
    /// False after the client has closed its sending side.
    pub speaks: Arc<AtomicBool>,
    current: Mutex<Option<Which>>,
    /// Hosted sessions with requests or subscriptions of this client, to clean up when it disconnects.
    sessions: Mutex<Vec<Arc<HostedSession>>>,
}

impl ClientHandle {
    /// Returns the current session.
    pub fn current(&self) -> Option<Which> {
        *locked(&self.current)
    }

    fn been_in(&self, hosted: &Arc<HostedSession>) {
        let mut sessions = locked(&self.sessions);
        sessions.retain(|known| !Arc::ptr_eq(known, hosted) && !known.is_empty());
        sessions.push(hosted.clone());
    }

    fn sessions(&self) -> Vec<Arc<HostedSession>> {
        locked(&self.sessions).clone()
    }

    /// Sets the current session.
    pub fn set_current(&self, which: Option<Which>) {
        *locked(&self.current) = which;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// Creates a hub without conversations; they will run on the runtime `workshop`.
    pub fn new(host: Arc<dyn Host>, limits: Limits, workshop: Handle) -> Arc<Hub> {
        Arc::new(Hub {
            since: host.now(),
            host,
            limits,
            sessions: Mutex::default(),
            clients: Mutex::default(),
            numbers: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            begun: AtomicUsize::new(0),
            unsaved: Mutex::default(),
            specs: Mutex::default(),
            ending: CancellationToken::new(),
            tasks: TaskTracker::new(),
            workshop,
        })
    }

    /// Returns the program around the server.
    pub fn host(&self) -> &dyn Host {
        self.host.as_ref()
    }

    /// Returns the limits and timeouts.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the token that is cancelled when the server shuts down.
    pub fn ending(&self) -> &CancellationToken {
        &self.ending
    }

    /// Admits a client, unless there are too many.
    pub fn admit(&self) -> Result<Arc<ClientHandle>, ErrorBody> {
        let mut clients = locked(&self.clients);
        if clients.len() >= self.limits.clients {
            let words = format!("{} clients are connected already", clients.len());
            return Err(ErrorBody::new(ErrorKind::Busy, words));
        }
        let client = self.numbers.fetch_add(1, Ordering::Relaxed);
        let guest = Arc::new(ClientHandle {
            client,
            outbox: Outbox::new(self.limits.outbox),
            speaks: Arc::new(AtomicBool::new(true)),
            current: Mutex::default(),
            sessions: Mutex::default(),
        });
        clients.insert(client, guest.clone());
        Ok(guest)
    }

    /// Notes that a client has closed its sending side, but still reads.
    pub fn input_closed(&self, guest: &ClientHandle) {
        guest.speaks.store(false, Ordering::Relaxed);
        for hosted in guest.sessions() {
            hosted.lose(guest.client, false);
        }
    }

    /// Removes a client. Its requests continue.
    pub fn dismiss(&self, guest: &ClientHandle) {
        guest.speaks.store(false, Ordering::Relaxed);
        // Queued requests of the client still hold its outbox, which nothing empties any more.
        guest.outbox.close();
        locked(&self.clients).remove(&guest.client);
        for hosted in guest.sessions() {
            hosted.lose(guest.client, true);
            self.sweep(&hosted);
        }
    }

    /// Returns true if a request of this client is running or queued.
    pub fn works_for(&self, guest: &ClientHandle) -> bool {
        let sessions = guest.sessions();
        sessions.iter().any(|hosted| hosted.works_for(guest.client))
    }

    fn all_hosted(&self) -> Vec<Arc<HostedSession>> {
        locked(&self.sessions).values().cloned().collect()
    }

    /// Returns the hosted session of a session, if the session is followed or running.
    pub fn hosted(&self, id: SessionId) -> Option<Arc<HostedSession>> {
        locked(&self.sessions).get(&id).cloned()
    }

    /// Gives a request to the conversation of a session; opens it if necessary.
    pub fn submit(
        self: &Arc<Self>,
        guest: &ClientHandle,
        which: Which,
        participants: &ParticipantSpec,
        request: SessionRequest,
    ) -> Result<(), ErrorBody> {
        let opener = request.asker.clone();
        let (hosted, _) = self.open(guest, which, participants, opener)?;
        hosted.submit(request)
    }

    /// Returns the hosted session of a session, and what tells when it is open. Opens its conversation if
    /// necessary: `opener` is told what happens meanwhile.
    pub fn open(
        self: &Arc<Self>,
        guest: &ClientHandle,
        which: Which,
        participants: &ParticipantSpec,
        opener: Option<ReplyTo>,
    ) -> Result<(Arc<HostedSession>, Opening), ErrorBody> {
        let mut sessions = locked(&self.sessions);
        // Checked under the lock: `end` stops what it finds in the hosted sessions after it has cancelled.
        if self.ending.is_cancelled() {
            return Err(ErrorBody::new(
                ErrorKind::Interrupted,
                "the server is ending",
            ));
        }
        let hosted = self.hosted_in(&mut sessions, which.id());
        guest.been_in(&hosted);
        if let Some(opening) = hosted.opening() {
            return Ok((hosted, opening));
        }
        self.make_room(&sessions)?;
        let requests = hosted.begin(opener, self.host.now());
        let opening = hosted.opening().ok_or_else(gone)?;
        let session = hosted.clone();
        let lead = session_task::run(self.clone(), session, which, participants.clone(), requests);
        self.tasks.spawn_on(lead, &self.workshop);
        Ok((hosted, opening))
    }

    /// Makes sure that another conversation can be opened, by closing an idle one if necessary:
    /// first one that no client needs, else the one that is idle longest. Its content is on disk,
    /// and it is opened again at the next request.
    fn make_room(
        &self,
        sessions: &HashMap<SessionId, Arc<HostedSession>>,
    ) -> Result<(), ErrorBody> {
        let open: Vec<&Arc<HostedSession>> = sessions
            .values()
            .filter(|hosted| hosted.is_open())
            .collect();
        // Conversations that are closing may be as many again, but not more.
        let leaving = self.tasks.len().saturating_sub(open.len());
        if open.len() < self.limits.sessions && leaving <= self.limits.sessions {
            return Ok(());
        }
        let idle = open
            .iter()
            .filter(|hosted| hosted.is_idle() && !hosted.is_watched())
            .min_by_key(|hosted| (self.wants(hosted), hosted.since()));
        match idle {
            Some(hosted) if leaving <= self.limits.sessions => {
                hosted.stop();
                Ok(())
            }
            _ => {
                let words = format!("{} sessions are busy already", open.len());
                Err(ErrorBody::new(ErrorKind::Busy, words)
                    .hint("wait until one is answered, or stop one with `stop`"))
            }
        }
    }

    /// Returns the spec of a session: as chosen for it, else with these participants.
    pub fn spec(&self, id: SessionId, participants: &ParticipantSpec) -> SessionSpec {
        let chosen = locked(&self.specs).get(id).cloned();
        chosen.unwrap_or_else(|| SessionSpec {
            participants: participants.clone(),
            ..SessionSpec::default()
        })
    }

    /// Chooses the spec of a session.
    pub fn set_spec(&self, id: SessionId, spec: SessionSpec) {
        locked(&self.specs).set(id, spec);
    }

    /// Forgets the tool policy that a session was created with: it has been opened under it.
    pub fn forget_policy(&self, id: SessionId) {
        locked(&self.specs).forget_policy(id);
    }

    /// Records a conversation that ended without being saved.
    pub fn left_unsaved(&self, id: SessionId, farewell: &SessionEnd) {
        locked(&self.unsaved).push((id, farewell.told.clone()));
    }

    /// Returns true if a conversation of this session ended without being saved.
    pub fn is_left_unsaved(&self, id: SessionId) -> bool {
        locked(&self.unsaved).iter().any(|(left, _)| *left == id)
    }

    /// Returns the final messages of conversations that could not be saved.
    pub fn unsaved(&self) -> Vec<UserMessage> {
        let unsaved = locked(&self.unsaved);
        unsaved.iter().flat_map(|(_, told)| told.clone()).collect()
    }

    fn hosted_in(
        &self,
        sessions: &mut HashMap<SessionId, Arc<HostedSession>>,
        id: SessionId,
    ) -> Arc<HostedSession> {
        let new = || {
            Arc::new(HostedSession::new(
                id,
                self.host.now(),
                self.limits.awaits_clients,
            ))
        };
        sessions.entry(id).or_insert_with(new).clone()
    }

    /// Reads what another program writes to a session, while a client follows it and no conversation
    /// is running here.
    pub fn read_along(self: &Arc<Self>, hosted: &Arc<HostedSession>) {
        if !self.ending.is_cancelled()
            && let Some(end) = hosted.begin_reading()
        {
            let reading = read_along::run(self.clone(), hosted.clone(), end);
            self.workshop.spawn(reading);
        }
    }

    /// Subscribes a client to a session.
    pub fn follow(
        self: &Arc<Self>,
        guest: &ClientHandle,
        id: SessionId,
        reply_to: ReplyTo,
        detail: Detail,
        since: Option<u64>,
    ) {
        let hosted = {
            let mut sessions = locked(&self.sessions);
            let hosted = self.hosted_in(&mut sessions, id);
            guest.been_in(&hosted);
            hosted.follow(reply_to, detail, since);
            hosted
        };
        self.read_along(&hosted);
    }

    /// Ends a subscription. Returns true if there was one.
    pub fn unfollow(&self, id: SessionId, client: ClientId) -> bool {
        let Some(hosted) = self.hosted(id) else {
            return false;
        };
        let followed = hosted.unfollow(client);
        self.sweep(&hosted);
        followed
    }

    /// Returns the running session whose id begins or ends with `part`, if it is unique; it need
    /// not be in the store.
    pub fn running_as(&self, part: &str) -> Option<SessionId> {
        let sessions = locked(&self.sessions);
        let fits = |id: &&SessionId| id.is_named_by(part);
        let mut found = sessions.keys().filter(fits);
        let first = found
            .next()
            .copied()
            .filter(|_| part.len() >= SHORTEST_PART)?;
        found.next().is_none().then_some(first)
    }

    /// Returns the hosted sessions that wait for approval of this tool call.
    pub fn asking_about(&self, tool_id: &str) -> Vec<Arc<HostedSession>> {
        let mut sessions = self.all_hosted();
        sessions.retain(|hosted| hosted.asks_about(tool_id));
        sessions
    }

    /// Returns true if a conversation must stay open: it is a client's current session or followed
    /// with full detail.
    pub fn wants(&self, hosted: &HostedSession) -> bool {
        let id = hosted.id();
        let clients = locked(&self.clients);
        let talks =
            |guest: &Arc<ClientHandle>| guest.current().is_some_and(|which| which.id() == id);
        hosted.is_watched() || clients.values().any(talks)
    }

    /// Moves a hosted session and its clients to another session, in which the conversation continues.
    pub fn moved(&self, hosted: &Arc<HostedSession>, to: SessionId) {
        let from = {
            let mut sessions = locked(&self.sessions);
            let from = hosted.id();
            if from == to {
                return;
            }
            sessions.remove(&from);
            hosted.move_to(to);
            locked(&self.specs).move_to(from, to);
            sessions.insert(to, hosted.clone());
            from
        };
        for guest in locked(&self.clients).values() {
            if guest.current().is_some_and(|which| which.id() == from) {
                guest.set_current(Some(Which::Known(to)));
            }
        }
    }

    /// Removes a hosted session without conversation and followers.
    pub fn sweep(&self, hosted: &Arc<HostedSession>) {
        let mut sessions = locked(&self.sessions);
        if hosted.is_empty() {
            sessions.retain(|_, known| !Arc::ptr_eq(known, hosted));
        }
    }

    /// Stops the conversation of a session; its `gone` token is cancelled at the end.
    pub fn stop(&self, id: SessionId) -> Option<TaskHandle> {
        self.hosted(id)?.stop()
    }

    /// Updates the accounted bytes of a client's incomplete line. Returns false if they grew beyond
    /// the limit.
    pub fn keep(&self, before: usize, now: usize) -> bool {
        self.begun.fetch_add(now, Ordering::Relaxed);
        let all = self.begun.fetch_sub(before, Ordering::Relaxed) - before;
        now <= before || all <= self.limits.begun
    }

    /// Counts a line that is not a request.
    pub fn count_malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the server's description for `ps`.
    pub fn info(&self) -> ServerInfo {
        ServerInfo {
            version: self.host.version(),
            pid: std::process::id(),
            since: self.since.to_string(),
            clients: locked(&self.clients).len(),
            malformed: self.malformed.load(Ordering::Relaxed),
        }
    }

    /// Returns the running conversations, by session.
    pub fn running(&self) -> Vec<LiveSessionInfo> {
        let sessions = self.all_hosted();
        let mut talks: Vec<LiveSessionInfo> =
            sessions.iter().filter_map(|hosted| hosted.info()).collect();
        talks.sort_by(|a, b| a.session_id.cmp(&b.session_id));
        talks
    }

    /// Returns true if no client is connected and no request is running or queued.
    pub fn is_idle(&self) -> bool {
        let no_client = locked(&self.clients).is_empty();
        no_client && !self.all_hosted().iter().any(|hosted| hosted.is_busy())
    }

    /// Shuts down: stops running turns and keeps their partial answers, ends the agents, and says
    /// goodbye to the clients.
    pub async fn end(&self, reason: &str) {
        self.ending.cancel();
        let tasks: Vec<TaskHandle> = self
            .all_hosted()
            .iter()
            .filter_map(|hosted| hosted.stop())
            .collect();
        self.tasks.close();
        let left = tokio::time::timeout(self.limits.leave, self.tasks.wait()).await;
        if left.is_err() {
            tasks.iter().for_each(|task| task.insist.cancel());
            // Conversations that still do not end are killed with the process.
            let _ = tokio::time::timeout(self.limits.grace, self.tasks.wait()).await;
        }
        let clients: Vec<Arc<ClientHandle>> = locked(&self.clients).values().cloned().collect();
        for guest in clients {
            let reason = reason.to_owned();
            guest.outbox.post(None, Answer::Goodbye { reason });
            guest.outbox.close();
        }
    }
}
