//! Message and token counts by speaker.

use serde::{Deserialize, Serialize};

use crate::entry::{Message, Speaker, SpeakerKind, Usage};

/// A person or agent with its counts. Messages of the system and of tools are not counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spoke {
    /// Stable id.
    pub id: String,
    /// Name used in commands and markers, as last used.
    pub name: String,
    /// Name shown to users, as last used.
    pub display_name: String,
    /// Human or AI.
    pub kind: SpeakerKind,
    /// Number of messages.
    pub messages: u64,
    /// Total tokens.
    #[serde(default, skip_serializing_if = "costs_nothing")]
    pub tokens: Usage,
    /// Model of the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Spoke {
    fn silent(speaker: &Speaker) -> Spoke {
        Spoke {
            id: speaker.id.clone(),
            name: speaker.name.clone(),
            display_name: speaker.display_name.clone(),
            kind: speaker.kind,
            messages: 0,
            tokens: Usage::default(),
            model: None,
        }
    }
}

fn costs_nothing(tokens: &Usage) -> bool {
    *tokens == Usage::default()
}

/// Counts a message for its speaker.
pub(super) fn count(speakers: &mut Vec<Spoke>, message: &Message) {
    let speaker = &message.speaker;
    if !matches!(speaker.kind, SpeakerKind::Human | SpeakerKind::Ai) {
        return;
    }
    let known = speakers
        .iter()
        .position(|spoke| spoke.id == speaker.id && spoke.kind == speaker.kind);
    let at = known.unwrap_or_else(|| {
        speakers.push(Spoke::silent(speaker));
        speakers.len() - 1
    });
    let spoke = &mut speakers[at];
    spoke.name.clone_from(&speaker.name);
    spoke.display_name.clone_from(&speaker.display_name);
    spoke.messages += 1;
    spoke.tokens = spoke.tokens.plus(message.usage.unwrap_or_default());
    if message.model.is_some() {
        spoke.model.clone_from(&message.model);
    }
}
