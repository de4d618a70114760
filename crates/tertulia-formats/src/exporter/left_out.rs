//! Content that an export leaves out, counted by kind.

use serde::Serialize;
use tertulia_core::entry::Body;

/// Content of a session that a format has no place for, in order of first occurrence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut(Vec<LeftOutKind>);

/// Content of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct LeftOutKind {
    what: String,
    count: usize,
}

impl LeftOut {
    /// Counts one thing that the export lacks.
    pub fn count(&mut self, what: &str) {
        match self.0.iter_mut().find(|kind| kind.what == what) {
            Some(kind) => kind.count += 1,
            None => self.0.push(LeftOutKind {
                what: what.to_owned(),
                count: 1,
            }),
        }
    }

    /// Counts an entry that is no message. Entries that only tell how the session was made are not
    /// counted: an export is another session.
    pub fn count_entry(&mut self, body: &Body) {
        let what = match body {
            Body::Failed(_) => "failures of agents",
            Body::Compacted(_) => "compaction summaries",
            Body::Tasked(_) => "team tasks",
            Body::Thought(_) => "reasoning",
            Body::Lost(_) => "lost entries",
            Body::Shell(_) => "shell commands of the user",
            Body::Paired(_)
            | Body::Budgeted(_)
            | Body::Seated(_)
            | Body::Linked(_)
            | Body::Switched(_)
            | Body::Terms(_) => "settings of agents",
            Body::Sealed(_) => "sealed entries",
            Body::Unknown(_) => "entries of a newer version",
            Body::Created(_)
            | Body::Forked(_)
            | Body::Message(_)
            | Body::Renamed(_)
            | Body::Tagged(_)
            | Body::Trashed(_)
            | Body::Restored(_)
            | Body::Undone(_)
            | Body::Repaired(_)
            | Body::Imported(_)
            | Body::Merged(_)
            | Body::Replayed(_)
            | Body::Keyed(_)
            | Body::Environment(_)
            | Body::ShellOutput(_) => return,
        };
        self.count(what);
    }

    /// Returns true if the export has everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the kinds with their counts on one line, for people.
    pub fn listed(&self) -> String {
        let kinds: Vec<String> = self
            .0
            .iter()
            .map(|kind| format!("{} ({})", kind.what, kind.count))
            .collect();
        kinds.join(", ")
    }

    /// Returns the kinds with their counts as JSON, for scripts.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!(self.0)
    }
}
