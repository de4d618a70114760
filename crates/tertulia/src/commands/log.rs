use std::collections::HashSet;
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;
use tertulia_core::id::SessionId;
use tertulia_core::query::{Filter, Lookup, Page, Row, Trash};
use tertulia_core::session::SessionMeta;
use tertulia_store::StoreError;

use crate::args::GlobalArgs;
use crate::error::CommandResult;
use crate::moment::ago;
use crate::open::{self, Workspace};
use crate::show;
use crate::ui::{DIM, Ui, fit};

use self::family::{Link, Links, Member};

mod family;

/// Sessions per page of the list.
const PAGE: usize = 1000;
/// Largest number of lines that are drawn beside each other.
const MOST_LEADS: usize = 40;

/// Show the family of a session: forks, replays, merges and subagents
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia log --graph             the family of this project's newest session\n  \
    tertulia log 5f3a9c1e --json")]
pub struct LogArgs {
    /// Session
    #[arg(value_name = "REF", default_value = "@")]
    reference: String,
    /// Draw lines from parents to forks
    #[arg(long)]
    graph: bool,
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
        drawing.draw(ui, tree);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the trees of a family as objects: the one of the session first.
pub fn documents(workspace: &Workspace, asked: &Row) -> CommandResult<Vec<Value>> {
    let trees = family(workspace, asked)?;
    Ok(trees
        .iter()
        .map(|tree| family::document(tree, asked.meta.id))
        .collect())
}

/// Returns the tree of a session, and those of sessions that were merged with members of it. Stores
/// have no index of forks: the list is read once.
fn family(workspace: &Workspace, asked: &Row) -> CommandResult<Vec<Vec<Member<Row>>>> {
    let mut links = vec![(asked.meta.id, link(&asked.meta))];
    let mut page = Page::first(PAGE);
    loop {
        let filter = Filter {
            trash: Trash::With,
            ..Filter::default()
        };
        let listing = workspace.wait(workspace.sessions.store().list(&filter, &page))?;
        for mut row in listing.rows {
            workspace.wait(workspace.sessions.name_parents(&mut row.meta))?;
            links.push((row.meta.id, link(&row.meta)));
        }
        match listing.next {
            Some(next) => page.cursor = Some(next),
            None => break,
        }
    }
    let trees = Links::new(links).trees(asked.meta.id);
    trees
        .into_iter()
        .map(|tree| {
            tree.into_iter()
                .map(|member| with_row(workspace, member))
                .collect()
        })
        .collect()
}

fn link(meta: &SessionMeta) -> Link {
    Link {
        created_at: meta.created_at,
        parent: meta.parent.as_ref().map(|parent| parent.id),
        merged: meta.merged.as_ref().map(|merged| merged.id),
    }
}

fn with_row(workspace: &Workspace, member: Member<SessionId>) -> CommandResult<Member<Row>> {
    let lookup = Lookup::Id(member.session);
    let found = workspace.wait(workspace.sessions.store().find(&lookup, 1))?;
    // Purged meanwhile, if there is none.
    let mut row = found
        .into_iter()
        .next()
        .ok_or(StoreError::NotFound(member.session))?;
    workspace.wait(workspace.sessions.name_parents(&mut row.meta))?;
    Ok(Member {
        session: row,
        above: member.above,
        depth: member.depth,
        repeated: member.repeated,
    })
}

/// How a family is drawn.
struct Drawing {
    now: Timestamp,
    asked: SessionId,
    graph: bool,
}

impl Drawing {
    /// Prints a line for each session. Below many generations, only the nearest lines are drawn.
    fn draw(&self, ui: &mut Ui, tree: &[Member<Row>]) {
        let mut is_last = vec![true; tree.len()];
        let mut seen = HashSet::new();
        for (at, member) in tree.iter().enumerate().rev() {
            is_last[at] = member.above.is_none_or(|above| seen.insert(above));
        }
        // What stands before the forks of each member of the current branch.
        let mut leads: Vec<&'static str> = Vec::new();
        for (member, is_last) in tree.iter().zip(is_last) {
            leads.truncate(member.depth.saturating_sub(1));
            let (corner, below) = match (self.graph, is_last) {
                _ if member.above.is_none() => ("", ""),
                (true, true) => ("└─", "  "),
                (true, false) => ("├─", "│ "),
                (false, _) => ("  ", "  "),
            };
            let near = leads.len().saturating_sub(MOST_LEADS);
            let far = if near > 0 { "…" } else { "" };
            let line = self.line(ui, tree, member);
            ui.line(&format!("{far}{}{corner}{line}", leads[near..].concat()));
            if member.above.is_some() {
                leads.push(below);
            }
        }
    }

    fn line(&self, ui: &Ui, tree: &[Member<Row>], member: &Member<Row>) -> String {
        let meta = &member.session.meta;
        let above = member.above.and_then(|above| tree.get(above));
        let above = above.map(|above| above.session.meta.id);
        let mark = match (&meta.merged, member.repeated) {
            _ if meta.id == self.asked && !member.repeated => "●",
            (Some(_), false) => "◆",
            (Some(_), true) => "◇",
            (None, _) => "○",
        };
        let mut facts = Vec::new();
        if member.repeated {
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
        None if above.is_some() => Some(match parent.place() {
            Some(seq) => format!("{} at {seq}", parent.relation.name()),
            None => parent.relation.name().to_owned(),
        }),
        None => None,
    }
}
