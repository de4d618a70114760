//! Commands that go on running while the model does something else: it polls and ends them with
//! `shell_poll`. They end with the turn in which they were started at the latest.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::ToolOutput;
use super::arguments::Arguments;
use crate::ToolSpec;

/// Longest time that one look at a command waits for its end, and the usual one.
const LONGEST_WAIT: u64 = 60;

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: "shell_poll".to_owned(),
        description: "Looks at a command that `shell` started in the background: gives the last lines of its output while it runs, \
             and all of it with the exit status once it has ended. A command that still runs when you end your answer is ended, too."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "id": {"type": "integer", "minimum": 1, "description": "The number that `shell` gave."},
                "wait_seconds": {"type": "integer", "minimum": 0, "description": "Wait so long for its end, at most 60; 10 if left out."},
                "end": {"type": "boolean", "description": "End the command, with all that it started."}
            },
            "required": ["id"],
            "additionalProperties": false
        }),
    }
}

/// A call of `shell_poll`.
#[derive(Debug)]
pub(super) struct Poll {
    id: u64,
    wait: Duration,
    end: bool,
}

impl Poll {
    pub(super) fn parse(arguments: &Arguments<'_>) -> Result<Poll, String> {
        let id: u64 = arguments.required("id")?;
        let wait = arguments.whole("wait_seconds", 0)?.unwrap_or(10);
        Ok(Poll {
            id,
            wait: Duration::from_secs(wait.min(LONGEST_WAIT)),
            end: arguments.optional("end")?.unwrap_or(false),
        })
    }

    pub(super) fn preview(&self) -> String {
        match self.end {
            true => format!("end command {}", self.id),
            false => format!("look at command {}", self.id),
        }
    }
}

/// A command in the background.
#[derive(Clone, Debug)]
struct Job {
    command: String,
    cancel: CancellationToken,
    tail: watch::Receiver<String>,
    /// The result, once the command has ended and none of its processes is left.
    done: watch::Receiver<Option<ToolOutput>>,
}

impl Job {
    /// Waits for the result; `None` if the command was lost with its task.
    async fn result(&mut self) -> Option<ToolOutput> {
        let done = self.done.wait_for(Option::is_some).await;
        done.ok()?.clone()
    }
}

/// Commands in the background, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Jobs(Mutex<BTreeMap<u64, Job>>);

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a command, which `run` does in a task of its own. Returns what the model is told.
    pub(super) fn start<F>(
        &self,
        command: &str,
        cancel: CancellationToken,
        run: impl FnOnce(watch::Sender<String>) -> F,
    ) -> ToolOutput
    where
        F: Future<Output = ToolOutput> + Send + 'static,
    {
        let (tail, newest) = watch::channel(String::new());
        let (result, done) = watch::channel(None);
        let running = run(tail);
        tokio::spawn(async move {
            // Fails if the command was forgotten: its result is not wanted.
            let _ = result.send(Some(running.await));
        });
        let mut jobs = self.lock();
        let id = jobs.last_key_value().map_or(1, |(id, _)| id + 1);
        jobs.insert(
            id,
            Job {
                command: command.to_owned(),
                cancel,
                tail: newest,
                done,
            },
        );
        ToolOutput {
            text: format!("[command {id} runs in the background; `shell_poll` looks at it]"),
            ok: true,
        }
    }

    /// Looks at a command, or ends it. `cancel` ends the wait.
    pub(super) async fn poll(
        &self,
        poll: &Poll,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, String> {
        let job = self.lock().get(&poll.id).cloned();
        let Some(mut job) = job else {
            return Err(format!("there is no command {} in the background", poll.id));
        };
        let wait = match poll.end {
            true => {
                job.cancel.cancel();
                Duration::MAX
            }
            false => poll.wait,
        };
        let tail = job.tail.clone();
        tokio::select! {
            biased;
            result = job.result() => {
                self.lock().remove(&poll.id);
                result.ok_or_else(|| "the command was lost".to_owned())
            }
            () = cancel.cancelled() => Err("stopped".to_owned()),
            () = tokio::time::sleep(wait) => {
                let printed = tail.borrow().clone();
                let newline = if printed.is_empty() || printed.ends_with('\n') { "" } else { "\n" };
                Ok(ToolOutput {
                    text: format!("{printed}{newline}[still running]"),
                    ok: true,
                })
            }
        }
    }

    /// Ends all commands that still run, and returns them.
    pub(super) async fn end(&self) -> Vec<String> {
        let jobs = std::mem::take(&mut *self.lock());
        let mut ended = Vec::new();
        for mut job in jobs.into_values() {
            if job.done.borrow().is_none() {
                job.cancel.cancel();
                let _ = job.result().await;
                ended.push(job.command);
            }
        }
        ended
    }
}
