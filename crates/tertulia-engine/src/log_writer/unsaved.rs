//! The held entries of a writer as a file for `import`.

use super::{LogState, LogWriter};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::Seq;
use tertulia_core::jsonl;
use tertulia_core::session::{Line, SessionMeta};
use tertulia_store::{Start, StoreResult};

impl LogWriter {
    /// Returns the whole log followed by the held entries, as lines for `import`.
    pub async fn unsaved_log(&self) -> StoreResult<Vec<String>> {
        let mut lines = Vec::new();
        let (head, mut bodies) = match &self.log {
            LogState::Unborn(start) => match self.begun.last() {
                Some(last) => {
                    lines.extend(self.begun.iter().map(|entry| entry.line().to_owned()));
                    let rest = self.unsaved.get(self.begun.len() - 1..);
                    let rest = rest.unwrap_or_default().to_vec();
                    let rest = self.sessions.chain(start.id, &last.head(), rest).await?;
                    lines.extend(rest.iter().map(|entry| entry.line().to_owned()));
                    return Ok(lines);
                }
                None => (Head::START, vec![start.opening()]),
            },
            LogState::Open(meta) => {
                let read = self
                    .sessions
                    .store()
                    .read(meta.id, Seq::START, usize::MAX)
                    .await;
                match read {
                    Ok(read) if !ends_at(&read, &meta.head) => {
                        return self.unsaved_session(meta).await;
                    }
                    Ok(read) => lines.extend(
                        read.iter()
                            .filter(|line| line.seq <= meta.head.seq)
                            .map(|line| String::from_utf8_lossy(&line.bytes).into_owned()),
                    ),
                    // Unreadable now: with this heading, the held entries can be imported later.
                    Err(_) => lines.push(jsonl::heading(meta.id, meta.head)),
                }
                (meta.head, Vec::new())
            }
        };
        bodies.extend(self.unsaved.iter().cloned());
        lines.extend(
            self.sessions
                .chain(self.id(), &head, bodies)
                .await?
                .iter()
                .map(|entry| entry.line().to_owned()),
        );
        Ok(lines)
    }

    /// Returns the held entries as a session of their own: the log that they continue was replaced by
    /// its sealed or plain form. They are sealed if the session was.
    async fn unsaved_session(&self, meta: &SessionMeta) -> StoreResult<Vec<String>> {
        let start = Start {
            id: self.sessions.clock().session_id(),
            kind: meta.kind,
            title: meta
                .title
                .as_ref()
                .map(|title| format!("{title} (unsaved)")),
            team: meta.team.clone(),
            project: meta.project.clone(),
            project_ids: meta.project_ids.clone(),
            cwd: meta.cwd.clone(),
            terms: None,
        };
        if meta.seal.is_some() {
            self.sessions.seal_new(start.id).await?;
        }
        let bodies = std::iter::once(start.opening()).chain(self.unsaved.iter().cloned());
        let entries = self
            .sessions
            .chain(start.id, &Head::START, bodies.collect());
        let entries = entries.await?;
        Ok(entries
            .iter()
            .map(|entry| entry.line().to_owned())
            .collect())
    }
}

/// Returns true if a log has the entry `head`.
fn ends_at(lines: &[Line], head: &Head) -> bool {
    let line = lines.iter().find(|line| line.seq == head.seq);
    let entry = line.and_then(|line| Entry::decode(&line.bytes).ok());
    entry.is_some_and(|entry| entry.head() == *head)
}
