//! Completion of the word at the cursor. Performs no I/O: lookups are returned as [`Asked`].

mod place;

use std::ops::Range;

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use tertulia_agents::approval::Approval;
use tertulia_engine::text::permissions;

use super::slash;
use place::{Kind, Place};

/// Maximum number of candidates considered; beyond that the user must type more.
const MOST: usize = 10_000;

/// A lookup, with the text typed so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Files whose path starts with or contains the text.
    Files(String),
    /// Sessions.
    Sessions(String),
    /// Agents.
    Agents(String),
    /// Models of the agent.
    Models(String),
    /// Team files.
    Teams(String),
}

/// A possible completion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Text to insert.
    pub insert: String,
    /// Text shown and matched, if different.
    pub label: Option<String>,
    /// Note shown beside it.
    pub note: String,
    /// Whether more must follow: a folder, or a command that needs an argument.
    pub goes_on: bool,
}

impl Candidate {
    /// Creates a candidate that is shown as inserted.
    pub fn new(insert: impl Into<String>) -> Candidate {
        Candidate {
            insert: insert.into(),
            ..Candidate::default()
        }
    }

    /// Sets a different text to show and match.
    pub fn labelled(self, label: impl Into<String>) -> Candidate {
        Candidate {
            label: Some(label.into()),
            ..self
        }
    }

    /// Sets the note.
    pub fn noted(self, note: impl Into<String>) -> Candidate {
        Candidate {
            note: note.into(),
            ..self
        }
    }

    /// Marks the candidate as incomplete.
    pub fn going_on(self) -> Candidate {
        Candidate {
            goes_on: true,
            ..self
        }
    }

    /// Text shown.
    pub fn shown(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.insert)
    }
}

/// One row of the popup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer<'a> {
    /// Candidate.
    pub candidate: &'a Candidate,
    /// Indices of its graphemes that match the typed text.
    pub fitting: Vec<u32>,
    /// Whether it is chosen.
    pub chosen: bool,
}

/// An accepted completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Range to replace.
    pub range: Range<usize>,
    /// Replacement.
    pub text: String,
    /// Whether more must follow.
    pub goes_on: bool,
}

/// Completion popup at the cursor.
#[derive(Debug, Default)]
pub struct Completion {
    members: Vec<Candidate>,
    people: Vec<Candidate>,
    open: Option<Open>,
    /// Start of a word for which the user dismissed the popup.
    unwanted: Option<usize>,
    matcher: Matcher,
}

#[derive(Debug)]
struct Open {
    place: Place,
    asked: Option<Asked>,
    candidates: Vec<Candidate>,
    /// Number of candidates known without a lookup; those found by the lookup follow.
    known: usize,
    fitting: Vec<usize>,
    chosen: usize,
}

impl Open {
    /// Index of the first row of a window that includes the chosen one.
    fn first(&self, rows: usize) -> usize {
        (self.chosen + 1).saturating_sub(rows)
    }
}

impl Completion {
    /// Sets the members of the conversation.
    pub fn set_members(&mut self, members: Vec<Candidate>) {
        self.members = members;
    }

    /// Sets the members that are people.
    pub fn set_people(&mut self, people: Vec<Candidate>) {
        self.people = people;
    }

    /// Updates the popup for the cursor and returns the lookup that is needed.
    pub fn update(&mut self, text: &str, cursor: usize) -> Option<Asked> {
        let Some(place) = place::place(text, cursor) else {
            self.close();
            self.unwanted = None;
            return None;
        };
        if self.unwanted == Some(place.range.start) {
            return None;
        }
        self.unwanted = None;
        let asked = asked(&place);
        let same = |open: &Open| {
            open.place.kind == place.kind && open.place.range.start == place.range.start
        };
        match self.open.take().filter(same) {
            // Keep the known candidates until the new answer arrives.
            Some(open) => {
                self.open = Some(Open {
                    place,
                    asked: asked.clone(),
                    ..open
                });
            }
            None => {
                let candidates = self.known(place.kind);
                self.open = Some(Open {
                    place,
                    asked: asked.clone(),
                    known: candidates.len(),
                    candidates,
                    fitting: Vec::new(),
                    chosen: 0,
                });
            }
        }
        self.narrow();
        asked
    }

    /// Reopens a dismissed popup.
    pub fn want(&mut self) {
        self.unwanted = None;
    }

    /// Adds the answer to a lookup; returns false if the lookup is outdated.
    pub fn answer(&mut self, asked: &Asked, found: Vec<Candidate>) -> bool {
        let Some(open) = &mut self.open else {
            return false;
        };
        if open.asked.as_ref() != Some(asked) {
            return false;
        }
        open.candidates.truncate(open.known);
        open.candidates.extend(found.into_iter().take(MOST));
        self.narrow();
        true
    }

    /// Returns true if there are candidates to choose from.
    pub fn is_open(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| !open.fitting.is_empty())
    }

    /// Returns true if the word at the cursor can be completed, even if no candidate matches now.
    pub fn is_active(&self) -> bool {
        self.open.is_some()
    }

    /// Forgets a dismissed word that is no longer in the text.
    pub fn settle(&mut self, text: &str, cursor: usize) {
        if self.unwanted.is_some() && place::place(text, cursor).is_none() {
            self.unwanted = None;
        }
    }

    /// Chooses the next or previous candidate, wrapping around.
    pub fn choose(&mut self, forward: bool) {
        if let Some(open) = &mut self.open
            && !open.fitting.is_empty()
        {
            let count = open.fitting.len();
            let step = if forward { 1 } else { count - 1 };
            open.chosen = (open.chosen + step) % count;
        }
    }

    /// Chooses a row of the window that shows the chosen one.
    pub fn choose_row(&mut self, row: usize, rows: usize) {
        if let Some(open) = &mut self.open {
            let last = open.fitting.len().saturating_sub(1);
            open.chosen = (open.first(rows) + row).min(last);
        }
    }

    /// Closes the popup.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// Closes the popup until the word changes.
    pub fn dismiss(&mut self) {
        self.unwanted = self.open.take().map(|open| open.place.range.start);
    }

    /// Returns true if the chosen candidate is already written, so that there is nothing to accept.
    pub fn is_written(&self) -> bool {
        self.chosen().is_some_and(|(open, candidate)| {
            !candidate.goes_on && candidate.insert.trim_end() == open.place.written
        })
    }

    fn chosen(&self) -> Option<(&Open, &Candidate)> {
        let open = self.open.as_ref()?;
        let candidate = open.candidates.get(*open.fitting.get(open.chosen)?)?;
        Some((open, candidate))
    }

    /// Accepts the chosen candidate; the result depends on the text after the cursor.
    pub fn accept(&mut self, text: &str) -> Option<Accepted> {
        let (open, candidate) = self.chosen()?;
        let rest = &text[open.place.range.end..];
        let accepted = Accepted {
            range: open.place.range.clone(),
            text: inserted(candidate, open.place.kind, rest),
            goes_on: candidate.goes_on,
        };
        self.close();
        Some(accepted)
    }

    /// Visible rows: a window of some rows that includes the chosen one.
    pub fn offers(&self, rows: usize) -> Vec<Offer<'_>> {
        let Some(open) = &self.open else {
            return Vec::new();
        };
        let first = open.first(rows);
        let atom = atom(&open.place);
        // A second matcher for a few rows avoids the need for `&mut self`.
        let mut matcher = Matcher::default();
        let window = open.fitting.iter().enumerate().skip(first).take(rows);
        window
            .map(|(place, index)| {
                let candidate = &open.candidates[*index];
                let mut fitting = Vec::new();
                let mut letters = Vec::new();
                let shown = Utf32Str::new(candidate.shown(), &mut letters);
                atom.indices(shown, &mut matcher, &mut fitting);
                Offer {
                    candidate,
                    fitting,
                    chosen: place == open.chosen,
                }
            })
            .collect()
    }

    /// Number of the chosen candidate, from 1, and number of matching candidates.
    pub fn position(&self) -> (usize, usize) {
        self.open
            .as_ref()
            .map_or((0, 0), |open| (open.chosen + 1, open.fitting.len()))
    }

    fn known(&self, kind: Kind) -> Vec<Candidate> {
        match kind {
            Kind::Command => slash::COMMANDS.iter().map(command).collect(),
            Kind::Marker | Kind::At => self.members.clone(),
            // A user cannot speak as an agent.
            Kind::Member => self.people.clone(),
            Kind::Format => slash::formats().map(Candidate::new).collect(),
            Kind::TeamVerb => vec![
                Candidate::new("deploy ").labelled("deploy").going_on(),
                Candidate::new("list"),
                Candidate::new("map ").labelled("map").going_on(),
            ],
            Kind::Approve => Approval::ALL
                .map(|mode| Candidate::new(mode.name()).noted(permissions::meaning(mode)))
                .to_vec(),
            Kind::Session | Kind::Agent | Kind::Model | Kind::File | Kind::Team => Vec::new(),
        }
    }

    /// Keeps the matching candidates, best first.
    fn narrow(&mut self) {
        let Some(open) = &mut self.open else {
            return;
        };
        let atom = atom(&open.place);
        self.matcher.config = if matches!(open.place.kind, Kind::At | Kind::File) {
            Config::DEFAULT.match_paths()
        } else {
            Config::DEFAULT
        };
        let mut letters = Vec::new();
        let mut fitting: Vec<(u16, usize)> = Vec::new();
        for (index, candidate) in open.candidates.iter().enumerate() {
            // A session can be found by title and by id.
            let texts = [Some(&candidate.insert), candidate.label.as_ref()];
            let score = texts
                .into_iter()
                .flatten()
                .filter_map(|text| atom.score(Utf32Str::new(text, &mut letters), &mut self.matcher))
                .max();
            fitting.extend(score.map(|score| (score, index)));
        }
        fitting.sort_by_key(|(score, index)| (std::cmp::Reverse(*score), *index));
        open.fitting = fitting.into_iter().map(|(_, index)| index).collect();
        if open.fitting.is_empty() && open.place.kind == Kind::Command {
            open.fitting.extend(nearest(open));
        }
        open.chosen = 0;
    }
}

/// The command that was probably meant.
fn nearest(open: &Open) -> Option<usize> {
    let near = slash::nearest(&open.place.written)?;
    slash::COMMANDS
        .iter()
        .position(|command| command.name == near)
}

fn command(command: &slash::Command) -> Candidate {
    let candidate = if command.stands_alone() {
        Candidate::new(command.name)
    } else {
        Candidate::new(format!("{} ", command.name))
            .labelled(format!("{} {}", command.name, command.arguments))
    };
    Candidate {
        goes_on: command.wants_more(),
        ..candidate.noted(command.help)
    }
}

fn asked(place: &Place) -> Option<Asked> {
    let written = place.written.clone();
    match place.kind {
        Kind::At | Kind::File => Some(Asked::Files(written)),
        Kind::Session => Some(Asked::Sessions(written)),
        Kind::Agent => Some(Asked::Agents(written)),
        Kind::Model => Some(Asked::Models(written)),
        Kind::Team => Some(Asked::Teams(written)),
        Kind::Command
        | Kind::Marker
        | Kind::Member
        | Kind::Format
        | Kind::TeamVerb
        | Kind::Approve => None,
    }
}

fn atom(place: &Place) -> Atom {
    Atom::new(
        &place.written,
        CaseMatching::Smart,
        Normalization::Smart,
        AtomKind::Fuzzy,
        false,
    )
}

/// Text that a candidate inserts, with a closing bracket or a blank where needed.
fn inserted(candidate: &Candidate, kind: Kind, rest: &str) -> String {
    let mut text = candidate.insert.clone();
    if matches!(kind, Kind::At | Kind::File | Kind::Team) && text.contains(char::is_whitespace) {
        text = format!("\"{text}\"");
    }
    match kind {
        Kind::Marker => {
            let line = rest.lines().next().unwrap_or_default();
            if !line.contains(']') {
                text.push(']');
            }
        }
        Kind::At | Kind::File | Kind::Format
            if !candidate.goes_on && !rest.starts_with(char::is_whitespace) =>
        {
            text.push(' ');
        }
        _ => {}
    }
    text
}

#[cfg(test)]
mod tests;
