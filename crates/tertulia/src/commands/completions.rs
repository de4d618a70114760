use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::error::CommandResult;
use crate::ui::Ui;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia completions bash > ~/.local/share/bash-completion/completions/tertulia\n  \
    tertulia completions zsh  > ~/.zfunc/_tertulia\n  \
    tertulia completions fish > ~/.config/fish/completions/tertulia.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &CompletionsArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut crate::args::Args::command(),
        "tertulia",
        &mut script,
    );
    ui.data(&String::from_utf8_lossy(&script));
    Ok(ExitCode::SUCCESS)
}
