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
use crate::open::{self, House};
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

/// A session with what was forked from it.
struct Branch {
    row: Row,
    forks: Vec<Branch>,
}

pub fn run(args: &LogArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let house = open::reader(global, ui)?;
    let asked = house.find(&args.reference)?;
    let root = oldest(&house, asked.clone())?;
    let family = branch(&house, root, &mut HashSet::new())?;
    if ui.json {
        ui.document(&object(&family));
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = Vec::new();
    draw(&house, ui, &family, &asked, args.graph, true, &mut lines);
    for line in lines {
        ui.line(&line);
    }
    Ok(ExitCode::SUCCESS)
}

/// Follows parents up to the one that has none, or whose parent is not in this store.
fn oldest(house: &House, mut row: Row) -> CommandResult<Row> {
    let mut seen = vec![row.summary.id];
    while let Some(parent) = &row.summary.parent {
        // A family is a tree; data from elsewhere may claim otherwise.
        if seen.contains(&parent.id) {
            break;
        }
        match house
            .wait(house.sessions.store().find(&Lookup::Id(parent.id), 1))?
            .pop()
        {
            Some(found) => row = found,
            None => break,
        }
        seen.push(row.summary.id);
    }
    Ok(row)
}

fn branch(house: &House, row: Row, seen: &mut HashSet<SessionId>) -> CommandResult<Branch> {
    let filter = Filter {
        parent: Some(row.summary.id),
        trash: Trash::With,
        ..Filter::default()
    };
    let mut forks = Vec::new();
    // A family is a tree; data from elsewhere may claim otherwise.
    if seen.insert(row.summary.id) {
        let mut rows = everything(house, &filter)?;
        rows.sort_by_key(|row| row.summary.created_at);
        for fork in rows {
            forks.push(branch(house, fork, seen)?);
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
    house: &House,
    ui: &Ui,
    branch: &Branch,
    asked: &Row,
    graph: bool,
    is_root: bool,
    lines: &mut Vec<String>,
) {
    let summary = &branch.row.summary;
    let now = house.sessions.stamp().now();
    let mark = if summary.id == asked.summary.id {
        "●"
    } else {
        "○"
    };
    let relation = match &summary.parent {
        Some(parent) if !is_root => format!("{} at {} · ", parent.relation.name(), parent.seq),
        _ => String::new(),
    };
    let state = if summary.trashed_at.is_some() {
        " · in the trash"
    } else {
        ""
    };
    let facts = ui.styled(
        DIM,
        &format!(
            "{relation}{} · {}{state}",
            show::messages(summary.messages),
            ago(summary.updated_at, now)
        ),
    );
    lines.push(format!(
        "{mark} {}  {}  {facts}",
        summary.id.short(),
        fit(summary.title_or_untitled(), 50)
    ));
    for (number, fork) in branch.forks.iter().enumerate() {
        let last = number + 1 == branch.forks.len();
        let (corner, below) = match (graph, last) {
            (true, true) => ("└─", "  "),
            (true, false) => ("├─", "│ "),
            (false, _) => ("  ", "  "),
        };
        let start = lines.len();
        draw(house, ui, fork, asked, graph, false, lines);
        for (at, line) in lines.iter_mut().enumerate().skip(start) {
            let lead = if at == start { corner } else { below };
            *line = format!("{lead}{line}");
        }
    }
}
