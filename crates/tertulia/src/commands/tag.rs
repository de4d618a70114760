use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use tertulia_core::query::Row;
use tertulia_formats::json;

use crate::args::{GlobalArgs, unshielded};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::{self, Workspace};
use crate::ui::Ui;

/// Change a session's tags
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia tag @ +release +urgent      adds two\n  \
    tertulia tag 5f3a9c1e -urgent        removes one\n  \
    tertulia list --tag release")]
pub struct TagArgs {
    /// The session
    #[arg(value_name = "REF")]
    reference: String,
    /// +TAG to add, -TAG to remove
    #[arg(value_name = "+TAG|-TAG", required = true)]
    tags: Vec<String>,
}

pub fn run(args: &TagArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let (mut add, mut remove) = (Vec::new(), Vec::new());
    for change in &args.tags {
        match unshielded(change).split_at_checked(1) {
            Some(("+", tag)) => add.push(tag_name(tag)?),
            Some(("-", tag)) => remove.push(tag_name(tag)?),
            _ => return Err(wrong(unshielded(change))),
        }
    }
    let workspace = open::workspace(global, ui)?;
    let row = tag(&workspace, workspace.find(&args.reference)?, &add, &remove)?;
    if ui.json {
        ui.document(&Value::Object(json::session(&row)));
    } else {
        let tags: Vec<String> = row.meta.tags.iter().map(|tag| format!("#{tag}")).collect();
        let tags = if tags.is_empty() {
            "no tags".to_owned()
        } else {
            tags.join(" ")
        };
        ui.note(&format!("{} has {tags}", row.meta.id.short()));
    }
    let automatic = match workspace.settings.auto_tags {
        true => row.meta.auto_tags(),
        false => Vec::new(),
    };
    for tag in remove.iter().filter(|tag| automatic.contains(tag)) {
        ui.note(&format!(
            "~{tag} stays: it is automatic, from what the session did (`auto_tags` in your settings)"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds and removes tags of a session.
pub fn tag(
    workspace: &Workspace,
    mut row: Row,
    add: &[String],
    remove: &[String],
) -> CommandResult<Row> {
    let names = |tags: &[String]| tags.iter().map(|tag| tag_name(tag)).collect();
    let (add, remove): (CommandResult<Vec<String>>, CommandResult<Vec<String>>) =
        (names(add), names(remove));
    let (add, remove) = (add?, remove?);
    if add.is_empty() && remove.is_empty() {
        return Err(wrong(""));
    }
    let sessions = &workspace.sessions;
    let operation = sessions.clock().entry_id();
    row.meta = workspace.wait(sessions.tag(row.meta.id, &add, &remove, operation))?;
    Ok(row)
}

/// Checks a tag: one word of up to 50 characters. Strips leading `#`.
pub fn tag_name(tag: &str) -> CommandResult<String> {
    let tag = tag.trim_start_matches('#');
    let fits = !tag.is_empty()
        && tag.chars().count() <= 50
        && !tag.contains(|c: char| c.is_whitespace() || c.is_control() || c == ',');
    if fits {
        Ok(tag.to_owned())
    } else {
        Err(wrong(tag))
    }
}

fn wrong(change: &str) -> CommandError {
    CommandError::new(
        ErrorKind::Usage,
        format!("'{change}' is not a change of tags"),
    )
    .hint(
        "write +name to add a tag and -name to remove it; a tag is one word of up to 50 characters",
    )
}
