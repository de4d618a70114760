use std::time::Duration;

use super::*;
use crate::context::Context;
use crate::policy::Contexts;
use crate::setup::ToolAccess;
use tertulia_agents::demo::Demo;
use tertulia_core::entry::PairedAgent;

fn agent(name: &str) -> PairAgent {
    PairAgent {
        agent: Arc::new(Demo::new(name, Duration::ZERO)),
        with_model: Arc::new(|_| Err(AgentError::new(FailureKind::Unavailable, "no other"))),
        access: ToolAccess::default(),
        compact_at: None,
    }
}

fn roster() -> PairRoster {
    let paired = |name: &str| PairedAgent {
        agent: name.to_owned(),
        model: None,
    };
    PairRoster {
        instructor: agent("boss"),
        worker: agent("hand"),
        paired: Paired {
            instructor: paired("boss"),
            worker: paired("hand"),
            thinking: true,
            work_dir: "/".to_owned(),
            system: "lead".to_owned(),
            round: None,
        },
        budget: None,
    }
}

fn loaded() -> Contexts {
    let roles = [PairRole::Instructor, PairRole::Worker];
    roles.map(|role| (Some(role), Context::default())).into()
}

fn view(contexts: &Contexts) -> View<'_> {
    View {
        meta: None,
        unsaved: false,
        cancelled: false,
        now: Timestamp::UNIX_EPOCH,
        contexts,
    }
}

fn said(text: &str) -> Event {
    Event::Said {
        by: None,
        prompt: text.into(),
    }
}

fn kinds(effect: &Effect) -> Vec<&str> {
    match effect {
        Effect::Append(bodies) => bodies.iter().map(Body::kind).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn contexts_are_loaded_before_a_message_whose_secrets_the_log_does_not_have() {
    let mut pair = PairPolicy::resume(roster(), None, Timestamp::UNIX_EPOCH);
    let (none, mut shown) = (Contexts::new(), Vec::new());
    let effect = pair.step(said("key sk-1"), &view(&none), &mut shown);
    assert!(matches!(effect, Effect::Load), "{effect:?}");
    // If they cannot be loaded, the message is saved nevertheless.
    let unreadable = Event::Unreadable("damaged".to_owned());
    let effect = pair.step(unreadable, &view(&none), &mut shown);
    let Effect::Append(bodies) = effect else {
        panic!("{effect:?}")
    };
    let Some(Body::Message(message)) = bodies.last() else {
        panic!("{bodies:?}")
    };
    assert_eq!(message.content, "key sk-1");
    assert_eq!(message.thread.as_deref(), Some("instructor"));
    // Without a message, nothing is loaded before an agent is asked.
    let effect = pair.step(said(""), &view(&none), &mut shown);
    assert!(matches!(effect, Effect::WaitFor(_)), "{effect:?}");
}

#[test]
fn what_is_held_is_saved_first_and_a_refusal_keeps_the_opening() {
    let mut pair = PairPolicy::begin(roster(), Timestamp::UNIX_EPOCH);
    let (contexts, mut shown) = (loaded(), Vec::new());
    let held = View {
        unsaved: true,
        ..view(&contexts)
    };
    let effect = pair.step(said("[r=3] go"), &held, &mut shown);
    assert!(matches!(&effect, Effect::Append(bodies) if bodies.is_empty()));
    let opening = ["paired", "budgeted", "budgeted", "message"];
    let effect = pair.step(Event::Saved(Vec::new()), &view(&contexts), &mut shown);
    assert_eq!(kinds(&effect), opening);
    let effect = pair.step(Event::Refused, &view(&contexts), &mut shown);
    let Effect::WaitFor(TurnResult::Pair(pause, _)) = effect else {
        panic!("{effect:?}")
    };
    assert_eq!(pause, Pause::Refused);
    let effect = pair.step(said("go"), &view(&contexts), &mut shown);
    assert_eq!(kinds(&effect), opening);
}
