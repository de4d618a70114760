//! Offers entries that could not be saved as a file, so that a full disk loses no session.

use std::path::PathBuf;

use tertulia_engine::log_writer::LogWriter;

use crate::commands::export;
use crate::error::ErrorKind;
use crate::settings::quoted;
use crate::ui::Ui;

/// Writes held entries to a file for `tertulia import`. Returns the kind of failure if there are
/// any.
pub async fn offer(writer: &LogWriter, ui: &mut Ui) -> Option<ErrorKind> {
    if !writer.has_unsaved() {
        return None;
    }
    let kind = match writer.is_locked_out() {
        true => ErrorKind::Conflict,
        false => ErrorKind::Failed,
    };
    let lines = match writer.unsaved_log().await {
        Ok(lines) => lines,
        Err(error) => {
            ui.warn(&format!(
                "what was not saved cannot be put together: {error}"
            ));
            return Some(kind);
        }
    };
    let content: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let short = writer.id().short();
    for folder in [PathBuf::from("."), std::env::temp_dir()] {
        // An earlier file holds other entries and is not replaced.
        for number in 1..100 {
            let file = folder.join(match number {
                1 => format!("tertulia-unsaved-{short}.jsonl"),
                _ => format!("tertulia-unsaved-{short}-{number}.jsonl"),
            });
            if file.exists() {
                continue;
            }
            // If one name cannot be written in this folder, no other can.
            if export::write(&file, content.as_bytes(), false).is_err() {
                break;
            }
            let shown = std::path::absolute(&file).unwrap_or(file);
            let words = format!(
                "what could not be saved is in {}; once the store can be written again, `tertulia import {}` adds it",
                shown.display(),
                quoted(&shown.display().to_string())
            );
            ui.warn(&ui.invocation.complete(&words));
            return Some(kind);
        }
    }
    ui.warn("no file can be written either; this is the whole session:");
    // Not to standard output, where a line of a log would read as the event of a saved message.
    ui.last_resort(&content);
    Some(kind)
}
