use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use tertulia_core::entry::{Entry, Head, Kind};
use tertulia_core::id::Seq;
use tertulia_core::query::Row;
use tertulia_core::session::Log;
use tertulia_formats::json;

use crate::args::GlobalArgs;
use crate::error::CommandResult;
use crate::moment::clock;
use crate::open::{self, Workspace};
use crate::show;
use crate::ui::{BOLD, DIM, Ui, fit, harmless};

/// Show the transcript of a session
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia show @                   the newest session of this project\n  \
    tertulia show 5f3a9c1e --last 4   its last four messages\n  \
    tertulia show 5f3a:12             only entry 12\n  \
    tertulia show @ --entries         everything that happened to it, titles and tags too\n  \
    tertulia show @ --raw | jq .      the log as it is at rest")]
pub struct ShowArgs {
    /// The session, or an entry of it: id, part of it, title, @, REF:N
    #[arg(value_name = "REF", default_value = "@")]
    reference: String,
    /// Only the last messages
    #[arg(short = 'n', long, value_name = "N")]
    last: Option<usize>,
    /// Everything that happened, one line each
    #[arg(long, conflicts_with = "raw")]
    entries: bool,
    /// The log's own lines
    #[arg(long)]
    raw: bool,
}

/// Target size of a page of the log, in bytes; below, its maximum number of entries.
const PAGE_BYTES: usize = 2_000_000;
const PAGE_ENTRIES: usize = 64;

pub fn run(args: &ShowArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::reader(global, ui)?;
    let (row, seq) = workspace.find_place(&args.reference)?;
    let row = workspace.unlocked(row)?;
    let mut row = workspace.as_read(row)?;
    if ui.json {
        // The entries stay as they are written. Ignore errors: what cannot be read is told below.
        let _ = workspace.wait(workspace.sessions.name_parents(&mut row.meta));
    }
    if ui.json && !args.raw && seq.is_none() && args.last.is_none() {
        return stream(&workspace, &row, ui);
    }
    let mut log = match (seq, args.last) {
        (Some(seq), _) => workspace.wait(workspace.sessions.load_one(&row.meta, seq))?,
        (None, Some(count)) => {
            workspace.wait(workspace.sessions.last_messages(&row.meta, count))?
        }
        (None, None) => workspace.wait(workspace.sessions.load(row.meta.id))?,
    };
    match seq {
        Some(seq) => log.entries.retain(|entry| entry.seq == seq),
        None => {
            workspace.with_unfinished(&row, &mut log)?;
            if let Some(count) = args.last {
                log.keep_last_messages(count);
            }
        }
    }
    for line in show::damage(&log.damage) {
        ui.warn(&format!("damaged: {line}"));
    }
    if args.raw {
        for entry in &log.entries {
            ui.line(entry.line());
        }
    } else if ui.json {
        ui.document(&Value::Object(json::transcript(&row, &log)));
    } else if args.entries {
        name_origins(&workspace, &mut row, &mut log)?;
        entries(&workspace, &log, ui);
    } else {
        name_origins(&workspace, &mut row, &mut log)?;
        transcript(&workspace, &row, &log, ui);
    }
    Ok(ExitCode::SUCCESS)
}

/// Other sessions are called what this store calls them: a branch that came from another machine has
/// another id there.
fn name_origins(workspace: &Workspace, row: &mut Row, log: &mut Log) -> CommandResult<()> {
    let named = workspace
        .sessions
        .name_origins(&mut row.meta, &mut log.entries);
    Ok(workspace.wait(named)?)
}

/// Writes the JSON document of a session page by page: a long session is never in memory as a
/// whole.
fn stream(workspace: &Workspace, row: &Row, ui: &mut Ui) -> CommandResult<ExitCode> {
    let head = pretty(&Value::Object(json::with_speakers(row)), 0);
    ui.data(head.trim_end_matches("\n}"));
    ui.data(",\n  \"entries\": [");
    let mut damage = Vec::new();
    let (mut after, mut before) = (Seq::START, Some(Head::START));
    let mut first = true;
    // A tool call shows its outcome only if the result is on the same page; the result always does.
    let mut write = |entries: &[Entry], ui: &mut Ui| {
        for entry in json::entries(entries) {
            let separator = if std::mem::take(&mut first) { "" } else { "," };
            let text = pretty(&entry, 4);
            ui.data(&format!("{separator}\n    {text}"));
        }
    };
    let (id, mut count) = (row.meta.id, 8);
    while let Some((log, last)) =
        workspace.wait(workspace.sessions.load_next(id, after, before, count))?
    {
        let bytes: usize = log.entries.iter().map(|entry| entry.line().len()).sum();
        count = (count * PAGE_BYTES / bytes.max(1)).clamp(1, PAGE_ENTRIES);
        write(&log.entries, ui);
        before = log
            .entries
            .last()
            .filter(|entry| entry.seq == last)
            .map(Entry::head);
        after = last;
        damage.extend(log.damage);
    }
    let mut end = Log::default();
    workspace.with_unfinished(row, &mut end)?;
    write(&end.entries, ui);
    ui.data(if first { "]" } else { "\n  ]" });
    for line in show::damage(&damage) {
        ui.warn(&format!("damaged: {line}"));
    }
    if !damage.is_empty() {
        ui.data(&format!(
            ",\n  \"damage\": {}",
            pretty(&serde_json::json!(damage), 2)
        ));
    }
    ui.data("\n}\n");
    Ok(ExitCode::SUCCESS)
}

/// Formats JSON for output at the given indentation.
fn pretty(value: &Value, indent: usize) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    // Line feeds inside strings are escaped, so these are all layout.
    text.replace('\n', &format!("\n{}", " ".repeat(indent)))
}

fn entries(workspace: &Workspace, log: &Log, ui: &mut Ui) {
    let now = workspace.sessions.clock().now();
    let rows: Vec<Vec<String>> = log
        .entries
        .iter()
        .map(|entry| {
            vec![
                entry.seq.to_string(),
                clock(entry.at, now),
                show::entry_kind(&entry.body).to_owned(),
                fit(&show::entry_line(entry), 100),
            ]
        })
        .collect();
    ui.table(&["SEQ", "AT", "TYPE", "WHAT"], &rows);
}

fn transcript(workspace: &Workspace, row: &Row, log: &Log, ui: &mut Ui) {
    let now = workspace.sessions.clock().now();
    let meta = &row.meta;
    let title = ui.styled(BOLD, &harmless(meta.title_or_untitled()));
    let mut facts = format!(
        "{} · {} · {}",
        meta.id.short(),
        meta.kind.name(),
        show::messages(meta.messages)
    );
    if let Some(parent) = &meta.parent {
        let (relation, id) = (parent.relation.name(), parent.id.short());
        facts.push_str(&match parent.place() {
            Some(seq) => format!(" · {relation} of {id}:{seq}"),
            None => format!(" · {relation} of {id}"),
        });
    }
    if let Some(merged) = &meta.merged {
        facts.push_str(&format!(" and {}:{}", merged.id.short(), merged.seq));
    }
    let mut text = format!("{title}\n{}\n", ui.styled(DIM, &facts));
    if meta.kind == Kind::Team {
        text.push_str(&ui.styled(DIM, &show::statistics(meta)));
        text.push('\n');
    }
    for entry in &log.entries {
        match entry.message() {
            Some(message) => {
                text.push('\n');
                text.push_str(&show::message(ui, entry, message, meta.kind, now));
            }
            None if matches!(
                entry.body.kind(),
                "failed" | "lost" | "repaired" | "compacted"
            ) =>
            {
                text.push('\n');
                text.push_str(&ui.styled(DIM, &show::entry_line(entry)));
                text.push('\n');
            }
            None => text.extend(show::command(ui, entry, now)),
        }
    }
    ui.data(&text);
}
