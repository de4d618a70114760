//! A family of sessions: what was forked from what.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::layout::Size;
use tertulia_core::entry::Relation;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::Row;

use super::choice::Choice;
use super::columns::one_line;
use super::press;

/// How many lines of the screen are not the family's: its heading and the keys.
const OTHER_LINES: u16 = 3;

/// A family of sessions, the eldest first, each before what was forked from it.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    choice: Choice,
    size: Size,
}

/// A session in its family.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Which session.
    pub id: SessionId,
    /// Its title.
    pub title: String,
    /// How many messages.
    pub messages: u64,
    /// When somebody last spoke in it.
    pub updated_at: Timestamp,
    /// How it came from the one above it, and at which entry; nothing for the eldest.
    pub from: Option<(Relation, Seq)>,
    /// Whether it is the one that was asked about.
    pub is_asked: bool,
    /// Whether it is in the trash.
    pub is_trashed: bool,
    /// Whether a running program has it open.
    pub is_open: bool,
    /// The place of the one above it.
    parent: Option<usize>,
    /// Whether no other fork of the same session follows.
    is_last: bool,
}

/// What a person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// Nothing yet, but another one is chosen.
    Changed,
    /// To leave.
    Leave,
    /// To go on with this one.
    Choose(SessionId),
}

impl Tree {
    /// The family of a session, given in any order. The session itself is chosen.
    pub fn new(asked: SessionId, family: &[Row]) -> Tree {
        let nodes = arranged(asked, family);
        let mut tree = Tree {
            choice: Choice::default(),
            size: Size::new(80, 24),
            nodes,
        };
        let place = tree.nodes.iter().position(|node| node.is_asked);
        tree.rechoose(place.unwrap_or_default());
        tree
    }

    /// Tells how large the screen is.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
        self.rechoose(self.choice.chosen());
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Outcome {
        if !press::is_down(key) {
            return Outcome::Nothing;
        }
        if press::leaves(key) {
            return Outcome::Leave;
        }
        if key.code == KeyCode::Enter {
            let chosen = self.nodes.get(self.choice.chosen());
            return chosen.map_or(Outcome::Nothing, |node| Outcome::Choose(node.id));
        }
        let (count, seen) = (self.nodes.len(), self.seen_rows());
        match self.choice.moves(key, count, seen) {
            true => Outcome::Changed,
            false => Outcome::Nothing,
        }
    }

    fn rechoose(&mut self, place: usize) {
        let (count, seen) = (self.nodes.len(), self.seen_rows());
        self.choice.choose(place, count, seen);
    }

    fn seen_rows(&self) -> usize {
        usize::from(self.size.height.saturating_sub(OTHER_LINES))
    }

    /// The sessions.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The place of the chosen one, and of the first that is seen where so many fit.
    pub fn places(&self, seen: usize) -> (usize, usize) {
        let count = self.nodes.len();
        (self.choice.chosen(), self.choice.top(count, seen))
    }

    /// The lines that lead to a session, at most so many levels of them: a family may be deeper than
    /// any screen is wide.
    pub fn lead(&self, place: usize, most: usize) -> String {
        let mut parts = Vec::new();
        let mut at = self.nodes.get(place);
        while let Some(node) = at {
            let Some(parent) = node.parent else {
                break;
            };
            if parts.len() >= most {
                parts.push("⋯ ");
                break;
            }
            parts.push(match (parts.is_empty(), node.is_last) {
                (true, true) => "└─",
                (true, false) => "├─",
                (false, true) => "  ",
                (false, false) => "│ ",
            });
            at = self.nodes.get(parent);
        }
        parts.reverse();
        parts.concat()
    }
}

/// Puts each session before its forks, and forks in the order in which they were made. Walks without
/// calling itself: a chain of forks may be longer than a stack.
fn arranged(asked: SessionId, family: &[Row]) -> Vec<Node> {
    let mut order: Vec<&Row> = family.iter().collect();
    order.sort_by_key(|row| (row.meta.created_at, row.meta.id));
    let place: HashMap<SessionId, usize> = order
        .iter()
        .enumerate()
        .map(|(at, row)| (row.meta.id, at))
        .collect();
    let parent = |row: &Row| {
        let parent = row.meta.parent.as_ref()?;
        place.get(&parent.id).copied()
    };
    let mut forks = vec![Vec::new(); order.len()];
    let mut eldest = Vec::new();
    for (at, row) in order.iter().enumerate() {
        match parent(row) {
            Some(above) => forks[above].push(at),
            None => eldest.push(at),
        }
    }
    let mut nodes: Vec<Node> = Vec::new();
    let mut is_there = vec![false; order.len()];
    // A family is a tree; data from elsewhere may claim otherwise. Nobody is left out even so.
    let starts = eldest.into_iter().chain(0..order.len());
    for start in starts {
        let mut waiting = vec![(start, None, true)];
        while let Some((at, above, is_last)) = waiting.pop() {
            if std::mem::replace(&mut is_there[at], true) {
                continue;
            }
            let here = nodes.len();
            nodes.push(node(order[at], asked, above, is_last));
            let count = forks[at].len();
            for (number, fork) in forks[at].iter().enumerate().rev() {
                waiting.push((*fork, Some(here), number + 1 == count));
            }
        }
    }
    nodes
}

fn node(row: &Row, asked: SessionId, parent: Option<usize>, is_last: bool) -> Node {
    let meta = &row.meta;
    let from = meta.parent.as_ref().filter(|_| parent.is_some());
    Node {
        id: meta.id,
        title: one_line(meta.title_or_untitled()).into_owned(),
        messages: meta.messages,
        updated_at: meta.updated_at,
        from: from.map(|from| (from.relation, from.seq)),
        is_asked: meta.id == asked,
        is_trashed: meta.trashed_at.is_some(),
        is_open: row.open,
        parent,
        is_last,
    }
}
