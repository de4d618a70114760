//! The folder of a session: the user is asked before agents work in one that this machine does not know.

use serde_json::json;
use tertulia_agents::approval::{Risk, ToolRequest, Verdict};
use tertulia_agents::{Agent, AgentError, FailureKind};
use tertulia_core::entry::{Body, ToolCall};

use super::Conversation;
use crate::frontend::Frontend;
use crate::setup::works_in_folder;
use crate::text::tools::WORK_IN;

impl Conversation {
    /// Asks the user whether an agent may work in the session's folder, if that is not certain. One
    /// answer is enough for a session; a denied question is asked again with the next prompt.
    pub(super) async fn may_work(
        &mut self,
        agent: &dyn Agent,
        frontend: &mut dyn Frontend,
    ) -> Result<(), AgentError> {
        let folder = &self.options.folder;
        let Some(question) = &folder.question else {
            return Ok(());
        };
        if !self.asks_about_folder(agent) {
            return Ok(());
        }
        let path = folder.path.display().to_string();
        let request = ToolRequest {
            call: ToolCall {
                id: self.writer.sessions().clock().entry_id().to_string(),
                name: WORK_IN.to_owned(),
                arguments: json!({ "folder": path }),
            },
            risk: Risk::High,
            preview: question.text.clone(),
            folder: path.clone(),
            key: WORK_IN.to_owned(),
            is_edit: false,
        };
        let agreed = question.agreed.clone();
        let verdict = tokio::select! {
            biased;
            () = self.cancel.cancelled() => Verdict::No,
            verdict = frontend.approve(&request) => verdict,
        };
        if !verdict.allows() {
            let words = format!("not allowed to work in {path}");
            return Err(AgentError::new(FailureKind::Unavailable, words)
                .hint("allow it when asked, or resume the session with --here"));
        }
        agreed();
        self.options.folder.question = None;
        if let Some(moved) = self.options.folder.moved.take() {
            self.write(None, vec![Body::Terms(moved)], frontend).await;
        }
        Ok(())
    }

    /// Returns true if the user is asked before this agent works in the folder.
    pub(super) fn asks_about_folder(&self, agent: &dyn Agent) -> bool {
        let is_asked = self.options.folder.question.is_some() && self.options.replay.is_none();
        is_asked && works_in_folder(agent)
    }
}
