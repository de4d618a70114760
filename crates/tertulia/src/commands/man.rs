use std::process::ExitCode;

use clap::{Args, CommandFactory};

use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::ui::Ui;

/// Print the manual page, of the program or of one command
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia man | man -l -\n  \
    tertulia man search > tertulia-search.1")]
pub struct ManArgs {
    /// A command
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

pub fn run(args: &ManArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let mut root = crate::args::Args::command();
    root.build();
    let command = match &args.command {
        None => root,
        Some(name) => root.find_subcommand(name).cloned().ok_or_else(|| {
            CommandError::new(ErrorKind::Usage, format!("there is no command '{name}'"))
                .hint("`tertulia --help` lists them")
        })?,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| {
            CommandError::new(ErrorKind::Failed, "the manual page cannot be written").because(error)
        })?;
    ui.data(&String::from_utf8_lossy(&page));
    Ok(ExitCode::SUCCESS)
}
