//! Claude Code's permission requests, played by scripts that speak its protocol.

use std::time::Duration;

use tertulia_agents::approval::{Approval, Risk, ToolRequest, Verdict};
use tertulia_agents::vendor::{Vendor, VendorProgram};
use tertulia_agents::{Agent, AgentEvent, AgentRequest, AgentSink, FailureKind, Outcome};
use tertulia_testkit::waiting::DEADLINE;
use tokio_util::sync::CancellationToken;

use super::stage::{Played, Stage, left, play, question};

/// Shell functions for the scripts: `hear` reads a line into `$line` and logs it, `ask ID TOOL
/// INPUT` requests permission, `leave` reads the answer and reports it, `end` sends the last event
/// and waits for the end of input.
const PROTOCOL: &str = r#"
echo "$@" > args
echo '{"type":"system","subtype":"init","session_id":"s1"}'
hear() { IFS= read -r line && printf '%s\n' "$line" >> heard; }
say() { printf '{"type":"assistant","message":{"id":"m%s","content":[{"type":"text","text":"%s"}]}}\n' "$1" "$1"; }
ask() { printf '{"type":"control_request","request_id":"%s","request":{"subtype":"can_use_tool","tool_name":"%s","input":%s,"permission_suggestions":%s,"tool_use_id":"call-%s"}}\n' "$1" "$2" "$3" "${4:-[]}" "$1"; }
leave() { hear || exit 9; case "$line" in *'"behavior":"allow"'*) say "allowed-$1";; *'"behavior":"deny"'*) say "denied-$1";; *) say "what";; esac; }
end() { echo '{"type":"result","is_error":false,"result":"done"}'; cat > rest; echo closed > closed; }
"#;

fn script(play: &str) -> String {
    format!("{PROTOCOL}\nhear\n{play}")
}

fn claude(stage: &Stage, play: &str) -> VendorProgram {
    stage.program(Vendor::Claude, &script(play))
}

fn asking(native: Option<&str>) -> AgentRequest {
    AgentRequest {
        approval: Approval::Ask,
        ..question(native)
    }
}

/// Prompts the program and answers its requests with `person`; `None` cancels the turn instead.
async fn play_with(
    program: &VendorProgram,
    question: &AgentRequest,
    mut person: impl AsyncFnMut(&ToolRequest) -> Option<Verdict>,
) -> (Played, Vec<ToolRequest>) {
    let cancel = CancellationToken::new();
    let (sink, mut listener) = AgentSink::open(&cancel);
    let answer = async {
        let outcome = program.answer(question, &sink).await;
        drop(sink);
        outcome
    };
    let listen = async {
        let (mut events, mut asked, mut unsettled) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            tokio::select! {
                event = listener.events.recv() => match event {
                    Some(event) => events.push(event),
                    None => return (events, asked),
                },
                Some(permission) = listener.permissions.recv() => {
                    asked.push(permission.request.clone());
                    match person(&permission.request).await {
                        Some(verdict) => permission.settle(verdict),
                        None => {
                            cancel.cancel();
                            unsettled.push(permission);
                        }
                    }
                }
            }
        }
    };
    let (outcome, (events, asked)) = tokio::join!(answer, listen);
    assert_eq!(left(&question.marker), Vec::<i32>::new(), "left behind");
    (Played { outcome, events }, asked)
}

#[tokio::test]
async fn allowed_refused_and_always() {
    let stage = Stage::new();
    let rule = r#"[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls"}],"behavior":"allow","destination":"session"},{"type":"setMode","mode":"acceptEdits","destination":"session"}]"#;
    let program = claude(
        &stage,
        &format!(
            r#"ask 1 Bash '{{"command":"touch x"}}' '{rule}'; leave 1
            ask 2 Write '{{"file_path":"/a","content":"b\n"}}'; leave 2
            ask 3 Bash '{{"command":"ls"}}' '{rule}'; leave 3; end"#
        ),
    );
    let verdicts = [Verdict::Yes, Verdict::No, Verdict::Always];
    let mut next = verdicts.into_iter();
    let (played, asked) = play_with(&program, &asking(Some("s1")), async |_| next.next()).await;
    assert_eq!(played.outcome, Ok(Outcome::Done));
    assert_eq!(played.text(), "allowed-1\n\ndenied-2\n\nallowed-3");

    let brief: Vec<_> = asked
        .iter()
        .map(|request| (request.call.id.as_str(), request.risk, request.key.as_str()))
        .collect();
    assert_eq!(
        brief,
        [
            ("call-1", Risk::High, "Bash touch x"),
            ("call-2", Risk::Medium, "Write"),
            ("call-3", Risk::High, "Bash ls"),
        ]
    );
    assert!(asked[1].preview.ends_with("+b"), "{}", asked[1].preview);

    let heard = stage.read("heard");
    let heard: Vec<serde_json::Value> = heard
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(heard[0]["message"]["content"][0]["text"], "three");
    let answer = |n: usize| &heard[n]["response"]["response"];
    assert_eq!(answer(1)["updatedInput"]["command"], "touch x");
    assert_eq!(answer(1).get("updatedPermissions"), None);
    assert!(answer(2)["message"].as_str().unwrap().contains("not want"));
    let rules = answer(3)["updatedPermissions"].as_array().unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0]["rules"][0]["ruleContent"], "ls");
    // It got the end of its input after its last event, and nothing before that.
    assert_eq!((heard.len(), stage.read("rest").as_str()), (4, ""));
    assert_eq!(stage.read("closed"), "closed\n");
    let args = stage.read("args");
    assert!(args.contains("--resume s1"), "{args}");
    assert!(args.contains("--permission-prompt-tool stdio"), "{args}");
}

#[tokio::test]
async fn several_are_answered_in_turn() {
    let stage = Stage::new();
    // Written at once, so that a request is withdrawn before it can have been answered.
    let program = claude(
        &stage,
        r#"{ ask 0 Bash '{"command":"z"}'; echo '{"type":"control_cancel_request","request_id":"0"}'
        ask 1 Bash '{"command":"a"}'; ask 2 Bash '{"command":"b"}'; ask 3 Bash '{"command":"c"}'
        echo '{"type":"control_cancel_request","request_id":"2"}'
        echo '{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback"}}'; } > batch
        cat batch; hear; hear; hear; end"#,
    );
    let (played, asked) = play_with(&program, &asking(None), async |_| Some(Verdict::Yes)).await;
    assert_eq!(played.outcome, Ok(Outcome::Done));
    let keys: Vec<&str> = asked.iter().map(|request| request.key.as_str()).collect();
    assert_eq!(keys, ["Bash a", "Bash c"]);
    let heard = stage.read("heard");
    let answered = |id: &str| heard.contains(&format!(r#""request_id":"{id}""#));
    assert_eq!(
        ["0", "1", "2", "3", "h"].map(answered),
        [false, true, false, true, true]
    );
    assert_eq!(stage.read("rest"), "");
}

#[tokio::test]
async fn a_person_may_take_their_time() {
    let stage = Stage::new();
    let mut program = claude(&stage, r#"ask 1 Bash '{"command":"a"}'; leave 1; end"#);
    let limit = DEADLINE;
    program.patience.idle = limit;
    program.patience.total = limit;
    let person = async |_: &ToolRequest| {
        crate::pass(limit * 2).await;
        Some(Verdict::Yes)
    };
    let (played, _) = play_with(&program, &asking(None), person).await;
    assert_eq!(played.outcome, Ok(Outcome::Done));
    assert_eq!(played.text(), "allowed-1");

    // The program's own time is still limited.
    let mut program = claude(
        &stage,
        r#"ask 1 Bash '{"command":"a"}'; leave 1; sleep 300"#,
    );
    program.patience.idle = Duration::from_millis(700);
    let (played, _) = play_with(&program, &asking(None), async |_| Some(Verdict::Yes)).await;
    assert_eq!(played.error().kind, FailureKind::Timeout);
}

#[tokio::test]
async fn stopped_while_asking_it_leaves_nothing() {
    let stage = Stage::new();
    let program = claude(
        &stage,
        r#"setsid sleep 300 & ask 1 Bash '{"command":"a"}'; ask 2 Bash '{"command":"b"}'; leave 1; end"#,
    );
    let (played, asked) = play_with(&program, &asking(None), async |_| None).await;
    assert_eq!(played.error().kind, FailureKind::Cancelled);
    assert_eq!(asked.len(), 1);
    assert!(!stage.read("heard").contains("control_response"));
}

#[tokio::test]
async fn whoever_ends_while_asking_has_failed() {
    let stage = Stage::new();
    let program = claude(
        &stage,
        r#"ask 1 Bash '{"command":"a"}'; echo 'out of memory' >&2; exit 4"#,
    );
    let (played, _) = play_with(&program, &asking(None), async |_| Some(Verdict::Yes)).await;
    let error = played.error();
    assert_eq!(error.kind, FailureKind::Failed);
    assert!(
        error.message.ends_with("(exit status: 4): out of memory"),
        "{error}"
    );
}

#[tokio::test]
async fn nobody_there_is_a_no() {
    let stage = Stage::new();
    let program = claude(&stage, r#"ask 1 Bash '{"command":"a"}'; leave 1; end"#);
    // This consumer drops permission requests.
    let cancel = CancellationToken::new();
    let (sink, mut listener) = AgentSink::open(&cancel);
    drop(listener.permissions);
    let question = asking(None);
    let answer = async {
        let outcome = program.answer(&question, &sink).await;
        drop(sink);
        outcome
    };
    let listen = async {
        let mut events = Vec::new();
        while let Some(event) = listener.events.recv().await {
            events.push(event);
        }
        events
    };
    let (outcome, events) = tokio::join!(answer, listen);
    assert_eq!(outcome, Ok(Outcome::Done));
    assert!(
        events.contains(&AgentEvent::Text("denied-1".into())),
        "{events:?}"
    );
}

#[tokio::test]
async fn an_old_program_says_what_to_do() {
    let stage = Stage::new();
    let script = r#"case " $* " in *" --permission-prompt-tool "*)
        echo "error: unknown option '--permission-prompt-tool'" >&2; exit 1;; esac; show hello"#;
    let program = stage.program(Vendor::Claude, script);
    let (played, _) = play_with(&program, &asking(None), async |_| None).await;
    let error = played.error();
    assert_eq!(error.kind, FailureKind::Unavailable);
    assert_eq!(
        error.message,
        "claude: this version is too old: it does not know an option that it is given: error: unknown option \
         '--permission-prompt-tool'"
    );
    let hint = error.hint.as_ref().unwrap();
    assert!(
        hint.contains("npm install -g @anthropic-ai/claude-code"),
        "{hint}"
    );
    // Without permission requests it works as before.
    let played = play(&program, &question(None)).await;
    assert_eq!(played.outcome, Ok(Outcome::Done));
}

#[tokio::test]
async fn a_lost_session_is_made_up_for_here_too() {
    let stage = Stage::new();
    let script = format!(
        r#"case " $* " in *" --resume ID "*) show resume-missing; exit 1;; esac {PROTOCOL}
        hear; say hello; end"#
    );
    let program = stage.program(Vendor::Claude, &script);
    let (played, _) = play_with(&program, &asking(Some("ID")), async |_| None).await;
    assert_eq!(played.outcome, Ok(Outcome::Done));
    assert_eq!(played.text(), "hello");
    assert!(stage.read("heard").contains("ana: one"));
}

#[tokio::test]
async fn a_refused_tool_is_denied_and_not_failed() {
    let outputs = |played: &Played| -> Vec<String> {
        let results = played.events.iter().filter_map(|event| match event {
            AgentEvent::ToolCompleted {
                output, ok: false, ..
            } => Some(output.clone()),
            _ => None,
        });
        results.collect()
    };
    let stage = Stage::new();
    for (vendor, recorded) in [
        (Vendor::OpenCode, "tool-ask"),
        (Vendor::Claude, "tool-denied"),
    ] {
        let program = stage.program(vendor, &format!("show {recorded}"));
        let played = play(&program, &question(None)).await;
        let denied = outputs(&played);
        assert_eq!(denied.len(), 1, "{vendor:?}");
        assert!(denied[0].starts_with("[not run: "), "{denied:?}");
    }
}

/// With everything allowed, tools that the program cannot allow by name are asked for, too.
#[tokio::test]
async fn everything_allowed_is_asked_and_answered() {
    let stage = Stage::new();
    let script = format!("{PROTOCOL} hear; say hello; end");
    let program = stage.program(Vendor::Claude, &script);
    let question = AgentRequest {
        approval: Approval::All,
        ..question(None)
    };
    let (played, _) = play_with(&program, &question, async |_| None).await;
    assert_eq!(played.outcome, Ok(Outcome::Done));
    assert!(
        stage.read("heard").starts_with("{"),
        "it is spoken to in JSON"
    );
}
