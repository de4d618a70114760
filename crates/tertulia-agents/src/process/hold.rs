//! Pauses a run's time limits while the program waits for something else.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Pauses the clock of a run: while it is held, neither silence nor total time counts.
#[derive(Clone, Debug, Default)]
pub struct Hold(watch::Sender<Held>);

/// When the clock was held.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Held {
    since: Option<Instant>,
    /// Sum of all earlier holds.
    before: Duration,
    released: Option<Instant>,
}

impl Hold {
    /// Holds or releases the clock. Repeating the same state changes nothing.
    pub fn set(&self, held: bool) {
        let now = Instant::now();
        self.0.send_if_modified(|state| match (state.since, held) {
            (None, true) => {
                state.since = Some(now);
                true
            }
            (Some(since), false) => {
                state.before += now.saturating_duration_since(since);
                (state.since, state.released) = (None, Some(now));
                true
            }
            _ => false,
        });
    }

    /// Returns the clock of a run that begins now.
    pub(super) fn clock(&self) -> RunClock {
        let (held, began) = (self.0.subscribe(), Instant::now());
        let Held { since, before, .. } = *held.borrow();
        let lasting = since.map_or(Duration::ZERO, |since| began - since);
        RunClock {
            began,
            earlier: before + lasting,
            held,
        }
    }
}

/// Computes the deadlines of a run.
pub(super) struct RunClock {
    began: Instant,
    /// Time for which the clock was held before this run.
    earlier: Duration,
    held: watch::Receiver<Held>,
}

impl RunClock {
    /// Returns when a run with this limit is overdue; `None` while the clock is held.
    pub(super) fn total(&self, limit: Option<Duration>) -> Option<(Duration, Instant)> {
        let (limit, held) = (limit?, *self.held.borrow());
        let waited = held.before.saturating_sub(self.earlier);
        let end = self.began.checked_add(limit)?.checked_add(waited)?;
        held.since.is_none().then_some((limit, end))
    }

    /// Returns when a program whose last output came at `heard` has been silent for `limit`.
    pub(super) fn silent(
        &self,
        limit: Option<Duration>,
        heard: Instant,
    ) -> Option<(Duration, Instant)> {
        let (limit, held) = (limit?, *self.held.borrow());
        let heard = held.released.map_or(heard, |released| released.max(heard));
        let end = heard.checked_add(limit)?;
        held.since.is_none().then_some((limit, end))
    }

    /// Waits until the clock is held or released.
    pub(super) async fn changed(&mut self) {
        if self.held.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn what_is_held_does_not_count() {
        let hold = Hold::default();
        let clock = hold.clock();
        let began = Instant::now();
        let limit = Some(10 * SECOND);
        assert_eq!(clock.total(limit), Some((10 * SECOND, began + 10 * SECOND)));
        hold.set(true);
        assert_eq!(clock.total(limit), None);
        assert_eq!(clock.silent(limit, began), None);
        tokio::time::advance(30 * SECOND).await;
        // Holding a held clock does not restart the hold.
        hold.set(true);
        tokio::time::advance(30 * SECOND).await;
        hold.set(false);
        hold.set(false);
        let released = began + 60 * SECOND;
        let (_, end) = clock.total(limit).unwrap();
        assert_eq!(end, released + 10 * SECOND);
        let (_, end) = clock.silent(limit, began).unwrap();
        assert_eq!(end, released + 10 * SECOND);
        let later = released + SECOND;
        let (_, end) = clock.silent(limit, later).unwrap();
        assert_eq!(end, later + 10 * SECOND);
        assert_eq!(clock.total(None), None);
        // The hold does not lengthen the next run.
        let (_, end) = hold.clock().total(limit).unwrap();
        assert_eq!(end, Instant::now() + 10 * SECOND);
        // Of a hold that had begun before the run, only the part within the run counts.
        hold.set(true);
        tokio::time::advance(30 * SECOND).await;
        let clock = hold.clock();
        tokio::time::advance(SECOND).await;
        hold.set(false);
        let (_, end) = clock.total(limit).unwrap();
        assert_eq!(end, Instant::now() + 10 * SECOND);
    }
}
