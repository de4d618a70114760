//! Runs and ends real programs; looks for their remaining processes in /proc.

use std::fs;
use std::future::Future;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::pass_once;
use tertulia_agents::process::{
    Finished, Input, Limits, MARKER_VAR, ProcessError, Program, STDERR_TAIL, Utf8Stream, run,
};
use tertulia_testkit::waiting::{DEADLINE, wait_for, wait_until, wait_until_async};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("9{:07}{next:03}", std::process::id())
}

fn sh(script: &str) -> Program {
    Program {
        command: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: Vec::new(),
        without: Vec::new(),
        work_dir: None,
        marker: format!("test-{}", unique()),
        confined: None,
    }
}

fn limits() -> Limits {
    Limits {
        grace: Duration::from_millis(300),
        // No test may hang, whatever breaks.
        total: Some(DEADLINE),
        ..Limits::default()
    }
}

fn proc_with(file: &str, wanted: &str) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            bytes
                .split(|b| *b == 0)
                .any(|part| part == wanted.as_bytes())
        })
        .collect()
}

fn left(marker: &str) -> Vec<i32> {
    proc_with("environ", &format!("{MARKER_VAR}={marker}"))
}

/// Returns true if so many processes run, two of them the program `sleep`. A shell that has forked and not
/// started it yet would swallow a signal, and then wait until it ends.
fn all_run(marker: &str, count: usize) -> bool {
    let left = left(marker);
    let is_sleep = |pid: &&i32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim_end() == "sleep")
    };
    left.len() == count && left.iter().filter(is_sleep).count() == 2
}

async fn collect(mut output: mpsc::Receiver<Vec<u8>>) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(chunk) = output.recv().await {
        all.extend(chunk);
    }
    all
}

async fn go_with(
    program: &Program,
    stdin: &[u8],
    limits: &Limits,
    cancel: &CancellationToken,
) -> (Result<Finished, ProcessError>, Vec<u8>) {
    let (sender, receiver) = mpsc::channel(8);
    let result = tokio::join!(
        run(program, stdin, limits, cancel, sender),
        collect(receiver)
    );
    assert_eq!(left(&program.marker), Vec::<i32>::new(), "left behind");
    result
}

async fn go(program: &Program, stdin: &[u8]) -> (Result<Finished, ProcessError>, Vec<u8>) {
    go_with(program, stdin, &limits(), &CancellationToken::new()).await
}

/// Runs `program` and cancels it once `ready` holds.
async fn cancelled(program: &Program, limits: &Limits, ready: impl FnMut() -> bool) {
    let cancel = CancellationToken::new();
    let (result, ()) = tokio::join!(go_with(program, b"", limits, &cancel), async {
        wait_until_async("ready to be cancelled", ready).await;
        cancel.cancel();
    });
    assert!(
        matches!(result.0, Err(ProcessError::Cancelled)),
        "{:?}",
        result.0
    );
}

fn assert_send<T: Future + Send>(future: T) -> T {
    future
}

#[tokio::test]
async fn echoes() {
    let (done, out) = assert_send(go(&sh("cat; echo \"$1$0\""), b"hola\n")).await;
    let done = done.unwrap();
    assert!(done.status.success());
    assert_eq!(out, b"hola\nsh\n");
    assert_eq!((done.stdout_bytes, done.stdout_dropped), (8, 0));
}

#[tokio::test]
async fn environment_and_directory() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = sh("pwd -P; echo $WHO $TERTULIA_RUN; test -n \"$PATH\"");
    program.work_dir = Some(dir.path().to_owned());
    program.env = vec![
        ("WHO".into(), "ana".into()),
        (MARKER_VAR.into(), "no".into()),
    ];
    let (done, out) = go(&program, b"").await;
    assert!(done.unwrap().status.success());
    let place = dir.path().canonicalize().unwrap();
    let expected = format!("{}\nana {}\n", place.display(), program.marker);
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[tokio::test]
async fn stdin_stays_open_until_the_last_chunk() {
    let program = sh("while read -r line; do echo \"got $line\"; done; echo end");
    let (input, chunks) = mpsc::channel(1);
    let (sender, mut output) = mpsc::channel(8);
    let (limits, cancel) = (limits(), CancellationToken::new());
    let running = run(&program, Input::Chunks(chunks), &limits, &cancel, sender);
    let talk = async {
        for (part, answer) in [("a\n", "got a\n"), ("b\n", "got b\n")] {
            input.send(Vec::new()).await.unwrap();
            input.send(part.into()).await.unwrap();
            assert_eq!(output.recv().await.unwrap(), answer.as_bytes());
        }
        drop(input);
        collect(output).await
    };
    let (done, rest) = tokio::join!(running, talk);
    assert!(done.unwrap().status.success());
    assert_eq!(rest, b"end\n");
}

#[tokio::test]
async fn big_prompt_both_ways() {
    let prompt: Vec<u8> = (0..1_048_576u32).map(|i| (i % 251) as u8).collect();
    let (done, out) = go(&sh("exec cat"), &prompt).await;
    assert!(done.unwrap().status.success());
    assert!(out == prompt);
}

#[tokio::test]
async fn writes_much_before_it_reads_much() {
    let (done, out) = go(
        &sh("head -c 1000000 /dev/zero; wc -c"),
        &vec![b'x'; 1 << 20],
    )
    .await;
    assert!(done.unwrap().status.success());
    assert_eq!(out[1_000_000..].trim_ascii(), b"1048576");
}

#[tokio::test]
async fn does_not_read_its_prompt() {
    for script in ["exec 0<&-; echo ok", "head -c 1 >/dev/null; echo ok"] {
        let (done, out) = go(&sh(script), &vec![b'x'; 1 << 20]).await;
        assert!(done.unwrap().status.success());
        assert_eq!(out, b"ok\n");
    }
}

#[tokio::test]
async fn exit_code_signal_and_stderr() {
    let done = go(&sh("echo mal >&2; exit 7"), b"").await.0.unwrap();
    assert_eq!(
        (done.status.code(), done.stderr_tail.as_str()),
        (Some(7), "mal\n")
    );
    let done = go(&sh("kill -9 $$"), b"").await.0.unwrap();
    assert_eq!(done.status.signal(), Some(9));
}

#[tokio::test]
async fn keeps_the_tail_of_stderr() {
    // 3-byte characters, so that the cut splits one.
    let script = "i=0; while [ $i -lt 9000 ]; do echo €€€; i=$((i+1)); done >&2; echo fin >&2";
    let tail = go(&sh(script), b"").await.0.unwrap().stderr_tail;
    assert!(tail.ends_with("€\nfin\n") && !tail.contains('\u{fffd}'));
    assert!(tail.len() <= STDERR_TAIL && tail.len() > STDERR_TAIL - 4);
}

#[tokio::test]
async fn missing_or_not_executable() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: &str| -> PathBuf {
        let path = dir.path().join(name);
        // Written by another process: a copy of this process's open file, in a child that another
        // test is just starting, would make it "busy".
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", r#"printf "%s\n" "$1" > "$0"; chmod "$2" "$0""#]);
        assert!(
            shell
                .arg(&path)
                .args([text, mode])
                .status()
                .unwrap()
                .success()
        );
        path
    };
    let mut program = sh("");
    for name in ["no-such-program-here".into(), dir.path().join("nothing")] {
        program.command = name;
        let error = go(&program, b"").await.0.unwrap_err();
        assert!(matches!(error, ProcessError::NotFound { .. }), "{error:?}");
        assert!(error.to_string().contains("no"));
    }
    for path in [
        file("plain", "#!/bin/sh", "644"),
        file("lost", "#!/no/such/interpreter", "755"),
        file("text", "no program at all", "755"),
        dir.path().to_owned(),
    ] {
        program.command = path;
        let error = go(&program, b"").await.0.unwrap_err();
        assert!(
            matches!(error, ProcessError::NotExecutable { .. }),
            "{error:?}"
        );
    }
    program = sh("true");
    program.work_dir = Some(dir.path().join("nowhere"));
    let error = go(&program, b"").await.0.unwrap_err();
    assert!(matches!(error, ProcessError::WorkDir { .. }), "{error:?}");
}

#[tokio::test]
async fn silence_ends_it() {
    let program = sh("echo started; echo why >&2; sleep 300");
    let idle = Some(DEADLINE / 2);
    let sleeps = || {
        let sleeping = proc_with("cmdline", "300");
        let ours = left(&program.marker);
        sleeping.iter().any(|pid| ours.contains(pid))
    };
    let limits = Limits { idle, ..limits() };
    let never = CancellationToken::new();
    let ((done, out), ()) = tokio::join!(
        go_with(&program, b"", &limits, &never),
        pass_once("all is said", sleeps, DEADLINE / 2),
    );
    assert_eq!(out, b"started\n");
    match done.unwrap_err() {
        ProcessError::Idle { limit, stderr_tail } => {
            assert!(Some(limit) == idle && stderr_tail.starts_with("why\n"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn output_on_stderr_is_a_sign_of_life() {
    let program = sh("for i in 1 2 3 4 5 6 7 8 9; do sleep 0.5; echo . >&2; done; echo done");
    let limits = Limits {
        idle: Some(Duration::from_secs(4)),
        ..limits()
    };
    let (done, out) = go_with(&program, b"", &limits, &CancellationToken::new()).await;
    assert!(done.unwrap().status.success());
    assert_eq!(out, b"done\n");
}

#[tokio::test]
async fn total_limit_ends_a_talker() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap 'echo bye >&2; exit' TERM; while :; do echo; sleep 0.01; echo > up; done";
    let mut program = sh(script);
    program.work_dir = Some(dir.path().to_owned());
    let total = Some(DEADLINE / 2);
    let limits = Limits {
        total,
        grace: DEADLINE,
        ..limits()
    };
    let never = CancellationToken::new();
    let talks = || dir.path().join("up").exists();
    let ((done, out), ()) = tokio::join!(
        go_with(&program, b"", &limits, &never),
        pass_once("it talks", talks, DEADLINE / 2),
    );
    assert!(!out.is_empty());
    match done.unwrap_err() {
        ProcessError::Timeout { stderr_tail, .. } => assert!(stderr_tail.ends_with("bye\n")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn cancelled_before_it_starts() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (done, _) = go_with(&sh("exit 0"), b"", &limits(), &cancel).await;
    assert!(matches!(done, Err(ProcessError::Cancelled)));
}

#[tokio::test]
async fn cancelled_while_it_ignores_term() {
    let program = sh("trap '' TERM; while :; do sleep 300; done");
    cancelled(&program, &limits(), || left(&program.marker).len() == 2).await;
}

#[tokio::test]
async fn term_comes_once_and_wakes_the_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let script = "trap 'echo TERM >> log; kill $!; sleep 0.2; exit' TERM; sleep 300 & echo up > log; \
                  sh -c 'kill -STOP $$' & wait; wait";
    let mut program = sh(script);
    program.work_dir = Some(dir.path().to_owned());
    let limits = Limits {
        grace: DEADLINE,
        ..limits()
    };
    let stopped = || {
        let state = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/stat"));
        let pids = left(&program.marker);
        pids.iter()
            .any(|pid| state(pid).is_ok_and(|text| text.contains(") T ")))
    };
    cancelled(&program, &limits, stopped).await;
    assert_eq!(fs::read_to_string(log).unwrap(), "up\nTERM\n");
}

#[tokio::test]
async fn own_sessions_end_on_cancel() {
    let program =
        sh("setsid sleep 300 & (setsid sh -c 'trap \"\" TERM; sleep 300; sleep 300' &) ; wait");
    let sleeping = || {
        proc_with("cmdline", "300")
            .iter()
            .filter(|p| left(&program.marker).contains(p))
            .count()
            == 2
    };
    cancelled(&program, &limits(), sleeping).await;
}

#[tokio::test]
async fn own_sessions_end_on_normal_exit() {
    // Repeated: the grandchildren are caught at every stage of fork, setsid and exec.
    let dir = tempfile::tempdir().unwrap();
    let held = fs::File::create(dir.path().join("held")).unwrap();
    for round in 0..24 {
        let scripts = [
            "setsid sleep 300 >/dev/null 2>&1 & echo out",
            "(setsid sleep 300 >/dev/null 2>&1 &); echo out",
        ];
        let mut program = sh(&format!("exec 9>held; flock 9; {}", scripts[round % 2]));
        program.work_dir = Some(dir.path().to_owned());
        let (done, out) = go(&program, b"").await;
        assert!(done.unwrap().status.success());
        assert_eq!(out, b"out\n");
        // A process in the middle of exec has no environment to be seen by, but it has the lock.
        wait_until("no process has the lock", || held.try_lock().is_ok());
        held.unlock().unwrap();
    }
}

#[tokio::test]
async fn those_without_marker_end_too() {
    let token = format!("300.{}", unique());
    let found = || proc_with("cmdline", &token).len();
    // Both shells die of TERM at once; the sleeper that ignores it must still be remembered.
    let script = format!("setsid env -i sh -c 'trap \"\" TERM; exec sleep {token}' & wait");
    let program = sh(&script);
    let sleeping = || !proc_with("cmdline", &token).is_empty();
    cancelled(&program, &limits(), sleeping).await;
    assert_eq!(found(), 0);
    // After a normal exit nothing links it to the run, but it was recorded before.
    let program = sh(&format!(
        "setsid env -i sleep {token} >/dev/null 2>&1 & sleep 0.5"
    ));
    let limits = Limits {
        record: Duration::from_millis(20),
        ..limits()
    };
    let (done, _) = go_with(&program, b"", &limits, &CancellationToken::new()).await;
    assert!(done.unwrap().status.success());
    assert_eq!(found(), 0);
}

#[tokio::test]
async fn many_and_forking() {
    let script = "i=0; while [ $i -lt 30 ]; do setsid sh -c 'while :; do sleep 0.01; done' & i=$((i+1)); done; wait";
    let program = sh(script);
    cancelled(&program, &limits(), || left(&program.marker).len() > 30).await;
}

#[tokio::test]
async fn a_grandchild_holding_stdout_is_not_waited_for() {
    let (done, out) = go(&sh("sleep 300 & echo hi"), b"").await;
    assert!(done.unwrap().status.success());
    assert_eq!(out, b"hi\n");
    // The same if it continues to write.
    let (done, out) = go(&sh("yes & exit 3"), b"").await;
    assert_eq!(done.unwrap().status.code(), Some(3));
    assert!(out.starts_with(b"y\n"));
}

#[tokio::test]
async fn output_over_the_limit_is_counted() {
    let limits = Limits {
        output: 1000,
        ..limits()
    };
    let program = sh("head -c 300000 /dev/zero");
    let (done, out) = go_with(&program, b"", &limits, &CancellationToken::new()).await;
    let done = done.unwrap();
    assert_eq!(out.len(), 1000);
    assert_eq!((done.stdout_bytes, done.stdout_dropped), (300_000, 299_000));
}

#[tokio::test]
async fn a_slow_listener_gets_everything() {
    let program = sh("exec head -c 400000 /dev/zero");
    let limits = Limits {
        idle: Some(DEADLINE),
        total: None,
        ..limits()
    };
    // The pipe is full, so the runner waits for its listener.
    let writes = || {
        let call = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/syscall"));
        let is_write = |call: String| call.starts_with("1 ") || call.starts_with("64 ");
        left(&program.marker)
            .iter()
            .any(|pid| call(pid).is_ok_and(is_write))
    };
    let (sender, mut receiver) = mpsc::channel(1);
    let cancel = CancellationToken::new();
    let (done, total) = tokio::join!(run(&program, b"", &limits, &cancel, sender), async {
        let mut total = 0;
        while let Some(chunk) = receiver.recv().await {
            total += chunk.len();
            if total < 200_000 {
                pass_once("the program waits", writes, DEADLINE * 2).await;
            }
        }
        total
    });
    assert_eq!((total, done.unwrap().stdout_dropped), (400_000, 0));
}

#[tokio::test]
async fn nobody_listens() {
    let (sender, receiver) = mpsc::channel(1);
    drop(receiver);
    let program = sh("head -c 200000 /dev/zero; echo done >&2");
    let done = run(&program, b"", &limits(), &CancellationToken::new(), sender)
        .await
        .unwrap();
    assert_eq!((done.stdout_bytes, done.stdout_dropped), (200_000, 200_000));
    assert_eq!(done.stderr_tail, "done\n");
}

const STUBBORN: &str = "trap '' TERM; setsid sh -c 'sleep 300; sleep 300' & sleep 300; sleep 300";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_future_leaves_nothing() {
    let program = sh(STUBBORN);
    let marker = program.marker.clone();
    let (sender, _receiver) = mpsc::channel(1);
    let task = tokio::spawn(async move {
        run(&program, b"", &limits(), &CancellationToken::new(), sender).await
    });
    wait_until_async("all four run", || all_run(&marker, 4)).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert!(left(&marker).is_empty());
}

#[test]
fn runtime_shutdown_leaves_nothing() {
    let program = sh(STUBBORN);
    let marker = program.marker.clone();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (sender, _receiver) = mpsc::channel(1);
    runtime.spawn(
        async move { run(&program, b"", &limits(), &CancellationToken::new(), sender).await },
    );
    runtime.block_on(wait_until_async("all four run", || all_run(&marker, 4)));
    drop(runtime);
    assert!(left(&marker).is_empty());
}

#[tokio::test]
async fn dropped_in_the_grace_time_kills_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = sh(
        "trap 'echo > told' TERM; (trap '' TERM; setsid sh -c 'sleep 300; sleep 300') & \
         while :; do sleep 300; done",
    );
    program.work_dir = Some(dir.path().to_owned());
    let cancel = CancellationToken::new();
    let limits = Limits {
        grace: DEADLINE * 2,
        ..limits()
    };
    let (sender, _receiver) = mpsc::channel(1);
    tokio::select! {
        done = run(&program, b"", &limits, &cancel, sender) => panic!("{done:?}"),
        () = async {
            wait_until_async("all four run", || all_run(&program.marker, 4)).await;
            cancel.cancel();
            let told = || dir.path().join("told").exists();
            wait_until_async("the shell was told to end", told).await;
            assert!(!left(&program.marker).is_empty());
        } => {}
    }
    // Dropping waits for the killed ones only for a while; the grace time is much longer.
    wait_until_async("none is left", || left(&program.marker).is_empty()).await;
}

#[test]
fn utf8_in_pieces() {
    let text = "añ€😀z";
    for size in 1..=text.len() {
        let mut stream = Utf8Stream::default();
        let mut out: String = text
            .as_bytes()
            .chunks(size)
            .map(|c| stream.push(c))
            .collect();
        out += &stream.finish();
        assert_eq!((out.as_str(), stream.invalid_bytes()), (text, 0));
    }
    // However it is split, the text is the same as decoded at once.
    let bad = b"a\xffb\xe2\x82c\xf0\x9f\x98\x80\xc3\xed\xa0\x80\xe2\x82";
    for size in 1..=bad.len() {
        let mut stream = Utf8Stream::default();
        let mut out: String = bad.chunks(size).map(|c| stream.push(c)).collect();
        out += &stream.finish();
        assert_eq!(out, String::from_utf8_lossy(bad));
        assert_eq!(stream.invalid_bytes(), 1 + 2 + 1 + 3 + 2);
        assert_eq!(stream.finish(), "");
    }
}

#[test]
fn a_guard_that_is_dropped_has_nothing_ended() {
    use tertulia_agents::process::guard::Guard;
    let folder = tempfile::tempdir().unwrap();
    let (pid, ended) = (folder.path().join("pid"), folder.path().join("ended"));
    let helper = |name: &str| {
        let script = format!(
            "echo $$ > '{}'; cat > /dev/null; touch '{}'",
            pid.display(),
            ended.display()
        );
        let args = ["-c".into(), script.into(), "sh".into()];
        Guard::new("/bin/sh".into(), args.to_vec(), name.to_owned())
    };
    // Nothing is started before a marker is requested.
    drop(helper("unused"));
    let guard = helper("run");
    assert_eq!(guard.run().unwrap(), "run");
    let process = wait_for("the helper runs", || {
        let written = fs::read_to_string(&pid).ok()?;
        written.strip_suffix('\n').map(|pid| format!("/proc/{pid}"))
    });
    drop(guard);
    wait_until("the helper is gone", || !fs::exists(&process).unwrap());
    assert!(!ended.exists());
}
