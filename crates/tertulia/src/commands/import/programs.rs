//! Imports the histories of other programs, session by session.

use std::ops::ControlFlow;

use serde_json::{Value, json};
use tertulia_core::entry::Message;
use tertulia_core::foreign::{Beginning, Foreign};
use tertulia_core::id::Seq;
use tertulia_formats::importer::Importer;
use tertulia_store::{Adopted, Doing, Intake, StoreError};

use super::Taken;
use super::conversations::RecordedProjects;
use super::outcome::{Outcome, own_words, words};
use super::sources::Source;
use crate::commands::export::Form;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::show;

/// Imports files of other programs one after the other.
pub struct Programs<'a> {
    pub workspace: &'a Workspace,
    intake: Intake<'a>,
    pub projects: RecordedProjects,
    dry_run: bool,
}

impl<'a> Programs<'a> {
    /// Starts an import.
    pub fn new(workspace: &'a Workspace, dry_run: bool) -> Programs<'a> {
        let doing = match dry_run {
            true => Doing::Preview,
            false => Doing::Write,
        };
        Programs {
            workspace,
            intake: workspace.sessions.intake(doing),
            projects: RecordedProjects::new(workspace, doing),
            dry_run,
        }
    }

    /// Imports the sessions of a file.
    pub fn take_in(
        &mut self,
        importer: &dyn Importer,
        source: &Source,
    ) -> Vec<CommandResult<Outcome>> {
        let mut outcomes = Vec::new();
        let read = importer.read(&source.input(), &mut |talk| {
            let talk = self.projects.assign(talk);
            match self.workspace.wait(self.intake.take_in(&talk)) {
                Ok(taken) => {
                    let mut lost = talk.changes.lost();
                    lost.extend(missing_beginning(&talk, taken.adopted));
                    let words = own_words(&source.path, &taken, self.dry_run);
                    let words = words.unwrap_or_else(|| self.words(&talk, taken.adopted));
                    let outcome = Outcome::of(&source.path, taken.adopted, words)
                        .waiting(&taken)
                        .with_report(
                            &taken,
                            &talk.source,
                            &kept(&talk),
                            &talk.changes.changed(),
                            &lost,
                        );
                    outcomes.push(Ok(match source.in_folder {
                        true => outcome.in_history(),
                        false => outcome,
                    }));
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    let next = after(&error);
                    let error = CommandError::from(error);
                    let reason = format!("session {}: {}", talk.source.original, error.words());
                    let message = format!("cannot import {}: {reason}", source.path.display());
                    outcomes.push(Err(CommandError::new(error.kind(), message)));
                    next
                }
            }
        });
        if let Err(error) = read {
            outcomes.push(Err(unreadable(source, &error.to_string())));
        } else if outcomes.is_empty() && !source.in_folder {
            outcomes.push(Err(unreadable(source, "it contains no message")));
        }
        outcomes
    }
}

impl Programs<'_> {
    fn words(&self, talk: &Foreign, adopted: Adopted) -> String {
        match adopted {
            // It was a fork in the program already.
            Adopted::Forked { id, from, .. } if id == talk.id => {
                let would = if self.dry_run { "would be " } else { "" };
                let kept = kept_words(talk);
                format!(
                    "{would}imported as {} ({kept}), a fork of {}",
                    id.short(),
                    from.short()
                )
            }
            adopted => words(adopted, self.dry_run, &kept_words(talk)),
        }
    }
}

/// Names the beginning of a fork that only refers to it, if the other session is not in the store.
fn missing_beginning(talk: &Foreign, adopted: Adopted) -> Option<String> {
    let fork = talk.fork.as_ref()?;
    let is_missing = matches!(fork.beginning, Beginning::Referred(_))
        && matches!(adopted, Adopted::Created { .. });
    let parent = talk.source.parent.as_ref().filter(|_| is_missing)?;
    let original = &parent.original;
    Some(format!(
        "its beginning, which is in session {original}: that one was not imported before it"
    ))
}

/// Goes on after a fault of one session, not after one of the store.
fn after(error: &StoreError) -> ControlFlow<()> {
    match error {
        StoreError::TooLarge { .. } | StoreError::Refused(_) | StoreError::Conflict { .. } => {
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Break(()),
    }
}

fn unreadable(source: &Source, reason: &str) -> CommandError {
    let message = format!("cannot import {}: {reason}", source.path.display());
    CommandError::new(ErrorKind::Invalid, message)
}

/// Imports a file with one session, for `--session-file`.
pub fn one(
    workspace: &Workspace,
    importer: &dyn Importer,
    source: &Source,
) -> CommandResult<Taken> {
    let mut sessions = Vec::new();
    let mut projects = RecordedProjects::new(workspace, Doing::Write);
    let read = importer.read(&source.input(), &mut |talk| {
        sessions.push(projects.assign(talk));
        ControlFlow::Continue(())
    });
    read.map_err(|error| unreadable(source, &error.to_string()))?;
    let [talk] = sessions.as_slice() else {
        let count = show::count(sessions.len() as u64, "session");
        let words = format!("{} contains {count}", source.path.display());
        return Err(CommandError::new(ErrorKind::Invalid, words)
            .hint("import it with `tertulia import`, and resume one of them"));
    };
    let adopted = super::foreign(workspace, talk)?;
    Ok(Taken {
        session: adopted.id(),
        form: Form::of_program(importer.name()),
        upto: end_of(workspace, talk, adopted)?,
        words: format!(
            "{}: {}",
            source.path.display(),
            words(adopted, false, "all of it")
        ),
    })
}

/// Returns the last entry of a session that its file has: the session may have gone on without it.
fn end_of(workspace: &Workspace, talk: &Foreign, adopted: Adopted) -> CommandResult<Seq> {
    let log = workspace.wait(workspace.sessions.load(adopted.id()))?;
    let end = log.entries.last().map_or(Seq::START, |entry| entry.seq);
    let last = talk.said.last().map(|said| &said.message);
    let is_last = |message: &Message| {
        last.is_some_and(|last| message.role == last.role && message.content == last.content)
    };
    let known = log
        .messages()
        .filter(|(_, message)| is_last(message))
        .last();
    Ok(match (adopted, known) {
        (Adopted::Known { .. }, Some((entry, _))) => entry.seq,
        _ => end,
    })
}

/// Counts what is kept of a session.
struct Counts {
    messages: usize,
    tool_calls: usize,
    thoughts: usize,
    usage: usize,
}

impl Counts {
    fn of(talk: &Foreign) -> Counts {
        let said = || talk.said.iter();
        Counts {
            messages: talk.said.len(),
            tool_calls: said().map(|said| said.message.tool_calls.len()).sum(),
            thoughts: said().filter(|said| said.thought.is_some()).count(),
            usage: said().filter(|said| said.message.usage.is_some()).count(),
        }
    }
}

fn kept(talk: &Foreign) -> Value {
    let counts = Counts::of(talk);
    json!({
        "messages": counts.messages, "tool_calls": counts.tool_calls,
        "thoughts": counts.thoughts, "usage": counts.usage,
    })
}

fn kept_words(talk: &Foreign) -> String {
    let counts = Counts::of(talk);
    let mut parts = vec![show::count(counts.messages as u64, "message")];
    if counts.tool_calls > 0 {
        parts.push(show::count(counts.tool_calls as u64, "tool call"));
    }
    if counts.thoughts > 0 {
        parts.push(show::count(counts.thoughts as u64, "thought"));
    }
    parts.join(", ")
}
