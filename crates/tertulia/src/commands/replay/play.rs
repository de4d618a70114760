//! Plays the prompts of a session in a new one.

use async_trait::async_trait;
use tertulia_agents::AgentEvent;
use tertulia_agents::approval::{ToolRequest, Verdict};
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_core::replay::{RecordedTurn, Recording, compare};
use tertulia_engine::conversation::TurnResult;
use tertulia_engine::event::{SessionEvent, Tone, TurnStatus};
use tertulia_engine::frontend::Frontend;
use tertulia_engine::live::{CommandOutcome, LiveSession, SessionCommand};
use tertulia_engine::prompt::Prompt;
use tertulia_engine::setup::Setup;

use super::plan::{ANOTHER_AGENT, Plan};
use super::report;
use crate::error::{CommandError, ErrorKind};
use crate::show;
use crate::signals::Signals;
use crate::talk::tell_end;
use crate::ui::Ui;

/// Result of playing a session.
pub struct Played {
    /// The new session, if anything was saved.
    pub session: Option<SessionId>,
    /// Its turns.
    pub turns: Vec<RecordedTurn>,
    /// Number of turns that ended, with an answer or a failure.
    pub completed: usize,
    pub end: PlayEnd,
}

/// How it ended.
pub enum PlayEnd {
    /// All prompts were played.
    Completed,
    /// The agent failed, or a prompt could not be saved.
    Failed(CommandError),
    /// A signal with this number arrived.
    Stopped(u8),
}

impl Played {
    /// Creates the result of a session that could not be begun.
    pub fn unbegun(end: PlayEnd) -> Played {
        Played {
            session: None,
            turns: Vec::new(),
            completed: 0,
            end,
        }
    }
}

/// Plays all prompts of a plan, and reports each turn as it ends.
pub async fn play(setup: Setup, plan: &Plan, signals: &mut Signals, ui: &mut Ui) -> Played {
    let mut watcher = Watcher::new(ui);
    let opened = LiveSession::open(setup, &mut watcher);
    let mut session = match signals.during(opened).await {
        Ok(Ok(session)) => session,
        Ok(Err(error)) => return Played::unbegun(PlayEnd::Failed(error.into())),
        Err(left) => {
            let stopped = signals.caught().map(PlayEnd::Stopped);
            return Played::unbegun(stopped.unwrap_or(PlayEnd::Failed(left)));
        }
    };
    let mut completed = 0;
    let mut gently = true;
    let end = loop {
        if let Some(signal) = signals.caught() {
            break PlayEnd::Stopped(signal);
        }
        let Some(turn) = plan.original.recording.turns.get(completed) else {
            break PlayEnd::Completed;
        };
        report::begin_turn(completed + 1, plan, &turn.prompt, watcher.ui);
        let cancel = signals.cancel.clone();
        if plan.original.meta.kind == Kind::Team {
            let by = SessionCommand::As(Some(turn.by.clone()));
            session.execute(by, &mut watcher, &cancel).await;
        }
        let say = SessionCommand::Say(Prompt {
            attached: turn.attachments.clone(),
            ..Prompt::from(turn.prompt.as_str())
        });
        let said = session.execute(say, &mut watcher, &cancel);
        let outcome = match signals.during(said).await {
            Ok(outcome) => outcome,
            // A second signal does not wait for the agent either.
            Err(_) => {
                gently = false;
                continue;
            }
        };
        if outcome.status == TurnStatus::Cancelled && signals.caught().is_some() {
            continue;
        }
        completed += 1;
        let replayed = &watcher.recording.turns;
        let replayed = replayed.get(completed - 1..).unwrap_or_default();
        let compared = compare(std::slice::from_ref(turn), replayed);
        report::end_turn(&compared, watcher.ui);
        if let Some(error) = watcher.error_of(outcome, &session) {
            break PlayEnd::Failed(error);
        }
    };
    let Watcher { ui, recording, .. } = watcher;
    if matches!(end, PlayEnd::Stopped(_)) {
        report::stopped(completed, plan, ui);
    }
    let writer = session.conversation().writer();
    let saved = writer.meta().is_some().then(|| writer.id());
    let mut closed = session.close(gently).await;
    // The report names the session; only what could not be saved is left to say.
    closed.told.retain(|told| told.tone != Tone::Note);
    tell_end(closed, ui);
    Played {
        session: saved,
        turns: recording.turns,
        completed,
        end,
    }
}

/// Frontend that reads the new log as it is written, and shows notices.
struct Watcher<'a> {
    ui: &'a mut Ui,
    recording: Recording,
    refused: Option<CommandError>,
}

impl<'a> Watcher<'a> {
    fn new(ui: &'a mut Ui) -> Watcher<'a> {
        Watcher {
            ui,
            recording: Recording::default(),
            refused: None,
        }
    }

    /// Returns the error that ends the replay after a turn.
    fn error_of(&mut self, outcome: CommandOutcome, session: &LiveSession) -> Option<CommandError> {
        if let Some(error) = outcome.turn.as_ref().and_then(TurnResult::failure) {
            let hint = error.hint.as_deref().unwrap_or(ANOTHER_AGENT);
            return Some(CommandError::new(ErrorKind::Agent, &error.message).hint(hint));
        }
        if let Some(error) = outcome.error {
            return Some(error.into());
        }
        // Out of calls, or of rounds: the person is next, as in the original.
        let is_over = [TurnStatus::Completed, TurnStatus::Paused].contains(&outcome.status);
        if !is_over {
            let words = format!("the turn was {}", outcome.status.name());
            let other = || CommandError::new(ErrorKind::Failed, words);
            return Some(self.refused.take().unwrap_or_else(other));
        }
        let writer = session.conversation().writer();
        let kind = match writer.is_locked_out() {
            true => ErrorKind::Conflict,
            false => ErrorKind::Failed,
        };
        let words = "stopped because the last turn could not be saved";
        writer.has_unsaved().then(|| CommandError::new(kind, words))
    }
}

#[async_trait]
impl Frontend for Watcher<'_> {
    fn show(&mut self, event: SessionEvent) {
        if let Some(entry) = event.entry() {
            return self.recording.apply(&entry);
        }
        match event {
            SessionEvent::Notice { tone, text, error } => {
                let text = self.ui.invocation.complete(&text);
                match (error, tone) {
                    (Some(error), _) => self.refused = Some(error.into()),
                    (None, tone) => self.ui.remark(tone != Tone::Note, &text),
                }
            }
            SessionEvent::Heard { event } => {
                if let Some(text) = show::event_words(&event) {
                    match event {
                        AgentEvent::Remark(_) => self.ui.warn(&text),
                        AgentEvent::Retrying(_) => self.ui.note(&text),
                        _ => self.ui.detail(&text),
                    }
                }
            }
            _ => {}
        }
    }

    async fn approve(&mut self, _: &ToolRequest) -> Verdict {
        Verdict::No
    }
}
