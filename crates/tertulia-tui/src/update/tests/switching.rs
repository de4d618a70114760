//! Other agents and other models, chosen without leaving the session.

use tertulia_core::entry::Switched;
use tertulia_engine::error::ErrorKind;

use super::*;
use crate::error::TuiError;
use crate::host::{AgentRow, Models};
use crate::state::Layer;

fn row(name: &str, model: Option<&str>, is_ready: bool, remark: &str) -> AgentRow {
    AgentRow {
        name: name.to_owned(),
        kind: name.to_owned(),
        model: model.map(str::to_owned),
        is_ready,
        remark: remark.to_owned(),
    }
}

fn rows() -> Vec<AgentRow> {
    vec![
        row(
            "anthropic",
            None,
            false,
            "ANTHROPIC_API_KEY is not set: export it",
        ),
        row("demo", Some("demo-1"), true, ""),
        row("sage", Some("claude-sonnet-4-5"), true, "key in SAGE_KEY"),
    ]
}

fn models(check: Option<&str>, names: &[&str]) -> Answer {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let complete = true;
    Answer::Models {
        agent: "demo".to_owned(),
        check: check.map(str::to_owned),
        models: Ok(Models { names, complete }),
    }
}

/// Enters a command and returns its effects, besides being remembered.
fn entered(play: &mut Play, command: &str) -> Vec<String> {
    play.paste(command);
    let mut wanted = play.keys("<enter>");
    wanted.remove(0);
    wanted
}

fn switched(play: &mut Play, agent: &str, model: &str) -> Vec<String> {
    play.entry(Body::Switched(Switched {
        agent: agent.to_owned(),
        model: Some(model.to_owned()),
        pinned: false,
    }));
    let floor = SessionState {
        agent: Some(agent.to_owned()),
        model: Some(model.to_owned()),
        ..play.floor()
    };
    let floor = Box::new(floor);
    play.live(LiveEvent::Session(SessionEvent::Over { floor }))
}

#[test]
fn an_agent_is_chosen_from_a_list_and_the_session_stays() {
    let mut play = Play::talked();
    play.keys("a draft");
    play.keys("<^u>");
    assert_eq!(entered(&mut play, "/agents"), ["agents"]);
    play.answer(Answer::Agents(None, Ok(rows())));
    seen!("agents", play);
    // The one that is not ready says why, and is not taken.
    assert_eq!(play.keys("<down><enter>"), [""; 0]);
    play.sees("anthropic is not ready: ANTHROPIC_API_KEY is not set: export it");
    play.keys("sag");
    play.sees_no("anthropic");
    assert_eq!(play.keys("<enter>"), ["switch Some(\"sage\") None"]);
    assert!(play.state.overlays.is_empty() && !play.state.is_leaving());
    // What is said meanwhile waits for the new agent.
    assert_eq!(play.keys("who are you?<enter>"), ["remember who are you?"]);
    assert_eq!(
        switched(&mut play, "sage", "claude-sonnet-4-5"),
        ["say who are you?"]
    );
    play.sees("sage answers from here on (claude-sonnet-4-5)");
    play.sees_no("restored");
    assert_eq!(play.state.info.agent, "sage");
}

#[test]
fn a_model_is_chosen_from_a_list() {
    let mut play = Play::talked();
    assert_eq!(entered(&mut play, "/model"), ["models of demo"]);
    play.answer(models(None, &["demo-1", "demo-2"]));
    play.sees("● demo-1");
    play.sees("in use");
    let wanted = play.keys("<down><enter>");
    assert_eq!(wanted, ["switch Some(\"demo\") Some(\"demo-2\")"]);
    // What is typed next is no model.
    switched(&mut play, "demo", "demo-2");
    assert_eq!(
        entered(&mut play, "/compare d35955f9"),
        ["compare d35955f9"]
    );
    play.paste("/model compare d35955f9");
    play.keys("<enter>");
    play.sees("/model takes one name");
    assert_eq!(play.state.info.model.as_deref(), Some("demo-2"));
}

#[test]
fn a_model_that_is_not_listed_is_asked_about() {
    let mut play = Play::talked();
    assert_eq!(entered(&mut play, "/model oops"), ["is oops a model"]);
    play.answer(models(Some("oops"), &["demo-1", "demo-2"]));
    play.sees("'oops' is not listed by demo; use it anyway?");
    play.wait(1000);
    assert_eq!(play.keys("<enter>"), [""; 0]);
    assert!(play.state.overlays.is_empty() && !play.state.is_switching);
    entered(&mut play, "/model oops");
    play.answer(models(Some("oops"), &["demo-1"]));
    play.wait(1000);
    assert_eq!(
        play.keys("y<enter>"),
        ["switch Some(\"demo\") Some(\"oops\")"]
    );
    // A listed model is used at once, and so is any model if the agent lists none.
    for (name, names) in [("demo-2", &["demo-1", "demo-2"][..]), ("oops", &[])] {
        let mut play = Play::talked();
        entered(&mut play, &format!("/model {name}"));
        let expected = format!("switch Some(\"demo\") Some({name:?})");
        assert_eq!(play.answer(models(Some(name), names)), [expected]);
    }
    // In the list, a name that is not there is asked about, too.
    let mut play = Play::talked();
    entered(&mut play, "/model");
    play.answer(models(None, &["demo-1"]));
    play.keys("other<enter>");
    play.sees("'other' is not listed by demo; use it anyway?");
}

#[test]
fn an_agent_that_is_gone_is_named_when_its_session_is_resumed() {
    let mut play = Play::new(SessionInfo {
        restored: Some(Box::new(meta(1, 4))),
        ..info(Kind::Chat)
    });
    let floor = Box::new(play.floor());
    let opened = Event::Live(LiveEvent::Session(SessionEvent::Opened { floor }));
    let wanted: Vec<String> = play.effects(opened).iter().map(words).collect();
    assert!(wanted.contains(&"check demo".to_owned()), "{wanted:?}");
    play.sees("● ready");
    let rows = vec![row("demo", None, false, "not installed")];
    play.answer(Answer::AgentChecked("demo".to_owned(), Ok(rows)));
    play.sees("! demo is not available: not installed · /agents chooses another");
    play.sees("● not available");
    // Another agent answers.
    switched(&mut play, "sage", "sage-1");
    play.sees("● ready · sage");
    // One that is ready is not mentioned.
    let mut play = Play::talked();
    let rows = vec![row("demo", None, true, "")];
    play.answer(Answer::AgentChecked("demo".to_owned(), Ok(rows)));
    play.sees("● ready");
}

#[test]
fn an_agent_is_named() {
    for command in ["/agents sage", "/agent sage"] {
        let mut play = Play::talked();
        assert_eq!(entered(&mut play, command), ["is sage ready"]);
        let rows = vec![row("sage", None, true, "")];
        let wanted = play.answer(Answer::Agents(Some("sage".to_owned()), Ok(rows)));
        assert_eq!(wanted, ["switch Some(\"sage\") None"]);
    }
    let mut play = Play::talked();
    entered(&mut play, "/agents sgae");
    let error = TuiError::new(
        ErrorKind::NotFound,
        "there is no agent 'sgae'; did you mean sage?",
    );
    play.answer(Answer::Agents(Some("sgae".to_owned()), Err(error)));
    play.sees("there is no agent 'sgae'; did you mean sage?");
    assert_eq!(play.input(), "/agents sgae");
    assert!(!play.state.is_switching);
}

#[test]
fn nothing_is_switched_during_a_turn_or_among_several_agents() {
    let mut play = Play::asked();
    entered(&mut play, "/agents");
    play.answer(Answer::Agents(None, Ok(rows())));
    assert_eq!(play.keys("<up><enter>"), [""; 0]);
    play.sees("an agent is answering");
    assert!(matches!(play.state.overlays[..], [Layer::Chooser(_)]));
    let mut play = Play::open(info(Kind::Team));
    entered(&mut play, "/agents");
    play.answer(Answer::Agents(None, Ok(rows())));
    play.sees("each member has its own agent and model");
    assert_eq!(play.keys("<down><enter>"), [""; 0]);
    play.keys("<esc>");
    for (kind, words) in [
        (Kind::Team, "the team file names them"),
        (Kind::Pair, "tertulia pair -c"),
    ] {
        let mut play = Play::open(info(kind));
        assert_eq!(entered(&mut play, "/model other"), [""; 0]);
        play.at((160, 24));
        play.sees(words);
    }
}

#[test]
fn a_switch_that_fails_lets_the_old_agent_answer() {
    let mut play = Play::talked();
    entered(&mut play, "/model! other");
    assert!(play.state.is_switching);
    play.keys("go on<enter>");
    assert_eq!(play.over(), ["say go on"]);
    assert!(!play.state.is_switching);
    let mut play = Play::new(SessionInfo {
        is_remote: true,
        ..info(Kind::Chat)
    });
    play.opened();
    let wanted = entered(&mut play, "/agents other");
    assert_eq!(wanted, ["switch Some(\"other\") None"]);
    play.live(LiveEvent::Refused);
    assert!(!play.state.is_switching);
}
