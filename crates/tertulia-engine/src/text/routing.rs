//! Describes the routing events of a team.

use super::fit;
use crate::team::events::{Missed, Next, Output, QueueUpdate, Unresolved};
use crate::team::queue::{Change, PER_PARENT, Skip};

/// How much of a team's task is shown, in columns.
const TASK_COLUMNS: usize = 120;

/// How a description is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A warning.
    Warning,
    /// Information.
    Note,
    /// Shown on a terminal; elsewhere only with `--verbose`.
    Watching,
    /// Shown with `--verbose` only.
    Detail,
}

/// Describes an event as text; empty if there is nothing to report.
pub fn words(output: &Output) -> Vec<(Tone, String)> {
    match output {
        Output::Queue(update) => queue_words(update),
        output => other_words(output).into_iter().collect(),
    }
}

fn other_words(output: &Output) -> Option<(Tone, String)> {
    match output {
        Output::TeamTask(task) if task.left_out > 0 => Some((
            Tone::Warning,
            format!(
                "the team's task is cut to {} bytes; {} are left out",
                task.text.len(),
                task.left_out
            ),
        )),
        Output::TeamTask(task) => {
            let task = fit(&task.text.replace('\n', " "), TASK_COLUMNS);
            Some((Tone::Note, format!("the team's task: {task}")))
        }
        Output::Unresolved(unresolved) => Some((Tone::Warning, nobody(unresolved))),
        Output::Stopped { cut_off, unheard } => {
            let mut words = match cut_off {
                Some(name) => format!("stopped: {name} was cut off"),
                None => "stopped".to_owned(),
            };
            if !unheard.is_empty() {
                let verb = if unheard.len() == 1 { "does" } else { "do" };
                words.push_str(&format!("; {} {verb} not get to speak", unheard.join(", ")));
            }
            Some((Tone::Note, words))
        }
        Output::Queue(_) | Output::NotRouted(_) => None,
        Output::Next(next) => floor(next),
    }
}

fn nobody(unresolved: &Unresolved) -> String {
    let names: Vec<String> = unresolved
        .names
        .iter()
        .map(|name| format!("'{name}'"))
        .collect();
    let what = match unresolved.what {
        Missed::All => "nobody was asked",
        Missed::Some => "the others are asked",
        Missed::Drop => "nothing was dropped for that",
    };
    format!(
        "no member is called {}: {what}. Members: {}",
        names.join(" or "),
        unresolved.available.join(", ")
    )
}

fn queue_words(update: &QueueUpdate) -> Vec<(Tone, String)> {
    let not_taken = not_taken(update).map(|words| (Tone::Warning, words));
    let demoted = demoted(update).map(|words| (Tone::Detail, words));
    let mut all: Vec<(Tone, String)> = not_taken.into_iter().chain(demoted).collect();
    // The queue is shown when a member is prompted, not each time that a member is added.
    if all.is_empty() && is_worth_telling(update) {
        all.push((Tone::Watching, queue(update)));
    }
    all
}

fn is_worth_telling(update: &QueueUpdate) -> bool {
    update.asked.is_some() && update.changes.is_empty() && !update.pending.is_empty()
}

/// Describes the members that a full queue rejected, each once.
fn not_taken(update: &QueueUpdate) -> Option<String> {
    let names = each_once(update, |change| match change {
        Change::Skipped(request, Skip::Full) => Some(&request.target),
        _ => None,
    });
    if names.is_empty() {
        return None;
    }
    let verb = if names.len() == 1 { "is" } else { "are" };
    Some(format!(
        "{} wait already: {} {verb} not asked",
        update.pending.len(),
        names.join(", ")
    ))
}

/// Describes the members that were queued with a lower priority than requested, each once.
fn demoted(update: &QueueUpdate) -> Option<String> {
    let names = each_once(update, |change| match change {
        Change::Demoted { item, .. } => Some(&item.request.target),
        _ => None,
    });
    if names.is_empty() {
        return None;
    }
    let verb = if names.len() == 1 { "waits" } else { "wait" };
    Some(format!(
        "more than {PER_PARENT} are to reply to one message: {} {verb} as P3",
        names.join(", ")
    ))
}

fn each_once<'a>(
    update: &'a QueueUpdate,
    name: impl Fn(&'a Change) -> Option<&'a String>,
) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for name in update.changes.iter().filter_map(name) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// Formats the queue as `[ada] → ben → cleo`.
fn queue(update: &QueueUpdate) -> String {
    let asked = update
        .asked
        .iter()
        .map(|item| format!("[{}]", item.request.target));
    let pending = update
        .pending
        .iter()
        .map(|item| item.request.target.clone());
    let names: Vec<String> = asked.chain(pending).collect();
    format!("queue: {}", names.join(" → "))
}

fn floor(next: &Next) -> Option<(Tone, String)> {
    match next {
        Next::Paused { rounds, .. } => Some((
            Tone::Warning,
            format!(
                "the agents have had {rounds} turns without a person, as many as maxRounds allows"
            ),
        )),
        Next::WaitFor { .. } | Next::Ask { .. } => None,
    }
}
