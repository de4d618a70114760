//! One answer of an agent outside of a conversation, without tools: a summary, for example. Nothing of
//! it is saved here.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use tertulia_agents::approval::Approval;
use tertulia_agents::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, PromptMessage,
};
use tertulia_core::entry::{MESSAGE_LIMIT, Usage};

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleAnswer {
    /// The text.
    pub text: String,
    /// Tokens used, if the agent reported them.
    pub usage: Option<Usage>,
    /// Model that answered, if it is known.
    pub model: Option<String>,
}

/// Lets an agent answer messages, the last of which is the request. `marker` identifies its processes.
/// Fails with `nothing_said` if the answer is empty.
pub async fn single_answer(
    agent: &Arc<dyn Agent>,
    messages: Vec<PromptMessage>,
    marker: String,
    nothing_said: &str,
    cancel: &CancellationToken,
) -> Result<SingleAnswer, AgentError> {
    let question = AgentRequest {
        total: messages.len() as u64,
        messages,
        marker,
        approval: Approval::None,
        ephemeral: true,
        ..AgentRequest::default()
    };
    let (sink, mut listener) = AgentSink::open(cancel);
    let mut said = SingleAnswer {
        text: String::new(),
        usage: None,
        model: agent.model().map(str::to_owned),
    };
    let agent = agent.clone();
    let answer = async move { agent.answer(&question, &sink).await };
    let listen = async {
        while let Some(event) = listener.events.recv().await {
            match event {
                // An agent that does not stop has no answer to give.
                AgentEvent::Text(text) if said.text.len() < MESSAGE_LIMIT / 2 => {
                    said.text.push_str(&text);
                }
                AgentEvent::Usage(reported) => said.usage = Some(reported),
                AgentEvent::Model(model) => said.model = Some(model),
                _ => {}
            }
        }
    };
    let (result, ()) = tokio::join!(answer, listen);
    result?;
    match said.text.trim().is_empty() {
        true => Err(AgentError::new(FailureKind::Failed, nothing_said)),
        false => Ok(said),
    }
}
