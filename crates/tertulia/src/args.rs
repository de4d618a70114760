//! Command line arguments: global flags and the commands.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{
    Args as ClapArgs, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
};

use tertulia_agents::approval::Approval;

use crate::commands;
use crate::commands::chat::ChatArgs;

/// Prefix of arguments that start with a hyphen but are not flags; the command removes it.
const SHIELD: char = '\u{1}';

/// Returns true if a word is a command or its alias.
pub fn is_command(word: &str) -> bool {
    let command = Args::command();
    let mut known = command.get_subcommands();
    known.any(|command| command.get_name_and_visible_aliases().contains(&word))
}

/// Parses the command line.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Args, clap::Error> {
    let words = shielded(words.into_iter().collect());
    let plain = words.iter().any(|word| word == "--no-color");
    let command = Args::command().color(if plain {
        ColorChoice::Never
    } else {
        ColorChoice::Auto
    });
    Args::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// Marks arguments that are words, not flags: `-draft` in `search parser -draft` and `-urgent` in
/// `tag @ -urgent`, but not `-n5` and `--all` in `search parser -n5 --all`.
fn shielded(mut words: Vec<OsString>) -> Vec<OsString> {
    let Some((command, at)) = command_of(&words)
        .filter(|(command, _)| ["search", "tag"].contains(&command.as_str()))
        .filter(|(_, at)| !words[at - 1].to_str().is_some_and(takes_value))
    else {
        return words;
    };
    let end = words
        .iter()
        .position(|word| word == "--")
        .unwrap_or(words.len());
    for word in words.iter_mut().take(end).skip(at + 1) {
        if let Some(text) = word.to_str().filter(|text| is_a_word(&command, text)) {
            *word = format!("{SHIELD}{text}").into();
        }
    }
    words
}

/// Returns the command and its position: the first argument that is neither a flag nor the value of
/// a global flag.
fn command_of(words: &[OsString]) -> Option<(String, usize)> {
    let mut is_value = false;
    for (at, word) in words.iter().enumerate().skip(1) {
        let word = word.to_str()?;
        if !std::mem::replace(&mut is_value, ["--store", "--data-dir"].contains(&word))
            && !word.starts_with('-')
        {
            return Some((word.to_owned(), at));
        }
    }
    None
}

/// Returns true if a flag of the program without a command takes a value: `search` in
/// `--agent search` is not the command.
fn takes_value(flag: &str) -> bool {
    let command = Args::command();
    let mut known = command.get_arguments();
    known.any(|arg| {
        let long = arg.get_long_and_visible_aliases().unwrap_or_default();
        let short = arg.get_short_and_visible_aliases().unwrap_or_default();
        let named = long
            .iter()
            .any(|name| flag.strip_prefix("--") == Some(name))
            || short.iter().any(|name| flag == format!("-{name}"));
        named && arg.get_action().takes_values()
    })
}

fn is_a_word(command: &str, text: &str) -> bool {
    let Some(rest) = text
        .strip_prefix('-')
        .filter(|rest| !rest.starts_with('-') && !rest.is_empty())
    else {
        return false;
    };
    let known = if command == "search" {
        "anqvhV"
    } else {
        "qvhV"
    };
    let flags = rest.chars().all(|c| known.contains(c));
    let limit = command == "search"
        && rest
            .strip_prefix('n')
            .is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit() || b == b'='));
    !flags && !limit
}

/// Removes the `SHIELD` prefix, if there is one.
pub fn unshielded(word: &str) -> &str {
    word.strip_prefix(SHIELD).unwrap_or(word)
}

/// Conversations between people and AI agents in the terminal that are never lost.
#[derive(Debug, Parser)]
#[command(
    name = "tertulia",
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    after_help = "Examples:\n  \
        tertulia                         start a session; every message is saved before it is answered\n  \
        tertulia chat -p \"hello\"         one question, one answer\n  \
        tertulia -c                      continue the newest session of this project\n  \
        tertulia list                    list the sessions of this project\n  \
        tertulia search '\"durable log\"'  find it again\n\n\
        REF names a session: its id, 4 or more characters of the beginning or end of it, its exact title,\n\
        @ for the newest, @~2 for two before it; REF:12 is entry 12 of it.\n\n\
        Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found or ambiguous, 4 conflict or locked,\n\
        5 invalid or damaged data, 6 an agent failed, 130 interrupted."
)]
pub struct Args {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub chat: ChatArgs,
}

/// Flags that stand before or after any command.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct GlobalArgs {
    /// Where sessions live: sqlite:FILE, sqlite::memory:, files:DIR, postgres://HOST/DATABASE
    #[arg(
        long,
        value_name = "URL",
        global = true,
        help_heading = "Global options"
    )]
    pub store: Option<String>,
    /// Keep everything (data, settings, state) below this folder
    #[arg(
        long,
        value_name = "DIR",
        global = true,
        help_heading = "Global options"
    )]
    pub data_dir: Option<PathBuf>,
    /// Answer with one JSON document
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,
    /// No colours, also on a terminal
    #[arg(long, global = true, help_heading = "Global options")]
    pub no_color: bool,
    /// Only data, warnings and errors
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub quiet: bool,
    /// Say more about what is done
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Global options")]
    pub verbose: u8,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    Chat(ChatArgs),
    #[command(visible_alias = "ls")]
    List(commands::list::ListArgs),
    Show(commands::show::ShowArgs),
    Search(commands::search::SearchArgs),
    Log(commands::log::LogArgs),
    Blame(commands::blame::BlameArgs),
    Rename(commands::rename::RenameArgs),
    Tag(commands::tag::TagArgs),
    Rm(commands::rm::RmArgs),
    Restore(commands::restore::RestoreArgs),
    Undo(commands::undo::UndoArgs),
    Prune(commands::prune::PruneArgs),
    Fork(commands::fork::ForkArgs),
    Diff(commands::diff::DiffArgs),
    Merge(commands::merge::MergeArgs),
    Replay(commands::replay::ReplayArgs),
    Export(commands::export::ExportArgs),
    Import(commands::import::ImportArgs),
    Seal(commands::seal::SealArgs),
    Unseal(commands::seal::UnsealArgs),
    Stats(commands::stats::StatsArgs),
    Doctor(commands::doctor::DoctorArgs),
    Store(commands::store::StoreArgs),
    Push(commands::sync::PushArgs),
    Pull(commands::sync::PullArgs),
    Sync(commands::sync::SyncArgs),
    #[command(hide = true)]
    SyncServe(commands::sync::serve::SyncServeArgs),
    Agents(commands::agents::AgentsArgs),
    Team(commands::team::TeamArgs),
    Pair(commands::pair::PairArgs),
    Trust(commands::trust::TrustArgs),
    Serve(commands::serve::ServeArgs),
    #[cfg(feature = "web")]
    Web(commands::web::WebArgs),
    Attach(commands::attach::AttachArgs),
    Ps(commands::ps::PsArgs),
    Stop(commands::stop::StopArgs),
    Help(commands::help::HelpArgs),
    Completions(commands::completions::CompletionsArgs),
    Man(commands::man::ManArgs),
}

/// How the events of a run are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// The answer as text
    #[default]
    Text,
    /// One JSON document at the end
    Json,
    /// One JSON event per line as it happens
    StreamJson,
}

/// Which tools an agent may use unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ApproveMode {
    /// Read-only tools run, others ask first
    Ask,
    /// Read-only tools and edits of files run, others ask first
    Edits,
    /// Read-only tools run, others are denied
    Low,
    /// All tools run
    All,
    /// No tools
    None,
}

impl From<ApproveMode> for Approval {
    fn from(mode: ApproveMode) -> Approval {
        match mode {
            ApproveMode::Ask => Approval::Ask,
            ApproveMode::Edits => Approval::Edits,
            ApproveMode::Low => Approval::Low,
            ApproveMode::All => Approval::All,
            ApproveMode::None => Approval::None,
        }
    }
}

impl From<Approval> for ApproveMode {
    fn from(mode: Approval) -> ApproveMode {
        match mode {
            Approval::Ask => ApproveMode::Ask,
            Approval::Edits => ApproveMode::Edits,
            Approval::Low => ApproveMode::Low,
            Approval::All => ApproveMode::All,
            Approval::None => ApproveMode::None,
        }
    }
}

/// Which sessions, shared by the commands that list and search.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct FilterArgs {
    /// Sessions of all projects, not only of this one
    #[arg(short, long)]
    pub all: bool,
    /// Only those that began in this git worktree or folder, not in others of the project
    #[arg(long, conflicts_with = "all")]
    pub worktree: bool,
    /// Only of this kind
    #[arg(long, value_enum)]
    pub kind: Option<KindArg>,
    /// Only of this team
    #[arg(long, value_name = "NAME")]
    pub team: Option<String>,
    /// Only those to which this user wrote
    #[arg(long, value_name = "NAME")]
    pub author: Option<String>,
    /// Only with this tag; with `auto_tags = true` in the settings, automatic ones count
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// Only sessions last used after WHEN: 7d, yesterday, "last week", 2026-11-01
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only sessions last used before WHEN
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Sessions in the trash
    #[arg(long)]
    pub trash: bool,
}

/// What kind of conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KindArg {
    /// One assistant
    Chat,
    /// Several agents and people
    Team,
    /// An instructor and a worker
    Pair,
}

impl From<KindArg> for tertulia_core::entry::Kind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Chat => tertulia_core::entry::Kind::Chat,
            KindArg::Team => tertulia_core::entry::Kind::Team,
            KindArg::Pair => tertulia_core::entry::Kind::Pair,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_a_hyphen_are_told_from_flags() {
        let check = |line: &str, expected: &[&str]| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let shielded: Vec<String> = shielded(words)
                .iter()
                .filter_map(|word| word.to_str()?.strip_prefix(SHIELD).map(str::to_owned))
                .collect();
            assert_eq!(shielded, expected, "{line}");
        };
        check("t search parser -draft --all -n5 -n 5 -a", &["-draft"]);
        check("t --store x search -draft -not", &["-draft", "-not"]);
        check("t search -- -draft", &[]);
        check("t tag @ +x -urgent -a --json -q", &["-urgent", "-a"]);
        check("t list -draft", &[]);
        check("t chat --name tag -c", &[]);
        check("t --store tag search -draft", &["-draft"]);
        check("t --agent search -p", &[]);
        check("t -r tag -p", &[]);
        check("t -c search -draft", &["-draft"]);
    }
}
