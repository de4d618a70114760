//! The line mode: a session on a terminal, line by line. `typed` reads prompts, `commands` parses
//! slash commands.

mod commands;
mod typed;

use std::ops::ControlFlow;
use std::process::ExitCode;

use tertulia_agents::approval::PermissionChange;
use tertulia_core::entry::Kind;
use tertulia_engine::conversation::{Compaction, Conversation, TurnResult, UnfinishedWork};
use tertulia_engine::setup::Target;

use super::args::Sort;
use super::describe::{self, resumed, unheard};
use super::frontend::Output;
use super::keyboard::Keyboard;
use super::leaving::write_back;
use super::once::end_of;
use super::opening::Opening;
use super::target::mention_newest;
use super::{exit_code, permissions};
use crate::args::OutputFormat;
use crate::error::{CommandError, CommandResult};
use crate::signals::Signals;
use crate::ui::{AGENT, HUMAN, Ui, harmless};
use commands::Read;
use typed::{Typed, next_words};

/// Runs a session line by line until the user exits.
pub async fn talk(opening: Opening, first: Option<String>, ui: &mut Ui) -> CommandResult<ExitCode> {
    let leaving = opening.leaving.clone();
    let participants = &opening.setup.participants;
    let (seat, rings) = (participants.seat(), participants.rings());
    let mut signals = Signals::listen()?.hurrying(opening.workspace.sessions.store().patience());
    let conversation = {
        let mut output = Output::new(OutputFormat::Text, ui, None);
        let opened = signals.during(opening.setup.open(&mut output)).await?;
        match (opened, signals.caught()) {
            (Err(_), Some(signal)) => return Ok(exit_code(Some(signal), None)),
            (opened, _) => opened?,
        }
    };
    let mut lines = Lines {
        conversation,
        seat,
        rings,
        keyboard: Keyboard::of_a_session(),
        signals,
        ui,
    };
    let left = lines.lead(first).await;
    let Lines {
        mut conversation,
        signals,
        ui,
        ..
    } = lines;
    conversation.leave().await;
    if let Some(words) = unheard(&conversation, &leaving) {
        ui.note(&words);
    }
    let left_unsaved = leaving.farewell(&mut conversation, ui).await;
    left.map(|()| exit_code(signals.caught(), left_unsaved))
}

/// Prints the introduction, and which session is resumed or could be.
pub fn greet(opening: &Opening, ui: &mut Ui) {
    ui.note(&format!("{} /help for help.", opening.setup.introduction));
    let kind = opening.setup.participants.kind();
    let goes_on = match (&opening.setup.target, kind) {
        (Target::Resume(row, _), _) => {
            let now = opening.workspace.sessions.clock().now();
            return ui.note(&harmless(&resumed(&row.meta, now)));
        }
        (Target::New(_), _) if opening.args.ephemeral => {
            return ui.note("This session is not saved.");
        }
        (Target::New(_), Kind::Chat) => "tertulia -c",
        (Target::New(_), Kind::Pair) => "tertulia pair -c",
        // The team command has already asked about an earlier session or mentioned it.
        (Target::New(_), Kind::Team) => return,
    };
    mention_newest(Sort::of(kind, None), &opening.workspace, goes_on, ui);
}

/// A session in line mode.
struct Lines<'a> {
    conversation: Conversation,
    /// The person that the user speaks as in a team, if chosen.
    seat: Option<String>,
    /// Whether to ring the bell when it is the user's turn.
    rings: bool,
    keyboard: Keyboard,
    signals: Signals,
    ui: &'a mut Ui,
}

impl Lines<'_> {
    /// Handles one line after the other until the user exits or a signal ends the session.
    async fn lead(&mut self, first: Option<String>) -> CommandResult<()> {
        let mut pending = first;
        if pending.is_none()
            && let Some(left) = self.conversation.unfinished()
        {
            match self.offer(&left).await {
                ControlFlow::Continue(true) => pending = Some("/go".to_owned()),
                ControlFlow::Continue(false) => {}
                ControlFlow::Break(()) => return Ok(()),
            }
        }
        loop {
            let words = match pending.take() {
                Some(words) => words,
                None => match self.next_words().await {
                    Typed::Words(words) => words,
                    Typed::End | Typed::Signal => return Ok(()),
                },
            };
            let then = self.follow(words).await?;
            let signal = self.signals.caught().is_some() && !self.signals.forgive_interrupt();
            if then.is_break() || signal {
                return Ok(());
            }
        }
    }

    async fn next_words(&mut self) -> Typed {
        let name = harmless(&self.conversation.whose_turn(self.seat.as_deref()));
        let prompt = self.ui.styled(HUMAN, &format!("{name}> "));
        next_words(&prompt, &mut self.keyboard, &mut self.signals, self.ui).await
    }

    /// Executes a command or sends a message.
    async fn follow(&mut self, words: String) -> CommandResult<ControlFlow<()>> {
        let kind = self.conversation.kind();
        match commands::read(&words, kind) {
            Read::Wrong(why) => self.ui.warn(&why),
            Read::Words if words.trim().is_empty() => {}
            Read::Words => self.turn(words).await?,
            Read::Command("/help", _) => self.ui.note(&commands::help(kind)),
            Read::Command("/info", _) => self.tell(&describe::info(&self.conversation)),
            Read::Command("/members", _) => self.tell(&describe::members(&self.conversation)),
            Read::Command("/queue", _) => self.tell(&describe::queue(&self.conversation)),
            Read::Command("/task", _) => self.tell(&describe::task(&self.conversation)),
            Read::Command("/compact", _) => self.compact().await?,
            Read::Command("/approve", mode) => self.approve(mode),
            Read::Command("/permissions", what) => self.permissions(what),
            Read::Command("/as", name) => match self.conversation.seat_of(name) {
                Ok(seat) => self.seat = seat,
                Err(why) => self.ui.warn(&why),
            },
            Read::Command("/go", _) if self.conversation.unfinished().is_none() => {
                self.ui
                    .note("nothing is left undone: say what is to be done");
            }
            Read::Command("/go", _) => self.turn(String::new()).await?,
            Read::Command(..) => return Ok(ControlFlow::Break(())),
        }
        Ok(ControlFlow::Continue(()))
    }

    fn approve(&mut self, mode: &str) {
        match permissions::mode(mode) {
            Err(why) => self.ui.warn(&format!("/approve {why}")),
            Ok(mode) => self.permit(&PermissionChange::Mode(mode)),
        }
    }

    fn permissions(&mut self, what: &str) {
        let state = self.conversation.permissions().state();
        let change = permissions::revoked(what).and_then(|what| {
            what.map(|what| permissions::revocation(&what, &state))
                .transpose()
        });
        match change {
            Err(why) => self.ui.warn(&format!("/permissions {why}")),
            Ok(None) => self.tell(&permissions::lines(&state)),
            Ok(Some(change)) => self.permit(&change),
        }
    }

    fn permit(&mut self, change: &PermissionChange) {
        let permissions = self.conversation.permissions();
        permissions.change(change);
        let words = permissions::line(&permissions.state());
        self.ui.note(&harmless(&words));
    }

    fn tell(&mut self, lines: &[String]) {
        for line in lines {
            self.ui.note(line);
        }
    }

    /// Asks whether to continue unfinished work.
    async fn offer(&mut self, left: &UnfinishedWork) -> ControlFlow<(), bool> {
        self.ui.ask(&harmless(&left.text));
        if left.is_spent {
            return ControlFlow::Continue(false);
        }
        self.keyboard.put_aside();
        loop {
            self.ui.prompt("Go on with it? [y]es, [n]o: ");
            let line = tokio::select! {
                line = self.keyboard.fresh_line() => line,
                () = self.signals.next() => None,
            };
            let Some(line) = line else {
                return ControlFlow::Break(());
            };
            let answer = String::from_utf8_lossy(&line).trim().to_lowercase();
            match answer.as_str() {
                "y" | "yes" => return ControlFlow::Continue(true),
                "n" | "no" => return ControlFlow::Continue(false),
                _ => {}
            }
        }
    }

    async fn compact(&mut self) -> CommandResult<()> {
        let cancel = self.signals.cancel.clone();
        let mut output = Output::new(OutputFormat::Text, self.ui, None);
        let compacted = self.conversation.compact(&mut output, &cancel);
        let compacted = match self.signals.during(compacted).await {
            Ok(compacted) => compacted,
            Err(left) => {
                output.cut_off();
                return Err(left);
            }
        };
        write_back(self.conversation.writer(), self.ui).await;
        match compacted {
            Some(Compaction::Nothing) => {
                self.ui.note("nothing to compact: there is no older part");
            }
            None => self
                .ui
                .note("not needed here: each agent gets only the messages that fit its context"),
            Some(_) => {}
        }
        Ok(())
    }

    async fn turn(&mut self, words: String) -> CommandResult<()> {
        if let Err(error) = tertulia_store::check_message(&words) {
            CommandError::from(error).report(self.ui);
            return Ok(());
        }
        if let Some(name) = self.conversation.agent_name() {
            let name = self.ui.styled(AGENT, &format!("{name}> "));
            self.ui.data(&name);
        }
        let cancel = self.signals.cancel.clone();
        let kind = self.conversation.kind();
        let mut output =
            Output::new(OutputFormat::Text, self.ui, Some(&mut self.keyboard)).of(kind);
        let said = self
            .conversation
            .say(words, self.seat.as_deref(), &mut output, &cancel);
        let turned = match self.signals.during(said).await {
            Ok(Ok(turned)) => turned,
            Ok(Err(error)) => {
                CommandError::from(error).report(self.ui);
                return Ok(());
            }
            Err(left) => {
                output.cut_off();
                return Err(left);
            }
        };
        let end = end_of(&turned, &self.conversation);
        let refused = output.finish(&end);
        write_back(self.conversation.writer(), self.ui).await;
        let failure = end.failure.cloned().map(CommandError::from);
        for error in refused.into_iter().chain(failure) {
            error.report(self.ui);
        }
        self.say_how_it_ended(&turned);
        Ok(())
    }

    fn say_how_it_ended(&mut self, turned: &TurnResult) {
        for note in turned.notes(&self.conversation) {
            self.ui.remark(note.is_warning(), &note.text);
        }
        if self.rings {
            self.ui.bell();
        }
    }
}
