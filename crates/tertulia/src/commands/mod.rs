//! One module per command: its clap arguments, whose doc comments are the help text, and `run`.

pub mod agents;
pub mod attach;
pub mod blame;
pub mod chat;
pub mod completions;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod fork;
pub mod help;
pub mod import;
pub mod list;
pub mod log;
pub mod man;
pub mod merge;
pub mod pair;
pub mod prune;
pub mod ps;
pub mod rename;
pub mod replay;
pub mod restore;
pub mod rm;
pub mod seal;
pub mod search;
pub mod serve;
pub mod show;
pub mod stats;
pub mod stop;
pub mod store;
pub mod sync;
pub mod tag;
pub mod team;
pub mod trust;
pub mod undo;
#[cfg(feature = "web")]
pub mod web;

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Args, Command};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::settings::quoted;
use crate::ui::Ui;

/// Runs the command that the arguments select.
pub fn run(args: Args, ui: &mut Ui) -> CommandResult<ExitCode> {
    let global = args.global;
    let Some(command) = args.command else {
        not_a_mistyped_command(&args.chat)?;
        return chat::run(args.chat, &global, ui);
    };
    if args.chat != chat::ChatArgs::default() {
        return Err(CommandError::new(
            ErrorKind::Usage,
            "chat options cannot precede another command",
        )
        .hint("put them after the command, or omit the command"));
    }
    match command {
        Command::Chat(mut args) => {
            args.named = true;
            chat::run(args, &global, ui)
        }
        Command::List(args) => list::run(&args, &global, ui),
        Command::Show(args) => show::run(&args, &global, ui),
        Command::Search(args) => search::run(&args, &global, ui),
        Command::Log(args) => log::run(&args, &global, ui),
        Command::Rename(args) => rename::run(&args, &global, ui),
        Command::Tag(args) => tag::run(&args, &global, ui),
        Command::Rm(args) => rm::run(&args, &global, ui),
        Command::Restore(args) => restore::run(&args, &global, ui),
        Command::Undo(args) => undo::run(&args, &global, ui),
        Command::Prune(args) => prune::run(&args, &global, ui),
        Command::Blame(args) => blame::run(&args, &global, ui),
        Command::Fork(args) => fork::run(&args, &global, ui),
        Command::Diff(args) => diff::run(&args, &global, ui),
        Command::Merge(args) => merge::run(&args, &global, ui),
        Command::Replay(args) => replay::run(&args, &global, ui),
        Command::Export(args) => export::run(&args, &global, ui),
        Command::Import(args) => import::run(&args, &global, ui),
        Command::Seal(args) => seal::run(args, &global, ui),
        Command::Unseal(args) => seal::unseal(&args, &global, ui),
        Command::Stats(args) => stats::run(&args, &global, ui),
        Command::Doctor(args) => doctor::run(&args, &global, ui),
        Command::Store(args) => store::run(&args, &global, ui),
        Command::Push(args) => sync::push(&args, &global, ui),
        Command::Pull(args) => sync::pull(&args, &global, ui),
        Command::Sync(args) => sync::sync(&args, &global, ui),
        Command::SyncServe(args) => sync::serve::run(&args, &global, ui),
        Command::Agents(args) => agents::run(&args, &global, ui),
        Command::Team(args) => team::run(args, &global, ui),
        Command::Pair(args) => pair::run(args, &global, ui),
        Command::Trust(args) => trust::run(&args, &global, ui),
        Command::Serve(args) => serve::run(&args, &global, ui),
        #[cfg(feature = "web")]
        Command::Web(args) => web::run(&args, &global, ui),
        Command::Attach(args) => attach::run(&args, &global, ui),
        Command::Ps(args) => ps::run(&args, &global, ui),
        Command::Stop(args) => stop::run(&args, &global, ui),
        Command::Help(args) => help::run(&args),
        Command::Completions(args) => completions::run(&args, ui),
        Command::Man(args) => man::run(&args, ui),
    }
}

/// Rejects a prompt whose first word may be a mistyped command: without `chat`, a bare word is more
/// likely a typing error than a prompt.
fn not_a_mistyped_command(chat: &chat::ChatArgs) -> CommandResult<()> {
    let Some(word) = chat.prompt.first() else {
        return Ok(());
    };
    if chat.talk.print || chat.talk.names_a_session() || word.contains(char::is_whitespace) {
        return Ok(());
    }
    let mut error = CommandError::new(ErrorKind::Usage, format!("there is no command '{word}'"));
    let root = Args::command();
    let names = root
        .get_subcommands()
        .flat_map(clap::Command::get_name_and_visible_aliases);
    if let Some(near) = names
        .filter(|name| is_near(word, name))
        .min_by_key(|name| strsim::damerau_levenshtein(word, name))
    {
        error = error.hint(format!("did you mean `tertulia {near}`?"));
    }
    Err(error.hint(format!(
        "to send it as a prompt: `tertulia chat {}`",
        quoted(&chat.prompt.join(" "))
    )))
}

/// Returns true if one edit (two for names of more than six characters) turns `a` into `b`.
pub fn is_near(a: &str, b: &str) -> bool {
    let errors = if b.chars().count() > 6 { 2 } else { 1 };
    strsim::damerau_levenshtein(a, b) <= errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_near() {
        assert!(
            is_near("lst", "list")
                && is_near("serach", "search")
                && is_near("exprt", "export")
                && is_near("lsit", "list")
        );
        assert!(is_near("completion", "completions") && is_near("compeltion", "completions"));
        assert!(!is_near("hello", "help") && !is_near("hola", "show"));
        assert!(!is_near("merge", "serve"));
    }

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
