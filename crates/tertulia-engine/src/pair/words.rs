//! What the two are told: their parts, and what has happened.

use tertulia_agents::{AgentError, FailureKind};
use tertulia_core::entry::MESSAGE_LIMIT;
pub use tertulia_core::pair::instructions::{INSTRUCTOR, WORKER};
pub use tertulia_core::pair::speakers::{narrator, speaker};
use tertulia_core::pair::state::CORRECTIONS;

/// Room for what stands around the words that are handed on.
const MARGIN: usize = 1000;

/// What an instructor is asked that said neither.
pub fn correction(attempt: u32) -> String {
    format!(
        "Your last reply neither told the worker anything nor ended the task. Reply again: either with \
         `Tell worker:` and the instruction behind it, or, if everything is done, with `DONE` alone on the last \
         line. ({attempt} of {CORRECTIONS})"
    )
}

/// What a worker is told that could not finish.
pub const TAKE_UP: &str = "[You were cut off before you had finished this instruction. Some of it may be done \
already: look at what is there before you do anything again, then finish it.]";

/// What an instructor is told that could not finish.
pub const REPLY_AGAIN: &str = "[You were cut off in the middle of your reply. Nothing of it was carried out. Reply \
again, whole.]";

/// What an instructor is told that could not finish, though its tools had done something.
pub const REPLY_AFTER_TOOLS: &str = "[You were cut off in the middle of your reply. What your tools gave back above is \
done; nothing else was carried out. Reply again, whole.]";

/// What an instructor is told whose instruction did not reach the worker.
pub const NOT_GIVEN: &str =
    "[Your last instruction was not given to the worker. The person has something to say first.]";

/// What an instructor is told whose worker was stopped; `said` is what the worker had said by then.
pub fn worker_cut_off(said: &str) -> String {
    let said = cut(said.trim());
    let words = "[The worker was cut off before it had finished your last instruction; some of it may be done. The \
                 person has something to say first.";
    match said.is_empty() {
        true => format!("{words}]"),
        false => format!("{words} What the worker had said:]\n\n{said}"),
    }
}

/// What the worker said, as the instructor reads it.
pub fn worker_says(words: &str) -> String {
    match words.trim().is_empty() {
        true => "Worker says: (nothing)".to_owned(),
        false => format!("Worker says: {}", cut(words)),
    }
}

/// Why the worker said nothing, as the instructor reads it; `said` is what it had said before that.
pub fn worker_failed(error: &AgentError, said: &str) -> String {
    let mut words = format!("Worker says: [ERROR: {}]", error.message.trim());
    let advice = match error.kind {
        FailureKind::TooLong => Some(
            "The worker cannot read that much. Give it a shorter instruction that stands alone.",
        ),
        FailureKind::RateLimit => Some("Too much was asked of it for now. It can be tried again."),
        FailureKind::Auth => Some("Only the person can do something about that."),
        FailureKind::Timeout => {
            Some("Some of it may be done. Ask for less at a time, or for what is there by now.")
        }
        _ => None,
    };
    if let Some(advice) = advice {
        words.push_str(&format!("\n{advice}"));
    }
    let said = cut(said.trim());
    if !said.is_empty() {
        words.push_str(&format!("\n\nBefore that it had said:\n\n{said}"));
    }
    words
}

/// The words, or as many as a message has room for, with a mark.
pub fn cut(words: &str) -> String {
    let room = MESSAGE_LIMIT - 2 * MARGIN;
    if words.len() <= room {
        return words.to_owned();
    }
    let (words, missing) = already_cut(words);
    let kept = &words[..words.floor_char_boundary(room)];
    format!(
        "{kept}\n[cut here: {} more bytes]",
        missing + words.len() - kept.len()
    )
}

/// Words that were cut before, without the mark, and how many bytes it says are missing.
fn already_cut(words: &str) -> (&str, usize) {
    let marked = words.trim_end().strip_suffix(" more bytes]");
    let parts = marked.and_then(|marked| marked.rsplit_once("[cut here: "));
    match parts.and_then(|(kept, count)| Some((kept.trim_end_matches('\n'), count.parse().ok()?))) {
        Some((kept, missing)) => (kept, missing),
        None => (words, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tertulia_core::pair::reply::read;

    #[test]
    fn a_quoted_correction_is_no_instruction() {
        let reply = read(&correction(1));
        assert_eq!(reply.instruction, "");
        assert!(reply.needs_correction);
    }
}
