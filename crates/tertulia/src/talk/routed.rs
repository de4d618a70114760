//! Converts the routing events of a team to JSON objects of a stream.

use serde_json::{Value, json};
use tertulia_engine::team::events::{Next, Output};
use tertulia_engine::team::queue::{Change, Item, Request, Skip};
pub use tertulia_engine::text::routing::{Tone, words};

/// Converts an event to a JSON object of the stream, if the stream reports it.
pub fn object(output: &Output) -> Option<Value> {
    Some(match output {
        Output::Queue(update) => json!({
            "type": "queue",
            "executing": update.asked.as_ref().map(item),
            "pending": update.pending.iter().map(item).collect::<Vec<_>>(),
            "changes": update.changes.iter().map(change).collect::<Vec<_>>(),
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

fn item(item: &Item) -> Value {
    request(&item.request)
}

fn request(request: &Request) -> Value {
    json!({
        "member": request.target,
        "intent": request.intent,
        "parent": request.parent,
    })
}

/// Converts a change of the queue, with its reason.
fn change(change: &Change) -> Value {
    let (mut object, what) = match change {
        Change::Queued(queued) => (item(queued), "queued"),
        Change::Demoted { item: demoted, .. } => (item(demoted), "demoted"),
        Change::Skipped(skipped, _) => (request(skipped), "skipped"),
        Change::Dropped(dropped) => (item(dropped), "dropped"),
    };
    object["change"] = json!(what);
    match change {
        Change::Demoted { asked, .. } => object["asked"] = json!(asked),
        Change::Skipped(_, why) => {
            object["reason"] = json!(match why {
                Skip::Full => "full",
                Skip::Duplicate => "duplicate",
                Skip::Adjacent => "adjacent",
            });
        }
        Change::Queued(_) | Change::Dropped(_) => {}
    }
    object
}
