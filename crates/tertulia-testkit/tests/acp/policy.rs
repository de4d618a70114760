//! The tool policy holds for agents of the protocol, and what is not to be kept is not.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tertulia_agents::acp::Acp;
use tertulia_agents::approval::{Approval, Verdict};
use tertulia_agents::{AgentEvent, AgentRequest, FailureKind};

use super::stage::{AGENT, Heard, Stage, ask_with};

async fn ask(agent: &Acp, question: &AgentRequest, verdict: Verdict) -> Heard {
    ask_with(agent, question, Some(verdict), |_, _| false).await
}

fn under(stage: &Stage, approval: Approval, words: &str) -> AgentRequest {
    AgentRequest {
        approval,
        ..stage.question(&[words])
    }
}

const HELD: [Approval; 3] = [Approval::None, Approval::Low, Approval::Ask];

#[tokio::test]
async fn one_that_is_not_known_to_ask_is_refused() {
    for words in [&["free"][..], &["stubborn"]] {
        for approval in HELD {
            let stage = Stage::set();
            let agent = stage.agent(words);
            let heard = ask(&agent, &under(&stage, approval, "hello"), Verdict::Yes).await;
            let error = heard.failure();
            assert_eq!(
                error.kind,
                FailureKind::Unavailable,
                "{words:?} {approval:?}"
            );
            let hint = error.hint.as_deref().unwrap_or_default();
            assert!(
                hint.contains("--approve all") && hint.contains("`asks` in [agents.fake]"),
                "{hint}"
            );
            assert_eq!(heard.text(), "", "nothing was asked of it");
        }
        let stage = Stage::set();
        let agent = stage.agent(words);
        let heard = ask(&agent, &under(&stage, Approval::All, "hello"), Verdict::Yes).await;
        assert_eq!(heard.text(), "hello");
    }
}

#[tokio::test]
async fn one_of_which_the_user_says_that_it_asks_is_believed() {
    let stage = Stage::set();
    let agent = Acp {
        asks: true,
        ..stage.agent(&["free"])
    };
    for approval in HELD {
        let heard = ask(&agent, &under(&stage, approval, "hello"), Verdict::Yes).await;
        assert_eq!(heard.text(), "hello");
    }
}

#[tokio::test]
async fn one_that_runs_a_tool_unasked_is_stopped() {
    let stopped = [
        (Approval::None, &["execute", "edit", "read", "search"][..]),
        (Approval::Low, &["execute", "delete", "other", ""]),
        (Approval::Ask, &["edit", "fetch"]),
        (Approval::Edits, &["edit", "execute"]),
    ];
    for (approval, kinds) in stopped {
        for kind in kinds {
            let stage = Stage::set();
            let agent = Acp {
                asks: true,
                ..stage.agent(&["free"])
            };
            let words = format!("sneak {kind}");
            let heard = ask(&agent, &under(&stage, approval, &words), Verdict::Yes).await;
            let error = heard.failure();
            assert!(
                error.message.contains(&format!("do {kind}"))
                    && error.message.contains("without asking"),
                "{error}"
            );
            let hint = error.hint.as_deref().unwrap_or_default();
            assert!(hint.contains("`asks` in [agents.fake]"), "{hint}");
            // What it did is said, too.
            let ran = heard.events.iter().any(|event| {
                matches!(event, AgentEvent::ToolCompleted { output, .. } if output == "it ran")
            });
            assert!(ran, "{approval:?} {kind}");
            stage.all_gone().await;
        }
    }
}

#[tokio::test]
async fn one_that_runs_what_it_may_unasked_goes_on() {
    let stage = Stage::set();
    let agent = stage.agent(&[]);
    let fine = [
        (Approval::Low, "sneak read"),
        (Approval::Ask, "sneak search"),
        (Approval::Edits, "sneak think"),
        (Approval::None, "plan"),
    ];
    for (approval, words) in fine {
        let heard = ask(&agent, &under(&stage, approval, words), Verdict::Yes).await;
        assert!(heard.ended.is_ok(), "{words} {:?}", heard.ended);
    }
    let agent = stage.agent(&[]);
    let free = under(&stage, Approval::All, "sneak execute");
    assert!(ask(&agent, &free, Verdict::Yes).await.ended.is_ok());
    // It offers only to be allowed for good, and is.
    let agent = stage.agent(&["for-good"]);
    let asking = under(&stage, Approval::Ask, "tool execute");
    let heard = ask(&agent, &asking, Verdict::Always).await;
    assert!(heard.ended.is_ok(), "{:?}", heard.ended);
    let again = under(&stage, Approval::Ask, "sneak execute");
    let heard = ask(&agent, &again, Verdict::No).await;
    assert!(heard.ended.is_ok(), "{:?}", heard.ended);
    let other = under(&stage, Approval::Ask, "sneak edit");
    assert!(ask(&agent, &other, Verdict::No).await.ended.is_err());
}

#[tokio::test]
async fn opencode_is_told_to_ask_by_its_environment() {
    let stage = Stage::set();
    let program = stage.path().join("opencode");
    let folder = stage.path().display();
    let script =
        format!("#!/bin/sh\nenv >> '{folder}/env'\nexec '{AGENT}' '{folder}' free deletes\n");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let command = program.to_str().unwrap();
    let agent = stage.program(command, vec!["acp".into()]);
    let heard = ask(
        &agent,
        &under(&stage, Approval::Ask, "tool execute"),
        Verdict::No,
    )
    .await;
    assert!(heard.ended.is_ok(), "{:?}", heard.ended);
    assert_eq!(heard.asked.len(), 1);
    let env = stage.noted("env");
    assert!(
        env.iter()
            .any(|line| line.starts_with("OPENCODE_PERMISSION={\"*\":\"ask\""))
    );
    assert!(
        env.iter()
            .any(|line| line == "OPENCODE_DISABLE_PROJECT_CONFIG=1")
    );
    // With everything allowed it goes on as it is; what is to be kept nowhere is another process.
    ask(&agent, &under(&stage, Approval::All, "hello"), Verdict::Yes).await;
    assert_eq!(stage.starts(), 1);
    let question = AgentRequest {
        ephemeral: true,
        ..under(&stage, Approval::Ask, "hello")
    };
    ask(&agent, &question, Verdict::Yes).await;
    assert_eq!(stage.starts(), 2);
    assert!(
        stage
            .noted("env")
            .iter()
            .any(|line| line == "OPENCODE_DB=:memory:")
    );
}

#[tokio::test]
async fn a_process_that_was_let_free_is_not_gone_on_with_when_it_is_to_ask() {
    let stage = Stage::set();
    let agent = stage.agent(&[]);
    ask(&agent, &under(&stage, Approval::All, "one"), Verdict::Yes).await;
    ask(&agent, &under(&stage, Approval::Ask, "two"), Verdict::Yes).await;
    assert_eq!(stage.starts(), 2);
    stage.all_gone_but_one().await;
}

#[tokio::test]
async fn a_refused_tool_is_denied() {
    let stage = Stage::set();
    let agent = stage.agent(&[]);
    for (approval, verdict) in [(Approval::Low, Verdict::Yes), (Approval::Ask, Verdict::No)] {
        let heard = ask(&agent, &under(&stage, approval, "tool execute"), verdict).await;
        let denied = heard.events.iter().find_map(|event| match event {
            AgentEvent::ToolCompleted { output, ok, .. } => Some((output.as_str(), *ok)),
            _ => None,
        });
        assert_eq!(denied, Some(("[not run: yes]", false)), "{approval:?}");
    }
}

#[tokio::test]
async fn what_is_not_to_be_kept_is_deleted() {
    let stage = Stage::set();
    let agent = stage.agent(&["deletes"]);
    let sessions = || {
        let files = fs::read_dir(stage.path()).unwrap().flatten();
        files
            .filter(|file| file.path().extension().is_some_and(|end| end == "session"))
            .count()
    };
    ask(&agent, &stage.question(&["kept"]), Verdict::Yes).await;
    assert_eq!(sessions(), 1);
    for words in ["one", "error 1 no"] {
        let question = AgentRequest {
            ephemeral: true,
            ..stage.question(&[words])
        };
        ask(&agent, &question, Verdict::Yes).await;
        assert_eq!(sessions(), 1, "{words}");
    }
}

#[tokio::test]
async fn words_that_name_a_file_stay_words() {
    let stage = Stage::set();
    fs::write(stage.path().join("secret.txt"), "x").unwrap();
    let agent = stage.agent(&[]);
    let heard = ask(
        &agent,
        &stage.question(&["see @secret.txt and @Override"]),
        Verdict::Yes,
    )
    .await;
    assert_eq!(heard.text(), "see \u{2060}@secret.txt and @Override");
}
