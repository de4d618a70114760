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
use crate::outbox::{self, Outbox};
use crate::protocol::{Answer, Detail, ErrorBody, ErrorKind, ServerInfo, TalkInfo};
use crate::room::{ClientId, Order, Room, Talk, Voice};
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
    pub talks: usize,
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
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            clients: 256,
            talks: 64,
            outbox: outbox::OutboxLimits::default(),
            idle: Duration::from_secs(10),
            patience: Duration::from_secs(600),
            leave: Duration::from_secs(8),
            begun: 100_000_000,
            grace: Duration::from_secs(2),
        }
    }
}

/// State of the server, shared by all connections and conversations.
pub struct Hub {
    host: Arc<dyn Host>,
    limits: Limits,
    since: Timestamp,
    /// Locked while a room is created, started, moved or removed, and never across an await.
    rooms: Mutex<HashMap<SessionId, Arc<Room>>>,
    clients: Mutex<HashMap<ClientId, Arc<ClientHandle>>>,
    numbers: AtomicU64,
    malformed: AtomicU64,
    begun: AtomicUsize,
    /// Final messages of conversations that could not be saved.
    unsaved: Mutex<Vec<(SessionId, Vec<UserMessage>)>>,
    /// Participants that clients chose for sessions.
    specs: Mutex<Specs>,
    ending: CancellationToken,
    talks: TaskTracker,
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
    /// Rooms with orders or subscriptions of this client, to clean up when it disconnects.
    rooms: Mutex<Vec<Arc<Room>>>,
}

impl ClientHandle {
    /// Returns the current session.
    pub fn current(&self) -> Option<Which> {
        *locked(&self.current)
    }

    fn been_in(&self, room: &Arc<Room>) {
        let mut rooms = locked(&self.rooms);
        rooms.retain(|known| !Arc::ptr_eq(known, room) && !known.is_empty());
        rooms.push(room.clone());
    }

    fn rooms(&self) -> Vec<Arc<Room>> {
        locked(&self.rooms).clone()
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
            rooms: Mutex::default(),
            clients: Mutex::default(),
            numbers: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            begun: AtomicUsize::new(0),
            unsaved: Mutex::default(),
            specs: Mutex::default(),
            ending: CancellationToken::new(),
            talks: TaskTracker::new(),
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
            rooms: Mutex::default(),
        });
        clients.insert(client, guest.clone());
        Ok(guest)
    }

    /// Notes that a client has closed its sending side, but still reads.
    pub fn input_closed(&self, guest: &ClientHandle) {
        guest.speaks.store(false, Ordering::Relaxed);
        for room in guest.rooms() {
            room.lose(guest.client, false);
        }
    }

    /// Removes a client. Its orders continue.
    pub fn dismiss(&self, guest: &ClientHandle) {
        guest.speaks.store(false, Ordering::Relaxed);
        // Queued orders of the client still hold its outbox, which nothing empties any more.
        guest.outbox.close();
        locked(&self.clients).remove(&guest.client);
        for room in guest.rooms() {
            room.lose(guest.client, true);
            self.sweep(&room);
        }
    }

    /// Returns true if an order of this client is running or queued.
    pub fn works_for(&self, guest: &ClientHandle) -> bool {
        let rooms = guest.rooms();
        rooms.iter().any(|room| room.works_for(guest.client))
    }

    fn all_rooms(&self) -> Vec<Arc<Room>> {
        locked(&self.rooms).values().cloned().collect()
    }

    /// Returns the room of a session, if the session is followed or running.
    pub fn room(&self, id: SessionId) -> Option<Arc<Room>> {
        locked(&self.rooms).get(&id).cloned()
    }

    /// Gives an order to the conversation of a session; opens it if necessary.
    pub fn order(
        self: &Arc<Self>,
        guest: &ClientHandle,
        which: Which,
        participants: &ParticipantSpec,
        order: Order,
    ) -> Result<(), ErrorBody> {
        let mut rooms = locked(&self.rooms);
        // Checked under the lock: `end` stops what it finds in the rooms after it has cancelled.
        if self.ending.is_cancelled() {
            return Err(ErrorBody::new(
                ErrorKind::Interrupted,
                "the server is ending",
            ));
        }
        let room = self.room_in(&mut rooms, which.id());
        guest.been_in(&room);
        if room.talk().is_none() {
            self.make_room(&rooms)?;
            let orders = room.begin(order.asker.clone(), self.host.now());
            room.order(order)?;
            let lead = session_task::run(self.clone(), room, which, participants.clone(), orders);
            self.talks.spawn_on(lead, &self.workshop);
            return Ok(());
        }
        room.order(order)
    }

    /// Makes sure that another conversation can be opened, by closing an idle one if necessary:
    /// first one that no client needs, else the one that is idle longest. Its content is on disk,
    /// and it is opened again at the next order.
    fn make_room(&self, rooms: &HashMap<SessionId, Arc<Room>>) -> Result<(), ErrorBody> {
        let open: Vec<&Arc<Room>> = rooms.values().filter(|room| room.is_open()).collect();
        // Conversations that are closing may be as many again, but not more.
        let leaving = self.talks.len().saturating_sub(open.len());
        if open.len() < self.limits.talks && leaving <= self.limits.talks {
            return Ok(());
        }
        let idle = open
            .iter()
            .filter(|room| room.is_idle() && !room.is_watched())
            .min_by_key(|room| (self.wants(room), room.since()));
        match idle {
            Some(room) if leaving <= self.limits.talks => {
                room.stop();
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
            approve: None,
        })
    }

    /// Chooses the spec of a session.
    pub fn set_spec(&self, id: SessionId, spec: SessionSpec) {
        locked(&self.specs).set(id, spec);
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

    fn room_in(&self, rooms: &mut HashMap<SessionId, Arc<Room>>, id: SessionId) -> Arc<Room> {
        let new = || Arc::new(Room::new(id, self.host.now()));
        rooms.entry(id).or_insert_with(new).clone()
    }

    /// Subscribes a client to a session.
    pub fn follow(
        &self,
        guest: &ClientHandle,
        id: SessionId,
        voice: Voice,
        detail: Detail,
        since: Option<u64>,
    ) {
        let mut rooms = locked(&self.rooms);
        let room = self.room_in(&mut rooms, id);
        guest.been_in(&room);
        room.follow(voice, detail, since);
    }

    /// Ends a subscription. Returns true if there was one.
    pub fn unfollow(&self, id: SessionId, client: ClientId) -> bool {
        let Some(room) = self.room(id) else {
            return false;
        };
        let followed = room.unfollow(client);
        self.sweep(&room);
        followed
    }

    /// Returns the running session whose id begins or ends with `part`, if it is unique; it need
    /// not be in the store.
    pub fn running_as(&self, part: &str) -> Option<SessionId> {
        let rooms = locked(&self.rooms);
        let fits = |id: &&SessionId| id.is_named_by(part);
        let mut found = rooms.keys().filter(fits);
        let first = found
            .next()
            .copied()
            .filter(|_| part.len() >= SHORTEST_PART)?;
        found.next().is_none().then_some(first)
    }

    /// Returns the rooms that wait for approval of this tool call.
    pub fn asking_about(&self, tool_id: &str) -> Vec<Arc<Room>> {
        let mut rooms = self.all_rooms();
        rooms.retain(|room| room.asks_about(tool_id));
        rooms
    }

    /// Returns true if a conversation must stay open: it is a client's current session or followed
    /// with full detail.
    pub fn wants(&self, room: &Room) -> bool {
        let id = room.id();
        let clients = locked(&self.clients);
        let talks =
            |guest: &Arc<ClientHandle>| guest.current().is_some_and(|which| which.id() == id);
        room.is_watched() || clients.values().any(talks)
    }

    /// Moves a room and its clients to another session, in which the conversation continues.
    pub fn moved(&self, room: &Arc<Room>, to: SessionId) {
        let from = {
            let mut rooms = locked(&self.rooms);
            let from = room.id();
            if from == to {
                return;
            }
            rooms.remove(&from);
            room.move_to(to);
            locked(&self.specs).move_to(from, to);
            rooms.insert(to, room.clone());
            from
        };
        for guest in locked(&self.clients).values() {
            if guest.current().is_some_and(|which| which.id() == from) {
                guest.set_current(Some(Which::Known(to)));
            }
        }
    }

    /// Removes a room without conversation and followers.
    pub fn sweep(&self, room: &Arc<Room>) {
        let mut rooms = locked(&self.rooms);
        if room.is_empty() {
            rooms.retain(|_, known| !Arc::ptr_eq(known, room));
        }
    }

    /// Stops the conversation of a session; its `gone` token is cancelled at the end.
    pub fn stop(&self, id: SessionId) -> Option<Talk> {
        self.room(id)?.stop()
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
    pub fn running(&self) -> Vec<TalkInfo> {
        let rooms = self.all_rooms();
        let mut talks: Vec<TalkInfo> = rooms.iter().filter_map(|room| room.info()).collect();
        talks.sort_by(|a, b| a.session_id.cmp(&b.session_id));
        talks
    }

    /// Returns true if no client is connected and no order is running or queued.
    pub fn is_idle(&self) -> bool {
        let nobody = locked(&self.clients).is_empty();
        nobody && !self.all_rooms().iter().any(|room| room.is_busy())
    }

    /// Shuts down: stops running turns and keeps their partial answers, ends the agents, and says
    /// goodbye to the clients.
    pub async fn end(&self, reason: &str) {
        self.ending.cancel();
        let talks: Vec<Talk> = self
            .all_rooms()
            .iter()
            .filter_map(|room| room.stop())
            .collect();
        self.talks.close();
        let left = tokio::time::timeout(self.limits.leave, self.talks.wait()).await;
        if left.is_err() {
            talks.iter().for_each(|talk| talk.insist.cancel());
            // Conversations that still do not end are killed with the process.
            let _ = tokio::time::timeout(self.limits.grace, self.talks.wait()).await;
        }
        let clients: Vec<Arc<ClientHandle>> = locked(&self.clients).values().cloned().collect();
        for guest in clients {
            let reason = reason.to_owned();
            guest.outbox.post(None, Answer::Goodbye { reason });
            guest.outbox.close();
        }
    }
}
