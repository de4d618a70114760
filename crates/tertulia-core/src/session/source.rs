//! Origin of an imported session, as part of the metadata.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Parent, SessionMeta};
use crate::entry::Imported;

/// The session of another program that a session was imported from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    // Must be the first field: `row_fragment` relies on the serialised order.
    /// Id in that program; also accepted as a reference to this session.
    pub id: String,
    /// The program, as named by `import --from`.
    pub program: String,
    /// When the program last saved the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_at: Option<Timestamp>,
    /// True if that session was exported from one of ours: its usage is not its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exported: bool,
}

impl Source {
    /// Returns a text contained in the serialised row of every session with this original id.
    /// Stores use it to preselect rows without parsing them.
    pub fn row_fragment(id: &str) -> String {
        let id = serde_json::to_string(id).unwrap_or_default();
        format!("\"source\":{{\"id\":{id},")
    }
}

impl SessionMeta {
    pub(super) fn import(&mut self, imported: &Imported) {
        self.source = Some(Source {
            id: imported.original.clone(),
            program: imported.program.clone(),
            saved_at: imported.saved_at,
            exported: imported.exported_from.is_some(),
        });
        // A fork inside a subagent is a fork.
        if self.parent.is_none() {
            let parent = Parent::of_subagent(imported);
            self.parent = parent.filter(|parent| parent.id != self.id);
        }
        if let Some(spoken_at) = imported.spoken_at {
            self.updated_at = self.updated_at.max(spoken_at);
        }
        self.tags.extend(imported.tags.iter().cloned());
        self.tags.sort();
        self.tags.dedup();
        // A session keeps the project in which it was created.
        if self.project.is_none() {
            self.project.clone_from(&imported.project);
            self.project_ids.clone_from(&imported.project_ids);
        }
        if self.cwd.is_none() {
            self.cwd.clone_from(&imported.cwd);
        }
    }
}
