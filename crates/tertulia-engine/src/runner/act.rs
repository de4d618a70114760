//! Using a tool for an agent: by the rules, or after asking the person.

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

    /// Uses a tool, if that is allowed. The agent is told what came of it either way.
    pub(super) async fn act(
        &mut self,
        call: ToolCall,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Vec<Effect> {
        frontend.show(SessionEvent::agent(AgentEvent::ToolStarted(call.clone())));
        let output = match self.use_tool(&call, frontend, cancel).await {
            // What is done is done, also when somebody said stop just then.
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

    /// What the agent is told; nothing if somebody stopped it.
    async fn use_tool(
        &mut self,
        call: &ToolCall,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Option<ToolOutput> {
        let Some(tools) = self.options.tools.clone() else {
            return Some(refusal("there are no tools in this conversation"));
        };
        // It reads what would be changed, and whoever waits for a disk must still hear a signal.
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

    /// Whether a tool may be used: by the rules, or because the person says so.
    pub(super) async fn settle(
        &mut self,
        request: &ToolRequest,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Verdict {
        // Nothing is done that is not in the log first.
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
