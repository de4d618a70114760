//! Todo list of an agent: a short list above the input, or one line.

use std::ops::Range;

use tertulia_agents::{Todo, TodoState};

/// Maximum number of items visible.
const MOST_ROWS: usize = 5;
/// Number of items kept around the current one; more are never visible.
const KEPT: usize = 50;
/// Bytes kept per item.
const KEPT_BYTES: usize = 1000;
/// Other rows below the transcript: queue, activity, two rows of input, status.
const OTHER_ROWS: u16 = 5;

/// Todo list of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Todos {
    /// Items that may become visible.
    kept: Vec<Todo>,
    /// Index of the current item.
    current: usize,
    /// Number of items, and number of completed ones.
    total: usize,
    done: usize,
    folded: bool,
}

impl Todos {
    /// Replaces the list.
    pub fn take(&mut self, todos: &[Todo]) {
        let current = current(todos);
        let kept = around(current, KEPT, todos.len());
        self.current = current - kept.start.min(current);
        self.kept = todos[kept].iter().map(shortened).collect();
        self.total = todos.len();
        let is_done = |todo: &&Todo| todo.state == TodoState::Completed;
        self.done = todos.iter().filter(is_done).count();
    }

    /// Folds the list to one line, or unfolds it.
    pub fn toggle(&mut self) {
        self.folded = !self.folded;
    }

    /// Returns true if there are no items.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Number of rows for a screen size. The transcript keeps half of the screen, whatever else is
    /// below it.
    pub fn height(&self, columns: u16, screen_rows: u16) -> u16 {
        if self.is_empty() || columns == 0 {
            return 0;
        }
        let room = (screen_rows / 2).saturating_sub(OTHER_ROWS);
        let wanted = match self.folded {
            true => 1,
            false => 1 + self.kept.len().min(MOST_ROWS),
        };
        u16::try_from(wanted).unwrap_or(room).min(room)
    }

    /// `3 of 7 done`.
    pub fn heading(&self) -> String {
        format!("{} of {} done", self.done, self.total)
    }

    /// The current item.
    pub fn current(&self) -> Option<&Todo> {
        self.kept.get(self.current)
    }

    /// Items visible in a number of rows that includes the heading.
    pub fn seen(&self, rows: usize) -> &[Todo] {
        let rows = rows.saturating_sub(1).min(MOST_ROWS);
        &self.kept[around(self.current, rows, self.kept.len())]
    }
}

/// Index of the item in progress, or else of the first pending one, or else of the last.
fn current(todos: &[Todo]) -> usize {
    let first = |state| todos.iter().position(|todo| todo.state == state);
    first(TodoState::InProgress)
        .or_else(|| first(TodoState::Pending))
        .unwrap_or(todos.len().saturating_sub(1))
}

/// Range of `rows` items that includes the current one and shows more of the following than of the
/// preceding items.
fn around(current: usize, rows: usize, count: usize) -> Range<usize> {
    let before = rows.saturating_sub(1) / 3;
    let start = current
        .saturating_sub(before)
        .min(count.saturating_sub(rows));
    start..(start + rows).min(count)
}

fn shortened(todo: &Todo) -> Todo {
    Todo {
        text: todo.text[..todo.text.floor_char_boundary(KEPT_BYTES)].to_owned(),
        state: todo.state,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_support::{any_size, look, screen};
    use crate::view;

    fn list(states: &str) -> Vec<Todo> {
        let todo = |(number, state): (usize, char)| Todo {
            text: format!("thing {}", number + 1),
            state: match state {
                '.' => TodoState::Pending,
                '>' => TodoState::InProgress,
                'x' => TodoState::Completed,
                _ => TodoState::Cancelled,
            },
        };
        states.chars().enumerate().map(todo).collect()
    }

    fn some(states: &str) -> Todos {
        let mut todos = Todos::default();
        todos.take(&list(states));
        todos
    }

    /// The list at the bottom of a screen, as in the event loop.
    fn drawn(todos: &Todos, size: (u16, u16)) -> String {
        screen(size, |area, buffer| {
            let height = todos.height(area.width, area.height);
            let area =
                crate::geometry::rows(area, usize::from(area.height - height), usize::from(height));
            view::todos::draw(todos, look(), area, buffer);
            None
        })
    }

    #[test]
    fn a_list_stands_at_the_foot() {
        let mut todos = some("xx-x>....");
        insta::assert_snapshot!("todos_80", drawn(&todos, (80, 24)));
        insta::assert_snapshot!("todos_120", drawn(&todos, (120, 40)));
        todos.toggle();
        insta::assert_snapshot!("folded_80", drawn(&todos, (80, 24)));
    }

    #[test]
    fn what_is_being_done_is_among_what_is_seen() {
        let seen = |states: &str| {
            let todos = some(states);
            let texts = todos.seen(6).iter().map(|todo| &todo.text[6..]);
            texts.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(seen("..."), "1 2 3");
        assert_eq!(seen(">......"), "1 2 3 4 5");
        assert_eq!(seen("xxx>..."), "3 4 5 6 7");
        assert_eq!(seen("xxxx>...."), "4 5 6 7 8");
        assert_eq!(seen("xxxxxx>"), "3 4 5 6 7");
        assert_eq!(seen("xxxxxxx"), "3 4 5 6 7");
        assert_eq!(seen("xxxx..."), "3 4 5 6 7");
        assert_eq!(seen(""), "");
    }

    #[test]
    fn the_transcript_keeps_half_of_the_screen() {
        let mut todos = some("xx>....");
        let heights =
            |todos: &Todos| [0, 5, 11, 12, 16, 20, 24, 99].map(|rows| todos.height(80, rows));
        assert_eq!(heights(&todos), [0, 0, 0, 1, 3, 5, 6, 6]);
        todos.toggle();
        assert_eq!(heights(&todos), [0, 0, 0, 1, 1, 1, 1, 1]);
        assert_eq!(heights(&Todos::default()), [0; 8]);
        assert_eq!(todos.height(0, 24), 0);
    }

    #[test]
    fn an_endless_list_is_counted_but_not_kept() {
        let mut endless = list(&format!("{}>{}", "x".repeat(10_000), ".".repeat(10_000)));
        for todo in &mut endless {
            todo.text = "漢".repeat(1000);
        }
        let mut todos = Todos::default();
        todos.take(&endless);
        assert_eq!(todos.heading(), "10000 of 20001 done");
        assert_eq!(todos.current().unwrap().state, TodoState::InProgress);
        let bytes: usize = todos.kept.iter().map(|todo| todo.text.len()).sum();
        assert!(bytes <= KEPT * KEPT_BYTES);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn no_size_and_no_words_break_it(
            size in any_size(), states in "[.>x-]{0,80}", text in any::<String>(), folded in any::<bool>(),
        ) {
            let mut all = list(&states);
            if let Some(todo) = all.first_mut() {
                todo.text = text;
            }
            let mut todos = Todos::default();
            todos.take(&all);
            if folded {
                todos.toggle();
            }
            drawn(&todos, size);
            prop_assert_eq!(todos.current(), all.get(current(&all)));
            let rows = todos.height(80, 24).into();
            if let Some(current) = todos.current().filter(|_| !folded) {
                prop_assert!(todos.seen(rows).contains(current));
            }
        }
    }
}
