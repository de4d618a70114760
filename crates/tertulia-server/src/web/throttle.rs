//! Slows down wrong logins: each recent failure from a network makes the next answer to one wait longer.
//! Right logins never wait: a code or token is checked first, and only a wrong one is delayed.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// A network that limits count for: an IPv4 address, or the 64 bits of an IPv6 address that belong to
/// one customer, who can choose the rest freely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network(IpAddr);

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Network {
        Network(match address.to_canonical() {
            IpAddr::V6(v6) => {
                let prefix = u128::from(v6) >> 64 << 64;
                IpAddr::V6(Ipv6Addr::from(prefix))
            }
            v4 @ IpAddr::V4(_) => v4,
        })
    }
}

/// How long answers to wrong logins wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// Delay of the second failure; it doubles with each further one.
    pub first: Duration,
    /// Longest delay.
    pub longest: Duration,
    /// Time after the last failure of a network until its failures are forgotten.
    pub memory: Duration,
    /// Number of networks whose failures are remembered.
    pub networks: usize,
}

impl Default for Delays {
    fn default() -> Delays {
        Delays {
            first: Duration::from_millis(50),
            longest: Duration::from_secs(3),
            memory: Duration::from_secs(60),
            networks: 1024,
        }
    }
}

/// Recent failures of a network.
#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Duration,
}

/// State of the throttle. Times are durations since any fixed moment.
#[derive(Debug, Default)]
pub struct Throttle {
    delays: Delays,
    failures: HashMap<Network, Failures>,
}

impl Throttle {
    /// Creates a throttle.
    pub fn new(delays: Delays) -> Throttle {
        Throttle {
            delays,
            failures: HashMap::new(),
        }
    }

    /// Counts a wrong login. Returns how long its answer waits.
    pub fn fail(&mut self, network: Network, now: Duration) -> Duration {
        let Delays {
            first,
            longest,
            memory,
            networks,
        } = self.delays;
        let before = match self.failures.get(&network) {
            Some(failures) if now.saturating_sub(failures.last) < memory => failures.count,
            Some(_) => 0,
            None => {
                self.make_room(networks, memory, now);
                0
            }
        };
        let count = before.saturating_add(1);
        let failures = Failures { count, last: now };
        self.failures.insert(network, failures);
        match before {
            0 => Duration::ZERO,
            before => (first * 2u32.pow((before - 1).min(16))).min(longest),
        }
    }

    /// Forgets old failures, and the oldest if there are still too many.
    fn make_room(&mut self, networks: usize, memory: Duration, now: Duration) {
        if self.failures.len() < networks {
            return;
        }
        self.failures
            .retain(|_, failures| now.saturating_sub(failures.last) < memory);
        if self.failures.len() < networks {
            return;
        }
        let oldest = self.failures.iter().min_by_key(|(_, one)| one.last);
        if let Some(oldest) = oldest.map(|(network, _)| *network) {
            self.failures.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &str) -> Network {
        address.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn wrong_logins_wait_longer_and_longer_and_are_forgotten() {
        let mut throttle = Throttle::default();
        let near = network("127.0.0.1");
        let mut fail = |network, now| throttle.fail(network, now);
        let waits: Vec<_> = (0..40).map(|_| fail(near, Duration::ZERO)).collect();
        assert_eq!(waits[..3], [0, 50, 100].map(Duration::from_millis));
        assert!(waits.is_sorted() && waits.last() == Some(&Delays::default().longest));
        // Another address has not failed yet.
        assert_eq!(fail(network("127.0.0.2"), Duration::ZERO), Duration::ZERO);
        let almost = Delays::default().memory - Duration::from_millis(1);
        assert_eq!(fail(near, almost), Delays::default().longest);
        assert_eq!(
            fail(near, almost + Delays::default().memory),
            Duration::ZERO
        );
    }

    #[test]
    fn an_attacker_with_many_addresses_fills_no_memory() {
        let delays = Delays {
            networks: 8,
            ..Delays::default()
        };
        let mut throttle = Throttle::new(delays);
        for number in 0..1000u32 {
            let address = IpAddr::from(std::net::Ipv4Addr::from(number));
            throttle.fail(address.into(), Duration::from_millis(number.into()));
        }
        assert_eq!(throttle.failures.len(), 8);
        let last = IpAddr::from(std::net::Ipv4Addr::from(999));
        assert!(throttle.failures.contains_key(&last.into()));
    }

    #[test]
    fn a_network_is_what_one_customer_has() {
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
        assert_ne!(network("10.0.0.2"), network("10.0.0.1"));
    }
}
