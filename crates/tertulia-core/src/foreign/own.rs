//! Recognises what of another program's session is in a log already: the session of a program that
//! tertulia ran itself, and a file that tertulia exported.
//!
//! Such a log was not made from the file, so its entries have other ids, and programs tell too
//! little while they answer to derive the same ones: Codex and Gemini CLI name no message at all,
//! and a prompt that hands a conversation over is one long text in the file. What always holds is
//! that the program wrote its lines while tertulia waited for its answer, and that an export keeps
//! the times of the entries. Ids of messages, usage and tool calls are compared as well, and words
//! where the clocks do not agree.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use super::{Foreign, Said, has_words};
use crate::entry::{Body, Entry, Hash, Head, Linked, Message, Role, Speaker, SpeakerKind};
use crate::id::{EntryId, SessionId, derived};
use crate::redact::redact;

/// Why another program has a session of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// tertulia ran the program as this agent.
    Run(String),
    /// tertulia exported the session for the program.
    Export,
}

/// Where a session of another program continues a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// Number of its messages that the log has.
    pub shared: usize,
    /// The end of these messages in the log.
    pub at: Head,
    /// True if the log has no message after them.
    pub is_end: bool,
}

impl Foreign {
    /// Returns the id that a program's export of a session has there. It differs from the session's
    /// own id: the two continue independently.
    pub fn export_id(program: &str, session: SessionId) -> String {
        derived(&["export", program, &session.to_string()]).to_string()
    }
}

/// What is kept of a log to recognise its messages in a file. Places are positions in `messages`.
#[derive(Clone, Debug)]
pub struct LogDigest {
    program: String,
    native: String,
    provenance: Provenance,
    messages: Vec<KnownMessage>,
    ids: HashMap<EntryId, usize>,
    times: HashMap<Timestamp, usize>,
    usage: HashMap<String, usize>,
    /// Tool calls and their results.
    calls: HashMap<String, usize>,
    turns: Vec<Turn>,
    /// The native session that the agent uses at this place in the log.
    is_linked: bool,
    /// Last message that was not the agent's.
    prompt: Option<(Timestamp, usize)>,
    speaker: Option<Speaker>,
    end: Head,
}

#[derive(Clone, Debug)]
struct KnownMessage {
    /// Last entry before the next message.
    end: Head,
    is_answer: bool,
    words: Hash,
    /// Words of a prompt: the program may have got them at the end of a longer text.
    prompt: Option<String>,
}

/// An answer of the agent in the program's session, from the prompt to the last entry.
#[derive(Clone, Copy, Debug)]
struct Turn {
    from: Timestamp,
    to: Timestamp,
    last: usize,
}

impl LogDigest {
    /// Begins with an empty log. `session` is the program's session that will be compared.
    pub fn new(session: &Foreign, provenance: Provenance) -> LogDigest {
        LogDigest {
            program: session.source.program.clone(),
            native: session.source.original.clone(),
            provenance,
            messages: Vec::new(),
            ids: HashMap::new(),
            times: HashMap::new(),
            usage: HashMap::new(),
            calls: HashMap::new(),
            turns: Vec::new(),
            is_linked: false,
            prompt: None,
            speaker: None,
            end: Head::START,
        }
    }

    /// Adds the next entry of the log.
    pub fn read(&mut self, entry: &Entry) {
        self.end = entry.head();
        match &entry.body {
            Body::Message(message) => self.message(entry, message),
            Body::Linked(linked) if self.is_of(&linked.agent) => self.link(entry, linked),
            Body::Failed(failed) if self.is_of(&failed.agent) => self.extend_turn(entry.at),
            // A fork begins a session of the program's own.
            Body::Forked(_) => self.is_linked = false,
            _ => {}
        }
        if let Some(last) = self.messages.last_mut() {
            last.end = entry.head();
        }
    }

    /// Returns the end of the log.
    pub fn end(&self) -> Head {
        self.end
    }

    /// Returns the speaker under which the program's answers appear in the log, if tertulia ran it.
    pub fn speaker(&self) -> Option<Speaker> {
        match &self.provenance {
            Provenance::Export => None,
            Provenance::Run(agent) => {
                let known = self.speaker.clone();
                Some(known.unwrap_or_else(|| Speaker::plain(agent, SpeakerKind::Ai)))
            }
        }
    }

    fn is_of(&self, agent: &str) -> bool {
        matches!(&self.provenance, Provenance::Run(own) if own == agent)
    }

    fn message(&mut self, entry: &Entry, message: &Message) {
        let place = self.messages.len();
        let is_agent = message.speaker.kind == SpeakerKind::Ai;
        let is_own = match self.provenance {
            Provenance::Export => is_agent,
            Provenance::Run(_) => is_agent && self.is_of(&message.speaker.name),
        };
        let is_tool = message.role == Role::Tool;
        self.messages.push(KnownMessage {
            end: entry.head(),
            is_answer: is_own,
            words: hash_of(&message.content),
            prompt: (!is_agent && !is_tool).then(|| message.content.trim().to_owned()),
        });
        self.ids.insert(entry.id, place);
        // An export names its lines by the entries that they were made from.
        let exported = Foreign::entry_id(&self.program, &entry.id.to_string());
        self.ids.insert(exported, place);
        self.times.insert(entry.at, place);
        let usage = message.usage_id.clone();
        self.usage
            .insert(usage.unwrap_or_else(|| entry.id.to_string()), place);
        for request in &message.requests {
            self.usage.insert(request.clone(), place);
        }
        let calls = message.tool_calls.iter().map(|call| &call.id);
        for call in calls.chain(&message.tool_call_id) {
            self.calls.insert(call.clone(), place);
        }
        if is_own {
            self.speaker = Some(message.speaker.clone());
            self.begin_turn(entry.at);
        } else if !is_tool {
            self.prompt = Some((entry.at, place));
        }
        if is_own || is_tool {
            self.extend_turn(entry.at);
        }
    }

    fn link(&mut self, entry: &Entry, linked: &Linked) {
        self.is_linked = linked.native == self.native;
        self.begin_turn(entry.at);
    }

    /// Begins a turn with the last prompt, unless it has begun.
    fn begin_turn(&mut self, at: Timestamp) {
        if !self.is_linked {
            return;
        }
        let Some((prompted, last)) = self.prompt.take() else {
            return;
        };
        // Programs record milliseconds, which may seem to be before the prompt.
        let millisecond = SignedDuration::from_millis(1);
        let from = prompted.checked_sub(millisecond).unwrap_or(prompted);
        self.turns.push(Turn { from, to: at, last });
    }

    fn extend_turn(&mut self, at: Timestamp) {
        let last = self.messages.len().saturating_sub(1);
        if self.is_linked
            && self.prompt.is_none()
            && let Some(turn) = self.turns.last_mut()
        {
            turn.to = turn.to.max(at);
            turn.last = last;
        }
    }

    /// Returns where `session` continues the log, or `None` if they have nothing in common.
    pub fn compare(&self, session: &Foreign) -> Option<Continuation> {
        let places = self.places(session);
        let last = places.iter().rposition(Option::is_some);
        let Some(last) = last else {
            return self.nothing_shared();
        };
        // An answer in between that the log lacks was given while the program was used by itself.
        // A prompt in between may be in a form that only the program was given.
        let is_answer =
            |said: &Said| said.message.speaker.kind == SpeakerKind::Ai && has_words(&said.message);
        let lacks = (0..last).find(|at| places[*at].is_none() && is_answer(&session.said[*at]));
        let shared = match lacks {
            None => last + 1,
            Some(lacks) => {
                let before = places[..lacks].iter().rposition(Option::is_some);
                before.map_or(0, |before| before + 1)
            }
        };
        let Some(place) = places[..shared].iter().flatten().max() else {
            return self.nothing_shared();
        };
        Some(Continuation {
            shared,
            at: self.messages[*place].end,
            is_end: place + 1 == self.messages.len(),
        })
    }

    /// Returns where the log has the messages of `session` that it has.
    pub fn heads(&self, session: &Foreign) -> Vec<(EntryId, Head)> {
        let places = session.said.iter().zip(self.places(session));
        let known = places.filter_map(|(said, place)| Some((said.id, self.messages[place?].end)));
        known.collect()
    }

    fn places(&self, session: &Foreign) -> Vec<Option<usize>> {
        let mut next = 0;
        let places = session.said.iter().map(|said| {
            let place = self.place_of(said, next);
            next = place.map_or(next, |place| next.max(place + 1));
            place
        });
        places.collect()
    }

    /// Returns where a session goes on of which the log has no message. The answer to the first
    /// prompt of a program that tertulia ran may have been lost.
    fn nothing_shared(&self) -> Option<Continuation> {
        let first = self.turns.first()?;
        Some(Continuation {
            shared: 0,
            at: self.messages[first.last].end,
            is_end: first.last + 1 == self.messages.len(),
        })
    }

    /// Returns the place of a message of the program's session. Words alone are looked for from
    /// `next` on.
    fn place_of(&self, said: &Said, next: usize) -> Option<usize> {
        let message = &said.message;
        let usage = message.usage_id.as_ref();
        let calls = message.tool_calls.iter().map(|call| &call.id);
        let mut calls = calls.chain(&message.tool_call_id);
        let known = self.ids.get(&said.id);
        let known = known.or_else(|| self.usage.get(usage?));
        let known = known.or_else(|| calls.find_map(|call| self.calls.get(call)));
        let known = known.or_else(|| self.times.get(&said.at)).copied();
        let during = |turn: &&Turn| turn.from <= said.at && said.at <= turn.to;
        let known = known.or_else(|| Some(self.turns.iter().find(during)?.last));
        known.or_else(|| self.place_of_words(message, next))
    }

    /// Returns true if a text tells a program the conversation so far and then the prompt.
    fn is_handed_over(&self, text: &str, prompt: &str) -> bool {
        let before = text.trim_end().strip_suffix(prompt);
        let is_run = matches!(self.provenance, Provenance::Run(_));
        is_run && !prompt.is_empty() && before.is_some_and(|before| before.ends_with('\n'))
    }

    fn place_of_words(&self, message: &Message, next: usize) -> Option<usize> {
        if message.role == Role::Tool || message.content.trim().is_empty() {
            return None;
        }
        let redacted = redact(&message.content).text;
        let hashes = [hash_of(&message.content), hash_of(&redacted)];
        let is_same = |known: &KnownMessage| match (message.speaker.kind, &known.prompt) {
            (SpeakerKind::Ai, _) => known.is_answer && hashes.contains(&known.words),
            (SpeakerKind::Human, Some(prompt)) => {
                hashes.contains(&known.words) || self.is_handed_over(&redacted, prompt)
            }
            _ => false,
        };
        let rest = self.messages.get(next..)?;
        rest.iter().position(is_same).map(|place| next + place)
    }
}

/// Returns a text without white space: programs break paragraphs differently.
fn packed(text: &str) -> String {
    text.split_whitespace().collect()
}

fn hash_of(text: &str) -> Hash {
    Hash::of_text(&packed(text))
}
