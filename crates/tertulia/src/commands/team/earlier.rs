//! Offers to resume a team's earlier session when a new one is started.

use std::io::BufRead;

use tertulia_core::entry::Kind;
use tertulia_core::query::Row;
use tertulia_core::team::TeamFile;

use crate::error::CommandResult;
use crate::moment::ago;
use crate::open::Workspace;
use crate::show;
use crate::talk::Sort;
use crate::talk::target;
use crate::ui::{Ui, fit, harmless};

/// The user's choice about an earlier session.
pub enum Choice {
    Resume(Box<Row>),
    New,
    Leave,
}

/// Returns this team's newest session in this project, else the newest imported without a project.
pub fn newest(workspace: &Workspace, team: &TeamFile) -> CommandResult<Option<Row>> {
    target::newest(Sort::of(Kind::Team, Some(team.id())), workspace)
}

/// Mentions this team's newest session when a new one is started with a prompt.
pub fn mention(workspace: &Workspace, team: &TeamFile, ui: &mut Ui) -> CommandResult<()> {
    if let Some(row) = newest(workspace, team)? {
        let when = ago(row.meta.updated_at, workspace.sessions.clock().now());
        ui.note(&format!(
            "{} has an earlier session, \"{}\" ({when}): `{} --resume {}` resumes it.",
            harmless(team.shown_name()),
            fit(&harmless(row.meta.title_or_untitled()), 50),
            workspace.settings.program,
            row.meta.id.short()
        ));
    }
    Ok(())
}

/// Asks whether to resume this team's newest session, if there is one.
pub fn offer(workspace: &Workspace, team: &TeamFile, ui: &mut Ui) -> CommandResult<Choice> {
    let Some(row) = newest(workspace, team)? else {
        return Ok(Choice::New);
    };
    let when = ago(row.meta.updated_at, workspace.sessions.clock().now());
    ui.ask(&format!(
        "{} has an earlier session: {when}, {}\n  \"{}\"",
        harmless(team.shown_name()),
        show::messages(row.meta.messages),
        fit(&harmless(row.meta.title_or_untitled()), 70)
    ));
    loop {
        ui.prompt("[R] Resume  [N] New  [Q] Quit: ");
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        match line.trim().to_lowercase().as_str() {
            "r" | "resume" => return Ok(Choice::Resume(Box::new(row))),
            "n" | "new" => return Ok(Choice::New),
            "q" | "quit" | "\u{1b}" => return Ok(Choice::Leave),
            // End of input.
            "" if !matches!(read, Ok(1..)) => return Ok(Choice::Leave),
            _ => ui.note("type R to resume it, N for a new session, Q to quit"),
        }
    }
}
