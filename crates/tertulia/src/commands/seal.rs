use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tertulia_core::entry::Relation;
use tertulia_core::query::Row;
use tertulia_core::session::SessionMeta;
use tertulia_formats::json;
use tertulia_store::KeyError;

use super::chat::{self, ChatArgs};
use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open;
use crate::seal;
use crate::show::count;
use crate::talk::args::TalkArgs;
use crate::ui::{Ui, fit};

/// Encrypt a session, so that only those who have its key can read it
///
/// The session keeps its id. Its words, title and tags are encrypted; counts, times and sizes stay visible. The
/// key is for the recipients and the identity of `[seal]` in your settings, or else for a passphrase. Lists, `doctor`,
/// forks and copies work without it. A lost key cannot be replaced.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  \
    tertulia seal 5f3a9c1e                              asks first on a terminal\n  \
    tertulia seal --new                                 a new chat that is sealed; also `chat --sealed`\n  \
    tertulia seal --new -p \"what is a tertulia?\"         one turn of it\n  \
    tertulia seal --new-identity ~/.config/age/key.txt  a key file of your own\n  \
    tertulia seal add 5f3a9c1e --recipient age1…        one more person can read it\n  \
    tertulia seal remove 5f3a9c1e --recipient age1…     and no longer what comes from now on\n\n\
    A session with the title `add` or `remove` is named by its id."
)]
pub struct SealArgs {
    #[command(subcommand)]
    change: Option<Change>,
    /// The session; with --new, the prompt to send first
    #[arg(value_name = "REF", required_unless_present_any = ["new", "new_identity"])]
    reference: Vec<String>,
    /// Start a new chat that is sealed
    #[arg(long, conflicts_with = "new_identity")]
    new: bool,
    /// With --new: run one turn, print the answer and exit
    #[arg(short, long, requires = "new")]
    print: bool,
    /// Write a new key to this file, and print its recipient
    #[arg(long, value_name = "FILE", conflicts_with = "reference")]
    new_identity: Option<PathBuf>,
    /// Don't ask
    #[arg(short, long)]
    yes: bool,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// Let one more person read a sealed session
    ///
    /// The key of the session is wrapped for the recipient, who can then read all of it, wherever it is copied.
    /// This needs the key, and is an entry of the session.
    #[command(after_help = "Examples:\n  \
        tertulia seal add 5f3a9c1e --recipient age1…\n  \
        tertulia seal add @ --recipient age1… --recipient age1…")]
    Add(RecipientArgs),
    /// Keep what comes from now on from a person who can read a sealed session
    ///
    /// Later entries have a new key, for everyone else who could read the session. Earlier entries stay readable
    /// to those who had their key.
    #[command(after_help = "Examples:\n  \
        tertulia seal remove 5f3a9c1e --recipient age1…")]
    Remove(RecipientArgs),
}

#[derive(Debug, Args)]
struct RecipientArgs {
    /// The session
    #[arg(value_name = "REF")]
    reference: String,
    /// Public key of the person, such as age1…; repeat for several
    #[arg(long, value_name = "AGE1", required = true)]
    recipient: Vec<String>,
}

/// Decrypt a sealed session
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia unseal 5f3a9c1e     asks for the key, and whether you mean it\n  \
    tertulia unseal -y @")]
pub struct UnsealArgs {
    /// The session
    #[arg(value_name = "REF")]
    reference: String,
    /// Don't ask
    #[arg(short, long)]
    yes: bool,
}

pub fn run(args: SealArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    if let Some(change) = &args.change {
        return change_recipients(change, global, ui);
    }
    if let Some(file) = &args.new_identity {
        return new_identity(file, global, ui);
    }
    if args.new {
        let mut chat = ChatArgs::default();
        chat.prompt = args.reference;
        chat.named = true;
        chat.talk = TalkArgs {
            sealed: true,
            print: args.print,
            ..TalkArgs::default()
        };
        return chat::run(chat, global, ui);
    }
    let workspace = open::workspace(global, ui)?;
    let row = workspace.find(&args.reference.join(" "))?;
    let others = workspace.wait(workspace.sessions.sealed_together(row.meta.id))?;
    let others: Vec<SessionMeta> = others.into_iter().filter(|it| it.seal.is_none()).collect();
    if !confirmed(args.yes, (&row, &others), "Seal", ui)? {
        return Ok(ExitCode::from(1));
    }
    let meta = workspace.wait(workspace.sessions.seal(row.meta.id))?;
    for sealed in others.iter().chain([&row.meta]) {
        workspace.forget_project(sealed)?;
    }
    tell(Row { meta, ..row }, &others, "sealed", ui);
    Ok(ExitCode::SUCCESS)
}

/// Runs `unseal`.
pub fn unseal(args: &UnsealArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::workspace(global, ui)?;
    let row = workspace.find(&args.reference)?;
    let others = workspace.wait(workspace.sessions.sealed_together(row.meta.id))?;
    let others: Vec<SessionMeta> = others.into_iter().filter(|it| it.seal.is_some()).collect();
    if !confirmed(args.yes, (&row, &others), "Unseal", ui)? {
        return Ok(ExitCode::from(1));
    }
    let meta = workspace.wait(workspace.sessions.unseal(row.meta.id))?;
    tell(Row { meta, ..row }, &others, "no longer sealed", ui);
    Ok(ExitCode::SUCCESS)
}

/// Runs `seal add` and `seal remove`.
fn change_recipients(change: &Change, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let (args, command) = match change {
        Change::Add(args) => (args, "add"),
        Change::Remove(args) => (args, "remove"),
    };
    let recipients = &args.recipient;
    seal::UserKeys::check_recipients(recipients)
        .map_err(|error| CommandError::new(ErrorKind::Usage, error.0))?;
    let workspace = open::workspace(global, ui)?;
    let keys = seal::UserKeys::new(&workspace.settings);
    let own = keys.own().map_err(invalid)?;
    if let (Change::Remove(_), Some(own)) = (change, own.iter().find(|it| recipients.contains(it)))
    {
        let words = format!("{own} is your own key: you could not read what you write");
        return Err(CommandError::new(ErrorKind::Invalid, words));
    }
    let row = workspace.find(&args.reference)?;
    let id = row.meta.id;
    let sessions = &workspace.sessions;
    let mut meta = row.meta.clone();
    match change {
        Change::Add(_) => {
            for recipient in recipients {
                meta = workspace.wait(sessions.add_recipient(id, recipient))?;
            }
        }
        Change::Remove(_) => meta = workspace.wait(sessions.remove_recipients(id, recipients))?,
    }
    let forks = workspace.wait(sessions.forks_of(id))?;
    let last = meta.head.seq;
    if ui.json {
        ui.document(&Value::Object(json::session(&Row { meta, ..row })));
        return Ok(ExitCode::SUCCESS);
    }
    let names = recipients.join(", ");
    ui.note(&match change {
        Change::Add(_) => format!("{names} can read session {} now, all of it.", id.short()),
        Change::Remove(_) => format!(
            "Session {} has a new key from entry {last} on, which {names} does not get. Earlier entries stay readable to them.",
            id.short()
        ),
    });
    for fork in forks.iter().filter(|fork| fork.seal.is_some()) {
        let fork = fork.id.short();
        let flags: Vec<String> = recipients
            .iter()
            .map(|it| format!("--recipient {it}"))
            .collect();
        ui.note(&format!(
            "Session {fork}, made from it, keeps its keys: `tertulia seal {command} {fork} {}` changes it, too.",
            flags.join(" ")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns true if a session was forked from one of `others`.
fn has_ancestor(meta: &SessionMeta, others: &[SessionMeta]) -> bool {
    let parent = meta.parent.as_ref().map(|parent| parent.id);
    parent.is_some_and(|parent| others.iter().any(|other| other.id == parent))
}

/// Asks whether to rewrite a session and those that are sealed with it, after saying which they are.
fn confirmed(
    yes: bool,
    (row, others): (&Row, &[SessionMeta]),
    what: &str,
    ui: &mut Ui,
) -> CommandResult<bool> {
    // What sync kept as a fork is sealed with the session that it continues, and what both delegated.
    let is_original = |one: &SessionMeta| {
        let parent_of = |it: &SessionMeta| it.parent.as_ref().is_some_and(|it| it.id == one.id);
        others
            .iter()
            .chain([&row.meta])
            .any(|it| !is_task(it) && parent_of(it))
    };
    let (tasks, forks): (Vec<_>, Vec<_>) = others
        .iter()
        .partition(|one| is_task(one) && !is_original(one));
    for (named, relation) in [(forks, "shares entries with"), (tasks, "delegated")] {
        if named.is_empty() {
            continue;
        }
        let number = named.len() as u64;
        let ids: Vec<String> = named.iter().map(|one| one.id.short()).collect();
        let noun = match relation {
            "delegated" => "task",
            _ if has_ancestor(&row.meta, others) => "session",
            _ => "fork",
        };
        ui.note(&format!(
            "Session {} {relation} {}, which {} {}sealed with it: {}",
            row.meta.id.short(),
            count(number, noun),
            if number == 1 { "is" } else { "are" },
            if what == "Seal" { "" } else { "un" },
            ids.join(", ")
        ));
    }
    if yes {
        return Ok(true);
    }
    if !ui.is_interactive() {
        let words = "not interactive: cannot ask whether to rewrite the session";
        return Err(CommandError::new(ErrorKind::Usage, words).hint("add -y"));
    }
    let title = fit(row.meta.title_or_untitled(), 40);
    let sure = ui.confirm(&format!("{what} {} \"{title}\"?", row.meta.id.short()));
    if !sure {
        ui.note("Nothing was changed.");
    }
    Ok(sure)
}

fn tell(row: Row, others: &[SessionMeta], state: &str, ui: &mut Ui) {
    if ui.json {
        return ui.document(&Value::Object(json::session(&row)));
    }
    ui.note(&format!("Session {} is {state}.", row.meta.id.short()));
    if row.meta.seal.is_none() {
        return;
    }
    let parent = row.meta.parent.as_ref();
    if let Some(parent) = parent.filter(|parent| others.iter().all(|it| it.id != parent.id)) {
        ui.note(&format!(
            "The session that it was made from, {}, is stored as before.",
            parent.id.short()
        ));
    }
    ui.note(
            "Backups, exports, copies in other stores, the agents' own sessions and the prompt history are not changed.",
        );
}

/// Returns true if an agent of another session delegated it: that one's entries are no part of it.
fn is_task(meta: &SessionMeta) -> bool {
    let relation = meta.parent.as_ref().map(|parent| parent.relation);
    relation.is_none_or(|relation| relation == Relation::Subagent)
}

fn invalid(error: KeyError) -> CommandError {
    CommandError::new(ErrorKind::Invalid, error.0)
}

fn new_identity(file: &PathBuf, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let settings = open::settings(global, ui)?;
    let path = settings.cwd.join(file);
    let made = seal::UserKeys::new(&settings).make_identity(&path);
    let recipient = made.map_err(invalid)?;
    if ui.json {
        ui.document(&json!({ "file": path, "recipient": recipient }));
        return Ok(ExitCode::SUCCESS);
    }
    ui.line(&recipient);
    ui.note(&format!(
        "Add `identity = \"{}\"` to [seal] of your settings, and keep a copy of the file elsewhere.",
        path.display()
    ));
    Ok(ExitCode::SUCCESS)
}
