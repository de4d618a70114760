mod bundle;
mod folder;
mod render;
mod write;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};
use tertulia_core::id::Seq;
use tertulia_core::query::Row;
use tertulia_core::session::Log;
use tertulia_formats::exporter::{Bound, Selection, redact};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment;
use crate::open::{self, Workspace};
use crate::show;
use crate::ui::Ui;

pub use render::{Continued, Form, Rendered, Written, render};
pub use write::{replace, write};

/// Write sessions in another format
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia export @ > session.md\n  \
    tertulia export 5f3a9c1e --format jsonl -o s.jsonl       what `import` takes in, byte for byte\n  \
    tertulia export @ --format json | jq '.entries[].content'\n  \
    tertulia export @ --format html --redact -o s.html       one page to read or to share\n  \
    tertulia export @ @~1 @~2 -f html -o pages               three pages and an index in a folder\n  \
    tertulia export @ -f claude-code -o ~/.claude/projects/  continue it with `claude --resume`\n  \
    tertulia export @ -f codex -o ~/.codex/sessions/         continue it with `codex resume`\n  \
    tertulia export @ @~1 -f bundle -o two.age               encrypted, for another machine\n  \
    tertulia export @ --from 12 --to 40 -f md                entries 12 to 40\n  \
    tertulia export @ --format snapshot -o s.json            a team session for agent-chatter")]
pub struct ExportArgs {
    /// Sessions to export
    #[arg(value_name = "REF", default_value = "@")]
    references: Vec<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Md)]
    format: Format,
    /// Write to this file instead of standard output
    ///
    /// For several sessions, or if it ends with /, it is a folder, which is created if it is missing. A folder of
    /// Markdown or HTML files gets an index.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists; in a folder, only earlier exports
    #[arg(long, requires = "output")]
    force: bool,
    /// Begin with this entry: its number, or a time such as 24h, 7d or 2026-11-01
    #[arg(long, value_name = "ENTRY")]
    from: Option<String>,
    /// End with this entry: its number, or a time
    #[arg(long, value_name = "ENTRY")]
    to: Option<String>,
    /// Replace secrets in the output
    #[arg(long)]
    redact: bool,
    /// Encrypt a bundle for this age recipient, not for those of `[seal]` in your settings; may be repeated
    #[arg(long, value_name = "AGE1…")]
    recipient: Vec<String>,
    /// Encrypt a bundle with a passphrase
    #[arg(long, conflicts_with = "recipient")]
    passphrase: bool,
}

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Markdown, for people
    #[value(alias = "markdown")]
    Md,
    /// One page for people, which needs nothing else
    Html,
    /// The object of `show --json`
    Json,
    /// The log itself, line by line
    Jsonl,
    /// The messages of a team session as one document, schema 1.0
    Snapshot,
    /// A session file that Claude Code resumes
    ClaudeCode,
    /// A rollout file that Codex resumes
    Codex,
    /// Encrypted logs of one or several sessions in one file, for `import`
    Bundle,
    /// A trajectory of the Agent Trajectory Interchange Format, for evaluation and training
    Atif,
}

impl Format {
    /// Returns the usual extension of its files.
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Md => "md",
            Format::Html => "html",
            Format::Json | Format::Snapshot | Format::Atif => "json",
            Format::Bundle => "age",
            Format::Jsonl | Format::ClaudeCode | Format::Codex => "jsonl",
        }
    }
}

pub fn run(args: &ExportArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::reader(global, ui)?;
    if args.redact {
        open::redaction_rules(&workspace.settings)?;
    }
    check_bundle(args)?;
    let selection = selection(args, workspace.sessions.clock().now())?;
    let mut rows: Vec<Row> = Vec::new();
    for reference in &args.references {
        let row = workspace.find(reference)?;
        // Two references may name the same session.
        if rows.iter().all(|known| known.meta.id != row.meta.id) {
            rows.push(row);
        }
    }
    let exporter = Exporter {
        workspace: &workspace,
        args,
        selection,
    };
    if args.format == Format::Bundle {
        let Some(output) = &args.output else {
            let words = "a bundle is binary: write it to a file with -o FILE";
            return Err(CommandError::new(ErrorKind::Usage, words)
                .hint("name it after the session: -o session.bundle"));
        };
        return bundle::export(&exporter, rows, output, ui);
    }
    match (&args.output, &rows[..]) {
        (Some(output), _) if args.references.len() > 1 || is_folder(output) => {
            folder::export(&exporter, rows, output, ui)
        }
        (output, [row]) => {
            exporter.one(row, output.as_deref(), ui)?;
            Ok(ExitCode::SUCCESS)
        }
        (_, _) => Err(CommandError::new(
            ErrorKind::Usage,
            "several sessions do not fit into one output",
        )
        .hint("name a folder for them: -o FOLDER")),
    }
}

/// Rejects options that a bundle, or that only a bundle has.
fn check_bundle(args: &ExportArgs) -> CommandResult<()> {
    let is_partial = args.from.is_some() || args.to.is_some() || args.redact;
    let is_encrypted = args.passphrase || !args.recipient.is_empty();
    let words = match args.format {
        Format::Bundle if is_partial => "a bundle has whole logs, byte for byte",
        Format::Bundle => return Ok(()),
        _ if is_encrypted => "--recipient and --passphrase are for --format bundle",
        _ => return Ok(()),
    };
    Err(CommandError::new(ErrorKind::Usage, words))
}

fn is_folder(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn selection(args: &ExportArgs, now: Timestamp) -> CommandResult<Selection> {
    let bound = |text: &Option<String>| -> CommandResult<Option<Bound>> {
        let Some(text) = text else { return Ok(None) };
        Ok(Some(match text.parse() {
            Ok(seq) => Bound::Seq(Seq(seq)),
            Err(_) => Bound::At(moment::moment(text, now)?),
        }))
    };
    let selection = Selection {
        from: bound(&args.from)?,
        to: bound(&args.to)?,
    };
    let is_backwards = match (selection.from, selection.to) {
        (Some(Bound::Seq(from)), Some(Bound::Seq(to))) => from > to,
        (Some(Bound::At(from)), Some(Bound::At(to))) => from > to,
        _ => false,
    };
    match is_backwards {
        true => Err(CommandError::new(
            ErrorKind::Usage,
            "--from is later than --to",
        )),
        false => Ok(selection),
    }
}

/// What an export of any session needs.
struct Exporter<'a> {
    workspace: &'a Workspace,
    args: &'a ExportArgs,
    selection: Selection,
}

impl Exporter<'_> {
    fn one(&self, row: &Row, output: Option<&Path>, ui: &mut Ui) -> CommandResult<()> {
        let (row, log) = self.load(row, ui)?;
        let rendered = self.render(&row, &log)?;
        let Some(file) = output else {
            ui.answer(&rendered.content);
            rendered.tell(ui);
            return Ok(());
        };
        write(file, rendered.content.as_bytes(), self.args.force)?;
        if ui.json {
            ui.document(&rendered.document(&row, file));
            return Ok(());
        }
        let bytes = rendered.content.len();
        ui.note(&format!("Wrote {} ({bytes} bytes)", file.display()));
        rendered.tell(ui);
        Ok(())
    }

    fn render(&self, row: &Row, log: &Log) -> CommandResult<Rendered> {
        let cwd = &self.workspace.settings.cwd;
        let mut rendered = render(self.args.format, row, log, cwd)?;
        // The last append must be whole, and the first entry is the session's opening.
        let is_whole = log.entries.first().is_some_and(|first| first.seq == Seq(1))
            && log.entries.last().is_some_and(|last| last.then == 0);
        if self.args.format == Format::Jsonl && !is_whole {
            let words = "only a part of the log: `import` takes whole logs";
            rendered.notes.push(words.to_owned());
        }
        Ok(rendered)
    }

    /// Reads the part of a session that is exported, and says what is damaged in it.
    fn load(&self, row: &Row, ui: &mut Ui) -> CommandResult<(Row, Log)> {
        let (mut row, mut log) = self.read(row, ui)?;
        let last = log.entries.last().map_or(Seq::START, |entry| entry.seq);
        self.selection.apply(&mut log);
        for line in show::damage(&log.damage) {
            ui.warn(&format!("damaged: {line}"));
        }
        if !self.selection.is_everything() {
            self.check_part(&row, &log, last)?;
            let usages = log.messages().filter_map(|(_, message)| message.usage);
            let tokens = usages.fold(Default::default(), tertulia_core::entry::Usage::plus);
            // The heading of a page counts what is on it.
            if matches!(self.args.format, Format::Md | Format::Html) {
                row.meta.messages = log.messages().count() as u64;
                row.meta.tokens = tokens;
            }
        }
        if self.args.redact {
            let found = redact(&mut row.meta, &mut log).map_err(|error| {
                CommandError::new(ErrorKind::Invalid, "secrets cannot be replaced").because(error)
            })?;
            let kinds: Vec<String> = found
                .iter()
                .map(|(kind, count)| format!("{count} {kind}"))
                .collect();
            ui.note(&match kinds.is_empty() {
                true => "redacted: nothing that looks like a secret".to_owned(),
                false => format!("redacted: {}", kinds.join(", ")),
            });
        }
        Ok((row, log))
    }

    /// Reads a session. The log itself is copied as it is stored, so that a sealed one needs no key.
    fn read(&self, row: &Row, ui: &mut Ui) -> CommandResult<(Row, Log)> {
        let workspace = self.workspace;
        if self.args.format == Format::Jsonl && row.meta.seal.is_some() {
            let mut log = workspace.wait(workspace.sessions.load_stored(row.meta.id))?;
            if workspace.with_unfinished(row, &mut log).is_err() {
                ui.note("an unfinished answer is left out: it needs the key of the session");
            }
            return Ok((row.clone(), log));
        }
        let row = workspace.unlocked(row.clone())?;
        let mut log = workspace.wait(workspace.sessions.load(row.meta.id))?;
        workspace.with_unfinished(&row, &mut log)?;
        Ok((row, log))
    }

    fn check_part(&self, row: &Row, log: &Log, last: Seq) -> CommandResult<()> {
        if !log.entries.is_empty() {
            return Ok(());
        }
        let id = row.meta.id.short();
        let words = format!("{id} has no entries from --from to --to; it has entries 1 to {last}");
        Err(CommandError::new(ErrorKind::Usage, words)
            .hint(format!("`tertulia show {id} --entries` lists them")))
    }
}

impl Rendered {
    /// Prints what a user should know about the output.
    fn tell(&self, ui: &mut Ui) {
        if !self.left_out.is_empty() {
            ui.note(&format!("left out: {}", self.left_out.listed()));
        }
        for note in &self.notes {
            ui.note(note);
        }
    }

    /// Returns the same as JSON.
    fn document(&self, row: &Row, file: &Path) -> Value {
        let mut document = json!({
            "session": row.meta.id,
            "file": file.display().to_string(),
            "bytes": self.content.len(),
        });
        if !self.left_out.is_empty() {
            document["left_out"] = self.left_out.json();
        }
        if let Some(resume) = &self.resume {
            document["resume"] = json!(resume);
        }
        document
    }
}
