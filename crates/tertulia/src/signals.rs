//! Signals that end a talk: what was said so far is saved first.

use tertulia_store::{GivenUp, Patience};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::{CommandError, CommandResult, ErrorKind};

/// What ends a talk from outside, by number.
const INTERRUPT: u8 = 2;
pub const TERMINATE: u8 = 15;
pub const HANG_UP: u8 = 1;

/// Listens for them.
pub struct Signals {
    /// Cancelled when the first one arrives.
    pub cancel: CancellationToken,
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    caught: Option<u8>,
    insists: bool,
    /// Whose writers wait no more for other programs once a signal has arrived.
    hurries: Option<Patience>,
    given_up: Option<GivenUp>,
}

impl Signals {
    pub fn listen() -> CommandResult<Signals> {
        let listen = |kind| {
            signal(kind).map_err(|error| {
                CommandError::new(ErrorKind::Failed, "signals cannot be listened for")
                    .because(error)
            })
        };
        Ok(Signals {
            cancel: CancellationToken::new(),
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
            caught: None,
            insists: false,
            hurries: None,
            given_up: None,
        })
    }

    /// The same; the first signal also ends what waits for another program to write.
    #[must_use]
    pub fn hurrying(mut self, patience: &Patience) -> Signals {
        self.hurries = Some(patience.clone());
        self
    }

    /// Waits for the next one and stops what is running.
    pub async fn next(&mut self) {
        let number = tokio::select! {
            _ = self.interrupt.recv() => INTERRUPT,
            _ = self.terminate.recv() => TERMINATE,
            _ = self.hang_up.recv() => HANG_UP,
        };
        self.insists = self.caught.is_some();
        self.caught = Some(number);
        if let Some(patience) = &self.hurries {
            self.given_up = Some(patience.give_up(None));
        }
        self.cancel.cancel();
    }

    /// Waits for a turn to end. Whoever asks twice does not want to wait for anything: then the turn is
    /// dropped, which ends the agent, and the program is to be left; what was on screen is in the draft.
    pub async fn during<T>(&mut self, turn: impl Future<Output = T>) -> CommandResult<T> {
        tokio::pin!(turn);
        loop {
            tokio::select! {
                end = &mut turn => return Ok(end),
                () = self.next() => {}
            }
            if let Some(signal) = self.caught.filter(|_| self.insists) {
                return Err(CommandError::new(
                    ErrorKind::Interrupted(signal),
                    "left in the middle of an answer",
                ));
            }
        }
    }

    /// The one that arrived, if any did.
    pub fn caught(&self) -> Option<u8> {
        self.caught
    }

    /// Whether it was only Ctrl+C: on a terminal that stops the answer, not the talk.
    pub fn forgive_interrupt(&mut self) -> bool {
        let forgiven = self.caught == Some(INTERRUPT);
        if forgiven {
            self.caught = None;
            self.given_up = None;
            self.cancel = CancellationToken::new();
        }
        forgiven
    }
}
