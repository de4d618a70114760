//! Imports sessions whose messages are recognised by their ids. Neither the log nor the import is
//! held in memory a second time: entries are chained and written in chunks.

#[cfg(test)]
mod tests;
mod writer;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::{Doing, Intake, Taken, origin};
use crate::{Adopted, StoreError, StoreResult};
use tertulia_core::entry::{Body, Entry, Forked, Head, NewEntry, Numbering, Origin, Relation};
use tertulia_core::foreign::{Beginning, Foreign};
use tertulia_core::id::{EntryId, Seq, SessionId, derived};
use tertulia_core::query::{Filter, Lookup, Page, Trash};
use tertulia_core::session::Log;
use writer::Writer;

/// Number of entries to read at once.
pub(super) const PAGE: usize = 1_000;
/// Attempts to import what another program imports at the same time.
const ATTEMPTS: usize = 3;

/// The messages of a log: ids, and where each ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Trail {
    messages: Vec<(EntryId, Head)>,
    end: Head,
    /// True if the session is an imported one, and not known to be made from another.
    is_orphan: bool,
}

impl Trail {
    /// Returns the trail of a log that has these messages and ends here.
    pub(super) fn of(messages: Vec<(EntryId, Head)>, end: Head) -> Trail {
        Trail {
            messages,
            end,
            ..Trail::default()
        }
    }

    /// Returns the trail of a log that ends here, of which no message is looked for.
    pub(super) fn ending(end: Head) -> Trail {
        Trail::of(Vec::new(), end)
    }

    fn read(&mut self, log: &Log) {
        for entry in &log.entries {
            match &entry.body {
                Body::Message(_) => self.messages.push((entry.id, entry.head())),
                // A summary of the program itself; one that was written here has an id of its own.
                Body::Compacted(_) if entry.id.is_derived() => {
                    self.messages.push((entry.id, entry.head()));
                }
                // Thinking belongs to the message before it.
                Body::Thought(_) => {
                    if let Some((_, head)) = self.messages.last_mut() {
                        *head = entry.head();
                    }
                }
                _ => {}
            }
            self.end = entry.head();
        }
    }

    /// Returns how many messages after the first `skipped` are those at the beginning of `talk`.
    fn shared(&self, talk: &Foreign, skipped: usize) -> usize {
        let both = self.messages.iter().skip(skipped).zip(&talk.said);
        both.take_while(|((id, _), said)| *id == said.id).count()
    }

    /// Returns the number of messages before the first one of `talk`, which does not repeat them.
    fn before(&self, talk: &Foreign) -> usize {
        let refers = talk
            .fork
            .as_ref()
            .is_some_and(|fork| matches!(fork.beginning, Beginning::Referred(_)));
        let Some(first) = talk.said.first().filter(|_| refers) else {
            return 0;
        };
        let place = self.messages.iter().position(|(id, _)| *id == first.id);
        place.unwrap_or(self.messages.len())
    }

    fn fork(&self, id: SessionId, inherited: usize, shared: usize) -> Option<Branch> {
        self.after(inherited).map(|head| Branch {
            from: origin(id, head),
            inherited,
            shared,
            relation: Relation::Fork,
        })
    }

    /// Returns the last entry before a message.
    fn before_message(&self, id: EntryId) -> Option<Seq> {
        let place = self.messages.iter().position(|(known, _)| *known == id)?;
        Some(self.after(place)?.seq)
    }

    /// Returns where the first `count` messages end.
    fn after(&self, count: usize) -> Option<Head> {
        Some(self.messages.get(count.checked_sub(1)?)?.1)
    }
}

/// Where a session branches off another.
pub(super) struct Branch {
    pub(super) from: Origin,
    /// Number of messages of the other session that it continues.
    pub(super) inherited: usize,
    /// Number of its recorded messages among them.
    pub(super) shared: usize,
    pub(super) relation: Relation,
}

impl Intake<'_> {
    /// Imports a session whose messages have ids. If another program imports it at the same time,
    /// looks at what that one has written.
    pub(super) async fn take_in_recorded(&mut self, talk: &Foreign) -> StoreResult<Taken> {
        for _ in 0..ATTEMPTS {
            match self.take_in_once(talk).await {
                Err(StoreError::Exists(id) | StoreError::Conflict { id, .. }) => {
                    self.trails.remove(&id);
                }
                taken => return taken,
            }
        }
        self.take_in_once(talk).await
    }

    async fn take_in_once(&mut self, talk: &Foreign) -> StoreResult<Taken> {
        let mut id = talk.id;
        let mut diverged = None;
        // Each iteration shares more messages with the session than the previous one.
        for _ in 0..=talk.said.len() + 1 {
            let Some(trail) = self.trail(id).await? else {
                let branch = match diverged {
                    None => self.fork_in_source(talk).await?,
                    diverged => diverged,
                };
                return self.write_new(talk, id, branch).await;
            };
            let before = trail.before(talk);
            let shared = trail.shared(talk, before);
            if shared == talk.said.len() {
                return match trail.is_orphan && talk.naming_parent(id).is_some() {
                    true => self.write_more(talk, id, trail, shared).await,
                    false => Ok(Taken::known(id)),
                };
            }
            if before + shared == trail.messages.len() {
                return self.write_more(talk, id, trail, shared).await;
            }
            diverged = trail.after(before + shared).map(|head| Branch {
                from: origin(id, head),
                inherited: before + shared,
                shared,
                relation: Relation::Conflict,
            });
            id = talk.apart(shared);
        }
        Err(StoreError::Exists(id))
    }

    /// Returns where the session left another one in the program, if that one is in the store.
    async fn fork_in_source(&mut self, talk: &Foreign) -> StoreResult<Option<Branch>> {
        let Some(fork) = talk.fork.as_ref().filter(|fork| fork.from != talk.id) else {
            return self.longest_copy(talk).await;
        };
        let (from, trail) = match self.own_trails.get(&fork.from) {
            Some((own, trail)) => (*own, trail.clone()),
            None => (fork.from, self.trail(fork.from).await?.unwrap_or_default()),
        };
        let (inherited, shared) = match &fork.beginning {
            Beginning::Copied(count) => {
                let shared = trail.shared(talk, 0).min(*count);
                (shared, shared)
            }
            Beginning::Referred(last) => {
                let last: HashSet<&EntryId> = last.iter().collect();
                let place = trail.messages.iter().rposition(|(id, _)| last.contains(id));
                (place.map_or(0, |place| place + 1), 0)
            }
        };
        Ok(trail.fork(from, inherited, shared))
    }

    /// Returns where the session leaves the one with which it shares most. Some programs copy the
    /// beginning of a fork and do not name its origin.
    async fn longest_copy(&mut self, talk: &Foreign) -> StoreResult<Option<Branch>> {
        let Some(first) = talk.said.first() else {
            return Ok(None);
        };
        let mut longest: Option<Branch> = None;
        for id in self.beginning_with(first.id).await? {
            // A fork of this very session, which was removed for good: it cannot be its own origin.
            if self.descends_from(id, talk.id).await? {
                continue;
            }
            let trail = self.trail(id).await?.unwrap_or_default();
            let shared = trail.shared(talk, 0);
            if longest.as_ref().is_none_or(|branch| branch.shared < shared) {
                longest = trail.fork(id, shared, shared);
            }
        }
        Ok(longest)
    }

    /// Returns true if a session is a fork, a merge or a replay of another one, or of one of those.
    async fn descends_from(&self, id: SessionId, ancestor: SessionId) -> StoreResult<bool> {
        let (mut seen, mut next) = (HashSet::new(), vec![id]);
        while let Some(id) = next.pop() {
            if id == ancestor {
                return Ok(true);
            }
            if seen.insert(id)
                && let Some(row) = self.sessions.store().find(&Lookup::Id(id), 1).await?.pop()
            {
                let origins = row.meta.parent.iter().chain(&row.meta.merged);
                next.extend(origins.map(|origin| origin.id));
            }
        }
        Ok(false)
    }

    /// Returns the sessions whose first message is `first`.
    async fn beginning_with(&mut self, first: EntryId) -> StoreResult<Vec<SessionId>> {
        let beginnings = match self.beginnings.take() {
            Some(beginnings) => beginnings,
            None => self.all_beginnings().await?,
        };
        let found = beginnings.get(&first).cloned().unwrap_or_default();
        self.beginnings = Some(beginnings);
        Ok(found)
    }

    async fn all_beginnings(&self) -> StoreResult<HashMap<EntryId, Vec<SessionId>>> {
        let everything = Filter {
            trash: Trash::With,
            ..Filter::default()
        };
        let page = Page::first(usize::MAX);
        let mut beginnings: HashMap<EntryId, Vec<SessionId>> = HashMap::new();
        for row in self.sessions.store().list(&everything, &page).await?.rows {
            if let Some(first) = row.meta.first {
                beginnings.entry(first).or_default().push(row.meta.id);
            }
        }
        Ok(beginnings)
    }

    async fn trail(&self, id: SessionId) -> StoreResult<Option<Trail>> {
        if let Some(trail) = self.trails.get(&id) {
            return Ok(Some(trail.clone()));
        }
        let known = self.sessions.store().find(&Lookup::Id(id), 1).await?;
        let Some(row) = known.first() else {
            return Ok(None);
        };
        let (mut trail, mut after, mut before) = (Trail::default(), Seq::START, Some(Head::START));
        while let Some((log, last)) = self.sessions.load_next(id, after, before, PAGE).await? {
            before = log.entries.last().map(Entry::head);
            after = last;
            trail.read(&log);
        }
        trail.is_orphan = row.meta.source.is_some() && row.meta.parent.is_none();
        Ok(Some(trail))
    }

    pub(super) async fn write_new(
        &mut self,
        talk: &Foreign,
        id: SessionId,
        branch: Option<Branch>,
    ) -> StoreResult<Taken> {
        let (opening, head, shared) = match &branch {
            None => (talk.opening(id), Head::START, 0),
            Some(branch) => {
                let (from, shared) = (&branch.from, branch.shared);
                let head = Head {
                    seq: from.seq,
                    hash: from.hash,
                };
                (fork_opening(talk, id, branch), head, shared)
            }
        };
        let trail = match &branch {
            None => Trail::default(),
            Some(branch) => {
                let mut trail = self.trail(branch.from.id).await?.unwrap_or_default();
                trail.messages.truncate(branch.inherited);
                trail
            }
        };
        let keys = self.keys_of_new(id, branch.as_ref(), &head).await?;
        let mut writer = Writer::new(self, id, head, trail);
        writer.base = branch.as_ref().map(|branch| branch.from.clone());
        writer.is_new = true;
        writer.keys = keys.as_ref().map(|keys| Arc::new(keys.until(head.seq)));
        writer.push(vec![opening]).await?;
        if let Some(keys) = keys.filter(|keys| keys.changes_after(head.seq)) {
            writer.renew(&keys).await?;
        }
        // A session that diverged here is not the imported session itself.
        let is_itself = branch
            .as_ref()
            .is_none_or(|branch| branch.relation == Relation::Fork);
        if is_itself {
            writer.push(vec![talk.importing(id)]).await?;
        }
        let written = writer.write_messages(talk, shared).await?;
        if let (Some(first), Some(beginnings)) = (talk.said.first(), &mut self.beginnings) {
            beginnings.entry(first.id).or_default().push(id);
        }
        let adopted = match branch {
            None => Adopted::Created {
                id,
                entries: written.entries,
            },
            Some(branch) => Adopted::Forked {
                id,
                from: branch.from.id,
                entries: written.entries - 1,
            },
        };
        Ok(written.taken(adopted))
    }

    pub(super) async fn write_more(
        &mut self,
        talk: &Foreign,
        id: SessionId,
        trail: Trail,
        shared: usize,
    ) -> StoreResult<Taken> {
        let adopting = talk.naming_parent(id).filter(|_| trail.is_orphan);
        let end = trail.end;
        let trail = Trail {
            is_orphan: false,
            ..trail
        };
        let sealed = self.sessions.sealed_store();
        let (keys, numbering) = match self.doing {
            Doing::Preview => (None, Numbering::default()),
            Doing::Write => match sealed.key_at(id, &end).await? {
                Some(keys) => (Some(keys), sealed.numbering_after(id, &end).await?),
                None => (None, Numbering::default()),
            },
        };
        let mut writer = Writer::new(self, id, end, trail);
        (writer.keys, writer.numbering) = (keys, numbering);
        if let Some(adopting) = adopting {
            writer.push(vec![adopting]).await?;
        }
        let written = writer.write_messages(talk, shared).await?;
        let entries = written.entries;
        Ok(written.taken(Adopted::Extended { id, entries }))
    }
}

fn fork_opening(talk: &Foreign, id: SessionId, branch: &Branch) -> NewEntry {
    let opening = Forked {
        session: id,
        from: branch.from.clone(),
        relation: branch.relation,
        title: talk.title.clone(),
        project: talk.source.project.clone(),
        project_ids: talk.source.project_ids.clone(),
        cwd: talk.source.cwd.clone(),
        terms: None,
        seal: None,
    };
    let first = talk.said.get(branch.shared);
    NewEntry {
        id: EntryId::new(derived(&["fork", &id.to_string()])),
        at: first.map_or(talk.created_at, |said| said.at),
        body: Body::Forked(opening),
        redacted: BTreeMap::new(),
        author: None,
    }
}
