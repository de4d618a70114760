//! Runs a shell command of the user: without a time limit, until it ends or is cancelled.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Toolbox;
use super::cut::{Ends, within};
use super::shell::{LONGEST, program, told, without_nul};
use crate::process::{self, Limits, Utf8Stream};

/// What a command of the user printed, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandOutput {
    /// Both streams in order, with the middle left out if it is too long. Says how the command ended
    /// if it has no exit code.
    pub text: String,
    /// Exit code, if it ended by itself.
    pub exit: Option<i32>,
}

impl Toolbox {
    /// Returns why a command cannot be run, if so.
    pub fn check_command(&self, command: &str) -> Result<(), String> {
        if command.trim().is_empty() {
            return Err("there is no command after the !".to_owned());
        }
        if command.contains('\0') {
            return Err("a command cannot contain NUL".to_owned());
        }
        match command.len() > LONGEST {
            true => Err(format!("a command has at most {LONGEST} bytes")),
            false => Ok(()),
        }
    }

    /// Runs a command of the user in the work folder, and sends what it prints to `live`. Returns
    /// when none of its processes is left.
    pub async fn run_command(
        &self,
        command: &str,
        marker: &str,
        cancel: &CancellationToken,
        live: mpsc::Sender<String>,
    ) -> CommandOutput {
        let program = program(command, &self.work_dir, &self.hidden, marker);
        let limits = Limits {
            // All output passes through; what is kept is bounded.
            output: usize::MAX,
            ..Limits::default()
        };
        let (chunks, received) = mpsc::channel(16);
        let (finished, printed) = tokio::join!(
            process::run(&program, b"", &limits, cancel, chunks),
            pass_on(received, self.limits.output, live)
        );
        let exit = finished.as_ref().ok().and_then(|ended| ended.status.code());
        let text = match (exit, &finished) {
            (Some(_), _) | (None, Err(process::ProcessError::Cancelled)) => printed,
            _ => told(finished, printed).text,
        };
        CommandOutput {
            text: within(text, self.limits.output),
            exit,
        }
    }
}

/// Sends output on as it arrives, and returns both ends of it.
async fn pass_on(
    mut received: mpsc::Receiver<Vec<u8>>,
    most: usize,
    live: mpsc::Sender<String>,
) -> String {
    let (mut decoder, mut ends) = (Utf8Stream::default(), Ends::new(most));
    while let Some(chunk) = received.recv().await {
        let text = without_nul(decoder.push(&chunk));
        ends.push(&text);
        // The receiver is gone if the session is being closed.
        let _ = live.send(text).await;
    }
    ends.push(&decoder.finish());
    ends.finish()
}

#[cfg(test)]
mod tests {
    use super::super::ToolLimits;
    use super::*;

    /// Runs a command, and cancels it once it has printed `last`.
    async fn run_until(command: &str, last: Option<&str>) -> (CommandOutput, String) {
        let cancel = CancellationToken::new();
        let dir = tempfile::tempdir().unwrap();
        let limits = ToolLimits {
            output: 2000,
            ..ToolLimits::default()
        };
        let tools = Toolbox::new(dir.path().into(), limits, vec!["KEY".to_owned()]).unwrap();
        let (live, mut printed) = mpsc::channel::<String>(16);
        let collect = async {
            let mut all = String::new();
            while let Some(text) = printed.recv().await {
                all.push_str(&text);
                if last.is_some_and(|last| all.contains(last)) {
                    cancel.cancel();
                }
            }
            all
        };
        // Processes that carry the same marker end together, whichever test started them.
        let marker = dir.path().display().to_string();
        tokio::join!(tools.run_command(command, &marker, &cancel, live), collect)
    }

    async fn run(command: &str) -> (CommandOutput, String) {
        run_until(command, None).await
    }

    #[tokio::test]
    async fn output_and_exit_code_are_returned() {
        let (ended, live) = run("echo one; echo two >&2; exit 3").await;
        assert_eq!((ended.text.as_str(), ended.exit), ("one\ntwo\n", Some(3)));
        assert_eq!(live, "one\ntwo\n");
        let (ended, _) = run("kill -9 $$").await;
        assert_eq!(ended.exit, None);
        assert!(ended.text.contains("ended by signal 9"), "{}", ended.text);
    }

    #[tokio::test]
    async fn long_output_is_cut_and_still_passes_through() {
        let (ended, live) = run("seq 10000").await;
        assert!(ended.text.len() <= 2000 && ended.text.contains("bytes are missing"));
        assert!(live.len() > 40_000);
    }

    #[tokio::test]
    async fn a_cancelled_command_keeps_what_it_printed() {
        let (ended, _) = run_until("echo begun; sleep 600", Some("begun\n")).await;
        assert_eq!((ended.text.as_str(), ended.exit), ("begun\n", None));
    }

    #[test]
    fn a_command_must_have_words() {
        let tools = Toolbox::new(".".into(), ToolLimits::default(), Vec::new()).unwrap();
        assert!(tools.check_command("ls").is_ok());
        for wrong in ["", "  ", "a\0b"] {
            assert!(tools.check_command(wrong).is_err(), "{wrong}");
        }
    }
}
