//! Renders the entries of a session. Tool results stand with their calls, reasoning with its
//! answer.

use std::collections::HashMap;

use tertulia_core::entry::{
    Body, Entry, Kind, Message, Role, ShellOutput, SpeakerKind, ToolCall, ToolOutcome, Usage,
};
use tertulia_core::session::{Log, SessionMeta};
use tertulia_core::team::markers;

use super::code::Painter;
use super::markdown::{self, Lines};
use super::{Clock, Prompt, arguments, escape, grouped, shortened};

/// The rendered entries, and the prompts among them.
pub(super) struct Rendered {
    pub(super) html: String,
    pub(super) prompts: Vec<Prompt>,
}

/// Where entries are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On an exported page, which has all of them.
    Export,
    /// On the web page, which has a part of them, each in one `article`.
    Web,
}

/// An entry with the entries that are shown with it.
pub(super) struct Piece {
    /// Sequence number of the entry.
    pub(super) seq: u64,
    /// Largest sequence number among all of them.
    pub(super) last: u64,
    pub(super) html: String,
}

/// Renders all entries for an exported page.
pub(super) fn render(meta: &SessionMeta, log: &Log, clock: Clock<'_>) -> Rendered {
    let mut page = Page::new(meta.kind, log, clock, Place::Export);
    let html = page.pieces(log).into_iter().map(|piece| piece.html);
    Rendered {
        html: html.collect(),
        prompts: page.prompts,
    }
}

/// Renders the entries of a part of a log for the web page.
pub(super) fn fragments(kind: Kind, log: &Log, clock: Clock<'_>) -> Vec<Piece> {
    let mut pieces = Page::new(kind, log, clock, Place::Web).pieces(log);
    pieces.retain(|piece| !piece.html.is_empty());
    pieces
}

/// Returns the results by the place of the message that has the call, and the id of the call. An id
/// may occur again later: a result belongs to the last call before it.
fn results(log: &Log) -> Results<'_> {
    let mut calls: HashMap<&str, u64> = HashMap::new();
    let mut results = Results::default();
    for (entry, message) in log.messages() {
        for call in &message.tool_calls {
            calls.insert(&call.id, entry.seq.0);
        }
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        if message.tool_outcome().is_some()
            && let Some(seq) = calls.remove(id)
        {
            results.by_call.insert((seq, id), (entry, message));
            results.placed.insert(entry.seq.0, ());
        }
    }
    results
}

#[derive(Default)]
struct Results<'a> {
    by_call: HashMap<(u64, &'a str), (&'a Entry, &'a Message)>,
    /// Sequence numbers of the results that stand with their calls.
    placed: HashMap<u64, ()>,
}

impl Results<'_> {
    /// Returns the last entry that is shown with a message: 0 without results.
    fn last_of(&self, seq: u64, message: &Message) -> u64 {
        let calls = message.tool_calls.iter();
        let results = calls.filter_map(|call| self.by_call.get(&(seq, call.id.as_str())));
        results.map(|(entry, _)| entry.seq.0).max().unwrap_or(0)
    }
}

struct Page<'a> {
    kind: Kind,
    clock: Clock<'a>,
    place: Place,
    painter: Painter,
    results: Results<'a>,
    html: String,
    prompts: Vec<Prompt>,
}

impl<'a> Page<'a> {
    fn new(kind: Kind, log: &'a Log, clock: Clock<'a>, place: Place) -> Page<'a> {
        Page {
            kind,
            clock,
            place,
            painter: match place {
                Place::Export => Painter::new(),
                Place::Web => Painter::without_styles(),
            },
            results: results(log),
            html: String::new(),
            prompts: Vec::new(),
        }
    }

    fn pieces(&mut self, log: &'a Log) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut entries = log.entries.iter().peekable();
        while let Some(entry) = entries.next() {
            let mut last = entry.seq.0;
            match &entry.body {
                Body::Message(message) => {
                    let mut thoughts = Vec::new();
                    if let Some(reasoning) = &message.reasoning {
                        thoughts.push((0, reasoning.as_str()));
                    }
                    // Earlier versions recorded it as an entry after the answer.
                    while let Some(Body::Thought(thought)) = entries.peek().map(|next| &next.body) {
                        if message.role != Role::Assistant {
                            break;
                        }
                        last = entries.next().map_or(last, |next| next.seq.0);
                        thoughts.push((last, thought.text.as_str()));
                    }
                    last = last.max(self.results.last_of(entry.seq.0, message));
                    self.message(entry, message, &thoughts);
                }
                Body::Thought(thought) => {
                    let seq = self.outer_id(entry);
                    self.thoughts(&[(seq, thought.text.as_str())]);
                }
                Body::Shell(shell) => {
                    let ended = entries.peek().map(|next| &next.body);
                    let output = match ended {
                        Some(Body::ShellOutput(output)) if output.run == shell.run => Some(output),
                        _ => None,
                    };
                    self.command(entry, &shell.command, output);
                    if output.is_some() {
                        last = entries.next().map_or(last, |next| next.seq.0);
                    }
                }
                Body::ShellOutput(output) => self.command(entry, "", Some(output)),
                body => self.notice(entry, body),
            }
            pieces.push(Piece {
                seq: entry.seq.0,
                last,
                html: self.framed(entry),
            });
        }
        pieces
    }

    /// Takes what was rendered of an entry. On the web page an entry is one `article`.
    fn framed(&mut self, entry: &Entry) -> String {
        let html = std::mem::take(&mut self.html);
        if self.place == Place::Export || html.is_empty() || html.starts_with("<article") {
            return html;
        }
        let (seq, kind) = (entry.seq, entry.body.kind());
        let kind = escape(kind);
        format!("<article class=\"entry {kind}\" id=\"e{seq}\">\n{html}</article>\n")
    }

    /// Returns the number that the outermost element of an entry has as its id: none on the web page,
    /// where its `article` has it.
    fn outer_id(&self, entry: &Entry) -> u64 {
        match self.place {
            Place::Export => entry.seq.0,
            Place::Web => 0,
        }
    }

    fn message(&mut self, entry: &Entry, message: &Message, thoughts: &[(u64, &str)]) {
        if self.results.placed.contains_key(&entry.seq.0) {
            return;
        }
        let text = match self.kind {
            Kind::Team => markers::shown(&message.content),
            Kind::Chat | Kind::Pair => message.content.clone(),
        };
        if let Some(outcome) = message.tool_outcome() {
            let name = &message.speaker.name;
            let where_its_call_is = match self.place {
                Place::Export => "its call is not in this export",
                Place::Web => "its call is not known",
            };
            let opened = folded(self.outer_id(entry), Some(outcome), name, where_its_call_is);
            let output = self.painter.block("", &text);
            self.html.push_str(&format!("{opened}{output}</details>\n"));
            return;
        }
        let is_passed_on = message.role == Role::User && message.speaker.kind == SpeakerKind::Ai;
        let class = match message.speaker.kind {
            SpeakerKind::Human => "human",
            SpeakerKind::Ai if is_passed_on => "passed",
            SpeakerKind::Ai => "agent",
            SpeakerKind::System | SpeakerKind::Tool => "system",
        };
        if class == "human" {
            self.prompts.push(Prompt {
                seq: entry.seq.0,
                text: text.clone(),
            });
        }
        let about = self.about(entry, message);
        let attributes = match self.place {
            Place::Export => format!("id=\"e{}\" class=\"{class}\"", entry.seq),
            Place::Web => format!("class=\"entry {class}\" id=\"e{}\"", entry.seq),
        };
        self.html.push_str(&format!(
            "<article {attributes}>\n<header>{about}</header>\n"
        ));
        self.thoughts(thoughts);
        if !text.trim().is_empty() {
            let lines = match class {
                "human" => Lines::Keep,
                _ => Lines::Flow,
            };
            let rendered = markdown::render(&text, lines, &mut self.painter);
            self.html
                .push_str(&format!("<div class=\"text\">\n{rendered}</div>\n"));
        }
        for file in &message.attachments {
            let about = format!("{}, {} bytes", escape(&file.path), grouped(file.bytes));
            let content = self.painter.block("", &file.marked());
            self.html.push_str(&format!(
                "<details class=\"thought\"><summary>Attached {about}</summary>\n{content}</details>\n"
            ));
        }
        for call in &message.tool_calls {
            self.call(entry, call);
        }
        if message.interrupted {
            self.html
                .push_str("<p class=\"notice\">interrupted before its end</p>\n");
        }
        self.html.push_str("</article>\n");
    }

    /// Returns the line above a message: who, when, to whom, with what.
    fn about(&self, entry: &Entry, message: &Message) -> String {
        let mut facts = vec![self.clock.time(entry.at)];
        if !message.addressees.is_empty() {
            let names = message.addressees.iter();
            let names: Vec<&str> = names.map(|one| one.identifier.as_str()).collect();
            facts.push(format!("to {}", escape(&names.join(", "))));
        }
        if let Some(thread) = message
            .thread
            .as_deref()
            .filter(|_| self.kind == Kind::Pair)
        {
            facts.push(format!("{}’s thread", escape(thread)));
        }
        facts.extend(message.model.as_deref().map(escape));
        facts.extend(message.usage.map(tokens));
        format!(
            "<strong>{}</strong> <span class=\"facts\">{}</span>{}",
            escape(&message.speaker.display_name),
            facts.join(" · "),
            anchor(entry.seq.0)
        )
    }

    fn thoughts(&mut self, thoughts: &[(u64, &str)]) {
        for (seq, text) in thoughts {
            let rendered = markdown::render(text, Lines::Keep, &mut self.painter);
            self.html.push_str(&format!(
                "<details{} class=\"thought\"><summary>Reasoning</summary>\n\
                 <div class=\"text\">{rendered}</div></details>\n",
                id(*seq)
            ));
        }
    }

    fn call(&mut self, entry: &Entry, call: &ToolCall) {
        let key = (entry.seq.0, call.id.as_str());
        let result = self.results.by_call.get(&key).copied();
        let outcome = result.and_then(|(_, message)| message.tool_outcome());
        let seq = result.map_or(0, |(entry, _)| entry.seq.0);
        let short = arguments::summary(&call.arguments);
        let mut text = folded(seq, outcome, &call.name, &short);
        text.push_str(&arguments::render(&call.arguments, &mut self.painter));
        text.push_str(&match result {
            Some((entry, message)) => format!(
                "<p class=\"facts\">{} · {}{}</p>\n{}",
                outcome.map_or("result", ToolOutcome::name),
                self.clock.time(entry.at),
                anchor(entry.seq.0),
                self.painter.block("", &message.content)
            ),
            None => "<p class=\"facts\">no result was recorded</p>\n".to_owned(),
        });
        text.push_str("</details>\n");
        self.html.push_str(&text);
    }

    /// A shell command of the user, folded.
    fn command(&mut self, entry: &Entry, command: &str, output: Option<&ShellOutput>) {
        let outcome = output.map(|output| output.outcome);
        let opened = folded(self.outer_id(entry), outcome, "!", command);
        let text = output.map(ShellOutput::text).unwrap_or_default();
        let printed = self.painter.block("", &text);
        self.html
            .push_str(&format!("{opened}{printed}</details>\n"));
    }

    fn notice(&mut self, entry: &Entry, body: &Body) {
        let (class, text) = notice(body);
        if text.is_empty() {
            return;
        }
        let more = match body {
            Body::Compacted(compacted) => format!(
                "<details class=\"thought\"><summary>Summary</summary>\n<div class=\"text\">{}</div></details>",
                markdown::render(&compacted.summary, Lines::Flow, &mut self.painter)
            ),
            _ => String::new(),
        };
        self.html.push_str(&format!(
            "<div{} class=\"{class}\"><p>{} <span class=\"facts\">{}</span>{}</p>{more}</div>\n",
            id(self.outer_id(entry)),
            escape(&shortened(&text, 400)),
            self.clock.time(entry.at),
            anchor(entry.seq.0)
        ));
    }
}

/// Returns the class and the text of an entry that is no message; an empty text for those that the
/// heading of the page already tells.
fn notice(body: &Body) -> (&'static str, String) {
    let text = match body {
        Body::Failed(failed) if failed.withdrawn => {
            format!("{}: stopped before an answer", failed.agent)
        }
        Body::Failed(failed) => return ("notice error", failed.to_string()),
        Body::Lost(lost) => {
            return (
                "notice error",
                format!("An entry is lost here: {}", lost.reason),
            );
        }
        Body::Repaired(_) => return ("notice error", "The log was repaired here".to_owned()),
        Body::Compacted(compacted) => format!(
            "{} summarised the entries up to {}",
            compacted.agent, compacted.upto
        ),
        Body::Tasked(tasked) => format!("Task: {}", tasked.task),
        Body::Renamed(renamed) => format!("Renamed: {}", renamed.title),
        Body::Tagged(tagged) => {
            let add = tagged.add.iter().map(|tag| format!("+{tag}"));
            let remove = tagged.remove.iter().map(|tag| format!("-{tag}"));
            let tags: Vec<String> = add.chain(remove).collect();
            format!("Tagged: {}", tags.join(" "))
        }
        Body::Trashed(_) => "Moved to the trash".to_owned(),
        Body::Restored(_) => "Restored from the trash".to_owned(),
        Body::Undone(undone) => format!("Undid the change of entry {}", undone.change),
        Body::Forked(forked) => {
            format!("Continues session {}:{}", forked.from.id, forked.from.seq)
        }
        Body::Imported(imported) => {
            format!("Imported from {} {}", imported.program, imported.original)
        }
        Body::Merged(merged) => {
            format!("Merged from {} and {}", merged.ours.id, merged.theirs.id)
        }
        Body::Replayed(replayed) => format!("Replay of {}", replayed.of.id),
        Body::Linked(linked) => format!("{} keeps its own session {}", linked.agent, linked.native),
        Body::Switched(switched) => switched.to_string(),
        Body::Terms(terms) => terms.to_string(),
        Body::Keyed(_) => "Who can read the session changed".to_owned(),
        Body::Sealed(sealed) => format!("Sealed entry of type {}", sealed.of),
        Body::Unknown(kind) => format!("Entry of type {kind}, which this version does not know"),
        Body::Created(_)
        | Body::Message(_)
        | Body::Thought(_)
        | Body::Shell(_)
        | Body::ShellOutput(_)
        | Body::Seated(_)
        | Body::Paired(_)
        | Body::Environment(_)
        | Body::Budgeted(_) => String::new(),
    };
    ("notice", text)
}

/// Returns the beginning of a folded tool call or result.
fn folded(seq: u64, outcome: Option<ToolOutcome>, name: &str, summary: &str) -> String {
    let id = id(seq);
    let (class, sign) = match outcome {
        Some(outcome) => (outcome.name(), outcome.sign()),
        None => ("interrupted", "…"),
    };
    format!(
        "<details{id} class=\"tool {class}\"><summary><span class=\"sign\">{sign}</span> \
         <b>{}</b> <code>{}</code></summary>\n",
        escape(name),
        escape(summary)
    )
}

/// Returns the attribute of an element that has an entry; 0 is none.
fn id(seq: u64) -> String {
    match seq {
        0 => String::new(),
        seq => format!(" id=\"e{seq}\""),
    }
}

fn anchor(seq: u64) -> String {
    format!(" <a class=\"anchor\" href=\"#e{seq}\">#{seq}</a>")
}

fn tokens(usage: Usage) -> String {
    let about = if usage.estimated { "≈" } else { "" };
    let cached = match usage.cache_read {
        0 => String::new(),
        cached => format!(" ({} cached)", grouped(cached)),
    };
    format!(
        "{about}{} in{cached}, {about}{} out",
        grouped(usage.input),
        grouped(usage.output)
    )
}
