mod outcome;
mod pairs;
mod saves;
mod sources;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tertulia::formats::foreign::Foreign;
use tertulia::formats::jsonl;
use tertulia::id::SessionId;
use tertulia::store::{Adopted, Doing, Progress};

use crate::args::GlobalArgs;
use crate::commands::export::Form;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::{self, House};
use crate::show;
use crate::ui::{Ui, harmless};
use outcome::{Outcome, words};
use saves::{Became, Save, Saves};
use sources::Source;

/// Take in sessions from files
///
/// A second import of the same adds nothing. A session that has gone another way since becomes a fork.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia import talk.jsonl\n  \
    tertulia import *.jsonl --dry-run     only say what would happen\n  \
    tertulia import talk.jsonl --redact   without the keys and passwords in it\n  \
    tertulia import ~/.agent-chatter/sessions\n  \
    tertulia import .claude-master/sessions\n  \
    ssh host tertulia export @ --format jsonl | tertulia import -")]
pub struct ImportArgs {
    /// The files, or folders of agent-chatter's or claude-master's sessions; - is standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// What wrote them, instead of looking
    #[arg(long, value_enum, value_name = "KIND")]
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
    /// What claude-master kept of an instructor and a worker
    ClaudeMaster,
}

/// What became of each file; nothing where it is no session.
type Outcomes = Vec<Option<CommandResult<Outcome>>>;

pub fn run(args: &ImportArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let house = open::house(global, ui)?;
    let sources = sources::all(&args.paths)?;
    let progress = ui.progress();
    let total = sources.len() as u64;
    let mut outcomes = Outcomes::new();
    let mut saves = Vec::new();
    let mut others = 0;
    for (at, source) in sources.iter().enumerate() {
        progress.at("reading", at as u64, total);
        // One bad file does not keep the others out.
        outcomes.push(match look(&house, at, source, args) {
            Ok(Found::Log(outcome)) => Some(Ok(outcome)),
            Ok(Found::Save(save)) => {
                saves.push(save);
                None
            }
            Ok(Found::Nothing) => {
                others += 1;
                None
            }
            Err(error) => Some(Err(error)),
        });
    }
    progress.at("reading", total, total);
    take_in_saves(&house, &sources, saves, args, &ui.progress(), &mut outcomes);
    report(&sources, outcomes, others, args, ui)
}

/// What became of the one file that a talk goes on with.
pub struct Taken {
    pub session: SessionId,
    /// The form in which it can be written back.
    pub form: Option<Form>,
    pub words: String,
}

/// Takes in the session of one file.
pub fn one(house: &House, path: &Path) -> CommandResult<Taken> {
    let sources = sources::all(&[path.to_owned()])?;
    let [source] = sources.as_slice() else {
        let words = format!("{} is no file", path.display());
        return Err(CommandError::new(ErrorKind::Usage, words).hint("name the file of one session"));
    };
    let content = source.read()?;
    let (adopted, form) = match source.kind(&content, None)? {
        Some(From::AgentChatter) => {
            let talk = saves::read(&content, source)?.snapshot.talk();
            (foreign(house, &talk)?, Some(Form::Snapshot))
        }
        Some(From::ClaudeMaster) => {
            let talk = pairs::read(source, &content)?.talk();
            (foreign(house, &talk)?, None)
        }
        Some(From::Tertulia) => (
            house.wait(house.sessions.adopt(&log(source, &content)?))?,
            Some(Form::Log),
        ),
        None => {
            let words = format!("{} is not a session that can be read", path.display());
            return Err(CommandError::new(ErrorKind::Invalid, words));
        }
    };
    Ok(Taken {
        session: adopted.id(),
        form,
        words: format!("{}: {}", path.display(), words(adopted, false, "all of it")),
    })
}

fn foreign(house: &House, talk: &Foreign) -> CommandResult<Adopted> {
    let mut intake = house.sessions.intake(Doing::Write);
    Ok(house.wait(intake.take_in(talk))?.adopted)
}

/// What a file turned out to be.
enum Found {
    /// A log, which has been taken in.
    Log(Outcome),
    /// A save, whose turn comes when all are known.
    Save(Save),
    /// No session.
    Nothing,
}

fn look(house: &House, at: usize, source: &Source, args: &ImportArgs) -> CommandResult<Found> {
    let content = source.read()?;
    Ok(match source.kind(&content, args.from)? {
        None => Found::Nothing,
        Some(From::AgentChatter) => Found::Save(Save::look(at, &content, source)?),
        Some(From::ClaudeMaster) => {
            Found::Log(pairs::take_in(house, source, &content, args.dry_run)?)
        }
        Some(From::Tertulia) => Found::Log(take_in_log(house, source, &content, args)?),
    })
}

fn log(source: &Source, content: &[u8]) -> CommandResult<jsonl::Imported> {
    jsonl::read(content).map_err(|error| {
        let message = format!("{}: {error}", source.path.display());
        CommandError::new(ErrorKind::Invalid, message).hint("nothing of it was taken in")
    })
}

fn take_in_log(
    house: &House,
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
        house.wait(house.sessions.preview(&log))?
    } else {
        house.wait(house.sessions.adopt(&log))?
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
    house: &House,
    sources: &[Source],
    mut found: Vec<Save>,
    args: &ImportArgs,
    progress: &Progress,
    outcomes: &mut Outcomes,
) {
    let doing = if args.dry_run {
        Doing::Preview
    } else {
        Doing::Write
    };
    let mut saves = Saves {
        house,
        intake: house.sessions.intake(doing),
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
            outcome.details.push(format!(
                "it has all the words of {count} earlier save{plural}"
            ));
        }
    }
}

fn report(
    sources: &[Source],
    outcomes: Outcomes,
    others: usize,
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
    if others > 0 {
        ui.note(&format!(
            "skipped {}: not a session of any known format",
            show::count(others as u64, "file")
        ));
    }
    if belongs_nowhere(&results) && !args.dry_run {
        ui.advise("Imported sessions belong to no project: `tertulia list --all` lists them");
    }
    if ui.json {
        ui.document(&json!({ "imported": results, "others": others, "dry_run": args.dry_run }));
    }
    match together(failures) {
        Some(error) => Err(error),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn belongs_nowhere(results: &[Value]) -> bool {
    results
        .iter()
        .any(|object| object["result"] == "created" && object.get("kept").is_some())
}

/// One failure as it is; several as one that names each of them.
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
