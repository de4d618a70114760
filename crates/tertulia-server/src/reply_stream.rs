//! Converts the events of a turn to replies for the client that started it.

use std::collections::HashMap;

use tertulia_agents::AgentEvent;
use tertulia_core::entry::{Role, SpeakerKind, Usage};
use tertulia_core::id::SessionId;

use crate::blocks::Blocks;
use crate::protocol::{Answer, ErrorBody, ErrorKind, Tokens};
use tertulia_engine::event::{SessionEvent, Tone};

/// Reply stream of one query.
#[derive(Debug, Default)]
pub struct ReplyStream {
    blocks: Blocks,
    /// The speaker that is answering in a team or pair.
    speaker: Option<String>,
    /// Names of the called tools by call id.
    tools: HashMap<String, String>,
    usage: Usage,
}

impl ReplyStream {
    /// Returns the replies for an event.
    pub fn tell(&mut self, session: SessionId, event: &SessionEvent) -> Vec<Answer> {
        match event {
            SessionEvent::Text { text } => self.text(text),
            SessionEvent::Asked { speaker } => {
                let ended = self.end_of_words();
                self.speaker = Some(speaker.name.clone());
                ended
            }
            SessionEvent::Heard { event } => self.heard(event),
            SessionEvent::Durable { .. } => self.durable(event),
            SessionEvent::Held { message } => {
                self.usage = self.usage.plus(message.usage.unwrap_or_default());
                self.end_of_words()
            }
            SessionEvent::MayI { request } => vec![Answer::ToolRequest {
                session_id: session.to_string(),
                tool_id: request.call.id.clone(),
                tool: request.call.name.clone(),
                risk: request.risk.name().to_owned(),
                preview: request.preview.clone(),
                folder: request.folder.clone(),
            }],
            SessionEvent::Notice { tone, text, .. } => vec![notice(*tone, text.clone())],
            SessionEvent::Failed { speaker, error } => vec![Answer::Error(ErrorBody {
                kind: ErrorKind::Agent,
                message: format!("{} could not answer: {error}", speaker.display_name),
                hint: error.hint.clone(),
            })],
            SessionEvent::Over { .. } => self.end_of_words(),
            SessionEvent::Started { .. }
            | SessionEvent::Opened { .. }
            | SessionEvent::NotOpened { .. }
            | SessionEvent::Began
            | SessionEvent::Thought { .. }
            | SessionEvent::Printed { .. }
            | SessionEvent::Routed { .. }
            | SessionEvent::Pair { .. }
            | SessionEvent::Settled { .. }
            | SessionEvent::Moved { .. }
            | SessionEvent::Permissions { .. }
            | SessionEvent::Unsent { .. }
            | SessionEvent::Withdrawn { .. }
            | SessionEvent::Gone { .. } => Vec::new(),
        }
    }

    /// Returns the tokens used.
    pub fn usage(&self) -> Tokens {
        Tokens {
            input: self.usage.input,
            output: self.usage.output,
        }
    }

    fn text(&mut self, text: &str) -> Vec<Answer> {
        if text.is_empty() {
            return Vec::new();
        }
        let token = Answer::Token {
            text: text.to_owned(),
            speaker: self.speaker.clone(),
        };
        let blocks = self.blocks.push(text).into_iter().map(block);
        std::iter::once(token).chain(blocks).collect()
    }

    fn heard(&mut self, event: &AgentEvent) -> Vec<Answer> {
        match event {
            AgentEvent::ToolStarted(call) => {
                self.tools.insert(call.id.clone(), call.name.clone());
                Vec::new()
            }
            AgentEvent::ToolCompleted { id, output, ok } => vec![Answer::ToolResult {
                tool_id: id.clone(),
                tool: self.tools.remove(id),
                ok: *ok,
                output: output.clone(),
            }],
            AgentEvent::Remark(text) => vec![notice(Tone::Warning, text.clone())],
            AgentEvent::Retrying(retry) => vec![notice(
                Tone::Note,
                format!(
                    "tried again in {:.1} s ({} of {}): {}",
                    retry.wait.as_secs_f64(),
                    retry.attempt,
                    retry.of,
                    retry.reason
                ),
            )],
            _ => Vec::new(),
        }
    }

    fn durable(&mut self, event: &SessionEvent) -> Vec<Answer> {
        let entry = event.entry();
        let Some(message) = entry.as_ref().and_then(|entry| entry.message()) else {
            return Vec::new();
        };
        self.usage = self.usage.plus(message.usage.unwrap_or_default());
        match message.speaker.kind {
            SpeakerKind::Ai if message.role == Role::Assistant => self.end_of_words(),
            _ => Vec::new(),
        }
    }

    /// Ends a message: a block with an unclosed fence ends here.
    fn end_of_words(&mut self) -> Vec<Answer> {
        self.blocks.finish().map(block).into_iter().collect()
    }
}

fn notice(tone: Tone, text: String) -> Answer {
    Answer::Notice { tone, text }
}

fn block(block: crate::blocks::Block) -> Answer {
    Answer::Block {
        kind: block.kind().to_owned(),
        language: block.language,
        text: block.text,
    }
}

#[cfg(test)]
mod tests {
    use tertulia_core::entry::ToolCall;

    use super::*;

    fn session() -> SessionId {
        "01890000-0000-7000-8000-000000000001".parse().unwrap()
    }

    fn text(text: &str) -> SessionEvent {
        SessionEvent::Text { text: text.into() }
    }

    #[test]
    fn a_block_follows_its_last_token() {
        let mut telling = ReplyStream::default();
        let mut told = Vec::new();
        for piece in ["so:\n```", "sh\nls\n", "```\n", "done"] {
            told.extend(telling.tell(session(), &text(piece)));
        }
        let kinds: Vec<&str> = told
            .iter()
            .map(|answer| match answer {
                Answer::Token { text, .. } => text.as_str(),
                Answer::Block { text, .. } => text.as_str(),
                _ => "?",
            })
            .collect();
        assert_eq!(kinds, ["so:\n```", "sh\nls\n", "```\n", "ls\n", "done"]);
    }

    #[test]
    fn results_name_their_tools() {
        let mut telling = ReplyStream::default();
        let call = ToolCall {
            id: "1".into(),
            name: "shell".into(),
            arguments: serde_json::json!({}),
        };
        let heard = |event| SessionEvent::Heard { event };
        telling.tell(session(), &heard(AgentEvent::ToolStarted(call)));
        let completed = AgentEvent::ToolCompleted {
            id: "1".into(),
            output: "x".into(),
            ok: true,
        };
        let told = telling.tell(session(), &heard(completed));
        assert!(
            matches!(&told[..], [Answer::ToolResult { tool: Some(tool), .. }] if tool == "shell")
        );
    }
}
