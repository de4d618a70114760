//! Turns the lines of one session into messages. Lines of the user begin with `####`, those of the
//! program with `>`, and both end with two spaces, which tells them from Markdown of the model.

use jiff::Timestamp;

use super::{AGENT, PROGRAM};
use crate::importer::{Answer, SessionBuilder, local_time};
use tertulia_core::entry::Usage;
use tertulia_core::foreign::Foreign;
use tertulia_core::id::derived;

/// Ending of every line that aider itself writes.
const BREAK: &str = "  ";
/// Beginning of the notice with token figures.
const TOKENS: &str = "Tokens: ";
/// Marks around the reasoning of a model.
const REASONING: &[(&str, &str)] = &[
    (
        "<thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b>",
        "</thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b>",
    ),
    ("<think>", "</think>"),
    (
        "--------------\n► **THINKING**",
        "------------\n► **ANSWER**",
    ),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Author {
    User,
    Agent,
    Program,
}

/// A message.
#[derive(Debug)]
struct Part {
    author: Author,
    text: String,
    /// The notices of a block, of which each names a message of its own.
    notices: Vec<String>,
    usage: Option<Usage>,
    /// True if the next line may still belong to it.
    open: bool,
}

/// The lines of one session.
#[derive(Debug)]
pub(super) struct Section {
    /// Time of the start, as written. The beginning of a file may lack it.
    started: Option<String>,
    parts: Vec<Part>,
    /// False if an editor removed the spaces at the ends of lines, as the first line tells.
    has_breaks: Option<bool>,
    /// True if the previous line is the user's or the program's.
    follows: bool,
    /// A notice of several lines that is not complete yet.
    open_notice: Option<String>,
    costs: usize,
    damaged: Vec<usize>,
}

impl Section {
    /// Starts a section.
    pub(super) fn new(started: Option<String>) -> Section {
        Section {
            started,
            parts: Vec::new(),
            has_breaks: None,
            follows: false,
            open_notice: None,
            costs: 0,
            damaged: Vec::new(),
        }
    }

    /// Counts a line that was skipped.
    pub(super) fn damaged(&mut self, number: usize) {
        self.damaged.push(number);
    }

    /// Adds a line.
    pub(super) fn read(&mut self, line: &str) {
        let ends = line.ends_with(BREAK);
        let is_marked = line.starts_with("#### ") || line.starts_with("> ");
        if is_marked && self.has_breaks.is_none() {
            self.has_breaks = Some(ends);
        }
        let complete = ends || self.has_breaks == Some(false);
        let notice = line.strip_prefix('>').filter(|text| {
            let is_marked = text.is_empty() || text.starts_with(' ');
            is_marked && (complete || self.is_first_line(text))
        });
        let prompt = line
            .strip_prefix("####")
            .filter(|text| complete && (text.is_empty() || text.starts_with(' ')));
        let follows = std::mem::take(&mut self.follows);
        if let Some(mut text) = self.open_notice.take() {
            text.push('\n');
            text.push_str(line);
            self.notice(text, ends);
        } else if let Some(text) = notice {
            self.notice(text.to_owned(), complete);
        } else if let Some(text) = prompt {
            self.prompt(text.strip_prefix(' ').unwrap_or(text).trim_end());
            self.follows = true;
        } else if line.trim().is_empty() && (follows || self.last_is_closed()) {
            self.close();
        } else {
            self.answer(line);
        }
    }

    /// Returns true for the first line of a notice of several, of which the last has the two spaces.
    fn is_first_line(&self, text: &str) -> bool {
        self.follows || text.trim_start().starts_with(TOKENS)
    }

    fn last_is_closed(&self) -> bool {
        self.parts.last().is_none_or(|part| !part.open)
    }

    fn close(&mut self) {
        if let Some(part) = self.parts.last_mut() {
            part.open = false;
        }
    }

    fn append(&mut self, author: Author, line: &str) {
        match self.parts.last_mut() {
            Some(part) if part.open && part.author == author => {
                part.text.push('\n');
                part.text.push_str(line);
            }
            _ => self.parts.push(Part {
                author,
                text: line.to_owned(),
                notices: Vec::new(),
                usage: None,
                open: true,
            }),
        }
    }

    fn prompt(&mut self, text: &str) {
        self.append(Author::User, text);
    }

    fn answer(&mut self, line: &str) {
        self.append(Author::Agent, line);
    }

    /// Adds a notice if it is complete. Those of a block are one message.
    fn notice(&mut self, text: String, complete: bool) {
        if self
            .parts
            .last()
            .is_none_or(|part| part.author != Author::Program)
        {
            self.close();
        }
        self.follows = true;
        if !complete {
            self.open_notice = Some(text);
            return;
        }
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if let Some((usage, has_cost)) = usage(text)
            && let Some(answer) = self.answer_without_usage()
        {
            answer.usage = Some(usage);
            self.costs += usize::from(has_cost);
            return;
        }
        self.append(Author::Program, text);
        if let Some(part) = self.parts.last_mut() {
            part.notices.push(text.to_owned());
        }
    }

    /// Leaves out a block at the end of the file: the program may still add to it, and an entry that
    /// was imported does not change. Returns true if there was one.
    fn hold_back(&mut self) -> bool {
        let is_open = |part: &mut Part| part.author == Author::Program && part.open;
        self.parts.pop_if(is_open).is_some()
    }

    /// Returns the answer that a notice of tokens is about: they cover all requests of a prompt.
    fn answer_without_usage(&mut self) -> Option<&mut Part> {
        let since = self.parts.iter_mut().rev();
        let mut since = since.take_while(|part| part.author != Author::User);
        let answer = since.find(|part| part.author == Author::Agent)?;
        answer.usage.is_none().then_some(answer)
    }

    /// Returns the session, unless it has only notices. `next` is the time at which the next one
    /// starts, `is_last` tells whether there is none.
    pub(super) fn session(mut self, next: Option<Timestamp>, is_last: bool) -> Option<Foreign> {
        if let Some(text) = self.open_notice.take() {
            self.notice(text, true);
        }
        let is_held_back = is_last && self.hold_back();
        for part in &mut self.parts {
            if part.author == Author::Agent {
                part.text = part.text.trim_matches(['\n', ' ', '\t']).to_owned();
            }
        }
        self.parts
            .retain(|part| !part.text.is_empty() || part.author == Author::User);
        let first = self
            .parts
            .iter()
            .find(|part| part.author != Author::Program)?;
        let first_line = first.text.lines().next().unwrap_or_default();
        let started = self.started.as_deref().unwrap_or("unknown");
        let mut key = derived(&[started, first_line]);
        let short: String = key.simple().to_string().chars().take(8).collect();
        let original = format!("{}-{short}", started.replace(' ', "T"));
        let mut builder = SessionBuilder::new(PROGRAM, AGENT);
        let time = self.started.as_deref().and_then(local_time).or(next);
        builder.at(time);
        let mut about = About::default();
        for part in &self.parts {
            let author = match part.author {
                Author::User => "user",
                Author::Agent => "agent",
                Author::Program => "program",
            };
            let text = part.notices.first().unwrap_or(&part.text);
            key = derived(&[&key.to_string(), author, text]);
            let id = key.to_string();
            for notice in part.notices.iter().skip(1) {
                key = derived(&[&key.to_string(), author, notice]);
            }
            match part.author {
                Author::User => builder.user(&id, &part.text),
                Author::Program => {
                    part.notices.iter().for_each(|notice| about.read(notice));
                    builder.system(&id, &part.text);
                }
                Author::Agent => answer(&id, part, about.model.as_deref(), &mut builder),
            }
        }
        for _ in 0..self.costs {
            builder.skipped.count("costs");
        }
        if is_held_back {
            let words = "notices at the end, to which the program may still add (1)";
            builder.changes.lost.push(words.to_owned());
        }
        builder.changes.damaged = self.damaged;
        let mut session = builder.finish(&original, time);
        session.source.version = about.version;
        Some(session)
    }
}

fn answer(id: &str, part: &Part, model: Option<&str>, builder: &mut SessionBuilder) {
    let (thought, text) = without_reasoning(&part.text);
    builder.agent(
        id,
        Answer {
            text,
            thought,
            usage: part.usage,
            usage_id: part.usage.map(|_| id.to_owned()),
            model,
            ..Answer::default()
        },
    );
}

/// What the program says of itself in a session.
#[derive(Debug, Default)]
struct About {
    version: Option<String>,
    model: Option<String>,
}

impl About {
    fn read(&mut self, notice: &str) {
        if let Some(version) = notice.strip_prefix("Aider v") {
            self.version = Some(version.to_owned());
        }
        let named = ["Main model: ", "Model: ", "Models: "]
            .iter()
            .find_map(|prefix| notice.strip_prefix(prefix))
            .and_then(|rest| rest.split_once(" with "));
        if let Some((model, _)) = named {
            self.model = Some(model.to_owned());
        }
    }
}

/// Returns the reasoning and the rest of an answer.
fn without_reasoning(text: &str) -> (Option<String>, &str) {
    for (open, close) in REASONING {
        let rest = text.strip_prefix(open);
        if let Some((thought, answer)) = rest.and_then(|rest| rest.split_once(close)) {
            let thought = thought.trim();
            let thought = (!thought.is_empty()).then(|| thought.to_owned());
            return (thought, answer.trim_start());
        }
    }
    (None, text)
}

/// Parses `Tokens: 2.1k sent, 1.5k cache write, 301 received. Cost: …`, and tells whether there is
/// a cost.
fn usage(notice: &str) -> Option<(Usage, bool)> {
    let (figures, rest) = notice.strip_prefix(TOKENS)?.split_once(" received.")?;
    let (mut usage, mut received) = (Usage::default(), false);
    for figure in format!("{figures} received").split(", ") {
        let (number, kind) = figure.split_once(' ')?;
        let (count, is_rounded) = number_of(number)?;
        usage.estimated |= is_rounded;
        match kind {
            "sent" => usage.input = count,
            "cache write" => usage.cache_written = count,
            "cache hit" => usage.cache_read = count,
            "received" => (usage.output, received) = (count, true),
            _ => return None,
        }
    }
    // Whether the tokens sent include those of the cache depends on the provider.
    let cached = usage.cache_read.saturating_add(usage.cache_written);
    usage.input = usage.input.max(cached);
    received.then(|| (usage, rest.contains("Cost: $")))
}

/// Parses `301`, `5,244` or `2.1k`, and tells whether the number is rounded.
fn number_of(text: &str) -> Option<(u64, bool)> {
    let Some(thousands) = text.strip_suffix('k') else {
        return Some((text.replace(',', "").parse().ok()?, false));
    };
    let (whole, tenths) = thousands.split_once('.').unwrap_or((thousands, "0"));
    let (whole, tenths): (u64, u64) = (whole.parse().ok()?, tenths.parse().ok()?);
    let count = whole.checked_mul(1_000)?.checked_add(tenths.min(9) * 100)?;
    Some((count, true))
}
