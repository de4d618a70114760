//! Slash commands of the line mode about sessions: the program's own commands, and changes to
//! another session.

use std::ops::ControlFlow;

use tertulia_core::entry::{Body, Kind};
use tertulia_core::id::Seq;
use tertulia_core::query::Row;
use tertulia_engine::setup::ChatAgent;
use tertulia_engine::spec::{AgentSpec, PairSpec, ParticipantSpec, TeamSpec};

use super::Lines;
use crate::args::{self, OutputFormat};
use crate::commands;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::participants::{self, Existing};
use crate::talk::LeftSession;
use crate::talk::args::TalkArgs;
use crate::talk::frontend::Output;
use crate::talk::opening::Opening;
use crate::talk::target;
use crate::ui::harmless;

impl Lines<'_> {
    /// Executes a command. Errors are reported, and the session goes on.
    pub(super) fn with_sessions(&mut self, name: &str, argument: &str) -> ControlFlow<()> {
        // These block, as they do on the command line.
        let done = tokio::task::block_in_place(|| self.dispatch(name, argument));
        match done {
            Ok(next) if next.is_some() => {
                self.next = next.map(Box::new);
                ControlFlow::Break(())
            }
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                error.report(self.ui);
                ControlFlow::Continue(())
            }
        }
    }

    /// Returns the session to open next, if the command opens one.
    fn dispatch(&mut self, name: &str, argument: &str) -> CommandResult<Option<Opening>> {
        let words: Vec<&str> = argument.split_whitespace().collect();
        match name {
            "/sessions" => self.command(&["list"])?,
            "/stats" => self.command(&["stats"])?,
            "/agents" => self.command(&["agents"])?,
            "/team" => self.command(&[&["team"], &words[..]].concat())?,
            "/undo" => self.command(&["undo"])?,
            "/search" => {
                needs(name, "words", argument)?;
                self.command(&[&["search"], &words[..]].concat())?;
            }
            "/resume" => {
                needs(name, "a session; /sessions lists them", argument)?;
                let row = self.workspace.find(argument)?;
                if row.meta.id == self.session.conversation().writer().id() {
                    self.ui.note("this is the session that is open");
                    return Ok(None);
                }
                return self.resume(row, ParticipantSpec::Recorded).map(Some);
            }
            "/new" => return self.begin().map(Some),
            "/model" => self.models()?,
            _ => return self.with_this_session(name, argument, &words),
        }
        Ok(None)
    }

    /// Executes a command that needs the session to be saved.
    fn with_this_session(
        &mut self,
        name: &str,
        argument: &str,
        words: &[&str],
    ) -> CommandResult<Option<Opening>> {
        let row = self.row()?;
        let id = row.meta.id.to_string();
        match name {
            "/rename" => {
                needs(name, "a title", argument)?;
                self.command(&["rename", "--", &id, argument])?;
            }
            "/tag" => {
                needs(name, "+TAG or -TAG", argument)?;
                self.command(&[&["tag", &id], words].concat())?;
            }
            "/compare" => {
                needs(name, "a session", argument)?;
                self.command(&["diff", "--", &id, argument])?;
            }
            "/tree" => self.command(&["log", &id, "--graph"])?,
            "/export" => self.export(&row, words)?,
            "/fork" => {
                let at = entry(name, argument)?;
                return self.fork(&row, at).map(Some);
            }
            "/rewind" => {
                needs(
                    name,
                    "the number of an entry; `tertulia show` has them",
                    argument,
                )?;
                return self.rewind(&row, entry(name, argument)?).map(Some);
            }
            _ => {
                let words = format!("{name} is not available in line mode");
                return Err(CommandError::new(ErrorKind::Usage, words));
            }
        }
        Ok(None)
    }

    /// Runs a command of the program in this store.
    fn command(&mut self, words: &[&str]) -> CommandResult<()> {
        let words = ["tertulia"].iter().chain(words).map(|word| (*word).into());
        let mut parsed = args::parse(words).map_err(|error| {
            let told = error.to_string();
            let first = told.lines().next().unwrap_or_default();
            let first = first.strip_prefix("error: ").unwrap_or(first);
            CommandError::new(ErrorKind::Usage, first)
        })?;
        parsed.global = self.run.global.clone();
        // An exit code other than 0 is for scripts: `diff` has one for a difference.
        commands::run(parsed, self.ui).map(drop)
    }

    /// Returns the list row of this session.
    fn row(&self) -> CommandResult<Row> {
        let writer = self.session.conversation().writer();
        if self.args.ephemeral {
            let words = "this session is not saved";
            return Err(CommandError::new(ErrorKind::Usage, words));
        }
        match writer.meta() {
            // Titles and tags may have been changed beside the open session.
            Some(meta) => Ok(self.workspace.wait(self.workspace.sessions.row(meta.id))?),
            None => Err(CommandError::new(ErrorKind::Usage, "no messages yet")),
        }
    }

    fn export(&mut self, row: &Row, words: &[&str]) -> CommandResult<()> {
        let id = row.meta.id.to_string();
        let (format, file) = match words {
            [] => ("md", None),
            [file] if file.contains(['.', '/']) => {
                let known = file.rsplit('.').next().unwrap_or_default();
                let known = ["html", "json", "jsonl"]
                    .into_iter()
                    .find(|one| *one == known);
                (known.unwrap_or("md"), Some((*file).to_owned()))
            }
            [format] => (*format, None),
            [format, file] => (*format, Some((*file).to_owned())),
            _ => {
                let words = "/export takes a format and a file";
                return Err(CommandError::new(ErrorKind::Usage, words));
            }
        };
        let extension = match format {
            "md" | "markdown" => "md",
            "html" => "html",
            "jsonl" | "claude-code" | "codex" => "jsonl",
            _ => "json",
        };
        let named = || format!("tertulia-{}.{extension}", row.meta.id.short());
        let file = file.unwrap_or_else(named);
        self.command(&["export", &id, "--format", format, "-o", &file])
    }

    /// Forks this session, and opens the fork.
    fn fork(&mut self, row: &Row, at: Option<Seq>) -> CommandResult<Opening> {
        let forked = target::fork(&self.workspace, row, at, None)?;
        self.resume(forked.row, ParticipantSpec::Recorded)
    }

    /// Goes back to before an entry, in a fork, and shows the message that stood there.
    fn rewind(&mut self, row: &Row, at: Option<Seq>) -> CommandResult<Opening> {
        let at = at.unwrap_or(row.meta.head.seq);
        let log = self
            .workspace
            .wait(self.workspace.sessions.load_one(&row.meta, at))?;
        let entry = log.entries.iter().find(|entry| entry.seq == at);
        if at.0 <= 1 || entry.is_none() {
            let words = format!("entry {at} is not one to go back to");
            let hint = format!("choose one from 2 to {}", row.meta.head.seq);
            return Err(CommandError::new(ErrorKind::NotFound, words).hint(hint));
        }
        let opening = self.fork(row, Some(at.back(1)))?;
        if let Some(Body::Message(message)) = entry.map(|entry| &entry.body) {
            let words = harmless(message.content.trim_end());
            self.ui.note(&format!("Went back to before: {words}"));
        }
        Ok(opening)
    }

    /// Lists the models of the agent.
    fn models(&mut self) -> CommandResult<()> {
        let agent = self.agent()?;
        self.command(&["agents", "models", &agent])
    }

    /// Returns the name of the agent of a chat.
    fn agent(&self) -> CommandResult<String> {
        let agent = self.session.conversation().agent_name().map(str::to_owned);
        agent.ok_or_else(|| {
            let words =
                "each agent here has its own model: the team's file or the flags of pair name it";
            CommandError::new(ErrorKind::Usage, words)
        })
    }

    /// Switches a chat to another agent (`/agents`) or to another model of its agent (`/model`).
    pub(super) async fn switch(&mut self, command: &str, name: &str) {
        let prepared = tokio::task::block_in_place(|| self.switched(command, name));
        let agent = match prepared {
            Ok(agent) => agent,
            Err(error) => {
                error.report(self.ui);
                return;
            }
        };
        let mut output = Output::new(OutputFormat::Text, self.ui, None);
        let outcome = self.session.switch(Ok(agent), &mut output).await;
        for notice in outcome.notices {
            self.ui.remark(notice.is_warning(), &notice.text);
        }
    }

    /// Prepares the agent to switch to.
    fn switched(&mut self, command: &str, name: &str) -> CommandResult<ChatAgent> {
        if name.contains(char::is_whitespace) {
            let words = format!("{command} takes one name, not '{name}'");
            return Err(CommandError::new(ErrorKind::Usage, words));
        }
        let (agent, name) = (self.agent()?, name.to_owned());
        let (agent, model) = match command {
            "/model" => (agent, Some(name)),
            _ => (name, None),
        };
        let agent = Some(agent);
        let spec = ParticipantSpec::Chat(AgentSpec { agent, model });
        let spec = self.args.spec(spec);
        participants::chat_agent(&spec, None, &self.workspace, self.ui)
    }

    /// Prepares a new session with the same participants.
    fn begin(&mut self) -> CommandResult<Opening> {
        let conversation = self.session.conversation();
        let team_file = || conversation.writer().meta()?.team_file.clone();
        let participants = match conversation.kind() {
            Kind::Chat => ParticipantSpec::Chat(AgentSpec {
                agent: conversation.agent_name().map(str::to_owned),
                model: None,
            }),
            Kind::Team => ParticipantSpec::Team(TeamSpec {
                config: Some(team_file().ok_or_else(|| {
                    CommandError::new(ErrorKind::Usage, "nothing was said in this session yet")
                })?),
                ..TeamSpec::default()
            }),
            Kind::Pair => ParticipantSpec::Pair(PairSpec::default()),
        };
        let args = TalkArgs {
            sealed: self.args.sealed,
            ..self.flags(None)
        };
        self.prepare(participants, Existing::default(), args)
    }

    fn resume(&mut self, row: Row, participants: ParticipantSpec) -> CommandResult<Opening> {
        let args = TalkArgs {
            resume: Some(Some(row.meta.id.to_string())),
            ..self.flags(Some(&row))
        };
        // What this session holds open is free when it is opened again.
        let own = row.meta.id == self.session.conversation().writer().id();
        let row = Row {
            open: row.open && !own,
            ..row
        };
        let existing = Existing {
            row: Some(row),
            mirror: None,
        };
        self.prepare(participants, existing, args)
    }

    fn prepare(
        &mut self,
        participants: ParticipantSpec,
        existing: Existing,
        args: TalkArgs,
    ) -> CommandResult<Opening> {
        let workspace = self.from.clone();
        Opening::prepare(participants, existing, args, workspace, self.ui)
    }

    /// Returns the flags of this session that hold for the next one, too.
    fn flags(&self, next: Option<&Row>) -> TalkArgs {
        let left = LeftSession {
            id: Some(self.session.conversation().writer().id()),
            permissions: &self.session.permissions(),
            flag: self.run.flag,
        };
        let policy = left.next_policy(next);
        TalkArgs {
            approve: policy.approve,
            default_policy: policy.default_policy,
            folder: participants::known_folder(&self.workspace.settings.cwd, &self.from),
            no_project_instructions: self.args.no_project_instructions,
            ephemeral: self.args.ephemeral,
            plain: self.args.plain,
            ..TalkArgs::default()
        }
    }
}

/// Returns an error if a command lacks its argument.
fn needs(name: &str, what: &str, argument: &str) -> CommandResult<()> {
    match argument.trim().is_empty() {
        true => {
            let words = format!("{name} needs {what}");
            Err(CommandError::new(ErrorKind::Usage, words))
        }
        false => Ok(()),
    }
}

/// Parses the number of an entry.
fn entry(name: &str, argument: &str) -> CommandResult<Option<Seq>> {
    if argument.is_empty() {
        return Ok(None);
    }
    let number = argument.parse().ok().filter(|number| *number > 0);
    let wrong = || {
        let words = format!("{name} needs the number of an entry, not '{argument}'");
        CommandError::new(ErrorKind::Usage, words)
    };
    number.map(|number| Some(Seq(number))).ok_or_else(wrong)
}
