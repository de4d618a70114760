//! Imports another program's file of a session that is here already: tertulia ran the program, or
//! exported the session for it. Only what the file has beyond the log is taken in.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use super::recorded::{Branch, PAGE, Trail};
use super::{Doing, Intake, Taken, origin};
use crate::{SessionLock, StoreError, StoreResult};
use tertulia_core::entry::{Entry, Head, ImportedRelation, Relation, Speaker, SpeakerKind};
use tertulia_core::foreign::{Continuation, Foreign, LogDigest, Provenance};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Lookup, Page, Trash};
use tertulia_core::seal::{HiddenId, hidden_id};
use tertulia_core::session::{HiddenIds, SessionMeta};

/// First usages of a session by which copies of it are found.
const USAGES: usize = 8;
/// Attempts to import into a session that another process writes to at the same time.
const ATTEMPTS: usize = 4;

/// The sessions of the store by the ids that other programs have for them. They are found by their
/// metadata: no log is read.
#[derive(Debug, Default)]
pub(super) struct OwnSessions {
    sessions: Vec<SessionId>,
    /// Sessions of programs that tertulia ran, with the agent's name.
    runs: HashMap<String, (SessionId, String)>,
    /// The same by the first requests of their answers.
    requests: HashMap<String, (SessionId, String)>,
    /// Exported sessions, by program.
    exports: HashMap<String, HashMap<String, SessionId>>,
    /// Sealed sessions, by what they show of other programs' ids.
    hidden: Vec<HiddenSession>,
}

/// A sealed session that can be recognised without its key.
#[derive(Debug)]
struct HiddenSession {
    id: SessionId,
    finder: String,
    ids: HiddenIds,
}

/// How a session of another program belongs to a sealed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belonging {
    /// It is the session, as the program has it.
    Itself,
    /// It begins with the same messages, under another id.
    Copy,
    /// An agent of the session delegated a task to it.
    Subagent,
}

impl HiddenSession {
    fn of(meta: &SessionMeta) -> Option<HiddenSession> {
        Some(HiddenSession {
            id: meta.id,
            finder: meta.seal.as_ref()?.finder.clone()?,
            ids: meta.hidden_ids.clone(),
        })
    }

    fn belonging(&self, talk: &Foreign) -> Option<Belonging> {
        let names = |id: &str| {
            let hidden = hidden_id(&self.finder, HiddenId::Session, id);
            self.ids.sessions.contains(&hidden)
        };
        if names(&talk.source.original) {
            return Some(Belonging::Itself);
        }
        let parent = talk.source.parent.as_ref();
        if let Some(parent) = parent.filter(|parent| names(&parent.original)) {
            return Some(match parent.relation {
                ImportedRelation::Subagent => Belonging::Subagent,
                ImportedRelation::Fork => Belonging::Copy,
            });
        }
        let messages = talk.said.iter().map(|said| &said.message);
        let mut usages = messages
            .flat_map(|message| message.usage_id.iter().chain(&message.requests))
            .take(USAGES);
        let is_shown = |id: &String| {
            let hidden = hidden_id(&self.finder, HiddenId::Usage, id);
            self.ids.usages.contains(&hidden)
        };
        usages.any(is_shown).then_some(Belonging::Copy)
    }
}

/// A session that is here already, and how another program's one is imported into it.
struct OwnSession {
    id: SessionId,
    provenance: Provenance,
    /// True if the program has it under another id: it becomes a fork.
    is_copy: bool,
}

impl OwnSessions {
    fn add(&mut self, meta: &SessionMeta) {
        self.sessions.push(meta.id);
        self.hidden.extend(HiddenSession::of(meta));
        let past = meta
            .past_natives
            .iter()
            .map(|native| (&native.id, &native.agent));
        let natives = meta
            .natives
            .iter()
            .map(|native| (&native.id, &native.agent));
        for (native, agent) in past.chain(natives) {
            self.runs
                .entry(native.clone())
                .or_insert_with(|| (meta.id, agent.clone()));
        }
        let agent = meta.natives.first().map(|native| &native.agent);
        let agent = agent.or(meta.answered_by.as_ref());
        for (request, agent) in meta.requests.iter().zip(agent.into_iter().cycle()) {
            self.requests
                .entry(request.clone())
                .or_insert_with(|| (meta.id, agent.clone()));
        }
    }

    fn find(&mut self, talk: &Foreign) -> Option<OwnSession> {
        let found = |id, provenance| OwnSession {
            id,
            provenance,
            is_copy: false,
        };
        let source = &talk.source;
        let (program, original) = (&source.program, &source.original);
        if let Some((id, agent)) = self.runs.get(original) {
            return Some(found(*id, Provenance::Run(agent.clone())));
        }
        // A copy begins as the session does: the first answer tells.
        let mut usage = talk
            .said
            .iter()
            .filter_map(|said| said.message.usage_id.as_ref());
        if let Some((id, agent)) = usage.next().and_then(|first| self.requests.get(first)) {
            return Some(OwnSession {
                is_copy: true,
                ..found(*id, Provenance::Run(agent.clone()))
            });
        }
        // The program may have given a copy of the file another id.
        let named = source.exported_from.as_ref();
        let named = named.and_then(|id| id.parse().ok().map(SessionId::new));
        if let Some(id) = named.filter(|id| self.sessions.contains(id)) {
            return Some(found(id, Provenance::Export));
        }
        let sessions = &self.sessions;
        let exports = self.exports.entry(program.clone()).or_insert_with(|| {
            let ids = sessions.iter();
            ids.map(|id| (Foreign::export_id(program, *id), *id))
                .collect()
        });
        Some(found(*exports.get(original)?, Provenance::Export))
    }

    /// Returns the sealed session to which a session belongs that [`OwnSessions::find`] does not know.
    fn find_hidden(&self, talk: &Foreign) -> Option<(SessionId, Belonging)> {
        let mut found = self.hidden.iter().filter_map(|hidden| {
            let belonging = hidden.belonging(talk)?;
            Some((hidden.id, belonging))
        });
        found.next()
    }
}

impl Intake<'_> {
    /// Imports a file of a session that is here already. Returns `None` if it is of another one.
    pub(super) async fn take_in_own(&mut self, talk: &Foreign) -> StoreResult<Option<Taken>> {
        let Some(own) = self.own_session(talk).await? else {
            return Ok(None);
        };
        for _ in 1..ATTEMPTS {
            match self.take_in_own_once(talk, &own).await {
                Err(StoreError::Exists(_) | StoreError::Conflict { .. }) => {}
                taken => return taken,
            }
        }
        self.take_in_own_once(talk, &own).await
    }

    async fn own_session(&mut self, talk: &Foreign) -> StoreResult<Option<OwnSession>> {
        if self.own.is_none() {
            let everything = Filter {
                trash: Trash::With,
                ..Filter::default()
            };
            let page = Page::first(usize::MAX);
            let mut rows = self.sessions.store().list(&everything, &page).await?.rows;
            // Of several sessions that ran the same one, the first has it.
            rows.sort_by_key(|row| (row.meta.created_at, row.meta.id));
            let mut own = OwnSessions::default();
            rows.iter().for_each(|row| own.add(&row.meta));
            self.own = Some(own);
        }
        let Some(own) = self.own.as_mut() else {
            return Ok(None);
        };
        if let Some(known) = own.find(talk) {
            return Ok(Some(known));
        }
        match own.find_hidden(talk) {
            // It was imported before, under the id that it has here.
            Some((id, Belonging::Itself)) if id == talk.id => Ok(None),
            Some((id, belonging)) => self.hidden_session(talk, id, belonging).await,
            None => Ok(None),
        }
    }

    /// Opens the sealed session to which another program's one belongs. Fails if its key is not at hand:
    /// nothing of it comes in as plain.
    async fn hidden_session(
        &mut self,
        talk: &Foreign,
        id: SessionId,
        belonging: Belonging,
    ) -> StoreResult<Option<OwnSession>> {
        let sessions = self.sessions;
        let meta = sessions.unlocked(sessions.row(id).await?.meta).await?;
        self.sealed_by = Some(id);
        if belonging == Belonging::Subagent {
            return Ok(None);
        }
        let past = meta.past_natives.iter();
        let past = past.map(|native| (&native.id, &native.agent));
        let natives = meta.natives.iter();
        let natives = natives.map(|native| (&native.id, &native.agent));
        let runs: Vec<_> = past.chain(natives).collect();
        let parent = talk.source.parent.as_ref();
        let names = [Some(&talk.source.original), parent.map(|it| &it.original)];
        let named = runs
            .iter()
            .find(|(native, _)| names.contains(&Some(native)));
        let agent = named.or(runs.last()).map(|(_, agent)| (*agent).clone());
        // Without a run, the session was imported itself, and its messages have the same ids.
        Ok(agent.map(|agent| OwnSession {
            id,
            provenance: Provenance::Run(agent),
            is_copy: belonging == Belonging::Copy,
        }))
    }

    async fn take_in_own_once(
        &mut self,
        talk: &Foreign,
        own: &OwnSession,
    ) -> StoreResult<Option<Taken>> {
        let provenance = &own.provenance;
        let taken = |taken: Taken| {
            Ok(Some(Taken {
                own: Some(provenance.clone()),
                ..taken
            }))
        };
        let (mut id, mut branch, mut here) = (own.id, None, talk.clone());
        // Each iteration shares more messages with the session than the previous one.
        for _ in 0..=talk.said.len() + 1 {
            let Some(digest) = self.digest(talk, id, provenance).await? else {
                return taken(self.write_new(&here, id, branch).await?);
            };
            let Some(continuation) = digest.compare(talk) else {
                return Ok(None);
            };
            if id == own.id {
                let trail = Trail::of(digest.heads(talk), digest.end());
                self.own_trails.insert(talk.id, (id, trail));
            }
            let Continuation { shared, at, is_end } = continuation;
            if shared == talk.said.len() {
                return taken(Taken::known(id));
            }
            // A program that tertulia runs just now writes what the log is about to get.
            let Some(_open) = self.open(id).await? else {
                let waits = Taken {
                    waits: true,
                    ..Taken::known(id)
                };
                return taken(waits);
            };
            say_as(digest.speaker(), &mut here);
            let is_copied = own.is_copy && id == own.id;
            if is_end && !is_copied {
                let trail = Trail::ending(digest.end());
                return taken(self.write_more(&here, id, trail, shared).await?);
            }
            branch = Some(Branch {
                from: origin(id, at),
                inherited: shared,
                shared,
                relation: Relation::Fork,
            });
            id = match is_copied {
                true => talk.id,
                false => here.apart(shared),
            };
        }
        Err(StoreError::Exists(id))
    }

    /// Locks a session that is to be continued. Returns `None` if another process has it open.
    async fn open(&self, id: SessionId) -> StoreResult<Option<Option<SessionLock>>> {
        let store = self.sessions.store();
        Ok(match self.doing {
            Doing::Write => store.claim(id).await?.map(Some),
            Doing::Preview => store.holder(id).await?.is_none().then_some(None),
        })
    }

    /// Reads the log of a session, if it exists.
    async fn digest(
        &self,
        talk: &Foreign,
        id: SessionId,
        provenance: &Provenance,
    ) -> StoreResult<Option<LogDigest>> {
        let known = self.sessions.store().find(&Lookup::Id(id), 1).await?;
        if known.is_empty() {
            return Ok(None);
        }
        let mut digest = LogDigest::new(talk, provenance.clone());
        let (mut after, mut before) = (Seq::START, Some(Head::START));
        while let Some((log, last)) = self.sessions.load_next(id, after, before, PAGE).await? {
            before = log.entries.last().map(Entry::head);
            after = last;
            log.entries.iter().for_each(|entry| digest.read(entry));
        }
        Ok(Some(digest))
    }
}

/// Puts the answers of a session under the name that the agent has in the log, by which it is known
/// later that the program has them.
fn say_as(speaker: Option<Speaker>, talk: &mut Foreign) {
    let Some(speaker) = speaker else {
        return;
    };
    for said in &mut talk.said {
        if said.message.speaker.kind == SpeakerKind::Ai {
            said.message.speaker = speaker.clone();
        }
    }
}
