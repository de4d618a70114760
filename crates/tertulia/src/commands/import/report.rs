//! Report of an import as a whole.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::others::Others;
use super::outcome::{Outcome, skipped};
use super::sources::{self, Source};
use super::{ImportArgs, Outcomes};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::show;
use crate::ui::{Ui, harmless};

/// Reports what became of each file.
pub fn report(
    sources: &[Source],
    outcomes: Outcomes,
    others: &Others,
    args: &ImportArgs,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let mut results = Vec::new();
    let mut failures = Vec::new();
    let mut unchanged = 0_u64;
    for (source, outcomes) in sources.iter().zip(outcomes) {
        let path = source.path.display();
        for outcome in outcomes {
            match outcome {
                Ok(outcome) => {
                    unchanged += u64::from(outcome.is_quiet());
                    tell(&path.to_string(), &outcome, ui);
                    results.push(outcome.object);
                }
                Err(error) => {
                    results.push(json!({ "path": path.to_string(), "error": error.words() }));
                    failures.push(error);
                }
            }
        }
    }
    if unchanged > 0 && !ui.json {
        let sessions = show::count(unchanged, "session");
        ui.line(&format!("{sessions} imported before, nothing new"));
    }
    if let Some(skipped) = skipped(&results).filter(|_| !ui.json) {
        ui.line(&harmless(&skipped));
    }
    others.tell(ui);
    if belongs_nowhere(&results) && !args.dry_run {
        ui.advise("Sessions without a recorded folder belong to no project: `tertulia list --all` lists them");
    }
    if ui.json {
        let missing: Vec<String> = paths(&others.missing);
        ui.document(&json!({
            "imported": results, "others": others.files.len(), "missing": missing, "dry_run": args.dry_run,
        }));
    }
    match together(failures) {
        Some(error) => Err(error),
        None if results.is_empty() => Err(nothing(sources, others)),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn paths(paths: &[PathBuf]) -> Vec<String> {
    let paths = paths.iter().map(|path| path.display().to_string());
    paths.collect()
}

/// Error for an import that found no session: that does not count as success.
fn nothing(sources: &[Source], others: &Others) -> CommandError {
    let message = match (sources.len(), others.indexed) {
        (0, _) => "nothing to import: there is no .json or .jsonl file".to_owned(),
        (_, true) => {
            "nothing to import: none of the sessions that the index lists is there".to_owned()
        }
        (1, _) => "nothing to import: the only file is not a session".to_owned(),
        (count, _) => format!("nothing to import: none of the {count} files is a session"),
    };
    CommandError::new(ErrorKind::Invalid, message).hint(sources::supported())
}

fn belongs_nowhere(results: &[Value]) -> bool {
    results.iter().any(|object| {
        object["result"] == "created" && object.get("kept").is_some() && object["project"].is_null()
    })
}

/// Returns a single failure unchanged and combines several into one that lists them all.
fn together(mut failures: Vec<CommandError>) -> Option<CommandError> {
    if failures.len() < 2 {
        return failures.pop();
    }
    let kind = failures.first()?.kind();
    let lines: String = failures
        .iter()
        .map(|failure| format!("\n{}", failure.words()))
        .collect();
    Some(CommandError::new(
        kind,
        format!(
            "{} not imported:{lines}",
            show::count(failures.len() as u64, "file")
        ),
    ))
}

fn tell(path: &str, outcome: &Outcome, ui: &mut Ui) {
    let line = format!("{path}: {}", outcome.words);
    if outcome.is_quiet() || outcome.object["result"] == "earlier" {
        ui.detail(&line);
    } else if !ui.json {
        ui.line(&harmless(&line));
        for detail in &outcome.details {
            ui.line(&harmless(&format!("  {detail}")));
        }
    }
}
