//! Parses the instructor's reply: thinking, the instruction for the worker with an optional model,
//! and whether the task is done.

use serde::{Deserialize, Serialize};

/// Number of last lines on which `DONE` counts.
const LAST_LINES: usize = 3;
/// Maximum length of `(use MODEL)`, in bytes.
const LONGEST_MODEL: usize = 200;
/// How far before `Tell worker:` the beginning of its line is searched, in bytes.
const NEAR: usize = 400;
/// Tags around thinking.
const THOUGHTS: [(&str, &str); 2] = [("<thinking>", "</thinking>"), ("<think>", "</think>")];

/// A parsed reply of the instructor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// Thinking, separated from the rest of the reply.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thinking: String,
    /// Instruction for the worker; empty if there is none.
    pub instruction: String,
    /// Model that the worker should use for this instruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_model: Option<String>,
    /// False if the reply says DONE.
    pub should_continue: bool,
    /// True if the reply has neither an instruction nor DONE.
    pub needs_correction: bool,
}

/// Parses a reply. DONE takes precedence over an instruction.
pub fn read(text: &str) -> Reply {
    let (thinking, said) = apart(text);
    let done = is_done(&said);
    let told = marker(&said, 0).filter(|told| !told.instruction.is_empty());
    let (instruction, worker_model) = match &told {
        Some(told) => (told.instruction.to_owned(), told.model.map(str::to_owned)),
        None => (String::new(), None),
    };
    Reply {
        thinking,
        instruction,
        worker_model,
        should_continue: !done,
        needs_correction: !done && told.is_none(),
    }
}

/// Splits a reply into thinking and the rest. Tags after `Tell worker:` are not thinking, because
/// an instruction may be about such tags.
fn apart(text: &str) -> (String, String) {
    let (mut thinking, mut said) = (Vec::new(), String::new());
    let mut from = 0;
    let mut told = Ahead::default();
    let mut opened = THOUGHTS.map(|_| Ahead::default());
    loop {
        let told = told.next(from, |from| Some(marker(text, from)?.at));
        let openings = THOUGHTS.iter().zip(&mut opened);
        let first = openings
            .filter_map(|((open, close), ahead)| {
                let at = ahead.next(from, |from| Some(from + find(&text[from..], open)?))?;
                Some((at, *open, *close))
            })
            .min();
        let before_told = |at: usize| told.is_none_or(|told| at < told);
        let Some((at, open, close)) = first.filter(|(at, ..)| before_told(*at)) else {
            said.push_str(&text[from..]);
            break;
        };
        said.push_str(&text[from..at]);
        let inside = at + open.len();
        // An unclosed tag extends to the end.
        let Some(length) = find(&text[inside..], close) else {
            thinking.push(text[inside..].trim());
            break;
        };
        thinking.push(text[inside..inside + length].trim());
        from = inside + length + close.len();
    }
    thinking.retain(|thought| !thought.is_empty());
    (thinking.join("\n\n"), said)
}

/// Next position of a pattern. It is searched again only after that position is passed, so that
/// parsing stays linear.
#[derive(Clone, Copy, Default)]
struct Ahead {
    looked: bool,
    at: Option<usize>,
}

impl Ahead {
    fn next(&mut self, from: usize, find: impl Fn(usize) -> Option<usize>) -> Option<usize> {
        if !self.looked || self.at.is_some_and(|at| at < from) {
            self.looked = true;
            self.at = find(from);
        }
        self.at
    }
}

/// Finds ASCII text, ignoring case.
fn find(text: &str, words: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    bytes
        .windows(words.len())
        .position(|window| window.eq_ignore_ascii_case(words.as_bytes()))
}

fn is_done(said: &str) -> bool {
    let lines = said.trim_end().lines().rev().take(LAST_LINES);
    lines.map(str::trim_start).any(|line| {
        let words = line.trim_end_matches([' ', '\t', '.', '!']);
        ["DONE", "**DONE**", "__DONE__"].contains(&words)
    })
}

/// A parsed `Tell worker (use MODEL): …`.
struct Told<'a> {
    at: usize,
    model: Option<&'a str>,
    instruction: &'a str,
}

/// Returns the first such marker at or after `from`.
fn marker(text: &str, mut from: usize) -> Option<Told<'_>> {
    while let Some(found) = find(&text[from..], "tell") {
        let at = from + found;
        from = at + "tell".len();
        let before = text[..at].chars().next_back();
        if before.is_some_and(char::is_alphanumeric) {
            continue;
        }
        if let Some((model, behind)) = after_tell(&text[from..]) {
            if is_quoted(&text[..at], behind) {
                continue;
            }
            let emphasised = before.filter(|before| is_emphasis(*before)).is_some();
            let behind = match emphasised {
                true => behind.trim_start_matches(is_emphasis),
                false => behind,
            };
            return Some(Told {
                at,
                model,
                instruction: behind.trim(),
            });
        }
    }
    None
}

/// Returns true if the marker is only mentioned: in quotes, as in "write `Tell worker:` and the
/// instruction", or on a line of a block quote.
fn is_quoted(before: &str, behind: &str) -> bool {
    const QUOTES: [(char, char); 6] = [
        ('`', '`'),
        ('"', '"'),
        ('\'', '\''),
        ('“', '”'),
        ('‘', '’'),
        ('«', '»'),
    ];
    let opening = before.trim_end_matches(is_emphasis).chars().next_back();
    let closing = behind.trim_start_matches(is_emphasis).trim_start();
    let closed = QUOTES
        .iter()
        .any(|(open, close)| opening == Some(*open) && closing.starts_with(*close));
    // Limited to nearby text: a line may be as long as the whole text and contain the marker many
    // times.
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(NEAR))..];
    let line = match near.rfind('\n') {
        Some(at) => &near[at + 1..],
        None if near.len() == before.len() => near,
        None => "",
    };
    closed || line.trim_start().starts_with('>')
}

fn after_tell(text: &str) -> Option<(Option<&str>, &str)> {
    let blank = [' ', '\t'];
    let rest = text.trim_start_matches(blank);
    if rest.len() == text.len() {
        return None;
    }
    let (worker, rest) = rest.split_at_checked("worker".len())?;
    if !worker.eq_ignore_ascii_case("worker") {
        return None;
    }
    let skipped = |text: &'_ str| -> usize {
        let rest = text.trim_start_matches(|c| is_emphasis(c) || blank.contains(&c));
        text.len() - rest.len()
    };
    let mut rest = &rest[skipped(rest)..];
    let mut model = None;
    if let Some(inside) = rest.strip_prefix('(') {
        // Limited to the maximum length: a search through the whole text for each marker would be
        // quadratic.
        let near = &inside[..inside.floor_char_boundary(LONGEST_MODEL)];
        let end = near.find(')')?;
        let (chosen, behind) = (&inside[..end], &inside[end + 1..]);
        model = Some(chosen_model(chosen)?).filter(|model| !model.is_empty());
        rest = &behind[skipped(behind)..];
    }
    let behind = rest.strip_prefix(':').or_else(|| rest.strip_prefix('：'))?;
    Some((model, behind))
}

/// Parses `use opus` or `model: opus`.
fn chosen_model(words: &str) -> Option<&str> {
    let words = words.trim_start();
    let after = |prefix: &str| {
        let (head, rest) = words.split_at_checked(prefix.len())?;
        head.eq_ignore_ascii_case(prefix).then_some(rest)
    };
    let model = after("use ")
        .or_else(|| after("model:"))
        .or_else(|| after("model "))?;
    let model = model.trim().trim_matches(['`', '"', '\'']);
    (!model.contains('\n')).then_some(model)
}

fn is_emphasis(c: char) -> bool {
    c == '*' || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(text: &str, model: Option<&str>, instruction: &str) {
        let reply = read(text);
        assert_eq!(reply.instruction, instruction, "{text:?}");
        assert_eq!(reply.worker_model.as_deref(), model, "{text:?}");
        assert!(reply.should_continue && !reply.needs_correction, "{text:?}");
    }

    #[test]
    fn what_is_only_spoken_of_is_no_instruction() {
        let nothing = |text: &str| {
            let reply = read(text);
            assert_eq!(reply.instruction, "", "{text:?}");
            assert!(reply.needs_correction, "{text:?}");
        };
        nothing("I am to write `Tell worker:` and the instruction behind it.");
        nothing("You said \"Tell worker:\", and “Tell worker (use opus):” too.");
        nothing("> Tell worker: do it\n\nWhat does that mean?");
        // A real instruction after a mention counts.
        told(
            "You want `Tell worker:` first.\nTell worker: run it",
            None,
            "run it",
        );
        told("`Tell worker: run it`", None, "run it`");
        told("**Tell worker:** run it", None, "run it");
    }

    #[test]
    fn long_hostile_replies_take_no_long_time() {
        for part in [
            "`tell worker:` ",
            "> tell worker: ",
            "<think></think>",
            "<thinking>",
            "tell worker (",
            "tell ",
            "<think>tell worker:</think>",
        ] {
            read(&part.repeat(1_000_000 / part.len()));
        }
    }

    #[test]
    fn all_that_follows_is_the_instruction() {
        told("Tell worker: write it", None, "write it");
        told("plan.\n\nTELL WORKER:\n\n1. a\n2. b\n", None, "1. a\n2. b");
        told("tell Worker : x: y", None, "x: y");
        told("Tell worker (use opus): x", Some("opus"), "x");
        told("Tell worker (MODEL: gpt-5.1): x", Some("gpt-5.1"), "x");
        told("Tell worker (model haiku)\t: x", Some("haiku"), "x");
        told("Tell worker (use `a/b:c`): x", Some("a/b:c"), "x");
        told("Tell worker (use ): x", None, "x");
        told("**Tell worker:** x", None, "x");
        told("**Tell worker**: *x*", None, "*x*");
        told("Tell worker： 写", None, "写");
        told(
            "é Tell worker: first\nTell worker: second",
            None,
            "first\nTell worker: second",
        );
        told(
            "Tell worker: do it\nsay DONE when done\nthen\nstop\n",
            None,
            "do it\nsay DONE when done\nthen\nstop",
        );
        told(
            "Tell worker: parse <thinking> and </thinking>",
            None,
            "parse <thinking> and </thinking>",
        );
    }

    #[test]
    fn what_tells_nobody_anything_is_to_be_corrected() {
        for text in [
            "",
            "I have a plan",
            "Tell worker:",
            "Tell worker:   \n",
            "tellworker: x",
            "Tell worker x",
            "Tell worker (later): x",
            "foretell worker: x",
            "Tell the worker: x",
            "<thinking>Tell worker: x</thinking>",
            "<thinking>Tell worker: x",
            "Tell",
            "tell worke",
        ] {
            let reply = read(text);
            assert!(reply.needs_correction && reply.should_continue, "{text:?}");
            assert_eq!((reply.instruction.as_str(), reply.worker_model), ("", None));
        }
    }

    #[test]
    fn done_stands_alone_on_one_of_the_last_three_lines() {
        for text in [
            "DONE",
            "All is well.\n\nDONE",
            "DONE\n\n\n",
            "DONE.",
            "DONE ! ",
            "DONE!!!",
            "  DONE",
            "\tDONE\t",
            "**DONE**",
            "__DONE__.",
            "DONE\none\ntwo",
            "```\nDONE\n```",
            "a\r\nDONE\r\n",
            "<thinking>so</thinking>\nDONE",
        ] {
            let reply = read(text);
            assert!(
                !reply.should_continue && !reply.needs_correction,
                "{text:?}"
            );
        }
        for text in [
            "done",
            "Done",
            "We are DONE",
            "DONE with it",
            "DONE:",
            "ALL_DONE",
            "_DONE_",
            "*DONE*",
            "UNDONE",
            "DONE\n1\n2\n3",
            "\"DONE\"",
            "<thinking>\nDONE\n</thinking>",
        ] {
            assert!(read(text).should_continue, "{text:?}");
        }
        // DONE takes precedence, and the instruction is kept.
        let both = read("Tell worker: one more thing\nDONE");
        assert!(!both.should_continue && !both.needs_correction);
        assert_eq!(both.instruction, "one more thing\nDONE");
    }

    #[test]
    fn thinking_stands_apart() {
        let reply = read("<thinking> a </thinking>Well.<THINK>b</think>\nTell worker: x");
        assert_eq!(reply.thinking, "a\n\nb");
        assert_eq!(reply.instruction, "x");
        assert_eq!(
            read("<thinking>never ends\nDONE").thinking,
            "never ends\nDONE"
        );
    }

    proptest! {
        /// Every reply is exactly one of: an instruction, done, in need of correction.
        #[test]
        fn every_reply_is_one_of_three(text in "(?s)([a-zA-Zé\\n<>/:*_() ]|Tell worker:|DONE|<thinking>|</thinking>|\\(use x\\)){0,12}") {
            let reply = read(&text);
            let goes_on = reply.should_continue && !reply.instruction.is_empty();
            let ways = [goes_on, !reply.should_continue, reply.needs_correction];
            prop_assert_eq!(ways.iter().filter(|way| **way).count(), 1);
            prop_assert!(text.contains(reply.instruction.as_str()));
        }
    }
}
