use std::collections::HashSet;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tertulia_core::id::SessionId;
use tertulia_core::query::{Filter, Lookup, Row, Trash};
use tertulia_formats::json;

use super::prune::everything;
use crate::args::GlobalArgs;
use crate::error::CommandResult;
use crate::moment::ago;
use crate::open::{self, Workspace};
use crate::show;
use crate::ui::{DIM, Ui, fit};

/// Show the family of a session: what it was forked from, and what was forked from it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia log --graph             the family of this project's newest session\n  \
    tertulia log 5f3a9c1e --json")]
pub struct LogArgs {
    /// A member of the family
    #[arg(value_name = "REF", default_value = "@")]
    reference: String,
    /// Draw lines from parents to forks
    #[arg(long)]
    graph: bool,
}

/// A session with its forks.
struct Branch {
    row: Row,
    forks: Vec<Branch>,
}

pub fn run(args: &LogArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::reader(global, ui)?;
    let asked = workspace.find(&args.reference)?;
    let root = oldest(&workspace, asked.clone())?;
    let family = branch(&workspace, root, &mut HashSet::new())?;
    if ui.json {
        ui.document(&object(&family));
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = Vec::new();
    draw(
        &workspace, ui, &family, &asked, args.graph, true, &mut lines,
    );
    for line in lines {
        ui.line(&line);
    }
    Ok(ExitCode::SUCCESS)
}

/// Follows parents to the root, or up to a session whose parent is not in this store.
fn oldest(workspace: &Workspace, mut row: Row) -> CommandResult<Row> {
    let mut seen = vec![row.meta.id];
    while let Some(parent) = &row.meta.parent {
        // Guard against cycles, which imported data may contain.
        if seen.contains(&parent.id) {
            break;
        }
        match workspace
            .wait(workspace.sessions.store().find(&Lookup::Id(parent.id), 1))?
            .pop()
        {
            Some(found) => row = found,
            None => break,
        }
        seen.push(row.meta.id);
    }
    Ok(row)
}

fn branch(workspace: &Workspace, row: Row, seen: &mut HashSet<SessionId>) -> CommandResult<Branch> {
    let filter = Filter {
        parent: Some(row.meta.id),
        trash: Trash::With,
        ..Filter::default()
    };
    let mut forks = Vec::new();
    // Guard against cycles, which imported data may contain.
    if seen.insert(row.meta.id) {
        let mut rows = everything(workspace, &filter)?;
        rows.sort_by_key(|row| row.meta.created_at);
        for fork in rows {
            forks.push(branch(workspace, fork, seen)?);
        }
    }
    Ok(Branch { row, forks })
}

fn object(branch: &Branch) -> Value {
    let mut session = json::session(&branch.row);
    session.insert("forks".into(), branch.forks.iter().map(object).collect());
    json!(session)
}

fn draw(
    workspace: &Workspace,
    ui: &Ui,
    branch: &Branch,
    asked: &Row,
    graph: bool,
    is_root: bool,
    lines: &mut Vec<String>,
) {
    let meta = &branch.row.meta;
    let now = workspace.sessions.clock().now();
    let mark = if meta.id == asked.meta.id {
        "●"
    } else {
        "○"
    };
    let relation = match &meta.parent {
        Some(parent) if !is_root => format!("{} at {} · ", parent.relation.name(), parent.seq),
        _ => String::new(),
    };
    let state = if meta.trashed_at.is_some() {
        " · in the trash"
    } else {
        ""
    };
    let facts = ui.styled(
        DIM,
        &format!(
            "{relation}{} · {}{state}",
            show::messages(meta.messages),
            ago(meta.updated_at, now)
        ),
    );
    lines.push(format!(
        "{mark} {}  {}  {facts}",
        meta.id.short(),
        fit(meta.title_or_untitled(), 50)
    ));
    for (number, fork) in branch.forks.iter().enumerate() {
        let last = number + 1 == branch.forks.len();
        let (corner, below) = match (graph, last) {
            (true, true) => ("└─", "  "),
            (true, false) => ("├─", "│ "),
            (false, _) => ("  ", "  "),
        };
        let start = lines.len();
        draw(workspace, ui, fork, asked, graph, false, lines);
        for (at, line) in lines.iter_mut().enumerate().skip(start) {
            let lead = if at == start { corner } else { below };
            *line = format!("{lead}{line}");
        }
    }
}
