pub mod bundle;
mod conversations;
mod discover;
mod kind;
mod others;
mod outcome;
mod programs;
mod report;
mod saves;
mod sources;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tertulia_core::foreign::Foreign;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::jsonl;
use tertulia_store::{Adopted, Doing, Progress};

use crate::args::GlobalArgs;
use crate::commands::export::Form;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::{self, Workspace};
use crate::show;
use crate::ui::Ui;
use conversations::{Conversation, RecordedProjects};
use kind::SourceKind;
use others::Others;
use outcome::{Outcome, words};
use programs::Programs;
use saves::{Became, Save, Saves};
use sources::{Look, Source};

/// Import sessions from files
///
/// A second import of the same adds nothing. A session that has diverged since becomes a fork. The ids that sessions
/// had in other programs keep naming them: `tertulia show session-456`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia import session.jsonl\n  \
    tertulia import *.jsonl --dry-run     only say what would happen\n  \
    tertulia import s.jsonl --redact      without the keys and passwords in it\n  \
    tertulia import --discover            which histories of other programs are here\n  \
    tertulia import ~/.claude/projects    every session of Claude Code\n  \
    tertulia import ~/.claude/projects --watch\n  \
    tertulia import ~/.agent-chatter/sessions\n  \
    tertulia import ~/.config/openagent-terminal/sessions\n  \
    tertulia import .claude-master/sessions\n  \
    ssh host tertulia export @ --format jsonl | tertulia import -")]
pub struct ImportArgs {
    /// Files, or folders of them; - is standard input
    #[arg(value_name = "PATH", required_unless_present = "discover")]
    paths: Vec<PathBuf>,
    /// Program that wrote them, such as claude-code or agent-chatter [default: detected]
    #[arg(long, value_parser = SourceKind::named, value_name = "KIND")]
    from: Option<SourceKind>,
    /// Find the histories of other programs on this machine, and ask before importing them
    #[arg(long, conflicts_with = "paths")]
    discover: bool,
    /// Go on importing what is added to the files, until stopped with Ctrl-C
    #[arg(long, conflicts_with = "dry_run")]
    watch: bool,
    /// Import what --discover finds without asking
    #[arg(short, long, requires = "discover")]
    yes: bool,
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

/// Outcomes per file, one for each session in it.
type Outcomes = Vec<Vec<CommandResult<Outcome>>>;

pub fn run(args: &ImportArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::workspace(global, ui)?;
    let discovered;
    let paths = match args.discover {
        false => &args.paths,
        true => match discover::paths(args, &workspace.settings.cwd, ui)? {
            Some(paths) => {
                discovered = paths;
                &discovered
            }
            None => return Ok(ExitCode::SUCCESS),
        },
    };
    if workspace.settings.seal.default {
        ui.note("imported sessions are stored in plain: `tertulia seal REF` seals one");
    }
    match args.watch {
        false => import(&workspace, paths, args, &mut Vec::new(), ui),
        true => watch::run(&workspace, paths, args, ui),
    }
}

/// A file that has more than an open session, which is imported once that is closed.
struct Waiting {
    path: PathBuf,
    session: SessionId,
}

fn import(
    workspace: &Workspace,
    paths: &[PathBuf],
    args: &ImportArgs,
    waiting: &mut Vec<Waiting>,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let mut sources = sources::all(paths)?;
    let mut programs = Programs::new(workspace, args.dry_run);
    let progress = ui.progress();
    let mut outcomes = Outcomes::new();
    let mut saves = Vec::new();
    let mut others = Others::default();
    while outcomes.len() < sources.len() {
        let at = outcomes.len();
        progress.at("reading", at as u64, sources.len() as u64);
        // One bad file must not prevent the import of the others.
        outcomes.push(match look(&mut programs, at, &sources[at], args) {
            Ok(Found::Sessions(outcomes)) => outcomes,
            Ok(Found::Save(save)) => {
                saves.push(save);
                Vec::new()
            }
            Ok(Found::Index(ids)) => {
                let listed = others.of_index(&sources[at], &ids);
                sources.extend(listed);
                Vec::new()
            }
            Ok(Found::Nothing(reason)) => {
                others.files.push((sources[at].path.clone(), reason));
                Vec::new()
            }
            Err(error) => vec![Err(error)],
        });
    }
    let total = sources.len() as u64;
    progress.at("reading", total, total);
    take_in_saves(
        workspace,
        &sources,
        saves,
        args,
        &ui.progress(),
        &mut outcomes,
    );
    if !args.dry_run {
        index(workspace, ui);
    }
    for (source, outcomes) in sources.iter().zip(&outcomes) {
        let waits = |outcome: &CommandResult<Outcome>| outcome.as_ref().ok()?.waits_for;
        waiting.extend(outcomes.iter().filter_map(waits).map(|session| Waiting {
            path: source.path.clone(),
            session,
        }));
    }
    report::report(&sources, outcomes, &others, args, ui)
}

/// Updates the search index for the imported sessions, so that the next search does not have to.
fn index(workspace: &Workspace, ui: &Ui) {
    // Ignore errors: the next search indexes the rest and reports failures.
    let _ = workspace.wait(workspace.sessions.store().index(&ui.progress()));
}

/// Result of importing the one file given with `--session-file`.
pub struct Taken {
    pub session: SessionId,
    /// Format in which the file can be written back, if there is one.
    pub form: Option<Form>,
    /// Last entry of the session that the file has.
    pub upto: Seq,
    pub words: String,
}

/// Imports the session of one file.
pub fn one(workspace: &Workspace, path: &Path) -> CommandResult<Taken> {
    let sources = sources::all(&[path.to_owned()])?;
    let [source] = sources.as_slice() else {
        let words = format!("{} is no file", path.display());
        return Err(CommandError::new(ErrorKind::Usage, words).hint("name the file of one session"));
    };
    if let Some(importer) = source.importer(None)? {
        return programs::one(workspace, importer, source);
    }
    let content = source.read()?;
    let (adopted, form) = match source.look(&content, None)? {
        Look::Session(SourceKind::AgentChatter) => {
            let talk = saves::read(&content, source)?.snapshot.talk();
            (foreign(workspace, &talk)?, Some(Form::Snapshot))
        }
        Look::Session(kind @ (SourceKind::ClaudeMaster | SourceKind::OpenagentTerminal)) => {
            let mut projects = RecordedProjects::new(workspace, Doing::Write);
            let conversation = Conversation::read(kind, source, &content, &mut projects)?;
            (foreign(workspace, &conversation.talk)?, None)
        }
        Look::Session(SourceKind::Tertulia) => (
            workspace.wait(workspace.sessions.adopt(&log(source, &content)?))?,
            Some(Form::Log),
        ),
        Look::Index(_) | Look::Other(_) | Look::Session(SourceKind::Program(_)) => {
            let words = format!("{} is not the file of one session", path.display());
            return Err(CommandError::new(ErrorKind::Invalid, words).hint(sources::supported()));
        }
    };
    Ok(Taken {
        session: adopted.id(),
        form,
        // Files of these formats are written whole.
        upto: Seq::START,
        words: format!("{}: {}", path.display(), words(adopted, false, "all of it")),
    })
}

fn foreign(workspace: &Workspace, talk: &Foreign) -> CommandResult<Adopted> {
    let mut intake = workspace.sessions.intake(Doing::Write);
    Ok(workspace.wait(intake.take_in(talk))?.adopted)
}

/// Result of reading one file.
enum Found {
    /// Sessions that were imported already.
    Sessions(Vec<CommandResult<Outcome>>),
    /// An agent-chatter save, imported once all saves are known.
    Save(Save),
    /// An index: the ids of session files.
    Index(Vec<String>),
    /// Not a session, with the reason.
    Nothing(&'static str),
}

fn look(
    programs: &mut Programs<'_>,
    at: usize,
    source: &Source,
    args: &ImportArgs,
) -> CommandResult<Found> {
    if args.from.is_none() && source.is_bundle() {
        let outcomes = bundle::take_in(programs.workspace, source, args);
        return Ok(Found::Sessions(outcomes));
    }
    if let Some(importer) = source.importer(args.from)? {
        return Ok(Found::Sessions(programs.take_in(importer, source)));
    }
    let workspace = programs.workspace;
    let content = source.read()?;
    Ok(match source.look(&content, args.from)? {
        Look::Other(reason) => Found::Nothing(reason),
        Look::Index(ids) => Found::Index(ids),
        Look::Session(SourceKind::AgentChatter) => Found::Save(Save::look(at, &content, source)?),
        // A bundle that was decrypted by another program.
        Look::Session(SourceKind::Tertulia) if bundle::has_keys(&content) => {
            let mut outcomes = Vec::new();
            bundle::read_logs(workspace, source, &*content, args, &mut outcomes)?;
            Found::Sessions(outcomes)
        }
        Look::Session(SourceKind::Tertulia) => {
            let outcome = take_in_log(workspace, source, &content, args)?;
            Found::Sessions(vec![Ok(outcome)])
        }
        Look::Session(kind) => {
            let conversation = Conversation::read(kind, source, &content, &mut programs.projects)?;
            let mut intake = workspace.sessions.intake(doing(args));
            let taken = workspace.wait(intake.take_in(&conversation.talk))?;
            let outcome = conversation.outcome(source, &taken, args.dry_run);
            Found::Sessions(vec![Ok(outcome)])
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
        outcomes[save.at] = vec![match saves.take_in(save, &sources[save.at]) {
            Ok(Became::Session(outcome)) => Ok(outcome),
            Ok(Became::Earlier(newest, outcome)) => {
                earlier[newest] += 1;
                Ok(outcome)
            }
            Err(error) => Err(error),
        }];
    }
    progress.at("importing", total, total);
    for (at, count) in earlier.into_iter().enumerate() {
        if count > 0
            && let Some(Ok(outcome)) = outcomes[at].first_mut()
        {
            let plural = if count == 1 { "" } else { "s" };
            outcome
                .details
                .push(format!("it contains {count} earlier save{plural}"));
        }
    }
}
