use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tertulia::formats::json;
use tertulia::query::{Hidden, Page, Row};

use crate::args::{FilterArgs, GlobalArgs};
use crate::error::CommandResult;
use crate::moment::ago;
use crate::ui::{Ui, fit};
use crate::{open, project, show};

/// Terminals of so many columns have room for the tokens.
const WIDE: u16 = 100;

/// Past so many sessions a limit is suggested.
const MANY: u64 = 1000;

/// List sessions, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia list                      this project's sessions\n  \
    tertulia list --all --since 7d     the last week everywhere\n  \
    tertulia list --tag release --json for scripts\n  \
    tertulia list --trash              what `restore` can bring back")]
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
    let house = open::house(global, ui)?;
    let page = Page {
        limit: args.limit,
        cursor: args.cursor.as_deref().map(str::parse).transpose()?,
    };
    let filter = house.filter(&args.filter)?;
    let listing = house.wait(house.sessions.store().list(&filter, &page))?;
    let next = listing.next.map(|cursor| cursor.to_string());
    if ui.json {
        let sessions: Vec<_> = listing.rows.iter().map(json::session).collect();
        ui.document(
            &json!({ "sessions": sessions, "hidden": listing.hidden.total(), "next": next }),
        );
        return Ok(ExitCode::SUCCESS);
    }
    let now = house.sessions.stamp().now();
    if listing.rows.is_empty() {
        ui.note(if args.filter.trash {
            "The trash is empty."
        } else {
            "No sessions here."
        });
    } else {
        let table = Columns {
            project: args.filter.all,
            tokens: !ui.has_screen() || ui.columns().is_none_or(|columns| columns >= WIDE),
            now,
        };
        let rows: Vec<Vec<String>> = listing.rows.iter().map(|row| table.cells(row)).collect();
        ui.table(&table.headings(), &rows);
    }
    if let Some(words) = hidden(listing.hidden) {
        ui.note(&words);
    }
    if let Some(next) = next {
        ui.note(&format!("More: add --cursor {next}"));
    }
    let total = listing.hidden.total() + listing.rows.len() as u64;
    if total > MANY && house.settings.retention.max_count.is_none() {
        ui.note(&format!("{} are kept; set `[retention] max_count` if that is too many. Nothing is removed unasked.", show::count(total, "session")));
    }
    Ok(ExitCode::SUCCESS)
}

/// The columns of the table.
struct Columns {
    project: bool,
    tokens: bool,
    now: jiff::Timestamp,
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
        let summary = &row.summary;
        let mut title = fit(summary.title_or_untitled(), 44);
        if row.open {
            title.push_str(" (open)");
        }
        let with = summary.team.clone();
        let with = with.unwrap_or_else(|| summary.agents.join(", "));
        let tags: Vec<String> = summary.tags.iter().map(|tag| format!("#{tag}")).collect();
        let mut cells = vec![
            summary.id.short(),
            title,
            ago(summary.updated_at, self.now),
            summary.messages.to_string(),
        ];
        let tokens = summary.tokens.input + summary.tokens.output;
        cells.extend(self.tokens.then(|| tokens.to_string()));
        cells.extend([summary.kind.name().to_owned(), fit(&with, 20)]);
        cells.extend(
            self.project
                .then(|| fit(&project::name_of(summary), 40)),
        );
        cells.push(tags.join(" "));
        cells
    }
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
