//! The sessions that were read so far, and those of them that fit what was typed, best first.

use std::collections::HashSet;

use tertulia_core::id::SessionId;
use tertulia_core::query::Row;

use super::card::Card;
use super::sieve::{Sieve, narrows};

/// Sessions, newest first, and which of them are shown.
#[derive(Debug, Default)]
pub struct Shelf {
    cards: Vec<Card>,
    known: HashSet<SessionId>,
    /// Sorted by weight, the newest of equals first.
    fitting: Vec<Fit>,
    typed: String,
    /// Whether the sessions are of several projects.
    with_project: bool,
    with_empty: bool,
    empty: usize,
    /// How often a session was weighed: what typing costs.
    weighed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Fit {
    weight: u32,
    card: usize,
}

impl Shelf {
    /// Takes in the next page of a list.
    pub fn put(&mut self, rows: &[Row]) {
        let from = self.cards.len();
        for row in rows {
            // Somebody who speaks meanwhile moves their session from one page to another.
            if self.known.insert(row.summary.id) {
                self.cards.push(Card::of(row));
            }
        }
        let new: Vec<usize> = (from..self.cards.len()).collect();
        self.empty += new.iter().filter(|card| self.cards[**card].empty).count();
        self.weigh(new);
    }

    /// Forgets every session, but not what was typed. The next ones may be of several projects.
    pub fn empty_out(&mut self, with_project: bool) {
        self.with_project = with_project;
        self.cards.clear();
        self.known.clear();
        self.weigh_all();
    }

    /// Shows only what fits.
    pub fn type_in(&mut self, typed: &str) {
        let fewer = narrows(&self.typed, typed);
        typed.clone_into(&mut self.typed);
        if fewer {
            let left: Vec<usize> = self.fitting.iter().map(|fit| fit.card).collect();
            self.fitting.clear();
            self.weigh(left);
        } else {
            self.weigh_all();
        }
    }

    /// Shows sessions in which nobody ever said anything, or does not.
    pub fn toggle_empty(&mut self) {
        self.with_empty = !self.with_empty;
        self.weigh_all();
    }

    /// Takes in what became of a session.
    pub fn replace(&mut self, row: &Row) {
        if let Some(card) = self.cards.iter_mut().find(|card| card.id == row.summary.id) {
            *card = Card::of(row);
            self.weigh_all();
        }
    }

    /// Forgets a session. Whether it was there.
    pub fn remove(&mut self, id: SessionId) -> bool {
        let before = self.cards.len();
        self.cards.retain(|card| card.id != id);
        self.known.remove(&id);
        self.weigh_all();
        self.cards.len() < before
    }

    fn weigh_all(&mut self) {
        self.empty = self.cards.iter().filter(|card| card.empty).count();
        self.fitting.clear();
        self.weigh((0..self.cards.len()).collect());
    }

    fn weigh(&mut self, cards: Vec<usize>) {
        let shown = |card: &Card| self.with_empty || !card.empty;
        if self.typed.trim().is_empty() {
            let cards = cards.into_iter().filter(|card| shown(&self.cards[*card]));
            self.fitting
                .extend(cards.map(|card| Fit { weight: 0, card }));
            return;
        }
        let mut sieve = Sieve::new(&self.typed, self.with_project);
        self.weighed += cards.len() as u64;
        for card in cards {
            if let Some(weight) = sieve.weigh(&self.cards[card])
                && shown(&self.cards[card])
            {
                self.fitting.push(Fit { weight, card });
            }
        }
        self.fitting
            .sort_by(|a, b| b.weight.cmp(&a.weight).then(a.card.cmp(&b.card)));
    }

    /// How many are shown.
    pub fn len(&self) -> usize {
        self.fitting.len()
    }

    /// How many would be shown if nothing were typed.
    pub fn read(&self) -> usize {
        self.cards.len().saturating_sub(self.hidden_empty())
    }

    /// One that is shown.
    pub fn get(&self, place: usize) -> Option<&Card> {
        self.cards.get(self.fitting.get(place)?.card)
    }

    /// The place of a session among those that are shown.
    pub fn place_of(&self, id: SessionId) -> Option<usize> {
        self.fitting
            .iter()
            .position(|fit| self.cards[fit.card].id == id)
    }

    /// Those of some sessions that are shown.
    pub fn shown_of(&self, ids: &HashSet<SessionId>) -> HashSet<SessionId> {
        let shown = self.fitting.iter().map(|fit| self.cards[fit.card].id);
        shown.filter(|id| ids.contains(id)).collect()
    }

    /// How many are not shown because they are empty.
    pub fn hidden_empty(&self) -> usize {
        if self.with_empty { 0 } else { self.empty }
    }
}

#[cfg(test)]
mod tests {
    use tertulia_core::session::Summary;

    use super::*;

    fn row(number: u64, title: &str) -> Row {
        let id = format!("01936f5e-6c5a-7b3a-9d2f-{number:012x}");
        let mut summary = Summary::blank(id.parse().unwrap());
        summary.title = (!title.is_empty()).then(|| title.to_owned());
        summary.messages = u64::from(!title.is_empty());
        Row {
            summary,
            open: false,
        }
    }

    fn titles(shelf: &Shelf) -> Vec<&str> {
        (0..shelf.len())
            .filter_map(|place| shelf.get(place))
            .map(Card::title_or_untitled)
            .collect()
    }

    #[test]
    fn the_best_come_first_and_the_newest_of_equals() {
        let mut shelf = Shelf::default();
        shelf.put(&[
            row(1, "a parser"),
            row(2, "pxaxrxsxexr"),
            row(3, "a parser"),
        ]);
        shelf.type_in("parser");
        assert_eq!(titles(&shelf), ["a parser", "a parser", "pxaxrxsxexr"]);
        assert_eq!(shelf.get(0).unwrap().id, row(1, "").summary.id);
        shelf.put(&[row(4, "parser"), row(1, "a parser")]);
        let expected = ["a parser", "a parser", "parser", "pxaxrxsxexr"];
        assert_eq!(titles(&shelf), expected);
    }

    #[test]
    fn empty_ones_are_counted_and_shown_on_demand() {
        let mut shelf = Shelf::default();
        shelf.put(&[row(1, ""), row(2, "two")]);
        assert_eq!((titles(&shelf), shelf.hidden_empty()), (vec!["two"], 1));
        shelf.type_in("w");
        // One of one: what is not shown anyway is not counted.
        assert_eq!((shelf.len(), shelf.read()), (1, 1));
        shelf.type_in("");
        shelf.toggle_empty();
        assert_eq!((shelf.len(), shelf.hidden_empty()), (2, 0));
    }

    #[test]
    fn removing_and_replacing_keep_the_rest() {
        let mut shelf = Shelf::default();
        shelf.put(&[row(1, "one"), row(2, "two"), row(3, "three")]);
        assert!(shelf.remove(row(2, "").summary.id));
        assert!(!shelf.remove(row(2, "").summary.id));
        shelf.replace(&row(3, "drei"));
        assert_eq!(titles(&shelf), ["one", "drei"]);
    }

    #[test]
    fn typing_on_weighs_only_what_fitted() {
        let mut shelf = Shelf::default();
        let rows: Vec<Row> = (0..10_000)
            .map(|number| row(number, if number % 100 == 0 { "parser" } else { "talk" }))
            .collect();
        for page in rows.chunks(500) {
            shelf.put(page);
        }
        shelf.type_in("pars");
        assert_eq!((shelf.len(), shelf.weighed), (100, 10_000));
        for typed in ["parse", "parser"] {
            shelf.type_in(typed);
        }
        assert_eq!((shelf.len(), shelf.weighed), (100, 10_200));
        // A page that comes while somebody types costs what the page is long.
        shelf.put(&[row(20_000, "parser"), row(20_001, "talk")]);
        assert_eq!((shelf.len(), shelf.weighed), (101, 10_202));
    }
}
