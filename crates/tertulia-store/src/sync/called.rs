//! What entries of other sessions are called in this store. A branch has another session in each
//! store: where it is kept as a fork, and where it is the session itself. Its entries are found by
//! their hashes.

use super::kept::is_derived;
use super::{Branch, BranchSource, Branches, CHUNK, Partner};
use crate::{Sessions, StoreError, StoreResult};
use tertulia_core::entry::{Body, Entry, Head, Numbering, Origin, branch_id};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::{Parent, SessionMeta};

impl Sessions {
    /// Names the sessions that a log refers to (what it was forked from, merged from, replayed from)
    /// as this store calls them. What is not in this store keeps its name.
    pub async fn name_origins(
        &self,
        meta: &mut SessionMeta,
        entries: &mut [Entry],
    ) -> StoreResult<()> {
        let branches = Branches::of(self.stored());
        // As they were: a name that was replaced may be that of another parent.
        let place = |parent: &Parent| (parent.id, parent.seq);
        let parents = [&meta.parent, &meta.merged].map(|parent| parent.as_ref().map(place));
        let mut root = None;
        for entry in entries {
            let is_branch = entry.opened_branch().is_some();
            let origins: Vec<&mut Origin> = match &mut entry.body {
                Body::Forked(forked) => vec![&mut forked.from],
                Body::Merged(merged) => vec![&mut merged.ours, &mut merged.theirs],
                Body::Replayed(replayed) => vec![&mut replayed.of],
                _ => Vec::new(),
            };
            for origin in origins {
                if let Some((id, seq)) = branches.called_here(origin, root).await? {
                    let named = [&mut meta.parent, &mut meta.merged];
                    for (was, parent) in parents.iter().zip(named) {
                        if *was == Some((origin.id, origin.seq))
                            && let Some(parent) = parent
                        {
                            (parent.id, parent.seq) = (id, seq);
                        }
                    }
                    (origin.id, origin.seq) = (id, seq);
                }
            }
            match &entry.body {
                Body::Created(created) => root = Some(created.session),
                Body::Forked(forked) if !is_branch && forked.session != meta.id => {
                    root = Some(forked.session);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Names the parents of a merge as this store calls them. Other sessions stay as they are.
    pub async fn name_parents(&self, meta: &mut SessionMeta) -> StoreResult<()> {
        let Some(parent) = meta.parent.as_ref().filter(|_| meta.merged.is_some()) else {
            return Ok(());
        };
        // The entry that opens the merge, and the one that says what it joins.
        let end = parent.seq.next().next();
        let (mut after, mut openings) = (Seq::START, Vec::new());
        while after < end {
            let lines = self.stored().read(meta.id, after, CHUNK).await?;
            let Some(last) = lines.last() else {
                break;
            };
            after = last.seq;
            let lines = lines.iter().filter(|line| line.seq <= end);
            let entries = lines.filter_map(|line| Entry::decode(&line.bytes).ok());
            openings.extend(entries.filter(|entry| {
                matches!(
                    entry.body,
                    Body::Created(_) | Body::Forked(_) | Body::Merged(_)
                )
            }));
        }
        self.name_origins(meta, &mut openings).await
    }
}

impl Branches<'_> {
    /// Returns the session and the number that an entry has here. `root` is the session whose branch
    /// it may be in.
    pub(crate) async fn called_here(
        &self,
        origin: &Origin,
        root: Option<SessionId>,
    ) -> StoreResult<Option<(SessionId, Seq)>> {
        if self.has(origin).await? {
            return Ok(Some((origin.id, origin.seq)));
        }
        let root = match is_derived(origin.id) {
            true => root,
            false => Some(origin.id),
        };
        let Some(root) = root else {
            return Ok(None);
        };
        for member in self.family(root).await? {
            let seq = match self.head_at(member.id, origin.seq).await? {
                Some(head) if head.hash == origin.hash => Some(origin.seq),
                _ => self.kept_elsewhere(&member, origin).await?,
            };
            if let Some(seq) = seq {
                let kept = self.kept_by(member.id).await?;
                let stored = kept.map_or(seq, |kept| kept.numbering.stored(seq));
                return Ok(Some((member.id, stored)));
            }
        }
        Ok(None)
    }

    /// Returns the number in a branch of an entry that another store names by the fork in which it
    /// keeps the branch: the id of that fork comes from the first entry that it does not share.
    async fn kept_elsewhere(&self, branch: &Branch, origin: &Origin) -> StoreResult<Option<Seq>> {
        if !is_derived(origin.id) {
            return Ok(None);
        }
        let mut before = Head::START;
        while before.seq < branch.head.seq {
            let lines = self.lines(branch.id, before.seq, CHUNK).await?;
            if lines.is_empty() {
                break;
            }
            for line in &lines {
                let entry = Entry::decode(&line.bytes)
                    .map_err(|error| StoreError::failed("cannot read a log", error))?;
                if branch_id(branch.root, &entry.hash) == origin.id {
                    let numbering = Numbering::default().forked_after(before.seq);
                    return Ok(Some(numbering.original(origin.seq).min(branch.head.seq)));
                }
                before = entry.head();
            }
        }
        Ok(None)
    }
}
