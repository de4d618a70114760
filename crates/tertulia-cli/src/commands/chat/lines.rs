//! A talk on a terminal, line by line.

use std::process::ExitCode;

use tertulia::conversation::chat::TurnEnd;
use tertulia::conversation::run::{Compaction, Talk};

use super::door::Output;
use super::keyboard::Keyboard;
use super::target::Target;
use super::{Session, farewell, open_talk};
use crate::args::OutputFormat;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment::ago;
use crate::signals::Signals;
use crate::ui::{AGENT, HUMAN, Ui, fit};

const HELP: &str = "/help     this\n/info     which session this is\n\
    /compact  sum up the older part for the agent; the log keeps everything\n\
    /exit     leave (also /quit, Ctrl+D)\n\
    A line that ends in \\ goes on in the next. Ctrl+C stops an answer, and leaves when nobody is answering.";
const COMMANDS: &[&str] = &["/help", "/info", "/compact", "/exit", "/quit"];

/// What the keyboard gave.
enum Typed {
    Words(String),
    End,
    Signal,
}

pub async fn talk(session: Session, first: Option<String>, ui: &mut Ui) -> CommandResult<ExitCode> {
    greet(&session, ui);
    let (hint, kept) = (session.hint.clone(), session.kept);
    let mut signals = Signals::listen()?;
    let mut talk = {
        let mut output = Output::new(OutputFormat::Text, ui, None);
        open_talk(session, &mut output).await?
    };
    let mut keyboard = Keyboard::default();
    let mut pending = first;
    loop {
        let words = match pending.take() {
            Some(words) => words,
            None => match next_words(&mut keyboard, &mut signals, ui).await {
                Typed::Words(words) => words,
                Typed::End => break,
                Typed::Signal => break,
            },
        };
        match words.trim() {
            "" => continue,
            "/exit" | "/quit" => break,
            "/help" => ui.note(HELP),
            "/info" => info(&talk, ui),
            "/compact" => {
                if let Err(left) = compact(&mut talk, &mut signals, ui).await {
                    farewell(&talk, hint.as_deref(), kept, ui).await;
                    return Err(left);
                }
                if signals.caught().is_some() && !signals.forgive_interrupt() {
                    break;
                }
            }
            unknown if is_command(unknown) => {
                let name = unknown.split_whitespace().next().unwrap_or(unknown);
                let meant = nearest(name).map(|near| format!("; did you mean {near}?"));
                ui.warn(&format!(
                    "there is no command {name}{} There are {}",
                    meant.unwrap_or_else(|| ".".to_owned()),
                    COMMANDS.join(" ")
                ));
            }
            _ => {
                if let Err(left) = turn(&mut talk, words, &mut signals, &mut keyboard, ui).await {
                    farewell(&talk, hint.as_deref(), kept, ui).await;
                    return Err(left);
                }
                if signals.caught().is_some() && !signals.forgive_interrupt() {
                    break;
                }
            }
        }
    }
    let left_unsaved = farewell(&talk, hint.as_deref(), kept, ui).await;
    Ok(match signals.caught() {
        Some(signal) => ExitCode::from(ErrorKind::Interrupted(signal).exit_code()),
        None if left_unsaved => ExitCode::from(ErrorKind::Failed.exit_code()),
        None => ExitCode::SUCCESS,
    })
}

fn greet(session: &Session, ui: &mut Ui) {
    let introduction = super::introduction(&session.chosen);
    ui.note(&format!("{introduction} /help for help."));
    match &session.target {
        Target::Resume(row) => {
            let summary = &row.summary;
            ui.note(&format!(
                "Restored \"{}\": {} messages.",
                fit(summary.title_or_untitled(), 60),
                summary.messages
            ));
        }
        // Whoever wanted to go on should not have to know the flag by heart.
        Target::New(_) if !session.args.ephemeral => {
            let newest = session.house.wait(
                session
                    .house
                    .sessions
                    .store()
                    .list(&session.house.here(), &tertulia::query::Page::first(1)),
            );
            if let Some(row) = newest
                .ok()
                .and_then(|listing| listing.rows.into_iter().next())
            {
                let when = ago(row.summary.updated_at, session.house.sessions.stamp().now());
                ui.note(&format!(
                    "There is an earlier talk here, \"{}\" ({when}): tertulia -c goes on with it.",
                    fit(row.summary.title_or_untitled(), 50)
                ));
            }
        }
        Target::New(_) => ui.note("Nothing of this talk is kept."),
    }
}

fn info(talk: &Talk, ui: &mut Ui) {
    let id = talk.recorder().id();
    match talk.recorder().summary() {
        Some(summary) => ui.note(&format!(
            "{id}  \"{}\"  {} messages",
            fit(summary.title_or_untitled(), 60),
            summary.messages
        )),
        None => ui.note(&format!("{id}  nothing said yet")),
    }
}

/// Whether it looks like a command: a slash and a word, alone or like one that there is. A sentence may
/// begin with a path.
fn is_command(words: &str) -> bool {
    let first = words.split_whitespace().next().unwrap_or_default();
    let is_word = first
        .strip_prefix('/')
        .is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphabetic()));
    is_word && (first == words || nearest(first).is_some())
}

/// The command that is spelt almost like this.
fn nearest(word: &str) -> Option<&'static str> {
    let near = COMMANDS
        .iter()
        .map(|command| (strsim::damerau_levenshtein(word, command), *command));
    near.min()
        .filter(|(far, _)| *far <= 2)
        .map(|(_, near)| near)
}

/// A line as text, without its end.
fn text_of(line: Vec<u8>) -> Result<String, usize> {
    let mut text = String::from_utf8(line).map_err(|error| error.utf8_error().valid_up_to())?;
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}

async fn next_words(keyboard: &mut Keyboard, signals: &mut Signals, ui: &mut Ui) -> Typed {
    let mut words = String::new();
    loop {
        let prompt = if words.is_empty() {
            ui.styled(HUMAN, "you> ")
        } else {
            "...> ".to_owned()
        };
        ui.data(&prompt);
        let line = tokio::select! {
            line = keyboard.line() => line,
            () = signals.next() => {
                ui.data("\n");
                return Typed::Signal;
            }
        };
        match line {
            None => {
                ui.data("\n");
                return if words.is_empty() {
                    Typed::End
                } else {
                    Typed::Words(words)
                };
            }
            Some(line) => match text_of(line) {
                Err(at) => ui.warn(&format!(
                    "that line is not UTF-8 (at byte {at}) and was not taken"
                )),
                Ok(line) => match line.strip_suffix('\\') {
                    Some(line) => {
                        words.push_str(line);
                        words.push('\n');
                    }
                    None => {
                        words.push_str(&line);
                        return Typed::Words(words);
                    }
                },
            },
        }
    }
}

async fn compact(talk: &mut Talk, signals: &mut Signals, ui: &mut Ui) -> CommandResult<()> {
    let cancel = signals.cancel.clone();
    let mut output = Output::new(OutputFormat::Text, ui, None);
    let summed_up = signals.during(talk.compact(&mut output, &cancel)).await?;
    if summed_up == Compaction::Nothing {
        ui.note("nothing was summed up: there is nothing older");
    }
    Ok(())
}

async fn turn(
    talk: &mut Talk,
    words: String,
    signals: &mut Signals,
    keyboard: &mut Keyboard,
    ui: &mut Ui,
) -> CommandResult<()> {
    if let Err(error) = tertulia::store::check_message(&words) {
        CommandError::from(error).report(ui);
        return Ok(());
    }
    let name = ui.styled(AGENT, &format!("{}> ", talk.agent_name()));
    ui.data(&name);
    let cancel = signals.cancel.clone();
    let mut output = Output::new(OutputFormat::Text, ui, Some(keyboard));
    let end = signals
        .during(talk.turn(words, &mut output, &cancel))
        .await?;
    let refused = output.finish(talk.recorder().id(), &end);
    if let Some(refused) = refused {
        refused.report(ui);
    }
    match end {
        TurnEnd::Failed(error) => {
            CommandError::from(error).report(ui);
        }
        TurnEnd::Cancelled => ui.note("(stopped)"),
        TurnEnd::Answered | TurnEnd::Refused => {}
    }
    Ok(())
}
