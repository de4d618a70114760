//! What programs record of an answer in their own files, where their events lack it: Codex, Gemini
//! CLI and the adapters of the Agent Client Protocol name neither requests nor, some of them, models.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tertulia_core::entry::Usage;

/// Number of looks at a file that a running program may still be writing.
const LOOKS: u32 = 3;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Reads the files in which a program keeps its own sessions.
pub trait SessionFiles: Debug + Send + Sync {
    /// Returns what the program recorded in a session of its own since a moment. Blocks.
    fn recorded(&self, session: &str, since: Timestamp) -> Option<RecordedAnswers>;
}

/// Answers in a program's own session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedAnswers {
    /// Model of the last one.
    pub model: Option<String>,
    /// Requests with usage, each named as an import of the file names it.
    pub requests: Vec<String>,
    /// Usage of all of them.
    pub usage: Usage,
}

/// Reads what a program recorded of the answers since a moment.
pub(crate) async fn read(
    files: &Arc<dyn SessionFiles>,
    session: &str,
    since: Timestamp,
) -> Option<RecordedAnswers> {
    let (files, session) = (files.clone(), session.to_owned());
    let read = tokio::task::spawn_blocking(move || files.recorded(&session, since));
    read.await.ok().flatten()
}

/// Reads what a program that still runs recorded of an answer that used `usage`. It may not have
/// written all of it: then it is looked at again, a few times.
pub(crate) async fn read_from_running(
    files: &Arc<dyn SessionFiles>,
    session: &str,
    since: Timestamp,
    usage: Usage,
) -> Option<RecordedAnswers> {
    for _ in 1..LOOKS {
        let found = read(files, session, since).await;
        let is_complete = |found: &RecordedAnswers| found.usage.output >= usage.output;
        if found.as_ref().is_some_and(is_complete) {
            return found;
        }
        tokio::time::sleep(PAUSE).await;
    }
    read(files, session, since).await
}
