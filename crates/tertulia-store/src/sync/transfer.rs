//! Compares the branches of two partners and moves what one of them lacks.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::{Branch, Partner, Placing, place};
use crate::sealed::common_entries;
use crate::{Adopted, Doing, Progress, StoreError, StoreResult};
use tertulia_core::entry::Entry;
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
            let mut is_new = false;
            for branch in page.branches {
                // Most families have one member, and a store may have very many.
                let family = heads
                    .families
                    .entry(branch.root)
                    .or_insert_with(|| Vec::with_capacity(1));
                // A session that changes while pages are read may be in two of them.
                if family.iter().all(|known| known.id != branch.id) {
                    family.push(branch);
                    is_new = true;
                }
            }
            for session in page.damaged {
                if !heads.damaged.contains(&session) {
                    heads.damaged.push(session);
                    is_new = true;
                }
            }
            match page.next {
                None => return Ok(heads),
                // Else a partner could make this one read for ever.
                Some(_) if !is_new => {
                    return Err(StoreError::Refused(
                        "the list of the other store's sessions does not end: a page has nothing new"
                            .to_owned(),
                    ));
                }
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
        let depth = self.depths();
        let mut ordered: Vec<Branch> = self.families.values().flatten().cloned().collect();
        ordered.sort_by_cached_key(|branch| (depth(branch.id), branch.id));
        ordered
    }

    /// Returns how many sessions a session was forked from, one from the other.
    fn depths(&self) -> impl Fn(SessionId) -> usize {
        let branches = self.families.values().flatten();
        let bases: HashMap<SessionId, Option<SessionId>> =
            branches.map(|branch| (branch.id, branch.base)).collect();
        move |id| {
            let mut seen = HashSet::new();
            let mut at = id;
            while let Some(Some(base)) = bases.get(&at) {
                if !seen.insert(*base) {
                    break;
                }
                at = *base;
            }
            seen.len()
        }
    }

    /// Returns the sessions that the two stores may have sealed differently, or only one of them: the
    /// copies of this one and of `other`, forks before their bases, with which those would be sealed that
    /// have no sealed copy of their own.
    pub(crate) fn sealed_otherwise(&self, other: &Heads) -> Vec<(Branch, Branch)> {
        let own = |heads: &Heads, root: &SessionId| {
            let family = heads.families.get(root)?;
            let mut found = family.iter().filter(|branch| branch.id == *root);
            found.next().cloned()
        };
        let roots = self.families.keys();
        let both = roots.filter_map(|root| Some((own(self, root)?, own(other, root)?)));
        let may_differ = |(our, their): &(Branch, Branch)| {
            is_sealed_in_one(our, their) || (are_sealed(our, their) && our.head != their.head)
        };
        let mut found: Vec<(Branch, Branch)> = both.filter(may_differ).collect();
        let depth = self.depths();
        found.sort_by_cached_key(|(our, _)| (Reverse(depth(our.id)), our.id));
        found
    }

    fn has(&self, branch: &Branch) -> bool {
        let family = self.families.get(&branch.root);
        family.is_some_and(|family| family.iter().any(|known| known.head == branch.head))
    }
}

/// A session that was continued in both stores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diverged {
    /// The session.
    pub session: SessionId,
    /// The fork that keeps the other continuation.
    pub fork: SessionId,
    /// The machine where the other continuation was begun, if it is known.
    pub host: Option<String>,
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
    /// Returns true if the session is sealed in one store and plain in the other, or with other keys:
    /// neither can take that of the other.
    pub fn is_sealed_otherwise(&self) -> bool {
        matches!(
            self.error,
            StoreError::SealedInOne { .. } | StoreError::SealedTwice { .. }
        )
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

    fn note(&mut self, root: SessionId, adopted: Adopted, host: Option<String>, is_new: bool) {
        match adopted {
            Adopted::Known { .. } => {}
            Adopted::Created { .. } => self.created += 1,
            // The session came with its branches: it did not go on in this store.
            Adopted::Forked { .. } if is_new => self.created += 1,
            Adopted::Extended { .. } => self.extended += 1,
            Adopted::Forked { id, .. } => self.diverged.push(Diverged {
                session: root,
                fork: id,
                host,
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
    let mut new_sessions: HashSet<SessionId> = HashSet::new();
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
            Ok(adopted) => {
                if let Adopted::Created { id, .. } = adopted {
                    new_sessions.insert(id);
                }
                let host = host_of(source, branch, adopted).await?;
                let is_new = new_sessions.contains(&branch.root);
                done.note(branch.root, adopted, host, is_new);
            }
            Err(error) if ends_all(&error) => return Err(error),
            // Purged since it was listed.
            Err(StoreError::NotFound(id)) if id == branch.id => {}
            // A session that cannot be moved does not keep the others from it.
            Err(error) => done.skipped.push(Skipped {
                session: Some(branch.id),
                entries: lacking_entries(source, branch, members).await?,
                error: explained(error, (source, branch), (target, members)).await?,
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

/// Returns the machine where a branch that became a fork was begun.
async fn host_of(
    source: &dyn Partner,
    branch: &Branch,
    adopted: Adopted,
) -> StoreResult<Option<String>> {
    let Adopted::Forked { entries, .. } = adopted else {
        return Ok(None);
    };
    let before = branch.head.seq.back(entries as u64);
    let lines = source.lines(branch.id, before, 1).await?;
    let first = lines.first().map(|line| Entry::decode(&line.bytes));
    let author = first.and_then(|first| first.ok()?.author);
    Ok(author.map(|author| author.host.into_string()))
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
async fn explained(
    error: StoreError,
    (source, branch): (&dyn Partner, &Branch),
    (target, members): (&dyn Partner, &[Branch]),
) -> StoreResult<StoreError> {
    let StoreError::Exists(id) = error else {
        return Ok(error);
    };
    if members.iter().any(|member| are_sealed(member, branch)) {
        return Ok(StoreError::SealedTwice { id });
    }
    let mut others = members.iter();
    let Some(member) = others.find(|member| is_sealed_in_one(member, branch)) else {
        return Ok(error);
    };
    let common = common_entries(source, branch, target, member).await?;
    let in_target = member.sealed == Some(true);
    let plain = if in_target { branch } else { member };
    Ok(StoreError::SealedInOne {
        id,
        in_target,
        only_plain: plain.head.seq.0 - common,
    })
}

/// Returns true if one of two branches is sealed and the other is not, as far as that is known.
fn is_sealed_in_one(one: &Branch, other: &Branch) -> bool {
    let known = one.sealed.zip(other.sealed);
    known.is_some_and(|(one, other)| one != other)
}

/// Returns true if both branches are known to be sealed.
fn are_sealed(one: &Branch, other: &Branch) -> bool {
    one.sealed == Some(true) && other.sealed == Some(true)
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
