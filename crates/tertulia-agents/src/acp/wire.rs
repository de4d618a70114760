//! Converts between an agent's pipes and the messages of the protocol, one per line.

use std::io;
use std::sync::Arc;

use futures::{Sink, Stream, StreamExt, sink, stream};
use serde::Deserialize;
use tokio::sync::{Semaphore, mpsc};

/// Maximum length of a message in bytes.
const LINE_LIMIT: usize = 32 << 20;
/// Number of lines that are no messages and are ignored. Some programs greet or warn on stdout.
const NOISE_LIMIT: usize = 32;
/// Number of characters quoted from a line that is no message.
const QUOTED: usize = 200;

/// Splits an agent's output into messages and ignores a limited number of other lines.
#[derive(Debug, Default)]
pub(super) struct MessageFilter {
    rest: Vec<u8>,
    lines: usize,
    noise: Noise,
}

/// One message of the agent, as received.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    text: String,
    /// Whether it is a session update. Nothing else can come in large numbers.
    news: bool,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    method: Option<String>,
}

/// Output of a program that is no message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Noise {
    /// Beginning of the last such line.
    pub(super) last: Option<String>,
    /// Whether there was so much of it that the program cannot speak the protocol.
    pub(super) too_much: bool,
}

impl MessageFilter {
    /// Returns the messages that this chunk completes, or an error if the program does not speak
    /// the protocol.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<Vec<Message>, NotTheProtocol> {
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

    /// Returns the ignored output, to explain a failure.
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

    fn message(&mut self, line: &[u8]) -> Result<Option<Message>, NotTheProtocol> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        if let Ok(head) = serde_json::from_str::<Head>(text) {
            return Ok(Some(Message {
                text: text.to_owned(),
                news: head.method.as_deref() == Some("session/update"),
            }));
        }
        self.lines += 1;
        if self.lines > NOISE_LIMIT {
            return Err(self.give_up(text));
        }
        self.noise.last = Some(text.chars().take(QUOTED).collect());
        Ok(None)
    }
}

/// The program does not speak the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the Agent Client Protocol")]
pub(super) struct NotTheProtocol;

/// Streams the agent's messages. Calls `heard` whenever bytes have arrived, with the sieve. Each
/// update takes a permit of `room`, which its consumer returns: so an agent that sends faster than
/// updates are consumed has to wait, and does not fill the memory.
pub(super) fn messages(
    output: mpsc::Receiver<Vec<u8>>,
    room: Arc<Semaphore>,
    heard: impl Fn(&MessageFilter) + Send + 'static,
) -> impl Stream<Item = io::Result<String>> + Send {
    let chunks = stream::unfold(
        (output, MessageFilter::default(), heard),
        async |(mut output, mut sieve, heard)| {
            let chunk = output.recv().await?;
            let messages: Vec<Result<Message, NotTheProtocol>> = match sieve.push(&chunk) {
                Ok(messages) => messages.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            };
            heard(&sieve);
            Some((stream::iter(messages), (output, sieve, heard)))
        },
    );
    chunks.flatten().then(move |message| {
        let room = room.clone();
        async move {
            let message = message.map_err(io::Error::other)?;
            if message.news {
                room.acquire().await.map_err(io::Error::other)?.forget();
            }
            Ok(message.text)
        }
    })
}

/// Returns the sink for messages to the agent. Dropping it closes the agent's standard input. A
/// message that the agent does not read is no failure of the connection: the agent's output or exit
/// shows what happened.
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

    fn texts(messages: Result<Vec<Message>, NotTheProtocol>) -> Vec<String> {
        let messages = messages.unwrap().into_iter();
        messages.map(|message| message.text).collect()
    }

    #[tokio::test]
    async fn one_that_talks_faster_than_anybody_listens_has_to_wait() {
        let (bytes, output) = mpsc::channel(8);
        let news = "{\"method\":\"session/update\"}\n".repeat(3);
        bytes.send(news.into_bytes()).await.unwrap();
        bytes.send(b"{\"id\":1}\n".to_vec()).await.unwrap();
        let room = Arc::new(Semaphore::new(2));
        let mut messages = Box::pin(messages(output, room.clone(), |_| {}));
        assert!(messages.next().await.is_some() && messages.next().await.is_some());
        assert!(futures::poll!(messages.next()).is_pending());
        room.add_permits(1);
        assert!(messages.next().await.is_some());
        assert_eq!(messages.next().await.unwrap().unwrap(), "{\"id\":1}");
    }

    #[test]
    fn messages_are_cut_wherever_the_chunks_end() {
        let mut sieve = MessageFilter::default();
        let whole = "{\"a\":\"ż\"}\r\n\n{\"b\":2}\n{\"c\"".as_bytes();
        let mut found = Vec::new();
        for byte in whole.chunks(1) {
            found.extend(texts(sieve.push(byte)));
        }
        assert_eq!(found, ["{\"a\":\"ż\"}", "{\"b\":2}"]);
        assert_eq!(texts(sieve.push(b":3}\n")), ["{\"c\":3}"]);
        assert_eq!(*sieve.noise(), Noise::default());
    }

    #[test]
    fn a_little_noise_falls_through_and_much_of_it_is_not_the_protocol() {
        let mut sieve = MessageFilter::default();
        assert_eq!(texts(sieve.push(b"Welcome!\n{\"a\":1}\n")), ["{\"a\":1}"]);
        assert_eq!(sieve.noise().last.as_deref(), Some("Welcome!"));
        assert!(!sieve.noise().too_much);
        let flood = "{ not json\n".repeat(NOISE_LIMIT);
        assert_eq!(sieve.push(flood.as_bytes()), Err(NotTheProtocol));
        assert_eq!(sieve.noise().last.as_deref(), Some("{ not json"));
        assert!(sieve.noise().too_much);
    }

    #[test]
    fn a_line_without_end_is_not_kept_for_ever() {
        let mut sieve = MessageFilter::default();
        let chunk = vec![b'x'; 1 << 20];
        let ended = (0..64).find(|_| sieve.push(&chunk).is_err());
        assert_eq!(ended, Some(32));
    }
}
