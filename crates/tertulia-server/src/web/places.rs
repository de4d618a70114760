//! Places for connections. There are some for clients that have not authenticated, and others for those
//! that have, so that the former never keep the latter out. If all are taken, a newcomer gets the place
//! of another connection: one of the network that has most of them, so that no network keeps others out,
//! and there one that is of least use, so that clients that only wait keep no other client out.

use std::collections::BTreeMap;

use super::throttle::Network;

/// Number of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceLimits {
    /// Places for connections that have not authenticated.
    pub unknown: usize,
    /// Places for connections that have.
    pub known: usize,
}

impl Default for PlaceLimits {
    fn default() -> PlaceLimits {
        PlaceLimits {
            unknown: 256,
            known: 256,
        }
    }
}

/// What a connection does, in the order in which connections have to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It waits for the delayed answer to a wrong login.
    Delayed,
    /// All its requests are answered.
    Idle,
    /// It is new, or has sent a request.
    Active,
    /// It has authenticated, and stays.
    Known,
}

#[derive(Debug)]
struct Connection<T> {
    network: Network,
    state: State,
    handle: T,
}

/// The open connections, by number; a greater one is newer. `T` is how a connection is told to go.
#[derive(Debug)]
pub struct Places<T> {
    limits: PlaceLimits,
    last: u64,
    open: BTreeMap<u64, Connection<T>>,
}

impl<T> Places<T> {
    /// Creates free places.
    pub fn new(limits: PlaceLimits) -> Places<T> {
        Places {
            limits,
            last: 0,
            open: BTreeMap::new(),
        }
    }

    /// Takes in a connection. Returns its number, and the connection that has to go for it.
    pub fn enter(&mut self, network: Network, handle: T) -> (u64, Option<T>) {
        self.last += 1;
        let connection = Connection {
            network,
            state: State::Active,
            handle,
        };
        self.open.insert(self.last, connection);
        (self.last, self.make_room())
    }

    /// Says what a connection does now. One that has authenticated stays known, if there is room.
    pub fn set(&mut self, number: u64, state: State) {
        let is_full = state == State::Known && self.count(State::Known) >= self.limits.known;
        if let Some(connection) = self.open.get_mut(&number)
            && connection.state != State::Known
            && !is_full
        {
            connection.state = state;
        }
    }

    /// Frees the place of a connection.
    pub fn leave(&mut self, number: u64) {
        self.open.remove(&number);
    }

    fn count(&self, state: State) -> usize {
        let of_state = |connection: &&Connection<T>| connection.state == state;
        self.open.values().filter(of_state).count()
    }

    fn make_room(&mut self) -> Option<T> {
        if self.open.len() - self.count(State::Known) <= self.limits.unknown {
            return None;
        }
        let unknown = || {
            let all = self.open.iter();
            all.filter(|(_, connection)| connection.state != State::Known)
        };
        let mut shares = BTreeMap::<Network, usize>::new();
        for (_, connection) in unknown() {
            *shares.entry(connection.network).or_default() += 1;
        }
        let share = |network: &Network| shares.get(network).copied().unwrap_or_default();
        let others = unknown().filter(|(number, _)| **number != self.last);
        let (number, _) = others.min_by_key(|(number, connection)| {
            let share = std::cmp::Reverse(share(&connection.network));
            (share, connection.state, **number)
        })?;
        let number = *number;
        self.open.remove(&number).map(|gone| gone.handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(last: u8) -> Network {
        std::net::IpAddr::from([127, 0, 0, last]).into()
    }

    fn places(unknown: usize, known: usize) -> Places<u64> {
        Places::new(PlaceLimits { unknown, known })
    }

    /// Lets a connection in whose handle is its number.
    fn enter(places: &mut Places<u64>, network: Network) -> Option<u64> {
        let next = places.last + 1;
        let (number, gone) = places.enter(network, next);
        assert_eq!(number, next);
        gone
    }

    #[test]
    fn a_newcomer_always_gets_in() {
        let mut places = places(4, 4);
        for _ in 0..4 {
            assert_eq!(enter(&mut places, network(1)), None);
        }
        places.set(2, State::Idle);
        places.set(3, State::Delayed);
        // First one that is delayed, then one that is idle, then the oldest.
        for gone in [3, 2, 1, 4, 5] {
            assert_eq!(enter(&mut places, network(1)), Some(gone));
        }
        places.leave(9);
        assert_eq!(enter(&mut places, network(1)), None);
    }

    #[test]
    fn a_network_keeps_no_other_out() {
        let mut places = places(16, 4);
        assert_eq!(enter(&mut places, network(2)), None);
        places.set(1, State::Delayed);
        for _ in 0..1000 {
            let gone = enter(&mut places, network(1));
            assert_ne!(gone, Some(1), "one of many goes, not the only one");
        }
        // Others get as many places as the first one has.
        for newcomer in 0..7 {
            let gone = enter(&mut places, network(2)).unwrap();
            assert_eq!(places.open.len(), 16);
            assert!(gone > 900, "{newcomer}: {gone}");
        }
        assert_eq!(enter(&mut places, network(2)), Some(1));
    }

    #[test]
    fn clients_that_have_authenticated_stay() {
        let mut places = places(4, 2);
        for number in 1..=3 {
            assert_eq!(enter(&mut places, network(1)), None);
            places.set(number, State::Known);
            places.set(number, State::Idle);
        }
        // The third is still one of those that may have to go.
        assert_eq!(places.count(State::Known), 2);
        let mut gone = Vec::new();
        for _ in 0..100 {
            gone.extend(enter(&mut places, network(1)));
        }
        assert_eq!(gone.len(), 97);
        assert!(!gone.contains(&1) && !gone.contains(&2) && gone.contains(&3));
        assert_eq!(places.open.len(), 6);
        places.leave(1);
        assert_eq!(
            enter(&mut places, network(1)).map(|_| places.open.len()),
            Some(5)
        );
    }

    #[test]
    fn three_hundred_clients_that_wait_keep_nobody_out() {
        let mut places = places(256, 256);
        for number in 1..=300 {
            enter(&mut places, network(1));
            places.set(number, State::Delayed);
        }
        // Each newcomer stays while it is active, from the same address and from another one.
        for address in [1, 2] {
            enter(&mut places, network(address));
            let newcomer = places.last;
            for _ in 0..255 {
                assert_ne!(enter(&mut places, network(1)), Some(newcomer));
                let number = places.last;
                places.set(number, State::Delayed);
            }
        }
    }
}
