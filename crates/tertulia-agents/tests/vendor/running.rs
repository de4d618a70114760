//! Scripts that print recorded output, run as agents: how turns end.

use std::time::Duration;

use tertulia_agents::approval::Approval;
use tertulia_agents::scratch::Homes;
use tertulia_agents::vendor::{Vendor, VendorProgram};
use tertulia_agents::{
    Agent, AgentEvent, AgentRequest, AgentSink, FailureKind, Outcome, Readiness, ToolSide,
};
use tertulia_core::entry::Usage;
use tokio_util::sync::CancellationToken;

use super::stage::{Stage, left, play, play_until, question};

/// Shell pattern for the options with which each program resumes a session.
const RESUMED: &str = r#"case " $* " in *" --resume ID "*|*" resume ID "*|*" --session ID "*)"#;

fn is_text(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::Text(_))
}

#[tokio::test]
async fn an_answer() {
    for vendor in Vendor::ALL {
        let stage = Stage::new();
        let mut program = stage.program(vendor, "cat > said; show hello");
        program.system = Some("Be kind.".into());
        let played = play(&program, &question(None)).await;
        assert_eq!(played.outcome, Ok(Outcome::Done), "{vendor:?}");
        assert!(!played.text().is_empty());
        assert!(matches!(played.events[0], AgentEvent::Session(_)));
        assert!(
            played
                .events
                .iter()
                .any(|event| matches!(event, AgentEvent::Usage(usage) if usage.input > 2000))
        );
        let said = stage.read("said");
        assert!(said.ends_with("ana: one\n\nbot: two\n\nthree"), "{said}");
    }
}

#[tokio::test]
async fn the_next_turn_goes_on_with_the_session() {
    for vendor in Vendor::ALL {
        let stage = Stage::new();
        let script = format!("{RESUMED} cat > said; show multi-2-resume;; esac");
        let program = stage.program(vendor, &script);
        let played = play(&program, &question(Some("ID"))).await;
        assert_eq!(played.outcome, Ok(Outcome::Done), "{vendor:?}");
        assert!(played.text().contains("second message"));
        assert_eq!(stage.read("said"), "three");
        if vendor == Vendor::Codex {
            // Codex reports the usage of the whole thread: 13311 and 8 tokens.
            let usage = Usage {
                estimated: false,
                input: 9311,
                output: 3,
                ..Usage::default()
            };
            assert!(played.events.contains(&AgentEvent::Usage(usage)));
        }
    }
}

/// Gemini CLI hangs if it cannot write its files.
#[tokio::test]
async fn gemini_is_not_started_where_it_cannot_write() {
    let stage = Stage::new();
    let homes = Homes {
        gemini: stage.path("nowhere"),
        codex: stage.path("codex"),
        scratch: stage.path(""),
    };
    let program = VendorProgram {
        homes: Some(homes),
        ..stage.program(Vendor::GeminiCli, "echo > started; sleep 1000")
    };
    let played = play(&program, &question(None)).await;
    let error = played.outcome.unwrap_err();
    assert_eq!(error.kind, FailureKind::Unavailable);
    assert!(error.message.contains("nowhere: No such file"), "{error:?}");
    assert!(error.hint.unwrap().contains("GEMINI_CLI_HOME"));
    assert!(!stage.path("started").exists());
}

#[tokio::test]
async fn a_lost_session_is_made_up_for() {
    let said_why = [
        (Vendor::Claude, "show resume-missing"),
        (
            Vendor::Codex,
            "echo 'Error: thread/resume failed: no rollout found for thread id ID' >&2",
        ),
        (
            Vendor::GeminiCli,
            r#"echo 'Error resuming session: Invalid session identifier "ID".' >&2"#,
        ),
        (
            Vendor::OpenCode,
            r"printf '\033[91m\033[1mError: \033[0mSession not found\n' >&2",
        ),
    ];
    for (vendor, why) in said_why {
        let stage = Stage::new();
        let script = format!("{RESUMED} {why}; exit 1;; esac; cat > said; show hello");
        let program = stage.program(vendor, &script);
        let played = play(&program, &question(Some("ID"))).await;
        assert_eq!(played.outcome, Ok(Outcome::Done), "{vendor:?}");
        let remark = format!(
            "{} has lost its session ID: sending the whole conversation again",
            vendor.name()
        );
        assert_eq!(played.events[0], AgentEvent::Remark(remark));
        assert!(played.text().contains("ello"));
        assert!(stage.read("said").contains("ana: one"));
        // The fresh session has only the usage of this turn.
        if vendor == Vendor::Codex {
            let usage = Usage {
                estimated: false,
                input: 4933,
                output: 9,
                ..Usage::default()
            };
            assert!(played.events.contains(&AgentEvent::Usage(usage)));
        }
    }
}

#[tokio::test]
async fn a_session_is_lost_only_once_and_only_before_the_first_word() {
    let stage = Stage::new();
    let script = "echo run >> runs; show resume-missing; exit 1";
    let program = stage.program(Vendor::Claude, script);
    let played = play(&program, &question(Some("ID"))).await;
    assert_eq!(played.error().kind, FailureKind::Failed);
    assert_eq!(stage.read("runs"), "run\nrun\n");

    let stage = Stage::new();
    let script = "echo run >> runs; show hello | grep agent_message; \
                  echo 'no rollout found for thread id' >&2; exit 1";
    let program = stage.program(Vendor::Codex, script);
    let played = play(&program, &question(Some("ID"))).await;
    assert_eq!(played.error().kind, FailureKind::Failed);
    assert_eq!(stage.read("runs"), "run\n");
}

#[tokio::test]
async fn an_option_is_no_session() {
    let stage = Stage::new();
    let program = stage.program(Vendor::GeminiCli, "echo \"$@\" > args; show hello");
    let played = play(&program, &question(Some("--yolo"))).await;
    assert_eq!(played.outcome, Ok(Outcome::Done));
    let args = stage.read("args");
    assert_eq!(args, "--skip-trust --output-format stream-json\n");
}

#[tokio::test]
async fn no_final_event() {
    let check = async |script: &str, kind: FailureKind, message: &str| {
        let stage = Stage::new();
        let played = play(&stage.program(Vendor::Claude, script), &question(None)).await;
        let error = played.error();
        assert_eq!(error.kind, kind, "{error}");
        assert_eq!(error.message, message);
    };
    check(
        "show sigterm-midstream",
        FailureKind::Protocol,
        "claude: it ended without a final event (exit status: 0)",
    )
    .await;
    check(
        "show sigterm-midstream; printf 'it broke\\n  here\\n' >&2; exit 3",
        FailureKind::Failed,
        "claude: it ended without a final event (exit status: 3): it broke here",
    )
    .await;
    check(
        "kill -9 $$",
        FailureKind::Failed,
        "claude: it ended without a final event (signal: 9 (SIGKILL))",
    )
    .await;
    check(
        "echo '<html>'; echo 'Please update!'",
        FailureKind::Protocol,
        "claude: it printed no events but: <html>",
    )
    .await;
    check(
        "head -c 10000001 /dev/zero | tr '\\0' x; sleep 300",
        FailureKind::Protocol,
        "claude: it printed a line of more than 10000000 bytes",
    )
    .await;
}

#[tokio::test]
async fn the_final_event_counts_and_not_the_exit() {
    let stage = Stage::new();
    let program = stage.program(Vendor::Claude, "show partial; exit 1");
    let played = play(&program, &question(None)).await;
    assert_eq!(played.outcome, Ok(Outcome::Done));

    let stage = Stage::new();
    let program = stage.program(Vendor::GeminiCli, "show fail-truncate; exit 0");
    let played = play(&program, &question(None)).await;
    assert_eq!(
        played.error().message,
        "gemini-cli: Model stream ended without a finish reason."
    );

    // The last line may lack its end.
    let stage = Stage::new();
    let program = stage.program(Vendor::Codex, "printf %s \"$(show hello)\"");
    let played = play(&program, &question(None)).await;
    assert_eq!(played.outcome, Ok(Outcome::Done));
}

#[tokio::test]
async fn whoever_lingers_is_ended() {
    for (vendor, script) in [
        (Vendor::Codex, "show hello; sleep 300"),
        (
            Vendor::Claude,
            "show fail-400; setsid sleep 300 & sleep 300",
        ),
        (
            Vendor::GeminiCli,
            "show hello; while :; do echo noise; done",
        ),
        (Vendor::OpenCode, "show fail-truncate; sleep 300"),
    ] {
        let stage = Stage::new();
        let played = play(&stage.program(vendor, script), &question(None)).await;
        let kind = played.outcome.as_ref().err().map(|error| error.kind);
        let expected = match vendor {
            Vendor::Claude => Some(FailureKind::Failed),
            Vendor::OpenCode => Some(FailureKind::Protocol),
            Vendor::Codex | Vendor::GeminiCli => None,
        };
        assert_eq!(kind, expected, "{vendor:?}");
    }
}

#[tokio::test]
async fn whoever_hangs_is_ended() {
    let stage = Stage::new();
    let script = "show sigterm-midstream; echo 'still trying' >&2; echo > said; sleep 300";
    let program = stage.program(Vendor::Claude, script);
    let said = || stage.path("said").exists();
    let (played, ()) = tokio::join!(
        async { play(&program, &question(None)).await },
        crate::pass_once("all is said", said, program.patience.idle),
    );
    let error = played.error();
    assert_eq!(error.kind, FailureKind::Timeout);
    assert!(error.message.contains("still trying"), "{error}");
    assert!(error.hint.as_ref().unwrap().contains("idle_timeout"));

    let script = "while :; do echo . >&2; sleep 0.05; done";
    let mut program = stage.program(Vendor::Claude, script);
    program.patience.total = Duration::from_millis(500);
    let played = play(&program, &question(None)).await;
    assert_eq!(played.error().kind, FailureKind::Timeout);
}

#[tokio::test]
async fn cancelled_it_leaves_nothing() {
    let script = "show sigterm-tool; setsid sh -c 'sleep 300; sleep 300' & \
                  (setsid sleep 300 &); show hello | grep -v step_finish; sleep 300";
    let stage = Stage::new();
    let program = stage.program(Vendor::OpenCode, script);
    let played = play_until(&program, &question(None), is_text).await;
    assert_eq!(played.error().kind, FailureKind::Cancelled);
}

#[tokio::test]
async fn cancelled_it_is_ended_even_if_it_ignores_it() {
    // The recording's final event is left out: only the cancellation ends it.
    let script = "trap '' TERM; show hello | grep -v turn.completed; while :; do sleep 300; done";
    let stage = Stage::new();
    let program = stage.program(Vendor::Codex, script);
    let played = play_until(&program, &question(None), is_text).await;
    assert_eq!(played.error().kind, FailureKind::Cancelled);
}

#[tokio::test]
async fn without_a_listener_it_is_ended() {
    let stage = Stage::new();
    let program = stage.program(Vendor::Claude, "show partial; sleep 300");
    let (sink, listener) = AgentSink::open(&CancellationToken::new());
    drop(listener);
    let question = question(None);
    let outcome = program.answer(&question, &sink).await;
    assert_eq!(outcome.unwrap_err().kind, FailureKind::Cancelled);
    assert_eq!(left(&question.marker), Vec::<i32>::new());
}

#[tokio::test]
async fn failures_say_what_to_do() {
    let check = async |vendor, script: &str, kind: FailureKind, hint: &str| {
        let stage = Stage::new();
        let played = play(&stage.program(vendor, script), &question(None)).await;
        let error = played.error();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.hint.as_ref().unwrap().contains(hint), "{error:?}");
    };
    check(
        Vendor::Claude,
        "show no-key; exit 1",
        FailureKind::Auth,
        "log in",
    )
    .await;
    check(
        Vendor::Codex,
        "show fail-401; exit 1",
        FailureKind::Auth,
        "codex login",
    )
    .await;
    check(
        Vendor::GeminiCli,
        "echo 'you must specify the GEMINI_API_KEY' >&2; exit 41",
        FailureKind::Auth,
        "GEMINI_API_KEY",
    )
    .await;
    check(
        Vendor::GeminiCli,
        "show fail2-429-1; exit 173",
        FailureKind::RateLimit,
        "wait",
    )
    .await;
    check(
        Vendor::OpenCode,
        "show fail-overflow; exit 1",
        FailureKind::TooLong,
        "new session",
    )
    .await;
}

#[tokio::test]
async fn keys_are_not_repeated() {
    let stage = Stage::new();
    let script =
        "printf '{\"type\":\"turn.failed\",\"error\":{\"message\":\"bad key %s\"}}' $MY_KEY";
    let mut program = stage.program(Vendor::Codex, script);
    program.env = vec![("MY_KEY".into(), "sk-very-secret".into())];
    let played = play(&program, &question(None)).await;
    assert_eq!(played.error().message, "codex: bad key [MY_KEY]");
    assert!(!format!("{program:?}").contains("secret"));
}

/// Creates OpenCode 2, which writes down that it was run.
fn opencode_2(stage: &Stage, case: &str) -> VendorProgram {
    std::fs::write(stage.path("version"), "opencode2 v0.0.0-next-16350\n").unwrap();
    let recorded = super::recorded::folder_of_opencode_2();
    let recorded = recorded.join(format!("{case}.jsonl"));
    let script = format!(
        "echo \"$*\" > said; cat > /dev/null; cat '{}'",
        recorded.display()
    );
    stage.program(Vendor::OpenCode, &script)
}

#[tokio::test]
async fn opencode_2_is_run_only_where_everything_is_allowed() {
    for approval in [
        Approval::None,
        Approval::Low,
        Approval::Ask,
        Approval::Edits,
    ] {
        let stage = Stage::new();
        let asked = AgentRequest {
            approval,
            ..question(None)
        };
        let played = play(&opencode_2(&stage, "tool-write"), &asked).await;
        let error = played.error();
        assert_eq!(error.kind, FailureKind::Unavailable);
        assert!(error.message.contains("OpenCode 2"), "{error}");
        assert!(error.hint.as_ref().unwrap().contains("--approve all"));
        assert!(!stage.path("said").exists(), "{approval:?}");
    }
    let stage = Stage::new();
    let program = opencode_2(&stage, "tool-write");
    let asked = AgentRequest {
        approval: Approval::All,
        ..question(Some("ses_1"))
    };
    let played = play(&program, &asked).await;
    assert_eq!(played.outcome, Ok(Outcome::Done));
    assert!(played.text().contains("Created file successfully"));
    let said = stage.read("said");
    assert!(
        said.contains("--standalone --session ses_1 --auto"),
        "{said}"
    );
    let Readiness::Ready(Some(remark)) = program.readiness().await else {
        panic!("it is there");
    };
    assert!(remark.starts_with("0.0.0-next-16350: runs with `--approve all` only"));
}

#[tokio::test]
async fn a_program_that_is_not_there() {
    let stage = Stage::new();
    let program = VendorProgram {
        command: stage.path("nothing"),
        found: None,
        ..stage.program(Vendor::Codex, "")
    };
    let played = play(&program, &question(None)).await;
    let error = played.error();
    assert_eq!(error.kind, FailureKind::Unavailable);
    assert!(error.message.contains("was not found"), "{error}");
    let hint = error.hint.as_ref().unwrap();
    assert!(hint.contains("npm install -g @openai/codex"), "{hint}");
    let Readiness::NotReady(why) = program.readiness().await else {
        panic!("it is not there");
    };
    assert!(why.contains("npm install -g @openai/codex"), "{why}");
}

#[tokio::test]
async fn its_version_tells_that_it_is_ready() {
    let stage = Stage::new();
    let script = r#"[ "$*" = --version ] && echo '2.1.325 (Claude Code)'"#;
    let program = stage.program(Vendor::Claude, script);
    let ready = Readiness::Ready(Some("2.1.325".into()));
    assert_eq!(program.readiness().await, ready);
    assert_eq!(program.tools(), ToolSide::Its);

    let program = stage.program(Vendor::Claude, "echo 'no native binary' >&2; exit 1");
    let Readiness::NotReady(why) = program.readiness().await else {
        panic!("it is broken");
    };
    assert!(why.ends_with("no native binary"), "{why}");
}
