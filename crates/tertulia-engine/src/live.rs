//! [`LiveSession`]: an open session that executes the commands of its frontends.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::conversation::{Compaction, Conversation, TurnResult};
use crate::error::{ErrorBody, ErrorKind};
use crate::event::{SessionEnd, SessionEvent, SessionState, Tone, TurnStatus, UserMessage};
use crate::frontend::Frontend;
use crate::log_writer::LogWriter;
use crate::message_queue::MessageQueue;
use crate::prompt::Prompt;
use crate::setup::{ChatAgent, Setup, Target};
use tertulia_agents::approval::Permissions;
use tertulia_core::entry::Kind;
use tertulia_core::team::markers;

/// What a frontend asks a live session to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionCommand {
    /// Run a turn with this message. An empty one continues a pair's unfinished work, or asks the agent
    /// of a chat again for the answer to the last message.
    Say(Prompt),
    /// Run a shell command of the user in the work folder, and record it with its output.
    Run(String),
    /// Speak as this member of the team from now on, or as whom the team waits for.
    As(Option<String>),
    /// Compact the older part of the context.
    Compact,
    /// Retry to save held messages.
    Save,
    /// Record a tool policy that the user tightened.
    RecordTerms,
}

/// What ends with a live session: unsaved messages are offered to the user.
#[async_trait]
pub trait Closing: Send + Sync {
    /// Saves what is held, or offers it as a file.
    async fn close(&self, conversation: &mut Conversation) -> SessionEnd;
}

/// Result of a command.
#[derive(Debug)]
pub struct CommandOutcome {
    /// The status.
    pub status: TurnStatus,
    /// The error for the client that sent the command, if not reported yet.
    pub error: Option<ErrorBody>,
    /// Messages for the user of a screen.
    pub notices: Vec<UserMessage>,
    /// The turn, if the command ran one.
    pub turn: Option<TurnResult>,
}

impl CommandOutcome {
    /// Creates an outcome without an error, notices or a turn.
    pub fn plain(status: TurnStatus) -> CommandOutcome {
        CommandOutcome {
            status,
            error: None,
            notices: Vec::new(),
            turn: None,
        }
    }

    /// Creates the outcome of a command that was refused before it changed anything.
    fn refused(error: ErrorBody) -> CommandOutcome {
        CommandOutcome {
            notices: vec![UserMessage {
                tone: Tone::Error,
                text: error.sentence(),
            }],
            error: Some(error),
            ..CommandOutcome::plain(TurnStatus::Refused)
        }
    }
}

/// An open session: what every frontend drives, in its own process or through a
/// [task](crate::task).
pub struct LiveSession {
    conversation: Conversation,
    /// The member as whom the user speaks.
    seat: Option<String>,
    /// Whether the seat was chosen for this run, and not for the session.
    seat_is_for_this_run: bool,
    /// Whether the seat overrides a speaker that a message names.
    seat_is_fixed: bool,
    introduction: String,
    closing: Arc<dyn Closing>,
    /// Whether the last turn ended with an agent's failure.
    failed: bool,
}

impl LiveSession {
    /// Opens a session.
    pub async fn open(setup: Setup, frontend: &mut dyn Frontend) -> Result<LiveSession, ErrorBody> {
        let seat = setup.participants.seat();
        let introduction = setup.introduction.clone();
        let closing = setup.closing.clone();
        let conversation = begin_or_resume(setup, frontend).await?;
        let is_for_this_run = seat.is_some();
        Ok(LiveSession {
            seat: seat.or_else(|| conversation.recorded_seat()),
            conversation,
            seat_is_for_this_run: is_for_this_run,
            seat_is_fixed: false,
            introduction,
            closing,
            failed: false,
        })
    }

    /// Makes a seat that was chosen for this run override the speakers that messages name, which may come
    /// through a pipe.
    #[must_use]
    pub fn with_fixed_seat(mut self) -> LiveSession {
        self.seat_is_fixed = self.seat_is_for_this_run;
        self
    }

    /// Opens the queue of messages, and what an earlier process left in it.
    pub async fn open_queue(&mut self) -> Result<MessageQueue, ErrorBody> {
        self.conversation.hold().await;
        let writer = self.conversation.writer();
        let (sessions, id) = (writer.sessions().clone(), writer.id());
        let project = writer.project().map(str::to_owned);
        let queue = MessageQueue::open(sessions, id, writer.meta(), project).await;
        queue.map_err(|error| ErrorBody::from(&error))
    }

    /// Returns the conversation, to describe it.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Returns the kind of conversation.
    pub fn kind(&self) -> Kind {
        self.conversation.kind()
    }

    /// Describes the session between turns.
    pub fn state(&self) -> SessionState {
        SessionState {
            introduction: self.introduction.clone(),
            failed: self.failed,
            ..self.conversation.state(self.seat.as_deref())
        }
    }

    /// Returns the tool permissions, which can be changed while it runs.
    pub fn permissions(&self) -> Permissions {
        self.conversation.permissions().clone()
    }

    /// Executes a command.
    pub async fn execute(
        &mut self,
        command: SessionCommand,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> CommandOutcome {
        let completed = CommandOutcome::plain(TurnStatus::Completed);
        let outcome = match command {
            SessionCommand::Say(prompt) => self.say(prompt, frontend, cancel).await,
            SessionCommand::Run(command) => {
                frontend.show(SessionEvent::Began);
                match self
                    .conversation
                    .run_command(command, frontend, cancel)
                    .await
                {
                    Ok(status) => CommandOutcome::plain(status),
                    Err(error) => CommandOutcome::refused(error),
                }
            }
            SessionCommand::As(name) => {
                return match self
                    .conversation
                    .seat_of(name.as_deref().unwrap_or_default())
                {
                    Ok(seat) => {
                        self.conversation.sit(seat.clone());
                        self.seat = seat;
                        completed
                    }
                    Err(why) => CommandOutcome {
                        notices: vec![UserMessage::warning(why)],
                        ..CommandOutcome::plain(TurnStatus::Refused)
                    },
                };
            }
            SessionCommand::Compact => {
                frontend.show(SessionEvent::Began);
                let compacted = self.conversation.compact(frontend, cancel).await;
                let notice = not_compacted(compacted).map(UserMessage::note);
                CommandOutcome {
                    notices: notice.into_iter().collect(),
                    ..completed
                }
            }
            SessionCommand::RecordTerms => {
                self.record_terms(frontend).await;
                return completed;
            }
            SessionCommand::Save => {
                let saved = self.save(frontend).await;
                return CommandOutcome::plain(match saved {
                    true => TurnStatus::Completed,
                    false => TurnStatus::Failed,
                });
            }
        };
        if let Err(reason) = self.conversation.writer().copy().await {
            let words = format!("saved, but not in the session file: {reason}");
            frontend.show(SessionEvent::notice(Tone::Warning, words));
        }
        outcome
    }

    async fn say(
        &mut self,
        prompt: Prompt,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> CommandOutcome {
        let checked = tertulia_store::check_message(&prompt.text);
        let read = match checked.map_err(|error| ErrorBody::from(&error)) {
            Ok(()) => self.read_files(prompt).await,
            Err(error) => Err(error),
        };
        let prompt = match read {
            Ok(prompt) => prompt,
            Err(error) => return CommandOutcome::refused(error),
        };
        frontend.show(SessionEvent::Began);
        for why in &prompt.unattached {
            frontend.show(SessionEvent::notice(Tone::Warning, why));
        }
        // A speaker named in the message is newer than the seat.
        let named = !self.seat_is_fixed && markers::parse(&prompt.text).from.is_some();
        let seat = self.seat.as_deref().filter(|_| !named);
        match self.conversation.say(prompt, seat, frontend, cancel).await {
            Ok(turn) => {
                self.failed = turn.failure().is_some();
                CommandOutcome {
                    status: turn.status(),
                    error: turn.error(),
                    notices: turn.screen_notes(&self.conversation),
                    turn: Some(turn),
                }
            }
            Err(error) => CommandOutcome {
                error: Some(ErrorBody::from(&error)),
                notices: vec![UserMessage::warning(error.to_string())],
                ..CommandOutcome::plain(TurnStatus::Refused)
            },
        }
    }

    /// Reads the files that a message attaches.
    async fn read_files(&self, prompt: Prompt) -> Result<Prompt, ErrorBody> {
        let (tools, members) = self.conversation.attaching(&prompt.text);
        let by_path = self.conversation.is_answered_by_a_program();
        let Some(tools) = tools.filter(|_| prompt.typed > 0) else {
            return Ok(prompt);
        };
        let read =
            tokio::task::spawn_blocking(move || prompt.read_files(&tools, &members, by_path));
        let crashed = |error: tokio::task::JoinError| {
            ErrorBody::new(ErrorKind::Failed, format!("not sent: {error}"))
        };
        read.await.map_err(crashed)?
    }

    /// Lets another agent, or another model, answer the messages of a chat from now on.
    pub async fn switch(
        &mut self,
        to: Result<ChatAgent, ErrorBody>,
        frontend: &mut dyn Frontend,
    ) -> CommandOutcome {
        let refused = |notice| CommandOutcome {
            notices: vec![notice],
            ..CommandOutcome::plain(TurnStatus::Refused)
        };
        let mut to = match to {
            Ok(to) => to,
            Err(error) => {
                let text = error.sentence();
                let tone = Tone::Error;
                return CommandOutcome {
                    error: Some(error),
                    ..refused(UserMessage { tone, text })
                };
            }
        };
        let introduction = std::mem::take(&mut to.introduction);
        let notices = std::mem::take(&mut to.notices);
        if let Err(why) = self.conversation.switch(to, frontend).await {
            return refused(UserMessage::warning(why));
        }
        self.introduction = introduction;
        // The agent that failed does not answer any more.
        self.failed = false;
        CommandOutcome {
            notices,
            ..CommandOutcome::plain(TurnStatus::Completed)
        }
    }

    /// Records a tool policy that the user tightened.
    pub async fn record_terms(&mut self, frontend: &mut dyn Frontend) {
        self.conversation.record_terms(frontend).await;
    }

    /// Retries to save held messages. Returns true if everything is saved.
    pub async fn save(&mut self, frontend: &mut dyn Frontend) -> bool {
        self.conversation.save_held(frontend).await
    }

    /// Closes the session; ends the agents' processes gracefully if `gently`.
    pub async fn close(mut self, gently: bool) -> SessionEnd {
        if gently {
            self.conversation.leave().await;
        }
        let closing = self.closing.clone();
        closing.close(&mut self.conversation).await
    }
}

async fn begin_or_resume(
    setup: Setup,
    frontend: &mut dyn Frontend,
) -> Result<Conversation, ErrorBody> {
    match setup.target {
        Target::New(start) => {
            let (id, resumed) = (start.id, None);
            frontend.show(SessionEvent::Started { id, resumed });
            let writer = LogWriter::begin(setup.sessions, start, setup.on_conflict);
            Conversation::begin(writer, setup.participants, setup.options)
        }
        Target::Resume(row, mirror) => {
            let resumed = LogWriter::resume(setup.sessions, row.meta, setup.on_conflict).await;
            let (mut writer, left) = resumed.map_err(|error| ErrorBody::from(&error))?;
            if let Some(mirror) = mirror {
                writer.set_mirror(mirror);
            }
            let resumed = Some(writer.meta().map_or(0, |meta| meta.messages));
            let id = writer.id();
            frontend.show(SessionEvent::Started { id, resumed });
            let (participants, options) = (setup.participants, setup.options);
            Conversation::resume(writer, left, participants, options, frontend)
                .await
                .map_err(|error| ErrorBody::from(&error))
        }
    }
}

/// Says why nothing was compacted.
fn not_compacted(compacted: Option<Compaction>) -> Option<&'static str> {
    match compacted {
        None => Some("not needed here: each agent gets only the messages that fit its context"),
        Some(Compaction::Off) => Some("off: the settings have team_summary = false"),
        Some(Compaction::Nothing) => Some("nothing to compact: there is no older part"),
        Some(Compaction::Done | Compaction::Failed) => None,
    }
}
