//! [`Frontend`], the side of a conversation that shows events and asks the user.

use async_trait::async_trait;

use crate::event::SessionEvent;
use tertulia_agents::approval::{ToolRequest, Verdict};

/// Shows a conversation and asks for permissions.
#[async_trait]
pub trait Frontend: Send {
    /// Shows an event.
    fn show(&mut self, event: SessionEvent);

    /// Asks the user whether a tool may run. Only requests that the tool policy does not decide
    /// get here.
    async fn approve(&mut self, request: &ToolRequest) -> Verdict;
}
