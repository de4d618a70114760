//! Parses slash commands typed into the input, such as `/rename A better title`.

mod arguments;

use std::fmt;

use tertulia_agents::approval::Approval;
use tertulia_engine::slash as table;
pub use tertulia_engine::slash::{Argument, COMMANDS, Command};
use tertulia_engine::text::permissions;

use crate::host::ExportFormat;
use arguments::arguments;

/// A parsed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slash {
    /// Show keys and commands.
    Help,
    /// Open the session list.
    Sessions,
    /// Resume a session, or choose one.
    Resume(Option<String>),
    /// Start a new session.
    New,
    /// Change the title.
    Rename(String),
    /// Change the tags.
    Tag {
        /// Tags to add.
        add: Vec<String>,
        /// Tags to remove.
        remove: Vec<String>,
    },
    /// Ask again for an answer that failed.
    Retry,
    /// Take the last rename, tag or trash back.
    Undo,
    /// Resume a fork at an entry or at the end.
    Fork(Option<u64>),
    /// Rewind to before an entry, or choose one.
    Rewind(Option<u64>),
    /// Compact the context.
    Compact,
    /// Export the session to a file.
    Export {
        /// Format, if given or implied by the file name.
        format: Option<ExportFormat>,
        /// File.
        file: Option<String>,
    },
    /// Search all sessions.
    Search(String),
    /// Compare with a session.
    Compare(String),
    /// Show the fork tree.
    Tree,
    /// Show statistics.
    Stats,
    /// List the models.
    Models,
    /// Use a model.
    Model {
        /// Model name.
        name: String,
        /// Whether to use a model that the agent does not list: `/model! NAME`.
        anyway: bool,
    },
    /// List the agents, or use this one.
    Agents(Option<String>),
    /// Set the tool policy.
    Approve(Approval),
    /// Show the tool permissions.
    Permissions,
    /// Revoke a permission by number or name, or all.
    Revoke(String),
    /// Start a team session.
    TeamDeploy(String),
    /// List the teams.
    TeamList,
    /// Map speakers who are no longer in the team to members, each as `old=new`.
    TeamMap(Vec<String>),
    /// Show the members.
    Members,
    /// Show the queue.
    Queue,
    /// Show the task of the team.
    Task,
    /// Speak as a person, or as the person whose turn it is.
    As(Option<String>),
    /// Continue unfinished work of a pair.
    Go,
    /// Show information about the session.
    Info,
    /// End the session.
    End,
    /// Leave.
    Exit,
}

/// Error in a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlashError {
    /// Unknown command.
    Unknown {
        /// Name, including the slash.
        name: String,
        /// Command with a similar name.
        nearest: Option<&'static str>,
    },
    /// Wrong arguments.
    Usage {
        /// The command.
        command: &'static Command,
        /// Description of the error.
        wrong: String,
    },
}

impl fmt::Display for SlashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SlashError::Unknown { name, nearest } => {
                write!(f, "there is no command {name}")?;
                match nearest {
                    Some(near) => write!(f, "; did you mean {near}?"),
                    None => write!(f, "; /help shows all"),
                }
            }
            SlashError::Usage { command, wrong } => {
                write!(f, "{} {wrong}: {}", command.name, command.name)?;
                if !command.stands_alone() {
                    write!(f, " {}", command.arguments)?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for SlashError {}

/// The only command that may end in `!`: it uses a model that the agent does not list.
const INSISTING: &str = "/model!";

/// Parses a command. Returns `None` for other text: a sentence may begin with a path.
pub fn parse(words: &str) -> Option<Result<Slash, SlashError>> {
    let (name, rest, insists) = match words.trim().strip_prefix(INSISTING) {
        Some(rest) if rest.is_empty() || rest.starts_with(char::is_whitespace) => {
            ("/model", rest.trim_start(), true)
        }
        _ => {
            let (name, rest) = table::split(words)?;
            (name, rest, false)
        }
    };
    if let Some(command) = find(name) {
        return Some(
            read(command, rest, insists).map_err(|wrong| SlashError::Usage { command, wrong }),
        );
    }
    let nearest = nearest(name);
    (rest.is_empty() || nearest.is_some()).then(|| {
        Err(SlashError::Unknown {
            name: name.to_owned(),
            nearest,
        })
    })
}

/// Finds a command by its name, including the slash. `/agent NAME` is `/agents NAME`.
pub fn find(name: &str) -> Option<&'static Command> {
    let name = match name.eq_ignore_ascii_case("/agent") {
        true => "/agents",
        false => name,
    };
    COMMANDS
        .iter()
        .find(|command| command.name.eq_ignore_ascii_case(name))
}

/// Command with a similar name.
pub fn nearest(name: &str) -> Option<&'static str> {
    table::nearest(name, COMMANDS.iter().map(|command| command.name))
}

/// Parses the arguments of a command. `insists` says whether it ends in `!`.
fn read(command: &Command, rest: &str, insists: bool) -> Result<Slash, String> {
    if command.stands_alone() && !rest.is_empty() {
        return Err("stands alone".to_owned());
    }
    Ok(match command.name {
        "/help" => Slash::Help,
        "/sessions" => Slash::Sessions,
        "/resume" => Slash::Resume(phrase(rest)),
        "/new" => Slash::New,
        "/rename" => Slash::Rename(phrase(rest).ok_or("needs a title")?),
        "/tag" => tags(rest)?,
        "/retry" => Slash::Retry,
        "/undo" => Slash::Undo,
        "/fork" => Slash::Fork(entry(rest)?),
        "/rewind" => Slash::Rewind(entry(rest)?),
        "/compact" => Slash::Compact,
        "/export" => export(rest)?,
        // Passed on unparsed: quotes have a meaning in a search.
        "/search" if rest.is_empty() => return Err("needs search terms".to_owned()),
        "/search" => Slash::Search(rest.to_owned()),
        "/compare" => Slash::Compare(phrase(rest).ok_or("needs a session")?),
        "/tree" => Slash::Tree,
        "/stats" => Slash::Stats,
        "/model" => model(rest, insists)?,
        "/agents" => Slash::Agents(one_word(rest)?),
        "/approve" => Slash::Approve(permissions::mode(rest)?),
        "/permissions" => match permissions::revoked(rest)? {
            None => Slash::Permissions,
            Some(what) => Slash::Revoke(what),
        },
        "/team" => team(rest)?,
        "/members" => Slash::Members,
        "/queue" => Slash::Queue,
        "/task" => Slash::Task,
        "/as" => Slash::As(phrase(rest)),
        "/go" => Slash::Go,
        "/info" => Slash::Info,
        "/end" => Slash::End,
        _ => Slash::Exit,
    })
}

/// One argument that may contain blanks, optionally quoted as a whole.
fn phrase(rest: &str) -> Option<String> {
    let bare = ['"', '\''].iter().find_map(|quote| {
        let inside = rest.strip_prefix(*quote)?.strip_suffix(*quote)?;
        (!inside.contains(*quote)).then_some(inside)
    });
    let bare = bare.unwrap_or(rest).trim();
    (!bare.is_empty()).then(|| bare.to_owned())
}

/// The name of a model or agent is one word; more words were meant for something else.
fn one_word(rest: &str) -> Result<Option<String>, String> {
    match phrase(rest) {
        Some(name) if name.contains(char::is_whitespace) => {
            Err(format!("takes one name, not '{name}'"))
        }
        name => Ok(name),
    }
}

fn model(rest: &str, anyway: bool) -> Result<Slash, String> {
    match one_word(rest)? {
        None if anyway => Err("needs a name".to_owned()),
        None => Ok(Slash::Models),
        Some(name) => Ok(Slash::Model { name, anyway }),
    }
}

fn entry(rest: &str) -> Result<Option<u64>, String> {
    if rest.is_empty() {
        return Ok(None);
    }
    let number = rest.parse().ok().filter(|number| *number > 0);
    number
        .map(Some)
        .ok_or_else(|| format!("needs the number of an entry, not '{rest}'"))
}

fn tags(rest: &str) -> Result<Slash, String> {
    let (mut add, mut remove) = (Vec::new(), Vec::new());
    for change in arguments(rest)? {
        match change.split_at_checked(1) {
            Some(("+", tag)) if !tag.is_empty() => add.push(tag.to_owned()),
            Some(("-", tag)) if !tag.is_empty() => remove.push(tag.to_owned()),
            _ => return Err(format!("needs + or - before '{change}'")),
        }
    }
    if add.is_empty() && remove.is_empty() {
        return Err("needs a tag".to_owned());
    }
    Ok(Slash::Tag { add, remove })
}

fn export(rest: &str) -> Result<Slash, String> {
    let form = ExportFormat::named;
    let arguments = arguments(rest)?;
    let (format, file) = match arguments.as_slice() {
        [] => (None, None),
        [one] => match form(one) {
            Some(format) => (Some(format), None),
            None => (of_file(one)?, Some(one.clone())),
        },
        [first, file] => match form(first) {
            Some(format) => (Some(format), Some(file.clone())),
            None => return Err(no_format(first)),
        },
        _ => return Err("takes a form and a file (in quotes if its name has blanks)".to_owned()),
    };
    Ok(Slash::Export { format, file })
}

/// Format implied by a file name, if any. A word that is neither a path nor has a known extension
/// is taken for an unknown format.
fn of_file(file: &str) -> Result<Option<ExportFormat>, String> {
    let known = extension(file).and_then(ExportFormat::named);
    match (known, extension(file)) {
        (Some(format), _) => Ok(Some(format)),
        (None, Some("txt" | "text")) => Ok(None),
        (None, None) if file.contains(['/', '.']) => Ok(None),
        (None, None) => Err(no_format(file)),
        (None, Some(other)) => Err(format!("{}; name one: /export md {file}", no_format(other))),
    }
}

fn no_format(name: &str) -> String {
    let names: Vec<&str> = formats().collect();
    format!("has no format '{name}'; formats: {}", names.join(", "))
}

/// Names of the export formats.
pub fn formats() -> impl Iterator<Item = &'static str> {
    ExportFormat::ALL.into_iter().map(ExportFormat::name)
}

fn extension(file: &str) -> Option<&str> {
    let name = file.rsplit('/').next()?;
    let (stem, extension) = name.rsplit_once('.')?;
    (!stem.is_empty()).then_some(extension)
}

fn team(rest: &str) -> Result<Slash, String> {
    let arguments = arguments(rest)?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["list"] => Ok(Slash::TeamList),
        ["deploy", config] => Ok(Slash::TeamDeploy((*config).to_owned())),
        ["map", seats @ ..] if !seats.is_empty() => {
            match seats.iter().find(|seat| !seat.contains('=')) {
                Some(seat) => Err(format!("map needs OLD=NEW, not '{seat}'")),
                None => Ok(Slash::TeamMap(
                    seats.iter().map(|seat| (*seat).to_owned()).collect(),
                )),
            }
        }
        ["map"] => Err("map needs OLD=NEW".to_owned()),
        ["deploy"] => Err("deploy needs a team's file or name".to_owned()),
        ["deploy" | "list", ..] => Err("too many arguments (quote names with spaces)".to_owned()),
        _ => Err("needs to know what to do".to_owned()),
    }
}

#[cfg(test)]
mod tests;
