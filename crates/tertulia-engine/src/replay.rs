//! [`Replay`]: the prompts of an earlier session are played again. No tool runs: calls are answered
//! with the results that the earlier session recorded.

use std::sync::{Arc, Mutex, PoisonError};

use tertulia_agents::tool::ToolOutput;
use tertulia_core::entry::{Replayed, ToolCall, ToolOutcome};
use tertulia_core::replay::{RecordedCalls, Recording, unrecorded};

/// A replay of an earlier session. Clones share the results that are not used yet.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The entry that links the new session to the earlier one.
    pub link: Replayed,
    results: Arc<Mutex<RecordedCalls>>,
}

impl Replay {
    /// Creates a replay with the recorded results of tools.
    pub fn new(link: Replayed, recording: &Recording) -> Replay {
        Replay {
            link,
            results: Arc::new(Mutex::new(RecordedCalls::of(recording))),
        }
    }

    /// Returns the recorded result of a call, or a refusal if the recording has none.
    pub fn result_of(&self, call: &ToolCall) -> ToolOutput {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        match results.take(call) {
            Some(recorded) => ToolOutput {
                text: recorded.text,
                ok: recorded.outcome == ToolOutcome::Ok,
            },
            None => ToolOutput {
                text: unrecorded(),
                ok: false,
            },
        }
    }
}
