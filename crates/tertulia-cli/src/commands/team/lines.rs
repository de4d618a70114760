//! A team's talk on a terminal, line by line.

use std::io::BufRead;
use std::process::ExitCode;

use tertulia::conversation::table::Table;
use tertulia::conversation::team::events::Next;
use tertulia::conversation::team::markers;
use tertulia::entry::Kind;
use tertulia::query::Row;
use tertulia::session::Summary;
use tertulia::team::TeamFile;

use super::end::{finish, unheard};
use super::seats;
use crate::args::OutputFormat;
use crate::error::{CommandError, CommandResult};
use crate::moment::ago;
use crate::open::House;
use crate::show;
use crate::signals::Signals;
use crate::talk::conversation::Conversation;
use crate::talk::door::Output;
use crate::talk::keyboard::Keyboard;
use crate::talk::lines::{Typed, is_command, next_words, unknown};
use crate::talk::opening::{Cast, Opening};
use crate::talk::target::{self, Target};
use crate::talk::{Leaving, Sort, exit_code, nothing_to_say, write_back};
use crate::ui::{HUMAN, Ui, fit, harmless};

const HELP: &str = "/help     this\n/info     which session this is, and who has said how much\n\
    /members  who is here\n/queue    who is still to speak\n/task     what the team works on\n\
    /as NAME  speak as this person, unless the words begin with [FROM: name]; alone, as whoever is waited for\n\
    /exit     leave (also /end, /quit, Ctrl+D)\n\
    [NEXT: name] gives somebody the floor, [TEAM_TASK: text] says what all work on, [DROP: ALL] empties the queue.\n\
    A line that ends in \\ goes on in the next. Ctrl+C stops whoever speaks and the queue, and leaves when nobody does.";
const COMMANDS: &[&str] = &[
    "/help", "/info", "/members", "/queue", "/task", "/as", "/exit", "/end", "/quit",
];

/// What to do about an earlier talk.
pub enum Choice {
    Resume(Box<Row>),
    New,
    Leave,
}

/// This team's newest talk in this project, or one that was brought here.
pub fn earlier(house: &House, team: &TeamFile) -> CommandResult<Option<Row>> {
    let sort = Sort {
        kind: Kind::Team,
        team: Some(team.id()),
    };
    target::newest(sort, house)
}

/// Mentions this team's newest talk to somebody who has begun another by saying something.
pub fn mention_earlier(house: &House, team: &TeamFile, ui: &mut Ui) -> CommandResult<()> {
    if let Some(row) = earlier(house, team)? {
        let when = ago(row.summary.updated_at, house.sessions.stamp().now());
        ui.note(&format!(
            "{} has an earlier talk, \"{}\" ({when}): {} --resume {} goes on with it.",
            harmless(team.shown_name()),
            fit(&harmless(row.summary.title_or_untitled()), 50),
            house.settings.program,
            row.summary.id.short()
        ));
    }
    Ok(())
}

/// Asks whether to go on with this team's newest talk, if there is one.
pub fn offer_earlier(house: &House, team: &TeamFile, ui: &mut Ui) -> CommandResult<Choice> {
    let Some(row) = earlier(house, team)? else {
        return Ok(Choice::New);
    };
    let when = ago(row.summary.updated_at, house.sessions.stamp().now());
    ui.ask(&format!(
        "{} has talked before: {when}, {}\n  \"{}\"",
        harmless(team.shown_name()),
        messages(row.summary.messages),
        fit(&harmless(row.summary.title_or_untitled()), 70)
    ));
    loop {
        ui.prompt("[R] Resume  [N] New  [Q] leave: ");
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        match line.trim().to_lowercase().as_str() {
            "r" | "resume" => return Ok(Choice::Resume(Box::new(row))),
            "n" | "new" => return Ok(Choice::New),
            "q" | "quit" | "\u{1b}" => return Ok(Choice::Leave),
            // The end of the input.
            "" if !matches!(read, Ok(1..)) => return Ok(Choice::Leave),
            _ => ui.note("write R to go on with it, N to begin anew, Q to leave"),
        }
    }
}

fn messages(count: u64) -> String {
    match count {
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    }
}

pub async fn talk(session: Opening, first: Option<String>, ui: &mut Ui) -> CommandResult<ExitCode> {
    greet(&session, ui);
    let leaving = session.leaving.clone();
    let mut seat = match &session.cast {
        Cast::Team { seat, .. } => seat.clone(),
        Cast::Chat(_) | Cast::Pair { .. } => None,
    };
    let mut signals = Signals::listen()?;
    let opened = {
        let mut output = Output::new(OutputFormat::Text, ui, None);
        session.open(&mut output).await?
    };
    let Conversation::Team(mut table) = opened else {
        return Err(nothing_to_say("team NAME"));
    };
    let mut keyboard = Keyboard::default();
    let mut pending = first;
    loop {
        let words = match pending.take() {
            Some(words) => words,
            None => {
                let prompt = prompt(&table, seat.as_deref(), ui);
                match next_words(&prompt, &mut keyboard, &mut signals, ui).await {
                    Typed::Words(words) => words,
                    Typed::End | Typed::Signal => break,
                }
            }
        };
        match words.trim() {
            "" => continue,
            "/exit" | "/quit" | "/end" => break,
            "/help" => ui.note(HELP),
            "/info" => info(&table, ui),
            "/members" => members(&table, ui),
            "/queue" => queue(&table, ui),
            "/task" => ui.note(
                table
                    .task()
                    .unwrap_or("the team has no task: [TEAM_TASK: text] gives it one"),
            ),
            "/as" => seat = None,
            words if words.starts_with("/as ") => seat = take_seat(&table, words, seat, ui),
            words if is_command(words, COMMANDS) => unknown(words, COMMANDS, ui),
            _ => {
                let turn = turn(
                    &mut table,
                    seat.as_deref(),
                    words,
                    &mut signals,
                    &mut keyboard,
                    ui,
                );
                if let Err(left) = turn.await {
                    leave(&table, &leaving, ui).await;
                    return Err(left);
                }
                if signals.caught().is_some() && !signals.forgive_interrupt() {
                    break;
                }
            }
        }
    }
    let left_unsaved = leave(&table, &leaving, ui).await;
    Ok(exit_code(signals.caught(), left_unsaved))
}

async fn leave(table: &Table, leaving: &Leaving, ui: &mut Ui) -> bool {
    table.leave().await;
    if let Some(words) = unheard(table, leaving) {
        ui.note(&words);
    }
    leaving.farewell(table.talk(), ui).await
}

fn greet(session: &Opening, ui: &mut Ui) {
    ui.note(&harmless(&format!(
        "{} /help for help.",
        session.introduction
    )));
    match &session.target {
        Target::Resume(row, _) => ui.note(&harmless(&format!(
            "Restored \"{}\": {}",
            fit(row.summary.title_or_untitled(), 60),
            statistics(&row.summary)
        ))),
        Target::New(_) if session.args.ephemeral => ui.note("Nothing of this talk is kept."),
        Target::New(_) => {}
    }
}

/// How much was said, by whom, over what time.
fn statistics(summary: &Summary) -> String {
    let count = messages(summary.messages);
    format!("{count}, {}", show::statistics(summary))
}

/// Who is to speak: the seat that was taken, which is said, or who is waited for.
fn prompt(table: &Table, seat: Option<&str>, ui: &Ui) -> String {
    let members = table.router().members();
    let sender = table.router().sender(seat, "").ok();
    let name = match sender {
        Some(member) => member.display_name.clone(),
        None => {
            let humans = members.iter().filter(|member| member.is_human());
            let names: Vec<&str> = humans.map(|human| human.display_name.as_str()).collect();
            names.join("/")
        }
    };
    let taken = if seat.is_some() { "as " } else { "" };
    ui.styled(HUMAN, &format!("{taken}{}> ", harmless(&name)))
}

fn take_seat(table: &Table, words: &str, before: Option<String>, ui: &mut Ui) -> Option<String> {
    let name = words.trim_start_matches("/as").trim();
    match table.router().sender(Some(name), "") {
        Ok(member) => Some(member.id.clone()),
        Err(error) => {
            ui.warn(&error.to_string());
            before
        }
    }
}

fn info(table: &Table, ui: &mut Ui) {
    let recorder = table.talk().recorder();
    let id = recorder.id();
    match recorder.summary() {
        Some(summary) => ui.note(&harmless(&format!(
            "{id}  \"{}\"  {}",
            fit(summary.title_or_untitled(), 60),
            statistics(summary)
        ))),
        None => ui.note(&format!("{id}  nothing said yet")),
    }
}

fn members(table: &Table, ui: &mut Ui) {
    for member in table.router().members() {
        let kind = if member.is_human() { "person" } else { "agent" };
        ui.note(&harmless(&format!(
            "{}  [NEXT: {}]  {kind}",
            member.display_name, member.name
        )));
    }
}

fn queue(table: &Table, ui: &mut Ui) {
    let items = table.router().queue().items();
    let names: Vec<&str> = items
        .iter()
        .map(|item| item.request.target.as_str())
        .collect();
    ui.note(&match names.as_slice() {
        [] => "nobody waits to speak".to_owned(),
        names => names.join(" → "),
    });
}

async fn turn(
    table: &mut Table,
    seat: Option<&str>,
    words: String,
    signals: &mut Signals,
    keyboard: &mut Keyboard,
    ui: &mut Ui,
) -> CommandResult<()> {
    if let Err(error) = tertulia::store::check_message(&words) {
        CommandError::from(error).report(ui);
        return Ok(());
    }
    // The words are newer than the seat.
    let seat = seat.filter(|_| markers::parse(&words).from.is_none());
    let cancel = signals.cancel.clone();
    let mut output = Output::new(OutputFormat::Text, ui, Some(keyboard));
    let turn = table.turn(seat, words, &mut output, &cancel);
    let round = match signals.during(turn).await {
        Ok(Ok(round)) => round,
        Ok(Err(error)) => {
            seats::who(error).report(ui);
            return Ok(());
        }
        Err(left) => {
            output.cut_off();
            return Err(left);
        }
    };
    let refused = finish(&mut output, table, &round);
    write_back(table.talk(), ui).await;
    if let Some(refused) = refused {
        refused.report(ui);
    }
    if let Some(Next::Paused { .. }) = round.floor {
        ui.note("say something, and whoever waits goes on");
    }
    if round.went_to_nobody() {
        ui.note("nobody was addressed: [NEXT: name] gives somebody the floor; /members shows who is here");
    }
    Ok(())
}
