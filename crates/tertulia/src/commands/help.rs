use std::process::ExitCode;

use clap::{Args as ClapArgs, CommandFactory};

use super::is_near;
use crate::args::Args;
use crate::error::{self, CommandError, CommandResult, ErrorKind};

/// Show help, for a command or for the whole program
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    tertulia help\n  \
    tertulia help list          the same as `tertulia list --help`\n  \
    tertulia help team check    help for a command of a command")]
pub struct HelpArgs {
    /// Command, and command of that command
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

pub fn run(args: &HelpArgs) -> CommandResult<ExitCode> {
    let root = Args::command();
    let mut command = &root;
    let mut path = String::from("tertulia");
    for name in &args.command {
        let names: Vec<String> = command
            .get_subcommands()
            .flat_map(clap::Command::get_name_and_visible_aliases)
            .map(str::to_owned)
            .collect();
        command = match command.find_subcommand(name) {
            Some(found) => found,
            None => return Err(unknown(&path, name, &names)),
        };
        path = format!("{path} {name}");
    }
    let words = ["tertulia"].into_iter().map(str::to_owned);
    let words = words.chain(args.command.iter().cloned());
    let asked = words.chain(["--help".to_owned()]);
    Ok(match Args::command().try_get_matches_from(asked) {
        Err(help) => error::from_clap(help),
        Ok(_) => ExitCode::SUCCESS,
    })
}

fn unknown(path: &str, name: &str, names: &[String]) -> CommandError {
    let error = CommandError::new(
        ErrorKind::Usage,
        format!("there is no command '{path} {name}'"),
    );
    match names.iter().find(|near| is_near(name, near)) {
        Some(near) => error.hint(format!("did you mean `{path} {near}`?")),
        None => error.hint(format!("`{path} --help` lists the commands")),
    }
}
