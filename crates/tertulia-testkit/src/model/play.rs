//! Runs one history on a store and on the model, step by step.

use tertulia_core::clock::Clock;
use tertulia_core::entry::{Body, Entry, Forked, Head, NewEntry, Origin, Relation};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{HitFilter, Lookup, SearchQuery};
use tertulia_store::{Draft, NewSession, Progress, Store, StoreError};

use super::Doors;
use super::compare::{Step, absent, answered, same};
use super::op::Op;
use super::plain::{Plain, Session};
use crate::ask::{now, query};
use crate::clock::still_clock;
use crate::logs::{self, ai, human, renamed, restored, tagged, trashed, undone};

/// A running history.
#[derive(Debug)]
pub struct Play {
    pub(super) model: Plain,
    clock: Clock,
}

impl Default for Play {
    fn default() -> Play {
        Play::new()
    }
}

impl Play {
    /// Starts with an empty model.
    pub fn new() -> Play {
        Play {
            model: Plain::default(),
            clock: still_clock(7),
        }
    }

    /// Runs all steps.
    pub fn all(&mut self, ops: &[Op], doors: &mut dyn Doors) -> Step {
        for (number, op) in ops.iter().enumerate() {
            if matches!(op, Op::OtherHandle) {
                doors.other();
            }
            self.step(doors.store(), op)
                .and_then(|()| self.compare(doors.store()))
                .map_err(|wrong| format!("step {number}, {op:?}: {wrong}"))?;
        }
        Ok(())
    }

    fn step(&mut self, store: &dyn Store, op: &Op) -> Step {
        match op {
            Op::OtherHandle => Ok(()),
            Op::Create { said, .. } => {
                let id = self.clock.session_id();
                self.create(store, op, id, said)
            }
            Op::Rebuild => {
                let rebuilt = answered(now(store.rebuild(&Progress::unseen())))?;
                same(
                    "rebuilt",
                    &rebuilt.sessions,
                    &(self.model.alive().count() as u64),
                )
            }
            Op::List(filter, limit) => self.list(store, filter, *limit),
            Op::FindTitle(title) => self.find(store, &Lookup::Title((*title).to_owned())),
            Op::Search(words, project, speaker, role) => {
                let mut query = SearchQuery {
                    said: HitFilter {
                        speaker: speaker.map(str::to_owned),
                        role: *role,
                        ..HitFilter::default()
                    },
                    ..query(words)
                };
                query.filter.project = project.map(Into::into);
                self.search(store, &query)
            }
            Op::Check => self.check(store),
            _ => self.step_of_session(store, op),
        }
    }

    /// Runs a step on an existing session; does nothing if there is none.
    fn step_of_session(&mut self, store: &dyn Store, op: &Op) -> Step {
        let count = self.model.sessions.len();
        if count == 0 {
            return Ok(());
        }
        // Clamped to the last session, so that a shrunk history keeps its meaning.
        let pick = |n: &usize| (*n).min(count - 1);
        match op {
            Op::CreateAgain(n) => {
                let id = self.model.sessions[pick(n)].id;
                self.create(store, op, id, &["again"])
            }
            Op::Say(n, said) => self.append(store, pick(n), turns(said)),
            Op::SayAfter(n, at) => self.append_after(store, pick(n), *at),
            Op::Fork { of, at, project } => self.fork(store, pick(of), *at, *project),
            Op::ForkWrongly(n) => self.fork_wrongly(store, pick(n)),
            Op::Rename(n, title) => self.append(store, pick(n), vec![renamed(title)]),
            Op::Tag(n, tag) => self.append(store, pick(n), vec![tagged(&[tag], &[])]),
            Op::Untag(n, tag) => self.append(store, pick(n), vec![tagged(&[], &[tag])]),
            Op::Trash(n) => self.append(store, pick(n), vec![trashed()]),
            Op::Restore(n) => self.append(store, pick(n), vec![restored()]),
            Op::Undo(n, back) => {
                let changes = self.model.sessions[pick(n)].meta().changes;
                let change = changes
                    .iter()
                    .rev()
                    .nth(*back)
                    .map_or(1, |change| change.seq.0);
                self.append(store, pick(n), vec![undone(change)])
            }
            Op::Purge(n) => self.purge(store, pick(n)),
            Op::Compress(n) => self.compress(store, pick(n)),
            Op::Draft(n, back, content) => self.draft(store, pick(n), *back, content),
            Op::Read(n, after, limit) => self.read(store, pick(n), Seq(*after), *limit),
            Op::FindBeginning(n, length) => {
                let id = self.model.sessions[pick(n)].id.to_string();
                self.find(store, &Lookup::Part(id[..*length].to_owned()))
            }
            Op::FindEnding(n, length) => {
                let id = self.model.sessions[pick(n)].id.to_string();
                self.find(store, &Lookup::Part(id[id.len() - length..].to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn chain(&self, parent: &Head, bodies: Vec<Body>) -> Result<Vec<Entry>, String> {
        let new_entry = bodies.into_iter().map(|body| NewEntry {
            id: self.clock.entry_id(),
            at: self.clock.now(),
            body,
            redacted: std::collections::BTreeMap::new(),
            author: None,
        });
        Entry::chain(parent, new_entry.collect()).map_err(|error| error.to_string())
    }

    fn create(&mut self, store: &dyn Store, op: &Op, id: SessionId, said: &[&str]) -> Step {
        let mut opening = logs::created(id);
        if let Op::Create {
            project,
            kind,
            title,
            ..
        } = op
        {
            opening.project = project.map(str::to_owned);
            opening.kind = *kind;
            opening.title = title.map(str::to_owned);
        }
        let mut bodies = vec![Body::Created(opening)];
        bodies.extend(turns(said));
        let entries = self.chain(&Head::START, bodies)?;
        let answer = now(store.create(&NewSession {
            id,
            base: None,
            entries: entries.clone(),
        }));
        let made = Session {
            id,
            alive: true,
            log: entries,
            draft: None,
        };
        let known = self.model.sessions.iter_mut().find(|known| known.id == id);
        match known {
            Some(known) if known.alive => match answer {
                Err(StoreError::Exists(named)) => same("the taken id", &named, &id),
                other => Err(format!("the id is taken, but: {other:?}")),
            },
            known => {
                same("the head", &answered(answer)?, &made.head())?;
                match known {
                    Some(known) => *known = made,
                    None => self.model.sessions.push(made),
                }
                Ok(())
            }
        }
    }

    fn compress(&self, store: &dyn Store, n: usize) -> Step {
        let session = &self.model.sessions[n];
        let done = answered(now(store.compress(&[session.id], &Progress::unseen())))?;
        // A store may leave all compression to its server.
        same(
            "compressed, left as it is, or skipped",
            &(done.sessions + done.unchanged + done.skipped.len() as u64),
            &1,
        )?;
        same(
            "compressed though purged",
            &(!session.alive && done.skipped.is_empty()),
            &false,
        )
    }

    fn append(&mut self, store: &dyn Store, n: usize, bodies: Vec<Body>) -> Step {
        let head = self.model.sessions[n].head();
        let entries = self.chain(&head, bodies)?;
        let session = &mut self.model.sessions[n];
        let answer = now(store.append(session.id, head, &entries));
        if !session.alive {
            return absent(answer, session);
        }
        if entries.iter().any(|entry| !entry.body.is_tidying()) {
            session.draft = None;
        }
        session.log.extend(entries);
        same("the head", &answered(answer)?, &session.head())
    }

    fn append_after(&mut self, store: &dyn Store, n: usize, at: usize) -> Step {
        let session = &self.model.sessions[n];
        let parent = session.log[at.min(session.log.len() - 1)].head();
        if parent == session.head() {
            return self.append(store, n, turns(&["in time"]));
        }
        let entries = self.chain(&parent, turns(&["late", "later"]))?;
        let answer = now(store.append(session.id, parent, &entries));
        if !session.alive {
            return absent(answer, session);
        }
        match answer {
            Err(StoreError::Conflict { id, head }) => {
                same("the conflict", &(id, head), &(session.id, session.head()))
            }
            other => Err(format!("the head is stale, but: {other:?}")),
        }
    }

    fn fork(&mut self, store: &dyn Store, of: usize, at: usize, project: Option<&str>) -> Step {
        let base = &self.model.sessions[of];
        let shared = (at + 1).min(base.log.len());
        let last = &base.log[shared - 1];
        let origin = Origin {
            id: base.id,
            seq: last.seq,
            hash: last.hash,
        };
        let id = self.clock.session_id();
        let opening = Body::Forked(Forked {
            session: id,
            from: origin.clone(),
            relation: Relation::Fork,
            title: None,
            project: project.map(str::to_owned),
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
            seal: None,
        });
        let entries = self.chain(&last.head(), vec![opening])?;
        let answer = now(store.create(&NewSession {
            id,
            base: Some(origin),
            entries: entries.clone(),
        }));
        if !base.alive {
            return absent(answer, base);
        }
        let mut log = base.log[..shared].to_vec();
        log.extend(entries);
        let fork = Session {
            id,
            alive: true,
            log,
            draft: None,
        };
        same("the head", &answered(answer)?, &fork.head())?;
        self.model.sessions.push(fork);
        Ok(())
    }

    fn fork_wrongly(&mut self, store: &dyn Store, of: usize) -> Step {
        let base = &self.model.sessions[of];
        let mut origin = Origin {
            id: base.id,
            seq: base.log[0].seq,
            hash: base.log[0].hash,
        };
        origin.seq = origin.seq.next();
        let parent = Head {
            seq: origin.seq,
            hash: origin.hash,
        };
        let entries = self.chain(&parent, turns(&["wrong"]))?;
        let answer = now(store.create(&NewSession {
            id: self.clock.session_id(),
            base: Some(origin),
            entries,
        }));
        match answer {
            Ok(_) => Err("a fork from an entry that never was".into()),
            Err(_) if base.alive => Ok(()),
            Err(error) => absent::<Head>(Err(error), base),
        }
    }

    fn purge(&mut self, store: &dyn Store, n: usize) -> Step {
        let session = &mut self.model.sessions[n];
        let answer = now(store.purge(session.id));
        if !session.alive {
            return absent(answer, session);
        }
        session.alive = false;
        session.draft = None;
        answered(answer)
    }

    fn draft(&mut self, store: &dyn Store, n: usize, back: usize, content: &str) -> Step {
        let session = &mut self.model.sessions[n];
        let after = session
            .log
            .iter()
            .rev()
            .nth(back)
            .map_or(Head::START, Entry::head);
        let draft = Draft {
            after,
            id: self.clock.entry_id(),
            at: self.clock.now(),
            speaker: tertulia_core::entry::Speaker::plain(
                "claude",
                tertulia_core::entry::SpeakerKind::Ai,
            ),
            model: None,
            thread: None,
            content: content.to_owned(),
            reasoning: None,
            sealed: false,
        };
        let answer = now(store.keep_draft(session.id, &draft));
        if !session.alive {
            return absent(answer, session);
        }
        session.draft = Some(draft);
        answered(answer)
    }
}

/// Returns messages of a person and an agent in turn.
fn turns(said: &[&str]) -> Vec<Body> {
    let turn = |(n, words): (usize, &&str)| match n % 2 {
        0 => human(words),
        _ => ai("claude", words),
    };
    said.iter().enumerate().map(turn).collect()
}
