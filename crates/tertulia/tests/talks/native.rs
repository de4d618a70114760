//! Sessions kept by the agent itself: a vendor's program resumes its own session and receives only
//! the messages that it lacks.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::stage::write_program;
use crate::home::{Home, messages};

/// Counts its runs, saves its arguments and input, and determines the session to resume.
const KEEPING: &str = r#"
n=$(($(cat "$LOG/count" 2>/dev/null || echo 0) + 1)); echo $n > "$LOG/count"
printf '%s\n' "$@" > "$LOG/args.$n"; cat > "$LOG/said.$n"
id=native-$n; resumed=; before=
for arg in "$@"; do case "$before" in --resume|resume|fork) id=$arg; resumed=1;; esac; before=$arg; done
for arg in "$@"; do case "$arg" in --fork-session|fork) id=native-$n;; esac; done
"#;

pub const CLAUDE: &str = r#"
if [ "$resumed" ] && [ -e "$LOG/lost" ]; then
  printf '{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"%s","usage":{},"errors":["No conversation found with session ID: %s"]}\n' "$id" "$id"
  exit 1
fi
printf '{"type":"system","subtype":"init","session_id":"%s","tools":[],"model":"opus"}\n' "$id"
printf '{"type":"assistant","message":{"id":"msg_%s","role":"assistant","content":[{"type":"text","text":"answer %s"}]},"parent_tool_use_id":null,"session_id":"%s"}\n' $n $n "$id"
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"%s","result":"answer %s","usage":{"input_tokens":100,"output_tokens":2}}\n' "$id" $n
"#;

/// Reports the token usage of the whole thread.
pub const CODEX: &str = r#"
turns=$(($(cat "$LOG/$id" 2>/dev/null || echo 0) + 1)); echo $turns > "$LOG/$id"
printf '{"type":"thread.started","thread_id":"%s"}\n{"type":"turn.started"}\n' "$id"
printf '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"answer %s"}}\n' $n
printf '{"type":"turn.completed","usage":{"input_tokens":%s,"output_tokens":%s}}\n' ${turns}000 ${turns}0
"#;

/// A home with a script in place of a vendor's program.
pub struct Stage {
    pub home: Home,
    name: &'static str,
}

impl Stage {
    pub fn new(name: &'static str, script: &str) -> Stage {
        let stage = Stage {
            home: Home::new(),
            name,
        };
        stage.with_script(script)
    }

    /// Replaces the script.
    pub fn with_script(self, script: &str) -> Stage {
        let Stage { home, name } = self;
        let (log, program) = (home.folder("log"), home.folder("bin").join(name));
        let script = format!("LOG='{}'\n{KEEPING}{script}", log.display());
        write_program(&program, &script);
        home.settings(&format!(
            "[agents.{name}]\ncommand = \"{}\"\ntype = \"{name}\"\n",
            program.display()
        ));
        Stage { home, name }
    }

    pub fn log(&self, file: &str) -> PathBuf {
        self.home.path().join("log").join(file)
    }

    /// Returns the arguments and the input of the nth run.
    pub fn given(&self, run: usize) -> (Vec<String>, String) {
        let read = |name: &str| fs::read_to_string(self.log(&format!("{name}.{run}"))).unwrap();
        (
            read("args").lines().map(str::to_owned).collect(),
            read("said"),
        )
    }

    /// Returns the session that the nth run was to resume.
    pub fn resumed(&self, run: usize) -> Option<String> {
        let (args, _) = self.given(run);
        let at = args.iter().position(|arg| arg.ends_with("resume"))?;
        Some(args[at + 1].clone())
    }

    /// Runs one turn and returns the notes.
    pub fn say(&self, more: &[&str], words: &str) -> String {
        let args = [&["chat", "--agent", self.name, "-p", words], more].concat();
        self.home.run(&args).ok().stderr
    }
}

#[test]
fn the_next_turn_goes_on_with_its_session_and_gives_the_new_words_only() {
    let stage = Stage::new("claude", CLAUDE);
    stage.say(&[], "the first words");
    stage.say(&["-c"], "the second words");
    // The agent need not be named again.
    stage
        .home
        .run(&["chat", "-c", "-p", "the third words"])
        .ok();
    assert_eq!(stage.resumed(1), None);
    assert_eq!(stage.given(1).1, "the first words");
    for (run, words) in [(2, "the second words"), (3, "the third words")] {
        assert_eq!(stage.resumed(run).as_deref(), Some("native-1"));
        assert_eq!(stage.given(run).1, words);
    }
    let shown = stage.home.run(&["show", "@", "--entries"]).ok();
    let link = "claude keeps this in its session native-1";
    assert_eq!(shown.stdout.matches(link).count(), 1, "{shown:#?}");
    assert_eq!(stage.home.said("@").len(), 6);
}

/// A program finds its session only in the folder where the session began, so it is run there.
#[test]
fn from_another_folder_a_program_goes_on_where_its_session_began() {
    let stage = Stage::new("claude", &format!("pwd > \"$LOG/pwd.$n\"{CLAUDE}"));
    let began = stage.home.folder("began");
    let first = ["chat", "--agent", "claude", "-p", "the first words"];
    stage.home.prepare(&first).folder(&began).run().ok();
    let session = stage.home.run(&["list", "--all", "--json"]).ok().json();
    let id = session["sessions"][0]["id"].as_str().unwrap().to_owned();
    let go_on = ["chat", "-r", &id, "-p", "the second words"];
    let output = stage.home.run(&go_on).ok();
    output.notes(&format!("Working in {}", began.display()));
    let folder = |run: usize| fs::read_to_string(stage.log(&format!("pwd.{run}"))).unwrap();
    assert_eq!(folder(2), folder(1));
    assert_eq!(stage.resumed(2).as_deref(), Some("native-1"));
    // If that folder is gone, a new session begins, with a note.
    fs::remove_dir_all(&began).unwrap();
    stage.home.run(&go_on).code(2).notes("is gone");
    let moved = ["chat", "-r", &id, "--here", "-p", "the second words"];
    stage.home.run(&moved).ok();
    assert_eq!(stage.resumed(3), None);
    assert_eq!(folder(3).trim(), stage.home.project().to_str().unwrap());
    assert!(stage.given(3).1.contains("the first words"));
    stage.home.run(&go_on).ok().lacks("is gone");
    assert_eq!(stage.resumed(4).as_deref(), Some("native-3"));
}

/// Codex sometimes completes a turn without printing an answer.
#[test]
fn a_turn_of_codex_without_an_answer_is_asked_again() {
    let silent = r#"if [ -e "$LOG/silent.$n" ]; then
printf '{"type":"thread.started","thread_id":"%s"}\n{"type":"turn.started"}\n' "$id"
printf '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}\n'; exit; fi"#;
    let stage = Stage::new("codex", &format!("{silent}{CODEX}"));
    fs::write(stage.log("silent.1"), "").unwrap();
    let noted = stage.say(&[], "hello");
    assert!(
        noted.contains("ended without an answer: asked again"),
        "{noted}"
    );
    assert_eq!(stage.home.said("@"), ["hello", "answer 2"]);
    for run in ["silent.3", "silent.4", "silent.5"] {
        fs::write(stage.log(run), "").unwrap();
    }
    let args = ["chat", "--agent", "codex", "-p", "hello"];
    let output = stage.home.run(&args).code(6);
    output
        .notes("without printing an answer")
        .notes("ask again");
    // A turn that may have changed something is not repeated.
    let args = [
        "chat",
        "--agent",
        "codex",
        "--approve",
        "all",
        "-p",
        "hello",
    ];
    stage.home.run(&args).code(6).lacks("asked again");
    assert!(!stage.log("args.6").exists());
}

#[test]
fn what_others_said_meanwhile_is_given_too() {
    let stage = Stage::new("claude", CLAUDE);
    stage.say(&[], "the first words");
    let between = ["chat", "-c", "--agent", "demo", "-p", "echo an interlude"];
    stage.home.run(&between).ok();
    stage.say(&["-c"], "the last words");
    assert_eq!(stage.resumed(2).as_deref(), Some("native-1"));
    let said = stage.given(2).1;
    assert!(said.contains("demo: an interlude"), "{said}");
    assert!(said.ends_with("the last words"), "{said}");
    assert!(!said.contains("the first words"), "{said}");
    stage.say(&["-c"], "and on");
    assert_eq!(stage.given(3).1, "and on");
}

#[test]
fn a_turn_that_failed_is_given_again() {
    let stage = Stage::new(
        "claude",
        &format!("if [ -e \"$LOG/broken\" ]; then exit 3; fi{CLAUDE}"),
    );
    stage.say(&[], "the first words");
    fs::write(stage.log("broken"), "").unwrap();
    let args = ["chat", "-c", "-p", "the lost words"];
    stage.home.run(&args).code(6);
    fs::remove_file(stage.log("broken")).unwrap();
    stage.say(&["-c"], "the last words");
    let said = stage.given(3).1;
    assert!(said.contains("the lost words") && said.ends_with("the last words"));
    assert!(!said.contains("the first words"), "{said}");
}

#[test]
fn a_fork_does_not_touch_the_session_of_the_original() {
    let stage = Stage::new("claude", CLAUDE);
    stage.say(&[], "the first words");
    let original = stage.home.show("@")["id"].as_str().unwrap().to_owned();
    let fork = stage.home.run(&["fork", &original]).ok().stdout;
    stage.say(&["-r", fork.trim()], "the second words");
    stage.say(&["-r", &original, "--fork"], "the third words");
    for (run, words) in [(2, "the second words"), (3, "the third words")] {
        assert_eq!(stage.resumed(run), None);
        let said = stage.given(run).1;
        assert!(
            said.contains("the first words") && said.ends_with(words),
            "{said}"
        );
    }
    // Each resumes its own session.
    stage.say(&["-r", fork.trim()], "in the fork");
    stage.say(&["-r", &original], "in the original");
    assert_eq!(stage.resumed(4).as_deref(), Some("native-2"));
    assert_eq!(stage.resumed(5).as_deref(), Some("native-1"));
    assert_eq!(stage.given(5).1, "in the original");
}

#[test]
fn a_lost_session_is_said_and_the_whole_talk_is_given() {
    let stage = Stage::new("claude", CLAUDE);
    stage.say(&[], "the first words");
    fs::write(stage.log("lost"), "").unwrap();
    let noted = stage.say(&["-c"], "the second words");
    assert!(noted.contains("has lost its session native-1"), "{noted}");
    assert_eq!(stage.resumed(2).as_deref(), Some("native-1"));
    assert_eq!(stage.resumed(3), None);
    let said = stage.given(3).1;
    assert!(said.contains("the first words") && said.ends_with("the second words"));
    fs::remove_file(stage.log("lost")).unwrap();
    stage.say(&["-c"], "the third words");
    assert_eq!(stage.resumed(4).as_deref(), Some("native-3"));
    assert_eq!(stage.given(4).1, "the third words");
    let shown = stage.home.run(&["show", "@", "--entries"]).ok();
    shown
        .says("its session native-1")
        .says("its session native-3");
}

#[test]
fn of_sums_each_turn_gets_its_part() {
    let stage = Stage::new("codex", CODEX);
    let used = |reference: &str| -> Vec<Value> {
        let messages = messages(&stage.home.show(reference));
        let told = messages.iter().map(|message| message["usage"].clone());
        told.filter(|usage| !usage.is_null()).collect()
    };
    let each = json!({ "input": 1000, "output": 10 });
    stage.say(&[], "one");
    stage.say(&["-c"], "two");
    // The usage of other agents is not part of the thread's totals.
    let between = ["chat", "-c", "--agent", "demo", "-p", "echo an interlude"];
    stage.home.run(&between).ok();
    stage.say(&["-c"], "three");
    let told = used("@");
    for at in [0, 1, 3] {
        assert_eq!(told[at]["input"], each["input"], "{told:?}");
        assert_eq!(told[at]["output"], each["output"], "{told:?}");
    }
    // A fork begins a new thread, whose totals start at zero.
    let fork = stage.home.run(&["fork", "@"]).ok().stdout;
    stage.say(&["-r", fork.trim()], "four");
    stage.say(&["-r", fork.trim()], "five");
    let told = used(fork.trim());
    for at in [4, 5] {
        assert_eq!(told[at]["input"], each["input"], "{told:?}");
    }
}

/// A session of Claude Code in its own folder.
fn claude_history(stage: &Stage) -> PathBuf {
    let folder = stage.home.path().join(".claude/projects/w");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("5d0f4c3e-0000-4000-8000-000000000001.jsonl");
    let lines = ["user", "assistant"].map(|role| recorded_line(stage, role, role));
    fs::write(&file, lines.concat()).unwrap();
    file
}

fn recorded_line(stage: &Stage, role: &str, uuid: &str) -> String {
    let content = json!([{ "type": "text", "text": format!("words of {uuid}") }]);
    let line = json!({
        "type": role, "uuid": uuid, "parentUuid": if role == "user" { "" } else { "user" },
        "sessionId": "5d0f4c3e-0000-4000-8000-000000000001", "timestamp": "2026-01-02T03:04:05Z",
        "cwd": stage.home.project().to_str().unwrap(),
        "message": { "id": uuid, "role": role, "content": content, "model": "opus[1m]" },
    });
    format!("{line}\n")
}

fn resume_imported(stage: &Stage, words: &str) -> crate::home::Output {
    let args = [
        "chat",
        "-r",
        "5d0f4c3e-0000-4000-8000-000000000001",
        "-p",
        words,
    ];
    stage
        .home
        .prepare(&args)
        .env("HOME", stage.home.path())
        .run()
        .ok()
}

#[test]
fn an_imported_session_goes_on_in_a_copy_of_the_programs_own() {
    let stage = Stage::new("claude", CLAUDE);
    let file = claude_history(&stage);
    stage.home.run(&["import", file.to_str().unwrap()]).ok();
    let noted = resume_imported(&stage, "more");
    assert_eq!(
        stage.resumed(1).as_deref(),
        Some("5d0f4c3e-0000-4000-8000-000000000001")
    );
    let (args, said) = stage.given(1);
    assert!(args.contains(&"--fork-session".to_owned()), "{args:?}");
    assert_eq!(said, "more");
    // The model is the same, whatever the size of its context.
    noted.lacks("recorded with the model").lacks("as text");
    resume_imported(&stage, "and more").lacks("as text");
    assert_eq!(stage.resumed(2).as_deref(), Some("native-1"));
    let (args, said) = stage.given(2);
    assert!(!args.contains(&"--fork-session".to_owned()), "{args:?}");
    assert_eq!(said, "and more");
}

#[test]
fn an_imported_session_that_changed_is_handed_over_and_that_is_said() {
    let stage = Stage::new("claude", CLAUDE);
    let file = claude_history(&stage);
    stage.home.run(&["import", file.to_str().unwrap()]).ok();
    let grown = fs::read_to_string(&file).unwrap() + &recorded_line(&stage, "assistant", "later");
    fs::write(&file, grown).unwrap();
    resume_imported(&stage, "more").notes("has changed since its import");
    assert_eq!(stage.resumed(1), None);
    assert!(stage.given(1).1.contains("words of user"));

    let stage = Stage::new("claude", CLAUDE);
    let file = claude_history(&stage);
    stage.home.run(&["import", file.to_str().unwrap()]).ok();
    fs::remove_file(&file).unwrap();
    resume_imported(&stage, "more").notes("is told the conversation as text");
    assert_eq!(stage.resumed(1), None);
}
