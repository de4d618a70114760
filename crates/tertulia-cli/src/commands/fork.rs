use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use tertulia::entry::Relation;
use tertulia::formats::json;
use tertulia::query::Row;
use tertulia::store::Fork;

use super::rename;
use crate::args::GlobalArgs;
use crate::error::CommandResult;
use crate::open;
use crate::ui::Ui;

/// Make a new session that shares another's beginning
///
/// It costs the same for 10 and for 100 000 messages: what is shared is stored once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia fork @                    from its end\n  \
    tertulia fork 5f3a9c1e:12          from entry 12\n  \
    tertulia --resume $(tertulia fork @ -q)   and go on there")]
pub struct ForkArgs {
    /// The session, or an entry of it: REF or REF:N
    #[arg(value_name = "REF[:N]")]
    reference: String,
    /// The fork's title
    #[arg(short, long, value_name = "TITLE")]
    name: Option<String>,
}

pub fn run(args: &ForkArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let house = open::house(global, ui)?;
    let (row, at) = house.find_place(&args.reference)?;
    let fork = Fork {
        id: house.sessions.stamp().session_id(),
        at,
        title: args.name.as_deref().map(rename::title).transpose()?,
        relation: Relation::Fork,
    };
    let (summary, _) = house.wait(house.sessions.fork(&row.summary, &fork, Vec::new()))?;
    if ui.json {
        ui.document(&Value::Object(json::session(&Row {
            summary,
            open: false,
        })));
        return Ok(ExitCode::SUCCESS);
    }
    ui.line(&summary.id.to_string());
    let at = summary
        .parent
        .as_ref()
        .map_or(row.summary.head.seq, |parent| parent.seq);
    ui.note(&format!(
        "Forked {} at entry {at}. Resume: {} --resume {}",
        row.summary.id.short(),
        house.settings.program,
        summary.id.short()
    ));
    Ok(ExitCode::SUCCESS)
}
