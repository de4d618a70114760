//! Agents of the Agent Client Protocol, as real processes: one that does what the prompt says, and
//! shells around it that misbehave. They are here because only here Cargo builds that agent for them.

mod policy;
mod stage;

use std::time::Duration;

use stage::{Stage, ask, ask_with, native};
use tertulia_agents::approval::{Approval, Risk, Verdict};
use tertulia_agents::{
    Agent, AgentEvent, AgentRequest, AgentSink, AgentStream, FailureKind, Outcome, PromptMessage,
    Readiness, TodoState,
};
use tertulia_core::entry::{Role, Usage};
use tertulia_testkit::waiting::{DEADLINE, wait_until_async};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn two_turns_are_one_process_and_one_session() {
    let stage = Stage::set();
    let agent = stage.agent(&["chatty"]);
    let first = ask(&agent, &stage.question(&["say hello"])).await;
    assert_eq!(first.ended, Ok(Outcome::Done), "{:?}", first.events);
    assert_eq!(first.text(), "say hello");
    assert!(first.events.contains(&AgentEvent::Usage(Usage {
        estimated: false,
        input: 4,
        output: 3,
        ..Usage::default()
    })));
    let id = first.session().unwrap().to_owned();

    let mut question = stage.question(&["say hello", "say hello", "recall"]);
    question.native = native(&id, 2);
    let second = ask(&agent, &question).await;
    assert_eq!(second.text(), "\"say hello\"\n\"recall\"\n");
    assert_eq!((second.session(), stage.starts()), (None, 1));
    assert_eq!(stage.left().len(), 1);
    drop(agent);
    stage.all_gone().await;
}

#[tokio::test]
async fn the_agent_is_told_what_it_has_not_seen_and_its_system_once() {
    let stage = Stage::set();
    let mut agent = stage.agent(&[]);
    agent.system = Some("Be brief.".into());
    let first = ask(&agent, &stage.question(&["say one", "recall"])).await;
    let told = "\"Be brief.\\n\\nYou: say one\\n\\nrecall\"\n";
    assert_eq!(first.text(), told);
    let mut question = stage.question(&["say one", "recall", "aside", "recall"]);
    question.native = native(first.session().unwrap(), 2);
    let second = ask(&agent, &question).await;
    assert_eq!(second.text(), format!("{told}\"You: aside\\n\\nrecall\"\n"));
}

async fn goes_on(words: &[&str], method: &str) {
    let stage = Stage::set();
    let first = ask(&stage.agent(words), &stage.question(&["say hello"])).await;
    let mut question = stage.question(&["say hello", "say hello", "recall"]);
    question.native = native(first.session().unwrap(), 2);
    let later = ask(&stage.agent(words), &question).await;
    // Nothing of the history that was replayed is heard as an answer.
    assert_eq!(later.ended, Ok(Outcome::Done), "{words:?}");
    assert_eq!(later.text(), "\"say hello\"\n\"recall\"\n", "{words:?}");
    assert_eq!(later.session(), None);
    assert_eq!(later.remarks(), Vec::<&str>::new());
    assert_eq!(stage.starts(), 2);
    assert!(stage.noted("heard").contains(&method.to_owned()));
    stage.all_gone().await;
}

#[tokio::test]
async fn a_new_process_goes_on_by_loading() {
    goes_on(&["load"], "session/load").await;
}

#[tokio::test]
async fn history_that_comes_late_is_not_an_answer() {
    goes_on(&["load", "late"], "session/load").await;
}

#[tokio::test]
async fn resuming_is_preferred() {
    goes_on(&["load", "resume"], "session/resume").await;
}

#[tokio::test]
async fn a_lost_session_is_told_the_whole_talk() {
    for words in [&["load"] as &[&str], &["resume"], &[]] {
        let stage = Stage::set();
        let mut question = stage.question(&["say one", "two", "recall"]);
        question.native = native("gone", 2);
        let heard = ask(&stage.agent(words), &question).await;
        assert_eq!(heard.ended, Ok(Outcome::Done));
        assert_eq!(heard.text(), "\"You: say one\\n\\nYou: two\\n\\nrecall\"\n");
        assert!(heard.session().is_some_and(|id| id != "gone"));
        assert!(
            heard.remarks()[0].contains("has lost its own session"),
            "{words:?}"
        );
    }
}

#[tokio::test]
async fn leave_is_asked_and_the_option_chosen_by_its_kind() {
    for (verdict, chosen, ok) in [
        (Verdict::Yes, "no", true),
        (Verdict::Always, "no", true),
        (Verdict::No, "yes", false),
    ] {
        let stage = Stage::set();
        let agent = stage.agent(&[]);
        let mut question = stage.question(&["tool execute"]);
        question.approval = Approval::Ask;
        let heard = ask_with(&agent, &question, Some(verdict), |_, _| false).await;
        assert_eq!(heard.ended, Ok(Outcome::Done));
        let [request] = &heard.asked[..] else {
            panic!("{:?}", heard.asked)
        };
        assert_eq!(
            (request.risk, request.preview.as_str()),
            (Risk::High, "do execute")
        );
        let completed = AgentEvent::ToolCompleted {
            id: "call-1".into(),
            output: match ok {
                true => chosen.into(),
                false => format!("[not run: {chosen}]"),
            },
            ok,
        };
        assert!(heard.events.contains(&completed), "{:?}", heard.events);
        let started = heard
            .events
            .iter()
            .filter(|event| matches!(event, AgentEvent::ToolStarted(_)));
        assert_eq!(started.count(), 1);
        assert_eq!(
            stage.noted("heard"),
            ["mode default".to_owned(), format!("leave {chosen}")]
        );
    }
}

/// The protocol has no words in the answer to a permission request: they are the next prompt.
#[tokio::test]
async fn what_to_do_instead_is_the_next_prompt() {
    let stage = Stage::set();
    let agent = stage.agent(&[]);
    let mut question = stage.question(&["tool execute"]);
    question.approval = Approval::Ask;
    let instead = Verdict::Instead("list the folder".into());
    let heard = ask_with(&agent, &question, Some(instead), |_, _| false).await;
    assert_eq!(heard.ended, Ok(Outcome::Done));
    assert_eq!(heard.text(), "\n\nlist the folder".trim_start());
    let denied = heard.events.iter().find_map(|event| match event {
        AgentEvent::ToolCompleted { output, ok, .. } => Some((output.as_str(), *ok)),
        _ => None,
    });
    let reason = "the user does not want this, and says what to do instead: list the folder";
    assert_eq!(
        denied,
        Some((format!("[not run: {reason}]").as_str(), false))
    );
    let usage = heard.events.iter().find_map(|event| match event {
        AgentEvent::Usage(usage) => Some((usage.input, usage.output)),
        _ => None,
    });
    assert_eq!(usage, Some((8, 6)), "both prompts count");
}

#[tokio::test]
async fn the_mode_settles_what_nobody_is_asked_about() {
    for (approval, kind, chosen) in [
        (Approval::Ask, "read", "no"),
        (Approval::Low, "search", "no"),
        (Approval::Low, "edit", "yes"),
        (Approval::All, "delete", "no"),
        (Approval::None, "read", "yes"),
    ] {
        let stage = Stage::set();
        let mut question = stage.question(&[&format!("tool {kind}")]);
        question.approval = approval;
        let heard = ask(&stage.agent(&[]), &question).await;
        assert!(heard.asked.is_empty());
        let leave = stage.noted("heard").pop().unwrap();
        assert_eq!(leave, format!("leave {chosen}"), "{approval:?} {kind}");
    }
}

#[tokio::test]
async fn stopped_while_it_speaks_it_can_be_asked_again() {
    let stage = Stage::set();
    let agent = stage.agent(&[]);
    let first = ask_with(&agent, &stage.question(&["hang"]), None, |event, _| {
        matches!(event, AgentEvent::Text(_))
    })
    .await;
    assert_eq!(first.failure().kind, FailureKind::Cancelled);
    assert_eq!(first.text(), "thinking");
    let mut question = stage.question(&["hang", "say on"]);
    question.native = native(first.session().unwrap(), 1);
    let second = ask(&agent, &question).await;
    assert_eq!((second.text().as_str(), stage.starts()), ("say on", 1));
}

/// An agent that answers one question late from then on is not asked again in the same process.
#[tokio::test]
async fn one_that_mistakes_the_end_of_a_stopped_answer_is_started_again() {
    let stage = Stage::set();
    let agent = stage.agent(&["behind", "load"]);
    let first = ask_with(&agent, &stage.question(&["hang"]), None, |event, _| {
        matches!(event, AgentEvent::Text(_))
    })
    .await;
    assert_eq!(first.failure().kind, FailureKind::Cancelled);
    let id = first.session().unwrap();
    for (known, words) in [(1, "say one"), (2, "say two")] {
        let mut question = stage.question(&["hang", "say one", "say two"][..=known]);
        question.native = native(id, known);
        let heard = ask(&agent, &question).await;
        assert_eq!(heard.text(), words);
    }
    assert_eq!(stage.starts(), 2);
}

/// What is told after an answer was cut off depends on what the agent is known to keep of it.
#[tokio::test]
async fn what_its_session_lacks_of_a_stopped_answer_is_told() {
    let claude = "as:@agentclientprotocol/claude-agent-acp";
    let codex = "as:@agentclientprotocol/codex-acp";
    let withdrawn = "withdrawn: do not act on it";
    for (name, partial, words) in [
        (claude, "\"recall\"", withdrawn),
        (
            codex,
            "\"fake: half [cut off here]\\n\\nrecall\"",
            withdrawn,
        ),
        (
            "as:unknown",
            "\"You: ask\\n\\nfake: half [cut off here]\\n\\nrecall\"",
            "You: [marked] stop",
        ),
    ] {
        let stage = Stage::set();
        let agent = stage.agent(&[name]);
        let first = ask(&agent, &stage.question(&["say hello"])).await;
        let id = first.session().unwrap();
        let mut question = stage.question(&["ask", "half", "recall"]);
        question.messages[1] = PromptMessage {
            cut_off: true,
            ..PromptMessage::plain(Role::Assistant, "fake", "half")
        };
        question.native = native(id, 2);
        let told = ask(&agent, &question).await.text();
        assert_eq!(told.lines().last(), Some(partial), "{name}");
        let mut question = stage.question(&["[marked] stop", "recall"]);
        question.messages[0].withdrawn = Some("fake".into());
        question.native = native(id, 0);
        let told = ask(&agent, &question).await.text();
        let last = told.lines().last().unwrap();
        assert!(last.contains(words) && last.ends_with("recall\""), "{last}");
    }
}

#[tokio::test]
async fn stopped_while_it_asks_its_request_is_answered() {
    let stage = Stage::set();
    let agent = stage.agent(&[]);
    let mut question = stage.question(&["tool execute"]);
    question.approval = Approval::Ask;
    let heard = ask_with(&agent, &question, None, |_, asked| asked > 0).await;
    assert_eq!(heard.failure().kind, FailureKind::Cancelled);
    let noted = stage.noted("heard");
    assert!(noted.contains(&"session/cancel".to_owned()), "{noted:?}");
    assert!(noted.contains(&"leave cancelled".to_owned()), "{noted:?}");
    assert_eq!(stage.left().len(), 1);
}

#[tokio::test]
async fn one_that_does_not_stop_is_ended_with_its_children() {
    let stage = Stage::set();
    let mut agent = stage.behind("trap '' TERM; \"$@\"; sleep 1000");
    agent.grace = Duration::from_millis(300);
    let heard = ask_with(&agent, &stage.question(&["deaf"]), None, |event, _| {
        matches!(event, AgentEvent::Text(_))
    })
    .await;
    assert_eq!(heard.failure().kind, FailureKind::Cancelled);
    assert_eq!(heard.text(), "deaf with a child: true");
    assert_eq!(stage.left(), Vec::<i32>::new());
}

#[tokio::test]
async fn silence_has_a_limit_but_not_the_persons() {
    let stage = Stage::set();
    let mut agent = stage.agent(&[]);
    agent.patience.idle = Duration::from_secs(5);
    let heard = ask(&agent, &stage.question(&["hang"])).await;
    let failure = heard.failure();
    assert_eq!(failure.kind, FailureKind::Timeout, "{failure}");
    assert!(
        failure.message.contains("sent nothing for 5 s"),
        "{failure}"
    );
    assert_eq!(stage.left(), Vec::<i32>::new());

    let limit = DEADLINE;
    agent.patience.idle = limit;
    agent.patience.total = limit * 8;
    let mut question = stage.question(&["tool execute"]);
    question.approval = Approval::Ask;
    let cancel = CancellationToken::new();
    let (sink, mut listener) = AgentSink::open(&cancel);
    let answer = agent.answer(&question, &sink);
    let person = async {
        let permission = listener.permissions.recv().await.unwrap();
        // Longer than an agent may be silent.
        tokio::time::pause();
        tokio::time::advance(limit * 2).await;
        tokio::time::resume();
        permission.settle(Verdict::Yes);
    };
    let (ended, ()) = tokio::join!(answer, person);
    assert_eq!(ended, Ok(Outcome::Done));
}

/// The mode may have changed since the agent was prompted: the session decides about every call.
#[tokio::test]
async fn the_session_decides_when_the_tool_is_to_run() {
    let stage = Stage::set();
    let agent = stage.agent(&[]);
    let mut question = stage.question(&["tool execute"]);
    question.approval = Approval::All;
    let (sink, mut listener) = AgentSink::open(&CancellationToken::new());
    let answer = async {
        let ended = agent.answer(&question, &sink).await;
        drop(sink);
        ended
    };
    let session = async {
        let permission = listener.permissions.recv().await.unwrap();
        permission.settle(Verdict::No);
        let mut events = Vec::new();
        while let Some(event) = listener.events.recv().await {
            events.push(event);
        }
        events
    };
    let (ended, events) = tokio::join!(answer, session);
    assert_eq!(ended, Ok(Outcome::Done));
    let denied = |event: &AgentEvent| format!("{event:?}").contains("[not run: ");
    assert!(events.iter().any(denied), "{events:?}");
}

#[tokio::test]
async fn an_answer_has_a_limit() {
    let stage = Stage::set();
    let mut agent = stage.agent(&[]);
    agent.patience.total = Duration::from_millis(900);
    let heard = ask(&agent, &stage.question(&["hang"])).await;
    assert_eq!(heard.failure().kind, FailureKind::Timeout);
    assert!(heard.failure().message.contains("not done after 0.9 s"));
    let heard = ask(&agent, &stage.question(&["flood"])).await;
    assert_eq!(heard.failure().kind, FailureKind::Timeout);
    assert_eq!(stage.left(), Vec::<i32>::new());
}

#[tokio::test]
async fn one_that_ends_in_the_middle_says_why_and_is_started_again() {
    let stage = Stage::set();
    let agent = stage.agent(&["load"]);
    let heard = ask(&agent, &stage.question(&["exit 3"])).await;
    assert_eq!(heard.text(), "half an ans");
    let failure = heard.failure();
    assert_eq!(failure.kind, FailureKind::Protocol);
    assert!(failure.message.contains("exit status: 3"), "{failure}");
    assert!(failure.message.contains("the engine fell out"), "{failure}");
    let mut question = stage.question(&["exit 3", "say back"]);
    question.native = native(heard.session().unwrap(), 1);
    let again = ask(&agent, &question).await;
    assert_eq!((again.text().as_str(), stage.starts()), ("say back", 2));
}

#[tokio::test]
async fn one_that_speaks_something_else_is_ended() {
    let stage = Stage::set();
    let heard = ask(&stage.agent(&[]), &stage.question(&["rubbish"])).await;
    let failure = heard.failure();
    assert_eq!(failure.kind, FailureKind::Protocol);
    assert!(
        failure.message.contains("<html>not json</html>"),
        "{failure}"
    );
    assert_eq!(stage.left(), Vec::<i32>::new());

    let other = stage.program("echo", vec!["usage: no".into()]);
    let heard = ask(&other, &stage.question(&["x"])).await;
    assert_eq!(heard.failure().kind, FailureKind::Protocol);
    assert!(
        heard.failure().message.contains("usage: no"),
        "{}",
        heard.failure()
    );

    let answer = r#"{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":9}}"#;
    let script = format!(
        "read -r line; id=$(printf %s \"$line\" | sed 's/.*\"id\":\\([^,}}]*\\).*/\\1/'); \
         printf '%s\\n' '{answer}'; cat"
    );
    let newer = stage.behind(&script);
    let heard = ask(&newer, &stage.question(&["x"])).await;
    assert_eq!(heard.failure().kind, FailureKind::Protocol);
    assert!(
        heard
            .failure()
            .message
            .contains("does not keep to version 1"),
        "{}",
        heard.failure()
    );
    assert_eq!(stage.left(), Vec::<i32>::new());
}

#[tokio::test]
async fn errors_and_refusals_leave_it_usable() {
    let stage = Stage::set();
    let agent = stage.agent(&[]);
    let first = ask(
        &agent,
        &stage.question(&["error -32603 API Error: 429 slow down"]),
    )
    .await;
    assert_eq!(first.failure().kind, FailureKind::RateLimit);
    let session = native(first.session().unwrap(), 0);
    let follow = |words| AgentRequest {
        native: session.clone(),
        ..stage.question(&[words])
    };
    let refused = ask(&agent, &follow("refusal")).await;
    assert_eq!(refused.failure().kind, FailureKind::Refused);
    let cut = ask(&agent, &follow("max_tokens")).await;
    assert_eq!((&cut.ended, cut.remarks().len()), (&Ok(Outcome::Done), 1));
    let plan = ask(&agent, &follow("plan")).await;
    let AgentEvent::Todos(todos) = &plan.events[0] else {
        panic!("{:?}", plan.events)
    };
    assert_eq!((todos.len(), todos[1].state), (2, TodoState::InProgress));
    let big = ask(&agent, &follow("big")).await;
    assert_eq!(big.text().lines().count(), 2000);
    assert!(big.text().starts_with("0 xxx") && big.text().contains("\n1999 xxx"));
    assert_eq!(stage.starts(), 1);
}

#[tokio::test]
async fn a_login_that_is_missing_is_named() {
    let stage = Stage::set();
    let heard = ask(&stage.agent(&["locked"]), &stage.question(&["x"])).await;
    assert_eq!(heard.failure().kind, FailureKind::Auth);
    let hint = heard.failure().hint.clone().unwrap();
    assert_eq!(hint, "the agent offers: Fake key (set FAKE_KEY)");
}

#[tokio::test]
async fn a_model_that_is_not_offered_is_remarked_on() {
    let stage = Stage::set();
    let mut agent = stage.agent(&[]);
    agent.model = Some("grand".into());
    let heard = ask(&agent, &stage.question(&["say yes"])).await;
    assert_eq!(heard.text(), "say yes");
    assert!(heard.remarks()[0].contains("does not offer the model grand"));
}

#[tokio::test]
async fn what_is_not_there_is_unavailable_and_keys_are_not_shown() {
    let stage = Stage::set();
    let mut agent = stage.program("no-such-agent-anywhere", Vec::new());
    agent.found = None;
    assert!(matches!(agent.readiness().await, Readiness::NotReady(_)));
    let heard = ask(&agent, &stage.question(&["x"])).await;
    assert_eq!(heard.failure().kind, FailureKind::Unavailable);
    assert!(heard.failure().message.contains("was not found"));
    assert!(!format!("{agent:?}").contains("secret"));
}

/// Returns when the agent has begun to speak.
async fn begun(listener: &mut AgentStream) {
    while let Some(event) = listener.events.recv().await {
        if matches!(event, AgentEvent::Text(_)) {
            return;
        }
    }
    panic!("it never spoke");
}

#[tokio::test]
async fn an_answer_that_nobody_waits_for_any_more_ends_the_process() {
    let stage = Stage::set();
    let agent = stage.agent(&[]);
    let (sink, mut listener) = AgentSink::open(&CancellationToken::new());
    let question = stage.question(&["hang"]);
    tokio::select! {
        ended = agent.answer(&question, &sink) => panic!("{ended:?}"),
        () = begun(&mut listener) => {}
    }
    stage.all_gone().await;
    let again = ask(&agent, &stage.question(&["say again"])).await;
    assert_eq!((again.text().as_str(), stage.starts()), ("say again", 2));
}

#[test]
fn nothing_is_left_when_the_runtime_goes_in_the_middle() {
    let stage = Stage::set();
    let agent = stage.behind("trap '' TERM; \"$@\"; sleep 1000");
    let question = stage.question(&["deaf"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (sink, mut listener) = AgentSink::open(&CancellationToken::new());
        tokio::spawn(async move { agent.answer(&question, &sink).await });
        begun(&mut listener).await;
        wait_until_async("shell, agent and child", || stage.left().len() == 3).await;
    });
    drop(runtime);
    assert_eq!(stage.left(), Vec::<i32>::new());
}
