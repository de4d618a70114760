use super::*;
use crate::opencode::KnownGeneration;
use crate::{Part, Patience, PromptMessage, Whence};
use tertulia_core::entry::{Role, Usage};

fn program(vendor: Vendor) -> VendorProgram {
    VendorProgram {
        name: "bot".into(),
        vendor,
        model: Some("m".into()),
        command: vendor.program().into(),
        args: vec!["--mine".into()],
        env: vec![("KEY".into(), "value".into())],
        without: Vec::new(),
        work_dir: None,
        system: Some("Be kind.".into()),
        patience: Patience::default(),
        whence: Whence::settings("bot"),
        retries: 2,
        homes: None,
        session_files: None,
        found: None,
        generation: KnownGeneration::default(),
    }
}

fn question(approval: Approval) -> AgentRequest {
    AgentRequest {
        messages: vec![
            PromptMessage::plain(Role::User, "ana", "one"),
            PromptMessage::plain(Role::Assistant, "bot", "two"),
            PromptMessage::plain(Role::User, "ana", "three"),
        ],
        approval,
        ..AgentRequest::default()
    }
}

fn native(known: usize) -> NativeSession {
    NativeSession {
        id: "id-1".into(),
        cwd: None,
        known,
        spent: Usage::default(),
        fork: false,
    }
}

fn launched(
    program: &VendorProgram,
    question: &AgentRequest,
    native: Option<&NativeSession>,
) -> Launch {
    launch(program, question, native, &Surroundings::default())
}

fn shown(launch: &Launch) -> (String, String) {
    let env: Vec<String> = launch.env.iter().map(|(k, v)| format!("{k}={v}")).collect();
    (launch.args.join(" "), env.join(" "))
}

#[test]
fn each_program_is_told_in_its_own_words() {
    let check = |vendor, approval, resumed: bool, args: &str, env: &str| {
        let native = resumed.then(|| native(2));
        let launch = launched(&program(vendor), &question(approval), native.as_ref());
        assert_eq!(shown(&launch), (args.to_owned(), env.to_owned()));
    };
    const CLAUDE: &str =
        "-p --output-format stream-json --verbose --include-partial-messages --model m";
    let claude_env = "CLAUDE_CODE_MAX_RETRIES=2 CLAUDE_CODE_DISABLE_FILE_MENTIONS=1 KEY=value";
    let with = |rest: &str| format!("{CLAUDE} {rest}");
    let hookless = format!("--settings {CLAUDE_NO_HOOKS}");
    check(
        Vendor::Claude,
        Approval::Low,
        false,
        &with(&format!(
            "--append-system-prompt Be kind. {hookless} --mine"
        )),
        claude_env,
    );
    check(
        Vendor::Claude,
        Approval::None,
        true,
        &with(&format!(
            "--resume id-1 --append-system-prompt Be kind. {hookless} --tools  --mine"
        )),
        claude_env,
    );
    let asking = "--input-format stream-json --permission-prompt-tool stdio --mine";
    let all = "--append-system-prompt Be kind. --permission-mode acceptEdits --disallowedTools";
    check(
        Vendor::Claude,
        Approval::All,
        false,
        &with(&format!("{all} {CLAUDE_DIALOGS} {asking}")),
        claude_env,
    );
    check(
        Vendor::Claude,
        Approval::Edits,
        false,
        &with(&format!(
            "--append-system-prompt Be kind. {hookless} --disallowedTools {CLAUDE_DIALOGS} {asking}"
        )),
        claude_env,
    );
    check(
        Vendor::Claude,
        Approval::Ask,
        true,
        &with(&format!(
            "--resume id-1 --append-system-prompt Be kind. {hookless} --disallowedTools {CLAUDE_DIALOGS} {asking}"
        )),
        claude_env,
    );
    let codex = "exec --json --skip-git-repo-check -c features.plugins=false \
                 -c features.unbounded_connection_retries=false -m m -s";
    for approval in [Approval::None, Approval::Low, Approval::Ask] {
        let args = format!("{codex} read-only --mine -");
        check(Vendor::Codex, approval, false, &args, "KEY=value");
    }
    let args = format!("{codex} workspace-write --mine resume id-1 -");
    check(Vendor::Codex, Approval::All, true, &args, "KEY=value");
}

#[test]
fn so_are_the_other_two() {
    let check = |vendor, approval, resumed: bool, args: &str, env: &str| {
        let native = resumed.then(|| native(2));
        let launch = launched(&program(vendor), &question(approval), native.as_ref());
        assert_eq!(
            shown(&launch),
            (args.to_owned(), format!("{env} KEY=value"))
        );
    };
    let gemini = "--skip-trust --output-format stream-json -m m";
    let once = "GEMINI_CLI_NO_RELAUNCH=true";
    for (approval, resumed, rest) in [
        (Approval::Ask, true, "--resume id-1 --mine"),
        (Approval::None, false, "--approval-mode plan --mine"),
        (Approval::All, false, "--yolo --mine"),
    ] {
        let args = format!("{gemini} {rest}");
        check(Vendor::GeminiCli, approval, resumed, &args, once);
    }
    let run = "run --format json --thinking -m m";
    let env = |access| {
        let env = opencode::environment(access, false, None).into_iter();
        let words: Vec<String> = env.map(|(name, value)| format!("{name}={value}")).collect();
        words.join(" ")
    };
    for (approval, resumed, rest, access) in [
        (
            Approval::Ask,
            true,
            "--session id-1 --mine",
            Some(Access::Looking),
        ),
        (Approval::None, false, "--mine", Some(Access::Nothing)),
        (Approval::All, false, "--auto --mine", None),
    ] {
        let env = env(access);
        let args = format!("{run} {rest}");
        check(Vendor::OpenCode, approval, resumed, &args, &env);
    }
}

#[test]
fn the_second_opencode_runs_with_a_server_of_its_own() {
    let around = Surroundings {
        generation: Generation::Second,
        ..Surroundings::default()
    };
    let question = AgentRequest {
        ephemeral: true,
        ..question(Approval::All)
    };
    let launch = launch(&program(Vendor::OpenCode), &question, None, &around);
    let expected = "run --format json --thinking --standalone -m m --auto --log-level none --mine";
    assert_eq!(launch.args.join(" "), expected);
}

#[test]
fn those_that_can_keep_nothing_are_told_to() {
    let check = |vendor, expected: &str| {
        let question = AgentRequest {
            ephemeral: true,
            ..question(Approval::Low)
        };
        let launch = launched(&program(vendor), &question, None);
        assert!(
            launch.args.iter().any(|word| word == expected),
            "{vendor:?}"
        );
    };
    check(Vendor::Claude, "--no-session-persistence");
    check(Vendor::Codex, "--ephemeral");
}

#[test]
fn those_that_cannot_are_given_another_place_for_it() {
    let question = AgentRequest {
        ephemeral: true,
        ..question(Approval::Low)
    };
    let around = Surroundings {
        home: Some("/scratch".into()),
        ..Surroundings::default()
    };
    let env = |vendor| shown(&launch(&program(vendor), &question, None, &around)).1;
    assert!(env(Vendor::GeminiCli).contains("GEMINI_CLI_HOME=/scratch"));
    assert!(env(Vendor::OpenCode).contains("OPENCODE_DB=:memory:"));
}

#[test]
fn no_word_makes_a_program_read_a_file() {
    let said = |vendor| {
        let program = VendorProgram {
            work_dir: Some("/".into()),
            ..program(vendor)
        };
        let question = AgentRequest {
            messages: vec![PromptMessage::plain(Role::User, "ana", "see @/etc/passwd")],
            ..AgentRequest::default()
        };
        launched(&program, &question, Some(&native(0))).stdin
    };
    assert_eq!(said(Vendor::Claude), "see \u{2060}@/etc/passwd");
    assert_eq!(said(Vendor::GeminiCli), "see \\@/etc/passwd");
    for vendor in [Vendor::Codex, Vendor::OpenCode] {
        assert_eq!(said(vendor), "see @/etc/passwd");
    }
}

#[test]
fn what_it_has_not_heard_comes_on_stdin() {
    let check = |vendor, known: Option<usize>, expected: &str| {
        let native = known.map(native);
        let question = question(Approval::Low);
        let launch = launched(&program(vendor), &question, native.as_ref());
        assert_eq!(launch.stdin, expected, "{vendor:?} {known:?}");
    };
    let talk = "ana: one\n\nbot: two\n\nthree";
    check(Vendor::Claude, None, talk);
    for vendor in [Vendor::Codex, Vendor::GeminiCli, Vendor::OpenCode] {
        check(vendor, None, &format!("Be kind.\n\n{talk}"));
    }
    for vendor in Vendor::ALL {
        check(vendor, Some(2), "three");
        check(vendor, Some(1), "bot: two\n\nthree");
        check(vendor, Some(9), "three");
    }
}

#[test]
fn what_is_too_long_for_an_argument_is_none() {
    let (short, long) = ("Be kind.", "x".repeat(LONGEST_ARGUMENT + 1));
    let check = |own: &str, part: Option<&str>, argument: Option<&str>, stdin: &str| {
        let program = VendorProgram {
            system: Some(own.to_owned()),
            ..program(Vendor::Claude)
        };
        let question = AgentRequest {
            messages: vec![PromptMessage::plain(Role::User, "ana", "one")],
            part: part.map(|system| Part {
                system: system.to_owned(),
                ..Part::default()
            }),
            ..question(Approval::Low)
        };
        let launch = launched(&program, &question, None);
        let flag = |word: &String| word == "--append-system-prompt";
        let place = launch.args.iter().position(flag);
        let told = place.map(|place| launch.args[place + 1].as_str());
        assert_eq!(told, argument);
        assert_eq!(launch.stdin, stdin);
    };
    check(short, None, Some(short), "one");
    check(
        short,
        Some("You are Bo."),
        Some("Be kind.\n\nYou are Bo."),
        "one",
    );
    check(short, Some(&long), Some(short), "one");
    check(
        &long,
        Some("You are Bo."),
        Some("You are Bo."),
        &format!("{long}\n\none"),
    );
    check(&long, Some(&long), None, &format!("{long}\n\none"));
}

#[test]
fn whoever_is_answered_is_spoken_to_in_json() {
    let question = question(Approval::Ask);
    let launched = self::launched(&program(Vendor::Claude), &question, Some(&native(2)));
    assert_eq!(launched.stdin, permission::prompt("three"));
    assert!(launched.asks);
    let launched = self::launched(&program(Vendor::Codex), &question, Some(&native(2)));
    assert_eq!(launched.stdin, "three");
    assert!(!launched.asks);
}

#[test]
fn no_option_passes_for_a_session() {
    for id in [
        "ses_e1f66cd56ffe",
        "01a1e094-1b23-7bb3-b1de-481e4e055140",
        "x",
    ] {
        assert!(is_session_id(id), "{id}");
    }
    for id in ["", "--yolo", "-", "a b", "a\n", "a/../b", "é"] {
        assert!(!is_session_id(id), "{id}");
    }
    assert!(!is_session_id(&"x".repeat(101)));
}

#[test]
fn a_session_that_others_use_is_continued_in_a_copy() {
    let forked = NativeSession {
        fork: true,
        ..native(2)
    };
    let check = |vendor, expected: &str| {
        let launch = launched(&program(vendor), &question(Approval::Low), Some(&forked));
        let (args, _) = shown(&launch);
        assert!(args.contains(expected), "{args}");
    };
    check(Vendor::Claude, "--resume id-1 --fork-session");
    check(Vendor::Codex, "fork id-1 -");
    check(Vendor::OpenCode, "--session id-1 --fork");
    // It has no option for a copy.
    check(Vendor::GeminiCli, "--resume id-1");
}
