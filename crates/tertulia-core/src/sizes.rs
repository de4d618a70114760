//! How many bytes the sessions of a store take. A fork shares the beginning of another log, so that
//! each byte belongs to one session alone, or to several that share it. Bytes are those at rest.

use std::collections::HashMap;

use serde::Serialize;

use crate::id::SessionId;

/// Size of one log: that of a session, or the prefix that forks share with a purged one.
///
/// Positions count the bytes of a session from its first entry on, whichever log they are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSize {
    /// Number of the log in its store.
    pub no: i64,
    /// Session of the log; `None` for the prefix of a purged one.
    pub session: Option<SizedSession>,
    /// Number of the log that this one continues.
    pub base: Option<i64>,
    /// Position of its first own byte.
    pub start: u64,
    /// Position after its last byte.
    pub end: u64,
    /// Bytes that its own part takes at rest: fewer than `end - start` if it is compressed.
    pub stored: u64,
}

impl LogSize {
    /// Returns true if the log is compressed.
    pub fn is_compressed(&self) -> bool {
        self.stored < self.end.saturating_sub(self.start)
    }

    /// Returns the bytes at rest before a position, as if all parts were compressed equally well.
    fn stored_before(&self, position: u64) -> u64 {
        let own = u128::from(self.end.saturating_sub(self.start).max(1));
        let before = u128::from(position.clamp(self.start, self.end.max(self.start)) - self.start);
        let stored = before * u128::from(self.stored) / own;
        u64::try_from(stored).unwrap_or(u64::MAX)
    }
}

/// The session of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizedSession {
    /// Id of the session.
    pub id: SessionId,
    /// Title of the session.
    pub title: Option<String>,
    /// Session that it was forked from.
    pub parent: Option<SessionId>,
    /// True if the session is in the trash.
    pub trashed: bool,
}

/// Sizes of all sessions of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of all logs, each counted once.
    pub total: TotalSize,
    /// The sessions, largest first; those in the trash are only in the total.
    pub sessions: Vec<SessionSize>,
}

/// Bytes of all logs of a store. Each byte is counted in one of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TotalSize {
    /// Bytes that belong to one session alone.
    pub own: u64,
    /// Bytes that several sessions share.
    pub shared: u64,
    /// Bytes that belong only to sessions in the trash.
    pub trash: u64,
}

/// Size of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionSize {
    /// Id of the session.
    pub id: SessionId,
    /// Title of the session.
    pub title: Option<String>,
    /// Bytes that belong to this session alone: a purge frees them.
    pub own: u64,
    /// Bytes that it shares with other sessions, be it as a fork or by its forks.
    pub shared: u64,
    /// Number of its forks, those in the trash included.
    pub forks: u64,
}

/// Sessions that read a part of a log.
#[derive(Clone, Copy, Default)]
struct Readers {
    count: usize,
    /// Index of the last one that was added: the only one if `count` is 1.
    last: usize,
    /// True if one of them is not in the trash.
    live: bool,
}

impl Readers {
    fn plus(self, other: Readers) -> Readers {
        Readers {
            count: self.count + other.count,
            last: if other.count > 0 {
                other.last
            } else {
                self.last
            },
            live: self.live || other.live,
        }
    }
}

impl Sizes {
    /// Attributes the bytes of logs to the sessions that read them.
    pub fn of(logs: &[LogSize]) -> Sizes {
        let by_no: HashMap<i64, usize> = logs.iter().map(|log| log.no).zip(0..).collect();
        let base_of = |log: &LogSize| log.base.and_then(|no| by_no.get(&no).copied());
        let mut forks: Vec<Vec<usize>> = vec![Vec::new(); logs.len()];
        for (at, log) in logs.iter().enumerate() {
            if let Some(base) = base_of(log) {
                forks[base].push(at);
            }
        }
        let order = forks_first(logs, &forks, base_of);
        let logs = &at_rest(logs, &order, base_of);
        let mut sizes = Sizes::default();
        let mut own = vec![0; logs.len()];
        let mut readers = vec![Readers::default(); logs.len()];
        // Forks before their bases. Logs that continue each other in a circle, as only damage can
        // make them, come last and count as if they had no forks.
        for at in order {
            let log = &logs[at];
            let mut here = Readers {
                count: usize::from(log.session.is_some()),
                last: at,
                live: log.session.as_ref().is_some_and(|it| !it.trashed),
            };
            let mut branches = forks[at].clone();
            branches.sort_by_key(|fork| logs[*fork].start);
            let mut upto = log.end.max(log.start);
            while let Some(fork) = branches.pop() {
                let branch = logs[fork].start.clamp(log.start, upto);
                sizes.attribute(upto - branch, here, &mut own);
                upto = branch;
                here = here.plus(readers[fork]);
            }
            sizes.attribute(upto - log.start, here, &mut own);
            readers[at] = here;
        }
        sizes.sessions = sessions(logs, &own);
        sizes
    }

    /// Counts bytes that these sessions read.
    fn attribute(&mut self, bytes: u64, readers: Readers, own: &mut [u64]) {
        if readers.count == 1 {
            own[readers.last] += bytes;
        }
        match readers {
            Readers {
                live: true,
                count: 1,
                ..
            } => self.total.own += bytes,
            Readers { live: true, .. } => self.total.shared += bytes,
            // No session reads what is left of an interrupted purge: it goes with the trash.
            Readers { live: false, .. } => self.total.trash += bytes,
        }
    }
}

/// Orders logs so that each comes after all that continue it.
fn forks_first(
    logs: &[LogSize],
    forks: &[Vec<usize>],
    base_of: impl Fn(&LogSize) -> Option<usize>,
) -> Vec<usize> {
    let mut waiting: Vec<usize> = forks.iter().map(Vec::len).collect();
    let mut order: Vec<usize> = (0..logs.len()).filter(|at| waiting[*at] == 0).collect();
    let mut next = 0;
    while let Some(at) = order.get(next).copied() {
        next += 1;
        if let Some(base) = base_of(&logs[at]) {
            waiting[base] -= 1;
            if waiting[base] == 0 {
                order.push(base);
            }
        }
    }
    order.extend((0..logs.len()).filter(|at| waiting[*at] > 0));
    order
}

/// Returns the logs with positions that count bytes at rest.
fn at_rest(
    logs: &[LogSize],
    order: &[usize],
    base_of: impl Fn(&LogSize) -> Option<usize>,
) -> Vec<LogSize> {
    let mut at_rest = logs.to_vec();
    for at in order.iter().rev() {
        let log = &logs[*at];
        let start = match base_of(log) {
            Some(base) => at_rest[base].start + logs[base].stored_before(log.start),
            None => log.start,
        };
        at_rest[*at].start = start;
        at_rest[*at].end = start + log.stored;
    }
    at_rest
}

fn sessions(logs: &[LogSize], own: &[u64]) -> Vec<SessionSize> {
    let mut forks: HashMap<SessionId, u64> = HashMap::new();
    let forked = logs.iter().filter(|log| log.base.is_some());
    for parent in forked.filter_map(|log| log.session.as_ref()?.parent) {
        *forks.entry(parent).or_default() += 1;
    }
    let mut sessions: Vec<SessionSize> = logs
        .iter()
        .zip(own)
        .filter_map(|(log, own)| {
            let session = log.session.as_ref().filter(|session| !session.trashed)?;
            Some(SessionSize {
                id: session.id,
                title: session.title.clone(),
                own: *own,
                shared: log.end.saturating_sub(*own),
                forks: forks.get(&session.id).copied().unwrap_or(0),
            })
        })
        .collect();
    sessions.sort_by(|a, b| {
        let size = |it: &SessionSize| (it.own + it.shared, it.own, it.id);
        size(b).cmp(&size(a))
    });
    sessions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log: its number, whether a live session (`l`), one in the trash (`t`) or none (`p`, purged)
    /// has it, its base, and its positions.
    type Told = (u128, char, Option<u128>, u64, u64);

    fn logs(told: &[Told]) -> Vec<LogSize> {
        let id = |no: u128| SessionId::new(uuid::Uuid::from_u128(no));
        let log = |&(no, state, base, start, end): &Told| LogSize {
            no: i64::try_from(no).unwrap(),
            session: (state != 'p').then(|| SizedSession {
                id: id(no),
                title: None,
                parent: base.map(id),
                trashed: state == 't',
            }),
            base: base.map(|no| i64::try_from(no).unwrap()),
            start,
            end,
            stored: end - start,
        };
        told.iter().map(log).collect()
    }

    /// Checks the total (own, shared, trash) and each session (number, own, shared, forks).
    fn check(told: &[Told], total: [u64; 3], sessions: &[(u128, u64, u64, u64)]) {
        let sizes = Sizes::of(&logs(told));
        let found = sizes.total;
        assert_eq!([found.own, found.shared, found.trash], total, "{told:?}");
        let found: Vec<_> = sizes
            .sessions
            .iter()
            .map(|it| (it.id.uuid().as_u128(), it.own, it.shared, it.forks))
            .collect();
        assert_eq!(found, sessions, "{told:?}");
    }

    #[test]
    fn sessions_without_forks_have_their_bytes_alone() {
        check(&[], [0; 3], &[]);
        check(
            &[
                (1, 'l', None, 0, 10),
                (2, 'l', None, 0, 30),
                (3, 't', None, 0, 5),
            ],
            [40, 0, 5],
            &[(2, 30, 0, 0), (1, 10, 0, 0)],
        );
    }

    #[test]
    fn forks_share_a_prefix_once() {
        // Two forks of 1, and a fork of the first of them.
        check(
            &[
                (1, 'l', None, 0, 100),
                (2, 'l', Some(1), 40, 60),
                (3, 'l', Some(1), 70, 75),
                (4, 'l', Some(2), 50, 51),
            ],
            [30 + 10 + 5 + 1, 70 + 10, 0],
            &[(1, 30, 70, 2), (3, 5, 70, 0), (2, 10, 50, 1), (4, 1, 50, 0)],
        );
    }

    #[test]
    fn a_fork_that_reads_a_purged_prefix_alone_owns_it() {
        check(
            &[(1, 'p', None, 0, 40), (2, 'l', Some(1), 40, 60)],
            [60, 0, 0],
            &[(2, 60, 0, 0)],
        );
        // Through two purged logs: 3 reads 0..40 of 1 and 40..50 of 2; 4 reads 0..20 of 1.
        check(
            &[
                (1, 'p', None, 0, 40),
                (2, 'p', Some(1), 40, 50),
                (3, 'l', Some(2), 50, 60),
                (4, 'l', Some(1), 20, 25),
            ],
            [40 + 5, 20, 0],
            &[(3, 40, 20, 0), (4, 5, 20, 0)],
        );
    }

    #[test]
    fn bytes_of_the_trash_alone_are_in_the_trash() {
        check(
            &[
                (1, 't', None, 0, 100),
                (2, 't', Some(1), 50, 60),
                (3, 'l', Some(1), 20, 30),
            ],
            [10, 20, 80 + 10],
            &[(3, 10, 20, 0)],
        );
    }

    #[test]
    fn damage_never_makes_more_bytes_than_there_are() {
        // A circle, a base that is not there, and a fork from beyond its base's end.
        check(
            &[(1, 'l', Some(2), 10, 30), (2, 'l', Some(1), 10, 20)],
            [30, 0, 0],
            &[(1, 20, 10, 1), (2, 10, 10, 1)],
        );
        check(&[(1, 'l', Some(9), 10, 30)], [20, 0, 0], &[(1, 20, 10, 0)]);
        check(
            &[(1, 'l', None, 0, 30), (2, 'l', Some(1), 50, 60)],
            [10, 30, 0],
            &[(2, 10, 30, 0), (1, 0, 30, 1)],
        );
    }

    #[test]
    fn compressed_logs_take_what_they_take_at_rest() {
        // A compressed base of 100 bytes in 20, and a fork of it at 50.
        let mut logs = logs(&[(1, 'l', None, 0, 100), (2, 'l', Some(1), 50, 60)]);
        assert!(!logs[0].is_compressed());
        logs[0].stored = 20;
        assert!(logs[0].is_compressed());
        let sizes = Sizes::of(&logs);
        assert_eq!((sizes.total.own, sizes.total.shared), (10 + 10, 10));
        let found: Vec<_> = sizes
            .sessions
            .iter()
            .map(|it| (it.own, it.shared))
            .collect();
        assert_eq!(found, [(10, 10), (10, 10)]);
    }
}
