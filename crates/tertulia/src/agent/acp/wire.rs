//! The line between an agent's pipes and the protocol: bytes become lines, lines become bytes.

use std::io;

use futures::{Sink, Stream, sink, stream};
use serde::de::IgnoredAny;
use tokio::sync::mpsc;

/// Longest message that is read.
const LINE_LIMIT: usize = 32 << 20;
/// How many lines that are no messages are let pass. Some programs greet or warn on stdout.
const NOISE_LIMIT: usize = 32;
/// How much of a line that is no message is quoted.
const QUOTED: usize = 200;

/// Cuts an agent's output into messages and lets a little noise fall through.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    rest: Vec<u8>,
    lines: usize,
    noise: Noise,
}

/// What a program wrote that is no message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Noise {
    /// The beginning of its last such line.
    pub(super) last: Option<String>,
    /// Whether it was so much that the program cannot mean the protocol.
    pub(super) too_much: bool,
}

impl Sieve {
    /// The messages that this chunk completes. An error if the program does not speak the protocol.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<Vec<String>, NotTheProtocol> {
        let mut messages = Vec::new();
        let mut parts = chunk.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            self.rest.extend_from_slice(part);
            if self.rest.len() > LINE_LIMIT {
                let line = std::mem::take(&mut self.rest);
                return Err(self.give_up(&String::from_utf8_lossy(&line)));
            }
            // The last part has no end yet.
            if parts.peek().is_some() {
                let line = std::mem::take(&mut self.rest);
                messages.extend(self.message(&line)?);
            }
        }
        Ok(messages)
    }

    /// What fell through so far, for the one who looks for a reason.
    pub(super) fn noise(&self) -> &Noise {
        &self.noise
    }

    fn give_up(&mut self, line: &str) -> NotTheProtocol {
        self.noise = Noise {
            last: Some(line.chars().take(QUOTED).collect()),
            too_much: true,
        };
        NotTheProtocol
    }

    fn message(&mut self, line: &[u8]) -> Result<Option<String>, NotTheProtocol> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        if text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok() {
            return Ok(Some(text.to_owned()));
        }
        self.lines += 1;
        if self.lines > NOISE_LIMIT {
            return Err(self.give_up(text));
        }
        self.noise.last = Some(text.chars().take(QUOTED).collect());
        Ok(None)
    }
}

/// The program writes something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the Agent Client Protocol")]
pub(super) struct NotTheProtocol;

/// The agent's messages. `heard` is told whenever bytes have come, with what fell through the sieve.
pub(super) fn messages(
    output: mpsc::Receiver<Vec<u8>>,
    heard: impl Fn(&Sieve) + Send + 'static,
) -> impl Stream<Item = io::Result<String>> + Send {
    let lines = stream::unfold(
        (output, Sieve::default(), heard),
        async |(mut output, mut sieve, heard)| {
            let chunk = output.recv().await?;
            let lines: Vec<io::Result<String>> = match sieve.push(&chunk) {
                Ok(lines) => lines.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(io::Error::other(error))],
            };
            heard(&sieve);
            Some((stream::iter(lines), (output, sieve, heard)))
        },
    );
    futures::StreamExt::flatten(lines)
}

/// Where messages to the agent go. Dropping it closes the agent's standard input. What an agent does not
/// read is no failure of the connection: what it writes, or that it ends, says what became of it.
pub(super) fn lines_to(
    input: mpsc::Sender<Vec<u8>>,
) -> impl Sink<String, Error = io::Error> + Send {
    sink::unfold(input, async |input, line: String| {
        let _ = input.send((line + "\n").into_bytes()).await;
        Ok(input)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_wherever_the_chunks_end() {
        let mut sieve = Sieve::default();
        let whole = "{\"a\":\"ż\"}\r\n\n{\"b\":2}\n{\"c\"".as_bytes();
        let mut found = Vec::new();
        for byte in whole.chunks(1) {
            found.extend(sieve.push(byte).unwrap());
        }
        assert_eq!(found, ["{\"a\":\"ż\"}", "{\"b\":2}"]);
        assert_eq!(sieve.push(b":3}\n").unwrap(), ["{\"c\":3}"]);
        assert_eq!(*sieve.noise(), Noise::default());
    }

    #[test]
    fn a_little_noise_falls_through_and_much_of_it_is_not_the_protocol() {
        let mut sieve = Sieve::default();
        assert_eq!(sieve.push(b"Welcome!\n{\"a\":1}\n").unwrap(), ["{\"a\":1}"]);
        assert_eq!(sieve.noise().last.as_deref(), Some("Welcome!"));
        assert!(!sieve.noise().too_much);
        let flood = "{ not json\n".repeat(NOISE_LIMIT);
        assert_eq!(sieve.push(flood.as_bytes()), Err(NotTheProtocol));
        assert_eq!(sieve.noise().last.as_deref(), Some("{ not json"));
        assert!(sieve.noise().too_much);
    }

    #[test]
    fn a_line_without_end_is_not_kept_for_ever() {
        let mut sieve = Sieve::default();
        let chunk = vec![b'x'; 1 << 20];
        let ended = (0..64).find(|_| sieve.push(&chunk).is_err());
        assert_eq!(ended, Some(32));
    }
}
