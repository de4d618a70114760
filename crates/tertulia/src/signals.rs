//! Handles the signals that end a session; the answer so far is saved first.

use tertulia_store::{GivenUp, Patience};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::{CommandError, CommandResult, ErrorKind};

/// Signal numbers.
const INTERRUPT: u8 = 2;
pub const TERMINATE: u8 = 15;
pub const HANG_UP: u8 = 1;

/// Receives the signals.
pub struct Signals {
    /// Cancelled when the first signal arrives.
    pub cancel: CancellationToken,
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    caught: Option<u8>,
    insists: bool,
    /// Waits of the store's writers, which end when a signal arrives.
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

    /// Makes the first signal also end waits for other programs that hold the store.
    #[must_use]
    pub fn hurrying(mut self, patience: &Patience) -> Signals {
        self.hurries = Some(patience.clone());
        self
    }

    /// Waits for the next signal and cancels what is running.
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

    /// Waits for a turn to end. On a second signal, drops the turn, which ends the agent, and
    /// returns an error so that the program exits; the text on screen is in the draft.
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

    /// Returns the signal that arrived, if any.
    pub fn caught(&self) -> Option<u8> {
        self.caught
    }

    /// Clears a Ctrl+C, which on a terminal cancels the answer and not the session. Returns whether
    /// it was one.
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
