//! What follows from what was said among several, in words and as events.

use serde_json::{Value, json};
use tertulia::conversation::team::events::{Missed, Next, Output, QueueUpdate, Unresolved};
use tertulia::conversation::team::queue::{Change, Item, Skip};

use crate::ui::fit;

/// How much of a team's task is shown, in columns.
const TASK_COLUMNS: usize = 120;

/// How something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Warning,
    Note,
    /// For those who watch.
    Watching,
}

/// It in words, if there is anything to say.
pub fn words(output: &Output) -> Option<(Tone, String)> {
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
        Output::Queue(update) => match not_taken(update) {
            Some(words) => Some((Tone::Warning, words)),
            // Told when somebody begins to speak, not each time that somebody is added.
            None if is_worth_telling(update) => Some((Tone::Watching, queue(update))),
            None => None,
        },
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
        Output::NotRouted(_) => None,
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
        "nobody here is called {}: {what}. There are {}",
        names.join(" or "),
        unresolved.available.join(", ")
    )
}

fn is_worth_telling(update: &QueueUpdate) -> bool {
    update.asked.is_some() && update.changes.is_empty() && !update.pending.is_empty()
}

/// Whom a full queue did not take, each once.
fn not_taken(update: &QueueUpdate) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for change in &update.changes {
        if let Change::Skipped(request, Skip::Full) = change
            && !names.contains(&request.target.as_str())
        {
            names.push(&request.target);
        }
    }
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

/// `[ada] → ben → cleo`.
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
                "the agents have had {rounds} turns without a person, as many as maxRounds allows: say something, and whoever waits goes on"
            ),
        )),
        Next::WaitFor { .. } | Next::Ask { .. } => None,
    }
}

/// It as an event of a stream, if it has a place there.
pub fn object(output: &Output) -> Option<Value> {
    let item = |item: &Item| {
        json!({
            "member": item.request.target,
            "intent": item.request.intent,
            "parent": item.request.parent,
        })
    };
    Some(match output {
        Output::Queue(update) => json!({
            "type": "queue",
            "executing": update.asked.as_ref().map(item),
            "pending": update.pending.iter().map(item).collect::<Vec<_>>(),
        }),
        Output::TeamTask(task) => json!({ "type": "team_task", "task": task.text }),
        Output::Unresolved(unresolved) => json!({
            "type": "unresolved",
            "names": unresolved.names,
            "available": unresolved.available,
        }),
        Output::Stopped { cut_off, unheard } => json!({
            "type": "stopped",
            "cut_off": cut_off,
            "unheard": unheard,
        }),
        Output::Next(Next::Paused { human, rounds }) => json!({
            "type": "paused",
            "waiting_for": human,
            "rounds": rounds,
        }),
        Output::Next(Next::WaitFor { human, .. }) => json!({
            "type": "waiting",
            "waiting_for": human,
        }),
        Output::NotRouted(_) | Output::Next(Next::Ask { .. }) => return None,
    })
}
