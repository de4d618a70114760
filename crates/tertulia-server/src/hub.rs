//! Which talks run, and who is connected.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tertulia_core::id::{SHORTEST_PART, SessionId};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::actor;
use crate::happening::{Farewell, Told};
use crate::host::{Choice, Host, Which};
use crate::outbox::{self, Outbox};
use crate::protocol::{Answer, Detail, ErrorKind, ServerInfo, TalkInfo, Trouble};
use crate::room::{ClientId, Order, Room, Talk, Voice};

/// How much, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// So many clients at once.
    pub clients: usize,
    /// So many talks at once.
    pub talks: usize,
    /// So much may wait to be written to a client.
    pub outbox: outbox::Room,
    /// A talk that nobody wants is closed after so long.
    pub idle: Duration,
    /// A question that nobody answers is a no after so long.
    pub patience: Duration,
    /// What is running may take so long to end. An agent has five seconds before it is killed.
    pub leave: Duration,
    /// So many bytes of lines that have no end yet are kept, of all clients together.
    pub begun: usize,
    /// A client that is hung up on has so long to read why.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            clients: 256,
            talks: 64,
            outbox: outbox::Room::default(),
            idle: Duration::from_secs(10),
            patience: Duration::from_secs(600),
            leave: Duration::from_secs(8),
            begun: 100_000_000,
            grace: Duration::from_secs(2),
        }
    }
}

/// The hub.
pub struct Hub {
    host: Arc<dyn Host>,
    limits: Limits,
    since: Timestamp,
    /// Held while a room is made, begun, moved or removed, and never while waiting.
    rooms: Mutex<HashMap<SessionId, Arc<Room>>>,
    clients: Mutex<HashMap<ClientId, Arc<Guest>>>,
    numbers: AtomicU64,
    malformed: AtomicU64,
    begun: AtomicUsize,
    /// What was told at the ends of talks that could not be saved.
    unsaved: Mutex<Vec<(SessionId, Vec<Told>)>>,
    ending: CancellationToken,
    talks: TaskTracker,
    /// Where talks run: not where clients are served, or these would wait for those.
    workshop: Handle,
}

/// A client as the hub knows it.
#[derive(Debug)]
pub struct Guest {
    /// Its number.
    pub client: ClientId,
    /// What waits to be written to it.
    pub outbox: Outbox,
    /// Whether it may still say something.
    pub speaks: Arc<AtomicBool>,
    current: Mutex<Option<Which>>,
    /// Where it asked or followed: when it leaves, nobody else's room is looked into.
    rooms: Mutex<Vec<Arc<Room>>>,
}

impl Guest {
    /// The session that it talks in.
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

    /// It talks in this one from now on.
    pub fn set_current(&self, which: Option<Which>) {
        *locked(&self.current) = which;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// One in which nothing runs. Talks will run in the workshop.
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
            ending: CancellationToken::new(),
            talks: TaskTracker::new(),
            workshop,
        })
    }

    /// The program around it.
    pub fn host(&self) -> &dyn Host {
        self.host.as_ref()
    }

    /// How much, and how long.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Cancelled when the server is to end.
    pub fn ending(&self) -> &CancellationToken {
        &self.ending
    }

    /// A client connects, if there is room for it.
    pub fn admit(&self) -> Result<Arc<Guest>, Trouble> {
        let mut clients = locked(&self.clients);
        if clients.len() >= self.limits.clients {
            let words = format!("{} clients are connected already", clients.len());
            return Err(Trouble::new(ErrorKind::Busy, words));
        }
        let client = self.numbers.fetch_add(1, Ordering::Relaxed);
        let guest = Arc::new(Guest {
            client,
            outbox: Outbox::new(self.limits.outbox),
            speaks: Arc::new(AtomicBool::new(true)),
            current: Mutex::default(),
            rooms: Mutex::default(),
        });
        clients.insert(client, guest.clone());
        Ok(guest)
    }

    /// A client says nothing more, but still reads.
    pub fn hush(&self, guest: &Guest) {
        guest.speaks.store(false, Ordering::Relaxed);
        for room in guest.rooms() {
            room.lose(guest.client, false);
        }
    }

    /// A client is gone. What it asked for goes on.
    pub fn dismiss(&self, guest: &Guest) {
        guest.speaks.store(false, Ordering::Relaxed);
        locked(&self.clients).remove(&guest.client);
        for room in guest.rooms() {
            room.lose(guest.client, true);
            self.sweep(&room);
        }
    }

    /// Whether something of this client is being done or waits to be.
    pub fn works_for(&self, guest: &Guest) -> bool {
        let rooms = guest.rooms();
        rooms.iter().any(|room| room.works_for(guest.client))
    }

    fn all_rooms(&self) -> Vec<Arc<Room>> {
        locked(&self.rooms).values().cloned().collect()
    }

    /// The room of a session, if it is followed or talked in.
    pub fn room(&self, id: SessionId) -> Option<Arc<Room>> {
        locked(&self.rooms).get(&id).cloned()
    }

    /// Gives an order to the talk of a session, which is opened if it is not.
    pub fn order(
        self: &Arc<Self>,
        guest: &Guest,
        which: Which,
        choice: &Choice,
        order: Order,
    ) -> Result<(), Trouble> {
        if self.ending.is_cancelled() {
            return Err(Trouble::new(ErrorKind::Interrupted, "the server is ending"));
        }
        let mut rooms = locked(&self.rooms);
        let room = self.room_in(&mut rooms, which.id());
        guest.been_in(&room);
        if room.talk().is_none() {
            self.make_room(&rooms)?;
            let orders = room.begin(order.asker.clone(), self.host.now());
            room.order(order)?;
            let lead = actor::lead(self.clone(), room, which, choice.clone(), orders);
            self.talks.spawn_on(lead, &self.workshop);
            return Ok(());
        }
        room.order(order)
    }

    /// Sees to it that another talk can be opened. Those that nobody needs now make room: first those that
    /// nobody would miss, then those that wait for words longest. What they keep is on disk, and they are
    /// opened again when somebody speaks in them.
    fn make_room(&self, rooms: &HashMap<SessionId, Arc<Room>>) -> Result<(), Trouble> {
        let open: Vec<&Arc<Room>> = rooms.values().filter(|room| room.is_open()).collect();
        // Those that are leaving may take as much room again, but not more.
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
                Err(Trouble::new(ErrorKind::Busy, words)
                    .hint("wait until one is answered, or stop one with `stop`"))
            }
        }
    }

    /// A talk has ended that could not be saved.
    pub fn left_unsaved(&self, id: SessionId, farewell: &Farewell) {
        locked(&self.unsaved).push((id, farewell.told.clone()));
    }

    /// Whether a talk has ended in this session that could not be saved.
    pub fn is_left_unsaved(&self, id: SessionId) -> bool {
        locked(&self.unsaved).iter().any(|(left, _)| *left == id)
    }

    /// What was told at the ends of talks that could not be saved.
    pub fn unsaved(&self) -> Vec<Told> {
        let unsaved = locked(&self.unsaved);
        unsaved.iter().flat_map(|(_, told)| told.clone()).collect()
    }

    fn room_in(&self, rooms: &mut HashMap<SessionId, Arc<Room>>, id: SessionId) -> Arc<Room> {
        let new = || Arc::new(Room::new(id, self.host.now()));
        rooms.entry(id).or_insert_with(new).clone()
    }

    /// Follows a session.
    pub fn follow(
        &self,
        guest: &Guest,
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

    /// Follows a session no more. Whether it was followed.
    pub fn unfollow(&self, id: SessionId, client: ClientId) -> bool {
        let Some(room) = self.room(id) else {
            return false;
        };
        let followed = room.unfollow(client);
        self.sweep(&room);
        followed
    }

    /// The session that runs whose id begins or ends so, if there is only one: it need not be in the store.
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

    /// The rooms in which this call is asked about.
    pub fn asking_about(&self, tool_id: &str) -> Vec<Arc<Room>> {
        let mut rooms = self.all_rooms();
        rooms.retain(|room| room.asks_about(tool_id));
        rooms
    }

    /// Whether a talk is to stay open: somebody talks in it or follows all of it.
    pub fn wants(&self, room: &Room) -> bool {
        let id = room.id();
        let clients = locked(&self.clients);
        let talks = |guest: &Arc<Guest>| guest.current().is_some_and(|which| which.id() == id);
        room.is_watched() || clients.values().any(talks)
    }

    /// The talk of a room goes on in another session, and so do those who talk in it.
    pub fn moved(&self, room: &Arc<Room>, to: SessionId) {
        let from = {
            let mut rooms = locked(&self.rooms);
            let from = room.id();
            if from == to {
                return;
            }
            rooms.remove(&from);
            room.move_to(to);
            rooms.insert(to, room.clone());
            from
        };
        for guest in locked(&self.clients).values() {
            if guest.current().is_some_and(|which| which.id() == from) {
                guest.set_current(Some(Which::Known(to)));
            }
        }
    }

    /// Removes a room in which nothing is left.
    pub fn sweep(&self, room: &Arc<Room>) {
        let mut rooms = locked(&self.rooms);
        if room.is_empty() {
            rooms.retain(|_, known| !Arc::ptr_eq(known, room));
        }
    }

    /// Ends the talk of a session: it is gone when the token is cancelled.
    pub fn stop(&self, id: SessionId) -> Option<Talk> {
        self.room(id)?.stop()
    }

    /// A client keeps so many bytes of a line that has no end yet, after so many before. Whether there is room.
    pub fn keep(&self, before: usize, now: usize) -> bool {
        self.begun.fetch_add(now, Ordering::Relaxed);
        let all = self.begun.fetch_sub(before, Ordering::Relaxed) - before;
        now <= before || all <= self.limits.begun
    }

    /// A line was no request.
    pub fn count_malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    /// The server as `ps` shows it.
    pub fn info(&self) -> ServerInfo {
        ServerInfo {
            version: self.host.version(),
            pid: std::process::id(),
            since: self.since.to_string(),
            clients: locked(&self.clients).len(),
            malformed: self.malformed.load(Ordering::Relaxed),
        }
    }

    /// The talks that run, by session.
    pub fn running(&self) -> Vec<TalkInfo> {
        let rooms = self.all_rooms();
        let mut talks: Vec<TalkInfo> = rooms.iter().filter_map(|room| room.info()).collect();
        talks.sort_by(|a, b| a.session_id.cmp(&b.session_id));
        talks
    }

    /// Whether nobody is connected and nothing is being answered.
    pub fn is_idle(&self) -> bool {
        let nobody = locked(&self.clients).is_empty();
        nobody && !self.all_rooms().iter().any(|room| room.is_busy())
    }

    /// Ends everything: who is answering is stopped and what they said is kept, the agents leave, the clients
    /// hear goodbye.
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
            // What does not end now ends with the process.
            let _ = tokio::time::timeout(self.limits.grace, self.talks.wait()).await;
        }
        let clients: Vec<Arc<Guest>> = locked(&self.clients).values().cloned().collect();
        for guest in clients {
            let reason = reason.to_owned();
            guest.outbox.post(None, Answer::Goodbye { reason });
            guest.outbox.close();
        }
    }
}
