//! Sessions read so far, and those that match the query, best first.

use std::collections::HashSet;

use tertulia_core::id::SessionId;
use tertulia_core::query::Row;

use super::fuzzy::{FuzzyFilter, narrows};
use super::session_item::SessionItem;

/// Sessions, newest first, and which of them are shown.
#[derive(Debug, Default)]
pub struct SessionList {
    items: Vec<SessionItem>,
    known: HashSet<SessionId>,
    /// Matches, best first; newest first among equals.
    fitting: Vec<Fit>,
    typed: String,
    /// Whether the sessions belong to several projects.
    with_project: bool,
    with_empty: bool,
    empty: usize,
    /// Number of comparisons made, which is the cost of typing.
    weighed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Fit {
    weight: u32,
    item: usize,
}

impl SessionList {
    /// Adds a page.
    pub fn put(&mut self, rows: &[Row]) {
        let from = self.items.len();
        for row in rows {
            // A message added meanwhile moves its session to another page.
            if self.known.insert(row.meta.id) {
                self.items.push(SessionItem::of(row));
            }
        }
        let new: Vec<usize> = (from..self.items.len()).collect();
        self.empty += new.iter().filter(|item| self.items[**item].empty).count();
        self.weigh(new);
    }

    /// Removes all sessions, but keeps the query. The next ones may belong to several projects.
    pub fn empty_out(&mut self, with_project: bool) {
        self.with_project = with_project;
        self.items.clear();
        self.known.clear();
        self.weigh_all();
    }

    /// Shows only the sessions that match the query.
    pub fn type_in(&mut self, typed: &str) {
        let fewer = narrows(&self.typed, typed);
        typed.clone_into(&mut self.typed);
        if fewer {
            let left: Vec<usize> = self.fitting.iter().map(|fit| fit.item).collect();
            self.fitting.clear();
            self.weigh(left);
        } else {
            self.weigh_all();
        }
    }

    /// Shows or hides empty sessions.
    pub fn toggle_empty(&mut self) {
        self.with_empty = !self.with_empty;
        self.weigh_all();
    }

    /// Updates a session.
    pub fn replace(&mut self, row: &Row) {
        if let Some(item) = self.items.iter_mut().find(|item| item.id == row.meta.id) {
            *item = SessionItem::of(row);
            self.weigh_all();
        }
    }

    /// Removes a session; returns false if it was not in the list.
    pub fn remove(&mut self, id: SessionId) -> bool {
        let before = self.items.len();
        self.items.retain(|item| item.id != id);
        self.known.remove(&id);
        self.weigh_all();
        self.items.len() < before
    }

    fn weigh_all(&mut self) {
        self.empty = self.items.iter().filter(|item| item.empty).count();
        self.fitting.clear();
        self.weigh((0..self.items.len()).collect());
    }

    fn weigh(&mut self, items: Vec<usize>) {
        let shown = |item: &SessionItem| self.with_empty || !item.empty;
        if self.typed.trim().is_empty() {
            let items = items.into_iter().filter(|item| shown(&self.items[*item]));
            self.fitting
                .extend(items.map(|item| Fit { weight: 0, item }));
            return;
        }
        let mut fuzzy = FuzzyFilter::new(&self.typed, self.with_project);
        self.weighed += items.len() as u64;
        for item in items {
            if let Some(weight) = fuzzy.weigh(&self.items[item])
                && shown(&self.items[item])
            {
                self.fitting.push(Fit { weight, item });
            }
        }
        self.fitting
            .sort_by(|a, b| b.weight.cmp(&a.weight).then(a.item.cmp(&b.item)));
    }

    /// Number of sessions shown.
    pub fn len(&self) -> usize {
        self.fitting.len()
    }

    /// Number of sessions shown without a query.
    pub fn read(&self) -> usize {
        self.items.len().saturating_sub(self.hidden_empty())
    }

    /// Returns a shown session.
    pub fn get(&self, place: usize) -> Option<&SessionItem> {
        self.items.get(self.fitting.get(place)?.item)
    }

    /// Index of a session among the shown ones.
    pub fn place_of(&self, id: SessionId) -> Option<usize> {
        self.fitting
            .iter()
            .position(|fit| self.items[fit.item].id == id)
    }

    /// Returns those of the given sessions that are shown.
    pub fn shown_of(&self, ids: &HashSet<SessionId>) -> HashSet<SessionId> {
        let shown = self.fitting.iter().map(|fit| self.items[fit.item].id);
        shown.filter(|id| ids.contains(id)).collect()
    }

    /// Number of sessions hidden because they are empty.
    pub fn hidden_empty(&self) -> usize {
        if self.with_empty { 0 } else { self.empty }
    }
}

#[cfg(test)]
mod tests {
    use tertulia_core::session::SessionMeta;

    use super::*;

    fn row(number: u64, title: &str) -> Row {
        let id = format!("01936f5e-6c5a-7b3a-9d2f-{number:012x}");
        let mut meta = SessionMeta::blank(id.parse().unwrap());
        meta.title = (!title.is_empty()).then(|| title.to_owned());
        meta.messages = u64::from(!title.is_empty());
        Row { meta, open: false }
    }

    fn titles(session_list: &SessionList) -> Vec<&str> {
        (0..session_list.len())
            .filter_map(|place| session_list.get(place))
            .map(SessionItem::title_or_untitled)
            .collect()
    }

    #[test]
    fn the_best_come_first_and_the_newest_of_equals() {
        let mut session_list = SessionList::default();
        session_list.put(&[
            row(1, "a parser"),
            row(2, "pxaxrxsxexr"),
            row(3, "a parser"),
        ]);
        session_list.type_in("parser");
        assert_eq!(
            titles(&session_list),
            ["a parser", "a parser", "pxaxrxsxexr"]
        );
        assert_eq!(session_list.get(0).unwrap().id, row(1, "").meta.id);
        session_list.put(&[row(4, "parser"), row(1, "a parser")]);
        let expected = ["a parser", "a parser", "parser", "pxaxrxsxexr"];
        assert_eq!(titles(&session_list), expected);
    }

    #[test]
    fn empty_ones_are_counted_and_shown_on_demand() {
        let mut session_list = SessionList::default();
        session_list.put(&[row(1, ""), row(2, "two")]);
        assert_eq!(
            (titles(&session_list), session_list.hidden_empty()),
            (vec!["two"], 1)
        );
        session_list.type_in("w");
        // One of one: sessions hidden anyway are not counted.
        assert_eq!((session_list.len(), session_list.read()), (1, 1));
        session_list.type_in("");
        session_list.toggle_empty();
        assert_eq!((session_list.len(), session_list.hidden_empty()), (2, 0));
    }

    #[test]
    fn removing_and_replacing_keep_the_rest() {
        let mut session_list = SessionList::default();
        session_list.put(&[row(1, "one"), row(2, "two"), row(3, "three")]);
        assert!(session_list.remove(row(2, "").meta.id));
        assert!(!session_list.remove(row(2, "").meta.id));
        session_list.replace(&row(3, "drei"));
        assert_eq!(titles(&session_list), ["one", "drei"]);
    }

    #[test]
    fn typing_on_weighs_only_what_fitted() {
        let mut session_list = SessionList::default();
        let rows: Vec<Row> = (0..10_000)
            .map(|number| row(number, if number % 100 == 0 { "parser" } else { "talk" }))
            .collect();
        for page in rows.chunks(500) {
            session_list.put(page);
        }
        session_list.type_in("pars");
        assert_eq!((session_list.len(), session_list.weighed), (100, 10_000));
        for typed in ["parse", "parser"] {
            session_list.type_in(typed);
        }
        assert_eq!((session_list.len(), session_list.weighed), (100, 10_200));
        // A page that arrives during a query costs only its own length.
        session_list.put(&[row(20_000, "parser"), row(20_001, "talk")]);
        assert_eq!((session_list.len(), session_list.weighed), (101, 10_202));
    }
}
