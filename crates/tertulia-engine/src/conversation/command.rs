//! Runs shell commands of the user. The command is durable before it runs, and the agents get it
//! with its output in the next prompt.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Conversation;
use crate::error::{ErrorBody, ErrorKind};
use crate::event::{SessionEvent, TurnStatus};
use crate::frontend::Frontend;
use crate::notice::Notice;
use tertulia_core::entry::{Body, Entry, NOT_RUN_MARK, ShellCommand, ShellOutput, ToolOutcome};
use tertulia_core::id::EntryId;
use tertulia_core::redact::redact;
use tertulia_core::session::Log;
use tertulia_store::StoreResult;

impl Conversation {
    /// Runs a shell command of the user in the work folder, until it ends or is cancelled.
    pub async fn run_command(
        &mut self,
        command: String,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Result<TurnStatus, ErrorBody> {
        let Some(tools) = self.options.tools.clone() else {
            let why = "not run: the work folder cannot be used";
            return Err(ErrorBody::new(ErrorKind::Failed, why));
        };
        tools
            .check_command(&command)
            .map_err(|why| ErrorBody::new(ErrorKind::Usage, format!("not run: {why}")))?;
        self.cancel = cancel.clone();
        self.told_unsaved = false;
        let run = self.writer.sessions().clock().entry_id();
        let mut bodies = self.policy.opening();
        bodies.push(Body::Shell(ShellCommand {
            run,
            command: command.clone(),
        }));
        if self.write(None, bodies, frontend).await.is_none() {
            return Ok(TurnStatus::Refused);
        }
        self.policy.opened();
        let output = match self.writer.has_unsaved() {
            true => ShellOutput {
                run,
                output: format!("{NOT_RUN_MARK}the command could not be saved]"),
                exit: None,
                outcome: ToolOutcome::Denied,
            },
            false => {
                let marker = self.marker();
                let (live, mut printed) = mpsc::channel(16);
                let running = tools.run_command(&command, &marker, cancel, live);
                tokio::pin!(running);
                let ran = loop {
                    tokio::select! {
                        biased;
                        Some(text) = printed.recv() => {
                            frontend.show(SessionEvent::Printed { text });
                        }
                        ran = &mut running => break ran,
                    }
                };
                // What it printed last may have arrived together with its end.
                while let Ok(text) = printed.try_recv() {
                    frontend.show(SessionEvent::Printed { text });
                }
                ShellOutput {
                    run,
                    output: ran.text,
                    exit: ran.exit,
                    outcome: match ran.exit {
                        Some(0) => ToolOutcome::Ok,
                        _ if cancel.is_cancelled() => ToolOutcome::Interrupted,
                        _ => ToolOutcome::Failed,
                    },
                }
            }
        };
        let status = match output.outcome {
            ToolOutcome::Interrupted => TurnStatus::Cancelled,
            ToolOutcome::Denied => TurnStatus::Refused,
            ToolOutcome::Ok | ToolOutcome::Failed => TurnStatus::Completed,
        };
        // A cancelled command has an end, too: it is not given up.
        self.cancel = CancellationToken::new();
        self.end_command(command, output, frontend).await;
        Ok(status)
    }

    /// Records the end of a command.
    async fn end_command(
        &mut self,
        command: String,
        output: ShellOutput,
        frontend: &mut dyn Frontend,
    ) {
        let bodies = vec![Body::ShellOutput(output.clone())];
        self.write(None, bodies, frontend).await;
        // As the log has it.
        let clean = |text: &str| redact(text).text.into_owned();
        let output = ShellOutput {
            output: clean(&output.output),
            ..output
        };
        let head = self.writer.meta().map(|meta| meta.head.seq);
        let seq = head.filter(|_| !self.writer.has_unsaved());
        self.policy.ran(seq, &clean(&command), &output);
    }

    /// Closes a command that a crash has interrupted.
    pub(super) async fn close_command(&mut self, frontend: &mut dyn Frontend) -> StoreResult<()> {
        let Some(meta) = self.writer.meta() else {
            return Ok(());
        };
        let happened = |entry: &&Entry| !entry.body.is_tidying();
        let seen = |log: &Log| log.entries.iter().any(|entry| happened(&entry));
        let log = self.writer.sessions().load_back(meta, seen).await?;
        let last = log.entries.iter().rev().find(happened);
        let Some(Body::Shell(ShellCommand { run, command })) = last.map(|entry| &entry.body) else {
            return Ok(());
        };
        frontend.show(Notice::ClosedCommand(command.clone()).into());
        let output = interrupted(*run);
        self.end_command(command.clone(), output, frontend).await;
        Ok(())
    }
}

/// Returns the end of a command whose output is not known.
fn interrupted(run: EntryId) -> ShellOutput {
    ShellOutput {
        run,
        output: String::new(),
        exit: None,
        outcome: ToolOutcome::Interrupted,
    }
}
