mod columns;
mod marked;
mod unified;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tertulia_core::diff::{Common, Comparison, Scope};
use tertulia_core::query::Row;
use tertulia_formats::comparison::{self, Compared, counts};

use super::export;
use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment::ago;
use crate::open::{self, Workspace};
use crate::show;
use crate::ui::{BOLD, DIM, Ui, fit};
use marked::Printing;

/// Minimum terminal width, in columns, for two sessions side by side.
const WIDE: u16 = 120;

/// Compare two sessions: messages that only one has, and messages that changed
///
/// Forks are compared from the last entry that both have. Other sessions, such as replays, are aligned
/// by role and content. The output is side by side on a terminal with 120 or more columns. Exits with 1
/// if the sessions differ.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia diff 5f3a9c1e @              a session and the newest one\n  \
    tertulia diff @~1 @ --tools           only their tool calls, with arguments and results\n  \
    tertulia diff @~1 @ --json | jq '.changed[].words'\n  \
    tertulia diff @~1 @ --html -o diff.html\n  \
    tertulia diff -q 5f3a9c1e @ >/dev/null && echo the same")]
pub struct DiffArgs {
    /// First session
    #[arg(value_name = "A")]
    a: String,
    /// Second session
    #[arg(value_name = "B")]
    b: String,
    /// Compare only tool calls: name, arguments and result
    #[arg(long)]
    tools: bool,
    /// Write one page of HTML
    #[arg(long)]
    html: bool,
    /// Write the page to this file instead of standard output
    #[arg(short, long, value_name = "FILE", requires = "html")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    force: bool,
}

pub fn run(args: &DiffArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    if args.html && ui.json && args.output.is_none() {
        let words = "--html and --json are two forms of output";
        return Err(CommandError::new(ErrorKind::Usage, words)
            .hint("choose one, or write the page to a file with -o"));
    }
    let workspace = open::reader(global, ui)?;
    let a = workspace.as_read(workspace.unlocked(workspace.find(&args.a)?)?)?;
    let b = workspace.as_read(workspace.unlocked(workspace.find(&args.b)?)?)?;
    let mut both = workspace.wait(workspace.sessions.diverge(&a.meta, &b.meta))?;
    workspace.with_unfinished(&a, &mut both.ours)?;
    workspace.with_unfinished(&b, &mut both.theirs)?;
    for log in [&both.ours, &both.theirs] {
        for line in show::damage(&log.damage) {
            ui.warn(&format!("damaged: {line}"));
        }
    }
    let scope = match args.tools {
        true => Scope::Tools,
        false => Scope::Messages,
    };
    let comparison = Comparison::of(
        scope,
        (a.meta.kind, &both.ours.entries),
        (b.meta.kind, &both.theirs.entries),
    );
    let compared = Compared {
        a: &a.meta,
        b: &b.meta,
        shared: both.shared.seq,
        comparison: &comparison,
    };
    if args.html {
        write_page(args, &compared, ui)?;
    } else if ui.json {
        ui.document(&comparison::document(&compared));
    } else {
        print(&workspace, (&a, &b), &compared, ui);
    }
    Ok(match comparison.is_identical() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn write_page(args: &DiffArgs, compared: &Compared<'_>, ui: &mut Ui) -> CommandResult<()> {
    let page = comparison::page(compared);
    let Some(file) = &args.output else {
        ui.answer(&page);
        return Ok(());
    };
    export::write(file, page.as_bytes(), args.force)?;
    if ui.json {
        ui.document(&json!({
            "file": file.display().to_string(),
            "bytes": page.len(),
            "identical": compared.comparison.is_identical(),
        }));
    } else {
        ui.note(&format!("Wrote {} ({} bytes)", file.display(), page.len()));
    }
    Ok(())
}

/// Prints the difference as text; nothing if there is none.
fn print(workspace: &Workspace, (a, b): (&Row, &Row), compared: &Compared<'_>, ui: &mut Ui) {
    if compared.comparison.is_identical() {
        let words = match (a.meta.id == b.meta.id, compared.comparison.scope) {
            (true, _) => "No differences: both are the same session.",
            (false, Scope::Messages) => "No differences: the messages are equal.",
            (false, Scope::Tools) => "No differences: the tool calls are equal.",
        };
        return ui.note(words);
    }
    let now = workspace.sessions.clock().now();
    let heading = |mark: char, row: &Row| {
        let meta = &row.meta;
        let title = fit(meta.title_or_untitled(), 50);
        let messages = show::messages(meta.messages);
        let age = ago(meta.updated_at, now);
        format!("{mark} {}  {title}  ({messages}, {age})", meta.id.short())
    };
    ui.line(&ui.styled(BOLD, &heading('-', a)));
    ui.line(&ui.styled(BOLD, &heading('+', b)));
    ui.line(&ui.styled(DIM, &common(compared)));
    ui.line(&ui.styled(DIM, &counts(compared.comparison)));
    let columns = ui.columns().filter(|columns| *columns >= WIDE);
    let printing = Printing::new(ui, columns.is_none(), now);
    let print = |text: &str| ui.data(text);
    match columns {
        Some(columns) => columns::print(compared.comparison, printing, columns.into(), print),
        None => unified::print(compared.comparison, printing, print),
    }
}

/// Describes what both sessions have.
fn common(compared: &Compared<'_>) -> String {
    match compared.common() {
        Common::Ancestor => match compared.shared.0 {
            1 => "Both have entry 1.".to_owned(),
            last => format!("Both have entries 1 to {last}."),
        },
        Common::Alignment => "No common entry: aligned by role and content.".to_owned(),
        Common::None => "Nothing in common.".to_owned(),
    }
}
