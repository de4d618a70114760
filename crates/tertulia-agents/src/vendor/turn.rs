//! Runs a vendor's program for one turn: reads its output as it arrives, and ends the turn with the
//! last event, not with the exit.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use rustix::fs::{Access, access};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::launch::{Launch, Surroundings, launch};
use super::listen::{OutputReader, PermissionQueue};
use super::reading::{Ending, Exit, Reader};
use super::refusal::Refusals;
use super::{Vendor, VendorProgram};
use crate::folder::Folder;
use crate::opencode::{self, Generation};
use crate::process::{self, Finished, Input, Limits, ProcessError, Program, StderrLine};
use crate::scratch::{Place, Scratch};
use crate::session_files;
use crate::{AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, NativeSession, failure};

/// Time limit for printing the version.
const VERSION_LIMIT: Duration = Duration::from_secs(5);
/// Number of answers that may wait for a program that does not read.
const ANSWERS: usize = 64;
/// Harmless lines on standard error.
const NOISE: &[&str] = &[
    "Reading additional input from stdin",
    "Reading prompt from stdin",
    "Warning: Basic terminal detected",
    "Warning: 256-color support not detected",
    "Ripgrep is not available",
    "YOLO mode is enabled",
    "WARNING: proceeding, even though we could not",
];

/// How one turn ended that did not fail.
pub(super) enum Turn {
    /// The answer is complete.
    Done,
    /// The session to resume is gone, and there was no output.
    Lost,
    /// The program reports success without any output.
    Silent,
}

impl VendorProgram {
    /// Runs the program once, resuming `native` if given.
    pub(super) async fn turn(
        &self,
        question: &AgentRequest,
        native: Option<&NativeSession>,
        sink: &AgentSink,
    ) -> Result<Turn, AgentError> {
        self.check_home(question)?;
        let generation = self.generation().await?;
        generation.check(&self.name, question.approval)?;
        let scratch = self.scratch(question)?;
        let around = Surroundings {
            generation,
            home: scratch.as_ref().map(|scratch| scratch.path().to_owned()),
            instructions: match (self.vendor, &self.work_dir) {
                (Vendor::OpenCode, Some(folder)) => opencode::instructions(folder),
                _ => None,
            },
        };
        let Launch {
            args,
            env,
            stdin,
            asks,
        } = launch(self, question, native, &around);
        let program = Program {
            without: self
                .command_line()
                .not_inherited(&self.without, question.approval),
            command: self.command.clone(),
            args,
            env,
            work_dir: self.folder(native),
            marker: question.marker.clone(),
            confined: None,
        };
        let limits = Limits {
            idle: Some(self.patience.idle),
            total: Some(self.patience.total),
            output: usize::MAX,
            stderr: StderrLine::without(NOISE),
            ..Limits::default()
        };
        sink.show_stderr(&limits.stderr);
        // Cancelled after the last event, or together with the sink's token.
        let stop = sink.cancel().child_token();
        let spent = native.map(|native| native.spent).unwrap_or_default();
        let mut reader = match generation {
            Generation::First => Reader::new(self.vendor, spent),
            Generation::Second => Reader::of_opencode_2(),
        };
        let (input, answers) = input(&stdin, asks);
        let output = OutputReader {
            reader: &mut reader,
            sink,
            refusals: Refusals::new(self.vendor),
            permissions: PermissionQueue::new(answers, limits.hold.clone()),
            stop: &stop,
        };
        let (chunks, received) = mpsc::channel(64);
        let (finished, heard) = tokio::join!(
            process::run(&program, input, &limits, &stop, chunks),
            output.read_all(received)
        );
        heard.map_err(|error| match error.kind {
            FailureKind::Cancelled => error,
            _ => self.advised(error),
        })?;
        if let Some(since) = question.asked_at.filter(|_| !question.ephemeral)
            && reader.over().is_some()
        {
            self.say_recorded(reader.session(), since, sink).await?;
        }
        self.judged(reader, finished, native.is_some())
    }

    /// Says what the program recorded of the answer and its events do not tell.
    async fn say_recorded(
        &self,
        session: Option<&str>,
        since: Timestamp,
        sink: &AgentSink,
    ) -> Result<(), AgentError> {
        // Claude Code's events tell all of it.
        let files = self.session_files.as_ref();
        let files = files.filter(|_| self.vendor != Vendor::Claude);
        let (Some(files), Some(session)) = (files, session) else {
            return Ok(());
        };
        let Some(recorded) = session_files::read(files, session, since).await else {
            return Ok(());
        };
        let is_unknown = self.vendor == Vendor::Codex && self.model.is_none();
        if let Some(model) = recorded.model.filter(|_| is_unknown) {
            sink.say(AgentEvent::Model(model)).await?;
        }
        sink.say(AgentEvent::Requests(recorded.requests)).await
    }

    /// Returns the working directory: the folder where the resumed session began, if any.
    fn folder(&self, native: Option<&NativeSession>) -> Option<PathBuf> {
        match native.map(|native| Folder::of(native, self.work_dir.as_deref())) {
            Some(Folder::Other(folder)) => Some(folder),
            _ => self.work_dir.clone(),
        }
    }

    /// Checks that Gemini CLI can write its files: otherwise it would hang without a word.
    fn check_home(&self, question: &AgentRequest) -> Result<(), AgentError> {
        let homes = self.homes.as_ref();
        let Some(homes) = homes.filter(|_| !question.ephemeral && self.vendor == Vendor::GeminiCli)
        else {
            return Ok(());
        };
        let own = homes.gemini.join(".gemini");
        let folder = if own.exists() { &own } else { &homes.gemini };
        access(folder, Access::WRITE_OK).map_err(|error| {
            let (name, folder) = (&self.name, folder.display());
            AgentError::new(
                FailureKind::Unavailable,
                format!("{name} cannot write to {folder}: {error}"),
            )
            .hint(format!(
                "set GEMINI_CLI_HOME to a folder that it can write, for instance by {}",
                self.whence.setting("env")
            ))
        })
    }

    /// Creates a temporary home for a program that has no option to save nothing.
    fn scratch(&self, question: &AgentRequest) -> Result<Option<Scratch>, AgentError> {
        let homes = self.homes.as_ref();
        let Some(homes) = homes.filter(|_| question.ephemeral && self.vendor == Vendor::GeminiCli)
        else {
            return Ok(None);
        };
        let made = Scratch::make(Place::Gemini, homes, &question.marker);
        made.map(Some)
            .map_err(|error| failure::no_scratch(&self.name, &error))
    }

    /// Evaluates the turn: by the last event if there is one, else by the exit of the process.
    fn judged(
        &self,
        reader: Reader,
        finished: Result<Finished, ProcessError>,
        resumed: bool,
    ) -> Result<Turn, AgentError> {
        let (exit, status) = match finished {
            Ok(finished) => {
                let exit = Exit {
                    code: finished.status.code(),
                    stderr: without_noise(&finished.stderr_tail),
                };
                (Some(exit), finished.status.to_string())
            }
            Err(_) if reader.over().is_some() => (None, String::new()),
            Err(error) => return Err(self.of_process(error)),
        };
        let spoke = reader.spoke();
        match reader.finish(exit.as_ref()) {
            // Codex sometimes prints no item, although its turn is complete.
            Ending::Done if self.vendor == Vendor::Codex && !spoke => Ok(Turn::Silent),
            Ending::Done => Ok(Turn::Done),
            Ending::Lost if resumed && !spoke => Ok(Turn::Lost),
            Ending::Failed(error) => Err(self.advised(error)),
            Ending::Lost | Ending::Unfinished => {
                let exit = exit.unwrap_or_default();
                let error = self
                    .outdated(&exit)
                    .unwrap_or_else(|| unfinished(&exit, &status));
                Err(self.advised(error))
            }
        }
    }

    /// Returns the failure of a program that is too old for the options it is given.
    fn outdated(&self, exit: &Exit) -> Option<AgentError> {
        let told = exit.stderr.lines().find(|line| is_about_an_option(line))?;
        let error = AgentError::new(
            FailureKind::Unavailable,
            format!("this version is too old: it does not know an option that it is given: {told}"),
        );
        Some(error.hint(format!("update it: `{}`", self.vendor.install())))
    }

    /// Returns the program's version, if it prints one in time. A slow machine must not make it not
    /// ready.
    pub(super) async fn version(&self) -> Result<Option<String>, AgentError> {
        let (finished, printed) = print_version(&self.asking_version(), VERSION_LIMIT).await;
        match finished {
            Ok(finished) if finished.status.success() => Ok(version_in(&printed)),
            Ok(finished) => Err(AgentError::new(
                FailureKind::Unavailable,
                failure::one_line(&failure::explain(
                    &format!(
                        "`{} --version` ended with {}",
                        self.command.display(),
                        finished.status
                    ),
                    &without_noise(&finished.stderr_tail),
                )),
            )),
            Err(ProcessError::Timeout { .. }) => Ok(None),
            Err(error) => Err(self.of_process(error)),
        }
    }

    /// Returns the generation of OpenCode, which no other vendor has.
    pub(super) async fn generation(&self) -> Result<Generation, AgentError> {
        match self.vendor {
            Vendor::OpenCode => self.generation.of(self.asking_version()).await,
            Vendor::Claude | Vendor::Codex | Vendor::GeminiCli => Ok(Generation::First),
        }
    }

    /// Returns the program that prints its version.
    fn asking_version(&self) -> Program {
        Program {
            without: self.without.clone(),
            command: self.command.clone(),
            args: vec!["--version".into()],
            env: self.env.clone(),
            work_dir: None,
            marker: String::new(),
            confined: None,
        }
    }

    fn of_process(&self, error: ProcessError) -> AgentError {
        let missing = matches!(error, ProcessError::NotFound { .. });
        let error = match error {
            ProcessError::Idle { limit, stderr_tail } => ProcessError::Idle {
                limit,
                stderr_tail: without_noise(&stderr_tail),
            },
            ProcessError::Timeout { limit, stderr_tail } => ProcessError::Timeout {
                limit,
                stderr_tail: without_noise(&stderr_tail),
            },
            other => other,
        };
        let mut error = failure::of_process(error, &self.command, &self.whence);
        if missing {
            error.hint = Some(format!(
                "`{}` installs it; or {}",
                self.vendor.install(),
                self.whence.program()
            ));
        }
        error.message = failure::one_line(&failure::without_keys(&error.message, &self.env));
        error
    }

    /// Adds the agent's name and a hint to the error.
    fn advised(&self, mut error: AgentError) -> AgentError {
        let message = format!("{}: {}", self.name, error.message);
        error.message = failure::one_line(&failure::without_keys(&message, &self.env));
        let advice = match error.kind {
            FailureKind::Auth => Some(self.vendor.login()),
            kind => failure::advice(kind),
        };
        error.hint = error.hint.or_else(|| advice.map(str::to_owned));
        error
    }
}

/// Returns whether a line reports an unknown option. OpenCode prints its help instead.
fn is_about_an_option(line: &str) -> bool {
    let line = line.trim();
    let words = [
        "unknown option",
        "unknown argument",
        "unknown feature flag",
        "unexpected argument",
    ];
    let lower = line.to_lowercase();
    words.iter().any(|words| lower.contains(words)) || line == "opencode run [message..]"
}

fn unfinished(exit: &Exit, status: &str) -> AgentError {
    let what = format!("it ended without a final event ({status})");
    let kind = match exit.code {
        Some(0) => FailureKind::Protocol,
        _ => failure::of_words(&exit.stderr).unwrap_or(FailureKind::Failed),
    };
    AgentError::new(kind, failure::explain(&what, &exit.stderr))
}

fn without_noise(stderr: &str) -> String {
    let lines: Vec<&str> = stderr
        .lines()
        .filter(|line| !NOISE.iter().any(|noise| line.starts_with(noise)))
        .collect();
    lines.join("\n").trim().to_owned()
}

/// Runs a program to its end within a time limit. Returns what it printed.
pub(crate) async fn print_version(
    program: &Program,
    limit: Duration,
) -> (Result<Finished, ProcessError>, String) {
    let limits = Limits {
        total: Some(limit),
        ..Limits::default()
    };
    let (chunks, mut received) = mpsc::channel(16);
    let cancel = CancellationToken::new();
    let collect = async {
        let mut all = Vec::new();
        while let Some(chunk) = received.recv().await {
            all.extend(chunk);
        }
        all
    };
    let (finished, printed) = tokio::join!(
        process::run(program, b"", &limits, &cancel, chunks),
        collect
    );
    (finished, String::from_utf8_lossy(&printed).into_owned())
}

/// Finds a program's version: the first word that looks like one, except in offers of an update.
pub fn version_in(text: &str) -> Option<String> {
    const OFFERS: &[&str] = &[
        "update",
        "upgrade",
        "available",
        "latest",
        "newer",
        "new version",
        "->",
        "→",
    ];
    let offers = |line: &&str| {
        let line = line.to_lowercase();
        OFFERS.iter().any(|word| line.contains(word))
    };
    let told = text.lines().filter(|line| !offers(line));
    told.flat_map(str::split_whitespace).find_map(|word| {
        let word = word.strip_prefix('v').unwrap_or(word);
        let word = word.trim_end_matches('.');
        let mut numbers = word.split('.');
        let is_number = |part: Option<&str>| {
            part.is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()))
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
        let looks = is_number(numbers.next()) && is_number(numbers.next());
        (looks && word.chars().all(plain)).then(|| word.to_owned())
    })
}

/// Returns the program's input, and the channel for later input if the program asks permission.
fn input(stdin: &str, asks: bool) -> (Input<'_>, Option<mpsc::Sender<Vec<u8>>>) {
    if !asks {
        return (Input::Bytes(stdin.as_bytes()), None);
    }
    let (answers, chunks) = mpsc::channel(ANSWERS);
    // An empty channel has room.
    let _ = answers.try_send(stdin.as_bytes().to_vec());
    (Input::Chunks(chunks), Some(answers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_they_are_told() {
        let check = |text: &str, expected: &str| {
            assert_eq!(version_in(text).as_deref(), Some(expected));
        };
        check("2.1.325 (Claude Code)\n", "2.1.325");
        check("codex-cli 0.166.0\n", "0.166.0");
        check("0.61.0\n", "0.61.0");
        check("opencode v1.18.33\n", "1.18.33");
        check("GitHub Copilot CLI 1.0.102.\n", "1.0.102");
        let notice = "Update available! 2.1.325 -> 2.2.0\nRun npm i to update to 2.2.0\n2.1.325 (Claude Code)\n";
        check(notice, "2.1.325");
        check(
            "✨ Update available! 0.165.0 -> 0.170.0\ncodex-cli 0.165.0\n",
            "0.165.0",
        );
        check(
            "A new version is there: 9.9.9\ncodex-cli 0.98.0\n",
            "0.98.0",
        );
        assert_eq!(version_in("who knows"), None);
        assert_eq!(version_in("listens at 127.0.0.1:80"), None);
    }

    #[test]
    fn lines_of_programs_that_are_too_old() {
        for line in [
            "error: unknown option '--permission-prompt-tool'",
            "Error: Unknown feature flag: plugins",
            "Unknown arguments: output-format, outputFormat",
            "error: unexpected argument '--json' found",
            "opencode run [message..]",
        ] {
            assert!(is_about_an_option(line), "{line}");
        }
        assert!(!is_about_an_option("the server said: unknown model"));
    }

    #[test]
    fn noise_explains_nothing() {
        let stderr =
            "Reading additional input from stdin...\nError: no\nYOLO mode is enabled. Yes.\n";
        assert_eq!(without_noise(stderr), "Error: no");
    }
}
