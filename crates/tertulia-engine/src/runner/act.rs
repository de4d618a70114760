//! Runs tools for an agent, if the tool policy or the user permits.

use tokio_util::sync::CancellationToken;

use super::{Frontend, Runner, SessionEvent, ToolAccess};
use crate::chat::{Effect, Event};
use tertulia_agents::AgentEvent;
use tertulia_agents::approval::{Approval, Permissions, Risk, Ruling, ToolRequest, Verdict};
use tertulia_agents::tool::ToolOutput;
use tertulia_core::entry::{NOT_RUN_MARK, ToolCall};

impl Runner {
    /// Returns the tool permissions. Clones share one state.
    pub fn permissions(&self) -> &Permissions {
        &self.options.rules
    }

    /// Replaces the tool access of the agent. Returns the previous one.
    pub fn equip(&mut self, equipment: ToolAccess) -> ToolAccess {
        ToolAccess {
            tools: std::mem::replace(&mut self.options.tools, equipment.tools),
            rules: std::mem::replace(&mut self.options.rules, equipment.rules),
        }
    }

    /// Runs a tool, if it is permitted. The agent gets a result either way.
    pub(super) async fn act(
        &mut self,
        call: ToolCall,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Vec<Effect> {
        frontend.show(SessionEvent::agent(AgentEvent::ToolStarted(call.clone())));
        let output = match self.use_tool(&call, frontend, cancel).await {
            // A tool that has succeeded is recorded, even if the user stopped the turn meanwhile.
            Some(output) if output.ok || !cancel.is_cancelled() => output,
            _ => {
                let now = self.writer.sessions().clock().now();
                return self.chat.step(Event::Stopped(call, now));
            }
        };
        frontend.show(SessionEvent::agent(AgentEvent::ToolCompleted {
            id: call.id.clone(),
            output: output.text.clone(),
            ok: output.ok,
        }));
        let ToolOutput { text: output, ok } = output;
        self.chat.step(Event::Used { call, output, ok })
    }

    /// Returns the result for the agent, or `None` if the turn was stopped before the tool ran.
    async fn use_tool(
        &mut self,
        call: &ToolCall,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Option<ToolOutput> {
        let Some(tools) = self.options.tools.clone() else {
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
        if self.unsaved && request.risk != Risk::Low {
            return Some(refusal(
                "the call could not be saved, and nothing is done that is not in the log first",
            ));
        }
        match self.settle(&request, frontend, cancel).await {
            _ if cancel.is_cancelled() => None,
            Verdict::No if self.options.rules.mode() == Approval::Ask => Some(refusal(
                "the user does not want this tool to be used now; do not try again, ask what to do instead",
            )),
            Verdict::No => Some(refusal(&format!(
                "this tool is not allowed here: only tools that look and change nothing are (approval mode '{}')",
                self.options.rules.mode().name()
            ))),
            Verdict::Yes | Verdict::Always => {
                let marker = self.marker();
                Some(tools.run(call, &marker, cancel).await)
            }
        }
    }

    /// Decides whether a tool may run: by the tool policy, or by asking the user.
    pub(super) async fn settle(
        &mut self,
        request: &ToolRequest,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Verdict {
        // Nothing runs that is not in the log first.
        if self.unsaved && request.risk != Risk::Low {
            return Verdict::No;
        }
        match self.options.rules.ruling(request) {
            Ruling::Run => Verdict::Yes,
            Ruling::Refuse => Verdict::No,
            Ruling::Ask => {
                let verdict = tokio::select! {
                    biased;
                    () = cancel.cancelled() => Verdict::No,
                    verdict = frontend.approve(request) => verdict,
                };
                self.options.rules.settle(request, verdict);
                if verdict == Verdict::Always {
                    frontend.show(SessionEvent::Permissions {
                        state: self.options.rules.state(),
                    });
                }
                verdict
            }
        }
    }
}

fn refusal(why: &str) -> ToolOutput {
    ToolOutput {
        text: format!("{NOT_RUN_MARK}{why}]"),
        ok: false,
    }
}
