//! Commands: their output, how they end, and that no process is left.

use std::fs;
use std::time::Duration;

use serde_json::json;
use tertulia_agents::process::MARKER_VAR;
use tertulia_agents::tool::ToolOutput;
use tertulia_testkit::waiting::wait_until_async;
use tokio_util::sync::CancellationToken;

use super::{World, call, marker, world};

/// Counts the processes that carry a marker.
fn left(marker: &str) -> usize {
    let wanted = format!("{MARKER_VAR}={marker}");
    let pids = fs::read_dir("/proc").unwrap().flatten();
    pids.filter(|entry| {
        let bytes = fs::read(entry.path().join("environ")).unwrap_or_default();
        bytes
            .split(|byte| *byte == 0)
            .any(|part| part == wanted.as_bytes())
    })
    .count()
}

impl World {
    async fn sh(&self, command: &str) -> ToolOutput {
        self.run("shell", json!({"command": command})).await
    }

    async fn says(&self, command: &str, expected: &str) {
        assert_eq!(self.sh(command).await.text, expected, "{command}");
    }
}

#[tokio::test]
async fn a_command_says_what_it_says() {
    let world = world();
    let here = world.path("").canonicalize().unwrap();
    world
        .says("pwd -P", &format!("{}\n[exit status 0]", here.display()))
        .await;
    world.says("true", "[exit status 0]").await;
    world.says("printf x", "x\n[exit status 0]").await;
    world
        .says(
            "echo 1; echo 2 >&2; echo 3; exit 7",
            "1\n2\n3\n[exit status 7]",
        )
        .await;
    world.says("kill -9 $$", "[ended by signal 9]").await;
    // Standard input is empty.
    world.says("cat; echo end", "end\n[exit status 0]").await;
    world
        .says(
            r"printf 'a\000b\377c\n'",
            "a\u{fffd}b\u{fffd}c\n[exit status 0]",
        )
        .await;
    assert!(world.sh("true").await.ok);
    assert!(!world.sh("false").await.ok);
    let missing = world.sh("no-such-command-here").await;
    assert!(
        !missing.ok && missing.text.contains("not found"),
        "{}",
        missing.text
    );
}

#[tokio::test]
async fn nothing_in_a_command_is_taken_for_something_else() {
    let world = world();
    world
        .says(
            r#"echo "a'b" 'c"d' "$0" "$#" \$x"#,
            "a'b c\"d sh 0 $x\n[exit status 0]",
        )
        .await;
    world
        .says("echo one\necho two", "one\ntwo\n[exit status 0]")
        .await;
    let dash = world.sh("-x").await;
    assert!(dash.text.contains("-x: not found"), "{}", dash.text);
    let torn = world.sh("echo 'open").await;
    assert!(
        !torn.ok && torn.text.contains("[exit status 2]"),
        "{}",
        torn.text
    );
    world.says("printf '%s\\n' ñ€", "ñ€\n[exit status 0]").await;
}

#[tokio::test]
async fn hidden_variables_are_not_seen() {
    let mut world = world();
    let show = "echo ${CARGO_PKG_NAME-none} ${PATH:+path}";
    let named = format!("{} path\n[exit status 0]", env!("CARGO_PKG_NAME"));
    world.says(show, &named).await;
    world.hidden = vec!["CARGO_PKG_NAME".into(), "NOT_THERE".into()];
    world.says(show, "none path\n[exit status 0]").await;
}

#[tokio::test]
async fn of_long_output_both_ends_are_kept() {
    let mut world = world();
    world.limits.output = 2000;
    let output = world.sh("seq 1 100000").await;
    assert!(output.ok);
    assert!(output.text.starts_with("1\n2\n3\n"), "{}", output.text);
    assert!(
        output.text.ends_with("\n99999\n100000\n[exit status 0]"),
        "{}",
        output.text
    );
    let missing: usize = output
        .text
        .split_once("[… ")
        .and_then(|(_, rest)| rest.split_once(" bytes are missing"))
        .and_then(|(number, _)| number.parse().ok())
        .unwrap();
    let marks = format!("\n[… {missing} bytes are missing here …]\n[exit status 0]");
    let all: usize = (1..=100_000_u32).map(|n| n.to_string().len() + 1).sum();
    assert_eq!(output.text.len() - marks.len() + missing, all);
}

/// Peak memory of this process, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

#[tokio::test]
async fn a_flood_is_not_kept() {
    let mut world = world();
    let before = peak();
    let output = world.sh("head -c 50000000 /dev/zero | tr '\\0' x").await;
    assert!(output.ok && output.text.contains("bytes are missing here"));
    world.limits.time = Duration::from_secs(5);
    let output = world.sh("yes").await;
    assert!(output.text.starts_with("y\ny\n") && output.text.contains("not finished after 5 s"));
    let grown = peak() - before;
    assert!(grown < 40_000, "{grown} KiB");
}

#[tokio::test]
async fn what_takes_too_long_ends_with_its_children() {
    let mut world = world();
    world.limits.longest = Duration::from_millis(90_500);
    let marker = marker();
    let command = "echo begun; sleep 1000 & setsid sleep 1000 & (setsid sleep 1000 &); sleep 1000";
    let arguments = json!({"command": command, "timeout_seconds": 500});
    let (call, tools) = (call("shell", arguments), world.tools());
    let cancel = CancellationToken::new();
    let (output, ()) = tokio::join!(
        tools.run(&call, &marker, &cancel),
        crate::pass_once("all run", || left(&marker) >= 4, world.limits.longest),
    );
    assert_eq!(left(&marker), 0);
    assert!(!output.ok);
    assert_eq!(
        output.text,
        "begun\n[not finished after 90.5 s: ended, with all that it had started]"
    );
}

#[tokio::test]
async fn an_agent_may_ask_for_more_time() {
    let mut world = world();
    world.limits.time = Duration::from_secs(1);
    let arguments = json!({"command": "echo a; echo > said; sleep 1000", "timeout_seconds": 60});
    tokio::join!(
        world.fails("shell", arguments, &["not finished after 60 s"]),
        crate::pass_once(
            "all is said",
            || world.path("said").exists(),
            Duration::from_secs(60)
        ),
    );
}

#[tokio::test]
async fn a_command_in_the_background_is_polled_and_ended() {
    let world = world();
    let (tools, marker, cancel) = (world.tools(), marker(), CancellationToken::new());
    let run = async |name: &str, arguments: serde_json::Value| {
        tools.run(&call(name, arguments), &marker, &cancel).await
    };
    let endless = "echo begun; echo > said; sleep 1000";
    let started = run("shell", json!({"command": endless, "background": true})).await;
    assert!(
        started.ok && started.text.contains("command 1 runs"),
        "{started:?}"
    );
    wait_until_async("it says something", || world.path("said").exists()).await;
    let running = run("shell_poll", json!({"id": 1, "wait_seconds": 0})).await;
    assert!(
        running.ok && running.text.ends_with("[still running]"),
        "{running:?}"
    );
    let ended = run("shell_poll", json!({"id": 1, "end": true})).await;
    assert_eq!(ended.text, "begun\n[stopped, with all that it had started]");
    assert_eq!(left(&marker), 0);
    let gone = run("shell_poll", json!({"id": 1})).await;
    assert!(!gone.ok && gone.text.contains("no command 1"), "{gone:?}");
    // One that ends by itself is told with its status.
    run(
        "shell",
        json!({"command": "echo x; exit 3", "background": true}),
    )
    .await;
    let done = run("shell_poll", json!({"id": 1, "wait_seconds": 60})).await;
    assert_eq!(done.text, "x\n[exit status 3]");
    // What still runs at the end of the turn is ended, and named.
    run("shell", json!({"command": endless, "background": true})).await;
    // A marker belongs to one call: whatever has it ends with the command.
    let short = call("shell", json!({"command": "true", "background": true}));
    tools.run(&short, &super::marker(), &cancel).await;
    run("shell_poll", json!({"id": 2, "wait_seconds": 60})).await;
    assert_eq!(tools.end_background().await, [endless]);
    assert_eq!(left(&marker), 0);
}

#[tokio::test]
async fn an_agent_may_ask_for_less_time() {
    let world = world();
    let arguments = json!({"command": "echo a; echo > said; sleep 1000", "timeout_seconds": 60});
    let words = ["a\n", "not finished after 60 s"];
    tokio::join!(
        world.fails("shell", arguments, &words),
        crate::pass_once(
            "all is said",
            || world.path("said").exists(),
            Duration::from_secs(60)
        ),
    );
}

#[tokio::test]
async fn nothing_runs_on_in_the_background() {
    let world = world();
    let marker = marker();
    let command = "setsid sleep 1000 >/dev/null 2>&1 & echo started";
    let call = call("shell", json!({"command": command}));
    let output = world
        .tools()
        .run(&call, &marker, &CancellationToken::new())
        .await;
    assert_eq!(output.text, "started\n[exit status 0]");
    assert_eq!(left(&marker), 0);
}

#[tokio::test]
async fn a_cancelled_command_ends_with_its_children() {
    let world = world();
    let (marker, cancel) = (marker(), CancellationToken::new());
    let command = "setsid sleep 1000 & sleep 1000; sleep 1000";
    let (call, tools) = (call("shell", json!({"command": command})), world.tools());
    let (output, ()) = tokio::join!(tools.run(&call, &marker, &cancel), async {
        wait_until_async("three run", || left(&marker) == 3).await;
        cancel.cancel();
    });
    assert_eq!(left(&marker), 0);
    assert!(
        !output.ok && output.text.contains("[stopped"),
        "{}",
        output.text
    );
}

#[tokio::test]
async fn the_newest_lines_are_seen_while_it_runs() {
    let world = world();
    let (marker, cancel) = (marker(), CancellationToken::new());
    let command = "for i in $(seq 30); do echo $i; done; sleep 1000";
    let (call, tools) = (call("shell", json!({"command": command})), world.tools());
    let (tail, mut seen) = tokio::sync::watch::channel(String::new());
    let run = tools.run_watched(&call, &marker, &cancel, tail);
    let (_, ()) = tokio::join!(run, async {
        let last = "21\n22\n23\n24\n25\n26\n27\n28\n29\n30";
        seen.wait_for(|tail| tail == last).await.unwrap();
        cancel.cancel();
    });
}
