//! Bounded queue of replies to a client. A client that does not read is disconnected with a reason,
//! and delays no other. Queued pieces of text are joined, so that slow reading costs little.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::protocol::{Answer, ErrorBody, ErrorKind, Id, PageEntry, Reply};
use tertulia_engine::event::SessionEvent;

/// Limits of an outbox.
#[derive(Clone, Copy, Debug)]
pub struct OutboxLimits {
    /// Maximum bytes.
    pub bytes: usize,
    /// Maximum lines.
    pub lines: usize,
}

impl Default for OutboxLimits {
    fn default() -> OutboxLimits {
        OutboxLimits {
            bytes: 24_000_000,
            lines: 20_000,
        }
    }
}

/// Reply queue. Clones share one queue.
#[derive(Clone, Debug)]
pub struct Outbox {
    inside: Arc<Inside>,
}

#[derive(Debug)]
struct Inside {
    limits: OutboxLimits,
    waiting: Mutex<Waiting>,
    more: Notify,
    /// Notified when replies are taken out.
    less: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    replies: VecDeque<(Reply, usize)>,
    bytes: usize,
    end: Option<End>,
}

/// Why an outbox is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All replies are in.
    Said,
    /// The client did not read.
    TooSlow,
}

impl Outbox {
    /// Creates an empty outbox.
    pub fn new(limits: OutboxLimits) -> Outbox {
        Outbox {
            inside: Arc::new(Inside {
                limits,
                waiting: Mutex::default(),
                more: Notify::new(),
                less: Notify::new(),
            }),
        }
    }

    /// Adds a reply. If a limit is exceeded, an error replaces everything in the queue.
    pub fn post(&self, id: Option<&Id>, answer: Answer) {
        {
            let mut waiting = self.waiting();
            if waiting.end.is_some() {
                return;
            }
            let reply = Reply {
                id: id.cloned(),
                answer,
            };
            waiting.take_in(reply);
            let OutboxLimits { bytes, lines } = self.inside.limits;
            // A slow client is dropped: it has not read what was posted to it.
            if waiting.bytes > bytes || waiting.replies.len() > lines {
                waiting.give_up();
            }
        }
        self.inside.more.notify_one();
    }

    /// Closes the outbox; queued replies are still written.
    pub fn close(&self) {
        self.waiting().end.get_or_insert(End::Said);
        self.inside.more.notify_one();
        self.inside.less.notify_waiters();
    }

    /// Returns why the outbox is closed, if it is.
    pub fn end(&self) -> Option<End> {
        self.waiting().end
    }

    /// Waits for replies and takes out about `most` bytes of them. Returns `None` when closed and
    /// empty.
    pub async fn take(&self, most: usize) -> Option<Vec<Reply>> {
        loop {
            {
                let mut waiting = self.waiting();
                let taken = waiting.take_out(most);
                if !taken.is_empty() {
                    drop(waiting);
                    self.inside.less.notify_waiters();
                    return Some(taken);
                }
                if waiting.end.is_some() {
                    return None;
                }
            }
            // A permit is stored if a reply was added meanwhile.
            self.inside.more.notified().await;
        }
    }

    /// Waits until the queue is mostly empty: backpressure for clients that send faster than they
    /// read.
    pub async fn eased(&self) {
        loop {
            let eased = self.inside.less.notified();
            tokio::pin!(eased);
            eased.as_mut().enable();
            {
                let waiting = self.waiting();
                let OutboxLimits { bytes, lines } = self.inside.limits;
                let little = waiting.bytes < bytes / 4 && waiting.replies.len() < lines / 4;
                if little || waiting.end.is_some() {
                    return;
                }
            }
            eased.await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        let waiting = self.inside.waiting.lock();
        waiting.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn take_in(&mut self, reply: Reply) {
        let weight = weight(&reply.answer);
        let rest = match self.replies.back_mut() {
            Some((last, heavy)) => {
                let before = text_of(&last.answer).map_or(0, str::len);
                let rest = join(last, reply);
                if rest.is_none() {
                    let grown = text_of(&last.answer).map_or(0, str::len) - before;
                    *heavy += grown;
                    self.bytes += grown;
                }
                rest
            }
            None => Some(reply),
        };
        if let Some(reply) = rest {
            self.bytes += weight;
            self.replies.push_back((reply, weight));
        }
    }

    fn take_out(&mut self, most: usize) -> Vec<Reply> {
        let mut taken = Vec::new();
        let mut sum = 0;
        while sum < most
            && let Some((reply, weight)) = self.replies.pop_front()
        {
            sum += weight;
            self.bytes -= weight;
            taken.push(reply);
        }
        taken
    }

    fn give_up(&mut self) {
        let trouble = ErrorBody::new(
            ErrorKind::TooSlow,
            format!(
                "{} lines wait to be read, more than are kept for a client that does not read",
                self.replies.len()
            ),
        )
        .hint("connect again and read what is sent as it comes");
        let reply = Reply {
            id: None,
            answer: Answer::Error(trouble),
        };
        self.replies = VecDeque::from([(reply, 0)]);
        self.bytes = 0;
        self.end = Some(End::TooSlow);
    }
}

/// Joins a piece of text with the previous reply, or returns it unchanged.
fn join(last: &mut Reply, later: Reply) -> Option<Reply> {
    if last.id != later.id {
        return Some(later);
    }
    match (&mut last.answer, later.answer) {
        (
            Answer::Token { text, speaker },
            Answer::Token {
                text: more,
                speaker: by,
            },
        ) if *speaker == by => {
            text.push_str(&more);
            None
        }
        (
            Answer::Event {
                session_id,
                n,
                replayed,
                event,
            },
            Answer::Event {
                session_id: other,
                n: number,
                replayed: again,
                event: next,
            },
        ) if *session_id == other && *replayed == again => match (event.as_mut(), *next) {
            (SessionEvent::Text { text }, SessionEvent::Text { text: more })
            | (SessionEvent::Thought { text }, SessionEvent::Thought { text: more }) => {
                text.push_str(&more);
                *n = number;
                None
            }
            (_, next) => Some(Reply {
                id: later.id,
                answer: Answer::Event {
                    session_id: other,
                    n: number,
                    replayed: again,
                    event: Box::new(next),
                },
            }),
        },
        (_, answer) => Some(Reply {
            id: later.id,
            answer,
        }),
    }
}

fn text_of(answer: &Answer) -> Option<&str> {
    match answer {
        Answer::Token { text, .. } => Some(text),
        Answer::Event { event, .. } => match event.as_ref() {
            SessionEvent::Text { text } | SessionEvent::Thought { text } => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the approximate size of its line in bytes.
fn weight(answer: &Answer) -> usize {
    let size = match answer {
        Answer::Token { text, .. }
        | Answer::Block { text, .. }
        | Answer::Notice { text, .. }
        | Answer::ToolRequest { preview: text, .. }
        | Answer::ToolResult { output: text, .. }
        | Answer::SessionExported { content: text } => text.len(),
        Answer::Event { event, .. } => event.weight(),
        Answer::Message { message, .. } => {
            let content = message.get("content").and_then(|content| content.as_str());
            content.map_or(0, str::len) + 512
        }
        Answer::SessionLoaded {
            messages: Some(messages),
            ..
        } => messages
            .iter()
            .map(|message| message.to_string().len())
            .sum(),
        Answer::SessionListResult { sessions, .. } => sessions.len() * 400,
        Answer::SessionSearchResult { hits, .. } => hits.len() * 600,
        Answer::SessionPageResult { entries, .. } => entries.iter().map(weight_of_entry).sum(),
        Answer::Rendered { html } => html.len(),
        Answer::PsResult { talks, .. } => talks.len() * 300,
        _ => 128,
    };
    size + 64
}

fn weight_of_entry(entry: &PageEntry) -> usize {
    entry.html.len() + entry.text.as_ref().map_or(0, String::len) + 512
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Answer {
        Answer::Token {
            text: text.into(),
            speaker: None,
        }
    }

    fn hosted(bytes: usize, lines: usize) -> Outbox {
        Outbox::new(OutboxLimits { bytes, lines })
    }

    #[test]
    fn a_page_weighs_what_it_holds() {
        let entry = PageEntry {
            html: "x".repeat(100_000),
            text: Some("x".repeat(50_000)),
            ..serde_json::from_value(serde_json::json!({
                "seq": 1, "id": "", "at": "", "type": "message", "html": "",
            }))
            .unwrap()
        };
        assert!(weight_of_entry(&entry) > 150_000);
        let html = "x".repeat(100_000);
        assert!(weight(&Answer::Rendered { html }) > 100_000);
    }

    #[tokio::test]
    async fn pieces_that_wait_are_joined() {
        let outbox = hosted(10_000, 10);
        let (one, two) = (Id::Number(1), Id::Number(2));
        for piece in ["a", "b", "c"] {
            outbox.post(Some(&one), token(piece));
        }
        outbox.post(Some(&two), token("d"));
        let taken = outbox.take(1_000_000).await.unwrap();
        let texts: Vec<_> = taken
            .iter()
            .filter_map(|reply| text_of(&reply.answer))
            .collect();
        assert_eq!(texts, ["abc", "d"]);
        assert_eq!(outbox.waiting().bytes, 0);
    }

    #[tokio::test]
    async fn whoever_does_not_read_is_told_why_and_kept_small() {
        let outbox = hosted(1_000, 10);
        for n in 0..100 {
            outbox.post(Some(&Id::Number(n)), token(&"x".repeat(50)));
        }
        assert_eq!(outbox.end(), Some(End::TooSlow));
        let taken = outbox.take(1_000_000).await.unwrap();
        assert!(
            matches!(&taken[..], [Reply { answer: Answer::Error(trouble), .. }] if trouble.kind == ErrorKind::TooSlow)
        );
        assert_eq!(outbox.take(1).await, None);
    }

    #[tokio::test]
    async fn whoever_asks_too_fast_waits() {
        let outbox = hosted(100_000, 40);
        for n in 0..20 {
            outbox.post(Some(&Id::Number(n)), token("x"));
        }
        let ours = outbox.clone();
        let waits = tokio::spawn(async move { ours.eased().await });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        outbox.take(1_000_000).await.unwrap();
        waits.await.unwrap();
    }

    #[tokio::test]
    async fn what_waits_is_written_after_the_end() {
        let outbox = hosted(1_000, 10);
        outbox.post(None, token("a"));
        outbox.close();
        outbox.post(None, token("b"));
        assert_eq!(outbox.take(1_000).await.unwrap().len(), 1);
        assert_eq!(outbox.take(1_000).await, None);
    }
}
