//! Moves sessions between stores by hash: what both have is not moved again, and a session that was
//! continued in both is kept in both, the other continuation as a fork.
//!
//! | part | purpose |
//! |---|---|
//! | [`Branch`] | one continuation of a session, named by its last entry |
//! | [`Partner`] | what a sync needs of a store, be it here or at the other end of a pipe |
//! | [`Branches`] | the branches of a [`Store`](crate::Store) |
//! | [`Heads`], [`transfer`] | compares the branches of two partners and moves what one of them lacks |
//!
//! A [`Partner`] speaks of logs as they were written first, without the openings of the forks that
//! keep diverged branches (see [`Entry::opened_branch`]). So two stores agree on a branch, whatever
//! session each of them keeps it in, if its last entry has the same hash.

mod branches;
mod called;
mod check;
mod chunks;
mod kept;
mod kept_heads;
mod merged_end;
mod place;
mod transfer;

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use branches::Branches;
pub(crate) use check::{opens_another, other_opened};
pub(crate) use place::{Placing, place};
pub use transfer::{Diverged, Heads, Skipped, Transfer, Transferred, transfer};

use super::StoreResult;
use tertulia_core::entry::{Entry, Head, Origin};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Cursor, DamagedSession};
use tertulia_core::seal::SessionKeys;
use tertulia_core::session::Line;

/// Approximate number of entries that are read or written at once.
pub const CHUNK: usize = 2000;
/// Approximate number of bytes that are written at once: a link takes lines of limited length.
pub const CHUNK_BYTES: usize = 2_000_000;

/// One continuation of a session, and where a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// Session that keeps it.
    pub id: SessionId,
    /// Session that it continues; the same one, unless it is kept as a fork.
    pub root: SessionId,
    /// Its last entry.
    pub head: Head,
    /// Session that this one was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<SessionId>,
    /// Whether it is sealed, if that is known: an earlier version of the program does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<bool>,
    /// Session of the other store that holds its entries: it was only planned here.
    #[serde(skip)]
    planned: Option<SessionId>,
}

impl Branch {
    pub(crate) fn new(id: SessionId, root: SessionId, head: Head) -> Branch {
        Branch {
            id,
            root,
            head,
            base: None,
            sealed: None,
            planned: None,
        }
    }
}

/// A page of branches.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BranchPage {
    /// The branches.
    pub branches: Vec<Branch>,
    /// Sessions that cannot be compared, in no other page.
    pub damaged: Vec<DamagedSession>,
    /// Where the next page begins.
    #[serde(with = "cursor_text")]
    pub next: Option<Cursor>,
}

/// A branch to create.
#[derive(Clone, Debug)]
pub struct NewBranch {
    /// Session that it continues.
    pub root: SessionId,
    /// Session that keeps a sibling of it, and their last common entry; `None` if the store has no
    /// branch of that session.
    pub beside: Option<(SessionId, Head)>,
    /// Entry of another session that it shares its beginning with, if it has no sibling.
    pub base: Option<Origin>,
    /// The first entries after that.
    pub entries: Vec<Entry>,
}

/// Where entries of branches come from.
#[async_trait]
pub trait BranchSource: Send + Sync {
    /// Returns the entry of a branch with a sequence number, if there is one.
    async fn head_at(&self, id: SessionId, seq: Seq) -> StoreResult<Option<Head>>;

    /// Returns at most `limit` lines of a branch after an entry.
    async fn lines(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>>;

    /// Returns the entries of other sessions that a branch shares its beginning with, the longest
    /// beginning first.
    async fn origins(&self, id: SessionId) -> StoreResult<Vec<Origin>>;

    /// Returns the last entry of a branch that a fork or a merge refers to, or [`Seq::START`].
    async fn fixed(&self, id: SessionId) -> StoreResult<Seq>;

    /// Returns the keys of a sealed branch, if they are at hand here.
    async fn keys(&self, _branch: &Branch) -> StoreResult<Option<Arc<SessionKeys>>> {
        Ok(None)
    }
}

/// A store that sessions are moved from and to.
#[async_trait]
pub trait Partner: BranchSource {
    /// Returns a page of all branches, those in the trash included.
    async fn page(&self, cursor: Option<Cursor>, limit: usize) -> StoreResult<BranchPage>;

    /// Returns all branches of one session.
    async fn family(&self, root: SessionId) -> StoreResult<Vec<Branch>>;

    /// Returns true if the store has exactly this entry.
    async fn has(&self, origin: &Origin) -> StoreResult<bool>;

    /// Creates a branch with its first entries. Durable on return.
    async fn create(&self, new: &NewBranch) -> StoreResult<Branch>;

    /// Appends entries to a branch that ends at `after`. Durable on return. Fails with
    /// [`StoreError::Locked`](crate::StoreError::Locked) if a program has the session open: its next
    /// message would not find the end of the log where it left it.
    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head>;

    /// Replaces the end of a branch by one that has the same entries and more, see
    /// [`merged_tail`](tertulia_core::entry::merged_tail). Durable on return. Refuses anything else;
    /// fails like [`Partner::append`] if a program has the session open.
    async fn merge_end(&self, id: SessionId, end: &MergedEnd) -> StoreResult<Head>;
}

/// The end of a branch that has the changes of two stores.
#[derive(Clone, Debug)]
pub struct MergedEnd {
    /// The last entry of the branch before it is replaced.
    pub after: Head,
    /// The last entry that stays.
    pub common: Head,
    /// The last entry that a fork or a merge of the other store refers to.
    pub fixed: Seq,
    /// The entries after `common`.
    pub entries: Vec<Entry>,
}

mod cursor_text {
    use serde::{Deserialize, Deserializer, Serializer};
    use tertulia_core::query::Cursor;

    pub(super) fn serialize<S: Serializer>(
        cursor: &Option<Cursor>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match cursor {
            Some(cursor) => serializer.collect_str(cursor),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Cursor>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let parsed = text.map(|text| text.parse()).transpose();
        parsed.map_err(serde::de::Error::custom)
    }
}
