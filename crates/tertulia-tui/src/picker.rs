//! Session list: choosing a session to resume, and renaming, tagging, forking and trashing.
//!
//! It performs no I/O. `key` returns what a key does; `wants` returns a request with a ticket, under
//! which the answer is passed back.

pub mod content_hits;
pub mod fuzzy;
mod reading;
pub mod session_item;
mod session_list;
#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use tertulia_core::id::SessionId;
use tertulia_core::query::{Cursor, Filter, Hidden, Page, ProjectIds, SearchQuery};

use self::content_hits::{ContentHit, ContentHits};
use self::session_item::SessionItem;
use self::session_list::SessionList;
use super::choice::Choice;
use super::geometry::{ROW_LINES, WIDE, list_areas, whole};
use super::item::Item;
use super::key_event;
use super::keymap::{self, Action, Where};
use super::one_line::{OneLine, Typed};
use super::overlay::{Overlay, Reaction};
use super::store_service::{Answer, Listed, Request};
use super::view;
use super::view::brush::Look;

/// Identifies the request that an answer belongs to.
pub type Ticket = u64;

/// Session list with query, fuzzy filter and preview.
#[derive(Debug)]
pub struct Picker {
    filter: Filter,
    project: Option<ProjectIds>,
    scope: Scope,
    session_list: SessionList,
    content_hits: ContentHits,
    hidden: Hidden,
    /// Number of sessions to list, read or not, if the store counts them.
    listed: Option<u64>,
    damaged: usize,
    unread: Unread,
    tickets: Ticket,
    page_ticket: Option<Ticket>,
    search_ticket: Option<Ticket>,
    preview_ticket: Option<(Ticket, SessionId)>,
    query: OneLine,
    /// Time of the last edit of the query, until the content search starts.
    typed_at: Option<Timestamp>,
    choice: Choice,
    /// Whether the user chose a row, which then stays chosen when other rows arrive.
    moved: bool,
    /// Session chosen before the list is read again.
    kept: Option<SessionId>,
    mode: Mode,
    preview: Preview,
    /// Whether the user wants the preview; by default it is shown where it fits beside the list.
    previews: Option<bool>,
    /// Whether to choose the last session once all of them are read.
    to_end: bool,
    note: Option<String>,
    size: Size,
}

/// Sessions that are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Sessions of this project.
    Here,
    /// All sessions.
    All,
}

/// Part of the list that has not been read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unread {
    All,
    After(Cursor),
    Nothing,
    /// Reading failed; it is retried at the next key.
    Refused(Option<Cursor>),
}

/// Meaning of keys.
#[derive(Clone, Debug, PartialEq)]
pub enum Mode {
    /// Searching and choosing.
    Browse,
    /// Editing a title.
    Rename(SessionId, OneLine),
    /// Editing tags.
    Tag(SessionId, OneLine),
    /// Confirming the move to the trash.
    Trash(SessionId, String),
}

/// Preview of a session.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    /// Session it belongs to, once loaded.
    pub of: Option<SessionId>,
    /// Last messages.
    pub items: Vec<Item>,
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub enum Chosen<'a> {
    /// Session that matches the fuzzy filter.
    SessionItem(&'a SessionItem),
    /// Session whose content matches the query.
    ContentHit(&'a ContentHit),
}

impl Chosen<'_> {
    /// Session id.
    pub fn id(self) -> SessionId {
        match self {
            Chosen::SessionItem(item) => item.id,
            Chosen::ContentHit(content_hit) => content_hit.session,
        }
    }

    fn title(self) -> Option<String> {
        match self {
            Chosen::SessionItem(item) => item.title.clone(),
            Chosen::ContentHit(content_hit) => content_hit.title.clone(),
        }
    }
}

/// Request for data.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Next page of sessions, for [`Picker::page`].
    Page {
        /// Filter.
        filter: Filter,
        /// Page.
        page: Page,
    },
    /// Content search, for [`Picker::found`].
    Search(Box<SearchQuery>),
    /// Last messages of a session, for [`Picker::preview`].
    Preview {
        /// Session id.
        id: SessionId,
        /// Number of messages.
        messages: usize,
    },
}

impl Overlay for Picker {
    fn resize(&mut self, size: Size) {
        self.size = size;
        self.rechoose(self.choice.chosen());
    }

    fn key(&mut self, key: KeyEvent, now: Timestamp) -> Reaction {
        if !key_event::is_down(key) {
            return Reaction::Nothing;
        }
        self.note = None;
        if let Unread::Refused(cursor) = self.unread {
            self.unread = cursor.map_or(Unread::All, Unread::After);
        }
        match std::mem::replace(&mut self.mode, Mode::Browse) {
            Mode::Browse => self.browse(key, now),
            Mode::Rename(id, line) => self.rename(id, line, key),
            Mode::Tag(id, line) => self.tag(id, line, key),
            Mode::Trash(id, _) if key_event::answer(key) == Some('y') => Reaction::Trash(id),
            Mode::Trash(..) => Reaction::Changed,
        }
    }

    /// A click chooses a session, a click on the chosen one resumes it.
    fn click(&mut self, at: Position, _now: Timestamp) -> Reaction {
        let list = list_areas(whole(self.size), self.panes()).list;
        if self.mode != Mode::Browse || !list.contains(at) {
            return Reaction::Nothing;
        }
        let (count, seen) = (self.len(), self.seen_rows());
        let row = usize::from(at.y - list.y) / ROW_LINES + self.choice.top(count, seen);
        if row == self.choice.chosen() {
            return self.resume();
        }
        if row < count {
            self.choice.choose(row, count, seen);
            self.moved = true;
        }
        (row < count).into()
    }

    fn paste(&mut self, text: &str, now: Timestamp) -> bool {
        match &mut self.mode {
            Mode::Browse => {
                let typed = self.query.insert(text);
                self.retyped(typed, now);
            }
            Mode::Rename(_, line) | Mode::Tag(_, line) => {
                line.insert(text);
            }
            Mode::Trash(..) => {}
        }
        true
    }

    fn due(&self, _now: Timestamp) -> Option<Timestamp> {
        self.due()
    }

    fn number(&mut self, first: Ticket) {
        self.tickets = first;
    }

    fn wants(&mut self, _session: SessionId, now: Timestamp) -> Option<Request> {
        let (ticket, wanted) = self.wants(now)?;
        Some(Request::Picker(ticket, wanted))
    }

    fn accept(&mut self, answer: Answer) -> Option<Answer> {
        match answer {
            Answer::Picker(ticket, Ok(Listed::Page(listing))) => self.page(ticket, &listing),
            Answer::Picker(ticket, Ok(Listed::Found(hits))) => self.found(ticket, hits),
            Answer::Picker(ticket, Ok(Listed::Preview(items))) => self.preview(ticket, items),
            Answer::Picker(ticket, Err(error)) => self.refused(ticket, error.sentence()),
            other => return Some(other),
        }
        None
    }

    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        view::picker::draw(self, look, area, buffer)
    }
}

impl Picker {
    /// Creates a list of the sessions that pass a filter, limited at first to the project, if any.
    pub fn new(filter: Filter, project: Option<ProjectIds>) -> Picker {
        let scope = match project {
            Some(_) => Scope::Here,
            None => Scope::All,
        };
        let mut session_list = SessionList::default();
        session_list.empty_out(scope == Scope::All);
        Picker {
            filter,
            scope,
            project,
            session_list,
            content_hits: ContentHits::default(),
            hidden: Hidden::default(),
            listed: None,
            damaged: 0,
            unread: Unread::All,
            tickets: 0,
            page_ticket: None,
            search_ticket: None,
            preview_ticket: None,
            query: OneLine::default(),
            typed_at: None,
            choice: Choice::default(),
            moved: false,
            kept: None,
            mode: Mode::Browse,
            preview: Preview::default(),
            previews: None,
            to_end: false,
            note: None,
            size: Size::new(80, 24),
        }
    }

    fn browse(&mut self, key: KeyEvent, now: Timestamp) -> Reaction {
        if key_event::leaves(key) {
            return self.leave(key, now);
        }
        match key_event::with_control(key) {
            Some('r') => return self.begin(|id, title| Mode::Rename(id, OneLine::new(&title))),
            Some('t') => return self.begin(|id, _| Mode::Tag(id, OneLine::default())),
            Some('x') => return self.begin(Mode::Trash),
            Some('f') => {
                return self.chosen().map_or(Reaction::Nothing, |chosen| {
                    Reaction::Fork(chosen.id(), None)
                });
            }
            Some('e') => {
                self.session_list.toggle_empty();
                self.settle();
                return Reaction::Changed;
            }
            _ => {}
        }
        match keymap::only(Where::Picker, key) {
            Some(Action::Undo) => return Reaction::Undo,
            // Space belongs to the query while it is typed.
            Some(Action::Preview) if !key_event::is_space(key) || self.space_previews() => {
                self.previews = Some(!self.has_preview());
                self.rechoose(self.choice.chosen());
                return Reaction::Changed;
            }
            _ => {}
        }
        match key.code {
            KeyCode::Enter => return self.resume(),
            KeyCode::Tab | KeyCode::BackTab => return self.change_scope(now),
            _ => {}
        }
        let (count, seen) = (self.len(), self.seen_rows());
        if self.choice.moves(key, count, seen) {
            self.moved = true;
            self.to_end = key.code == KeyCode::End;
            return Reaction::Changed;
        }
        let typed = self.query.key(key);
        self.retyped(typed, now)
    }

    /// Esc goes back one step at a time: preview, query, list.
    fn leave(&mut self, key: KeyEvent, now: Timestamp) -> Reaction {
        if key.code != KeyCode::Esc {
            return Reaction::Close;
        }
        // Beside the list it is not in the way.
        if self.has_preview() && self.size.width < WIDE {
            self.previews = Some(false);
            self.rechoose(self.choice.chosen());
            return Reaction::Changed;
        }
        if self.query.is_empty() {
            return Reaction::Close;
        }
        self.query = OneLine::default();
        self.retyped(Typed::Changed, now)
    }

    fn retyped(&mut self, typed: Typed, now: Timestamp) -> Reaction {
        match typed {
            Typed::Nothing => Reaction::Nothing,
            Typed::Moved => Reaction::Changed,
            Typed::Changed => {
                self.session_list.type_in(self.query.text());
                self.content_hits = ContentHits::default();
                self.search_ticket = None;
                self.typed_at = (!self.query.text().trim().is_empty()).then_some(now);
                self.moved = false;
                self.to_end = false;
                self.rechoose(0);
                Reaction::Changed
            }
        }
    }

    fn begin(&mut self, mode: impl FnOnce(SessionId, String) -> Mode) -> Reaction {
        let Some(chosen) = self.chosen() else {
            return Reaction::Nothing;
        };
        let (id, title) = (chosen.id(), chosen.title().unwrap_or_default());
        self.mode = mode(id, title);
        // The row must stay chosen while it is edited.
        self.moved = true;
        Reaction::Changed
    }

    fn rename(&mut self, id: SessionId, mut line: OneLine, key: KeyEvent) -> Reaction {
        if key_event::leaves(key) {
            return Reaction::Changed;
        }
        if key.code == KeyCode::Enter {
            let title = line.text().trim();
            return match title.is_empty() {
                true => Reaction::Changed,
                false => Reaction::Rename(id, title.to_owned()),
            };
        }
        line.key(key);
        self.mode = Mode::Rename(id, line);
        Reaction::Changed
    }

    fn tag(&mut self, id: SessionId, mut line: OneLine, key: KeyEvent) -> Reaction {
        if key_event::leaves(key) {
            return Reaction::Changed;
        }
        if key.code == KeyCode::Enter {
            let (add, remove) = tags(line.text());
            return match add.is_empty() && remove.is_empty() {
                true => Reaction::Changed,
                false => Reaction::Tag { id, add, remove },
            };
        }
        line.key(key);
        self.mode = Mode::Tag(id, line);
        Reaction::Changed
    }

    fn resume(&self) -> Reaction {
        match self.chosen() {
            None => Reaction::Nothing,
            Some(Chosen::SessionItem(item)) => Reaction::Resume {
                id: item.id,
                at: None,
            },
            Some(Chosen::ContentHit(content_hit)) => Reaction::Resume {
                id: content_hit.session,
                at: Some(content_hit.seq),
            },
        }
    }

    fn change_scope(&mut self, now: Timestamp) -> Reaction {
        if self.project.is_none() {
            return Reaction::Nothing;
        }
        self.scope = match self.scope {
            Scope::Here => Scope::All,
            Scope::All => Scope::Here,
        };
        let chosen = self.chosen().filter(|_| self.moved).map(Chosen::id);
        self.read_again(chosen, now);
        Reaction::Changed
    }

    /// Reads the list again, in which `chosen` is chosen.
    pub fn read_again(&mut self, chosen: Option<SessionId>, now: Timestamp) {
        let moved = self.moved || chosen.is_some();
        self.kept = chosen;
        self.session_list.empty_out(self.scope == Scope::All);
        self.hidden = Hidden::default();
        self.unread = Unread::All;
        self.page_ticket = None;
        self.retyped(Typed::Changed, now);
        self.moved = moved;
    }
}

/// Parses tags such as `+release -draft` into those to add and those to remove.
fn tags(line: &str) -> (Vec<String>, Vec<String>) {
    let (mut add, mut remove) = (Vec::new(), Vec::new());
    for word in line.split(|c: char| c.is_whitespace() || c == ',') {
        let (list, tag) = match word.strip_prefix('-') {
            Some(tag) => (&mut remove, tag),
            None => (&mut add, word.strip_prefix('+').unwrap_or(word)),
        };
        let tag = tag.trim_start_matches('#');
        if !tag.is_empty() {
            list.push(tag.to_owned());
        }
    }
    (add, remove)
}
