//! What a list of sessions keeps of each. A hundred thousand of them have to fit.

use jiff::Timestamp;
use tertulia_core::entry::{Kind, SpeakerKind};
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_core::session::SessionMeta;

use crate::project;
use crate::tui::columns::one_line;

/// The longest title, project or name that is kept, in bytes.
const MOST_BYTES: usize = 600;
/// How many members of a team are named.
const MOST_NAMES: usize = 6;

/// A session as a list shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionItem {
    /// Which session.
    pub id: SessionId,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// When somebody last spoke in it.
    pub updated_at: Timestamp,
    /// How many messages.
    pub messages: u64,
    /// What kind of conversation.
    pub kind: Kind,
    /// The members of a team, or the model.
    pub with: String,
    /// The project, as people know it.
    pub project: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whether a running program has it open.
    pub open: bool,
    /// Whether it was begun and nobody ever said or named anything.
    pub empty: bool,
}

impl SessionItem {
    /// What is kept of a row.
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

    /// The title, or a word that says that there is none.
    pub fn title_or_untitled(&self) -> &str {
        self.title.as_deref().unwrap_or("(untitled)")
    }
}

fn kept(text: &str) -> String {
    one_line(&text[..text.floor_char_boundary(MOST_BYTES)]).into_owned()
}

/// The members of a team, or the model that answers, or at least the agent.
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
