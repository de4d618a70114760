//! What completes the word at the cursor. Nothing is looked up here: what is not known is asked for.

mod place;

use std::ops::Range;

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use tertulia_agents::approval::Approval;

use super::slash;
use crate::talk::permissions;
use place::{Kind, Place};

/// So many are shown at once.
pub const ROWS: usize = 6;
/// So many are looked through; what gives more is asked for a longer beginning.
const MOST: usize = 10_000;

/// What has to be looked up: each with the beginning that is written so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Files whose path begins like this, or contains it.
    Files(String),
    /// Sessions.
    Sessions(String),
    /// Models of the agent.
    Models(String),
    /// Team files.
    Teams(String),
}

/// What a word could become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// What is written into the text.
    pub insert: String,
    /// What is shown and searched, if it is something else.
    pub label: Option<String>,
    /// What is said about it.
    pub note: String,
    /// Whether more is to follow: a folder, or a command that needs something.
    pub goes_on: bool,
}

impl Candidate {
    /// One that is shown as it is written.
    pub fn new(insert: impl Into<String>) -> Candidate {
        Candidate {
            insert: insert.into(),
            ..Candidate::default()
        }
    }

    /// Shown and searched as something else.
    pub fn labelled(self, label: impl Into<String>) -> Candidate {
        Candidate {
            label: Some(label.into()),
            ..self
        }
    }

    /// With something said about it.
    pub fn noted(self, note: impl Into<String>) -> Candidate {
        Candidate {
            note: note.into(),
            ..self
        }
    }

    /// With more to follow.
    pub fn going_on(self) -> Candidate {
        Candidate {
            goes_on: true,
            ..self
        }
    }

    /// What is shown of it.
    pub fn shown(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.insert)
    }
}

/// One row of what is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer<'a> {
    /// The candidate.
    pub candidate: &'a Candidate,
    /// Which of its characters fit what is written.
    pub fitting: Vec<u32>,
    /// Whether it is the chosen one.
    pub chosen: bool,
}

/// What is put into the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// In the place of this.
    pub range: Range<usize>,
    /// This.
    pub text: String,
    /// Whether more is to follow.
    pub goes_on: bool,
}

/// What is offered at the cursor.
#[derive(Debug, Default)]
pub struct Completion {
    members: Vec<Candidate>,
    people: Vec<Candidate>,
    open: Option<Open>,
    /// Where a word begins for which a person wanted no offers.
    unwanted: Option<usize>,
    matcher: Matcher,
}

#[derive(Debug)]
struct Open {
    place: Place,
    asked: Option<Asked>,
    candidates: Vec<Candidate>,
    /// What was asked for begins here; what was known from the start stands before.
    known: usize,
    fitting: Vec<usize>,
    chosen: usize,
}

impl Completion {
    /// Who is in the talk.
    pub fn set_members(&mut self, members: Vec<Candidate>) {
        self.members = members;
    }

    /// Who of them is a person.
    pub fn set_people(&mut self, people: Vec<Candidate>) {
        self.people = people;
    }

    /// Looks at the cursor anew. What has to be looked up is given back.
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
            // What is known fits until the answer to the new question is there.
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

    /// Opens it again for a word for which it was closed.
    pub fn want(&mut self) {
        self.unwanted = None;
    }

    /// Takes in what was asked for. What answers an older question is dropped.
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

    /// Whether there is something to choose from.
    pub fn is_open(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| !open.fitting.is_empty())
    }

    /// Whether the word at the cursor could be completed, even if nothing fits it now.
    pub fn is_active(&self) -> bool {
        self.open.is_some()
    }

    /// The text is another now: a word for which no offers were wanted may be gone.
    pub fn settle(&mut self, text: &str, cursor: usize) {
        if self.unwanted.is_some() && place::place(text, cursor).is_none() {
            self.unwanted = None;
        }
    }

    /// Chooses the next or the one before, round and round.
    pub fn choose(&mut self, forward: bool) {
        if let Some(open) = &mut self.open
            && !open.fitting.is_empty()
        {
            let count = open.fitting.len();
            let step = if forward { 1 } else { count - 1 };
            open.chosen = (open.chosen + step) % count;
        }
    }

    /// Offers nothing.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// Offers nothing more for this word.
    pub fn dismiss(&mut self) {
        self.unwanted = self.open.take().map(|open| open.place.range.start);
    }

    /// Whether what is chosen is what is written already, so that nothing is left to accept.
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

    /// What the chosen one puts into a text, whose rest after the cursor matters too.
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

    /// The rows that are shown: a window around the chosen one.
    pub fn offers(&self) -> Vec<Offer<'_>> {
        let Some(open) = &self.open else {
            return Vec::new();
        };
        let first = (open.chosen + 1).saturating_sub(ROWS);
        let atom = atom(&open.place);
        // Colouring six rows is worth a matcher of their own: looking needs no right to change.
        let mut matcher = Matcher::default();
        let window = open.fitting.iter().enumerate().skip(first).take(ROWS);
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

    /// Which is chosen, counted from one, and how many fit.
    pub fn position(&self) -> (usize, usize) {
        self.open
            .as_ref()
            .map_or((0, 0), |open| (open.chosen + 1, open.fitting.len()))
    }

    fn known(&self, kind: Kind) -> Vec<Candidate> {
        match kind {
            Kind::Command => slash::COMMANDS.iter().map(command).collect(),
            Kind::Marker | Kind::At => self.members.clone(),
            // Nobody speaks as an agent.
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
            Kind::Session | Kind::Model | Kind::File | Kind::Team => Vec::new(),
        }
    }

    /// Keeps what fits what is written, the best first.
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
            // A session is found by its title and by its id.
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

/// What a candidate puts into the text: closed, and with room for the next word.
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
