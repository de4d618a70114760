mod conversations;
mod outcome;
mod saves;
mod sources;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tertulia_core::foreign::Foreign;
use tertulia_core::id::SessionId;
use tertulia_core::jsonl;
use tertulia_store::{Adopted, Doing, Progress};

use crate::args::GlobalArgs;
use crate::commands::export::Form;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::{self, Workspace};
use crate::show;
use crate::ui::{Ui, harmless};
use conversations::Conversation;
use outcome::{Outcome, words};
use saves::{Became, Save, Saves};
use sources::{Look, Source};

/// Import sessions from files
///
/// A second import of the same adds nothing. A session that has diverged since becomes a fork. The ids that sessions
/// had in other programs keep naming them: `tertulia show session-456`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia import talk.jsonl\n  \
    tertulia import *.jsonl --dry-run     only say what would happen\n  \
    tertulia import talk.jsonl --redact   without the keys and passwords in it\n  \
    tertulia import ~/.agent-chatter/sessions\n  \
    tertulia import ~/.config/openagent-terminal/sessions\n  \
    tertulia import .claude-master/sessions\n  \
    ssh host tertulia export @ --format jsonl | tertulia import -")]
pub struct ImportArgs {
    /// Files, or folders of them; - is standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Program that wrote them: tertulia, agent-chatter, openagent-terminal, claude-master [default: detected]
    #[arg(long, value_parser = From::named, value_name = "KIND")]
    from: Option<From>,
    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
    /// Replace secrets in tertulia's own logs too, which gives the entries new hashes
    ///
    /// Without it, such a log is kept byte for byte, and the report counts its secrets. Sessions of other programs
    /// are always redacted, unless your settings say `redact = false`.
    #[arg(long)]
    redact: bool,
}

/// Whose files can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum From {
    /// Our own logs
    Tertulia,
    /// Session snapshots of agent-chatter, and our own
    AgentChatter,
    /// Session files of openagent-terminal
    OpenagentTerminal,
    /// Sessions of claude-master, an instructor and a worker
    ClaudeMaster,
}

/// Programs whose sessions cannot be imported yet.
const LATER: [&str; 8] = [
    "claude-code",
    "codex",
    "gemini-cli",
    "opencode",
    "goose",
    "aider",
    "copilot",
    "crush",
];

impl From {
    /// Returns all values of `--from`.
    fn names() -> Vec<String> {
        let kinds = From::value_variants().iter();
        let values = kinds.filter_map(ValueEnum::to_possible_value);
        values.map(|value| value.get_name().to_owned()).collect()
    }

    /// Parses a value of `--from`.
    fn named(name: &str) -> Result<From, String> {
        <From as ValueEnum>::from_str(name, false).map_err(|_| {
            let supported = From::names().join(", ");
            match LATER.contains(&name) {
                true => {
                    format!("sessions of {name} cannot be imported yet; supported: {supported}")
                }
                false => format!("supported: {supported}"),
            }
        })
    }
}

/// Outcome per file; `None` for files that are not sessions.
type Outcomes = Vec<Option<CommandResult<Outcome>>>;

/// Files found next to sessions that are not sessions themselves.
#[derive(Default)]
struct Others {
    /// Files that are not sessions, each with the reason.
    files: Vec<(PathBuf, &'static str)>,
    /// Session files that an index lists but that do not exist.
    missing: Vec<PathBuf>,
    /// True if one of the files is an index.
    indexed: bool,
}

pub fn run(args: &ImportArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::workspace(global, ui)?;
    let mut sources = sources::all(&args.paths)?;
    let progress = ui.progress();
    let mut outcomes = Outcomes::new();
    let mut saves = Vec::new();
    let mut others = Others::default();
    while outcomes.len() < sources.len() {
        let at = outcomes.len();
        progress.at("reading", at as u64, sources.len() as u64);
        // One bad file must not prevent the import of the others.
        outcomes.push(match look(&workspace, at, &sources[at], args) {
            Ok(Found::Log(outcome)) => Some(Ok(outcome)),
            Ok(Found::Save(save)) => {
                saves.push(save);
                None
            }
            Ok(Found::Index(ids)) => {
                let listed = others.of_index(&sources[at], &ids);
                sources.extend(listed);
                None
            }
            Ok(Found::Nothing(reason)) => {
                others.files.push((sources[at].path.clone(), reason));
                None
            }
            Err(error) => Some(Err(error)),
        });
    }
    let total = sources.len() as u64;
    progress.at("reading", total, total);
    take_in_saves(
        &workspace,
        &sources,
        saves,
        args,
        &ui.progress(),
        &mut outcomes,
    );
    if !args.dry_run {
        index(&workspace, ui);
    }
    report(&sources, outcomes, &others, args, ui)
}

/// Updates the search index for the imported sessions, so that the next search does not have to.
fn index(workspace: &Workspace, ui: &Ui) {
    // Ignore errors: the next search indexes the rest and reports failures.
    let _ = workspace.wait(workspace.sessions.store().index(&ui.progress()));
}

impl Others {
    /// Records the session files that an index lists. Returns those that exist if the index was
    /// named on the command line; below a folder they are found anyway.
    fn of_index(&mut self, index: &Source, ids: &[String]) -> Vec<Source> {
        self.indexed = true;
        let folder = index.path.parent().unwrap_or(Path::new(""));
        let mut listed = Vec::new();
        for id in ids {
            // An id is a file name; replace separators so that it cannot point to another folder.
            let path = folder.join(format!("{}.json", id.replace(['/', '\\'], "_")));
            match path.is_file() {
                false => self.missing.push(path),
                true if index.in_folder => {}
                true => listed.push(Source::named(path)),
            }
        }
        listed
    }

    fn tell(&self, ui: &mut Ui) {
        const NAMED: usize = 5;
        for path in self.missing.iter().take(NAMED) {
            ui.warn(&format!(
                "{} is listed in the index and not there",
                path.display()
            ));
        }
        if self.missing.len() > NAMED {
            ui.warn(&format!(
                "{} more listed files are not there",
                self.missing.len() - NAMED
            ));
        }
        for (path, reason) in self.files.iter().take(NAMED) {
            ui.note(&format!("skipped {}: {reason}", path.display()));
        }
        if self.files.len() > NAMED {
            ui.note(&format!("skipped {} more files", self.files.len() - NAMED));
        }
    }
}

/// Result of importing the one file given with `--session-file`.
pub struct Taken {
    pub session: SessionId,
    /// Format in which the file can be written back, if there is one.
    pub form: Option<Form>,
    pub words: String,
}

/// Imports the session of one file.
pub fn one(workspace: &Workspace, path: &Path) -> CommandResult<Taken> {
    let sources = sources::all(&[path.to_owned()])?;
    let [source] = sources.as_slice() else {
        let words = format!("{} is no file", path.display());
        return Err(CommandError::new(ErrorKind::Usage, words).hint("name the file of one session"));
    };
    let content = source.read()?;
    let (adopted, form) = match source.look(&content, None)? {
        Look::Session(From::AgentChatter) => {
            let talk = saves::read(&content, source)?.snapshot.talk();
            (foreign(workspace, &talk)?, Some(Form::Snapshot))
        }
        Look::Session(kind @ (From::ClaudeMaster | From::OpenagentTerminal)) => {
            let conversation = Conversation::read(kind, source, &content)?;
            (foreign(workspace, &conversation.talk)?, None)
        }
        Look::Session(From::Tertulia) => (
            workspace.wait(workspace.sessions.adopt(&log(source, &content)?))?,
            Some(Form::Log),
        ),
        Look::Index(_) | Look::Other(_) => {
            let words = format!("{} is not the file of one session", path.display());
            return Err(CommandError::new(ErrorKind::Invalid, words).hint(sources::supported()));
        }
    };
    Ok(Taken {
        session: adopted.id(),
        form,
        words: format!("{}: {}", path.display(), words(adopted, false, "all of it")),
    })
}

fn foreign(workspace: &Workspace, talk: &Foreign) -> CommandResult<Adopted> {
    let mut intake = workspace.sessions.intake(Doing::Write);
    Ok(workspace.wait(intake.take_in(talk))?.adopted)
}

/// Result of reading one file.
enum Found {
    /// A session that was imported already.
    Log(Outcome),
    /// An agent-chatter save, imported once all saves are known.
    Save(Save),
    /// An index: the ids of session files.
    Index(Vec<String>),
    /// Not a session, with the reason.
    Nothing(&'static str),
}

fn look(
    workspace: &Workspace,
    at: usize,
    source: &Source,
    args: &ImportArgs,
) -> CommandResult<Found> {
    let content = source.read()?;
    Ok(match source.look(&content, args.from)? {
        Look::Other(reason) => Found::Nothing(reason),
        Look::Index(ids) => Found::Index(ids),
        Look::Session(From::AgentChatter) => Found::Save(Save::look(at, &content, source)?),
        Look::Session(From::Tertulia) => {
            Found::Log(take_in_log(workspace, source, &content, args)?)
        }
        Look::Session(kind) => {
            let conversation = Conversation::read(kind, source, &content)?;
            let mut intake = workspace.sessions.intake(doing(args));
            let taken = workspace.wait(intake.take_in(&conversation.talk))?;
            Found::Log(conversation.outcome(source, &taken, args.dry_run))
        }
    })
}

fn doing(args: &ImportArgs) -> Doing {
    if args.dry_run {
        Doing::Preview
    } else {
        Doing::Write
    }
}

fn log(source: &Source, content: &[u8]) -> CommandResult<jsonl::Imported> {
    jsonl::read(content).map_err(|error| {
        let message = format!("cannot import {}: {error}", source.path.display());
        CommandError::new(ErrorKind::Invalid, message).hint("nothing of it was imported")
    })
}

fn take_in_log(
    workspace: &Workspace,
    source: &Source,
    content: &[u8],
    args: &ImportArgs,
) -> CommandResult<Outcome> {
    let mut log = log(source, content)?;
    let secrets = if args.redact {
        log.redact()
            .map_err(|error| CommandError::new(ErrorKind::Invalid, error.to_string()))?
    } else {
        log.secrets()
    };
    let adopted = if args.dry_run {
        workspace.wait(workspace.sessions.preview(&log))?
    } else {
        workspace.wait(workspace.sessions.adopt(&log))?
    };
    let kept = match adopted {
        Adopted::Created { entries, .. } if args.redact && !secrets.is_empty() => {
            show::count(entries as u64, "entry")
        }
        Adopted::Created { entries, .. } => {
            format!(
                "{}, all kept as they are",
                show::count(entries as u64, "entry")
            )
        }
        _ => String::new(),
    };
    let words = words(adopted, args.dry_run, &kept);
    Ok(Outcome::of(&source.path, adopted, words).with_secrets(&secrets, args.redact))
}

fn take_in_saves(
    workspace: &Workspace,
    sources: &[Source],
    mut found: Vec<Save>,
    args: &ImportArgs,
    progress: &Progress,
    outcomes: &mut Outcomes,
) {
    let mut saves = Saves {
        workspace,
        intake: workspace.sessions.intake(doing(args)),
        dry_run: args.dry_run,
        newest: None,
    };
    let mut earlier = vec![0_usize; sources.len()];
    saves::in_order(&mut found);
    let total = found.len() as u64;
    for (done, save) in found.iter().enumerate() {
        progress.at("importing", done as u64, total);
        outcomes[save.at] = Some(match saves.take_in(save, &sources[save.at]) {
            Ok(Became::Session(outcome)) => Ok(outcome),
            Ok(Became::Earlier(newest, outcome)) => {
                earlier[newest] += 1;
                Ok(outcome)
            }
            Err(error) => Err(error),
        });
    }
    progress.at("importing", total, total);
    for (at, count) in earlier.into_iter().enumerate() {
        if count > 0
            && let Some(Ok(outcome)) = &mut outcomes[at]
        {
            let plural = if count == 1 { "" } else { "s" };
            outcome
                .details
                .push(format!("it contains {count} earlier save{plural}"));
        }
    }
}

fn report(
    sources: &[Source],
    outcomes: Outcomes,
    others: &Others,
    args: &ImportArgs,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let mut results = Vec::new();
    let mut failures = Vec::new();
    for (source, outcome) in sources.iter().zip(outcomes) {
        let path = source.path.display();
        match outcome {
            None => {}
            Some(Ok(outcome)) => {
                if outcome.object["result"] == "earlier" {
                    ui.detail(&format!("{path}: {}", outcome.words));
                } else if !ui.json {
                    ui.line(&harmless(&format!("{path}: {}", outcome.words)));
                    for detail in &outcome.details {
                        ui.line(&format!("  {detail}"));
                    }
                }
                results.push(outcome.object);
            }
            Some(Err(error)) => {
                results.push(json!({ "path": path.to_string(), "error": error.words() }));
                failures.push(error);
            }
        }
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
