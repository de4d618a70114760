//! Which sessions are compressed, and compressing them.

use std::collections::HashMap;

use jiff::SignedDuration;
use tertulia_core::id::SessionId;
use tertulia_core::query::{Filter, Row, Trash};
use tertulia_core::sizes::LogSize;
use tertulia_store::{Compressed, Progress};

use super::plan::everything;
use crate::error::CommandResult;
use crate::open::Workspace;
use crate::show;

/// Smaller logs are left as they are: there is little to gain.
const SMALLEST: u64 = 4096;

/// A session to compress.
pub struct Candidate {
    pub row: Row,
    /// Bytes of its own log.
    pub bytes: u64,
}

/// Returns the sessions without a message for so long that are not compressed yet, and that no program
/// has open.
pub fn candidates(
    workspace: &Workspace,
    older_than: SignedDuration,
) -> CommandResult<Vec<Candidate>> {
    let now = workspace.sessions.clock().now();
    let old = Filter {
        until: now.checked_sub(older_than).ok(),
        trash: Trash::With,
        ..Filter::default()
    };
    let rows = everything(workspace, &old)?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let logs = workspace.wait(workspace.sessions.store().sizes())?;
    let own: HashMap<SessionId, u64> = logs
        .iter()
        .filter(|log| !log.is_compressed())
        .filter_map(|log| Some((log.session.as_ref()?.id, own_bytes(log))))
        .collect();
    let candidate = |row: Row| {
        let bytes = *own.get(&row.meta.id)?;
        (bytes >= SMALLEST && !row.open).then_some(Candidate { row, bytes })
    };
    Ok(rows.into_iter().filter_map(candidate).collect())
}

fn own_bytes(log: &LogSize) -> u64 {
    log.end.saturating_sub(log.start)
}

/// Compresses sessions.
pub fn compress(
    workspace: &Workspace,
    candidates: &[Candidate],
    progress: &Progress,
) -> CommandResult<Compressed> {
    let ids: Vec<SessionId> = candidates.iter().map(|it| it.row.meta.id).collect();
    Ok(workspace.wait(workspace.sessions.store().compress(&ids, progress))?)
}

/// Says what was done.
pub fn words(done: &Compressed) -> String {
    format!(
        "compressed {}: {} became {}",
        show::count(done.sessions, "session"),
        show::bytes(done.before),
        show::bytes(done.after)
    )
}
