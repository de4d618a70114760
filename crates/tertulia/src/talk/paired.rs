//! What follows from what was said between an instructor and a worker, in words and as events.

use serde_json::{Value, json};
use tertulia_core::pair::state::CORRECTIONS;
use tertulia_engine::duet::Pause;
use tertulia_engine::pair::{PairEvent, PairRole, Progress, Wait};
use tertulia_formats::json;

use crate::moment::lasting;

/// It in words.
pub fn words(event: &PairEvent) -> String {
    match event {
        PairEvent::Round(progress) => self::progress(progress),
        PairEvent::Budgeted(budget) => format!("budget: {budget}"),
        PairEvent::Correcting { attempt } => format!(
            "the instructor neither instructed the worker nor said DONE; asking it to correct itself ({attempt} of {CORRECTIONS})"
        ),
        PairEvent::TakenUp => "the worker was cut off; asking it to look and finish".to_owned(),
        PairEvent::Chose(model) => format!("the worker uses {model} for this"),
        PairEvent::WorkerFailed(error) => {
            format!("the worker failed; passing the error to the instructor: {error}")
        }
    }
}

/// How far it is, on one line.
pub fn progress(progress: &Progress) -> String {
    let tokens = progress.tokens.input + progress.tokens.output;
    format!(
        "round {} · {} · {tokens} tokens · {}",
        progress.round,
        progress.remaining,
        lasting(progress.elapsed)
    )
}

/// It as an event of a stream.
pub fn object(event: &PairEvent) -> Value {
    match event {
        PairEvent::Round(progress) => json!({
            "type": "round",
            "round": progress.round,
            "worker_calls": progress.worker_calls,
            "remaining": json::remaining(progress.remaining),
            "tokens": { "input": progress.tokens.input, "output": progress.tokens.output },
            "elapsed_ms": i64::try_from(progress.elapsed.as_millis()).unwrap_or(i64::MAX),
        }),
        PairEvent::Budgeted(budget) => {
            json!({ "type": "budget", "remaining": json::remaining(*budget) })
        }
        PairEvent::Correcting { attempt } => {
            json!({ "type": "correction", "attempt": attempt, "of": CORRECTIONS })
        }
        PairEvent::TakenUp => json!({ "type": "taken_up" }),
        PairEvent::Chose(model) => json!({ "type": "worker_model", "model": model }),
        PairEvent::WorkerFailed(error) => json!({
            "type": "error",
            "speaker": PairRole::Worker.name(),
            "kind": error.kind.name(),
            "message": error.message,
            "hint": error.hint,
        }),
    }
}

/// Whether the end of a run should not be overlooked.
pub fn is_warning(pause: &Pause) -> bool {
    !matches!(
        pause,
        Pause::Waits(Wait::Done | Wait::Idle) | Pause::Stopped(_) | Pause::Refused
    )
}

/// How a run ended, and how far it came.
pub fn ending(pause: &Pause, progress: &Progress) -> String {
    let how = match pause {
        Pause::Waits(Wait::Done) => "done".to_owned(),
        Pause::Waits(Wait::Idle) => "nothing has been asked for yet".to_owned(),
        Pause::Waits(Wait::Budget) => {
            "paused: no worker calls left; [r+5] allows five more".to_owned()
        }
        Pause::Waits(Wait::Corrections) => format!(
            "paused: the instructor gave no instruction in {CORRECTIONS} attempts; it is your turn"
        ),
        Pause::Stopped(seat) => format!("stopped: the {} was cut off", seat.name()),
        Pause::Failed(_) => "paused: the instructor could not reply".to_owned(),
        Pause::WorkerFails(error) => {
            format!("paused: the worker keeps failing, last error: {error}")
        }
        Pause::Unsaved => {
            "paused: the session cannot be saved, and nothing runs unsaved".to_owned()
        }
        Pause::Unreadable(why) => format!("paused: the session cannot be read: {why}"),
        Pause::Refused => "the message was not sent".to_owned(),
    };
    let calls = match progress.worker_calls {
        1 => "1 worker call".to_owned(),
        calls => format!("{calls} worker calls"),
    };
    format!("{how} ({calls}, {})", self::progress(progress))
}
