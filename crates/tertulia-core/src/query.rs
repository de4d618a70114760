//! What one may ask any store: lists, look-ups and searches, in plain data.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;

use crate::entry::{Entry, Kind, Role, Speaker};
use crate::id::{Seq, SessionId};
use crate::search_text::{SearchTerms, Snippet};
use crate::session::SessionMeta;

/// How wide a snippet is, in characters.
const SNIPPET_WIDTH: usize = 120;

/// The identities that one project has had: folders, root commits, remotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectIds(Arc<BTreeSet<String>>);

impl ProjectIds {
    /// Whether this is one of them.
    pub fn contains(&self, id: &str) -> bool {
        self.0.contains(id)
    }

    /// Each of them, in alphabetical order.
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

/// Which sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Only of this project, under whichever of its identities they were made.
    pub project: Option<ProjectIds>,
    /// Only of this kind.
    pub kind: Option<Kind>,
    /// Only of this team.
    pub team: Option<String>,
    /// Only with this tag.
    pub tag: Option<String>,
    /// Only what continues this session.
    pub parent: Option<SessionId>,
    /// Only spoken in at or after this moment.
    pub since: Option<Timestamp>,
    /// Only spoken in before this moment.
    pub until: Option<Timestamp>,
    /// Whether the trash counts.
    pub trash: Trash,
    /// Which come first.
    pub order: Order,
}

/// Whether sessions in the trash count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trash {
    /// Only what is not in the trash.
    #[default]
    Without,
    /// Only what is in the trash.
    Only,
    /// Both.
    With,
}

/// Which sessions come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The one in which somebody spoke last.
    #[default]
    Updated,
    /// The one that was last changed by a command that can be taken back; others are left out.
    Changed,
}

impl Filter {
    /// Whether a session is meant.
    pub fn matches(&self, meta: &SessionMeta) -> bool {
        fn is<T: PartialEq>(wanted: Option<&T>, found: Option<&T>) -> bool {
            wanted.is_none() || wanted == found
        }
        self.has_project(meta)
            && is(self.kind.as_ref(), Some(&meta.kind))
            && is(self.team.as_ref(), meta.team.as_ref())
            && self.tag.as_ref().is_none_or(|tag| meta.tags.contains(tag))
            && self
                .parent
                .is_none_or(|id| meta.parent.as_ref().is_some_and(|parent| parent.id == id))
            && self.since.is_none_or(|since| meta.updated_at >= since)
            && self.until.is_none_or(|until| meta.updated_at < until)
            && match self.trash {
                Trash::Without => meta.trashed_at.is_none(),
                Trash::Only => meta.trashed_at.is_some(),
                Trash::With => true,
            }
            && (self.order == Order::Updated || meta.changed_at().is_some())
    }

    /// Whether a session belongs to the filter's project.
    pub fn has_project(&self, meta: &SessionMeta) -> bool {
        self.project.as_ref().is_none_or(|ids| {
            let project = meta.project.as_deref();
            project.is_some_and(|project| ids.contains(project))
        })
    }

    /// The moment by which a session is sorted.
    pub fn sort_key(&self, meta: &SessionMeta) -> Timestamp {
        match self.order {
            Order::Updated => meta.updated_at,
            Order::Changed => meta.changed_at().unwrap_or(meta.updated_at),
        }
    }
}

/// A piece of a long answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// At most so many.
    pub limit: usize,
    /// After the row where an earlier page ended.
    pub cursor: Option<Cursor>,
}

impl Page {
    /// The first `limit` rows.
    pub const fn first(limit: usize) -> Page {
        Page {
            limit,
            cursor: None,
        }
    }
}

/// Where a page ended. People pass it on without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The sort key of the last row.
    pub at: Timestamp,
    /// The last row's session.
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
    /// The rows of this page.
    pub rows: Vec<Row>,
    /// What the filter's project and the trash kept out of sight.
    pub hidden: Hidden,
    /// Where the next page begins, if there is one.
    pub next: Option<Cursor>,
    /// Sessions of the whole store that are known to be damaged or cannot be read. Those of which
    /// something is readable are rows too. A list does not look at every byte: a check does.
    pub damaged: Vec<DamagedSession>,
}

/// A session that is damaged or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DamagedSession {
    /// Which, if that is still known.
    pub id: Option<SessionId>,
    /// What is wrong with it.
    pub reason: String,
}

/// One session of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The session.
    pub meta: SessionMeta,
    /// Whether a running program has it open.
    pub open: bool,
}

/// How many sessions a list does not show, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// They belong to other projects.
    pub elsewhere: u64,
    /// They are in the trash.
    pub trashed: u64,
}

impl Hidden {
    /// All that are hidden.
    pub const fn total(self) -> u64 {
        self.elsewhere + self.trashed
    }
}

/// How a session is looked up by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// By its full id.
    Id(SessionId),
    /// By a part of its id: see [`SessionId::is_named_by`].
    Part(String),
    /// By its exact title.
    Title(String),
    /// By the id that it had in the program it was imported from.
    Original(String),
}

impl Lookup {
    /// Whether a session is meant.
    pub fn matches(&self, meta: &SessionMeta) -> bool {
        match self {
            Lookup::Id(id) => meta.id == *id,
            Lookup::Part(part) => meta.id.is_named_by(part),
            Lookup::Title(title) => meta.title.as_deref() == Some(title),
            Lookup::Original(id) => meta.source.as_ref().is_some_and(|source| source.id == *id),
        }
    }
}

/// What to search for, and where.
#[derive(Clone, Debug)]
pub struct SearchQuery {
    /// The words.
    pub words: SearchTerms,
    /// In which sessions.
    pub filter: Filter,
    /// Only said by this speaker (id, name or display name).
    pub speaker: Option<String>,
    /// Only said in this role.
    pub role: Option<Role>,
    /// At most so many hits.
    pub limit: usize,
}

impl SearchQuery {
    /// Whether an entry with the words is meant: said by the right speaker in the right role.
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
    }
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub struct Hits {
    /// The best of the newest, best first.
    pub hits: Vec<Hit>,
    /// How many there are, as far as they were counted.
    pub total: u64,
    /// Whether there may be more than `total`.
    pub more: bool,
    /// How many of those seen lie in other projects than the filter's.
    pub elsewhere: u64,
    /// How many entries the index has not reached yet: they were not searched.
    pub pending: u64,
    /// Whether the index could not be kept: the next search reads everything again.
    pub unindexed: bool,
}

impl Hits {
    /// Counts an entry in, and weighs it unless it is only counted.
    pub fn add(
        &mut self,
        query: &SearchQuery,
        entry: &Entry,
        meta: &SessionMeta,
        counted_only: bool,
    ) {
        self.total += 1;
        if counted_only {
            return;
        }
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

    /// Puts the best first, the newest of equals, and keeps as many as were asked for.
    pub fn rank(&mut self, limit: usize) {
        self.hits
            .sort_by(|a, b| b.score.total_cmp(&a.score).then(b.at.cmp(&a.at)));
        self.hits.truncate(limit);
    }
}

/// One entry that a search found.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The session.
    pub session: SessionId,
    /// Its title.
    pub title: Option<String>,
    /// The entry.
    pub seq: Seq,
    /// Who said it, if it is a message.
    pub speaker: Option<Speaker>,
    /// When.
    pub at: Timestamp,
    /// The words around the place.
    pub snippet: Snippet,
    /// How well it fits; more is better.
    pub score: f64,
}

/// Why a question cannot be asked.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum QueryError {
    /// The cursor is not one that an earlier page gave out.
    #[error("'{0}' is not a cursor: take the value of \"next\" from the page before")]
    BadCursor(String),
}
