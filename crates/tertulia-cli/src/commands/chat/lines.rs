//! A talk on a terminal, line by line.

use std::process::ExitCode;

use tertulia::conversation::chat::TurnEnd;
use tertulia::conversation::run::{Compaction, Talk};

use super::{CHATS, finish};
use crate::args::OutputFormat;
use crate::error::{CommandError, CommandResult};
use crate::signals::Signals;
use crate::talk::conversation::Conversation;
use crate::talk::door::Output;
use crate::talk::keyboard::Keyboard;
use crate::talk::lines::{Typed, is_command, next_words, unknown};
use crate::talk::opening::Opening;
use crate::talk::target::{Target, mention_newest};
use crate::talk::{Leaving, exit_code, nothing_to_say, write_back};
use crate::ui::{AGENT, HUMAN, Ui, fit};

const HELP: &str = "/help     this\n/info     which session this is\n\
    /compact  sum up the older part for the agent; the log keeps everything\n\
    /exit     leave (also /quit, Ctrl+D)\n\
    A line that ends in \\ goes on in the next. Ctrl+C stops an answer, and leaves when nobody is answering.";
const COMMANDS: &[&str] = &["/help", "/info", "/compact", "/exit", "/quit"];

pub async fn talk(session: Opening, first: Option<String>, ui: &mut Ui) -> CommandResult<ExitCode> {
    greet(&session, ui);
    let leaving = session.leaving.clone();
    let mut signals = Signals::listen()?;
    let opened = {
        let mut output = Output::new(OutputFormat::Text, ui, None);
        session.open(&mut output).await?
    };
    let Conversation::Chat(mut talk) = opened else {
        return Err(nothing_to_say("chat"));
    };
    let mut keyboard = Keyboard::default();
    let mut pending = first;
    loop {
        let words = match pending.take() {
            Some(words) => words,
            None => {
                let prompt = ui.styled(HUMAN, "you> ");
                match next_words(&prompt, &mut keyboard, &mut signals, ui).await {
                    Typed::Words(words) => words,
                    Typed::End | Typed::Signal => break,
                }
            }
        };
        match words.trim() {
            "" => continue,
            "/exit" | "/quit" => break,
            "/help" => ui.note(HELP),
            "/info" => info(&talk, ui),
            "/compact" => {
                if let Err(left) = compact(&mut talk, &mut signals, ui).await {
                    leave(&talk, &leaving, ui).await;
                    return Err(left);
                }
                if signals.caught().is_some() && !signals.forgive_interrupt() {
                    break;
                }
            }
            words if is_command(words, COMMANDS) => unknown(words, COMMANDS, ui),
            _ => {
                if let Err(left) = turn(&mut talk, words, &mut signals, &mut keyboard, ui).await {
                    leave(&talk, &leaving, ui).await;
                    return Err(left);
                }
                if signals.caught().is_some() && !signals.forgive_interrupt() {
                    break;
                }
            }
        }
    }
    let left_unsaved = leave(&talk, &leaving, ui).await;
    Ok(exit_code(signals.caught(), left_unsaved))
}

async fn leave(talk: &Talk, leaving: &Leaving, ui: &mut Ui) -> bool {
    talk.leave().await;
    leaving.farewell(talk, ui).await
}

fn greet(session: &Opening, ui: &mut Ui) {
    ui.note(&format!("{} /help for help.", session.introduction));
    match &session.target {
        Target::Resume(row, _) => {
            let summary = &row.summary;
            ui.note(&format!(
                "Restored \"{}\": {} messages.",
                fit(summary.title_or_untitled(), 60),
                summary.messages
            ));
        }
        Target::New(_) if !session.args.ephemeral => {
            mention_newest(CHATS, &session.house, "tertulia -c", ui);
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

async fn compact(talk: &mut Talk, signals: &mut Signals, ui: &mut Ui) -> CommandResult<()> {
    let cancel = signals.cancel.clone();
    let mut output = Output::new(OutputFormat::Text, ui, None);
    let summed_up = match signals.during(talk.compact(&mut output, &cancel)).await {
        Ok(summed_up) => summed_up,
        Err(left) => {
            output.cut_off();
            return Err(left);
        }
    };
    write_back(talk, ui).await;
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
    let end = match signals.during(talk.turn(words, &mut output, &cancel)).await {
        Ok(end) => end,
        Err(left) => {
            output.cut_off();
            return Err(left);
        }
    };
    let refused = finish(&mut output, talk, &end);
    write_back(talk, ui).await;
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
