//! Programs in a file system that they cannot write. Where the kernel cannot confine, they must not
//! run at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tertulia_agents::approval::Approval;
use tertulia_agents::command::{Command, ReadOnly};
use tertulia_agents::process::{
    Confined, Finished, Kernel, Limits, MARKER_VAR, ProcessError, Program, run,
};
use tertulia_agents::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, Outcome, Patience,
    PromptMessage, Whence,
};
use tertulia_core::entry::Role;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A folder of a program, and one beside it.
struct Stage {
    _base: tempfile::TempDir,
    work: PathBuf,
    scratch: PathBuf,
}

fn stage() -> Stage {
    let base = tempfile::tempdir().unwrap();
    let (work, scratch) = (base.path().join("work"), base.path().join("scratch"));
    fs::create_dir(&work).unwrap();
    fs::create_dir(&scratch).unwrap();
    fs::write(work.join("kept.txt"), "kept\n").unwrap();
    Stage {
        _base: base,
        work,
        scratch,
    }
}

fn program(script: &str, work: &Path, writable: &[PathBuf]) -> Program {
    Program {
        command: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: Vec::new(),
        without: Vec::new(),
        work_dir: Some(work.to_owned()),
        marker: format!("confined-{}", work.display()),
        confined: Some(Confined {
            writable: writable.to_vec(),
        }),
    }
}

/// Runs a program and returns what it printed. `None` if the kernel cannot confine: then it must
/// have been refused.
async fn ran(program: &Program, input: &str) -> Option<(Finished, String)> {
    let (chunks, mut received) = mpsc::channel(16);
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let collect = async {
        let mut printed = Vec::new();
        while let Some(chunk) = received.recv().await {
            printed.extend(chunk);
        }
        String::from_utf8(printed).unwrap()
    };
    let (finished, printed) = tokio::join!(
        run(program, input.as_bytes(), &limits, &cancel, chunks),
        collect
    );
    match (Kernel::probe(), finished) {
        (Kernel::Confines, finished) => Some((finished.unwrap(), printed)),
        (Kernel::Cannot(_), Err(ProcessError::Unconfined { .. })) => None,
        (Kernel::Cannot(reason), other) => panic!("ran unconfined ({reason}): {other:?}"),
    }
}

#[tokio::test]
async fn no_kind_of_change_is_possible() {
    let stage = stage();
    let changes = [
        "echo x > new.txt",
        "echo x >> kept.txt",
        ": > kept.txt",
        "truncate -s 0 kept.txt",
        "rm kept.txt",
        "mv kept.txt moved.txt",
        "ln kept.txt linked.txt",
        "ln -s kept.txt link.txt",
        "mkdir folder",
        "mkfifo pipe",
        "cp kept.txt copy.txt",
        "echo x > ../beside.txt",
        "sh -c 'setsid sh -c \"echo x > new.txt\"'",
    ];
    for change in changes {
        let program = program(&format!("({change}); echo over"), &stage.work, &[]);
        if let Some((_, printed)) = ran(&program, "").await {
            assert_eq!(printed, "over\n", "{change}");
        }
        let left = fs::read_dir(&stage.work).unwrap().flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["kept.txt"], "{change}");
        let kept = fs::read_to_string(stage.work.join("kept.txt")).unwrap();
        assert_eq!(kept, "kept\n", "{change}");
        assert!(!stage.work.join("../beside.txt").exists(), "{change}");
    }
    // Only the program is confined: this process is not.
    fs::write(stage.work.join("new.txt"), "x").unwrap();
}

#[tokio::test]
async fn the_rest_of_a_filter_works() {
    let stage = stage();
    let script = "cat kept.txt; tr a-z A-Z; echo e > /dev/stderr; echo n > /dev/null; \
                  echo s > /dev/stdout; cat /proc/self/comm; exit 3";
    let Some((finished, printed)) = ran(&program(script, &stage.work, &[]), "words\n").await else {
        return;
    };
    assert_eq!(printed, "kept\nWORDS\ns\ncat\n");
    assert_eq!(finished.stderr_tail, "e\n");
    assert_eq!(finished.status.code(), Some(3));
}

#[tokio::test]
async fn chosen_paths_can_be_written() {
    let stage = stage();
    let (file, folder) = (stage.work.join("kept.txt"), stage.work.join("out"));
    fs::create_dir(&folder).unwrap();
    let script = "echo more >> kept.txt; : > out/a; mkdir out/b; mv out/a out/b/c; rm -r out/b; \
                  echo x > out/d; ls out; mv kept.txt out/ || echo stays";
    let writable = [file.clone(), folder.clone()];
    let Some((_, printed)) = ran(&program(script, &stage.work, &writable), "").await else {
        return;
    };
    assert_eq!(printed, "d\nstays\n");
    assert_eq!(fs::read_to_string(file).unwrap(), "kept\nmore\n");
}

#[tokio::test]
async fn a_path_that_does_not_exist_is_named() {
    let stage = stage();
    let missing = stage.work.join("missing");
    let program = program("true", &stage.work, std::slice::from_ref(&missing));
    let (chunks, _received) = mpsc::channel(16);
    let cancel = CancellationToken::new();
    let error = run(&program, b"", &Limits::default(), &cancel, chunks)
        .await
        .unwrap_err();
    let ProcessError::Unconfined { reason } = error else {
        panic!("{error:?}");
    };
    if Kernel::probe() == Kernel::Confines {
        assert!(reason.contains(&missing.display().to_string()), "{reason}");
    }
}

#[tokio::test]
async fn errors_of_starting_are_those_of_any_program() {
    if Kernel::probe() != Kernel::Confines {
        return;
    }
    let stage = stage();
    let mut program = program("true", &stage.work, &[]);
    program.command = "there-is-no-such-program".into();
    let (chunks, _received) = mpsc::channel(16);
    let cancel = CancellationToken::new();
    let error = run(&program, b"", &Limits::default(), &cancel, chunks).await;
    assert!(matches!(error, Err(ProcessError::NotFound { .. })));
}

#[tokio::test]
async fn a_cancelled_program_ends_with_all_its_processes() {
    if Kernel::probe() != Kernel::Confines {
        return;
    }
    let stage = stage();
    // The shell ignores TERM, and its child has a session of its own.
    let script = "trap '' TERM; setsid sleep 1000 & echo begun; cat; sleep 1000";
    let program = program(script, &stage.work, &[]);
    let limits = Limits {
        grace: Duration::from_millis(100),
        ..Limits::default()
    };
    let (chunks, mut received) = mpsc::channel(16);
    let cancel = CancellationToken::new();
    let stop = async {
        assert_eq!(received.recv().await.unwrap(), b"begun\n");
        cancel.cancel();
    };
    let (finished, ()) = tokio::join!(run(&program, b"", &limits, &cancel, chunks), stop);
    assert!(matches!(finished, Err(ProcessError::Cancelled)));
    let marker = format!("{MARKER_VAR}={}", program.marker);
    let left = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        environ
            .split(|b| *b == 0)
            .any(|one| one == marker.as_bytes())
    });
    assert_eq!(left.count(), 0);
}

/// Returns an agent whose program is a shell script.
fn agent(script: &str, stage: &Stage, kernel: Kernel) -> Command {
    Command {
        name: "filter".into(),
        model: None,
        command: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: Vec::new(),
        without: Vec::new(),
        work_dir: Some(stage.work.clone()),
        system: None,
        patience: Patience::default(),
        whence: Whence::settings("filter"),
        found: None,
        read_only: Some(ReadOnly {
            writable: Vec::new(),
            scratch: stage.scratch.clone(),
            kernel,
            settable: true,
        }),
    }
}

async fn answer(agent: &Command, approval: Approval) -> (Result<Outcome, AgentError>, String) {
    let request = AgentRequest {
        messages: vec![PromptMessage::plain(Role::User, "you", "hello")],
        // Processes that carry the same marker end together, whichever test started them.
        marker: uuid::Uuid::new_v4().to_string(),
        approval,
        ..AgentRequest::default()
    };
    let (sink, mut stream) = AgentSink::open(&CancellationToken::new());
    let answering = async {
        let outcome = agent.answer(&request, &sink).await;
        drop(sink);
        outcome
    };
    let collect = async {
        let mut text = String::new();
        while let Some(event) = stream.events.recv().await {
            if let AgentEvent::Text(more) = event {
                text.push_str(&more);
            }
        }
        text
    };
    tokio::join!(answering, collect)
}

const CONFINED: &[Approval] = &[
    Approval::None,
    Approval::Low,
    Approval::Ask,
    Approval::Edits,
];

#[tokio::test]
async fn an_agent_writes_only_under_all() {
    let script = "cat > /dev/null; echo x > touched.txt; echo done";
    for approval in CONFINED {
        let stage = stage();
        let agent = agent(script, &stage, Kernel::probe());
        answer(&agent, *approval).await.0.ok();
        assert!(!stage.work.join("touched.txt").exists(), "{approval:?}");
        let notices = agent.notices(*approval, false);
        assert!(notices[0].contains("runs read-only"), "{notices:?}");
        assert!(notices[0].contains("[agents.filter]"), "{notices:?}");
    }
    let stage = stage();
    let mut agent = agent(script, &stage, Kernel::probe());
    assert_eq!(answer(&agent, Approval::All).await.0, Ok(Outcome::Done));
    assert!(stage.work.join("touched.txt").exists());
    assert!(agent.notices(Approval::All, false).is_empty());
    // The user lets this program do as it likes.
    fs::remove_file(stage.work.join("touched.txt")).unwrap();
    agent.read_only = None;
    assert_eq!(answer(&agent, Approval::None).await.0, Ok(Outcome::Done));
    assert!(stage.work.join("touched.txt").exists());
    assert!(agent.notices(Approval::None, false).is_empty());
}

#[tokio::test]
async fn a_temporary_folder_is_there_and_goes_away() {
    let stage = stage();
    let script = "cat > /dev/null; echo x > \"$TMPDIR/a\"; mkdir \"$XDG_CACHE_HOME/b\"; \
                  cat \"$TMPDIR/a\"; ls \"$TMPDIR\"";
    let agent = agent(script, &stage, Kernel::probe());
    let (outcome, text) = answer(&agent, Approval::Low).await;
    if Kernel::probe() == Kernel::Confines {
        assert_eq!((outcome, text.as_str()), (Ok(Outcome::Done), "x\na\nb\n"));
    }
    assert_eq!(fs::read_dir(&stage.scratch).unwrap().count(), 0);
}

#[tokio::test]
async fn a_failure_says_how_to_let_it_write() {
    if Kernel::probe() != Kernel::Confines {
        return;
    }
    let stage = stage();
    let script = "cat > /dev/null; echo x > touched.txt";
    let mut agent = agent(script, &stage, Kernel::Confines);
    let error = answer(&agent, Approval::Ask).await.0.unwrap_err();
    assert_eq!(error.kind, FailureKind::Failed);
    assert!(error.message.contains("touched.txt"), "{error}");
    let hint = error.hint.unwrap();
    for way in [
        "`writable = [\"DIR\"]`",
        "`confine = false`",
        "--approve all",
    ] {
        assert!(hint.contains(way), "{hint}");
    }
    // Settings of the user are not about a program that a team file brings.
    let read_only = agent.read_only.as_mut().unwrap();
    read_only.settable = false;
    let hint = answer(&agent, Approval::Ask).await.0.unwrap_err().hint;
    let hint = hint.unwrap();
    assert!(
        hint.contains("--approve all") && !hint.contains("confine"),
        "{hint}"
    );
}

#[tokio::test]
async fn a_kernel_that_cannot_confine_is_named() {
    let stage = stage();
    let cannot = Kernel::Cannot("no Landlock".to_owned());
    let agent = agent("cat > /dev/null; echo x > touched.txt", &stage, cannot);
    for approval in CONFINED {
        let error = answer(&agent, *approval).await.0.unwrap_err();
        assert_eq!(error.kind, FailureKind::Unavailable);
        assert!(error.message.contains("no Landlock"), "{error}");
        let hint = error.hint.unwrap();
        assert!(
            hint.contains("`confine = false` in [agents.filter]"),
            "{hint}"
        );
        assert!(hint.contains("--approve all"), "{hint}");
        assert!(!stage.work.join("touched.txt").exists());
    }
    assert_eq!(answer(&agent, Approval::All).await.0, Ok(Outcome::Done));
    assert!(stage.work.join("touched.txt").exists());
}
