//! Renders a session in a format, and says what the format lacks.

use std::path::Path;

use serde_json::Value;
use tertulia_core::entry::Kind;
use tertulia_core::query::Row;
use tertulia_core::session::{Log, SessionMeta};
use tertulia_formats::exporter::{LeftOut, ProgramFile, ProgramPlace, atif, claude_code, codex};
use tertulia_formats::snapshot::Snapshot;
use tertulia_formats::{html, json, markdown};

use super::Format;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment;

/// A session in some format.
#[derive(Debug, Default)]
pub struct Rendered {
    /// The output.
    pub content: String,
    /// Content of the session that the format has no place for.
    pub left_out: LeftOut,
    /// What a user should know besides.
    pub notes: Vec<String>,
    /// Command that continues the session in another program.
    pub resume: Option<String>,
}

/// Renders a session. `cwd` is the working directory for a session that recorded none.
pub fn render(format: Format, row: &Row, log: &Log, cwd: &Path) -> CommandResult<Rendered> {
    let meta = &row.meta;
    let plain = |content: String| Rendered {
        content,
        ..Rendered::default()
    };
    Ok(match format {
        Format::Md => plain(markdown::transcript(meta, log)),
        Format::Html => plain(html::page(meta, log, &moment::zone())),
        Format::Json => {
            let text = serde_json::to_string_pretty(&Value::Object(json::transcript(row, log)));
            plain(format!("{}\n", text.unwrap_or_default()))
        }
        Format::Jsonl | Format::Bundle => plain(Form::Log.content(meta, log)?),
        Format::Snapshot => snapshot(meta, log)?,
        Format::ClaudeCode | Format::Codex => program(format, meta, log, cwd)?,
        Format::Atif => {
            let trajectory = atif::trajectory(meta, log, env!("CARGO_PKG_VERSION"));
            check_messages(meta, trajectory.steps)?;
            Rendered {
                left_out: trajectory.left_out,
                ..plain(trajectory.content)
            }
        }
    })
}

/// Returns where another program finds a session that is exported for it.
pub fn place(format: Format, meta: &SessionMeta, cwd: &Path) -> Option<ProgramPlace> {
    let cwd = cwd.to_string_lossy();
    match format {
        Format::ClaudeCode => Some(claude_code::place(meta, &cwd)),
        Format::Codex => Some(codex::place(meta, &cwd)),
        _ => None,
    }
}

fn program(format: Format, meta: &SessionMeta, log: &Log, cwd: &Path) -> CommandResult<Rendered> {
    let (file, place, folder, resume) = match place(format, meta, cwd) {
        Some(place) if format == Format::ClaudeCode => {
            let file = claude_code::file(meta, log, &place);
            let resume = format!("claude --resume {}", place.session);
            (file, place, "~/.claude/projects", resume)
        }
        place => {
            let place = place.unwrap_or_else(|| codex::place(meta, &cwd.to_string_lossy()));
            let file = codex::file(meta, log, &place);
            let resume = format!("codex resume {}", place.session);
            (file, place, "~/.codex/sessions", resume)
        }
    };
    let ProgramFile {
        messages,
        content,
        left_out,
    } = file;
    check_messages(meta, messages)?;
    Ok(Rendered {
        content,
        left_out,
        notes: vec![
            format!("Its place is {folder}/{}", place.path),
            format!("Resume it in {}: {resume}", place.cwd),
        ],
        resume: Some(resume),
    })
}

fn check_messages(meta: &SessionMeta, count: usize) -> CommandResult<()> {
    match count {
        0 => Err(CommandError::new(
            ErrorKind::Usage,
            format!(
                "{} has no messages for this format to contain",
                meta.id.short()
            ),
        )),
        _ => Ok(()),
    }
}

fn snapshot(meta: &SessionMeta, log: &Log) -> CommandResult<Rendered> {
    if meta.kind != Kind::Team {
        return Err(CommandError::new(
            ErrorKind::Usage,
            format!(
                "only a team session can be a snapshot, and {} is a {} session",
                meta.id.short(),
                meta.kind.name()
            ),
        )
        .hint("`--format jsonl` has everything of every session"));
    }
    let kept = Snapshot::of(meta, log).messages.len();
    let mut left_out = LeftOut::default();
    for _ in kept..log.messages().count() {
        left_out.count("messages of tools or with nothing but tool calls");
    }
    for _ in log.messages().flat_map(|(_, message)| &message.attachments) {
        left_out.count("attached files");
    }
    Ok(Rendered {
        content: Form::Snapshot.content(meta, log)?,
        left_out,
        ..Rendered::default()
    })
}

/// A format that can be both read and written, so that a session file can be kept up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The log itself, as JSON Lines.
    Log,
    /// An agent-chatter snapshot: the messages of a team session.
    Snapshot,
}

impl Form {
    /// Renders a session in this format.
    pub fn content(self, meta: &SessionMeta, log: &Log) -> CommandResult<String> {
        Ok(match self {
            Form::Log => {
                let entries = log.entries.iter();
                entries.map(|entry| format!("{}\n", entry.line())).collect()
            }
            Form::Snapshot => Snapshot::of(meta, log).write()?,
        })
    }
}
