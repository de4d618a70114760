//! Merges titles, tags and trash that were changed in two stores into one end of a log.

use std::sync::Arc;

use super::branches::check_sealed;
use super::check::check_more;
use super::{Branch, BranchSource, Branches, CHUNK_BYTES, MergedEnd, Placing};
use crate::{Doing, StoreError, StoreResult};
use tertulia_core::entry::{
    Body, Entry, Head, Origin, SealedChanges, Tail, can_be_merged, merged_tail,
};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Page, Trash};
use tertulia_core::seal::{SealError, SessionKeys};
use tertulia_core::session::{Log, SessionMeta};

/// Number of lines that are read at once of an end.
const LINES: usize = 200;

/// Returns merged entries; `None` if some of them cannot be: an entry that is not what the key sealed stays
/// where it is, and so the branches stay apart.
fn merged_or_apart(
    merged: Result<Option<Vec<Entry>>, SealError>,
) -> StoreResult<Option<Vec<Entry>>> {
    match merged {
        Err(SealError::Altered) => Ok(None),
        merged => merged.map_err(|error| StoreError::failed("cannot merge changes", error)),
    }
}

/// Returns the entries of a branch after one of them; `None` if they are too long to be written at
/// once.
async fn end_of(
    source: &dyn BranchSource,
    branch: &Branch,
    after: Head,
) -> StoreResult<Option<Vec<Entry>>> {
    let mut entries: Vec<Entry> = Vec::new();
    let (mut head, mut bytes) = (after, 0);
    while head.seq < branch.head.seq {
        let lines = source.lines(branch.id, head.seq, LINES).await?;
        let log = Log::read(branch.id, Some(head), head.seq, &lines);
        if let Some(damage) = log.damage.first() {
            let reason = format!("entry {}: {}", damage.seq, damage.reason);
            return Err(StoreError::damaged(
                format!("session {}", branch.id),
                reason,
            ));
        }
        bytes += lines.iter().map(|line| line.bytes.len()).sum::<usize>();
        if log.entries.is_empty() || bytes > CHUNK_BYTES {
            return Ok(None);
        }
        head = log.entries.last().map_or(head, Entry::head);
        entries.extend(log.entries);
    }
    entries.retain(|entry| entry.seq <= branch.head.seq);
    Ok(Some(entries))
}

impl Placing<'_> {
    /// Returns the end that a member of the target gets so that it has what the branch has, too;
    /// `None` if both went on after their last common entry.
    pub(super) async fn merged_end(
        &self,
        member: &Branch,
        common: Head,
    ) -> StoreResult<Option<MergedEnd>> {
        if common == Head::START {
            return Ok(None);
        }
        let theirs = match member.planned {
            None => end_of(self.target, member, common).await?,
            Some(_) => None,
        };
        let ours = end_of(self.source, self.branch, common).await?;
        let (Some(ours), Some(theirs)) = (ours, theirs) else {
            return Ok(None);
        };
        let end = |entries, fixed| Tail { entries, fixed };
        // Most sessions that diverged have words on both sides: neither forks nor keys need be looked for.
        if !can_be_merged(end(&ours, Seq::START), end(&theirs, Seq::START)) {
            return Ok(None);
        }
        let is_sealed = |entry: &Entry| matches!(entry.body, Body::Sealed(_));
        let keys = match ours.iter().chain(&theirs).any(is_sealed) {
            true => self.keys(member).await?,
            false => None,
        };
        let sealed = match &keys {
            Some(keys) => SealedChanges::Reseal(keys),
            None => SealedChanges::Stay,
        };
        let fixed = self.source.fixed(self.branch.id).await?;
        let held = self.target.fixed(member.id).await?;
        let merged = merged_tail(common, end(&ours, fixed), end(&theirs, held), sealed);
        Ok(merged_or_apart(merged)?.map(|entries| MergedEnd {
            after: member.head,
            common,
            fixed,
            entries,
        }))
    }

    /// Returns the keys of a sealed branch and of a member of the target that continues the same entries.
    /// Only one of the two can have keys that the other lacks, or their changes cannot be merged.
    async fn keys(&self, member: &Branch) -> StoreResult<Option<Arc<SessionKeys>>> {
        let ours = self.source.keys(self.branch).await?;
        let theirs = self.target.keys(member).await?;
        let both = ours.into_iter().chain(theirs);
        Ok(both.max_by_key(|keys| keys.entries().count()))
    }

    /// Gives a member of the target its new end. Returns the number of entries that it has more, and
    /// one if only their order is new.
    pub(super) async fn take_end(
        &self,
        member: &mut Branch,
        end: &MergedEnd,
    ) -> StoreResult<usize> {
        let before = member.head.seq;
        member.head = match self.doing {
            Doing::Write => self.target.merge_end(member.id, end).await?,
            Doing::Preview => end.entries.last().map_or(member.head, Entry::head),
        };
        let more = member.head.seq.0.saturating_sub(before.0);
        Ok(usize::try_from(more).unwrap_or(usize::MAX).max(1))
    }
}

impl Branches<'_> {
    /// Returns the last entry of a branch that a fork or a merge refers to.
    pub(super) async fn last_referred(&self, id: SessionId) -> StoreResult<Seq> {
        let mut last = Seq::START;
        for head in self.references_to(id).await? {
            if self.stored_head(id, head.seq).await? == Some(head) {
                last = last.max(head.seq);
            }
        }
        let Some(kept) = self.kept_by(id).await? else {
            return Ok(last);
        };
        let numbering = &kept.numbering;
        let mut opening = numbering.shared().next();
        while !numbering.is_last_part(opening) {
            opening = opening.next();
        }
        // The fork is called after its first entry, so that one stays.
        let first = numbering.original(opening.next());
        let mut last = numbering.original(last).max(first);
        // What was made from the branch on another machine names the session that it continues, which
        // may have another entry in that place here.
        for head in self.references_to(kept.root).await? {
            if self.head_at(id, head.seq).await? == Some(head) {
                last = last.max(head.seq);
            }
        }
        Ok(last)
    }

    /// Returns the entries of a session, as far as other sessions refer to it. A number alone may mean an
    /// entry that another store has in this place: the hash tells.
    async fn references_to(&self, id: SessionId) -> StoreResult<Vec<Head>> {
        let filter = Filter {
            parent: Some(id),
            trash: Trash::With,
            ..Filter::default()
        };
        let mut page = Page::first(500);
        let mut found = Vec::new();
        loop {
            let listing = self.store.list(&filter, &page).await?;
            for row in &listing.rows {
                self.add_references(&row.meta, id, &mut found).await?;
            }
            match listing.next {
                Some(next) => page.cursor = Some(next),
                None => return Ok(found),
            }
        }
    }

    /// Adds the entries of a session that a child of it refers to.
    async fn add_references(
        &self,
        child: &SessionMeta,
        id: SessionId,
        found: &mut Vec<Head>,
    ) -> StoreResult<()> {
        if child.merged.is_some()
            && let Some((_, opening)) = self.last_opening(child.id, child.head.seq).await?
            && let Some(joins) = self.entry(child.id, opening.next()).await?
            && let Body::Merged(merged) = joins.body
        {
            let named = [merged.ours, merged.theirs].into_iter();
            let named = named.filter(|origin| origin.id == id);
            found.extend(named.map(|Origin { seq, hash, .. }| Head { seq, hash }));
        } else if let Some(parent) = child.parent.as_ref().filter(|parent| parent.id == id) {
            found.extend(self.stored_head(child.id, parent.seq).await?);
        }
        Ok(())
    }

    pub(super) async fn replace_end(&self, id: SessionId, end: &MergedEnd) -> StoreResult<Head> {
        check_more(id, &end.entries)?;
        let _lock = self.unopened(id).await?;
        let meta = self.row(id).await?.ok_or(StoreError::NotFound(id))?;
        check_sealed(id, Some(&meta), &end.entries)?;
        let branch = self.branch(&meta).await?;
        if branch.head != end.after {
            let head = branch.head;
            return Err(StoreError::Conflict { id, head });
        }
        let refused = || {
            StoreError::Refused(format!(
                "session {id} keeps its end: the new one does not have all its entries"
            ))
        };
        // The other end of a link may ask for anything.
        let is_common = self.head_at(id, end.common.seq).await? == Some(end.common);
        let old = end_of(self, &branch, end.common).await?;
        let old = old.filter(|_| is_common).ok_or_else(refused)?;
        let old = Tail {
            entries: &old,
            fixed: self.last_referred(id).await?,
        };
        let new = Tail {
            entries: &end.entries,
            fixed: end.fixed,
        };
        // The other store has the key of a sealed session; this one may not have it.
        let merged = merged_tail(end.common, old, new, SealedChanges::Moved(&end.entries));
        if merged_or_apart(merged)?.as_deref() != Some(&end.entries) {
            return Err(refused());
        }
        // Only what differs is written again.
        let pairs = old.entries.iter().zip(&end.entries);
        let same = pairs.take_while(|(old, new)| old.hash == new.hash).count();
        let (kept, more) = end.entries.split_at(same);
        let common = kept.last().map_or(end.common, Entry::head);
        // A half-written answer names the entry that it follows.
        let draft = self.store.draft(id).await?;
        if draft.is_some_and(|draft| draft.after.seq > common.seq) {
            return Err(refused());
        }
        let kept = self.kept(&meta).await?;
        let place = match &kept {
            Some(kept) => kept.numbering.stored(common.seq),
            None => common.seq,
        };
        self.check_keys(id, Some((id, place)), more).await?;
        let Some(kept) = kept else {
            let store = self.store;
            store.replace_end(id, meta.head, common, more).await?;
            return Ok(end.entries.last().map_or(end.after, Entry::head));
        };
        // What stands before the last opening belongs to another session.
        if !kept.numbering.is_last_part(place) {
            return Err(refused());
        }
        let common = self.stored_head(id, place).await?.ok_or_else(refused)?;
        let (mut head, mut stored) = (common, Vec::new());
        for entry in more {
            let entry = kept.numbering.to_stored(entry, &head);
            let entry =
                entry.map_err(|error| StoreError::failed("cannot write a branch", error))?;
            head = entry.head();
            stored.push(entry);
        }
        self.store
            .replace_end(id, meta.head, common, &stored)
            .await?;
        self.forget(id);
        Ok(end.entries.last().map_or(end.after, Entry::head))
    }
}
