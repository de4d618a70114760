//! Reads the first message from the arguments, from standard input, or from both.

use std::io::{self, Read};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tertulia_core::entry::MESSAGE_LIMIT;
use tertulia_engine::prompt::Prompt;
use tertulia_store::check_message;

use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::ui::Ui;

/// How long standard input may be silent if there is a prompt already.
const PATIENCE: Timespec = Timespec {
    tv_sec: 3,
    tv_nsec: 0,
};

/// How standard input is placed below a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached {
    /// Unchanged.
    Plain,
    /// As a code block, so that text such as a diff cannot address members of a team with markers.
    Fenced,
}

/// Returns the message, if there is one: the prompt, standard input, or the prompt with the input
/// below it. Only the prompt attaches files: the input may be anybody's words.
pub fn words(prompt: &[String], attached: Attached, ui: &mut Ui) -> CommandResult<Option<Prompt>> {
    let prompt = Some(prompt.join(" ")).filter(|prompt| !prompt.trim().is_empty());
    let piped = if ui.has_keyboard() || (prompt.is_some() && is_silent(ui)) {
        None
    } else {
        piped()?
    };
    let typed = prompt.as_ref().map_or(0, String::len);
    let words = match (prompt, piped) {
        (Some(prompt), Some(piped)) if attached == Attached::Fenced => {
            Some(format!("{prompt}\n\n{}", fenced(&piped)))
        }
        (Some(prompt), Some(piped)) => Some(format!("{prompt}\n\n{piped}")),
        (Some(words), None) | (None, Some(words)) => Some(words),
        (None, None) => None,
    };
    if let Some(words) = &words {
        check_message(words)?;
    }
    Ok(words.map(|words| Prompt {
        typed,
        ..Prompt::from(words)
    }))
}

/// Adds the files of `--attach` to a message, as the user would write them.
pub fn with_files(
    words: Option<Prompt>,
    files: &[String],
    cwd: &Path,
) -> CommandResult<Option<Prompt>> {
    if files.is_empty() {
        return Ok(words);
    }
    let Some(Prompt { text, typed, .. }) = words else {
        return Err(CommandError::new(
            ErrorKind::Usage,
            "--attach needs a prompt",
        ));
    };
    let (prompt, piped) = text.split_at(typed);
    let mut prompt = prompt.to_owned();
    for file in files {
        if file.contains(['"', '\n']) || !cwd.join(file).is_file() {
            let words = format!("there is no file '{file}' to attach");
            return Err(CommandError::new(ErrorKind::Usage, words));
        }
        let gap = if prompt.is_empty() { "" } else { "\n" };
        prompt.push_str(&format!("{gap}@\"{file}\""));
    }
    let gap = if typed == 0 { "\n\n" } else { "" };
    Ok(Some(Prompt {
        typed: prompt.len(),
        ..Prompt::from(format!("{prompt}{gap}{piped}"))
    }))
}

/// Puts text between fences that are longer than any in it.
fn fenced(text: &str) -> String {
    let runs = text.split(|letter| letter != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}")
}

/// Returns true if standard input stays open without sending anything. Programs that start this one
/// often leave its input open by accident, and waiting for its end would never return.
fn is_silent(ui: &mut Ui) -> bool {
    let stdin = io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    let silent = matches!(poll(&mut watched, Some(&PATIENCE)), Ok(0));
    if silent {
        ui.warn(&format!(
            "standard input is open but sent nothing for {} s: continuing without it",
            PATIENCE.tv_sec
        ));
    }
    silent
}

fn piped() -> CommandResult<Option<String>> {
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the input is too long; its size takes reading on.
    let stdin = io::stdin();
    let mut stdin = stdin.lock();
    stdin
        .by_ref()
        .take(MESSAGE_LIMIT as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| {
            CommandError::new(ErrorKind::Failed, "standard input cannot be read").because(error)
        })?;
    if bytes.len() > MESSAGE_LIMIT {
        let rest = io::copy(&mut stdin, &mut io::sink()).unwrap_or(0);
        let size = bytes.len() as u64 + rest;
        return Err(tertulia_store::StoreError::TooLarge {
            what: "the message",
            size,
            limit: MESSAGE_LIMIT as u64,
        }
        .into());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        CommandError::new(
            ErrorKind::Invalid,
            format!(
                "standard input is not UTF-8: the byte at position {} does not fit",
                error.utf8_error().valid_up_to()
            ),
        )
        .hint("convert it first, for example with iconv -t UTF-8")
    })?;
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}
