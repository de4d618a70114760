//! Statistics overlay: messages and tokens by day, agent and model.

#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use jiff::civil::Date;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use tertulia_core::entry::Usage;

use super::choice::Scroll;
use super::key_event;
use super::overlay::{Overlay, Reaction};
use super::view;
use super::view::brush::Look;

/// Lines that do not scroll: heading, totals, sparkline, keys.
pub const OTHER_LINES: u16 = 7;

/// Statistics of some sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Name of the sessions.
    pub of: String,
    /// Number of sessions.
    pub sessions: u64,
    /// Amount per day, in any order.
    pub days: Vec<(Date, Amount)>,
    /// Amount per agent, in any order.
    pub agents: Vec<(String, Amount)>,
    /// Amount per model, in any order.
    pub models: Vec<(String, Amount)>,
}

/// Number of messages and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Messages.
    pub messages: u64,
    /// Tokens.
    pub tokens: Usage,
}

impl Amount {
    /// Adds two amounts.
    pub fn plus(self, other: Amount) -> Amount {
        Amount {
            messages: self.messages.saturating_add(other.messages),
            tokens: Usage {
                input: self.tokens.input.saturating_add(other.tokens.input),
                output: self.tokens.output.saturating_add(other.tokens.output),
                estimated: self.tokens.estimated || other.tokens.estimated,
                ..Usage::default()
            },
        }
    }

    /// Number counted by a measure.
    pub fn by(self, measure: Measure) -> u64 {
        match measure {
            Measure::Messages => self.messages,
            Measure::Tokens => self.tokens.input.saturating_add(self.tokens.output),
        }
    }
}

/// Unit of the bars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Messages.
    #[default]
    Messages,
    /// Input and output tokens.
    Tokens,
}

/// Statistics overlay.
#[derive(Clone, Debug)]
pub struct Stats {
    figures: Figures,
    total: Amount,
    measure: Measure,
    scroll: Scroll,
    size: Size,
}

/// A scrolling line.
#[derive(Clone, Debug, PartialEq)]
pub enum Line<'a> {
    /// Section heading.
    Heading(&'static str),
    /// Empty line.
    Gap,
    /// A bar: name, amount, and the maximum of its section.
    Bar(std::borrow::Cow<'a, str>, Amount, u64),
}

impl Overlay for Stats {
    fn resize(&mut self, size: Size) {
        self.size = size;
    }

    fn key(&mut self, key: KeyEvent, _now: Timestamp) -> Reaction {
        if !key_event::is_down(key) {
            return Reaction::Nothing;
        }
        if key_event::leaves(key) || key_event::answer(key) == Some('q') {
            return Reaction::Close;
        }
        if let KeyCode::Tab | KeyCode::BackTab = key.code {
            self.measure = match self.measure {
                Measure::Messages => Measure::Tokens,
                Measure::Tokens => Measure::Messages,
            };
            self.sort();
            return Reaction::Changed;
        }
        let seen = usize::from(self.size.height.saturating_sub(OTHER_LINES));
        self.scroll.moves(key, self.lines(), seen).into()
    }

    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        view::stats::draw(self, look, area, buffer);
        None
    }
}

impl Stats {
    /// Creates the overlay.
    pub fn new(mut figures: Figures) -> Stats {
        // Newest day first; agents and models by amount.
        figures.days.sort_by_key(|(day, _)| std::cmp::Reverse(*day));
        let total = figures.days.iter().map(|(_, amount)| *amount);
        let total = total.fold(Amount::default(), Amount::plus);
        let mut stats = Stats {
            figures,
            total,
            measure: Measure::default(),
            scroll: Scroll::default(),
            size: Size::new(80, 24),
        };
        stats.sort();
        stats
    }

    fn sort(&mut self) {
        let measure = self.measure;
        for list in [&mut self.figures.agents, &mut self.figures.models] {
            list.sort_by(|(a, amount), (b, other)| {
                other.by(measure).cmp(&amount.by(measure)).then(a.cmp(b))
            });
        }
    }

    /// The statistics.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Sum of all days.
    pub fn total(&self) -> Amount {
        self.total
    }

    /// Unit of the bars.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// Index of the first visible line, given the viewport height.
    pub fn top(&self, seen: usize) -> usize {
        self.scroll.top(self.lines(), seen)
    }

    /// Number of scrolling lines.
    pub fn lines(&self) -> usize {
        let figures = &self.figures;
        // Each section has a heading, and all but the first a gap before it.
        figures.days.len() + figures.agents.len() + figures.models.len() + 5
    }

    /// Returns a scrolling line.
    pub fn line(&self, number: usize) -> Option<Line<'_>> {
        let figures = &self.figures;
        let mut number = number;
        if number == 0 {
            return Some(Line::Heading("By day"));
        }
        number -= 1;
        if let Some((day, amount)) = figures.days.get(number) {
            let most = self.most(figures.days.iter().map(|(_, amount)| amount));
            return Some(Line::Bar(day.to_string().into(), *amount, most));
        }
        number -= figures.days.len();
        for (heading, list) in [("By agent", &figures.agents), ("By model", &figures.models)] {
            match number {
                0 => return Some(Line::Gap),
                1 => return Some(Line::Heading(heading)),
                _ => number -= 2,
            }
            if let Some((name, amount)) = list.get(number) {
                let most = self.most(list.iter().map(|(_, amount)| amount));
                return Some(Line::Bar(name.as_str().into(), *amount, most));
            }
            number -= list.len();
        }
        None
    }

    fn most<'a>(&self, amounts: impl Iterator<Item = &'a Amount>) -> u64 {
        let amounts = amounts.map(|amount| amount.by(self.measure));
        amounts.max().unwrap_or_default()
    }

    /// Amounts of the last `count` days up to the newest, oldest first, including days without
    /// messages.
    pub fn last_days(&self, count: usize) -> Vec<u64> {
        let days = &self.figures.days;
        let Some((newest, _)) = days.first() else {
            return Vec::new();
        };
        let mut amounts = vec![0; count];
        for (day, amount) in days {
            let age = newest.duration_since(*day).as_hours() / 24;
            match usize::try_from(age).ok().filter(|age| *age < count) {
                Some(age) => amounts[count - 1 - age] += amount.by(self.measure),
                // The days are sorted: all others are older.
                None => break,
            }
        }
        amounts
    }
}
