use std::collections::HashSet;
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use tertulia_core::id::SessionId;
use tertulia_core::query::{Filter, Lookup, Row, Trash};
use tertulia_core::session::SessionMeta;
use tertulia_formats::json;

use crate::args::GlobalArgs;
use crate::error::CommandResult;
use crate::moment::ago;
use crate::open::{self, Workspace};
use crate::retention::everything;
use crate::show;
use crate::ui::{DIM, Ui, fit};

/// Show the family of a session: forks, replays and merges
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
    /// Whether it is a merge whose forks are shown with its first parent.
    repeated: bool,
}

pub fn run(args: &LogArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::reader(global, ui)?;
    let asked = workspace.find(&args.reference)?;
    if ui.json {
        let mut trees = documents(&workspace, &asked)?.into_iter();
        let mut document = trees.next().unwrap_or_default();
        let joined: Vec<Value> = trees.collect();
        if !joined.is_empty() {
            document["joined"] = joined.into();
        }
        ui.document(&document);
        return Ok(ExitCode::SUCCESS);
    }
    let family = family(&workspace, &asked)?;
    let drawing = Drawing {
        now: workspace.sessions.clock().now(),
        asked: asked.meta.id,
        graph: args.graph,
    };
    for tree in &family {
        for line in drawing.lines(ui, tree, None) {
            ui.line(&line);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the trees of a family as objects: the one of the session first.
pub fn documents(workspace: &Workspace, asked: &Row) -> CommandResult<Vec<Value>> {
    Ok(family(workspace, asked)?.iter().map(object).collect())
}

/// Returns the tree of a session, and those of sessions that were merged with members of it.
fn family(workspace: &Workspace, asked: &Row) -> CommandResult<Vec<Branch>> {
    let mut seen = HashSet::new();
    let mut trees = Vec::new();
    let mut waiting = vec![asked.clone()];
    while let Some(member) = waiting.pop() {
        if seen.contains(&member.meta.id) {
            continue;
        }
        let root = oldest(workspace, member)?;
        let tree = branch(workspace, root, None, &mut seen)?;
        let mut others = Vec::new();
        merge_parents(&tree, &mut others);
        trees.push(tree);
        for id in others {
            waiting.extend(find(workspace, id)?);
        }
    }
    Ok(trees)
}

fn find(workspace: &Workspace, id: SessionId) -> CommandResult<Option<Row>> {
    let lookup = Lookup::Id(id);
    let found = workspace.sessions.store().find(&lookup, 1);
    Ok(workspace.wait(found)?.pop())
}

/// Collects both parents of each merge in a tree.
fn merge_parents(tree: &Branch, found: &mut Vec<SessionId>) {
    let meta = &tree.row.meta;
    if let Some(merged) = &meta.merged {
        found.push(merged.id);
        found.extend(meta.parent.as_ref().map(|parent| parent.id));
    }
    tree.forks
        .iter()
        .for_each(|fork| merge_parents(fork, found));
}

/// Follows parents to the root, or up to a session whose parent is not in this store.
fn oldest(workspace: &Workspace, mut row: Row) -> CommandResult<Row> {
    let mut seen = vec![row.meta.id];
    while let Some(parent) = &row.meta.parent {
        // Guard against cycles, which imported data may contain.
        if seen.contains(&parent.id) {
            break;
        }
        match find(workspace, parent.id)? {
            Some(found) => row = found,
            None => break,
        }
        seen.push(row.meta.id);
    }
    Ok(row)
}

fn branch(
    workspace: &Workspace,
    row: Row,
    above: Option<SessionId>,
    seen: &mut HashSet<SessionId>,
) -> CommandResult<Branch> {
    let repeated = is_repeated(workspace, &row, above)?;
    let mut forks = Vec::new();
    // Guard against cycles, which imported data may contain.
    if !repeated && seen.insert(row.meta.id) {
        let filter = Filter {
            parent: Some(row.meta.id),
            trash: Trash::With,
            ..Filter::default()
        };
        let mut rows = everything(workspace, &filter)?;
        rows.sort_by_key(|row| row.meta.created_at);
        for fork in rows {
            forks.push(branch(workspace, fork, Some(row.meta.id), seen)?);
        }
    }
    Ok(Branch {
        row,
        forks,
        repeated,
    })
}

/// Returns true for a merge below its second parent, if its first parent is in this store, too.
fn is_repeated(workspace: &Workspace, row: &Row, above: Option<SessionId>) -> CommandResult<bool> {
    let (Some(first), Some(above)) = (&row.meta.parent, above) else {
        return Ok(false);
    };
    Ok(first.id != above && find(workspace, first.id)?.is_some())
}

fn object(branch: &Branch) -> Value {
    let mut session = json::session(&branch.row);
    session.insert("forks".into(), branch.forks.iter().map(object).collect());
    if branch.repeated {
        session.insert("repeated".into(), true.into());
    }
    json!(session)
}

/// How a family is drawn.
struct Drawing {
    now: Timestamp,
    asked: SessionId,
    graph: bool,
}

impl Drawing {
    /// Returns the lines of a session and its forks.
    fn lines(&self, ui: &Ui, branch: &Branch, above: Option<SessionId>) -> Vec<String> {
        let mut lines = vec![self.line(ui, branch, above)];
        let id = branch.row.meta.id;
        for (number, fork) in branch.forks.iter().enumerate() {
            let last = number + 1 == branch.forks.len();
            let (corner, below) = match (self.graph, last) {
                (true, true) => ("└─", "  "),
                (true, false) => ("├─", "│ "),
                (false, _) => ("  ", "  "),
            };
            let forked = self.lines(ui, fork, Some(id)).into_iter().enumerate();
            lines.extend(forked.map(|(at, line)| {
                let lead = if at == 0 { corner } else { below };
                format!("{lead}{line}")
            }));
        }
        lines
    }

    fn line(&self, ui: &Ui, branch: &Branch, above: Option<SessionId>) -> String {
        let meta = &branch.row.meta;
        let mark = match (&meta.merged, branch.repeated) {
            _ if meta.id == self.asked && !branch.repeated => "●",
            (Some(_), false) => "◆",
            (Some(_), true) => "◇",
            (None, _) => "○",
        };
        let mut facts = Vec::new();
        if branch.repeated {
            let first = meta.parent.as_ref().map(|parent| parent.id.short());
            let first = first.unwrap_or_default();
            facts.push(format!("merge, shown below {first}"));
        } else {
            facts.extend(relation(meta, above));
            facts.push(show::messages(meta.messages));
            facts.push(ago(meta.updated_at, self.now));
        }
        if meta.trashed_at.is_some() {
            facts.push("in the trash".to_owned());
        }
        format!(
            "{mark} {}  {}  {}",
            meta.id.short(),
            fit(meta.title_or_untitled(), 50),
            ui.styled(DIM, &facts.join(" · "))
        )
    }
}

/// Describes what a session was made from, unless it is drawn as the root of a tree.
fn relation(meta: &SessionMeta, above: Option<SessionId>) -> Option<String> {
    let parent = meta.parent.as_ref()?;
    match &meta.merged {
        // Both parents are named: one of them is elsewhere in the picture.
        Some(merged) => Some(format!(
            "merge of {} at {} and {} at {}",
            parent.id.short(),
            parent.seq,
            merged.id.short(),
            merged.seq
        )),
        None if above.is_some() => Some(format!("{} at {}", parent.relation.name(), parent.seq)),
        None => None,
    }
}
