//! A pair on a terminal, line by line.

use std::process::ExitCode;

use tertulia::conversation::duet::{Duet, Pause};
use tertulia::conversation::pair::Next;

use super::{PAIRS, finish, say_how_it_ended};
use crate::args::OutputFormat;
use crate::error::{CommandError, CommandResult};
use crate::signals::Signals;
use crate::talk::conversation::Conversation;
use crate::talk::door::Output;
use crate::talk::keyboard::Keyboard;
use crate::talk::lines::{Typed, is_command, next_words, unknown};
use crate::talk::opening::{Cast, Opening};
use crate::talk::target::{Target, mention_newest};
use crate::talk::{Leaving, exit_code, nothing_to_say, paired};
use crate::ui::{HUMAN, Ui, fit, harmless};

const HELP: &str = "/help     this\n/info     which session this is, and how far it is\n\
    /go       go on with what was left undone\n\
    /exit     leave (also /quit, Ctrl+D)\n\
    What you write is said to the instructor. [r+5] or [r=10] at its beginning changes how often the worker may be called.\n\
    A line that ends in \\ goes on in the next. Ctrl+C stops whoever is working, and leaves when nobody is.";
const COMMANDS: &[&str] = &["/help", "/info", "/go", "/exit", "/quit"];

pub async fn talk(session: Opening, first: Option<String>, ui: &mut Ui) -> CommandResult<ExitCode> {
    greet(&session, ui);
    let leaving = session.leaving.clone();
    let notify = matches!(session.cast, Cast::Pair { notify: true, .. });
    let mut signals = Signals::listen()?;
    let opened = {
        let mut output = Output::new(OutputFormat::Text, ui, None);
        session.open(&mut output).await?
    };
    let Conversation::Pair(mut duet) = opened else {
        return Err(nothing_to_say("pair"));
    };
    let mut keyboard = Keyboard::default();
    let mut pending = first;
    if pending.is_none() && duet.pending().is_some() {
        pending = match offered(&duet, &mut keyboard, &mut signals, ui).await {
            Offer::GoOn => Some("/go".to_owned()),
            Offer::Ask => None,
            Offer::Leave => {
                let left_unsaved = leave(&duet, &leaving, ui).await;
                return Ok(exit_code(signals.caught(), left_unsaved));
            }
        };
    }
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
        let said = match words.trim() {
            "" => continue,
            "/exit" | "/quit" => break,
            "/help" => {
                ui.note(HELP);
                continue;
            }
            "/info" => {
                info(&duet, ui);
                continue;
            }
            "/go" if duet.pending().is_none() => {
                ui.note("nothing is left undone: say what is to be done");
                continue;
            }
            "/go" => "",
            words if is_command(words, COMMANDS) => {
                unknown(words, COMMANDS, ui);
                continue;
            }
            _ => words.as_str(),
        };
        if let Err(left) = turn(&mut duet, said, notify, &mut signals, &mut keyboard, ui).await {
            leave(&duet, &leaving, ui).await;
            return Err(left);
        }
        if signals.caught().is_some() && !signals.forgive_interrupt() {
            break;
        }
    }
    let left_unsaved = leave(&duet, &leaving, ui).await;
    Ok(exit_code(signals.caught(), left_unsaved))
}

async fn leave(duet: &Duet, leaving: &Leaving, ui: &mut Ui) -> bool {
    duet.leave().await;
    leaving.farewell(duet.talk(), ui).await
}

fn greet(session: &Opening, ui: &mut Ui) {
    ui.note(&harmless(&format!(
        "{} /help for help.",
        session.introduction
    )));
    match &session.target {
        Target::Resume(row, _) => {
            let summary = &row.summary;
            let pair = summary.pair.as_deref();
            ui.note(&harmless(&format!(
                "Restored \"{}\": {} messages, round {}, {}.",
                fit(summary.title_or_untitled(), 60),
                summary.messages,
                pair.map_or(0, |pair| pair.round),
                pair.map(|pair| pair.remaining).unwrap_or_default()
            )));
        }
        Target::New(_) if session.args.ephemeral => ui.note("Nothing of this talk is kept."),
        Target::New(_) => mention_newest(PAIRS, &session.house, "tertulia pair -c", ui),
    }
}

/// What a person wants done about what was left undone.
enum Offer {
    GoOn,
    Ask,
    Leave,
}

/// Asks whether to go on with what was left undone: nothing is done twice unasked.
async fn offered(
    duet: &Duet,
    keyboard: &mut Keyboard,
    signals: &mut Signals,
    ui: &mut Ui,
) -> Offer {
    let Some(pair) = duet.pair() else {
        return Offer::Ask;
    };
    let instruction = fit(&pair.last_instruction.replace('\n', " "), 200);
    let what = match pair.next {
        Next::Worker => format!("The worker was cut off. Its instruction was: {instruction}"),
        Next::Handover => {
            format!("This instruction has not been given to the worker: {instruction}")
        }
        Next::Report => "The worker has finished, and the instructor has not heard it.".to_owned(),
        _ => "The instructor has not replied.".to_owned(),
    };
    ui.ask(&harmless(&what));
    if pair.next == Next::Handover && duet.progress().remaining.is_spent() {
        ui.ask("The worker may not be called any more: [r+5] allows five more calls.");
        return Offer::Ask;
    }
    keyboard.put_aside();
    loop {
        ui.prompt("Go on with it? [y]es, [n]o: ");
        let line = tokio::select! {
            line = keyboard.fresh_line() => line,
            () = signals.next() => return Offer::Leave,
        };
        let Some(line) = line else {
            return Offer::Leave;
        };
        match String::from_utf8_lossy(&line)
            .trim()
            .to_lowercase()
            .as_str()
        {
            "y" | "yes" => return Offer::GoOn,
            "n" | "no" => return Offer::Ask,
            _ => {}
        }
    }
}

fn info(duet: &Duet, ui: &mut Ui) {
    let id = duet.talk().recorder().id();
    match duet.talk().recorder().summary() {
        Some(summary) => ui.note(&harmless(&format!(
            "{id}  \"{}\"  {}",
            fit(summary.title_or_untitled(), 60),
            paired::progress(&duet.progress())
        ))),
        None => ui.note(&format!("{id}  nothing said yet")),
    }
}

async fn turn(
    duet: &mut Duet,
    words: &str,
    notify: bool,
    signals: &mut Signals,
    keyboard: &mut Keyboard,
    ui: &mut Ui,
) -> CommandResult<()> {
    if let Err(error) = tertulia::store::check_message(words) {
        CommandError::from(error).report(ui);
        return Ok(());
    }
    let cancel = signals.cancel.clone();
    let mut output = Output::new(OutputFormat::Text, ui, Some(keyboard)).verbatim();
    let pause = signals
        .during(duet.turn(words, &mut output, &cancel))
        .await?;
    if let Some(refused) = finish(&mut output, duet, &pause) {
        refused.report(ui);
    }
    say_how_it_ended(duet, &pause, notify, ui);
    if matches!(
        pause,
        Pause::Stopped(_) | Pause::Failed(_) | Pause::WorkerFails(_)
    ) && duet.pending().is_some()
    {
        ui.note("/go goes on with what was left undone; anything else is said to the instructor");
    }
    Ok(())
}
