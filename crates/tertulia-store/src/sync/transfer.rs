//! Compares the branches of two partners and moves what one of them lacks.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::{Branch, Partner, Placing, place};
use crate::{Adopted, Doing, Progress, StoreError, StoreResult};
use tertulia_core::id::SessionId;
use tertulia_core::query::DamagedSession;

/// Number of branches per page.
const PAGE: usize = 1000;

/// The branches of a partner, by the session that they continue.
#[derive(Debug, Default)]
pub struct Heads {
    families: HashMap<SessionId, Vec<Branch>>,
    /// Sessions that cannot be compared.
    pub damaged: Vec<DamagedSession>,
}

impl Heads {
    /// Reads the branches of a partner.
    pub async fn of(partner: &dyn Partner) -> StoreResult<Heads> {
        let mut heads = Heads::default();
        let mut cursor = None;
        loop {
            let page = partner.page(cursor, PAGE).await?;
            for branch in page.branches {
                let family = heads.families.entry(branch.root).or_default();
                // A session that changes while pages are read may be in two of them.
                if family.iter().all(|known| known.id != branch.id) {
                    family.push(branch);
                }
            }
            heads.damaged.extend(page.damaged);
            match page.next {
                None => return Ok(heads),
                next => cursor = next,
            }
        }
    }

    /// Returns the number of sessions.
    pub fn sessions(&self) -> usize {
        self.families.values().map(Vec::len).sum()
    }

    /// Returns the branches, bases before their forks, so that a fork finds what it shares. Of one
    /// session, the branch with its own id comes first.
    fn in_order(&self) -> Vec<Branch> {
        let branches = || self.families.values().flatten();
        let bases: HashMap<SessionId, Option<SessionId>> =
            branches().map(|branch| (branch.id, branch.base)).collect();
        let depth = |id: SessionId| {
            let mut seen = HashSet::new();
            let mut at = id;
            while let Some(Some(base)) = bases.get(&at) {
                if !seen.insert(*base) {
                    break;
                }
                at = *base;
            }
            seen.len()
        };
        let mut ordered: Vec<Branch> = branches().cloned().collect();
        ordered.sort_by_cached_key(|branch| (depth(branch.id), branch.id));
        ordered
    }

    fn has(&self, branch: &Branch) -> bool {
        let family = self.families.get(&branch.root);
        family.is_some_and(|family| family.iter().any(|known| known.head == branch.head))
    }
}

/// A session that was continued in both stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Diverged {
    /// The session.
    pub session: SessionId,
    /// The fork that keeps the other continuation.
    pub fork: SessionId,
}

/// A session that was not moved, or not to its end.
#[derive(Debug)]
pub struct Skipped {
    /// The session, if its id is known.
    pub session: Option<SessionId>,
    /// Why.
    pub error: StoreError,
    /// Number of entries that were not moved.
    pub entries: u64,
}

impl Skipped {
    /// Returns true if the session is sealed in one store and plain in the other: neither can take
    /// that of the other.
    pub fn is_sealed_in_one(&self) -> bool {
        matches!(self.error, StoreError::SealedInOne { .. })
    }

    /// Returns true if the session is open in the target, so that a later transfer moves it.
    pub fn is_open(&self) -> bool {
        matches!(self.error, StoreError::Locked { .. })
    }
}

/// What a transfer moved.
#[derive(Debug, Default)]
pub struct Transferred {
    /// Sessions that were looked at.
    pub sessions: usize,
    /// Entries that were written.
    pub entries: usize,
    /// Sessions that were created.
    pub created: usize,
    /// Sessions that were extended.
    pub extended: usize,
    /// Sessions that diverged, with the forks that were created for them.
    pub diverged: Vec<Diverged>,
    /// Sessions that were not moved, or not to their ends.
    pub skipped: Vec<Skipped>,
}

impl Transferred {
    /// Returns true if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    fn note(&mut self, branch: &Branch, adopted: Adopted) {
        match adopted {
            Adopted::Known { .. } => {}
            Adopted::Created { .. } => self.created += 1,
            // The source keeps it as a fork already: it did not diverge now.
            Adopted::Forked { .. } if branch.id != branch.root => self.created += 1,
            Adopted::Extended { .. } => self.extended += 1,
            Adopted::Forked { id, .. } => self.diverged.push(Diverged {
                session: branch.root,
                fork: id,
            }),
        }
    }
}

/// A transfer from one partner to another.
pub struct Transfer<'a> {
    /// Where sessions come from.
    pub source: (&'a dyn Partner, &'a Heads),
    /// Where they go; what is written is added to the branches.
    pub target: (&'a dyn Partner, &'a mut Heads),
    /// Whether to write.
    pub doing: Doing,
    /// Shows the progress.
    pub progress: &'a Progress,
}

/// Moves all branches that the target lacks. What was moved before an error stays, and the next
/// transfer continues there.
pub async fn transfer(work: Transfer<'_>) -> StoreResult<Transferred> {
    let (source, branches) = work.source;
    let (target, known) = work.target;
    let mut done = Transferred {
        sessions: branches.sessions() + branches.damaged.len(),
        ..Transferred::default()
    };
    let mut lacking = branches.in_order();
    lacking.retain(|branch| !known.has(branch));
    let total = lacking.len() as u64;
    for (at, branch) in lacking.iter().enumerate() {
        work.progress.at("moving", at as u64, total);
        let members = known.families.entry(branch.root).or_default();
        let placing = Placing {
            source,
            branch,
            target,
            doing: work.doing,
        };
        match place(&placing, members, &mut done.entries).await {
            Ok(adopted) => done.note(branch, adopted),
            Err(error) if ends_all(&error) => return Err(error),
            // Purged since it was listed.
            Err(StoreError::NotFound(id)) if id == branch.id => {}
            // A session that cannot be moved does not keep the others from it.
            Err(error) => done.skipped.push(Skipped {
                session: Some(branch.id),
                entries: lacking_entries(source, branch, members).await?,
                error: explained(error, branch, members),
            }),
        }
    }
    work.progress.at("moving", total, total);
    for session in &branches.damaged {
        let name = session
            .id
            .map_or("a session".to_owned(), |id| format!("session {id}"));
        done.skipped.push(Skipped {
            session: session.id,
            error: StoreError::damaged(name, session.reason.clone()),
            entries: 0,
        });
    }
    Ok(done)
}

/// Returns the number of entries that a branch has more than its beginning among `members`.
async fn lacking_entries(
    source: &dyn Partner,
    branch: &Branch,
    members: &[Branch],
) -> StoreResult<u64> {
    let mut most = 0;
    for member in members.iter().filter(|it| it.head.seq < branch.head.seq) {
        let same = source.head_at(branch.id, member.head.seq).await;
        if same.is_ok_and(|head| head == Some(member.head)) {
            most = most.max(member.head.seq.0);
        }
    }
    Ok(branch.head.seq.0 - most)
}

/// Returns the error of a branch that does not fit to `members`, with the reason if that is a seal:
/// sealing replaces a log from its first entry on.
fn explained(error: StoreError, branch: &Branch, members: &[Branch]) -> StoreError {
    let is_other = |member: &&Branch| {
        member
            .sealed
            .zip(branch.sealed)
            .is_some_and(|(a, b)| a != b)
    };
    match (error, members.iter().find(is_other)) {
        (StoreError::Exists(id), Some(member)) => StoreError::SealedInOne {
            id,
            in_target: member.sealed == Some(true),
        },
        (error, _) => error,
    }
}

/// Returns true for an error that the next session would meet, too.
fn ends_all(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Full { .. }
            | StoreError::ReadOnly { .. }
            | StoreError::Held(_)
            | StoreError::Unreachable { .. }
    )
}
