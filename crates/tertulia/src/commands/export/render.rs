//! Renders a session in a format, and says what the format lacks.

use std::path::Path;

use serde_json::Value;
use tertulia_core::entry::Kind;
use tertulia_core::id::Seq;
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
        Format::Jsonl | Format::Bundle => plain(lines_of(log)),
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
        content: Snapshot::of(meta, log).write()?,
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
    /// A session file of Claude Code: lines are appended.
    ClaudeCode,
    /// A rollout file of Codex: lines are appended.
    Codex,
}

impl Form {
    /// Returns the form of another program's files, if tertulia can continue them.
    pub fn of_program(name: &str) -> Option<Form> {
        match name {
            "claude-code" => Some(Form::ClaudeCode),
            "codex" => Some(Form::Codex),
            _ => None,
        }
    }

    /// Renders what a file gets.
    pub fn written(
        self,
        meta: &SessionMeta,
        log: &Log,
        file: &Continued<'_>,
    ) -> CommandResult<Written> {
        let Continued { content, after } = *file;
        Ok(match self {
            Form::Log => Written::Whole(lines_of(log)),
            Form::Snapshot => Written::Whole(Snapshot::of(meta, log).write()?),
            Form::ClaudeCode => Written::More(claude_code::continuation(meta, log, after, content)),
            Form::Codex => Written::More(codex::continuation(meta, log, after, content)),
        })
    }
}

/// Returns the log itself, line by line.
fn lines_of(log: &Log) -> String {
    let entries = log.entries.iter();
    entries.map(|entry| format!("{}\n", entry.line())).collect()
}

/// A session file before it is written back.
#[derive(Clone, Copy, Debug)]
pub struct Continued<'a> {
    /// Its content.
    pub content: &'a str,
    /// Last entry of the session that it has.
    pub after: Seq,
}

/// What a session file gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Written {
    /// New content.
    Whole(String),
    /// More lines.
    More(String),
}
