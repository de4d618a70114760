//! Switches the agent of a chat between two turns.

use tokio_util::sync::CancellationToken;

use super::Conversation;
use crate::frontend::Frontend;
use crate::policy::Policy;
use crate::setup::ChatAgent;
use tertulia_core::entry::{Body, Switched};

/// Why the agent cannot be switched.
const NOT_A_CHAT: &str = "each agent here has its own model, and none of them can be switched";

impl Conversation {
    /// Lets another agent, or another model, answer from the next message on. The switch is an
    /// entry of the log: in a session without messages it is saved with the first one.
    pub async fn switch(
        &mut self,
        to: ChatAgent,
        frontend: &mut dyn Frontend,
    ) -> Result<(), &'static str> {
        let Policy::Chat(chat) = &mut self.policy else {
            return Err(NOT_A_CHAT);
        };
        let entry = Body::Switched(Switched {
            agent: to.agent.name().to_owned(),
            model: to.agent.model().map(str::to_owned),
            pinned: to.is_pinned,
        });
        let before = chat.switch(to.agent, to.compact_at);
        let has_begun = self.writer.meta().is_some();
        if !has_begun {
            chat.open_with(entry.clone());
        }
        self.options.compact_at = to.compact_at;
        self.options.environment = to.environment;
        self.switched = true;
        before.leave().await;
        if has_begun {
            self.cancel = CancellationToken::new();
            self.write(None, vec![entry], frontend).await;
        }
        Ok(())
    }
}
