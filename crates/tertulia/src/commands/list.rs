use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value, json};
use tertulia_core::query::{DamagedSession, Hidden, Page, Row};
use tertulia_formats::json;

use crate::args::{FilterArgs, GlobalArgs};
use crate::error::CommandResult;
use crate::moment::ago;
use crate::open;
use crate::project;
use crate::ui::{Ui, fit};

/// Minimum terminal width, in columns, for the tokens column.
const WIDE: u16 = 100;

/// Number of sessions above which a retention limit is suggested.
const MANY: u64 = 1000;

/// List sessions, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia list                        this project's sessions\n  \
    tertulia list --worktree             only those that began in this git worktree\n  \
    tertulia list --all --since 7d       the last week everywhere\n  \
    tertulia list --tag release --json   for scripts\n  \
    tertulia list --trash                what `restore` can bring back")]
pub struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Maximum number of sessions
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
    limit: usize,
    /// Continue after an earlier page: its "next"
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub fn run(args: &ListArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::reader(global, ui)?;
    let page = Page {
        limit: args.limit,
        cursor: args.cursor.as_deref().map(str::parse).transpose()?,
    };
    let filter = workspace.filter(&args.filter)?;
    let mut listing = workspace.wait(workspace.sessions.store().list(&filter, &page))?;
    let rows = std::mem::take(&mut listing.rows).into_iter();
    listing.rows = rows
        .map(|row| workspace.as_read(row))
        .collect::<Result<_, _>>()?;
    let next = listing.next.map(|cursor| cursor.to_string());
    if ui.json {
        for row in &mut listing.rows {
            // Ignore errors: `doctor` names logs that cannot be read, and the list shows what it knows.
            let _ = workspace.wait(workspace.sessions.name_parents(&mut row.meta));
        }
        let auto_tags = workspace.settings.auto_tags;
        let sessions: Vec<_> = listing
            .rows
            .iter()
            .map(|row| session(row, auto_tags))
            .collect();
        let mut document =
            json!({ "sessions": sessions, "hidden": listing.hidden.total(), "next": next });
        if !listing.damaged.is_empty() {
            document["damaged"] = json!(listing.damaged);
        }
        ui.document(&document);
        return Ok(ExitCode::SUCCESS);
    }
    let now = workspace.sessions.clock().now();
    if listing.rows.is_empty() {
        ui.note(if args.filter.trash {
            "The trash is empty."
        } else {
            "No sessions here."
        });
        if args.filter.worktree {
            ui.advise("`tertulia list` also lists those of the project's other worktrees");
        }
    } else {
        let table = Columns {
            project: args.filter.all,
            tokens: !ui.has_screen() || ui.columns().is_none_or(|columns| columns >= WIDE),
            auto_tags: workspace.settings.auto_tags,
            now,
            projects: project::Names::of_sessions(listing.rows.iter().map(|row| &row.meta)),
        };
        let rows: Vec<Vec<String>> = listing.rows.iter().map(|row| table.cells(row)).collect();
        ui.table(&table.headings(), &rows);
    }
    if let Some(words) = hidden(listing.hidden) {
        ui.note(&words);
    }
    if let Some(words) = damaged(&listing.damaged) {
        ui.note(&words);
    }
    if let Some(next) = next {
        ui.note(&format!("More: add --cursor {next}"));
    }
    if workspace.settings.retention.max_count.is_none() && listing.sessions > MANY {
        ui.note(&format!("More than {MANY} sessions are kept; set `[retention] max_count` if that is too many. Nothing is removed unasked."));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the object of a session, with automatic tags if they are on.
fn session(row: &Row, auto_tags: bool) -> Map<String, Value> {
    let mut object = json::session(row);
    if auto_tags {
        object.insert("auto_tags".into(), json!(row.meta.auto_tags()));
    }
    object
}

/// Which columns the table has.
struct Columns {
    project: bool,
    tokens: bool,
    auto_tags: bool,
    now: jiff::Timestamp,
    projects: project::Names,
}

impl Columns {
    fn headings(&self) -> Vec<&'static str> {
        let mut headings = vec!["ID", "TITLE", "UPDATED", "MSGS"];
        headings.extend(self.tokens.then_some("TOKENS"));
        headings.extend(["KIND", "WITH"]);
        headings.extend(self.project.then_some("PROJECT"));
        headings.push("TAGS");
        headings
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        let meta = &row.meta;
        let mut title = fit(meta.title_or_untitled(), 44);
        if row.open {
            title.push_str(" (open)");
        }
        let with = meta.team.clone();
        let with = with.unwrap_or_else(|| meta.agents.join(", "));
        let mut tags: Vec<String> = meta.tags.iter().map(|tag| format!("#{tag}")).collect();
        if self.auto_tags {
            let auto_tags = meta.auto_tags().into_iter();
            tags.extend(auto_tags.map(|tag| format!("~{tag}")));
        }
        let mut cells = vec![
            meta.id.short(),
            title,
            ago(meta.updated_at, self.now),
            meta.messages.to_string(),
        ];
        let tokens = meta.tokens.input + meta.tokens.output;
        cells.extend(self.tokens.then(|| tokens.to_string()));
        cells.extend([meta.kind.name().to_owned(), fit(&with, 20)]);
        let project = self.projects.get(meta.project.as_deref());
        cells.extend(self.project.then(|| fit(project, 40)));
        cells.push(tags.join(" "));
        cells
    }
}

/// Names the damaged sessions in one line.
pub fn damaged(damaged: &[DamagedSession]) -> Option<String> {
    const NAMED: usize = 5;
    let mut names: Vec<String> = damaged
        .iter()
        .filter_map(|session| Some(session.id?.short()))
        .take(NAMED)
        .collect();
    let others = damaged.len() - names.len();
    match others {
        0 => {}
        _ if names.is_empty() => names.push("which is not known".to_owned()),
        others => names.push(format!("{others} more")),
    }
    let what = match damaged.len() {
        0 => return None,
        1 => "1 session is damaged".to_owned(),
        count => format!("{count} sessions are damaged"),
    };
    Some(format!(
        "{what}: {}. Run `tertulia doctor`.",
        names.join(", ")
    ))
}

fn hidden(hidden: Hidden) -> Option<String> {
    let mut parts = Vec::new();
    if hidden.elsewhere > 0 {
        parts.push(format!("{} in other projects (--all)", hidden.elsewhere));
    }
    if hidden.trashed > 0 {
        parts.push(format!("{} in the trash (--trash)", hidden.trashed));
    }
    (!parts.is_empty()).then(|| format!("Hidden: {}", parts.join(", ")))
}
