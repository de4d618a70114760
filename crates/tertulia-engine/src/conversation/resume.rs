//! Resumes a session: loads the contexts, and repairs what a crash left open.

use super::Conversation;
use super::request::marker_prefix;
use crate::answer::{INTERRUPTED, result_of};
use crate::chat::Chat;
use crate::context::{CONTEXT_BYTES, Context, Thread, concerns, dangling};
use crate::event::SessionEvent;
use crate::frontend::Frontend;
use crate::log_writer::LogWriter;
use crate::notice::Notice;
use crate::pair::PairRole;
use crate::pair::policy::PairPolicy;
use crate::pair::roster::{PairRoster, other_models};
use crate::policy::{Contexts, Policy};
use crate::setup::{Participants, RunOptions};
use crate::team::policy::{Team, TeamRoster};
use crate::team::resume::{self, ResumePlan, Resumed};
use tertulia_agents::process::end_orphans;
use tertulia_core::entry::{Body, Compacted, Entry, Kind, Role, ToolOutcome};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::{Log, SessionMeta, Status};
use tertulia_store::{StoreError, StoreResult};

/// The threads of a pair.
const PAIR: [Thread; 2] = [Some(PairRole::Instructor), Some(PairRole::Worker)];

impl Conversation {
    /// Resumes a session: recovers a draft, ends orphaned processes, loads what the participants
    /// need and gives the user the turn. `left` is the original session if `writer` has forked it.
    pub async fn resume(
        mut writer: LogWriter,
        left: Option<SessionId>,
        participants: Participants,
        options: RunOptions,
        frontend: &mut dyn Frontend,
    ) -> StoreResult<Conversation> {
        let recovered = recover(&mut writer, left, frontend).await?;
        if left.is_none() && !writer.took_over() {
            end_orphans_of(&writer, recovered, frontend).await;
        }
        let mut conversation = match participants {
            Participants::Chat(agent) => {
                let chat = Chat::new(agent, options.compact_at);
                let policy = Policy::Chat(chat);
                let conversation = Conversation::new(writer, options, policy);
                conversation.resume_chat(left.is_none(), frontend).await?
            }
            Participants::Team { roster, plan, .. } => {
                let unheard = left.is_none().then_some(recovered);
                resume_team(writer, options, *roster, &plan, unheard, frontend).await?
            }
            Participants::Pair { roster, .. } => {
                resume_pair(writer, options, *roster, frontend).await?
            }
        };
        conversation.close_command(frontend).await?;
        Ok(conversation)
    }

    async fn resume_chat(
        mut self,
        alone: bool,
        frontend: &mut dyn Frontend,
    ) -> StoreResult<Conversation> {
        let meta = self.writer.meta();
        if alone && meta.is_some_and(|meta| meta.status == Status::Active) {
            frontend.show(Notice::Unanswered.into());
        }
        let recorded = meta.and_then(|meta| meta.model.clone());
        self.load(&[None], frontend).await?;
        let agents = self.policy.agents();
        let now = agents.first().and_then(|agent| agent.model());
        let other = Notice::other_model(None, recorded.as_deref(), now);
        if let Some(notice) = other {
            frontend.show(notice.into());
        }
        Ok(self)
    }

    /// Loads the contexts of a pair.
    pub(super) async fn load_pair(&mut self, frontend: &mut dyn Frontend) -> StoreResult<()> {
        self.load(&PAIR, frontend).await
    }

    /// Loads the contexts of these threads from the end of the log, and closes tool calls without
    /// results.
    async fn load(&mut self, threads: &[Thread], frontend: &mut dyn Frontend) -> StoreResult<()> {
        let mut contexts = Contexts::new();
        match self.writer.meta() {
            None => contexts.extend(threads.iter().map(|thread| (*thread, Context::default()))),
            Some(meta) => {
                let covers = |log: &Log| threads.iter().all(|thread| covers(meta, *thread, log));
                let log = read_back(&self.writer, meta, covers, frontend).await?;
                for &thread in threads {
                    let compacted = self.newest_compaction(meta, thread, &log).await?;
                    let context = Context::restored(thread, &log, compacted.as_ref());
                    contexts.insert(thread, context);
                }
            }
        }
        self.contexts = contexts;
        self.close_calls(frontend).await;
        Ok(())
    }

    /// Returns the newest compaction of a thread, which in a pair may be older than the loaded part.
    async fn newest_compaction(
        &self,
        meta: &SessionMeta,
        thread: Thread,
        log: &Log,
    ) -> StoreResult<Option<Compacted>> {
        let mut newest = log.entries.iter().rev();
        if let Some(compacted) = newest.find_map(|entry| compaction(&entry.body, thread)) {
            return Ok(Some(compacted));
        }
        let pair = meta.pair.as_ref();
        let Some(summed) = pair
            .zip(thread)
            .and_then(|(pair, role)| pair.summary_of(role))
        else {
            return Ok(None);
        };
        let entry = entry_at(&self.writer, meta, summed.at).await?;
        Ok(entry.and_then(|entry| compaction(&entry.body, thread)))
    }

    /// Adds results for tool calls without results, to the contexts and the log.
    async fn close_calls(&mut self, frontend: &mut dyn Frontend) {
        let mut results = Vec::new();
        for (thread, context) in &self.contexts {
            for call in dangling(context.messages()) {
                let mut result = result_of(&call, INTERRUPTED, ToolOutcome::Interrupted);
                if let Body::Message(message) = &mut result {
                    message.thread = thread.map(|role| role.name().to_owned());
                }
                results.push(result);
            }
        }
        if !results.is_empty() {
            frontend.show(Notice::ClosedCalls(results.len()).into());
            // If they cannot be saved, the next resume closes them.
            self.write(None, results, frontend).await;
        }
        self.end_turn();
    }

    /// Returns an entry of the log, and the worker's text since the last message to it if `worker`.
    /// An unreadable entry is an error, because the caller's default would pass for the message.
    pub(super) async fn recall(
        &self,
        at: Option<Seq>,
        worker: bool,
    ) -> StoreResult<(Option<Entry>, String)> {
        let Some(meta) = self.writer.meta() else {
            return Ok((None, String::new()));
        };
        let entry = match at {
            None => None,
            Some(at) => {
                let entry = entry_at(&self.writer, meta, at).await?;
                Some(entry.ok_or_else(|| {
                    StoreError::Refused(format!(
                        "entry {at} of this session cannot be read; `tertulia doctor` shows the damage"
                    ))
                })?)
            }
        };
        let said = match worker {
            true => worker_said(&self.writer, meta).await?,
            false => String::new(),
        };
        Ok((entry, said))
    }
}

async fn resume_team(
    writer: LogWriter,
    options: RunOptions,
    roster: TeamRoster,
    plan: &ResumePlan,
    // Whether a draft was recovered; `None` if another process may be prompting the members.
    recovered: Option<bool>,
    frontend: &mut dyn Frontend,
) -> StoreResult<Conversation> {
    let Some(meta) = writer.meta() else {
        return Err(StoreError::Refused("this session has no messages".into()));
    };
    let covers = |log: &Log| resume::is_enough(&roster, meta.compacted, log);
    let log = read_back(&writer, meta, covers, frontend).await?;
    let mut notices = Vec::new();
    if !plan.missing.is_empty() {
        notices.push(Notice::Missing(plan.missing.clone()));
    }
    notices.extend(resume::other_models(meta, &roster, plan));
    let unheard = recovered.map(|recovered| resume::unheard(&log, &roster.members, recovered));
    notices.extend(
        unheard
            .filter(|names| !names.is_empty())
            .map(Notice::NotHeard),
    );
    let resumed = Resumed::read(&log, meta, &roster, plan);
    let mut shown = Vec::new();
    let team = Team::resume(roster, resumed, &mut shown)
        .map_err(|error| StoreError::Refused(error.to_string()))?;
    let mut conversation = Conversation::new(writer, options, Policy::Team(Box::new(team)));
    let context = Context::restored(None, &log, None);
    conversation.contexts.insert(None, context);
    conversation.close_calls(frontend).await;
    // A member's context lasts for one answer.
    conversation.contexts.clear();
    let notices = notices.into_iter().map(SessionEvent::from);
    notices.chain(shown).for_each(|event| frontend.show(event));
    Ok(conversation)
}

/// Resumes a pair: its metadata contains the state. The contexts are loaded before the first prompt.
async fn resume_pair(
    writer: LogWriter,
    options: RunOptions,
    roster: PairRoster,
    frontend: &mut dyn Frontend,
) -> StoreResult<Conversation> {
    let mut known = None;
    if let Some(meta) = writer.meta()
        && let Some(at) = meta.pair.as_ref().and_then(|pair| pair.paired_at)
        && let Some(entry) = entry_at(&writer, meta, at).await?
        && let Body::Paired(paired) = entry.body
    {
        let notices = other_models(&paired, &roster.paired).into_iter();
        notices.for_each(|notice| frontend.show(notice.into()));
        known = Some(paired);
    }
    let now = writer.sessions().clock().now();
    let pair = PairPolicy::resume(roster, known.as_ref(), now);
    Ok(Conversation::new(
        writer,
        options,
        Policy::Pair(Box::new(pair)),
    ))
}

/// Recovers the draft of an answer that was cut off. Returns true if there was one.
async fn recover(
    writer: &mut LogWriter,
    left: Option<SessionId>,
    frontend: &mut dyn Frontend,
) -> StoreResult<bool> {
    if let Some(from) = left {
        let to = writer.id();
        frontend.show(SessionEvent::Moved { to });
        let holder = writer.holder_of(from).await;
        frontend.show(Notice::SteppedAside { from, to, holder }.into());
        return Ok(false);
    }
    let Some(entry) = writer.recover_draft().await? else {
        return Ok(false);
    };
    let message = entry.message();
    let speaker = message.map(|message| message.speaker.display_name.clone());
    let speaker = speaker.unwrap_or_default();
    frontend.show(Notice::Recovered { speaker }.into());
    frontend.show(SessionEvent::durable(&entry));
    Ok(true)
}

/// Ends processes that a killed run left behind for this session.
async fn end_orphans_of(writer: &LogWriter, recovered: bool, frontend: &mut dyn Frontend) {
    // In a team or pair, another agent may have been prompted after the last message.
    let cut_off = writer
        .meta()
        .is_some_and(|meta| meta.status == Status::Active || meta.kind != Kind::Chat || recovered);
    if !cut_off {
        return;
    }
    let prefix = marker_prefix(writer);
    let ended = tokio::task::spawn_blocking(move || end_orphans(&prefix)).await;
    if let Some(count) = ended.ok().filter(|count| *count > 0) {
        frontend.show(Notice::EndedOrphans(count).into());
    }
}

/// Reads the end of the log, backwards until `covers` returns true.
async fn read_back(
    writer: &LogWriter,
    meta: &SessionMeta,
    covers: impl FnMut(&Log) -> bool,
    frontend: &mut dyn Frontend,
) -> StoreResult<Log> {
    let mut log = writer.sessions().load_back(meta, covers).await?;
    let damage = std::mem::take(&mut log.damage);
    if !damage.is_empty() {
        frontend.show(Notice::Damaged(damage).into());
    }
    Ok(log)
}

/// Returns true if the loaded part covers everything that the context of a thread could hold.
fn covers(meta: &SessionMeta, thread: Thread, log: &Log) -> bool {
    let upto = match thread {
        None => meta.compacted,
        Some(role) => {
            let pair = meta.pair.as_ref();
            pair.and_then(|pair| Some(pair.summary_of(role)?.upto))
        }
    };
    let first = log.entries.first().map(|entry| entry.seq);
    let size = || {
        let messages = log.messages();
        let messages = messages.filter(|(entry, _)| concerns(&entry.body, thread));
        messages
            .map(|(_, message)| {
                let files = message.attachments.iter();
                message.content.len() + files.map(|file| file.content.len()).sum::<usize>()
            })
            .sum::<usize>()
    };
    upto.is_some_and(|upto| first.is_some_and(|first| first <= upto)) || size() > CONTEXT_BYTES
}

fn compaction(body: &Body, thread: Thread) -> Option<Compacted> {
    match body {
        Body::Compacted(compacted)
            if PairRole::of_thread(compacted.thread.as_deref()) == thread =>
        {
            Some(compacted.clone())
        }
        _ => None,
    }
}

async fn entry_at(writer: &LogWriter, meta: &SessionMeta, at: Seq) -> StoreResult<Option<Entry>> {
    let log = writer.sessions().load_one(meta, at).await?;
    Ok(log.entries.into_iter().find(|entry| entry.seq == at))
}

/// Returns the worker's text since the last message to it.
async fn worker_said(writer: &LogWriter, meta: &SessionMeta) -> StoreResult<String> {
    let role = |entry: &Entry| {
        let message = entry.message()?;
        let thread = PairRole::of_thread(message.thread.as_deref());
        (thread == Some(PairRole::Worker)).then_some(message.role)
    };
    let asked = |entry: &Entry| role(entry) == Some(Role::User);
    let sessions = writer.sessions();
    let log = sessions
        .load_back(meta, |log| log.entries.iter().any(asked))
        .await?;
    let since = log.entries.iter().rposition(asked).unwrap_or(0);
    let said = log.entries[since..].iter();
    let said = said.filter(|entry| role(entry) == Some(Role::Assistant));
    let said = said.filter_map(|entry| Some(entry.message()?.content.as_str()));
    let said: Vec<&str> = said.filter(|words| !words.trim().is_empty()).collect();
    Ok(said.join("\n\n"))
}
