//! The line mode: a session on a terminal, line by line. `typed` reads prompts, `commands` parses
//! slash commands, `sessions` executes those that concern sessions as a whole.

mod commands;
mod sessions;
mod typed;

use std::ops::ControlFlow;
use std::process::ExitCode;

use tertulia_agents::approval::PermissionChange;
use tertulia_core::entry::Kind;
use tertulia_engine::conversation::Conversation;
use tertulia_engine::event::UnfinishedWork;
use tertulia_engine::live::{LiveSession, SessionCommand};
use tertulia_engine::prompt::Prompt;
use tertulia_engine::setup::Target;

use super::args::{Sort, TalkArgs};
use super::caller::SessionCaller;
use super::describe::{self, resumed};
use super::frontend::Output;
use super::keyboard::Keyboard;
use super::once::end_of;
use super::opening::Opening;
use super::target::mention_newest;
use super::{exit_code, permissions, tell_end};
use crate::args::{ApproveMode, GlobalArgs, OutputFormat};
use crate::error::{CommandError, CommandResult};
use crate::open::Workspace;
use crate::signals::Signals;
use crate::ui::{AGENT, HUMAN, Ui, harmless};
use commands::Read;
use typed::{Typed, next_words};

/// Runs a session line by line until the user exits. Returns the session to open next, if the user
/// wants another one.
pub async fn talk(
    opening: Opening,
    first: Option<Prompt>,
    keyboard: &mut Keyboard,
    run: Run<'_>,
    ui: &mut Ui,
) -> CommandResult<(ExitCode, Option<Box<Opening>>)> {
    let (workspace, args) = (opening.workspace.clone(), opening.args.clone());
    let from = opening.from.clone();
    let rings = opening.setup.participants.rings();
    let mut signals = Signals::listen()?.hurrying(opening.workspace.sessions.store().patience());
    let session = {
        let mut output = Output::new(OutputFormat::Text, ui, None);
        let opened = LiveSession::open(opening.setup, &mut output);
        match (signals.during(opened).await?, signals.caught()) {
            (Err(_), Some(signal)) => return Ok((exit_code(Some(signal), None), None)),
            (opened, _) => opened?,
        }
    };
    let mut lines = Lines {
        session,
        workspace,
        from,
        args,
        run,
        next: None,
        rings,
        keyboard,
        signals,
        ui,
    };
    let left = lines.lead(first).await;
    let end = lines.session.close(true).await;
    let left_unsaved = tell_end(end, lines.ui);
    let code = exit_code(lines.signals.caught(), left_unsaved);
    left.map(|()| (code, lines.next))
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

/// Flags of the program that hold for all its sessions.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub global: &'a GlobalArgs,
    /// Tool policy, if a flag says one.
    pub flag: Option<ApproveMode>,
}

/// A session in line mode.
struct Lines<'a> {
    session: LiveSession,
    workspace: Workspace,
    /// The workspace of the program, in the folder that the user stands in.
    from: Workspace,
    args: TalkArgs,
    run: Run<'a>,
    /// The session to open after this one.
    next: Option<Box<Opening>>,
    /// Whether to ring the bell when it is the user's turn.
    rings: bool,
    /// Shared by all sessions of a run: what reads it cannot be stopped.
    keyboard: &'a mut Keyboard,
    signals: Signals,
    ui: &'a mut Ui,
}

impl Lines<'_> {
    /// Handles one line after the other until the user exits or a signal ends the session.
    async fn lead(&mut self, first: Option<Prompt>) -> CommandResult<()> {
        let mut pending = first.map(|first| first.text);
        if pending.is_none()
            && let Some(left) = self.session.conversation().unfinished()
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
        let name = harmless(&self.session.state().writer);
        let prompt = self.ui.styled(HUMAN, &format!("{name}> "));
        next_words(&prompt, self.keyboard, &mut self.signals, self.ui).await
    }

    /// Executes a command or sends a message.
    async fn follow(&mut self, words: String) -> CommandResult<ControlFlow<()>> {
        let kind = self.session.kind();
        match commands::read(&words, kind) {
            Read::Wrong(why) => self.ui.warn(&why),
            Read::Words if words.trim().is_empty() => {}
            Read::Words if words.starts_with('!') => self.run(&words[1..]).await?,
            Read::Words => self.turn(words).await?,
            Read::Command("/help", _) => self.ui.note(&commands::help(kind)),
            Read::Command("/info", _) => self.describe(describe::info),
            Read::Command("/members", _) => self.describe(describe::members),
            Read::Command("/queue", _) => self.describe(describe::queue),
            Read::Command("/task", _) => self.describe(describe::task),
            Read::Command("/compact", _) => self.execute(SessionCommand::Compact).await?,
            Read::Command("/approve", mode) => self.approve(mode).await?,
            Read::Command("/permissions", what) => self.permissions(what).await?,
            Read::Command("/as", name) => {
                let name = (!name.is_empty()).then(|| name.to_owned());
                self.execute(SessionCommand::As(name)).await?;
            }
            Read::Command("/go", _) if self.session.conversation().unfinished().is_none() => {
                self.ui
                    .note("nothing is left undone: say what is to be done");
            }
            Read::Command("/go", _) => self.turn(String::new()).await?,
            Read::Command(command @ ("/model" | "/agents"), name) if !name.is_empty() => {
                self.switch(command, name).await;
            }
            Read::Command("/retry", _) => self.turn(String::new()).await?,
            Read::Command("/exit" | "/quit" | "/end", _) => return Ok(ControlFlow::Break(())),
            Read::Command(name, argument) => return Ok(self.with_sessions(name, argument)),
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Runs a shell command of the user. One that other lines follow at once may have been pasted.
    async fn run(&mut self, command: &str) -> CommandResult<()> {
        if command.trim().is_empty() {
            self.ui
                .warn("type a command after the !, such as !git status");
            return Ok(());
        }
        if self.keyboard.has_more() {
            self.keyboard.put_aside();
            let question = format!("Run {}?", harmless(command.trim()));
            if !self.confirm(&question).await {
                self.ui.note("not run");
                return Ok(());
            }
        }
        self.execute(SessionCommand::Run(command.to_owned())).await
    }

    async fn approve(&mut self, mode: &str) -> CommandResult<()> {
        match permissions::mode(mode) {
            Err(why) => self.ui.warn(&format!("/approve {why}")),
            Ok(mode) => self.permit(&PermissionChange::Mode(mode)).await?,
        }
        Ok(())
    }

    async fn permissions(&mut self, what: &str) -> CommandResult<()> {
        let state = self.session.permissions().state();
        let change = permissions::revoked(what).and_then(|what| {
            what.map(|what| permissions::revocation(&what, &state))
                .transpose()
        });
        match change {
            Err(why) => self.ui.warn(&format!("/permissions {why}")),
            Ok(None) => self.tell(&permissions::lines(&state)),
            Ok(Some(change)) => self.permit(&change).await?,
        }
        Ok(())
    }

    async fn permit(&mut self, change: &PermissionChange) -> CommandResult<()> {
        let permissions = self.session.permissions();
        permissions.change(change);
        let words = permissions::line(&permissions.state());
        self.ui.note(&harmless(&words));
        self.execute(SessionCommand::RecordTerms).await
    }

    fn describe(&mut self, lines: fn(&Conversation) -> Vec<String>) {
        let lines = lines(self.session.conversation());
        self.tell(&lines);
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
        let prompt = format!("{} [y]es, [n]o: ", left.question);
        match self.asked(&prompt).await {
            Some(yes) => ControlFlow::Continue(yes),
            None => ControlFlow::Break(()),
        }
    }

    /// Asks a question; only `y` is a yes.
    async fn confirm(&mut self, question: &str) -> bool {
        let prompt = format!("{question} [y]es, [n]o: ");
        self.asked(&prompt).await == Some(true)
    }

    /// Asks until the answer is yes or no. Returns `None` at the end of input or after a signal.
    async fn asked(&mut self, prompt: &str) -> Option<bool> {
        loop {
            self.ui.prompt(prompt);
            let line = tokio::select! {
                line = self.keyboard.fresh_line() => line,
                () = self.signals.next() => None,
            };
            let answer = String::from_utf8_lossy(&line?).trim().to_lowercase();
            match answer.as_str() {
                "y" | "yes" => return Some(true),
                "n" | "no" => return Some(false),
                _ => {}
            }
        }
    }

    async fn turn(&mut self, words: String) -> CommandResult<()> {
        if let Some(name) = self.session.conversation().agent_name() {
            let name = self.ui.styled(AGENT, &format!("{name}> "));
            self.ui.data(&name);
        }
        self.execute(SessionCommand::Say(Prompt::typed(words)))
            .await?;
        if self.signals.caught().is_none() {
            self.caller().ended();
        }
        if self.rings {
            self.ui.bell();
        }
        Ok(())
    }

    fn caller(&self) -> SessionCaller {
        SessionCaller::of(self.workspace.settings.caller(), &self.session)
    }

    /// Executes a command of the session, and says how it ended.
    async fn execute(&mut self, command: SessionCommand) -> CommandResult<()> {
        let cancel = self.signals.cancel.clone();
        let kind = self.session.kind();
        let caller = self.caller();
        let output = Output::new(OutputFormat::Text, self.ui, Some(self.keyboard));
        let mut output = output.of(kind).calling(caller);
        let executed = self.session.execute(command, &mut output, &cancel);
        let outcome = match self.signals.during(executed).await {
            Ok(outcome) => outcome,
            Err(left) => {
                output.cut_off();
                return Err(left);
            }
        };
        let end = end_of(&outcome, &self.session);
        let refused = output.finish(&end);
        let failure = end.failure.cloned().map(CommandError::from);
        for error in refused.into_iter().chain(failure) {
            error.report(self.ui);
        }
        let notes = match (&outcome.turn, &outcome.error) {
            (Some(turn), _) => turn.notes(self.session.conversation()),
            // The error says it.
            (None, Some(_)) => Vec::new(),
            (None, None) => outcome.notices,
        };
        for note in notes {
            self.ui.remark(note.is_warning(), &note.text);
        }
        Ok(())
    }
}
