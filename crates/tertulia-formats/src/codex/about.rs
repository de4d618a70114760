//! What a thread's file says about the thread itself.

use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::PROGRAM;
use super::identity::ordinal_id;
use crate::importer::{count_at, text_at, time_at};
use tertulia_core::entry::{Imported, ImportedParent, ImportedRelation};
use tertulia_core::foreign::{Beginning, Foreign, ForeignFork};

/// Number of lines before the end of a shared beginning among which its last message is looked for.
const LOOK_BACK: u64 = 10_000;

/// Description of a thread.
#[derive(Debug, Default)]
pub(super) struct About {
    /// Id of the thread.
    pub(super) id: String,
    /// Id of its file, which differs from that of the thread after a revert.
    pub(super) file: String,
    /// Time of the first line.
    pub(super) began: Option<Timestamp>,
    /// The thread from which it was forked.
    pub(super) forked_from: Option<String>,
    /// The thread whose agent started it.
    pub(super) started_by: Option<String>,
    /// True if an agent started it.
    pub(super) is_subagent: bool,
    /// The part of another thread that it continues: the id of that thread's file, and the ordinal
    /// after its last line.
    base: Option<(String, u64)>,
    /// Ordinal of a subagent's first own line.
    pub(super) own_ordinal: Option<u64>,
    /// Working directory.
    pub(super) cwd: Option<String>,
    branch: Option<String>,
    version: Option<String>,
    /// The session of ours that was exported to the file.
    pub(super) exported_from: Option<String>,
}

impl About {
    /// Reads the first line of a file.
    pub(super) fn read(payload: &Value, time: Option<Timestamp>, path: &Path) -> About {
        let owned = |pointer: &str| text_at(payload, pointer).map(str::to_owned);
        let id = owned("/id").unwrap_or_default();
        let forked_from = owned("/forked_from_id");
        let spawned = ["/source/subagent", "/source/sub_agent"];
        let mut spawned = spawned.iter().filter_map(|at| payload.pointer(at));
        let spawn = spawned.next();
        let is_subagent = spawn.is_some()
            || text_at(payload, "/thread_source") == Some("subagent")
            || payload
                .get("parent_thread_id")
                .is_some_and(Value::is_string);
        let started_by = owned("/parent_thread_id").or_else(|| {
            let parent = text_at(spawn?, "/thread_spawn/parent_thread_id");
            parent.map(str::to_owned)
        });
        let base = match payload.get("history_base").filter(|base| base.is_object()) {
            Some(base) => text_at(base, "/thread_id")
                .map(|thread| (thread.to_owned(), count_at(base, "/end_ordinal_exclusive"))),
            None => {
                let end = payload.get("forked_from_ordinal_exclusive");
                forked_from.clone().zip(end.and_then(Value::as_u64))
            }
        };
        About {
            file: file_id(path, &id, base.as_ref(), forked_from.as_deref(), time),
            id,
            began: time_at(payload, "/timestamp").or(time),
            forked_from,
            started_by,
            is_subagent,
            base,
            own_ordinal: payload
                .get("subagent_history_start_ordinal")
                .and_then(Value::as_u64),
            cwd: owned("/cwd"),
            branch: owned("/git/branch"),
            version: owned("/cli_version"),
            exported_from: owned("/exported_from"),
        }
    }

    /// Describes a thread whose first line is damaged.
    pub(super) fn unknown(path: &Path) -> About {
        let name = path.file_stem().and_then(|name| name.to_str());
        let name = name.unwrap_or("unknown");
        About {
            file: file_id(path, name, None, None, None),
            id: name.to_owned(),
            ..About::default()
        }
    }

    /// Describes a session.
    pub(super) fn describe(&self, source: &mut Imported) {
        source.cwd.clone_from(&self.cwd);
        source.branch.clone_from(&self.branch);
        source.version.clone_from(&self.version);
        source.exported_from.clone_from(&self.exported_from);
        if source.parent.is_some() {
            return;
        }
        let (other, relation) = match self.is_subagent {
            true => (
                self.started_by.as_ref().or(self.forked_from.as_ref()),
                ImportedRelation::Subagent,
            ),
            false => (self.forked_from.as_ref(), ImportedRelation::Fork),
        };
        source.parent = other.map(|other| ImportedParent {
            original: other.clone(),
            relation,
        });
    }

    /// Returns the beginning that the thread shares with another one, if its file lacks it.
    pub(super) fn fork(&self) -> Option<ForeignFork> {
        let (file, end) = self.base.as_ref()?;
        let ordinals = end.saturating_sub(LOOK_BACK)..*end;
        let ids = ordinals.map(|ordinal| Foreign::entry_id(PROGRAM, &ordinal_id(file, ordinal)));
        Some(ForeignFork {
            from: Foreign::session_id(PROGRAM, file),
            beginning: Beginning::Referred(ids.collect()),
        })
    }
}

/// Returns the id of a file, which other files refer to. It is in the file's name; after a revert, a
/// thread has several files, and a file under another name needs an id that is not the thread's.
fn file_id(
    path: &Path,
    thread: &str,
    base: Option<&(String, u64)>,
    forked_from: Option<&str>,
    time: Option<Timestamp>,
) -> String {
    let name = path.file_stem().and_then(|name| name.to_str());
    let name = name.filter(|name| name.starts_with("rollout-"));
    let id = name.and_then(|name| name.get(name.len().saturating_sub(36)..));
    if let Some(id) = id.filter(|id| Uuid::try_parse(id).is_ok()) {
        return id.to_owned();
    }
    let is_reverted = base.is_some_and(|(file, _)| forked_from != Some(file));
    match time.filter(|_| is_reverted) {
        Some(time) => format!("{thread}@{time}"),
        None => thread.to_owned(),
    }
}
