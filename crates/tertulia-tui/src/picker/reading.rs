//! Requests of the session list, and handling of the answers.

use jiff::{SignedDuration, Timestamp};
use tertulia_core::id::SessionId;
use tertulia_core::query::{
    Cursor, Filter, Hidden, HitFilter, Hits, Listing, Page, Row, SearchQuery,
};

use super::content_hits::words_of;
use super::session_item::SessionItem;
use super::{Chosen, Mode, Picker, Preview, Scope, Ticket, Unread, Wanted};
use crate::geometry::{Panes, ROW_LINES, WIDE, list_areas, whole};
use crate::item::Item;
use crate::one_line::OneLine;

/// Sessions in the first page: enough for any screen.
const FIRST_PAGE: usize = 100;
/// Sessions per page when scrolling.
const NEXT_PAGE: usize = 200;
/// Sessions per page when searching, which reads all of them.
const SEARCHED_PAGE: usize = 1000;
/// Messages in a preview.
const PREVIEWED: usize = 20;
/// Number of content hits that are looked for first, and the factor for each further search.
const HITS: usize = 60;
const MORE_HITS: usize = 4;
/// Pause in typing after which the content search starts.
const PAUSE: SignedDuration = SignedDuration::from_millis(300);

impl Picker {
    /// Returns the next request, each once. Call it after each key and answer, and at the time that
    /// [`Picker::due`] returns, until it returns `None`.
    pub fn wants(&mut self, now: Timestamp) -> Option<(Ticket, Wanted)> {
        self.wants_page()
            .or_else(|| self.wants_search(now))
            .or_else(|| self.wants_more_hits())
            .or_else(|| self.wants_preview())
    }

    /// Time of the next request that needs no key, if any.
    pub fn due(&self) -> Option<Timestamp> {
        self.typed_at?.checked_add(PAUSE).ok()
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        self.tickets
    }

    fn wants_page(&mut self) -> Option<(Ticket, Wanted)> {
        let cursor = match self.unread {
            Unread::All => None,
            Unread::After(cursor) => Some(cursor),
            Unread::Nothing | Unread::Refused(_) => return None,
        };
        let seen = self.seen_rows();
        let nears_the_end = self.choice.chosen() + 2 * seen >= self.session_list.len();
        // A query covers all sessions: the best match may be the oldest. Sessions that the listing does
        // not count are counted by reading them.
        let is_uncounted = cursor.is_some() && self.listed.is_none();
        let reads_all = self.to_end || is_uncounted || !self.query.is_empty();
        let is_needed = nears_the_end || reads_all;
        if self.page_ticket.is_some() || !is_needed {
            return None;
        }
        let limit = match (cursor, !reads_all) {
            (None, _) => FIRST_PAGE,
            (Some(_), true) => NEXT_PAGE,
            (Some(_), false) => SEARCHED_PAGE,
        };
        let ticket = self.ticket();
        self.page_ticket = Some(ticket);
        let page = Page { limit, cursor };
        let filter = self.filter();
        Some((ticket, Wanted::Page { filter, page }))
    }

    fn wants_search(&mut self, now: Timestamp) -> Option<(Ticket, Wanted)> {
        let waited = now.duration_since(self.typed_at?);
        // A clock that was set back must not prolong the wait.
        if !waited.is_negative() && waited < PAUSE {
            return None;
        }
        self.typed_at = None;
        self.search(HITS)
    }

    /// Asks for more hits when the choice nears the last of those that are known.
    fn wants_more_hits(&mut self) -> Option<(Ticket, Wanted)> {
        let nears_the_end = self.choice.chosen() + 2 * self.seen_rows() >= self.len();
        let is_idle = self.search_ticket.is_none() && self.typed_at.is_none();
        if !is_idle || !nears_the_end || !self.moved || !self.content_hits.has_more() {
            return None;
        }
        self.search(self.content_hits.limit().saturating_mul(MORE_HITS))
    }

    fn search(&mut self, limit: usize) -> Option<(Ticket, Wanted)> {
        let query = SearchQuery {
            words: words_of(self.query.text())?,
            filter: self.filter(),
            said: HitFilter::default(),
            limit,
        };
        let ticket = self.ticket();
        self.search_ticket = Some(ticket);
        self.content_hits.expect(limit);
        Some((ticket, Wanted::Search(Box::new(query))))
    }

    fn wants_preview(&mut self) -> Option<(Ticket, Wanted)> {
        let id = self.chosen().filter(|_| self.has_preview())?.id();
        // One at a time: when scrolling fast, only the final row needs a preview.
        if self.preview.of == Some(id) || self.preview_ticket.is_some() {
            return None;
        }
        let ticket = self.ticket();
        self.preview_ticket = Some((ticket, id));
        let messages = PREVIEWED;
        Some((ticket, Wanted::Preview { id, messages }))
    }

    fn filter(&self) -> Filter {
        Filter {
            project: match self.scope {
                Scope::Here => self.project.clone(),
                Scope::All => None,
            },
            ..self.filter.clone()
        }
    }

    /// Adds a page of sessions.
    pub fn page(&mut self, ticket: Ticket, listing: &Listing) {
        if self.page_ticket != Some(ticket) {
            return;
        }
        self.page_ticket = None;
        if self.unread == Unread::All {
            self.hidden = listing.hidden;
            // A listing counts the sessions of the store and of the project, not those of other filters.
            let listed = listing.sessions.checked_sub(listing.hidden.total());
            let only_project = Filter {
                auto_tags: self.filter.auto_tags,
                ..Filter::default()
            };
            self.listed = listed.filter(|_| self.filter == only_project);
            self.damaged = 0;
        }
        self.damaged = self.damaged.max(listing.damaged.len());
        self.unread = listing.next.map_or(Unread::Nothing, Unread::After);
        let chosen = self.chosen().filter(|_| self.moved).map(Chosen::id);
        let chosen = chosen.or_else(|| self.kept.take());
        self.session_list.put(&listing.rows);
        match self.to_end {
            true => self.settle_at(usize::MAX),
            false => self.settle_on(chosen),
        }
    }

    /// Number of entries not searched because they are not indexed yet.
    pub fn pending(&self) -> u64 {
        self.content_hits.pending()
    }

    /// Adds the result of the content search.
    pub fn found(&mut self, ticket: Ticket, hits: Hits) {
        if self.search_ticket != Some(ticket) {
            return;
        }
        self.search_ticket = None;
        let chosen = self.chosen().filter(|_| self.moved).map(Chosen::id);
        self.content_hits.put(hits);
        self.settle_on(chosen);
    }

    /// Adds a preview.
    pub fn preview(&mut self, ticket: Ticket, items: Vec<Item>) {
        let Some((_, id)) = self.preview_ticket.take_if(|(asked, _)| *asked == ticket) else {
            return;
        };
        let of = Some(id);
        self.preview = Preview { of, items };
    }

    /// Records that a request failed.
    pub fn refused(&mut self, ticket: Ticket, why: String) {
        let is_preview = self
            .preview_ticket
            .is_some_and(|(asked, _)| asked == ticket);
        if self.page_ticket.take_if(|asked| *asked == ticket).is_some() {
            // An immediate retry would most likely fail again.
            self.unread = Unread::Refused(self.cursor());
        } else if is_preview {
            // Takes the place of the preview, so that it is not requested again.
            self.preview(ticket, vec![Item::trouble(why.clone())]);
        } else if self
            .search_ticket
            .take_if(|asked| *asked == ticket)
            .is_none()
        {
            // The request was given up.
            return;
        }
        self.note = Some(why);
    }

    fn cursor(&self) -> Option<Cursor> {
        match self.unread {
            Unread::After(cursor) => Some(cursor),
            Unread::Refused(cursor) => cursor,
            Unread::All | Unread::Nothing => None,
        }
    }

    /// Updates a session that was renamed or tagged.
    pub fn replace(&mut self, row: &Row) {
        let chosen = self.chosen().map(Chosen::id);
        self.session_list.replace(row);
        self.settle_on(chosen);
    }

    /// Removes a session that was moved to the trash.
    pub fn trashed(&mut self, id: SessionId) {
        let place = self.choice.chosen();
        let chosen = self.chosen().map(Chosen::id).filter(|chosen| *chosen != id);
        self.session_list.remove(id);
        self.content_hits.remove(id);
        self.hidden.trashed += 1;
        self.listed = self.listed.map(|listed| listed.saturating_sub(1));
        self.settle_on(chosen);
        if chosen.is_none() {
            self.rechoose(place);
        }
    }

    /// Shows a message below the list until the next key.
    pub fn say(&mut self, words: String) {
        self.note = Some(words);
    }

    /// Updates the rows and keeps the chosen index.
    pub(super) fn settle(&mut self) {
        self.settle_at(self.choice.chosen());
    }

    /// Updates the rows and chooses one by its index.
    fn settle_at(&mut self, place: usize) {
        self.content_hits.pass_over(&self.session_list);
        self.rechoose(place);
    }

    /// Updates the rows and keeps the chosen session.
    fn settle_on(&mut self, chosen: Option<SessionId>) {
        self.content_hits.pass_over(&self.session_list);
        let place = chosen.and_then(|id| {
            let content_hit = || Some(self.session_list.len() + self.content_hits.place_of(id)?);
            self.session_list.place_of(id).or_else(content_hit)
        });
        self.rechoose(place.unwrap_or_else(|| self.choice.chosen()));
    }

    pub(super) fn rechoose(&mut self, place: usize) {
        let (count, seen) = (self.len(), self.seen_rows());
        self.choice.choose(place, count, seen);
    }

    /// Number of rows that fit on the screen.
    pub(super) fn seen_rows(&self) -> usize {
        usize::from(list_areas(whole(self.size), self.panes()).list.height) / ROW_LINES
    }

    /// Panes of the screen: the preview is beside the list, or below it, or in its place.
    pub fn panes(&self) -> Panes {
        Panes {
            notes: true,
            second: self.has_preview(),
            low: 8,
            replaces: true,
        }
    }

    /// Number of rows read so far.
    pub(crate) fn len(&self) -> usize {
        self.session_list.len() + self.content_hits.len()
    }

    /// Returns one row.
    pub fn row(&self, place: usize) -> Option<Chosen<'_>> {
        match self.session_list.get(place) {
            Some(item) => Some(Chosen::SessionItem(item)),
            None => self
                .content_hits
                .get(place.checked_sub(self.session_list.len())?)
                .map(Chosen::ContentHit),
        }
    }

    /// The chosen row.
    pub fn chosen(&self) -> Option<Chosen<'_>> {
        self.row(self.choice.chosen())
    }

    /// Indices of the chosen row and of the first visible row, given the viewport height.
    pub fn places(&self, seen: usize) -> (usize, usize) {
        (self.choice.chosen(), self.choice.top(self.len(), seen))
    }

    /// The query.
    pub fn query(&self) -> &OneLine {
        &self.query
    }

    /// Meaning of keys.
    pub fn mode(&self) -> &Mode {
        &self.mode
    }

    /// Sessions that are listed.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Returns true if the preview is open.
    pub(super) fn has_preview(&self) -> bool {
        self.previews.unwrap_or(self.size.width >= WIDE)
    }

    /// The preview, if it is open.
    pub fn shown_preview(&self) -> Option<&Preview> {
        self.has_preview().then_some(&self.preview)
    }

    /// Number of sessions that match the query, with those that are not read yet. `None` if only their
    /// reading can tell.
    pub fn matching(&self) -> Option<u64> {
        let all_read = self.unread == Unread::Nothing;
        match self.query.is_empty() {
            true if all_read => Some(self.len() as u64),
            true => {
                let empty = self.session_list.hidden_empty() as u64;
                self.listed.map(|listed| listed.saturating_sub(empty))
            }
            false => Some((self.session_list.len() + self.content_hits.matching()) as u64)
                .filter(|_| all_read),
        }
    }

    /// Message below the list.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Returns true if Space opens the preview rather than extending the query.
    pub fn space_previews(&self) -> bool {
        self.query.is_empty() || self.moved
    }

    /// Number of sessions read, and whether those are all.
    pub fn read(&self) -> (usize, bool) {
        (self.session_list.read(), self.unread == Unread::Nothing)
    }

    /// Returns true if a request is pending.
    pub fn is_reading(&self) -> bool {
        self.page_ticket.is_some() || self.search_ticket.is_some() || self.typed_at.is_some()
    }

    /// Numbers of hidden sessions: elsewhere or trashed, and empty.
    pub fn hidden(&self) -> (Hidden, usize) {
        (self.hidden, self.session_list.hidden_empty())
    }

    /// Number of damaged sessions.
    pub fn damaged(&self) -> usize {
        self.damaged
    }

    /// Tags of the chosen session.
    pub fn chosen_tags(&self) -> &[String] {
        match self.chosen() {
            Some(Chosen::SessionItem(SessionItem { tags, .. })) => tags,
            _ => &[],
        }
    }
}
