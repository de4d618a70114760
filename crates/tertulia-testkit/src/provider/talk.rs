//! API-independent requests and replies.

use super::script::{Call, Kind, Script};

/// Answer to texts that contain `unicode`: Polish, Chinese, a family emoji with zero-width joiners,
/// Hebrew.
pub const UNICODE: &str = "zażółć gęślą jaźń 今天天气很好 👩‍👩‍👧‍👦 שלום עולם";

/// The parts of a request that determine the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Talk {
    pub model: String,
    /// Whether to stream the answer.
    pub stream: bool,
    /// Whether a streamed answer includes usage.
    pub wants_usage: bool,
    /// Number of messages, except system messages.
    pub messages: usize,
    /// System prompt.
    pub system: String,
    pub turns: Vec<Turn>,
}

/// A turn of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    User(String),
    Assistant(String),
    /// Results of one round of tools.
    Results(Vec<String>),
}

impl Talk {
    /// Returns the last user message.
    pub fn prompt(&self) -> &str {
        let mut said = self.turns.iter().rev();
        said.find_map(|turn| match turn {
            Turn::User(text) => Some(text.as_str()),
            _ => None,
        })
        .unwrap_or_default()
    }

    /// Returns the part of the prompt that may contain directives. A summary request may include
    /// the conversation below its first line, whose directives must not be executed again.
    pub fn directives(&self) -> &str {
        let prompt = self.prompt();
        if self.asks_for_summary() {
            return prompt.lines().next().unwrap_or_default();
        }
        prompt
    }

    fn asks_for_summary(&self) -> bool {
        self.prompt().starts_with("Summarise")
    }

    /// Returns the tool results since the last user message, by round.
    fn rounds(&self) -> Vec<&[String]> {
        let since = self.turns.iter().rev();
        let since = since.take_while(|turn| !matches!(turn, Turn::User(_)));
        let mut rounds: Vec<&[String]> = since
            .filter_map(|turn| match turn {
                Turn::Results(results) => Some(results.as_slice()),
                _ => None,
            })
            .collect();
        rounds.reverse();
        rounds
    }

    /// Returns the size in words, which count as tokens here.
    fn size(&self) -> usize {
        let count = |text: &str| text.split_whitespace().count();
        let said = self.turns.iter().map(|turn| match turn {
            Turn::User(text) | Turn::Assistant(text) => count(text),
            Turn::Results(results) => results.iter().map(|result| count(result)).sum(),
        });
        said.sum::<usize>() + count(&self.system)
    }

    /// Returns the reply.
    pub fn reply(&self, script: &Script, number: usize) -> Reply {
        let rounds = self.rounds();
        let calls = script.rounds.get(rounds.len()).cloned().unwrap_or_default();
        let thinking = script.think.clone().unwrap_or_default();
        let mut text = if calls.is_empty() {
            self.words(script, &rounds)
        } else {
            String::new()
        };
        let refusal = script.failure.as_ref();
        let refusal = refusal.filter(|failure| failure.kind == Kind::Refusal);
        if let Some(refusal) = refusal {
            let before = tokens(&text).into_iter().take(refusal.after.unwrap_or(0));
            text = before.collect();
        }
        let stop = match refusal {
            Some(_) => Stop::Refusal,
            None if script.max_tokens => Stop::MaxTokens,
            None if !calls.is_empty() => Stop::Calls,
            None => Stop::End,
        };
        let usage = Usage {
            input: self.size(),
            output: tokens(&thinking).len() + tokens(&text).len() + calls.len(),
        };
        Reply {
            number,
            model: self.model.clone(),
            thinking,
            text,
            calls,
            stop,
            usage: (!script.no_usage).then_some(usage),
        }
    }

    fn words(&self, script: &Script, rounds: &[&[String]]) -> String {
        if let Some(text) = &script.say {
            return text.clone();
        }
        if self.asks_for_summary() {
            return format!("SUMMARY of {} messages", self.messages);
        }
        if let Some(result) = rounds.last().and_then(|results| results.last()) {
            return format!("tool said: {result}");
        }
        let prompt = self.prompt();
        if prompt.contains("unicode") {
            return UNICODE.to_owned();
        }
        format!("echo #{}: {prompt}", self.messages)
    }
}

/// A reply, independent of the API.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Number of the request, part of generated ids.
    pub number: usize,
    pub model: String,
    pub thinking: String,
    pub text: String,
    pub calls: Vec<Call>,
    pub stop: Stop,
    pub usage: Option<Usage>,
}

/// Stop reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    End,
    Calls,
    MaxTokens,
    Refusal,
}

/// Token usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub input: usize,
    pub output: usize,
}

/// Splits a text into tokens: words with the space before them. Concatenated they are the text.
pub fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.find(|c: char| !c.is_whitespace());
        let end = word.and_then(|word| {
            let length = rest[word..].find(char::is_whitespace)?;
            Some(word + length)
        });
        // Trailing space belongs to the last word.
        let end = end.filter(|end| !rest[*end..].trim().is_empty());
        let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
        tokens.push(token);
        rest = after;
    }
    tokens
}

/// Returns the signature of thinking, to recognise the fake's own: equal for equal text.
pub fn signature(thought: &str) -> String {
    blake3::hash(thought.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(turns: Vec<Turn>) -> Talk {
        Talk {
            messages: turns.len(),
            turns,
            ..Talk::default()
        }
    }

    fn text(turns: Vec<Turn>) -> String {
        let talk = talk(turns);
        let script = Script::read(talk.directives()).unwrap();
        talk.reply(&script, 1).text
    }

    fn user(words: &str) -> Turn {
        Turn::User(words.into())
    }

    #[test]
    fn tokens_are_the_text() {
        for text in ["", "a", " a  b\n", "\n", "word1 word2 word3", "今天 天气"] {
            assert_eq!(tokens(text).concat(), text);
        }
        assert_eq!(tokens(" a  b\n"), [" a", "  b\n"]);
        assert_eq!(tokens("word1 word2 word3").len(), 3);
    }

    #[test]
    fn the_last_words_of_the_user_decide() {
        let turns = vec![user("[[say:x]]"), Turn::Assistant("x".into()), user("hi")];
        assert_eq!(text(turns), "echo #3: hi");
        assert_eq!(text(vec![user("in unicode please")]), UNICODE);
        let meta = vec![user("a"), user("Summarise this:\n[[fail:500]] [[bad:x]]")];
        assert_eq!(text(meta), "SUMMARY of 2 messages");
    }

    #[test]
    fn calls_come_round_by_round() {
        let mut turns = vec![user("[[tool:a]] [[tools:b c]]")];
        let mut names: Vec<Vec<String>> = Vec::new();
        for round in 0..3 {
            let talk = talk(turns.clone());
            let reply = talk.reply(&Script::read(talk.prompt()).unwrap(), 1);
            names.push(reply.calls.iter().map(|call| call.name.clone()).collect());
            turns.push(Turn::Assistant(String::new()));
            turns.push(Turn::Results(vec!["x".into(), format!("result {round}")]));
        }
        let expected: [Vec<String>; 3] = [vec!["a".into()], vec!["b".into(), "c".into()], vec![]];
        assert_eq!(names, expected);
        turns.truncate(5);
        assert_eq!(text(turns), "tool said: result 1");
    }

    #[test]
    fn the_cost_is_counted_in_words() {
        let mut talk = talk(vec![user("[[words:4]] [[think:a b]]")]);
        talk.system = "be brief".into();
        let reply = talk.reply(&Script::read(talk.prompt()).unwrap(), 1);
        let expected = Usage {
            input: 5,
            output: 6,
        };
        assert_eq!(reply.usage, Some(expected));
    }
}
