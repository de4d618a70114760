//! Prompts of the instructor and the worker: their roles, and reports of what happened.

use tertulia_agents::{AgentError, FailureKind};
use tertulia_core::entry::MESSAGE_LIMIT;
pub use tertulia_core::pair::instructions::{INSTRUCTOR, WORKER};
pub use tertulia_core::pair::speakers::{narrator, speaker};
use tertulia_core::pair::state::CORRECTIONS;

/// Number of bytes reserved for the text around a forwarded message.
const MARGIN: usize = 1000;

/// Prompt for an instructor whose reply held neither an instruction nor DONE.
pub fn correction(attempt: u32) -> String {
    format!(
        "Your last reply neither told the worker anything nor ended the task. Reply again: either with \
         `Tell worker:` and the instruction behind it, or, if everything is done, with `DONE` alone on the last \
         line. ({attempt} of {CORRECTIONS})"
    )
}

/// Prompt for a worker that could not finish.
pub const TAKE_UP: &str = "[You were cut off before you had finished this instruction. Some of it may be done \
already: look at what is there before you do anything again, then finish it.]";

/// Prompt for an instructor that could not finish.
pub const REPLY_AGAIN: &str = "[You were cut off in the middle of your reply. Nothing of it was carried out. Reply \
again, whole.]";

/// Prompt for an instructor that could not finish, after some of its tools had run.
pub const REPLY_AFTER_TOOLS: &str = "[You were cut off in the middle of your reply. What your tools gave back above is \
done; nothing else was carried out. Reply again, whole.]";

/// Prompt for an instructor whose instruction did not reach the worker.
pub const NOT_GIVEN: &str =
    "[Your last instruction was not given to the worker. The person has something to say first.]";

/// Prompt for an instructor whose worker was stopped; `said` is the worker's text so far.
pub fn worker_cut_off(said: &str) -> String {
    let said = cut(said.trim());
    let words = "[The worker was cut off before it had finished your last instruction; some of it may be done. The \
                 person has something to say first.";
    match said.is_empty() {
        true => format!("{words}]"),
        false => format!("{words} What the worker had said:]\n\n{said}"),
    }
}

/// Formats the worker's answer for the instructor.
pub fn worker_says(words: &str) -> String {
    match words.trim().is_empty() {
        true => "Worker says: (nothing)".to_owned(),
        false => format!("Worker says: {}", cut(words)),
    }
}

/// Formats the worker's failure for the instructor; `said` is the worker's text before it.
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

/// Cuts a text to what a message has room for, with a mark.
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

/// Splits a text that was cut before into its content and the number of missing bytes in its mark.
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
