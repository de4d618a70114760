//! Imports another program's file of a session that is here already: tertulia ran the program, or
//! exported the session for it. Only what the file has beyond the log is taken in.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use super::recorded::{Branch, PAGE, Trail};
use super::{Doing, Intake, Taken, origin};
use crate::{SessionLock, StoreError, StoreResult};
use tertulia_core::entry::{Entry, Head, Relation, Speaker, SpeakerKind};
use tertulia_core::foreign::{Continuation, Foreign, LogDigest, Provenance};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Lookup, Page, Trash};
use tertulia_core::session::SessionMeta;

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
}

/// The session that a file is of.
struct OwnSession {
    id: SessionId,
    provenance: Provenance,
    /// True if the program made the file as a copy of its session: then the two go on separately.
    is_copy: bool,
}

impl OwnSessions {
    fn add(&mut self, meta: &SessionMeta) {
        self.sessions.push(meta.id);
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
        let own = self.own.as_mut();
        Ok(own.and_then(|own| own.find(talk)))
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
            let is_separate = own.is_copy && id == own.id;
            if is_end && !is_separate {
                let trail = Trail::ending(digest.end());
                return taken(self.write_more(&here, id, trail, shared).await?);
            }
            branch = Some(Branch {
                from: origin(id, at),
                inherited: shared,
                shared,
                relation: Relation::Fork,
            });
            id = here.apart(shared);
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
