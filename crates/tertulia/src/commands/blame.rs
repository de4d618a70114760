use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tertulia_core::blame::{FileEdit, authors, edits_of, ranges};
use tertulia_core::entry::{Role, ToolOutcome};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, HitFilter, Page, SearchQuery, Trash};
use tertulia_core::search_text::SearchTerms;
use tertulia_core::session::SessionMeta;
use tertulia_store::{Extent, FileTouched, Ledger, Progress};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment::ago;
use crate::open::{self, Workspace};
use crate::show::count;
use crate::ui::{BOLD, DIM, Ui, harmless};

/// How long to wait for another process that writes the ledger.
const PATIENCE: Duration = Duration::from_secs(2);
/// Largest file whose lines are looked up.
const LARGEST: u64 = 20_000_000;
/// Maximum number of commits that are searched for.
const COMMITS: usize = 50;
/// Number of digits by which git names a commit in its output.
const SHORT: usize = 7;

/// Show which sessions and messages changed the lines of a file
///
/// It knows tool calls that wrote or patched the file, and commits that a session's commands printed. Lines that
/// were changed in another way, by a person or by a script, are listed as not known.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia blame src/main.rs          every line\n  \
    tertulia blame src/main.rs:40       one line\n  \
    tertulia blame src/main.rs:40-60 --json")]
pub struct BlameArgs {
    /// The file, with a line or lines of it
    #[arg(value_name = "FILE[:FROM[-TO]]")]
    place: String,
}

/// Lines of a file to look up, counted from 1, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lines {
    from: usize,
    to: usize,
}

/// Where lines come from.
struct Change {
    meta: SessionMeta,
    seq: Seq,
    at: jiff::Timestamp,
    by: String,
    model: Option<String>,
    tool: String,
    commit: Option<String>,
    lines: Vec<usize>,
}

/// A recorded edit of the file, with the call that made it.
struct Recorded {
    meta: SessionMeta,
    touched: FileTouched,
    by: String,
    model: Option<String>,
}

pub fn run(args: &BlameArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::reader(global, ui)?;
    let (path, lines) = place(&args.place)?;
    let content = read(&path)?;
    let all: Vec<&str> = content.lines().collect();
    let lines = lines.unwrap_or(Lines {
        from: 1,
        to: all.len(),
    });
    if lines.to > all.len() || lines.from == 0 || lines.from > lines.to.max(1) {
        let words = match lines.from == 0 || lines.from > lines.to {
            true => "lines are counted from 1, and FROM comes before TO".to_owned(),
            false => format!("{} has {}", path.display(), count(all.len() as u64, "line")),
        };
        return Err(CommandError::new(ErrorKind::Usage, words).hint("name lines as FILE:FROM-TO"));
    }
    let (recorded, edits) = recorded(&workspace, &path, ui)?;
    let found = authors(&all, &edits);
    let mut by_edit: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut unknown = Vec::new();
    for number in lines.from..=lines.to {
        match found[number - 1] {
            Some(edit) => by_edit.entry(edit).or_default().push(number),
            None => unknown.push(number),
        }
    }
    let mut changes = Vec::new();
    for (edit, lines) in by_edit {
        changes.push(change(&recorded[edit], lines));
    }
    let committed = committed(&workspace, &path, &mut unknown)?;
    changes.extend(committed);
    changes.sort_by_key(|change| std::cmp::Reverse((change.at, change.seq)));
    let sealed = sealed_sessions(&workspace)?;
    tell(&workspace, &path, lines, &changes, &unknown, sealed, ui);
    Ok(ExitCode::SUCCESS)
}

/// Counts the sealed sessions, whose tool calls are in no ledger.
fn sealed_sessions(workspace: &Workspace) -> CommandResult<usize> {
    let filter = Filter {
        sealed: true,
        trash: Trash::With,
        ..Filter::default()
    };
    let page = Page::first(usize::MAX >> 1);
    let listing = workspace.wait(workspace.sessions.stored().list(&filter, &page))?;
    Ok(listing.rows.len())
}

/// Splits the argument into the file and its lines. A file whose name ends like lines is a file.
fn place(text: &str) -> CommandResult<(PathBuf, Option<Lines>)> {
    if let Some((file, lines)) = text.rsplit_once(':')
        && !Path::new(text).exists()
        && let Some(lines) = lines_of(lines)
    {
        return Ok((absolute(Path::new(file))?, Some(lines)));
    }
    Ok((absolute(Path::new(text))?, None))
}

fn lines_of(text: &str) -> Option<Lines> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    Some(Lines {
        from: from.parse().ok()?,
        to: to.parse().ok()?,
    })
}

fn absolute(path: &Path) -> CommandResult<PathBuf> {
    fs::canonicalize(path).map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Failed,
        };
        CommandError::new(kind, format!("{} cannot be read", path.display())).because(error)
    })
}

fn read(path: &Path) -> CommandResult<String> {
    let failed = |error| {
        let message = format!("{} cannot be read", path.display());
        CommandError::new(ErrorKind::Failed, message).because(error)
    };
    let size = fs::metadata(path).map_err(failed)?;
    if !size.is_file() || size.len() > LARGEST {
        let limit = LARGEST / 1_000_000;
        let message = format!("{} is not a file of at most {limit} MB", path.display());
        return Err(CommandError::new(ErrorKind::Invalid, message));
    }
    let bytes = fs::read(path).map_err(failed)?;
    String::from_utf8(bytes).map_err(|_| {
        let message = format!("{} is not text", path.display());
        CommandError::new(ErrorKind::Invalid, message)
    })
}

/// Returns the recorded edits of the file, oldest first, with their calls.
fn recorded(
    workspace: &Workspace,
    path: &Path,
    ui: &Ui,
) -> CommandResult<(Vec<Recorded>, Vec<FileEdit>)> {
    let store = workspace.sessions.stored();
    let mut ledger = match Ledger::of(store, PATIENCE) {
        Ok(ledger) => ledger,
        Err(_) => Ledger::in_memory()?,
    };
    if workspace
        .wait(ledger.catch_up(store, Extent::All, &ui.progress()))
        .is_err()
    {
        ledger = Ledger::in_memory()?;
        workspace.wait(ledger.catch_up(store, Extent::All, &ui.progress()))?;
    }
    let path = path.display().to_string();
    let mut touched = ledger.touched(&path)?;
    touched.reverse();
    let (mut calls, mut edits) = (Vec::new(), Vec::new());
    let failed = [ToolOutcome::Failed, ToolOutcome::Denied];
    for touched in touched {
        if !touched.written || touched.outcome.is_some_and(|how| failed.contains(&how)) {
            continue;
        }
        let Ok(row) = workspace.wait(workspace.sessions.row(touched.session)) else {
            continue;
        };
        let log = workspace.wait(workspace.sessions.load_one(&row.meta, touched.seq))?;
        let Some(message) = log
            .entries
            .iter()
            .find(|entry| entry.seq == touched.seq)
            .and_then(|entry| entry.message())
        else {
            continue;
        };
        let named = message.tool_calls.iter();
        for edit in named
            .filter(|call| call.name == touched.tool)
            .flat_map(|call| edits_of(call, &path))
        {
            calls.push(Recorded {
                meta: row.meta.clone(),
                touched: touched.clone(),
                by: message.speaker.display_name.clone(),
                model: message.model.clone(),
            });
            edits.push(edit);
        }
    }
    Ok((calls, edits))
}

fn change(recorded: &Recorded, lines: Vec<usize>) -> Change {
    let touched = &recorded.touched;
    Change {
        meta: recorded.meta.clone(),
        seq: touched.seq,
        at: touched.at,
        by: recorded.by.clone(),
        model: recorded.model.clone(),
        tool: touched.tool.clone(),
        commit: None,
        lines,
    }
}

/// Finds sessions in whose commands the commits of unknown lines were made, and removes those lines.
fn committed(
    workspace: &Workspace,
    path: &Path,
    unknown: &mut Vec<usize>,
) -> CommandResult<Vec<Change>> {
    let mut by_commit: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let commits = commits(path, unknown);
    for number in &*unknown {
        if let Some(commit) = commits.get(number) {
            by_commit.entry(commit.clone()).or_default().push(*number);
        }
    }
    let mut changes = Vec::new();
    for (commit, lines) in by_commit.into_iter().take(COMMITS) {
        if let Some((id, seq)) = printed(workspace, &commit)? {
            let row = workspace.wait(workspace.sessions.row(id))?;
            let log = workspace.wait(workspace.sessions.load_one(&row.meta, seq))?;
            let Some(entry) = log.entries.iter().find(|entry| entry.seq == seq) else {
                continue;
            };
            unknown.retain(|number| !lines.contains(number));
            changes.push(Change {
                by: entry
                    .message()
                    .map_or_else(String::new, |message| message.speaker.display_name.clone()),
                model: None,
                tool: "git".to_owned(),
                commit: Some(commit),
                meta: row.meta,
                seq,
                at: entry.at,
                lines,
            });
        }
    }
    Ok(changes)
}

/// Asks git for the commits of lines. Without git, or outside of a repository, there are none.
fn commits(path: &Path, lines: &[usize]) -> HashMap<usize, String> {
    let (Some(folder), Some(name), false) = (path.parent(), path.file_name(), lines.is_empty())
    else {
        return HashMap::new();
    };
    // Nothing that the repository's own settings name is run.
    let output = Command::new("git")
        .args(["-c", "core.fsmonitor=false", "--no-optional-locks"])
        .args(["blame", "--no-textconv", "--porcelain", "--"])
        .arg(name)
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return HashMap::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    // Each line begins with the commit, the line number in it, and the line number in the file.
    let heads = text.lines().filter(|line| !line.starts_with('\t'));
    heads
        .filter_map(|line| {
            let mut words = line.split(' ');
            let commit = words.next().filter(|word| {
                word.len() >= 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
            })?;
            let number = words.nth(1)?.parse().ok()?;
            let is_made = commit.bytes().any(|byte| byte != b'0');
            is_made.then(|| (number, commit.to_owned()))
        })
        .collect()
}

/// Returns the oldest entry in which a tool printed a commit's short name.
fn printed(workspace: &Workspace, commit: &str) -> CommandResult<Option<(SessionId, Seq)>> {
    let Some(short) = commit.get(..SHORT) else {
        return Ok(None);
    };
    let query = SearchQuery {
        words: SearchTerms::parse(&format!("{short}*"))?,
        filter: Filter {
            trash: Trash::With,
            ..Filter::default()
        },
        said: HitFilter {
            role: Some(Role::Tool),
            ..HitFilter::default()
        },
        limit: 100,
    };
    let progress = Progress::unseen().within(PATIENCE);
    let hits = workspace.wait(workspace.sessions.store().search(&query, &progress))?;
    let oldest = hits.hits.into_iter().min_by_key(|hit| (hit.at, hit.seq));
    Ok(oldest.map(|hit| (hit.session, hit.seq)))
}

fn tell(
    workspace: &Workspace,
    path: &Path,
    lines: Lines,
    changes: &[Change],
    unknown: &[usize],
    sealed: usize,
    ui: &mut Ui,
) {
    let unknown = ranges(unknown.iter().copied());
    if ui.json {
        let changes: Vec<Value> = changes.iter().map(object).collect();
        return ui.document(&json!({
            "file": path.display().to_string(),
            "lines": { "from": lines.from, "to": lines.to },
            "changes": changes,
            "unknown": unknown,
            "sealed": sealed,
        }));
    }
    let now = workspace.sessions.clock().now();
    for change in changes {
        let title = change.meta.title.as_deref().unwrap_or("(no title)");
        let place = format!("{}:{}", change.meta.id.short(), change.seq);
        let how = match &change.commit {
            Some(commit) => format!("commit {}", &commit[..SHORT]),
            None => change.tool.clone(),
        };
        let place = ui.styled(BOLD, &place);
        ui.line(&format!(
            "{place}  {}  {} {}, {}  {}",
            listed(&ranges(change.lines.iter().copied())),
            harmless(&change.by),
            harmless(&how),
            ago(change.at, now),
            harmless(title)
        ));
    }
    if !unknown.is_empty() {
        let words = format!("not known: {}", listed(&unknown));
        let words = ui.styled(DIM, &words);
        ui.line(&words);
        ui.note("no recorded tool call wrote these lines: a person, a script or an unrecorded session did");
        if sealed > 0 {
            let words = format!(
                "{} not looked at",
                match sealed {
                    1 => "1 sealed session was".to_owned(),
                    n => format!("{n} sealed sessions were"),
                }
            );
            ui.note(&words);
        }
    }
    if let Some(change) = changes.first() {
        let id = change.meta.id.short();
        ui.advise(&format!(
            "See it: `tertulia show {id}`; continue from there: `tertulia fork {id}:{}`",
            change.seq
        ));
    }
}

fn object(change: &Change) -> Value {
    json!({
        "session": change.meta.id, "title": change.meta.title, "seq": change.seq, "at": change.at,
        "speaker": change.by, "model": change.model, "tool": change.tool,
        "via": if change.commit.is_some() { "commit" } else { "tool" },
        "commit": change.commit, "lines": ranges(change.lines.iter().copied()),
    })
}

fn listed(ranges: &[(usize, usize)]) -> String {
    const LISTED: usize = 6;
    let mut words: Vec<String> = ranges
        .iter()
        .take(LISTED)
        .map(|(from, to)| match from == to {
            true => from.to_string(),
            false => format!("{from}-{to}"),
        })
        .collect();
    if ranges.len() > LISTED {
        words.push(format!("and {} more", ranges.len() - LISTED));
    }
    let noun = match ranges {
        [(from, to)] if from == to => "line",
        _ => "lines",
    };
    format!("{noun} {}", words.join(", "))
}
