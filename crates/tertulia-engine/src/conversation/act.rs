//! Runs tools for an agent, if the tool policy or the user permits.

use super::ask::Asking;
use crate::answer::{Effect, Event};
use crate::event::SessionEvent;
use tertulia_agents::approval::{Approval, Risk, Ruling, ToolRequest, Verdict};
use tertulia_agents::tool::{ToolOutput, Toolbox};
use tertulia_agents::{AgentEvent, UNANSWERED, denial};
use tertulia_core::entry::{NOT_RUN_MARK, ToolCall};
use tertulia_core::preview::visible;
use tertulia_core::redact::redact;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep_until};

/// Time between two pictures of the output of a running tool.
const LIVE: Duration = Duration::from_millis(200);

impl Asking<'_> {
    /// Runs a tool, if it is permitted. The agent gets a result either way.
    pub(super) async fn act(&mut self, call: ToolCall) -> Vec<Effect> {
        let started = AgentEvent::ToolStarted(call.clone());
        self.frontend.show(SessionEvent::agent(started));
        let output = match self.use_tool(&call).await {
            // A tool that has succeeded is recorded, even if the user stopped the turn meanwhile.
            Some(output) if output.ok || !self.cancel.is_cancelled() => output,
            _ => {
                return self.answer.step(Event::Stopped(call, self.now()));
            }
        };
        self.frontend
            .show(SessionEvent::agent(AgentEvent::ToolCompleted {
                id: call.id.clone(),
                output: output.text.clone(),
                ok: output.ok,
            }));
        let ToolOutput { text: output, ok } = output;
        self.answer.step(Event::Used { call, output, ok })
    }

    /// Returns the result for the agent, or `None` if the turn was stopped before the tool ran.
    async fn use_tool(&mut self, call: &ToolCall) -> Option<ToolOutput> {
        if let Some(replay) = &self.conversation.options.replay {
            return Some(replay.result_of(call));
        }
        let Some(tools) = self.access.tools.clone() else {
            return Some(refusal("there are no tools in this conversation"));
        };
        // Reads the files that would be changed, which must not block the handling of signals.
        let (looked_at, looker) = (call.clone(), tools.clone());
        let looked = tokio::task::spawn_blocking(move || looker.request(&looked_at)).await;
        let request = match looked {
            Ok(Ok(request)) => request,
            Ok(Err(output)) => return Some(output),
            Err(error) => return Some(refusal(&error.to_string())),
        };
        match self.settle(&request).await {
            _ if self.cancel.is_cancelled() => None,
            Verdict::Instead(words) => Some(refusal(&denial(&words))),
            Verdict::No if self.is_held_back(request.risk) => Some(refusal(
                "the call could not be saved, and nothing is done that is not in the log first",
            )),
            Verdict::Unanswered => Some(refusal(UNANSWERED)),
            Verdict::No if [Approval::Ask, Approval::Edits].contains(&self.access.rules.mode()) => {
                Some(refusal(
                    "the user does not want this tool to be used now; do not try again, ask what to do instead",
                ))
            }
            Verdict::No => Some(refusal(&format!(
                "this tool is not allowed here: only tools that look and change nothing are (approval mode '{}')",
                self.access.rules.mode().name()
            ))),
            Verdict::Yes | Verdict::Always => Some(self.run_tool(&tools, call).await),
        }
    }

    /// Runs a tool and shows its output meanwhile.
    async fn run_tool(&mut self, tools: &Toolbox, call: &ToolCall) -> ToolOutput {
        let (marker, cancel) = (self.conversation.marker(), self.cancel.clone());
        let (tail, mut newest) = watch::channel(String::new());
        let run = tools.run_watched(call, &marker, &cancel, tail);
        tokio::pin!(run);
        let mut next = Instant::now();
        loop {
            let tail = tokio::select! {
                biased;
                output = &mut run => return output,
                tail = tail_after(next, &mut newest) => tail,
            };
            let id = call.id.clone();
            let event = AgentEvent::ToolOutput { id, tail };
            self.frontend.show(SessionEvent::agent(event));
            next = Instant::now() + LIVE;
        }
    }

    /// Ends the commands that the agent left running in the background, and says so.
    pub(super) async fn end_background(&mut self) {
        let Some(tools) = self.access.tools.clone() else {
            return;
        };
        for command in tools.end_background().await {
            let words = format!(
                "ended with the answer, still running: {}",
                visible(&command)
            );
            let remark = AgentEvent::Remark(redact(&words).text.into_owned());
            self.frontend.show(SessionEvent::agent(remark));
        }
    }

    /// Returns true if an earlier session is played again.
    pub(super) fn is_replay(&self) -> bool {
        self.conversation.options.replay.is_some()
    }

    /// Returns true for a tool call that must not run because nothing runs that is not in the log
    /// first: while something is unsaved, tools may only look.
    fn is_held_back(&self, risk: Risk) -> bool {
        self.conversation.unsaved && risk != Risk::Low
    }

    /// Returns the tool policy for an agent that runs tools of its own. In a replay it uses none: its
    /// tools cannot be given recorded results.
    pub(super) fn approval(&self) -> Approval {
        match self.access.rules.mode() {
            _ if self.is_replay() => Approval::None,
            Approval::Ask | Approval::Edits | Approval::All if self.is_held_back(Risk::High) => {
                Approval::Low
            }
            mode => mode,
        }
    }

    /// Returns the folder that the agent works in: its own, or that of the tools.
    fn folder(&self) -> String {
        let own = self.agent.work_dir();
        let tools = self.access.tools.as_ref().map(Toolbox::work_dir);
        let folder = own
            .or(tools)
            .unwrap_or(&self.conversation.options.folder.path);
        folder.display().to_string()
    }

    /// Decides whether a tool may run: by the tool policy, or by asking the user.
    pub(super) async fn settle(&mut self, request: &ToolRequest) -> Verdict {
        if self.is_held_back(request.risk) || self.is_replay() {
            return Verdict::No;
        }
        match self.access.rules.ruling(request) {
            Ruling::Run => Verdict::Yes,
            Ruling::Refuse => Verdict::No,
            Ruling::Ask => {
                let request = &ToolRequest {
                    folder: self.folder(),
                    ..request.clone()
                };
                let verdict = tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => Verdict::No,
                    verdict = self.frontend.approve(request) => verdict,
                };
                self.access.rules.settle(request, &verdict);
                if verdict == Verdict::Always {
                    self.frontend.show(SessionEvent::Permissions {
                        state: self.access.rules.state(),
                    });
                }
                verdict
            }
        }
    }
}

/// Waits for output that is not shown yet, and until it may be shown.
async fn tail_after(moment: Instant, newest: &mut watch::Receiver<String>) -> String {
    sleep_until(moment).await;
    match newest.changed().await {
        Ok(()) => newest.borrow_and_update().clone(),
        // The tool has ended, or prints nothing.
        Err(_) => std::future::pending().await,
    }
}

fn refusal(why: &str) -> ToolOutput {
    ToolOutput {
        text: format!("{NOT_RUN_MARK}{why}]"),
        ok: false,
    }
}
