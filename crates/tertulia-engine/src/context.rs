//! Builds an agent's context: the compaction summary of the older part, as many of the later
//! messages as fit, and the current turn complete, with every tool call followed by its result.

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::answer::INTERRUPTED;
use super::withdrawn::{Withdrawals, withdraw};
use tertulia_agents::PromptMessage;
use tertulia_agents::system_prompt::change;
use tertulia_core::entry::{
    Body, Compacted, Environment, Message, Role, ShellOutput, ToolCall, human,
};
use tertulia_core::id::Seq;
use tertulia_core::pair::PairRole;
use tertulia_core::session::Log;

/// Heading of a shell command of the user.
const RAN: &str = "[I ran a command in the work folder.]";

/// Heading of the compaction summary.
const SUMMARY: &str = "Summary of the conversation up to here:";

/// Prompt for a compaction summary of the older part.
pub const SUMMARISE: &str = "Summarise our conversation so far, so that you can go on with nothing but \
your summary. Keep what matters for going on: what was asked for, what was decided and why, what was done \
and with which result, names, paths, numbers and code that will be needed again, and what is still open. \
Answer with the summary alone.";

/// Maximum size of an agent's context in bytes; only complete messages are left out.
pub const CONTEXT_BYTES: usize = 768 * 1024;

/// The thread of a context: the role in a pair; `None` in chats and teams, whose messages have no
/// thread.
pub type Thread = Option<PairRole>;

/// A message in the context.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextMessage {
    /// Sequence number in the log, once it has one.
    pub seq: Option<Seq>,
    /// The message as the log has it.
    pub words: PromptMessage,
    /// The message before redaction, if that differs: agents get it until the turn ends.
    pub unredacted: Option<PromptMessage>,
    /// The environment that the agent was told with the message.
    pub environment: Option<Environment>,
}

impl ContextMessage {
    /// Returns the message as an agent gets it now.
    pub fn given(&self) -> &PromptMessage {
        self.unredacted.as_ref().unwrap_or(&self.words)
    }
}

/// Tokens of the last prompt and answer, as the agent reported them.
#[derive(Clone, Copy, Debug)]
pub struct Reported {
    /// Number of tokens.
    pub tokens: u64,
    /// Those of the prompt.
    pub sent: u64,
    /// Size of the context in bytes at that time; unknown after a resume.
    pub weight: Option<u64>,
}

/// What an agent remembers of a session: one per thread.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Compaction summary that replaces the messages before `messages`.
    summary: Option<PromptMessage>,
    /// Messages, oldest first.
    messages: Vec<ContextMessage>,
    /// Number of messages dropped from the beginning of `messages`.
    dropped: usize,
    /// Index in `messages` at which the running turn begins. A prompt never leaves it out.
    turn_start: usize,
    /// Token figures of the last answer.
    pub reported: Option<Reported>,
    /// Shell command of the user whose output has not come yet.
    command: Option<String>,
    /// Messages that the user stopped, by their position from the first message on.
    withdrawals: Withdrawals<usize>,
}

impl Context {
    /// Creates the context of an agent that gets a single prompt (team).
    pub fn of_prompt(prompt: PromptMessage) -> Context {
        Context {
            messages: vec![ContextMessage {
                seq: None,
                words: prompt,
                unredacted: None,
                environment: None,
            }],
            ..Context::default()
        }
    }

    /// Creates the context of a thread from the end of a log: the newest compaction summary, and
    /// the messages that it does not cover.
    pub fn restored(thread: Thread, log: &Log, compacted: Option<&Compacted>) -> Context {
        let mut context = Context {
            summary: compacted.map(|compacted| summary(&compacted.summary)),
            reported: last_usage(thread, log),
            ..Context::default()
        };
        let covered = compacted.map(|compacted| compacted.upto);
        let entries = log.entries.iter();
        for entry in entries.filter(|entry| covered.is_none_or(|covered| entry.seq > covered)) {
            if concerns(&entry.body, thread) {
                context.add(Some(entry.seq), &entry.body, &entry.body);
            }
        }
        context.end_turn();
        context
    }

    /// Adds a message of the log, with its text before redaction, and marks an earlier message that
    /// the entry shows to be withdrawn.
    pub fn add(&mut self, seq: Option<Seq>, logged: &Body, unredacted: &Body) {
        let position = self.dropped + self.messages.len();
        if let Some((position, agent)) = self.withdrawals.apply(logged, position) {
            self.withdraw(position, &agent);
        }
        match logged {
            Body::Shell(shell) => self.command = Some(shell.command.clone()),
            Body::ShellOutput(shell) => {
                let command = self.command.take().unwrap_or_default();
                self.messages.push(ContextMessage {
                    seq,
                    words: ran(&command, shell),
                    unredacted: None,
                    environment: None,
                });
            }
            Body::Environment(environment) => self.tell(environment.clone()),
            _ => {}
        }
        if let (Body::Message(logged), Body::Message(unredacted)) = (logged, unredacted) {
            let (words, unredacted) = (prompt_message(logged), prompt_message(unredacted));
            let unredacted = (unredacted != words).then_some(unredacted);
            self.messages.push(ContextMessage {
                seq,
                words,
                unredacted,
                environment: None,
            });
        }
    }

    /// Attaches the environment to the last message to the agent.
    fn tell(&mut self, environment: Environment) {
        let mut messages = self.messages.iter_mut();
        if let Some(said) = messages.rfind(|said| said.words.role == Role::User) {
            said.environment = Some(environment);
            self.note_changes();
        }
    }

    /// Sets the notes of messages with which the agent was told a change of its environment.
    fn note_changes(&mut self) {
        let mut before: Option<Environment> = None;
        for said in &mut self.messages {
            let Some(environment) = &said.environment else {
                continue;
            };
            let note = before.and_then(|before| change(&before, environment));
            before = Some(environment.clone());
            if let Some(unredacted) = &mut said.unredacted {
                unredacted.note.clone_from(&note);
            }
            said.words.note = note;
        }
    }

    /// Returns the environment at the start of the context, which the system prompt describes.
    pub fn first_environment(&self) -> Option<&Environment> {
        self.messages
            .iter()
            .find_map(|said| said.environment.as_ref())
    }

    /// Returns the environment that the agent was told last.
    pub fn last_environment(&self) -> Option<&Environment> {
        let mut messages = self.messages.iter().rev();
        messages.find_map(|said| said.environment.as_ref())
    }

    fn withdraw(&mut self, position: usize, agent: &str) {
        let index = position.checked_sub(self.dropped);
        if let Some(said) = index.and_then(|index| self.messages.get_mut(index)) {
            withdraw(&mut said.words, agent);
            said.unredacted = None;
        }
    }

    /// Marks a stopped message as withdrawn, where no later turn can resume it (chat).
    pub fn withdraw_stopped(&mut self) {
        if let Some((position, agent)) = self.withdrawals.take_stopped() {
            self.withdraw(position, &agent);
        }
    }

    /// Returns true if the agent owes an answer: the last message is not its own, or was cut off, and
    /// the user has not withdrawn it.
    pub fn is_unanswered(&self) -> bool {
        let mut messages = self.messages.iter().map(|said| &said.words);
        let last = messages.rfind(|words| !is_rest(words) && !words.content.starts_with(RAN));
        last.is_some_and(|words| words.role != Role::Assistant && words.withdrawn.is_none())
    }

    /// Begins an answer to the last message to the agent, and drops old messages that fit in no
    /// prompt any more. Without a new message, the agent is asked again: the rest of an answer that
    /// was cut off is not sent back to it.
    pub fn begin_answer(&mut self) {
        while self
            .messages
            .last()
            .is_some_and(|said| is_rest(&said.words))
        {
            self.messages.pop();
        }
        let mut messages = self.messages.iter();
        let asked = messages.rposition(|said| said.words.role == Role::User);
        self.turn_start = asked.unwrap_or(self.messages.len());
        let mut kept = 0;
        let fits = self.messages.iter().rev().take_while(|said| {
            kept += weight(said.given());
            kept <= 2 * CONTEXT_BYTES
        });
        let surplus = self.messages.len() - fits.count();
        self.drop_oldest(surplus.min(self.turn_start));
    }

    /// Ends the turn: from now on the agent gets its messages as the log has them.
    pub fn end_turn(&mut self) {
        for said in &mut self.messages {
            said.unredacted = None;
        }
        self.turn_start = self.messages.len();
    }

    /// Returns the messages before the running turn.
    pub fn past(&self) -> &[ContextMessage] {
        &self.messages[..self.turn_start]
    }

    /// Returns all messages.
    pub fn messages(&self) -> &[ContextMessage] {
        &self.messages
    }

    /// Returns the compaction summary.
    pub fn summary(&self) -> Option<&PromptMessage> {
        self.summary.as_ref()
    }

    /// Replaces the oldest messages by a compaction summary.
    pub fn compact(&mut self, messages: usize, words: &str) {
        self.summary = Some(summary(words));
        self.reported = None;
        self.drop_oldest(messages);
    }

    fn drop_oldest(&mut self, count: usize) {
        self.messages.drain(..count);
        self.dropped += count;
        self.turn_start = self.turn_start.saturating_sub(count);
        self.note_changes();
    }

    /// Attaches data that the agent wants back with its last calls while the turn lasts.
    pub fn set_memo(&mut self, memo: Option<Value>) {
        let mut messages = self.messages.iter_mut();
        if let Some(said) = messages.rfind(|said| !said.words.calls.is_empty()) {
            let words = said.unredacted.get_or_insert_with(|| said.words.clone());
            words.memo = memo;
        }
    }

    /// Returns everything that the agent could get, however much it is.
    pub fn given(&self) -> impl Iterator<Item = &PromptMessage> {
        let messages = self.messages.iter().map(ContextMessage::given);
        self.summary.iter().chain(messages)
    }

    /// Returns the size of what the agent could get, in bytes.
    pub fn weight(&self) -> u64 {
        self.given().map(|words| weight(words) as u64).sum()
    }

    /// Returns the messages for a prompt, oldest first.
    pub fn prompt(&self) -> Vec<PromptMessage> {
        let turn = self.messages[self.turn_start..].iter();
        let turn: Vec<PromptMessage> = turn.map(|said| said.given().clone()).collect();
        context(self.summary.as_ref(), self.past(), &turn, CONTEXT_BYTES)
    }
}

/// Returns true for the text of an answer that was cut off.
fn is_rest(words: &PromptMessage) -> bool {
    words.role == Role::Assistant && words.cut_off && words.calls.is_empty()
}

/// Returns true for entries that the context of a thread needs: its messages, and failures.
pub fn concerns(body: &Body, thread: Thread) -> bool {
    match body {
        Body::Message(message) => PairRole::of_thread(message.thread.as_deref()) == thread,
        Body::Environment(environment) => {
            PairRole::of_thread(environment.thread.as_deref()) == thread
        }
        Body::Failed(_) => true,
        // The user's words go to the instructor of a pair.
        Body::Shell(_) | Body::ShellOutput(_) => thread != Some(PairRole::Worker),
        _ => false,
    }
}

/// Returns the last tokens that the agent reported, or `None` if the context was compacted since.
fn last_usage(thread: Thread, log: &Log) -> Option<Reported> {
    let since = log.entries.iter().rev();
    let since = since.take_while(|entry| !matches!(entry.body, Body::Compacted(_)));
    let since = since.filter(|entry| concerns(&entry.body, thread));
    let mut usages = since.filter_map(|entry| entry.message()?.usage);
    let usage = usages.next().filter(|usage| !usage.estimated)?;
    Some(Reported {
        tokens: usage.input + usage.output,
        sent: usage.input,
        weight: None,
    })
}

/// Converts a message of the log for a prompt.
pub fn prompt_message(message: &Message) -> PromptMessage {
    PromptMessage {
        calls: message.tool_calls.clone(),
        answers: message.tool_call_id.clone(),
        cut_off: message.interrupted,
        attachments: message.attachments.clone(),
        ..PromptMessage::plain(
            message.role,
            message.speaker.prompt_name(),
            message.content.clone(),
        )
    }
}

/// Converts a shell command of the user and its output for a prompt.
fn ran(command: &str, output: &ShellOutput) -> PromptMessage {
    PromptMessage::plain(Role::User, human().prompt_name(), ran_text(command, output))
}

/// Tells an agent about a shell command of the user.
pub fn ran_text(command: &str, output: &ShellOutput) -> String {
    format!("{RAN}\n$ {command}\n{}", output.text())
}

/// Converts the compaction summary for a prompt.
pub fn summary(words: &str) -> PromptMessage {
    PromptMessage::plain(Role::System, "summary", format!("{SUMMARY}\n\n{words}"))
}

/// Returns the messages for an agent, oldest first, in `room` bytes. The current turn is always
/// complete.
pub fn context(
    summary: Option<&PromptMessage>,
    past: &[ContextMessage],
    turn: &[PromptMessage],
    room: usize,
) -> Vec<PromptMessage> {
    let fixed: usize = summary.into_iter().chain(turn).map(weight).sum();
    let mut room = room.saturating_sub(fixed);
    let fits = past
        .iter()
        .rev()
        .take_while(|said| {
            let weight = weight(said.given());
            let fits = weight <= room;
            room = room.saturating_sub(weight);
            fits
        })
        .count();
    let recent = past[past.len() - fits..].iter().map(ContextMessage::given);
    let messages: Vec<&PromptMessage> = summary.into_iter().chain(recent).chain(turn).collect();
    paired(&messages)
}

/// Returns the total size of messages in bytes.
pub fn total_weight(messages: &[PromptMessage]) -> usize {
    messages.iter().map(weight).sum()
}

/// Returns the size of a message in bytes.
pub fn weight(words: &PromptMessage) -> usize {
    let calls: usize = words
        .calls
        .iter()
        .map(|call| call.name.len() + call.arguments.to_string().len())
        .sum();
    let files: usize = words
        .attachments
        .iter()
        .map(|file| file.content.len())
        .sum();
    let note = words.note.as_ref().map_or(0, String::len);
    words.content.len() + calls + files + note
}

/// Minimum number of bytes kept of a message that is cut.
const LEAST: usize = 200;

/// Cuts the middles of the longest messages, so that all together have at most `room` bytes. The
/// message to answer stays complete, and the log keeps everything. Returns `None` if nothing can be
/// cut.
pub fn shortened(mut messages: Vec<PromptMessage>, room: usize) -> Option<Vec<PromptMessage>> {
    let asked = messages.iter().rposition(|words| words.role == Role::User);
    let total = total_weight(&messages);
    let fixed = asked.map_or(0, |at| weight(&messages[at]));
    let (mut low, mut high) = (LEAST, total.max(LEAST));
    while low < high {
        let cap = low.midpoint(high + 1);
        let others = messages.iter().enumerate();
        let others = others.filter(|(at, _)| Some(*at) != asked);
        let sum: usize = others.map(|(_, words)| weight(words).min(cap)).sum();
        match sum + fixed <= room {
            true => low = cap,
            false => high = cap - 1,
        }
    }
    let mut cut = false;
    for (at, words) in messages.iter_mut().enumerate() {
        if Some(at) != asked
            && let Some(shorter) = without_middle(&words.content, low)
        {
            words.content = shorter;
            cut = true;
        }
    }
    cut.then_some(messages)
}

/// Cuts the middle of a text that is longer than `room`: two thirds of the rest are its beginning.
fn without_middle(text: &str, room: usize) -> Option<String> {
    // The mark takes some room, too.
    if text.len() <= room + LEAST / 2 {
        return None;
    }
    let head = text.floor_char_boundary(room / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - room / 3);
    let missing = tail.saturating_sub(head);
    Some(format!(
        "{}\n[… {missing} bytes left out here …]\n{}",
        &text[..head],
        &text[tail..]
    ))
}

/// Puts each result directly after its call, a mark in place of a missing one, and drops results
/// without a call: providers accept nothing else.
fn paired(messages: &[&PromptMessage]) -> Vec<PromptMessage> {
    let mut taken = vec![false; messages.len()];
    let mut paired = Vec::new();
    for (at, words) in messages.iter().enumerate() {
        if words.role == Role::Tool {
            continue;
        }
        paired.push((*words).clone());
        for call in &words.calls {
            let result = (at + 1..messages.len()).find(|&later| {
                !taken[later] && messages[later].answers.as_deref() == Some(call.id.as_str())
            });
            paired.push(match result {
                Some(later) => {
                    taken[later] = true;
                    messages[later].clone()
                }
                None => PromptMessage {
                    answers: Some(call.id.clone()),
                    ..PromptMessage::plain(Role::Tool, &call.name, INTERRUPTED)
                },
            });
        }
    }
    paired
}

/// Returns the calls without a result, oldest first: these remain after a crash.
pub fn dangling(past: &[ContextMessage]) -> Vec<ToolCall> {
    let mut open: Vec<ToolCall> = Vec::new();
    for said in past {
        open.extend(said.words.calls.iter().cloned());
        if let Some(answers) = &said.words.answers
            && let Some(at) = open.iter().position(|call| &call.id == answers)
        {
            open.remove(at);
        }
    }
    open
}

/// Returns how many of the oldest messages must be summarised so that the rest counts at most
/// `keep`. The rest begins with a user's message, or is empty.
pub fn older(past: &[ContextMessage], keep: u64, count: impl Fn(&PromptMessage) -> u64) -> usize {
    let mut kept = 0;
    let mut cut = past.len();
    for (at, said) in past.iter().enumerate().rev() {
        kept += count(&said.words);
        if kept > keep {
            break;
        }
        if said.words.role == Role::User {
            cut = at;
        }
    }
    cut
}
