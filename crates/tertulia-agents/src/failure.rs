//! Failures of programs and providers, as one line that the user can act on.

use std::path::Path;

use super::process::ProcessError;
use super::{AgentError, FailureKind, Whence};

/// Maximum length of an error in characters.
const LONGEST: usize = 500;

/// The failure of a program that has no option to save nothing, when its temporary home cannot be
/// made.
pub(super) fn no_scratch(name: &str, error: &std::io::Error) -> AgentError {
    AgentError::new(
        FailureKind::Unavailable,
        format!("{name} would keep a copy of this session: no temporary home could be made for it: {error}"),
    )
    .hint("make room in the folder for temporary files, or omit --ephemeral")
}

/// Converts the error of a run that did not end by itself.
pub(super) fn of_process(error: ProcessError, command: &Path, whence: &Whence) -> AgentError {
    let command = command.display();
    match error {
        ProcessError::Cancelled => AgentError::cancelled(),
        ProcessError::NotFound { .. } => AgentError::new(
            FailureKind::Unavailable,
            format!("the program {command} was not found"),
        )
        .hint(format!("install it, or {}", whence.program())),
        ProcessError::Idle { limit, stderr_tail } => {
            let what = format!(
                "{command} sent nothing for {} s and was stopped",
                limit.as_secs_f32()
            );
            AgentError::new(FailureKind::Timeout, explain(&what, &stderr_tail)).hint(format!(
                "{} sets how long it may be silent",
                whence.setting("idle_timeout")
            ))
        }
        ProcessError::Timeout { limit, stderr_tail } => {
            let what = format!(
                "{command} was not done after {} s and was ended",
                limit.as_secs_f32()
            );
            AgentError::new(FailureKind::Timeout, explain(&what, &stderr_tail))
                .hint(format!("{} sets how long it may take", whence.limit()))
        }
        other => AgentError::new(
            FailureKind::Unavailable,
            format!("{command} cannot be run: {other}"),
        ),
    }
}

/// Returns what the user can do about a failure of a program that has its own login and model.
pub(super) fn advice(kind: FailureKind) -> Option<&'static str> {
    match kind {
        FailureKind::RateLimit => Some("wait a little, or take another model or agent"),
        FailureKind::TooLong => Some("begin a new session, or take a model that reads more"),
        FailureKind::Unavailable => Some("try again in a moment, or take another agent"),
        _ => None,
    }
}

/// Removes the stack trace of the program from an error.
pub(super) fn without_trace(text: &str) -> String {
    let lines = text.lines();
    let said = lines.take_while(|line| !line.trim_start().starts_with("at "));
    said.collect::<Vec<_>>().join("\n")
}

/// Joins a description of the failure with the text from standard error.
pub(super) fn explain(what: &str, stderr: &str) -> String {
    match stderr.trim() {
        "" => what.to_owned(),
        words => format!("{what}: {words}"),
    }
}

/// Replaces the values of variables that hold keys: a program may print its environment.
pub(super) fn without_keys(text: &str, env: &[(String, String)]) -> String {
    let secret = |name: &str| {
        let name = name.to_uppercase();
        ["KEY", "TOKEN", "SECRET", "PASSWORD"]
            .iter()
            .any(|word| name.contains(word))
    };
    env.iter()
        .filter(|(name, value)| secret(name) && value.len() >= 8)
        .fold(text.to_owned(), |text, (name, value)| {
            text.replace(value, &format!("[{name}]"))
        })
}

/// Returns the text in one line without colours, cut to `LONGEST` characters.
pub(super) fn one_line(text: &str) -> String {
    let plain = without_colours(text);
    let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    let mut cut: String = line.chars().take(LONGEST - 1).collect();
    cut.push('…');
    cut
}

/// Removes terminal sequences (`ESC [ … letter` and `ESC ] … BEL`) and other control characters.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            if chars.next_if_eq(&'[').is_some() {
                let _ = chars.by_ref().find(|c| ('@'..='~').contains(c));
            } else if chars.next_if_eq(&']').is_some() {
                // Titles and links end in BEL or `ESC \`; one that was cut off ends with its line.
                let end = chars
                    .by_ref()
                    .find(|c| ['\u{7}', '\u{1b}', '\n'].contains(c));
                if end == Some('\u{1b}') {
                    let _ = chars.next_if_eq(&'\\');
                }
            }
        } else if !c.is_control() || c.is_whitespace() {
            plain.push(c);
        }
    }
    plain
}

/// Maps an HTTP status to a kind of failure.
pub(super) fn of_status(status: u64) -> Option<FailureKind> {
    match status {
        401..=403 => Some(FailureKind::Auth),
        413 => Some(FailureKind::TooLong),
        429 => Some(FailureKind::RateLimit),
        408 | 500..=599 => Some(FailureKind::Unavailable),
        400..=499 => Some(FailureKind::Failed),
        _ => None,
    }
}

/// What providers say of a prompt that is too long.
pub(super) const TOO_LONG: &[&str] = &[
    "context_length",
    "context length",
    "context window",
    "context limit",
    "context size",
    "maximum context",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "too many tokens",
    "maximum number of tokens",
    "string_above_max_length",
];

/// Guesses the kind from a provider's message, for programs that pass on nothing else. The first
/// match counts: failures that need the user come before those that pass by themselves.
pub(super) fn of_words(text: &str) -> Option<FailureKind> {
    const SIGNS: &[(FailureKind, &[&str])] = &[
        (
            FailureKind::TooLong,
            &["too long", "too_long", "contextoverflow"],
        ),
        (FailureKind::TooLong, TOO_LONG),
        (
            FailureKind::RateLimit,
            &[
                "rate limit",
                "rate_limit",
                "too many requests",
                "quota",
                "usage limit",
            ],
        ),
        (
            FailureKind::Auth,
            &[
                "not logged in",
                "/login",
                "log in",
                "sign in",
                "unauthorized",
                "unauthenticated",
                "authentication",
                "auth_required",
                "providerauth",
                "api key",
                "api_key",
                "x-api-key",
                "missing environment variable",
                "credential",
            ],
        ),
        (
            FailureKind::Unavailable,
            &[
                "econn",
                "connection",
                "network",
                "fetch failed",
                "stream disconnected",
                ": terminated",
                "overloaded",
                "high demand",
                "server error",
                "server_error",
                "bad gateway",
                "unavailable",
            ],
        ),
    ];
    let lower = text.to_lowercase();
    if let Some(kind) = status_in(&lower).and_then(of_status)
        && kind != FailureKind::Failed
    {
        return Some(kind);
    }
    SIGNS
        .iter()
        .find(|(_, signs)| signs.iter().any(|sign| lower.contains(sign)))
        .map(|(kind, _)| *kind)
}

/// Finds a number that the text calls a status: `status 401`, `last status: 429`, `"code":500`.
fn status_in(lower: &str) -> Option<u64> {
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.windows(2).find_map(|pair| {
        let called = ["status", "code", "error", "http"].contains(&pair[0]);
        let number = pair[1].parse().ok().filter(|n| (400..600).contains(n));
        number.filter(|_| called && pair[1].len() == 3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_sorted_by_what_can_be_done() {
        let check = |text: &str, expected| assert_eq!(of_words(text), expected, "{text}");
        check(
            "unexpected status 401 Unauthorized: no",
            Some(FailureKind::Auth),
        );
        check(
            "exceeded retry limit, last status: 429 Too Many Requests",
            Some(FailureKind::RateLimit),
        );
        check(
            r#"{"error":{"code":503,"message":"no"}}"#,
            Some(FailureKind::Unavailable),
        );
        check(
            "[API Error: fake error 500]",
            Some(FailureKind::Unavailable),
        );
        check(
            "Prompt is too long: 250000 tokens",
            Some(FailureKind::TooLong),
        );
        check(
            "Missing environment variable: `KEY`.",
            Some(FailureKind::Auth),
        );
        check(
            "fetch failed sending request",
            Some(FailureKind::Unavailable),
        );
        // A number alone is no status; for status 400 the text decides.
        check("gave up after 500 lines", None);
        check("status 400: prompt is too long", Some(FailureKind::TooLong));
        check("status 400: temperature must be positive", None);
    }

    #[test]
    fn one_line_without_colours() {
        let check = |text: &str, expected: &str| assert_eq!(one_line(text), expected);
        check(
            "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mno\n\n  more\n",
            "Error: no more",
        );
        check("a\u{7}b\u{1b}", "ab");
        check("\u{1b}]0;a title\u{7}no\u{1b}[3~ file", "no file");
        let link = "\u{1b}]8;;http://a\u{1b}\\here\u{1b}]8;;\u{1b}\\.";
        check(link, "here.");
        check("\u{1b}]0;cut off\nmore", "more");
        let long = one_line(&"é".repeat(600));
        assert_eq!(long.chars().count(), 500);
        assert!(long.ends_with("é…"));
    }
}
