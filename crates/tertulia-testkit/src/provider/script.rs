//! Parses the directives in a prompt.

use std::time::Duration;

use serde_json::{Value, json};

/// Kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `400` and so on: this status, with the body of the real service. With 401 the body repeats
    /// the key.
    Status(u16),
    /// `overflow`: the request exceeds the context window.
    Overflow,
    /// `html`: a gateway's HTML page with status 502.
    Html,
    /// `portal`: a captive portal's HTML page with status 200.
    Portal,
    /// `drop0`: the connection closes before the response.
    Drop0,
    /// `drop`: the connection closes within the response.
    Drop,
    /// `truncate`: the response ends properly, but the message is incomplete.
    Truncate,
    /// `malformed`: one event is not JSON; the rest follows normally.
    Malformed,
    /// `error_event`: an error event within the response.
    ErrorEvent,
    /// `stall`: the response stops, and the connection stays open.
    Stall,
    /// `hang`: no response, and the connection stays open.
    Hang,
    /// `refusal`: the model refuses.
    Refusal,
}

impl Kind {
    fn parse(word: &str) -> Option<Kind> {
        Some(match word {
            "overflow" => Kind::Overflow,
            "html" => Kind::Html,
            "portal" => Kind::Portal,
            "drop0" => Kind::Drop0,
            "drop" => Kind::Drop,
            "truncate" => Kind::Truncate,
            "malformed" => Kind::Malformed,
            "error_event" => Kind::ErrorEvent,
            "stall" => Kind::Stall,
            "hang" => Kind::Hang,
            "refusal" => Kind::Refusal,
            status => match status.parse() {
                Ok(status @ 400..=599) => Kind::Status(status),
                _ => return None,
            },
        })
    }
}

/// A failure with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub kind: Kind,
    /// Number of tokens before the failure.
    pub after: Option<usize>,
    /// Number of requests with the same text that fail; all by default.
    pub times: Option<u64>,
    /// Header of this name.
    pub retry_after: Option<String>,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: String,
    pub arguments: Value,
}

/// All directives of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    pub say: Option<String>,
    pub think: Option<String>,
    /// Tool calls, by round.
    pub rounds: Vec<Vec<Call>>,
    pub no_usage: bool,
    pub max_tokens: bool,
    pub delay: Option<Duration>,
    pub failure: Option<Failure>,
}

impl Script {
    /// Parses the directives in a text. Invalid ones are errors, so that a typo in a test is
    /// noticed.
    pub fn read(text: &str) -> Result<Script, String> {
        let mut script = Script::default();
        let mut rest = text;
        while let Some(at) = rest.find("[[") {
            rest = &rest[at + 2..];
            let Some(word) = directive_word(rest) else {
                continue;
            };
            let after = &rest[word.len() + 1..];
            rest = match word {
                "tool" | "tools" => script.calls(after)?,
                _ => {
                    let (value, after) = value(after).ok_or_else(|| unreadable(word, after))?;
                    script.take(word, value)?;
                    after
                }
            };
        }
        Ok(script)
    }

    fn take(&mut self, word: &str, value: &str) -> Result<(), String> {
        match (word, value) {
            ("say", text) => self.say = Some(text.to_owned()),
            ("words", count) => self.say = Some(numbered(number(word, count)?)),
            ("think", text) => self.think = Some(text.to_owned()),
            ("usage", "none") => self.no_usage = true,
            ("stop", "max_tokens") => self.max_tokens = true,
            ("delay", time) => self.delay = Some(Duration::from_millis(number(word, time)?)),
            ("fail", "none") => self.failure = None,
            ("fail", how) => self.failure = Some(failure(how)?),
            _ => return Err(unreadable(word, value)),
        }
        Ok(())
    }

    /// Parses one round of tool calls, up to the closing brackets; the arguments may contain
    /// brackets.
    fn calls<'a>(&mut self, text: &'a str) -> Result<&'a str, String> {
        let mut calls = Vec::new();
        let mut rest = text.trim_start();
        while !rest.starts_with("]]") {
            let end = rest.find(|c: char| c.is_whitespace() || c == ']');
            let end = end.ok_or_else(|| unreadable("tool", text))?;
            let name = rest[..end].to_owned();
            rest = rest[end..].trim_start();
            let arguments = if rest.starts_with('{') {
                let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
                let arguments = values.next().and_then(Result::ok);
                rest = rest[values.byte_offset()..].trim_start();
                arguments.ok_or_else(|| unreadable("tool", text))?
            } else {
                json!({})
            };
            calls.push(Call { name, arguments });
        }
        if calls.is_empty() || calls.iter().any(|call| call.name.is_empty()) {
            return Err(unreadable("tool", text));
        }
        self.rounds.push(calls);
        Ok(&rest[2..])
    }
}

/// Returns the word before the colon, if there is one: `[[ -f x ]]` and `[[Page]]` are not
/// directives.
fn directive_word(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_lowercase())?;
    (end > 0 && text[end..].starts_with(':')).then(|| &text[..end])
}

/// Splits at the closing brackets. Of more than two adjacent brackets, the last two close.
fn value(text: &str) -> Option<(&str, &str)> {
    let mut end = text.find("]]")?;
    while text[end + 2..].starts_with(']') {
        end += 1;
    }
    Some((&text[..end], &text[end + 2..]))
}

fn failure(how: &str) -> Result<Failure, String> {
    let mut parts = how.split(':');
    let kind = parts.next().and_then(Kind::parse);
    let mut failure = Failure {
        kind: kind.ok_or_else(|| unreadable("fail", how))?,
        after: None,
        times: None,
        retry_after: None,
    };
    for part in parts {
        match part.split_once('=') {
            Some(("after", count)) => failure.after = Some(number("fail", count)?),
            Some(("times", count)) => failure.times = Some(number("fail", count)?),
            Some(("retry_after", seconds)) => failure.retry_after = Some(seconds.to_owned()),
            _ => return Err(unreadable("fail", how)),
        }
    }
    Ok(failure)
}

fn number<N: std::str::FromStr>(word: &str, value: &str) -> Result<N, String> {
    value.parse().map_err(|_| unreadable(word, value))
}

fn numbered(count: usize) -> String {
    let words: Vec<String> = (1..=count).map(|n| format!("word{n}")).collect();
    words.join(" ")
}

fn unreadable(word: &str, value: &str) -> String {
    format!("the fake provider cannot read the directive [[{word}:{value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: Value) -> Call {
        Call {
            name: name.into(),
            arguments,
        }
    }

    #[test]
    fn directives_are_read_wherever_they_stand() {
        let script =
            Script::read("please [[say:a [b]]] and [[think:hm]] [[delay:5]] [[usage:none]]");
        let script = script.unwrap();
        assert_eq!(script.say.as_deref(), Some("a [b]"));
        assert_eq!(script.think.as_deref(), Some("hm"));
        assert_eq!(script.delay, Some(Duration::from_millis(5)));
        assert!(script.no_usage && !script.max_tokens);
        let script = Script::read("[[words:3]][[stop:max_tokens]]").unwrap();
        assert_eq!(script.say.as_deref(), Some("word1 word2 word3"));
        assert!(script.max_tokens);
    }

    #[test]
    fn calls_come_in_rounds_and_may_have_brackets() {
        let script = Script::read(r#"[[tool:a {"x":[[1]]}]] [[tools:b c {"y":"]]"}]]"#).unwrap();
        assert_eq!(
            script.rounds,
            [
                vec![call("a", json!({"x": [[1]]}))],
                vec![call("b", json!({})), call("c", json!({"y": "]]"}))],
            ]
        );
    }

    #[test]
    fn failures_have_options() {
        let read = |text: &str| Script::read(text).unwrap().failure.unwrap();
        assert_eq!(
            read("[[fail:429:times=2:retry_after=1]]"),
            Failure {
                kind: Kind::Status(429),
                after: None,
                times: Some(2),
                retry_after: Some("1".into()),
            }
        );
        assert_eq!(read("[[fail:drop:after=20]]").after, Some(20));
        let spent = Script::read("[[fail:500]]\n\n[[fail:none]]").unwrap();
        assert_eq!(spent.failure, None);
    }

    #[test]
    fn slips_are_errors_and_other_brackets_are_not() {
        for slip in [
            "[[sya:x]]",
            "[[say:x]",
            "[[words:many]]",
            "[[fail:tired]]",
            "[[fail:200]]",
            "[[fail:drop:until=3]]",
            "[[usage:all]]",
            "[[tool:]]",
            "[[tool:a {]]",
            "[[tool:a",
        ] {
            assert!(Script::read(slip).is_err(), "{slip}");
        }
        for plain in ["", "[[ -f x ]]", "[[Page]]", "[[", "a[[0]]", "[[page]]"] {
            assert_eq!(Script::read(plain), Ok(Script::default()), "{plain}");
        }
    }
}
