//! Reads the model of a turn in the file that Codex keeps of a thread: its events do not name it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Depth of the folders of sessions: year, month, day.
const DEPTH: usize = 3;

/// Returns the model of the last turn of a thread. `home` is Codex's home folder.
pub(super) fn model(home: &Path, thread: &str) -> Option<String> {
    let file = find(&home.join("sessions"), &format!("-{thread}.jsonl"), DEPTH)?;
    let lines = BufReader::new(File::open(file).ok()?).lines();
    let turns = lines
        .map_while(Result::ok)
        .filter(|line| line.contains("\"turn_context\""));
    let models = turns.filter_map(|line| {
        let line: Value = serde_json::from_str(&line).ok()?;
        let is_turn = line["type"] == "turn_context";
        let model = line["payload"]["model"].as_str()?.to_owned();
        is_turn.then_some(model)
    });
    models.last()
}

/// Finds the file whose name ends with `end`, in the newest folder first.
fn find(folder: &Path, end: &str, depth: usize) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().rev().find_map(|path| {
        let name = path.file_name()?.to_str()?;
        match depth {
            0 => name.ends_with(end).then_some(path),
            _ => find(&path, end, depth - 1),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_the_last_turn_counts() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("sessions/2026/11/18");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(home.path().join("sessions/2026/11/19")).unwrap();
        let turn = |model: &str| {
            serde_json::json!({ "type": "turn_context", "payload": { "model": model } }).to_string()
        };
        let said = r#"{"type":"response_item","payload":{"text":"\"turn_context\"","model":"no"}}"#;
        let content = [
            &turn("gpt-5"),
            said,
            &turn("gpt-5.2"),
            said,
            "cut \"turn_context\"",
        ]
        .join("\n");
        fs::write(folder.join("rollout-2026-11-18T02-34-34-t1.jsonl"), content).unwrap();
        assert_eq!(model(home.path(), "t1").as_deref(), Some("gpt-5.2"));
        assert_eq!(model(home.path(), "t2"), None);
        assert_eq!(model(&home.path().join("none"), "t1"), None);
    }
}
