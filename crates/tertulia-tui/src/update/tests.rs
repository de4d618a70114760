//! `update` and the view as a whole: keys and session events in, screens and effects out.

mod chance;
mod commands;
mod front;
mod keys;
mod notify;
mod once;
mod questions;
mod queued;
mod sentences;
mod shell;
mod switching;
mod talks;

use std::time::{Duration, Instant};

use ratatui::layout::Size;
use serde_json::json;
use tertulia_agents::AgentEvent;
use tertulia_agents::approval::{Risk, ToolRequest};
use tertulia_core::entry::{
    Body, Created, Entry, Head, Kind, Message, NewEntry, Role, Speaker, SpeakerKind, ToolCall,
    ToolOutcome, Usage,
};
use tertulia_core::id::{EntryId, Seq};
use tertulia_core::price::PriceTable;
use tertulia_core::session::SessionMeta;
use tertulia_engine::event::{SessionEnd, SessionEvent, SessionState};
use tertulia_store::UnsentMessage;

use crate::effect::{Effect, Event, Next, Now};
use crate::history::History;
use crate::item::Item;
use crate::live::{LiveCommand, LiveEvent};
use crate::picker;
use crate::search;
use crate::session_info::{Member, SessionInfo};
use crate::state::{Phase, State};
use crate::store_service::{Answer, Request};
use crate::test_support::{before, id, key, later, noon, screen, tick};
use crate::theme::{Palette, Theme};
use crate::transcript::{Loaded, Wanted};
use crate::update::{arrange, update};
use crate::view;

/// A TUI driven by a test: time passes only when the test says so.
struct Play {
    state: State,
    milliseconds: i64,
    began: Instant,
    head: Head,
    /// Number of messages created so far.
    made: u64,
    /// What waits in the session, and drafts.
    unsent: Vec<UnsentMessage>,
}

/// Snapshots of the screen in both sizes.
macro_rules! seen {
    ($name:literal, $play:expr) => {
        insta::assert_snapshot!(concat!($name, "_80"), $play.at((80, 24)));
        insta::assert_snapshot!(concat!($name, "_120"), $play.at((120, 40)));
        $play.at((80, 24));
    };
}
use seen;

fn info(kind: Kind) -> SessionInfo {
    let introduction = match kind {
        Kind::Chat => "demo answers, with demo-1.",
        Kind::Team => "The team design: Ann, Ben, Cleo and 多恵.",
        Kind::Pair => "boss instructs, hand works.",
    };
    SessionInfo {
        kind,
        id: id(1),
        introduction: introduction.to_owned(),
        agent: match kind {
            Kind::Chat => "demo",
            Kind::Team => "design",
            Kind::Pair => "pair",
        }
        .to_owned(),
        model: (kind == Kind::Chat).then(|| "demo-1".to_owned()),
        members: match kind {
            Kind::Team => vec![
                member("ann", "Ann", true),
                member("ben", "Ben", false),
                member("cleo", "Cleo", false),
                member("tae", "多恵", false),
            ],
            Kind::Chat | Kind::Pair => Vec::new(),
        },
        restored: None,
        earlier: None,
        is_remote: false,
        busy_since: None,
        ephemeral: false,
        follows: None,
        notify: kind == Kind::Pair,
        project: Some("git:github.com/ann/parser".into()),
        team_file: (kind == Kind::Team).then(|| "/teams/design.yaml".to_owned()),
        last: None,
        folder: "~/parser".to_owned(),
        prices: PriceTable::default(),
    }
}

fn member(name: &str, display_name: &str, is_human: bool) -> Member {
    Member {
        id: format!("m-{name}"),
        name: name.to_owned(),
        display_name: display_name.to_owned(),
        is_human,
        role: Some(if is_human { "lead" } else { "author" }.to_owned()),
        agent: (!is_human).then(|| "sage · claude-sonnet-4-5".to_owned()),
        colour: None,
    }
}

fn person() -> Speaker {
    Speaker::plain("You", SpeakerKind::Human)
}

fn agent(name: &str) -> Speaker {
    Speaker::plain(name, SpeakerKind::Ai)
}

fn call(number: u32, name: &str, arguments: serde_json::Value) -> ToolCall {
    ToolCall {
        id: format!("call-{number}"),
        name: name.to_owned(),
        arguments,
    }
}

fn message(speaker: Speaker, content: &str) -> Message {
    let role = match speaker.kind {
        SpeakerKind::Human => Role::User,
        SpeakerKind::Ai => Role::Assistant,
        SpeakerKind::System => Role::System,
        SpeakerKind::Tool => Role::Tool,
    };
    let usage = (role == Role::Assistant).then(|| Usage::told(1200, 340));
    Message {
        model: usage.map(|_| "demo-1".to_owned()),
        usage,
        usage_id: None,
        requests: Vec::new(),
        speaker,
        role,
        content: content.to_owned(),
        reasoning: None,
        thread: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        addressees: Vec::new(),
        asked: None,
        interrupted: false,
        outcome: None,
        attachments: Vec::new(),
        client_id: None,
        metadata: None,
    }
}

fn request() -> ToolRequest {
    ToolRequest {
        call: call(7, "file_edit", json!({ "path": "src/parser.rs" })),
        risk: Risk::Medium,
        preview: "--- src/parser.rs\n+++ src/parser.rs\n@@ -1,3 +1,3 @@\n fn parse() {\n\
            -    let line = read();\n+    let line = read().trim_end(); // 漢字\n }\n"
            .to_owned(),
        folder: "/home/ada/garden".to_owned(),
        key: "file_edit src/parser.rs".to_owned(),
        is_edit: false,
    }
}

/// A session with this many messages, one per entry.
fn meta(number: u64, messages: u64) -> SessionMeta {
    let mut meta = SessionMeta::blank(id(number));
    meta.title = Some("Fix the parser".to_owned());
    meta.messages = messages;
    meta.updated_at = before(90);
    meta.head.seq = Seq(messages);
    meta
}

impl Play {
    fn new(info: SessionInfo) -> Play {
        let history = History::new(["fix the parser", "why is it slow?"].map(str::to_owned));
        let theme = Theme::new(Palette::Plain);
        let head = match &info.restored {
            Some(meta) => meta.head,
            None => Head::START,
        };
        let mut play = Play {
            state: State {
                version: "1.2.3".to_owned(),
                ..State::new(info, history, Size::new(80, 24), theme)
            },
            milliseconds: 0,
            began: tick(),
            head,
            made: 0,
            unsent: Vec::new(),
        };
        play.event(Event::Tick);
        play
    }

    /// A chat session without messages.
    fn chat() -> Play {
        Play::open(info(Kind::Chat))
    }

    fn open(info: SessionInfo) -> Play {
        let mut play = Play::new(info);
        play.opened();
        play
    }

    /// A chat session with one question and answer.
    fn talked() -> Play {
        let mut play = Play::chat();
        play.turn("Why is it slow?", "Because of the **lock**.");
        play
    }

    /// A session whose agent was prompted and has not answered.
    fn asked() -> Play {
        let mut play = Play::talked();
        play.keys("go on<enter>");
        play.durable(message(person(), "go on"));
        play
    }

    fn now(&self) -> Now {
        let passed = Duration::from_millis(u64::try_from(self.milliseconds).unwrap());
        Now {
            at: later(self.milliseconds),
            tick: self.began + passed,
        }
    }

    fn wait(&mut self, milliseconds: i64) -> Vec<String> {
        self.milliseconds += milliseconds;
        self.event(Event::Tick)
    }

    /// Passes an event to `update` and describes the effects.
    fn event(&mut self, event: Event) -> Vec<String> {
        let effects = self.effects(event);
        let mut wanted: Vec<String> = effects.iter().map(words).collect();
        wanted.retain(|effect| {
            !["queue ", "edits ", "edited ", "withdraw"]
                .iter()
                .any(|name| effect.starts_with(name))
        });
        let changes = effects.iter().filter(|effect| self.session_hears(effect));
        if changes.count() > 0 {
            wanted.extend(self.tell_unsent());
        }
        wanted.extend(self.session_goes_on());
        // The agent of every resumed chat is checked; leave it out.
        wanted.retain(|effect| !effect.starts_with("check "));
        // What is typed is kept after every key; leave it out.
        wanted.retain(|effect| !effect.starts_with("draft "));
        wanted
    }

    /// Changes what waits in the session. Returns true if that has changed.
    fn session_hears(&mut self, effect: &Effect) -> bool {
        let Effect::Command(command) = effect else {
            return false;
        };
        match command {
            LiveCommand::Queue { client_id, text } => {
                let at = later(self.milliseconds);
                self.unsent.push(UnsentMessage {
                    is_queued: true,
                    ..UnsentMessage::typed(client_id.clone(), at, text.clone())
                });
            }
            LiveCommand::EditQueued {
                client_id,
                text: Some(text),
            } => {
                let mut unsent = self.unsent.iter_mut();
                let it = unsent.find(|message| message.client_id == *client_id);
                it.unwrap().text.clone_from(text);
            }
            LiveCommand::Withdraw { client_id } => {
                self.unsent
                    .retain(|message| message.client_id != *client_id);
            }
            _ => return false,
        }
        true
    }

    fn tell_unsent(&mut self) -> Vec<String> {
        self.live(LiveEvent::Session(SessionEvent::Unsent {
            messages: self.unsent.clone(),
            editing: None,
        }))
    }

    /// Lets the session begin the next turn, unless the next message is edited.
    fn session_goes_on(&mut self) -> Vec<String> {
        let is_free = self.state.phase == Phase::Open && self.state.is_free();
        let is_edited = self
            .state
            .ahead
            .edited()
            .is_some_and(|(place, _)| place == 1);
        if !is_free || is_edited || !self.unsent.iter().any(|message| message.is_queued) {
            return Vec::new();
        }
        let message = self.unsent.remove(0);
        let mut wanted = vec![format!("say {}", message.text)];
        wanted.extend(self.live(LiveEvent::Session(SessionEvent::Began)));
        wanted.extend(self.tell_unsent());
        wanted
    }

    fn effects(&mut self, event: Event) -> Vec<Effect> {
        let now = self.now();
        let mut effects = update(&mut self.state, event, now);
        effects.extend(arrange(&mut self.state, now));
        effects
    }

    fn live(&mut self, event: LiveEvent) -> Vec<String> {
        self.event(Event::Live(event))
    }

    fn answer(&mut self, answer: Answer) -> Vec<String> {
        self.event(Event::Answer(Box::new(answer)))
    }

    fn paste(&mut self, text: &str) -> Vec<String> {
        self.event(Event::Paste(text.to_owned()))
    }

    /// Presses keys: letters as they are, others as `<enter>` and `<^c>`.
    fn keys(&mut self, keys: &str) -> Vec<String> {
        let mut wanted = Vec::new();
        let mut rest = keys;
        while let Some(letter) = rest.chars().next() {
            let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
            let event = match named {
                Some((name, after)) => {
                    rest = after;
                    key(name)
                }
                None => {
                    rest = &rest[letter.len_utf8()..];
                    key(&letter.to_string())
                }
            };
            wanted.extend(self.event(Event::Key(event)));
        }
        // Completion is requested with every letter; leave it out.
        wanted.retain(|effect| effect != "complete");
        wanted
    }

    fn floor(&self) -> SessionState {
        SessionState {
            id: self.state.id,
            meta: self.state.meta.clone(),
            writer: "You".to_owned(),
            ..SessionState::blank(self.state.id)
        }
    }

    fn opened(&mut self) -> Vec<String> {
        let floor = self.floor();
        self.live(LiveEvent::Session(SessionEvent::Opened {
            floor: Box::new(floor),
        }))
    }

    fn over(&mut self) -> Vec<String> {
        let floor = self.floor();
        self.live(LiveEvent::Session(SessionEvent::Over {
            floor: Box::new(floor),
        }))
    }

    fn text(&mut self, text: &str) {
        self.live(LiveEvent::Session(SessionEvent::Text {
            text: text.to_owned(),
        }));
    }

    fn heard(&mut self, event: AgentEvent) {
        self.live(LiveEvent::Session(SessionEvent::Heard { event }));
    }

    fn durable(&mut self, message: Message) {
        if self.head == Head::START {
            self.entry(Body::Created(Created {
                session: id(1),
                kind: self.state.info.kind,
                title: None,
                team: None,
                project: Some("git:github.com/ann/parser".to_owned()),
                project_ids: Vec::new(),
                cwd: None,
                terms: None,
                seal: None,
            }));
        }
        self.entry(Body::Message(message));
    }

    fn entry(&mut self, body: Body) {
        self.made += 1;
        let id = format!("01936f5e-6c5a-7b3a-9d2f-{:012x}", self.made);
        let id: EntryId = id.parse().unwrap();
        let new_entry = NewEntry {
            id,
            at: before(10),
            body,
            redacted: Default::default(),
            author: None,
        };
        let entry = Entry::chain(&self.head, vec![new_entry]).unwrap().remove(0);
        self.head = entry.head();
        self.live(LiveEvent::Session(SessionEvent::durable(&entry)));
    }

    /// A question and its answer.
    fn turn(&mut self, words: &str, answer: &str) {
        self.paste(words);
        self.keys("<enter>");
        self.durable(message(person(), words));
        self.text(answer);
        self.durable(message(agent("demo"), answer));
        self.over();
    }

    /// The screen at a size.
    fn at(&mut self, (columns, lines): (u16, u16)) -> String {
        self.event(Event::Resize(Size::new(columns, lines)));
        self.seen()
    }

    fn seen(&self) -> String {
        let Size { width, height } = self.state.size;
        screen((width, height), |_, buffer| {
            view::screen::draw(&self.state, self.now().at, buffer)
        })
    }

    #[track_caller]
    fn sees(&self, text: &str) {
        let seen = self.seen();
        assert!(seen.contains(text), "no {text:?} in\n{seen}");
    }

    #[track_caller]
    fn sees_no(&self, text: &str) {
        let seen = self.seen();
        assert!(!seen.contains(text), "{text:?} is in\n{seen}");
    }

    /// Messages typed ahead, without one that is being edited.
    fn queued(&self) -> Vec<&str> {
        self.state.ahead.waiting().collect()
    }

    fn input(&self) -> String {
        self.state.input.text()
    }
}

/// Describes an effect.
fn words(effect: &Effect) -> String {
    match effect {
        Effect::Command(LiveCommand::Say(words)) => format!("say {words}"),
        Effect::Command(LiveCommand::Queue { text, .. }) => format!("queue {text}"),
        Effect::Command(LiveCommand::EditQueued {
            text: Some(text), ..
        }) => format!("edited {text}"),
        Effect::Command(LiveCommand::EditQueued { text: None, .. }) => "edits ".to_owned(),
        Effect::Command(LiveCommand::Withdraw { .. }) => "withdraw".to_owned(),
        Effect::Command(LiveCommand::KeepDraft(text)) => format!("draft {text}"),
        Effect::Command(LiveCommand::Run(command)) => format!("run {command}"),
        Effect::Command(LiveCommand::As(name)) => format!("as {name:?}"),
        Effect::Command(LiveCommand::Switch(spec)) => {
            format!("switch {:?} {:?}", spec.agent, spec.model)
        }
        Effect::Command(LiveCommand::Compact) => "compact".to_owned(),
        Effect::Command(LiveCommand::End) => "end".to_owned(),
        Effect::Command(LiveCommand::Leave) => "leave".to_owned(),
        Effect::Cancel => "cancel".to_owned(),
        Effect::Abort => "insist".to_owned(),
        Effect::Verdict(_, verdict) => format!("verdict {verdict:?}"),
        Effect::Permit(change) => format!("permit {change:?}"),
        Effect::Ask(request) => wish(request),
        Effect::Copy(text) => format!("copy {text}"),
        Effect::Ring => "ring".to_owned(),
        Effect::Desktop(text) => format!("desktop {text}"),
        Effect::RunNotify(message) => format!("notify {message}"),
        Effect::Edit(text) => format!("edit {text}"),
        Effect::Redraw => "redraw".to_owned(),
        Effect::Suspend => "suspend".to_owned(),
    }
}

/// Describes a request to the store service.
fn wish(request: &Request) -> String {
    match request {
        Request::Transcript { wanted, .. } => format!("load {wanted:?}"),
        Request::Scan { scan, .. } => format!("scan up to {}", scan.upto),
        Request::Picker(_, picker::Wanted::Page { .. }) => "list".to_owned(),
        Request::Picker(_, picker::Wanted::Search(_)) => "look for it".to_owned(),
        Request::Picker(_, picker::Wanted::Preview { .. }) => "preview".to_owned(),
        Request::Search(_, search::Wanted::Search(_)) => "search".to_owned(),
        Request::Search(_, search::Wanted::Around { .. }) => "around".to_owned(),
        Request::Rewind(..) => "moments".to_owned(),
        Request::Words(_, seq) => format!("words {}", seq.0),
        Request::Tree(_) => "tree".to_owned(),
        Request::Stats(_) => "stats".to_owned(),
        Request::Bill(_, upto) => format!("bill {upto}"),
        Request::Complete(..) => "complete".to_owned(),
        Request::Rename(_, title) => format!("rename {title}"),
        Request::Tag { add, remove, .. } => format!("tag +{add:?} -{remove:?}"),
        Request::Trash(id) => format!("trash {}", id.short()),
        Request::Undo => "undo".to_owned(),
        Request::Fork(_, at) => format!("fork {:?}", at.map(|seq| seq.0)),
        Request::Find(text) => format!("find {text}"),
        Request::Export { format, file, .. } => format!("export {format:?} {file:?}"),
        Request::Compare { with, .. } => format!("compare {with}"),
        Request::Agents(None) => "agents".to_owned(),
        Request::Agents(Some(name)) => format!("is {name} ready"),
        Request::CheckAgent(name) => format!("check {name}"),
        Request::Models { agent, check: None } => format!("models of {agent}"),
        Request::Models {
            check: Some(name), ..
        } => format!("is {name} a model"),
        Request::Teams => "teams".to_owned(),
        Request::Remember(words) => format!("remember {words}"),
    }
}

/// Ticket of the last request of this kind.
fn ticket(effects: &[Effect], kind: &str) -> u64 {
    let mut tickets = effects.iter().filter_map(|effect| match effect {
        Effect::Ask(request) if wish(request) == kind => match **request {
            Request::Picker(ticket, _)
            | Request::Search(ticket, _)
            | Request::Rewind(_, ticket, _) => Some(ticket),
            _ => None,
        },
        _ => None,
    });
    tickets.next_back().unwrap_or_else(|| panic!("no {kind}"))
}

fn gone() -> LiveEvent {
    LiveEvent::Gone(SessionEnd::default())
}

/// Answers a transcript request with these items.
fn loaded(wanted: Wanted, items: Vec<Item>) -> Answer {
    Answer::Transcript {
        session: id(1),
        wanted,
        loaded: Ok(Loaded {
            wanted,
            items,
            more_before: false,
            more_after: false,
        }),
    }
}
