//! Row of the session list, kept small because there may be a hundred thousand.

use jiff::Timestamp;
use tertulia_core::entry::{Kind, SpeakerKind};
use tertulia_core::id::SessionId;
use tertulia_core::project;
use tertulia_core::query::Row;
use tertulia_core::session::SessionMeta;

use crate::text::one_line;

/// Maximum length of a title, project or name in bytes.
const MOST_BYTES: usize = 600;
/// Maximum number of team members named.
const MOST_NAMES: usize = 6;

/// A session as shown in the list.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionItem {
    /// Session id.
    pub id: SessionId,
    /// Title, if any.
    pub title: Option<String>,
    /// Time of the last message.
    pub updated_at: Timestamp,
    /// Number of messages.
    pub messages: u64,
    /// Kind of conversation.
    pub kind: Kind,
    /// Members of the team, or the model.
    pub with: String,
    /// Display name of the project.
    pub project: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Whether a running process has it open.
    pub open: bool,
    /// Whether it has neither a message nor a title given by a user.
    pub empty: bool,
}

impl SessionItem {
    /// Creates an item from a store row.
    pub fn of(row: &Row) -> SessionItem {
        let meta = &row.meta;
        SessionItem {
            id: meta.id,
            title: meta.title.as_deref().map(kept),
            updated_at: meta.updated_at,
            messages: meta.messages,
            kind: meta.kind,
            with: kept(&with(meta)),
            project: kept(&project::name_of(meta)),
            tags: meta.tags.iter().map(|tag| kept(tag)).collect(),
            open: row.open,
            empty: meta.messages == 0 && !meta.titled,
        }
    }

    /// Last part of the project's name: the folder, or the repository.
    pub fn project_name(&self) -> &str {
        let name = self.project.trim_end_matches('/');
        name.rsplit('/').next().unwrap_or(name)
    }

    /// Title, or a placeholder.
    pub fn title_or_untitled(&self) -> &str {
        self.title.as_deref().unwrap_or("(untitled)")
    }
}

fn kept(text: &str) -> String {
    one_line(&text[..text.floor_char_boundary(MOST_BYTES)]).into_owned()
}

/// Members of the team, or the model, or else the agent.
fn with(meta: &SessionMeta) -> String {
    if let Some(team) = &meta.team {
        let mut names: Vec<&str> = meta
            .speakers
            .iter()
            .take(MOST_NAMES)
            .map(|spoke| spoke.display_name.as_str())
            .collect();
        if meta.speakers.len() > MOST_NAMES {
            names.push("…");
        }
        return match names.is_empty() {
            true => team.clone(),
            false => format!("{team}: {}", names.join(", ")),
        };
    }
    let agent = || {
        let mut speakers = meta.speakers.iter().rev();
        let agent = speakers.find(|spoke| spoke.kind == SpeakerKind::Ai);
        agent.map(|spoke| spoke.display_name.as_str())
    };
    let model = meta.model.as_deref();
    model.or_else(agent).unwrap_or_default().to_owned()
}
