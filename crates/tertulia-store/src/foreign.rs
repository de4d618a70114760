//! Imports conversations of other programs. Messages imported before are recognised, newer ones are
//! appended, and a conversation that diverged becomes a fork: nothing is overwritten or lost.

mod own;
mod recorded;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use own::OwnSessions;
use recorded::Trail;

use super::adopt::{append, chunks};
use super::{Adopted, NewSession, Sessions, StoreError, StoreResult};
use tertulia_core::entry::{Body, Entry, Forked, Head, NewEntry, Origin, Relation};
use tertulia_core::foreign::{Foreign, Identity, Meeting, Provenance};
use tertulia_core::id::{EntryId, SessionId, derived};
use tertulia_core::query::Lookup;
use tertulia_core::session::{Log, SessionMeta};

/// Whether an import writes or only reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Only report what would happen.
    Preview,
    /// Write.
    Write,
}

/// Imports conversations one after the other.
#[derive(Debug)]
pub struct Intake<'a> {
    sessions: &'a Sessions,
    doing: Doing,
    /// In a preview, the logs that earlier conversations would have made: later ones may continue
    /// them.
    imagined: HashMap<SessionId, Vec<Entry>>,
    /// The same for sessions whose messages have ids.
    trails: HashMap<SessionId, Trail>,
    /// Imported sessions by their first message, once it matters.
    beginnings: Option<HashMap<EntryId, Vec<SessionId>>>,
    /// Sessions that other programs may have, too, once it matters.
    own: Option<OwnSessions>,
    /// Those whose files were read: which session here each is, and where that one has its messages. A
    /// fork that a program made of one names it by the program's id.
    own_trails: HashMap<SessionId, (SessionId, Trail)>,
    /// Sealed session to which the one that is imported belongs.
    sealed_by: Option<SessionId>,
}

/// An imported conversation.
#[derive(Clone, Debug)]
pub struct Taken {
    /// Result of the import.
    pub adopted: Adopted,
    /// Its entries as a session of its own, secrets replaced. Empty if its messages have ids.
    pub entries: Vec<Entry>,
    /// Secrets replaced in entries that were written, by kind.
    replaced: BTreeMap<String, u32>,
    /// Why the session was here already, if it did not come from this file.
    pub own: Option<Provenance>,
    /// True if the file may have more than the session, which another process has open.
    pub waits: bool,
    /// True if it belongs to a sealed session whose key is not at hand: nothing of it is imported.
    pub is_sealed: bool,
}

impl Taken {
    fn known(id: SessionId) -> Taken {
        Taken::of(Adopted::Known { id }, Vec::new())
    }

    fn of(adopted: Adopted, entries: Vec<Entry>) -> Taken {
        Taken {
            adopted,
            entries,
            replaced: BTreeMap::new(),
            own: None,
            waits: false,
            is_sealed: false,
        }
    }

    /// Returns how many secrets of each kind were replaced.
    pub fn redacted(&self) -> BTreeMap<String, u32> {
        let mut counts = self.replaced.clone();
        for (kind, count) in self.entries.iter().flat_map(|entry| &entry.redacted) {
            *counts.entry(kind.clone()).or_insert(0) += count;
        }
        counts
    }
}

/// Where an imported conversation diverges: the last shared entry, and the number of shared
/// messages.
struct Parted {
    from: Origin,
    shared: usize,
    task: Option<String>,
}

impl Sessions {
    /// Starts an import.
    pub fn intake(&self, doing: Doing) -> Intake<'_> {
        Intake {
            sessions: self,
            doing,
            imagined: HashMap::new(),
            trails: HashMap::new(),
            beginnings: None,
            own: None,
            own_trails: HashMap::new(),
            sealed_by: None,
        }
    }
}

impl Intake<'_> {
    /// Imports a conversation.
    pub async fn take_in(&mut self, talk: &Foreign) -> StoreResult<Taken> {
        self.sealed_by = None;
        match self.take_in_open(talk).await {
            Err(StoreError::Sealed { id, .. }) => Ok(Taken {
                is_sealed: true,
                ..Taken::known(id)
            }),
            taken => taken,
        }
    }

    async fn take_in_open(&mut self, talk: &Foreign) -> StoreResult<Taken> {
        if talk.identity == Identity::Ids {
            return match self.take_in_own(talk).await? {
                Some(taken) => Ok(taken),
                None => self.take_in_recorded(talk).await,
            };
        }
        let said = self.said(talk)?;
        let entries = self.whole(talk, talk.id, &said)?;
        let mut id = talk.id;
        let mut parted = None;
        // Each iteration shares more messages with the conversation than the previous one.
        for _ in 0..=talk.said.len() + 1 {
            let Some(log) = self.log(id).await? else {
                let adopted = match &parted {
                    None => self.create(talk, id, &said).await?,
                    Some(parted) => self.fork(talk, id, parted, &said).await?,
                };
                return Ok(Taken::of(adopted, entries));
            };
            match talk.meet(&log) {
                Meeting::Known => {
                    let adopted = match is_news(talk, id, &log, false) {
                        true => {
                            let new = vec![self.importing(talk, id)?];
                            self.go_on(id, log, new).await?
                        }
                        false => Adopted::Known { id },
                    };
                    return Ok(Taken::of(adopted, entries));
                }
                Meeting::GoesOn { shared, task } => {
                    let mut new = said[shared..].to_vec();
                    if is_news(talk, id, &log, true) {
                        new.push(self.importing(talk, id)?);
                    }
                    new.extend(self.tasking(talk, id, task)?);
                    new.extend(self.closings(talk, id)?);
                    let adopted = self.go_on(id, log, new).await?;
                    return Ok(Taken::of(adopted, entries));
                }
                Meeting::Parts { shared, at, task } => {
                    parted = at.map(|at| Parted {
                        from: origin(id, at),
                        shared,
                        task,
                    });
                    id = talk.apart(shared);
                }
            }
        }
        Err(StoreError::Exists(id))
    }

    /// Returns the log of a session: the stored one, or the previewed one.
    async fn log(&self, id: SessionId) -> StoreResult<Option<Log>> {
        if let Some(entries) = self.imagined.get(&id) {
            return Ok(Some(Log {
                entries: entries.clone(),
                damage: Vec::new(),
            }));
        }
        let known = self.sessions.store().find(&Lookup::Id(id), 1).await?;
        match known.is_empty() {
            true => Ok(None),
            false => self.sessions.load(id).await.map(Some),
        }
    }

    /// Returns the entry of each message.
    fn said(&self, talk: &Foreign) -> StoreResult<Vec<NewEntry>> {
        let keep = |new: NewEntry| self.sessions.kept(new.id, new.at, new.body);
        let said = talk.said.iter();
        said.map(|said| keep(talk.saying(said))).collect()
    }

    fn importing(&self, talk: &Foreign, id: SessionId) -> StoreResult<NewEntry> {
        let new = talk.importing(id);
        self.sessions.kept(new.id, new.at, new.body)
    }

    fn tasking(
        &self,
        talk: &Foreign,
        id: SessionId,
        task: Option<String>,
    ) -> StoreResult<Option<NewEntry>> {
        task.map(|task| {
            let new = talk.tasking(id, task);
            self.sessions.kept(new.id, new.at, new.body)
        })
        .transpose()
    }

    fn closings(&self, talk: &Foreign, id: SessionId) -> StoreResult<Vec<NewEntry>> {
        let closings = talk.closings(id).into_iter();
        closings
            .map(|new| self.sessions.kept(new.id, new.at, new.body))
            .collect()
    }

    /// Returns the whole conversation as a log of its own.
    fn whole(&self, talk: &Foreign, id: SessionId, said: &[NewEntry]) -> StoreResult<Vec<Entry>> {
        let opening = talk.opening(id);
        let opening = self.sessions.kept(opening.id, opening.at, opening.body)?;
        let mut new = vec![opening, self.importing(talk, id)?];
        new.extend_from_slice(said);
        new.extend(self.tasking(talk, id, talk.task.clone())?);
        new.extend(self.closings(talk, id)?);
        chain_each(Head::START, new)
    }

    async fn create(
        &mut self,
        talk: &Foreign,
        id: SessionId,
        said: &[NewEntry],
    ) -> StoreResult<Adopted> {
        let own = self.whole(talk, id, said)?;
        let entries = own.len();
        self.begin(id, None, Vec::new(), own).await?;
        Ok(Adopted::Created { id, entries })
    }

    async fn fork(
        &mut self,
        talk: &Foreign,
        id: SessionId,
        parted: &Parted,
        said: &[NewEntry],
    ) -> StoreResult<Adopted> {
        let from = &parted.from;
        let opening = Forked {
            session: id,
            from: from.clone(),
            relation: Relation::Conflict,
            title: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
            seal: None,
        };
        let own = said[parted.shared..].to_vec();
        let when = own.first().map_or(talk.created_at, |first| first.at);
        let mut new = vec![NewEntry {
            id: EntryId::new(derived(&["fork", &id.to_string()])),
            at: when,
            body: Body::Forked(opening),
            redacted: BTreeMap::new(),
            author: None,
        }];
        new.extend(own);
        new.extend(self.tasking(talk, id, parted.task.clone())?);
        new.extend(self.closings(talk, id)?);
        let head = Head {
            seq: from.seq,
            hash: from.hash,
        };
        let chained = chain_each(head, new)?;
        let adopted = Adopted::Forked {
            id,
            from: from.id,
            entries: chained.len() - 1,
        };
        let shared = self.log(from.id).await?.unwrap_or_default();
        if is_sealed(&shared) {
            return Err(StoreError::Refused(format!(
                "session {} is sealed: what diverged from it is not imported",
                from.id.short()
            )));
        }
        let mut shared = shared.entries;
        shared.retain(|entry| entry.seq <= from.seq);
        self.begin(id, Some(from.clone()), shared, chained).await?;
        Ok(adopted)
    }

    async fn begin(
        &mut self,
        id: SessionId,
        base: Option<Origin>,
        shared: Vec<Entry>,
        own: Vec<Entry>,
    ) -> StoreResult<()> {
        if self.doing == Doing::Preview {
            self.imagined.insert(id, [shared, own].concat());
            return Ok(());
        }
        let store = self.sessions.store();
        let first = chunks(&own).next().unwrap_or_default();
        let head = store
            .create(&NewSession {
                id,
                base,
                entries: first.to_vec(),
            })
            .await?;
        append(store, id, head, &own[first.len()..]).await
    }

    async fn go_on(&mut self, id: SessionId, log: Log, new: Vec<NewEntry>) -> StoreResult<Adopted> {
        let head = log.entries.last().map_or(Head::START, Entry::head);
        let new = match is_sealed(&log) && self.doing == Doing::Write {
            false => chain_each(head, new)?,
            true => {
                let (mut chained, mut head) = (Vec::new(), head);
                for new in new {
                    let entries = self.sessions.chain_new(id, &head, vec![new]).await?;
                    self.sessions.store().append(id, head, &entries).await?;
                    head = entries.last().map_or(head, Entry::head);
                    chained.extend(entries);
                }
                let entries = chained.len();
                return Ok(Adopted::Extended { id, entries });
            }
        };
        let entries = new.len();
        match self.doing {
            Doing::Preview => {
                self.imagined.insert(id, [log.entries, new].concat());
            }
            Doing::Write => append(self.sessions.store(), id, head, &new).await?,
        }
        Ok(Adopted::Extended { id, entries })
    }
}

fn is_news(talk: &Foreign, id: SessionId, log: &Log, grows: bool) -> bool {
    talk.is_news_to(&SessionMeta::of(id, &log.entries), grows)
}

fn is_sealed(log: &Log) -> bool {
    let mut entries = log.entries.iter();
    entries.any(|entry| entry.body.seal().is_some())
}

fn origin(id: SessionId, head: Head) -> Origin {
    Origin {
        id,
        seq: head.seq,
        hash: head.hash,
    }
}

/// Chains entries one by one: chained as one append they would not count until the last is written,
/// and a long conversation is written in several chunks. An interrupted import continues when it is
/// repeated.
fn chain_each(mut head: Head, new: Vec<NewEntry>) -> StoreResult<Vec<Entry>> {
    let mut chained = Vec::with_capacity(new.len());
    for new in new {
        let entries = Entry::chain(&head, vec![new])
            .map_err(|error| StoreError::failed("cannot import a session", error))?;
        head = entries.last().map_or(head, Entry::head);
        chained.extend(entries);
    }
    Ok(chained)
}
