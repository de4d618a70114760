//! Applies events of the live session to the state.

use tertulia_agents::approval::Verdict;
use tertulia_agents::{AgentError, AgentEvent};
use tertulia_core::entry::{Body, Entry, Kind, Message, Role, Speaker, SpeakerKind};
use tertulia_core::session::SessionMeta;
use tertulia_engine::event::{SessionEvent, SessionState};
use tertulia_engine::notice::{COMPACTED, COMPACTING};
use tertulia_engine::pair::{PairEvent, text};
use tertulia_engine::team::events::Output;
use tertulia_engine::text::routing as routed;
use tertulia_engine::text::tools;

use super::{ask, begin, held, notify, queued};
use crate::activity::Doing;
use crate::dialog::subject::{Earlier, Permission, Subject};
use crate::effect::{Effect, Now};
use crate::entries;
use crate::item::{Item, Said, Tone, What};
use crate::live::LiveEvent;
use crate::queue::Queue;
use crate::state::{Layer, Phase, State};
use crate::store_service::Request;
use crate::toast::Until;

/// Approximate bytes per token.
const LETTERS: usize = 4;

/// Applies an event of the live session.
pub fn apply(state: &mut State, event: LiveEvent, now: Now) -> Vec<Effect> {
    match event {
        LiveEvent::Session(event) => return session_event(state, event, now),
        LiveEvent::NotOpened(error) => state.broken = Some(*error),
        LiveEvent::Refused => rest(state),
        LiveEvent::Holder(holder) => held::held_by(state, holder, now),
        LiveEvent::TakenOver => return held::taken_over(state),
        LiveEvent::Rested(words) => {
            rest(state);
            // A server forgets permissions when it closes an idle session.
            state.permissions = State::asking();
            if !words.is_empty() {
                notice(state, Tone::Note, words, now);
            }
        }
        // Another client may still answer for a session on a server.
        LiveEvent::Permission(..) if state.is_leaving() && state.info.is_remote => {}
        // A user who is leaving answers no more requests: deny.
        LiveEvent::Permission(ticket, _) if state.is_leaving() => {
            return vec![Effect::Verdict(ticket, Verdict::No)];
        }
        LiveEvent::Permission(ticket, request) => {
            drop_approvals(state);
            let who = match &state.running {
                Some(running) => running.who.display_name.clone(),
                None => state.info.agent.clone(),
            };
            if let Some(running) = &mut state.running {
                running.tool = tools::wish(&request);
                running.then = running.doing.clone();
            }
            doing(state, Doing::Waiting);
            let preview = request.preview.clone();
            let calls = &state.calls;
            let place = calls.iter().position(|id| *id == request.call.id);
            let place = place.filter(|_| calls.len() > 1);
            let asked = Permission {
                ticket,
                place: place.map(|place| (place + 1, calls.len())),
                request: *request,
                who,
            };
            ask(state, Subject::Permission(Box::new(asked)), now);
            return notify::asked(state, &preview);
        }
        LiveEvent::Gone(end) => {
            state.phase = Phase::Gone;
            state.farewell = end;
        }
    }
    Vec::new()
}

/// Applies an event of the session.
fn session_event(state: &mut State, event: SessionEvent, now: Now) -> Vec<Effect> {
    match event {
        SessionEvent::Opened { floor } => return opened(state, *floor, now),
        SessionEvent::Over { floor } => return over(state, *floor, now),
        SessionEvent::Began => {
            if !state.is_running() {
                begin(state, Doing::Thinking, now);
            }
        }
        SessionEvent::Settled { .. } => settled(state),
        SessionEvent::Moved { to } => state.id = to,
        SessionEvent::Text { text } => spoken(state, &text, now),
        SessionEvent::Thought { text } => {
            doing(state, Doing::Thinking);
            state.transcript.think(&text);
        }
        SessionEvent::Printed { text } => state.transcript.printed(&text),
        SessionEvent::Heard { event } => apply_agent_event(state, event, now),
        SessionEvent::Durable { .. } => {
            if let Some(entry) = event.entry() {
                durable(state, &entry);
            }
        }
        SessionEvent::Held { message } => {
            state.held += 1;
            said(state, &message, None);
        }
        SessionEvent::Asked { speaker } => asked(state, speaker, now),
        SessionEvent::Failed { speaker, error } => failed(state, &speaker, &error, now),
        SessionEvent::Routed { output } => routed(state, &output, now),
        SessionEvent::Pair { event } => paired(state, &event, now),
        // The activity line shows it, and the transcript the summary.
        SessionEvent::Notice { text, .. } if text.starts_with(COMPACTING) => {
            doing(state, Doing::SummingUp);
        }
        SessionEvent::Notice { text, .. } if text == COMPACTED => doing(state, Doing::Thinking),
        SessionEvent::Notice { tone, text, .. } => {
            if let Some(running) = &mut state.running {
                running.refused |= tone == Tone::Error && running.unheard.is_some();
            }
            notice(state, tone, text, now);
        }
        SessionEvent::Permissions { state: permissions } => state.permissions = permissions,
        SessionEvent::Unsent { messages, .. } => queued::unsent(state, messages, now),
        SessionEvent::Withdrawn {
            client_id,
            text,
            reason,
        } => queued::withdrawn(state, &client_id, &text, reason, now),
        // The session's owner turns these into events of their own.
        SessionEvent::Started { .. }
        | SessionEvent::NotOpened { .. }
        | SessionEvent::MayI { .. }
        | SessionEvent::Gone { .. } => {}
    }
    Vec::new()
}

/// Marks the session as idle.
fn rest(state: &mut State) {
    state.running = None;
    state.is_switching = false;
    state.activity.end();
    settled(state);
}

/// Closes a permission dialog that was answered elsewhere.
fn settled(state: &mut State) {
    drop_approvals(state);
    if let Some(running) = &mut state.running {
        running.doing.clone_from(&running.then);
        state.activity.does(running.then.clone());
    }
}

fn opened(state: &mut State, floor: SessionState, now: Now) -> Vec<Effect> {
    if std::mem::replace(&mut state.has_begun, true) {
        // A server reopened the session because it received a message.
        apply_state(state, floor);
        return Vec::new();
    }
    if state.phase == Phase::Opening {
        state.phase = Phase::Open;
    }
    if let Some(restored) = &mut state.info.restored {
        // A truncated answer has been saved as a message by now.
        if let Some(meta) = &floor.meta {
            restored.messages = meta.messages;
        }
        let messages = restored.messages;
        let what = What::Restored { messages };
        if messages > 0 {
            state.transcript.push(Item { seq: None, what });
        } else {
            state.info.restored = None;
        }
    }
    let unfinished = floor.unfinished.clone();
    apply_state(state, floor);
    if state.is_leaving() {
        return Vec::new();
    }
    if state
        .info
        .follows
        .as_ref()
        .is_some_and(|follows| follows.asks)
    {
        held::ask(state, now);
    }
    if let Some(earlier) = state.info.earlier.take() {
        let earlier = Box::new(Earlier::new(&earlier.meta));
        ask(state, Subject::Restore(earlier), now);
        state.is_undecided = true;
    }
    let restored = state.info.restored.as_ref();
    let counts = restored.filter(|_| state.bill.is_unread());
    let counts = counts.map(|restored| restored.head.seq);
    let is_free = state.ahead.is_empty() && !state.is_running();
    match unfinished.filter(|_| is_free) {
        Some(work) if work.is_spent => notice(state, Tone::Note, work.text, now),
        Some(work) => {
            let subject = Subject::Unfinished {
                question: work.question,
                detail: work.text,
            };
            ask(state, subject, now);
        }
        None => {}
    }
    let mut effects = queued::go_on(state, now);
    effects.extend(check_agent(state));
    if let Some(upto) = counts {
        effects.push(Effect::Ask(Box::new(Request::Bill(state.id, upto))));
    }
    effects
}

/// Returns the request to check the agent of a resumed chat: whether it is available should be known
/// before the first message.
fn check_agent(state: &State) -> Option<Effect> {
    let info = &state.info;
    let is_resumed = info.restored.is_some() && !info.is_remote && info.follows.is_none();
    let is_chat = info.kind == Kind::Chat;
    let request = || Effect::Ask(Box::new(Request::CheckAgent(info.agent.clone())));
    (is_resumed && is_chat).then(request)
}

/// Applies the state of the session between turns.
fn apply_state(state: &mut State, floor: SessionState) {
    if state.id != floor.id {
        state.id = floor.id;
    }
    let known = state.meta.as_ref().map(|meta| meta.head.seq);
    if !floor.introduction.is_empty() {
        state.info.introduction = floor.introduction;
    }
    // Without a change, the model may be known only from the agent's events.
    let switched = floor.agent.is_some_and(|agent| {
        let switched = agent != state.info.agent;
        state.info.agent = agent;
        switched
    });
    if switched {
        state.is_unavailable = false;
    }
    if switched || floor.model.is_some() {
        state.info.model = floor.model;
    }
    if floor
        .meta
        .as_ref()
        .is_some_and(|meta| Some(meta.head.seq) >= known)
    {
        state.meta = floor.meta;
    }
    state.input.set_label(&format!("{}>", floor.writer));
    state.context = floor.context;
    state.folder = floor.folder;
    state.is_elsewhere = floor.is_elsewhere;
    state.queue = Queue::new(floor.waiting);
    state.failed = floor.failed;
    if !floor.unsaved {
        state.held = 0;
    }
}

fn over(state: &mut State, floor: SessionState, now: Now) -> Vec<Effect> {
    let running = state.running.take();
    let stopped = running.as_ref().is_some_and(|running| running.stopped);
    let refused = running.as_ref().filter(|running| running.refused);
    let unheard = refused.and_then(|running| running.unheard.clone());
    state.is_switching = false;
    state.toasts.end(Until::Turn);
    state.info.busy_since = None;
    state.activity.end();
    state.transcript.settle();
    drop_approvals(state);
    // The time of a pair stands still until its work goes on.
    if let Some((progress, at)) = &mut state.progress {
        progress.elapsed += now.at.duration_since(*at);
        *at = now.at;
    }
    apply_state(state, floor);
    if stopped {
        state.toasts.push(Tone::Note, "stopped", now.at);
        super::take_back(state);
    }
    if let Some(words) = unheard {
        // The prompt was refused: it can be corrected.
        state.ahead.put_first(words);
        super::take_back(state);
    }
    notify::ended(state, running.as_ref(), now)
}

/// Closes permission questions whose agent no longer waits. Words that were being written in one go
/// to the input.
fn drop_approvals(state: &mut State) {
    let is_permission = |subject: &Subject| matches!(subject, Subject::Permission(_));
    let mut questions = state.overlays.iter().filter_map(Layer::question);
    let words = questions.find_map(|question| question.instead());
    let words = words.map(|instead| instead.text().to_owned());
    state.drop_questions(is_permission);
    if let Some(words) = words.filter(|words| !words.is_empty()) {
        let text = match state.input.text() {
            text if text.is_empty() => words,
            text => format!("{text}\n{words}"),
        };
        state.input.set_text(&text);
    }
}

fn doing(state: &mut State, doing: Doing) {
    if let Some(running) = &mut state.running {
        running.doing.clone_from(&doing);
        state.activity.does(doing);
    }
}

/// Records which agent of several is prompted.
fn asked(state: &mut State, speaker: Speaker, now: Now) {
    drop_approvals(state);
    if let Some(running) = &mut state.running {
        let since = state.info.busy_since.take().unwrap_or(now.at);
        state.activity.begin(&speaker.display_name, since);
        running.who = speaker;
        running.since = since;
        running.letters = 0;
        running.doing = Doing::Thinking;
    }
}

/// Appends streamed text.
fn spoken(state: &mut State, text: &str, now: Now) {
    if text.is_empty() {
        return;
    }
    doing(state, Doing::Speaking);
    let speaker = match &mut state.running {
        Some(running) => {
            running.letters += text.len();
            state.activity.wrote((running.letters / LETTERS) as u64);
            running.who.clone()
        }
        None => state.info.speaker(),
    };
    if state.transcript.stream(text) {
        return;
    }
    state.transcript.push(Item {
        seq: None,
        what: What::Said(Said {
            speaker,
            to: Vec::new(),
            at: Some(now.at),
            model: None,
            text: text.to_owned(),
            interrupted: false,
            streaming: true,
        }),
    });
}

/// Handles agent events other than text.
fn apply_agent_event(state: &mut State, event: AgentEvent, now: Now) {
    match event {
        AgentEvent::ToolStarted(call) => {
            let (verb, object) = tools::heading(&call);
            doing(state, Doing::using(&verb, &object));
        }
        AgentEvent::ToolOutput { id, tail } => state.transcript.show_output(&id, tail),
        AgentEvent::ToolCompleted { .. } => doing(state, Doing::Thinking),
        AgentEvent::Todos(todos) => state.todos.take(&todos),
        AgentEvent::Model(model) => state.info.model = Some(model),
        AgentEvent::Retrying(retry) => doing(state, Doing::retrying(&retry, now.at)),
        AgentEvent::Remark(text) => notice(state, Tone::Warning, text, now),
        AgentEvent::Text(_)
        | AgentEvent::Reasoning(_)
        | AgentEvent::Usage(_)
        | AgentEvent::Requests(_)
        | AgentEvent::Session(_)
        | AgentEvent::Unknown(_) => {}
    }
}

fn durable(state: &mut State, entry: &Entry) {
    if let Some(running) = &mut state.running {
        running.unheard = None;
    }
    let id = state.id;
    let meta = state.meta.get_or_insert_with(|| SessionMeta::blank(id));
    if entry.seq <= meta.head.seq {
        // The log was read after subscribing to events and already contained this entry.
        return;
    }
    meta.apply(entry);
    state.bill.count(entry, &state.info.prices);
    let message = entry.message();
    if message.is_some() && state.held > 0 {
        // It was already shown when it was held in memory.
        state.held -= 1;
        return;
    }
    match (message, &entry.body) {
        (Some(message), _) => said(state, message, Some(entry)),
        (None, Body::ShellOutput(shell)) => {
            let run = shell.run.to_string();
            let text = shell.text();
            if !state.transcript.used(&run, &text, shell.outcome) {
                state.transcript.keep_output(&run, &text, shell.outcome);
            }
        }
        (None, _) => {
            for item in entries::items(std::slice::from_ref(entry), state.info.kind) {
                match item.what {
                    What::Thought { .. } => state.transcript.thought(item),
                    _ => state.transcript.push(item),
                }
            }
        }
    }
}

/// Shows a message, replacing its streamed text.
fn said(state: &mut State, message: &Message, entry: Option<&Entry>) {
    if let Some(running) = &mut state.running {
        running.unheard = None;
    }
    if let (Some(outcome), Some(call)) = (message.tool_outcome(), &message.tool_call_id)
        && (state.transcript.used(call, &message.content, outcome)
            || state.transcript.has_more_before())
    {
        // A call that is not loaded yet comes with its result.
        return;
    }
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter();
        state.calls = calls.map(|call| call.id.clone()).collect();
    }
    let items = entries::of_message(message, state.info.kind, entry);
    let answers = message.speaker.kind == SpeakerKind::Ai && message.role != Role::Tool;
    for item in items {
        if matches!(item.what, What::Thought { .. }) {
            state.transcript.thought(item);
            continue;
        }
        let replaces = answers && matches!(item.what, What::Said(_));
        match replaces && state.transcript.is_streaming() {
            true => state.transcript.replace_last(item),
            false => state.transcript.push(item),
        }
    }
}

fn failed(state: &mut State, speaker: &Speaker, error: &AgentError, now: Now) {
    let mut words = format!(
        "{} could not answer: {}",
        speaker.display_name, error.message
    );
    if let Some(hint) = &error.hint {
        words.push_str(&format!(" ({hint})"));
    }
    if !state.shows_end() {
        state.toasts.push(Tone::Warning, &words, now.at);
    }
}

fn routed(state: &mut State, output: &Output, now: Now) {
    if let Output::Queue(update) = output {
        let members = &state.info.members;
        state.queue.take(update, |id| {
            let member = members.iter().find(|member| member.id == id);
            match member {
                Some(member) => (member.display_name.clone(), false),
                None => (id.to_owned(), false),
            }
        });
    }
    for (tone, words) in routed::words(output) {
        match tone {
            // The entry shows it.
            routed::Tone::Note if matches!(output, Output::TeamTask(_)) => {}
            routed::Tone::Warning => notice(state, Tone::Warning, words, now),
            routed::Tone::Note => notice(state, Tone::Note, words, now),
            // The queue line shows these.
            routed::Tone::Watching | routed::Tone::Detail => {}
        }
    }
}

fn paired(state: &mut State, event: &PairEvent, now: Now) {
    if let PairEvent::Round(progress) = event {
        state.progress = Some((*progress, now.at));
        return;
    }
    let tone = match event {
        PairEvent::WorkerFailed(_) => Tone::Warning,
        _ => Tone::Note,
    };
    notice(state, tone, text::event(event), now);
}

/// Adds a notice to the transcript; where that is not seen, a warning or error also appears as a
/// toast.
pub(super) fn notice(state: &mut State, tone: Tone, text: String, now: Now) {
    if tone != Tone::Note && !state.shows_end() {
        state.toasts.push(tone, &text, now.at);
    }
    let what = What::Notice { tone, text };
    state.transcript.push(Item { seq: None, what });
}
