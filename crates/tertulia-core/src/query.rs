//! Store-independent queries: lists, look-ups and searches as plain data.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;

use crate::entry::{Entry, Kind, Role, Speaker};
use crate::id::{Seq, SessionId};
use crate::search_text::{SearchTerms, Snippet};
use crate::session::SessionMeta;

/// Width of a snippet, in characters.
const SNIPPET_WIDTH: usize = 120;

/// All identities that one project has had: directories, root commits, remotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectIds(Arc<BTreeSet<String>>);

impl ProjectIds {
    /// Returns true if `id` is one of the identities.
    pub fn contains(&self, id: &str) -> bool {
        self.0.contains(id)
    }

    /// Returns the identities in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl<T: Into<String>> From<T> for ProjectIds {
    fn from(id: T) -> ProjectIds {
        ProjectIds(Arc::new(BTreeSet::from([id.into()])))
    }
}

impl<T: Into<String>> FromIterator<T> for ProjectIds {
    fn from_iter<I: IntoIterator<Item = T>>(ids: I) -> ProjectIds {
        ProjectIds(Arc::new(ids.into_iter().map(Into::into).collect()))
    }
}

/// A git worktree, or a folder without git.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worktree {
    /// Its path, and those that it had before it was moved.
    pub paths: Vec<String>,
    /// Other worktrees below it.
    pub others: Vec<String>,
}

impl Worktree {
    /// Returns true if a working directory is in this worktree.
    pub fn has(&self, cwd: &str) -> bool {
        let is_in = |folder: &String| {
            let rest = cwd.strip_prefix(folder.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.paths.iter().any(is_in) && !self.others.iter().any(is_in)
    }
}

/// Selects and orders sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Only sessions of this project, under any of its identities.
    pub project: Option<ProjectIds>,
    /// Only sessions that began in this worktree.
    pub worktree: Option<Box<Worktree>>,
    /// Only sessions of this kind.
    pub kind: Option<Kind>,
    /// Only sessions of this team.
    pub team: Option<String>,
    /// Only sessions to which this user wrote.
    pub author: Option<String>,
    /// Only sessions with this tag.
    pub tag: Option<String>,
    /// True if automatic tags count as tags.
    pub auto_tags: bool,
    /// Only sessions made from this one: forks, replays, and merges of it with another.
    pub parent: Option<SessionId>,
    /// Only sessions updated at or after this time.
    pub since: Option<Timestamp>,
    /// Only sessions updated before this time.
    pub until: Option<Timestamp>,
    /// Only sealed sessions.
    pub sealed: bool,
    /// Whether to include sessions in the trash.
    pub trash: Trash,
    /// Sort order.
    pub order: Order,
}

/// Whether to include sessions in the trash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trash {
    /// Only sessions that are not in the trash.
    #[default]
    Without,
    /// Only sessions in the trash.
    Only,
    /// Both.
    With,
}

/// Sort order of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Newest message first.
    #[default]
    Updated,
    /// Newest undoable change first; sessions without one are left out.
    Changed,
}

impl Filter {
    /// Returns true if a session matches the filter.
    pub fn matches(&self, meta: &SessionMeta) -> bool {
        fn is<T: PartialEq>(wanted: Option<&T>, found: Option<&T>) -> bool {
            wanted.is_none() || wanted == found
        }
        self.has_project(meta)
            && self
                .worktree
                .as_ref()
                .is_none_or(|tree| meta.cwd.as_deref().is_some_and(|cwd| tree.has(cwd)))
            && is(self.kind.as_ref(), Some(&meta.kind))
            && is(self.team.as_ref(), meta.team.as_ref())
            && (self.author.as_ref()).is_none_or(|author| meta.authors.contains(author))
            && self.tag.as_ref().is_none_or(|tag| self.has_tag(meta, tag))
            && self.parent.is_none_or(|id| meta.comes_from(id))
            && self.since.is_none_or(|since| meta.updated_at >= since)
            && self.until.is_none_or(|until| meta.updated_at < until)
            && (!self.sealed || meta.seal.is_some())
            && match self.trash {
                Trash::Without => meta.trashed_at.is_none(),
                Trash::Only => meta.trashed_at.is_some(),
                Trash::With => true,
            }
            && (self.order == Order::Updated || meta.changed_at().is_some())
    }

    fn has_tag(&self, meta: &SessionMeta, tag: &String) -> bool {
        meta.tags.contains(tag) || (self.auto_tags && meta.auto_tags().contains(tag))
    }

    /// Returns true if a session belongs to the filter's project.
    pub fn has_project(&self, meta: &SessionMeta) -> bool {
        self.project.as_ref().is_none_or(|ids| {
            let project = meta.project.as_deref();
            project.is_some_and(|project| ids.contains(project))
        })
    }

    /// Returns the time by which a session is sorted.
    pub fn sort_key(&self, meta: &SessionMeta) -> Timestamp {
        match self.order {
            Order::Updated => meta.updated_at,
            Order::Changed => meta.changed_at().unwrap_or(meta.updated_at),
        }
    }
}

/// Section of a long result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Maximum number of rows.
    pub limit: usize,
    /// End of the previous page.
    pub cursor: Option<Cursor>,
}

impl Page {
    /// Returns the page with the first `limit` rows.
    pub const fn first(limit: usize) -> Page {
        Page {
            limit,
            cursor: None,
        }
    }
}

/// End of a page, as an opaque value for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Sort key of the last row.
    pub at: Timestamp,
    /// Session of the last row.
    pub id: SessionId,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at.as_microsecond(), self.id)
    }
}

impl FromStr for Cursor {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Cursor, QueryError> {
        let read = || {
            let (at, id) = text.split_once('.')?;
            Some(Cursor {
                at: Timestamp::from_microsecond(at.parse().ok()?).ok()?,
                id: id.parse().ok()?,
            })
        };
        read().ok_or_else(|| QueryError::BadCursor(text.to_owned()))
    }
}

/// Sessions, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// Rows of this page.
    pub rows: Vec<Row>,
    /// Sessions hidden by the project filter and by the trash.
    pub hidden: Hidden,
    /// Number of sessions in the store, with those in the trash.
    pub sessions: u64,
    /// Cursor for the next page, if there is one.
    pub next: Option<Cursor>,
    /// Sessions of the whole store that are known to be damaged or unreadable; partly readable ones
    /// are also in `rows`. A list does not verify every byte: a check does.
    pub damaged: Vec<DamagedSession>,
}

/// A session that is damaged or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DamagedSession {
    /// Id of the session, if it is still known.
    pub id: Option<SessionId>,
    /// What is wrong with the session.
    pub reason: String,
}

/// One session of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Metadata of the session.
    pub meta: SessionMeta,
    /// True if a running program has the session open.
    pub open: bool,
}

/// Number of sessions that a list does not show, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// In other projects.
    pub elsewhere: u64,
    /// In the trash.
    pub trashed: u64,
}

impl Hidden {
    /// Returns the total.
    pub const fn total(self) -> u64 {
        self.elsewhere + self.trashed
    }
}

/// A way to look up a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// By full id.
    Id(SessionId),
    /// By part of the id: see [`SessionId::is_named_by`].
    Part(String),
    /// By exact title.
    Title(String),
    /// By the id in the program that the session was imported from.
    Original(String),
}

impl Lookup {
    /// Returns true if a session matches.
    pub fn matches(&self, meta: &SessionMeta) -> bool {
        match self {
            Lookup::Id(id) => meta.id == *id,
            Lookup::Part(part) => meta.id.is_named_by(part),
            Lookup::Title(title) => meta.title.as_deref() == Some(title),
            Lookup::Original(id) => meta.source.as_ref().is_some_and(|source| source.id == *id),
        }
    }
}

/// A full-text search.
#[derive(Clone, Debug)]
pub struct SearchQuery {
    /// Search terms.
    pub words: SearchTerms,
    /// Sessions to search.
    pub filter: Filter,
    /// Entries of those sessions to search.
    pub said: HitFilter,
    /// Maximum number of hits.
    pub limit: usize,
}

/// Selects the entries that a search finds, by the entries themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HitFilter {
    /// Only entries of this session, with those that it shares with the one it continues.
    pub session: Option<SessionId>,
    /// Only messages of this speaker (id, name or display name).
    pub speaker: Option<String>,
    /// Only messages in this role.
    pub role: Option<Role>,
    /// Only entries written at or after this time.
    pub since: Option<Timestamp>,
    /// Only entries written before this time.
    pub until: Option<Timestamp>,
}

impl HitFilter {
    /// Returns true if entries need not be looked at: a session is not among their own facts.
    pub fn admits_all(&self) -> bool {
        let HitFilter {
            session: _,
            speaker,
            role,
            since,
            until,
        } = self;
        speaker.is_none() && role.is_none() && since.is_none() && until.is_none()
    }

    /// Returns true if an entry has the requested speaker, role and time. Its session is not checked.
    pub fn admits(&self, entry: &Entry) -> bool {
        let message = entry.message();
        let speaker = self.speaker.as_ref().is_none_or(|wanted| {
            message.is_some_and(|message| {
                let speaker = &message.speaker;
                [&speaker.id, &speaker.name, &speaker.display_name]
                    .into_iter()
                    .any(|name| name.eq_ignore_ascii_case(wanted))
            })
        });
        speaker
            && self
                .role
                .is_none_or(|role| message.is_some_and(|message| message.role == role))
            && self.since.is_none_or(|since| entry.at >= since)
            && self.until.is_none_or(|until| entry.at < until)
    }
}

/// Result of a search.
#[derive(Clone, Debug, Default)]
pub struct Hits {
    /// The best of the newest matches, those of one session together, best session first.
    pub hits: Vec<Hit>,
    /// Every session with a match, newest first, and the number of its matches.
    pub sessions: Vec<SessionHits>,
    /// Number of matches.
    pub total: u64,
    /// Number of matches in projects other than the filter's.
    pub elsewhere: u64,
    /// Number of entries that are not indexed yet and were not searched.
    pub pending: u64,
    /// True if the index could not be saved: the next search reads everything again.
    pub unindexed: bool,
    /// Number of sealed sessions that were not searched, because their keys were not at hand.
    pub sealed: u64,
}

/// Number of matches in one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionHits {
    /// Id of the session.
    pub session: SessionId,
    /// Number of entries that match.
    pub count: u64,
}

impl Hits {
    /// Counts the matches of one more session.
    pub fn count(&mut self, session: SessionId, count: u64) {
        self.total += count;
        self.sessions.push(SessionHits { session, count });
    }

    /// Scores an entry, and adds it to the hits.
    pub fn add(&mut self, query: &SearchQuery, entry: &Entry, meta: &SessionMeta) {
        let text = entry.body.searchable();
        self.hits.push(Hit {
            session: meta.id,
            title: meta.title.clone(),
            seq: entry.seq,
            speaker: entry.message().map(|message| message.speaker.clone()),
            at: entry.at,
            snippet: query.words.snippet(&text, SNIPPET_WIDTH),
            score: query.words.score(&text),
        });
    }

    /// Keeps `limit` hits: the best of every session, then the second best of every session, and so
    /// on, so that no session hides others. Sorts sessions by their best hit, and the hits of a session
    /// by score, then newest first.
    pub fn rank(&mut self, limit: usize) {
        let mut hits = std::mem::take(&mut self.hits);
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.at.cmp(&a.at)));
        let mut places: HashMap<SessionId, (usize, usize)> = HashMap::new();
        let placed = hits.into_iter().map(|hit| {
            let next = places.len();
            let (place, round) = places.entry(hit.session).or_insert((next, 0));
            *round += 1;
            (*round, *place, hit)
        });
        let mut placed: Vec<(usize, usize, Hit)> = placed.collect();
        placed.sort_by_key(|(round, place, _)| (*round, *place));
        placed.truncate(limit);
        placed.sort_by_key(|(round, place, _)| (*place, *round));
        self.hits = placed.into_iter().map(|(_, _, hit)| hit).collect();
    }
}

/// One entry that matches a search.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Id of the session.
    pub session: SessionId,
    /// Title of the session.
    pub title: Option<String>,
    /// Sequence number of the entry.
    pub seq: Seq,
    /// Speaker, if the entry is a message.
    pub speaker: Option<Speaker>,
    /// Time of the entry.
    pub at: Timestamp,
    /// Text around the match.
    pub snippet: Snippet,
    /// Relevance; higher is better.
    pub score: f64,
}

/// Reasons why a query is invalid.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum QueryError {
    /// The cursor does not come from an earlier page.
    #[error("'{0}' is not a cursor: take the value of \"next\" from the page before")]
    BadCursor(String),
}
