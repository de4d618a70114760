//! Events and results of a pair as text for users.

use jiff::SignedDuration;

use super::state::CORRECTIONS;
use super::{PairEvent, Pause, Progress, Wait};

/// Why a pair with a spent budget waits, and how it goes on.
pub const NO_CALLS_LEFT: &str = "worker calls used up; [r+5] adds five";

/// Describes an event.
pub fn event(event: &PairEvent) -> String {
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

/// Describes the progress in one line.
pub fn progress(progress: &Progress) -> String {
    let tokens = progress.tokens.input + progress.tokens.output;
    format!(
        "round {} · {} · {tokens} tokens · {}",
        progress.round,
        progress.remaining,
        lasting(progress.elapsed)
    )
}

/// Returns true if the end of a run should be shown as a warning.
pub fn is_warning(pause: &Pause) -> bool {
    !matches!(
        pause,
        Pause::Waits(Wait::Done | Wait::Idle) | Pause::Stopped(_) | Pause::Refused
    )
}

/// Describes the end of a run.
pub fn ending(pause: &Pause, progress: &Progress) -> String {
    let how = match pause {
        Pause::Waits(Wait::Done) => "done".to_owned(),
        Pause::Waits(Wait::Idle) => "nothing has been asked for yet".to_owned(),
        Pause::Waits(Wait::Budget) => format!("paused: {NO_CALLS_LEFT}"),
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
    let tokens = progress.tokens.input + progress.tokens.output;
    match pause {
        Pause::Waits(Wait::Done) => format!("{how} after {calls} ({tokens} tokens)"),
        // The round before said the rest.
        _ => format!("{how} ({calls}, {tokens} tokens)"),
    }
}

/// Formats a duration in its largest unit.
pub fn lasting(span: SignedDuration) -> String {
    let seconds = span.as_secs().max(0);
    let (count, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        86_400..5_184_000 => (seconds / 86_400, "day"),
        5_184_000..63_072_000 => (seconds / 2_592_000, "month"),
        _ => (seconds / 31_536_000, "year"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}
