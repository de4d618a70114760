//! Fork tree overlay: which session was forked from which.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use tertulia_core::entry::Relation;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::Row;

use super::choice::Choice;
use super::key_event;
use super::overlay::{Overlay, Reaction};
use super::view;
use super::view::brush::Look;
use crate::text::one_line;

/// Lines of the screen besides the tree: heading and keys.
const OTHER_LINES: u16 = 3;

/// Fork tree: the root first, each session before its forks.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    choice: Choice,
    size: Size,
}

/// A session in the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Session id.
    pub id: SessionId,
    /// Title.
    pub title: String,
    /// Number of messages.
    pub messages: u64,
    /// Time of the last message.
    pub updated_at: Timestamp,
    /// Relation to its parent, and the entry at which it was forked; `None` for a root.
    pub from: Option<(Relation, Option<Seq>)>,
    /// Whether it is the session that the tree was requested for.
    pub is_asked: bool,
    /// Whether it is in the trash.
    pub is_trashed: bool,
    /// Whether a running process has it open.
    pub is_open: bool,
    /// Index of the parent.
    parent: Option<usize>,
    /// Whether it is the last fork of its parent.
    is_last: bool,
}

impl Overlay for Tree {
    fn resize(&mut self, size: Size) {
        self.size = size;
        self.rechoose(self.choice.chosen());
    }

    fn key(&mut self, key: KeyEvent, _now: Timestamp) -> Reaction {
        if !key_event::is_down(key) {
            return Reaction::Nothing;
        }
        if key_event::leaves(key) {
            return Reaction::Close;
        }
        if key.code == KeyCode::Enter {
            let chosen = self.nodes.get(self.choice.chosen());
            return chosen.map_or(Reaction::Nothing, |node| Reaction::Resume {
                id: node.id,
                at: None,
            });
        }
        let (count, seen) = (self.nodes.len(), self.seen_rows());
        self.choice.moves(key, count, seen).into()
    }

    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        view::tree::draw(self, look, area, buffer);
        None
    }
}

impl Tree {
    /// Creates the tree from sessions in any order and chooses the requested one.
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

    /// Indices of the chosen session and of the first visible one, given the viewport height.
    pub fn places(&self, seen: usize) -> (usize, usize) {
        let count = self.nodes.len();
        (self.choice.chosen(), self.choice.top(count, seen))
    }

    /// Tree lines before a session, limited to `most` levels because a tree may be deeper than the
    /// screen is wide.
    pub fn branches(&self, place: usize, most: usize) -> String {
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

/// Orders each session before its forks, and forks by creation time. Iterative, because a chain of
/// forks may be too long for the stack.
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
    // Foreign data may contain cycles; include those sessions too.
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
        from: from.map(|from| (from.relation, from.place())),
        is_asked: meta.id == asked,
        is_trashed: meta.trashed_at.is_some(),
        is_open: row.open,
        parent,
        is_last,
    }
}
