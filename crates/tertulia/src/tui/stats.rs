//! How much was said: by day, by agent, by model. The numbers are given.

#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent};
use jiff::civil::Date;
use ratatui::layout::Size;
use tertulia_core::entry::Usage;

use super::choice::Scroll;
use super::press;

/// How many lines of the screen do not scroll: the heading, the totals, the last days, the keys.
pub const OTHER_LINES: u16 = 7;

/// How much was said in some sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Which sessions, in words.
    pub of: String,
    /// How many sessions.
    pub sessions: u64,
    /// Each day on which something was said, in any order.
    pub days: Vec<(Date, Amount)>,
    /// Each agent, in any order.
    pub agents: Vec<(String, Amount)>,
    /// Each model, in any order.
    pub models: Vec<(String, Amount)>,
}

/// How much was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// In messages.
    pub messages: u64,
    /// In tokens.
    pub tokens: Usage,
}

impl Amount {
    /// Both together.
    pub fn plus(self, other: Amount) -> Amount {
        Amount {
            messages: self.messages.saturating_add(other.messages),
            tokens: Usage {
                input: self.tokens.input.saturating_add(other.tokens.input),
                output: self.tokens.output.saturating_add(other.tokens.output),
                estimated: self.tokens.estimated || other.tokens.estimated,
            },
        }
    }

    /// The number that a measure counts.
    pub fn by(self, measure: Measure) -> u64 {
        match measure {
            Measure::Messages => self.messages,
            Measure::Tokens => self.tokens.input.saturating_add(self.tokens.output),
        }
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Messages.
    #[default]
    Messages,
    /// Tokens, read and written.
    Tokens,
}

/// The screen of figures.
#[derive(Clone, Debug)]
pub struct Stats {
    figures: Figures,
    total: Amount,
    measure: Measure,
    scroll: Scroll,
    size: Size,
}

/// A line of what scrolls.
#[derive(Clone, Debug, PartialEq)]
pub enum Line<'a> {
    /// The name of a part.
    Heading(&'static str),
    /// Nothing.
    Gap,
    /// A number with its bar: the name, the amount, and the largest of its part.
    Bar(std::borrow::Cow<'a, str>, Amount, u64),
}

/// What a person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// Nothing, but the screen looks different.
    Changed,
    /// To leave.
    Leave,
}

impl Stats {
    /// The screen of some figures.
    pub fn new(mut figures: Figures) -> Stats {
        // The newest day first; of the others whoever said most.
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

    /// Tells how large the screen is.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Outcome {
        if !press::is_down(key) {
            return Outcome::Nothing;
        }
        if press::leaves(key) || press::answer(key) == Some('q') {
            return Outcome::Leave;
        }
        if let KeyCode::Tab | KeyCode::BackTab = key.code {
            self.measure = match self.measure {
                Measure::Messages => Measure::Tokens,
                Measure::Tokens => Measure::Messages,
            };
            self.sort();
            return Outcome::Changed;
        }
        let seen = usize::from(self.size.height.saturating_sub(OTHER_LINES));
        match self.scroll.moves(key, self.lines(), seen) {
            true => Outcome::Changed,
            false => Outcome::Nothing,
        }
    }

    /// The figures.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// All days together.
    pub fn total(&self) -> Amount {
        self.total
    }

    /// What is counted.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// The first line that is seen where so many fit.
    pub fn top(&self, seen: usize) -> usize {
        self.scroll.top(self.lines(), seen)
    }

    /// How many lines scroll.
    pub fn lines(&self) -> usize {
        let figures = &self.figures;
        // Each part has a heading, and a gap before it but for the first.
        figures.days.len() + figures.agents.len() + figures.models.len() + 5
    }

    /// One of the lines that scroll.
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

    /// The last days up to the newest, oldest first, those without a word included.
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
                // They are sorted: all others are older still.
                None => break,
            }
        }
        amounts
    }
}
