//! Gives a store one branch: nothing if it has the branch, the rest if it has its beginning, else a
//! session of its own.

use std::cmp::Reverse;

use super::check::{check_more, check_new, opens_another, other_opened};
use super::chunks::Chunks;
use super::{Branch, BranchSource, MergedEnd, NewBranch, Partner};
use crate::{Adopted, Doing, StoreError, StoreResult};
use tertulia_core::entry::{Entry, Head, Origin, branch_id};
use tertulia_core::id::SessionId;

/// How often the branches of the target are read again because another writer changed them.
const RETRIES: usize = 5;
/// Maximum number of bytes of another session's log before the opening of a fork.
const MOST_BEFORE_OPENING: usize = 32_000_000;

/// What is placed, and where.
pub(crate) struct Placing<'a> {
    pub(crate) source: &'a dyn BranchSource,
    pub(crate) branch: &'a Branch,
    pub(crate) target: &'a dyn Partner,
    pub(crate) doing: Doing,
}

/// What is to be done with a branch.
enum Step {
    /// The session has it.
    Known(SessionId),
    /// The session at this position has its beginning.
    Extend(usize),
    /// The target has no branch of its session.
    Create,
    /// The session at this position gets an end that has the changes of both.
    Merge(usize, MergedEnd),
    /// The session has the beginning of it, up to an entry, and then others.
    Fork(SessionId, Head),
}

/// Places a branch among `members`, the branches of the same session that the target has, and adds
/// to them what it writes. `moved` counts the entries that were written, also if it fails.
pub(crate) async fn place(
    placing: &Placing<'_>,
    members: &mut Vec<Branch>,
    moved: &mut usize,
) -> StoreResult<Adopted> {
    let mut tries = 0;
    loop {
        let step = placing.step(members).await?;
        match placing.carry_out(step, members, moved).await {
            // Another writer was faster: what it wrote may be the same.
            Err(StoreError::Conflict { .. } | StoreError::Exists(_) | StoreError::NotFound(_))
                if tries < RETRIES && placing.doing == Doing::Write =>
            {
                tries += 1;
                *members = placing.target.family(placing.branch.root).await?;
            }
            placed => return placed,
        }
    }
}

impl Placing<'_> {
    async fn member_head(
        &self,
        member: &Branch,
        seq: tertulia_core::id::Seq,
    ) -> StoreResult<Option<Head>> {
        match member.planned {
            Some(planned) => self.source.head_at(planned, seq).await,
            None => self.target.head_at(member.id, seq).await,
        }
    }

    /// Returns true if the branch would become a fork.
    pub(crate) async fn diverges(&self, members: &[Branch]) -> StoreResult<bool> {
        let step = self.step(members).await?;
        Ok(matches!(step, Step::Fork(..) | Step::Merge(..)))
    }

    async fn step(&self, members: &[Branch]) -> StoreResult<Step> {
        let end = self.branch.head;
        if let Some(member) = members.iter().find(|member| member.head == end) {
            return Ok(Step::Known(member.id));
        }
        for (at, member) in members.iter().enumerate() {
            if member.head.seq > end.seq {
                if self.member_head(member, end.seq).await? == Some(end) {
                    return Ok(Step::Known(member.id));
                }
            } else if member.head.seq < end.seq
                && self.source.head_at(self.branch.id, member.head.seq).await? == Some(member.head)
            {
                return Ok(Step::Extend(at));
            }
        }
        let mut nearest = Vec::new();
        for (at, member) in members.iter().enumerate() {
            nearest.push((at, member, self.common(member).await?));
        }
        // The one that it has most in common with; of equal ones, the session itself: then every store
        // chooses alike.
        nearest.sort_by_key(|(_, member, common)| (Reverse(common.seq), member.id != member.root));
        for (at, member, common) in &nearest {
            if let Some(end) = self.merged_end(member, *common).await? {
                let has_all = end.entries.last().map(Entry::head) == Some(member.head);
                return Ok(match has_all {
                    true => Step::Known(member.id),
                    false => Step::Merge(*at, end),
                });
            }
        }
        match nearest.first() {
            None => Ok(Step::Create),
            Some((_, _, Head::START)) => Err(StoreError::Exists(self.branch.root)),
            Some((_, member, common)) => Ok(Step::Fork(member.id, *common)),
        }
    }

    /// Returns the last common entry with another branch. Hashes are chained, so that a binary search
    /// finds it.
    async fn common(&self, member: &Branch) -> StoreResult<Head> {
        let mut common = Head::START;
        let end = self.branch.head.seq.min(member.head.seq).0;
        let (mut low, mut high) = (0, end + 1);
        while low + 1 < high {
            let middle = tertulia_core::id::Seq(low + (high - low) / 2);
            let ours = self.source.head_at(self.branch.id, middle).await?;
            let theirs = self.member_head(member, middle).await?;
            match ours.filter(|ours| Some(*ours) == theirs) {
                Some(head) => (low, common) = (middle.0, head),
                None => high = middle.0,
            }
        }
        Ok(common)
    }

    async fn carry_out(
        &self,
        step: Step,
        members: &mut Vec<Branch>,
        moved: &mut usize,
    ) -> StoreResult<Adopted> {
        match step {
            Step::Known(id) => Ok(Adopted::Known { id }),
            Step::Extend(at) => {
                let Some(member) = members.get_mut(at) else {
                    return Err(StoreError::NotFound(self.branch.root));
                };
                let id = member.id;
                let mut chunks = Chunks::after(self.source, self.branch, member.head);
                let entries = self.append_all(member, &mut chunks, moved).await?;
                Ok(Adopted::Extended { id, entries })
            }
            Step::Create => {
                let base = self.base().await?;
                let after = base.as_ref().map_or(Head::START, |origin| Head {
                    seq: origin.seq,
                    hash: origin.hash,
                });
                let (id, entries) = self.create(None, base, after, members, moved).await?;
                Ok(Adopted::Created { id, entries })
            }
            Step::Merge(at, end) => {
                let Some(member) = members.get_mut(at) else {
                    return Err(StoreError::NotFound(self.branch.root));
                };
                let (id, common) = (member.id, end.common);
                match self.take_end(member, &end).await {
                    // Something in the target holds the old end.
                    Err(StoreError::Refused(_)) => {
                        let step = Step::Fork(id, common);
                        Box::pin(self.carry_out(step, members, moved)).await
                    }
                    entries => {
                        let entries = entries?;
                        *moved += entries;
                        Ok(Adopted::Extended { id, entries })
                    }
                }
            }
            Step::Fork(sibling, common) => {
                let beside = Some((sibling, common));
                let (id, entries) = self.create(beside, None, common, members, moved).await?;
                Ok(Adopted::Forked {
                    id,
                    from: sibling,
                    entries,
                })
            }
        }
    }

    /// Returns the entry of another session from which the target has the beginning of the branch.
    async fn base(&self) -> StoreResult<Option<Origin>> {
        for origin in self.source.origins(self.branch.id).await? {
            // A fork that was sealed without its original has a beginning of its own.
            let own = self.source.head_at(self.branch.id, origin.seq).await?;
            let is_shared = own.is_some_and(|own| own.hash == origin.hash);
            if is_shared && self.target.has(&origin).await? {
                return Ok(Some(origin));
            }
        }
        Ok(None)
    }

    async fn create(
        &self,
        beside: Option<(SessionId, Head)>,
        base: Option<Origin>,
        after: Head,
        members: &mut Vec<Branch>,
        moved: &mut usize,
    ) -> StoreResult<(SessionId, usize)> {
        let mut chunks = Chunks::after(self.source, self.branch, after);
        let entries = self.first_entries(&mut chunks).await?;
        let Some(first) = entries.first() else {
            return Err(StoreError::damaged(
                format!("session {}", self.branch.id),
                "it has no entries",
            ));
        };
        let root = self.branch.root;
        let count = entries.len();
        let id = match beside {
            Some(_) => branch_id(root, &first.hash),
            None => root,
        };
        let new = NewBranch {
            root,
            beside,
            base,
            entries,
        };
        let mut made = if self.doing == Doing::Preview {
            check_new(&new)?;
            Branch {
                id,
                head: new.entries.last().map_or(after, Entry::head),
                planned: Some(self.branch.id),
                ..self.branch.clone()
            }
        } else {
            self.target.create(&new).await?
        };
        *moved += count;
        let id = made.id;
        let rest = self.append_all(&mut made, &mut chunks, moved).await;
        members.push(made);
        Ok((id, count + rest?))
    }

    /// Returns the first entries of the branch that are written: a fork whose original is not in the
    /// target begins with the log of the original, and is written with its own opening at once.
    async fn first_entries(&self, chunks: &mut Chunks<'_>) -> StoreResult<Vec<Entry>> {
        let root = self.branch.root;
        let mut entries = chunks.next().await?;
        let mut bytes = 0;
        while let Some(other) = other_opened(root, &entries) {
            let more = chunks.next().await?;
            bytes += more.iter().map(|entry| entry.line().len()).sum::<usize>();
            if more.is_empty() || bytes > MOST_BEFORE_OPENING {
                return Err(opens_another(root, other));
            }
            entries.extend(more);
        }
        Ok(entries)
    }

    /// Appends what remains of the branch. Returns the number of entries.
    async fn append_all(
        &self,
        member: &mut Branch,
        chunks: &mut Chunks<'_>,
        moved: &mut usize,
    ) -> StoreResult<usize> {
        let mut count = 0;
        loop {
            let entries = chunks.next().await?;
            let Some(last) = entries.last() else {
                return Ok(count);
            };
            if self.doing == Doing::Write {
                member.head = self.target.append(member.id, member.head, &entries).await?;
            } else {
                check_more(member.root, &entries)?;
                member.head = last.head();
                member.planned = Some(self.branch.id);
            }
            count += entries.len();
            *moved += entries.len();
        }
    }
}
