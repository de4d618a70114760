//! Follows a session that another program writes to: reads its log, and the answer that is being
//! written, and turns both into events.

use tertulia_core::entry::Entry;
use tertulia_core::id::{EntryId, SessionId};
use tertulia_core::session::{SessionMeta, Status};
use tertulia_store::{Draft, Sessions, StoreError, StoreResult};

use crate::event::{SessionEvent, SessionState, Tone};
use crate::text::entries;

/// Entries per read.
const PAGE: usize = 100;

/// A session that is read along.
#[derive(Debug)]
pub struct Following {
    sessions: Sessions,
    meta: SessionMeta,
    /// Whether an answer is due.
    is_running: bool,
    /// The answer that is being written, and how much of it was reported.
    draft: Option<(EntryId, usize)>,
}

/// What has happened in a session.
#[derive(Debug, Default)]
pub struct Changes {
    /// Events since the last look.
    pub events: Vec<SessionEvent>,
    /// Whether a program has the session open.
    pub is_open: bool,
}

impl Following {
    /// Follows a session from the entry where `meta` ends.
    pub fn new(sessions: Sessions, meta: SessionMeta) -> Following {
        Following {
            sessions,
            meta,
            is_running: false,
            draft: None,
        }
    }

    /// Returns the metadata of the session as far as it was read.
    pub fn meta(&self) -> &SessionMeta {
        &self.meta
    }

    /// Returns the state of the session, as events report it.
    pub fn state(&self) -> SessionState {
        SessionState {
            meta: Some(self.meta.clone()),
            ..SessionState::blank(self.meta.id)
        }
    }

    /// Returns the name of the program that has the session open.
    pub async fn holder(&self) -> StoreResult<Option<String>> {
        let holder = self.sessions.store().holder(self.meta.id).await?;
        Ok(holder.map(|holder| holder.to_string()))
    }

    /// Looks at the session.
    pub async fn changes(&mut self) -> StoreResult<Changes> {
        let id = self.meta.id;
        let row = self.sessions.row(id).await?;
        let mut events = Vec::new();
        if row.meta.head != self.meta.head {
            self.read_entries(id, &mut events).await?;
        }
        // A program that was killed leaves an answer that is due for ever.
        let is_running = row.open && self.meta.status == Status::Active;
        if is_running && !self.is_running {
            events.push(SessionEvent::Began);
        }
        if is_running && let Some(draft) = self.sessions.store().draft(id).await? {
            self.read_draft(draft, &mut events);
        }
        if self.is_running && !is_running {
            let floor = Box::new(self.state());
            events.push(SessionEvent::Over { floor });
        }
        self.is_running = is_running;
        Ok(Changes {
            events,
            is_open: row.open,
        })
    }

    async fn read_entries(
        &mut self,
        id: SessionId,
        events: &mut Vec<SessionEvent>,
    ) -> StoreResult<()> {
        loop {
            let (after, before) = (self.meta.head.seq, Some(self.meta.head));
            let Some((log, last)) = self.sessions.load_next(id, after, before, PAGE).await? else {
                return Ok(());
            };
            for line in entries::damage(&log.damage) {
                let text = format!("damaged: {line}");
                events.push(SessionEvent::notice(Tone::Warning, text));
            }
            for entry in &log.entries {
                self.read_entry(entry, events);
            }
            if self.meta.head.seq < last {
                let words = format!("the end of session {} cannot be read", id.short());
                return Err(StoreError::Refused(words));
            }
        }
    }

    fn read_entry(&mut self, entry: &Entry, events: &mut Vec<SessionEvent>) {
        self.meta.apply(entry);
        if self.draft.is_some_and(|(id, _)| id == entry.id) {
            self.draft = None;
        }
        events.push(SessionEvent::durable(entry));
    }

    /// Reports what was added to the answer that is being written.
    fn read_draft(&mut self, draft: Draft, events: &mut Vec<SessionEvent>) {
        let told = match self.draft {
            Some((id, told)) if id == draft.id => told,
            _ => {
                events.push(SessionEvent::Asked {
                    speaker: draft.speaker,
                });
                0
            }
        };
        // What was told of the reasoning is not known: it comes whole, before the text.
        if told == 0
            && let Some(text) = draft.reasoning
            && !draft.content.is_empty()
        {
            events.push(SessionEvent::Thought { text });
        }
        // Less than before, or other text: the whole answer comes at its end.
        if let Some(text) = draft.content.get(told..).filter(|text| !text.is_empty()) {
            let text = text.to_owned();
            events.push(SessionEvent::Text { text });
        }
        self.draft = Some((draft.id, draft.content.len().max(told)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use tertulia_core::clock::Clock;
    use tertulia_core::entry::{Body, Kind, Role, Speaker, SpeakerKind, human, plain};
    use tertulia_store::sqlite::SqliteStore;
    use tertulia_store::{Redaction, Start};
    use uuid::Uuid;

    use super::*;

    fn sessions() -> Sessions {
        let store = Arc::new(SqliteStore::in_memory().unwrap());
        let clock = Clock::new(Timestamp::now, Uuid::now_v7);
        Sessions::new(store, clock, Redaction::On)
    }

    fn said(text: &str) -> Body {
        Body::Message(plain(&human(), Role::User, text.to_owned()))
    }

    fn agent() -> Speaker {
        Speaker {
            id: "demo".to_owned(),
            name: "demo".to_owned(),
            display_name: "Demo".to_owned(),
            kind: SpeakerKind::Ai,
        }
    }

    fn kinds(changes: &Changes) -> Vec<String> {
        let kind = |event: &SessionEvent| match event {
            SessionEvent::Text { text } => format!("text {text}"),
            SessionEvent::Durable { .. } => {
                let entry = event.entry().unwrap();
                let message = entry.message().map(|message| message.content.clone());
                format!("entry {}", message.unwrap_or_default())
            }
            SessionEvent::Asked { speaker } => format!("asked {}", speaker.id),
            SessionEvent::Began => "began".to_owned(),
            SessionEvent::Over { .. } => "over".to_owned(),
            event => format!("{event:?}"),
        };
        changes.events.iter().map(kind).collect()
    }

    #[tokio::test]
    async fn entries_and_the_growing_answer_are_reported_once() {
        let sessions = sessions();
        let start = Start {
            id: sessions.clock().session_id(),
            kind: Kind::Chat,
            title: None,
            team: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
        };
        let (meta, _) = sessions.create(&start, vec![said("before")]).await.unwrap();
        let mut following = Following::new(sessions.clone(), meta.clone());
        let lock = sessions.store().claim(meta.id).await.unwrap().unwrap();
        assert_eq!(kinds(&following.changes().await.unwrap()), ["began"]);
        let entries = sessions.append(meta.id, meta.head, vec![said("now")]);
        let head = entries.await.unwrap()[0].head();
        let mut draft = Draft {
            after: head,
            id: sessions.clock().entry_id(),
            at: Timestamp::now(),
            speaker: agent(),
            model: None,
            thread: None,
            content: "It is ".to_owned(),
            reasoning: None,
            sealed: false,
        };
        // The last word of a draft may be half a secret, so it is kept back.
        sessions.keep_draft(meta.id, draft.clone()).await.unwrap();
        let changes = following.changes().await.unwrap();
        assert_eq!(kinds(&changes), ["entry now", "asked demo", "text It is "]);
        assert!(changes.is_open);
        assert!(following.changes().await.unwrap().events.is_empty());
        draft.content.push_str("a café ");
        sessions.keep_draft(meta.id, draft).await.unwrap();
        assert_eq!(kinds(&following.changes().await.unwrap()), ["text a café "]);
        let answer = plain(&agent(), Role::Assistant, "It is a café.".to_owned());
        let answer = Body::Message(answer);
        sessions.append(meta.id, head, vec![answer]).await.unwrap();
        drop(lock);
        let changes = following.changes().await.unwrap();
        assert_eq!(kinds(&changes), ["entry It is a café.", "over"]);
        assert!(!changes.is_open);
        assert_eq!(following.meta().messages, 3);
    }
}
