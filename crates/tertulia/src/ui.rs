//! The only user of stdout and stderr: data goes to stdout, messages to stderr, colours only to a
//! terminal.

mod progress;

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use tertulia_engine::text::hint::Invocation;
use tertulia_engine::text::steers;
pub use tertulia_engine::text::{fit, grouped, harmless, table_lines};

use crate::args::GlobalArgs;
use crate::env;

/// Headings and names.
pub const BOLD: Style = Style::new().bold();
/// Secondary text.
pub const DIM: Style = Style::new().dimmed();
/// Names of people.
pub const HUMAN: Style = AnsiColor::Cyan.on_default().bold();
/// Names of agents.
pub const AGENT: Style = AnsiColor::Green.on_default().bold();
/// Search matches.
pub const FOUND: Style = AnsiColor::Yellow.on_default().bold();
/// Added lines of a diff.
pub const ADDED: Style = AnsiColor::Green.on_default();
/// Removed lines of a diff.
pub const REMOVED: Style = AnsiColor::Red.on_default();
const WARNING: Style = AnsiColor::Yellow.on_default();
const ERROR: Style = AnsiColor::Red.on_default().bold();

/// The standard streams, or a buffer in their place.
#[derive(Debug)]
pub struct Ui {
    /// Whether to print one JSON document.
    pub json: bool,
    quiet: bool,
    verbose: bool,
    colour_out: bool,
    colour_err: bool,
    reader_gone: bool,
    not_written: Option<io::Error>,
    /// Output that is held back while the TUI owns the terminal.
    held: Option<Vec<Told>>,
    /// How this run was started, for commands in hints.
    pub invocation: Invocation,
}

/// Output that was held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A note.
    Note(String),
    /// A warning.
    Warning(String),
    /// An error.
    Error {
        /// Its kind.
        kind: String,
        /// What went wrong.
        message: String,
        /// What the user can do about it.
        hints: Vec<String>,
    },
    /// Data for stdout.
    Data(String),
}

/// Prints warnings where no `Ui` is available.
#[derive(Clone, Copy, Debug)]
pub struct Aside {
    json: bool,
}

impl Aside {
    /// Prints a warning.
    pub fn warn(self, text: &str) {
        let words = match self.json {
            true => json!({ "warning": { "message": text } }).to_string(),
            false => format!("warning: {}", harmless(text)),
        };
        // If stderr is gone, nothing can be reported.
        let _ = writeln!(io::stderr().lock(), "{words}");
    }
}

impl Ui {
    /// Creates the output from the flags and the kind of the streams.
    pub fn new(global: &GlobalArgs) -> Ui {
        let plain = global.no_color
            || env::text(env::NO_COLOR).is_some()
            || env::text("TERM").as_deref() == Some("dumb");
        Ui {
            json: global.json,
            quiet: global.quiet,
            verbose: global.verbose > 0,
            colour_out: !plain && io::stdout().is_terminal(),
            colour_err: !plain && io::stderr().is_terminal(),
            reader_gone: false,
            not_written: None,
            held: None,
            invocation: Invocation::default(),
        }
    }

    /// Creates an output that prints nothing and holds everything back.
    pub fn holding() -> Ui {
        Ui {
            json: false,
            quiet: false,
            verbose: false,
            colour_out: false,
            colour_err: false,
            reader_gone: false,
            not_written: None,
            held: Some(Vec::new()),
            invocation: Invocation::default(),
        }
    }

    /// Holds output back from now on, since the TUI owns the terminal.
    pub fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Returns true if output is held back.
    pub fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Takes the output held back so far, for the TUI to show. More may follow.
    pub fn take_held(&mut self) -> Vec<Told> {
        self.held.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Prints what was held back, and stops holding output back.
    pub fn release(&mut self) {
        for told in self.held.take().unwrap_or_default() {
            self.tell(told);
        }
    }

    /// Prints output that was held back elsewhere.
    pub fn tell(&mut self, told: Told) {
        match told {
            Told::Note(text) => self.note(&text),
            Told::Warning(text) => self.warn(&text),
            Told::Error {
                kind,
                message,
                hints,
            } => self.error(&kind, &message, &hints),
            Told::Data(text) => self.data(&text),
        }
    }

    /// Holds output back if the TUI owns the terminal. Returns whether it did.
    fn holds(&mut self, told: impl FnOnce() -> Told) -> bool {
        match &mut self.held {
            Some(held) => {
                held.push(told());
                true
            }
            None => false,
        }
    }

    /// Returns true if the terminal supports nothing but lines.
    pub fn is_dumb(&self) -> bool {
        let term = env::text("TERM");
        term.is_none_or(|term| term.is_empty() || term == "dumb")
    }

    /// Returns true if data may be coloured.
    pub fn has_colours(&self) -> bool {
        self.colour_out
    }

    /// Returns the streams as a connection to another program; nothing else may be written there
    /// then.
    pub fn wire(&self) -> (tokio::io::Stdin, tokio::io::Stdout) {
        (tokio::io::stdin(), tokio::io::stdout())
    }

    /// Returns true if stdin is a terminal.
    pub fn has_keyboard(&self) -> bool {
        io::stdin().is_terminal()
    }

    /// Returns true if stdout is a terminal.
    pub fn has_screen(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Returns the width of the terminal, if data goes to one.
    pub fn columns(&self) -> Option<u16> {
        crossterm::terminal::size()
            .ok()
            .filter(|_| self.has_screen())
            .map(|(columns, _)| columns)
    }

    /// Returns true if the user can be asked.
    pub fn is_interactive(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Styles text for stdout.
    pub fn styled(&self, style: Style, text: &str) -> String {
        if self.colour_out {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// Writes data without adding a newline. A reader that closes the pipe (`| head`) is no error,
    /// and no reason to abort the command.
    pub fn data(&mut self, text: &str) {
        if self.reader_gone || self.holds(|| Told::Data(text.to_owned())) {
            return;
        }
        let mut out = io::stdout().lock();
        let text = match out.is_terminal() {
            true => spelt_out(text),
            false => Cow::Borrowed(text),
        };
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            self.reader_gone = true;
            if error.kind() != io::ErrorKind::BrokenPipe {
                self.not_written = Some(error);
            }
        }
    }

    /// Returns true unless the reader of stdout is gone.
    pub fn has_reader(&self) -> bool {
        !self.reader_gone
    }

    /// Takes the error that kept data from being written, such as a full disk.
    pub fn take_trouble(&mut self) -> Option<io::Error> {
        self.not_written.take()
    }

    /// Writes text of an agent as it arrives, without control characters on a terminal.
    pub fn answer(&mut self, text: &str) {
        if io::stdout().is_terminal() {
            self.data(&harmless(text));
        } else {
            self.data(text);
        }
    }

    /// Writes a line of data.
    pub fn line(&mut self, text: &str) {
        self.data(&format!("{text}\n"));
    }

    /// Writes a JSON document.
    pub fn document(&mut self, value: &Value) {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        self.line(&text);
    }

    /// Prints a note, unless `--quiet` is set.
    pub fn note(&mut self, text: &str) {
        // Under --json a script reads stderr too, and expects only errors and warnings there.
        if !self.quiet && !self.json && !self.holds(|| Told::Note(text.to_owned())) {
            self.say(&self.styled_err(DIM, &harmless(text)));
        }
    }

    /// Prints a note with commands to run.
    pub fn advise(&mut self, text: &str) {
        self.note(&self.invocation.complete(text));
    }

    /// Prints a message for `--verbose` only.
    pub fn detail(&mut self, text: &str) {
        if self.verbose && self.held.is_none() {
            self.say(&self.styled_err(DIM, &harmless(text)));
        }
    }

    /// Prints a warning.
    pub fn warn(&mut self, text: &str) {
        if self.holds(|| Told::Warning(text.to_owned())) {
            return;
        }
        if self.json {
            self.say(&json!({ "warning": { "message": text } }).to_string());
            return;
        }
        let label = self.styled_err(WARNING, "warning:");
        self.say(&format!("{label} {}", harmless(text)));
    }

    /// Returns a printer of warnings for use while this `Ui` is borrowed; `None` while the TUI owns
    /// the terminal.
    pub fn aside(&self) -> Option<Aside> {
        let json = self.json;
        self.held.is_none().then_some(Aside { json })
    }

    /// Prints a warning or a note.
    pub fn remark(&mut self, warning: bool, text: &str) {
        match warning {
            true => self.warn(text),
            false => self.note(text),
        }
    }

    /// Prints an error, as text or as JSON.
    pub fn error(&mut self, kind: &str, message: &str, hints: &[String]) {
        let hints: Vec<String> = hints
            .iter()
            .map(|hint| self.invocation.complete(hint))
            .collect();
        let told = || Told::Error {
            kind: kind.to_owned(),
            message: message.to_owned(),
            hints: hints.clone(),
        };
        if self.holds(told) {
            return;
        }
        if self.json {
            let hint = if hints.is_empty() {
                Value::Null
            } else {
                json!(hints.join("; "))
            };
            let error = json!({ "kind": kind, "message": message, "hint": hint });
            self.say(&json!({ "error": error }).to_string());
            return;
        }
        let label = self.styled_err(ERROR, "error:");
        self.say(&format!("{label} {}", harmless(message)));
        for hint in &hints {
            let label = self.styled_err(BOLD, "hint:");
            self.say(&format!("{label} {}", harmless(hint)));
        }
    }

    /// Writes lines that can be saved nowhere to standard error as they are, so that they can be
    /// copied from there.
    pub fn last_resort(&mut self, lines: &str) {
        for line in lines.lines() {
            if !self.holds(|| Told::Warning(line.to_owned())) {
                self.say(line);
            }
        }
    }

    fn say(&mut self, text: &str) {
        // If stderr is gone, nothing can be reported.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    fn styled_err(&self, style: Style, text: &str) -> String {
        if self.colour_err {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// Prints a question, also under `--json`: without it the program would seem to hang.
    pub fn ask(&mut self, text: &str) {
        self.say(text);
    }

    /// Prints the beginning of a line that the user completes.
    pub fn prompt(&mut self, text: &str) {
        let mut err = io::stderr().lock();
        // If stderr is gone, the user cannot be asked.
        let _ = write!(err, "{text}").and_then(|()| err.flush());
    }

    /// Rings the bell on a terminal.
    pub fn bell(&mut self) {
        if io::stderr().is_terminal() || io::stdout().is_terminal() {
            self.prompt("\u{7}");
        }
    }

    /// Styles text for stderr.
    pub fn styled_words(&self, style: Style, text: &str) -> String {
        self.styled_err(style, text)
    }

    /// Asks for a yes. Anything else is a no.
    pub fn confirm(&mut self, question: &str) -> bool {
        self.prompt(&format!("{question} [y/N] "));
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).is_ok()
            && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
    }

    /// Asks for one of these letters, until one is given. Returns `None` at the end of the input.
    pub fn choose(&mut self, question: &str, letters: &[char]) -> Option<char> {
        let names: Vec<String> = letters.iter().map(char::to_string).collect();
        loop {
            self.prompt(&format!("{question} [{}] ", names.join("/")));
            let mut answer = String::new();
            if !matches!(io::stdin().lock().read_line(&mut answer), Ok(1..)) {
                return None;
            }
            let letter = answer.trim().to_lowercase().chars().next();
            let chosen = letter.filter(|letter| letters.contains(letter));
            if chosen.is_some() {
                return chosen;
            }
        }
    }

    /// Prints a table with columns as wide as their widest cells. Cells may hold text from
    /// anywhere, so control characters and line breaks are replaced.
    pub fn table(&mut self, headings: &[&str], rows: &[Vec<String>]) {
        let mut lines = table_lines(headings, rows).into_iter();
        let heading = self.styled(BOLD, &lines.next().unwrap_or_default());
        let mut text = format!("{heading}\n");
        for line in lines {
            text.push_str(&line);
            text.push('\n');
        }
        self.data(&text);
    }
}

/// Escapes C1 control characters and bidirectional ones as in JSON, for a terminal. ASCII control
/// characters stay, since the program's own styles need them.
fn spelt_out(text: &str) -> Cow<'_, str> {
    let unsafe_here = |c: char| steers(c) && (c as u32) > 0x7e;
    if !text.contains(unsafe_here) {
        return Cow::Borrowed(text);
    }
    let mut spelt = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match unsafe_here(c) {
            true => spelt.push_str(&format!("\\u{:04x}", c as u32)),
            false => spelt.push(c),
        }
    }
    Cow::Owned(spelt)
}
