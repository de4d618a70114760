//! Vendors' programs keep files of the sessions in which tertulia ran them. An import recognises
//! them: nothing stands twice in the list, and nothing is counted twice.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::native::Stage;
use crate::home::{Home, until};

/// Answers, and appends the turn to its own file as Claude Code does.
pub const CLAUDE: &str = r#"
now() { date -u +%Y-%m-%dT%H:%M:%S.%3NZ; }
printf '{"type":"system","subtype":"init","session_id":"%s","tools":[],"model":"opus"}\n' "$id"
wait_for() { [ -z "$GATE" ] || while [ ! -e "$GATE$1" ]; do sleep 0.1; done; }
wait_for 1
words=$(sed ':a;N;$!ba;s/\n/\\n/g' "$LOG/said.$n"); file="$FILES/$id.jsonl"
printf '{"type":"user","uuid":"u%s","parentUuid":"p%s","sessionId":"%s","cwd":"/w","timestamp":"%s","message":{"role":"user","content":"%s"}}\n' $n $n "$id" "$(now)" "$words" >> "$file"
line() { printf '{"type":"assistant","uuid":"%s","parentUuid":"u%s","sessionId":"%s","timestamp":"%s","requestId":"req_%s","message":{"id":"msg_%s","role":"assistant","model":"opus","content":[%s],"usage":{"input_tokens":50,"output_tokens":1}}}\n' "$1" $n "$id" "$(now)" "$1" "$1" "$2"; }
call='{"type":"tool_use","id":"toolu_'$n'","name":"Read","input":{"file_path":"/w/a"}}'
line "c$n" "$call" >> "$file"
printf '{"type":"assistant","message":{"id":"msg_c%s","role":"assistant","content":[%s]},"parent_tool_use_id":null,"session_id":"%s","request_id":"req_c%s"}\n' $n "$call" "$id" $n
result='{"type":"tool_result","tool_use_id":"toolu_'$n'","content":"text"}'
printf '{"type":"user","uuid":"r%s","parentUuid":"c%s","sessionId":"%s","timestamp":"%s","message":{"role":"user","content":[%s]}}\n' $n $n "$id" "$(now)" "$result" >> "$file"
printf '{"type":"user","message":{"role":"user","content":[%s]},"parent_tool_use_id":null,"session_id":"%s"}\n' "$result" "$id"
wait_for 2
text='{"type":"text","text":"answer '$n'"}'
line "a$n" "$text" >> "$file"
wait_for 3
printf '{"type":"assistant","message":{"id":"msg_a%s","role":"assistant","content":[%s]},"parent_tool_use_id":null,"session_id":"%s","request_id":"req_a%s"}\n' $n "$text" "$id" $n
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"%s","result":"answer %s","usage":{"input_tokens":100,"output_tokens":2}}\n' "$id" $n
"#;

/// The same for Codex, which names neither messages nor requests while it answers.
pub const CODEX: &str = r#"
now() { date -u +%Y-%m-%dT%H:%M:%S.%3NZ; }
words=$(sed ':a;N;$!ba;s/\n/\\n/g' "$LOG/said.$n"); file="$FILES/rollout-2026-01-02T03-04-05-$id.jsonl"
turns=$(($(cat "$LOG/$id" 2>/dev/null || echo 0) + 1)); echo $turns > "$LOG/$id"
line() { printf '{"timestamp":"%s","type":"%s","payload":%s}\n' "$(now)" "$1" "$2" >> "$file"; }
[ -e "$file" ] || line session_meta '{"id":"'$id'","timestamp":"'$(now)'","cwd":"/w","originator":"codex_exec","cli_version":"1"}'
line turn_context '{"model":"gpt-5.5","cwd":"/w"}'
line response_item '{"type":"message","role":"user","content":[{"type":"input_text","text":"'"$words"'"}]}'
line response_item '{"type":"function_call","name":"exec_command","arguments":"{}","call_id":"call_'$n'"}'
line event_msg '{"type":"token_count","info":{"total_token_usage":{"input_tokens":'$(((turns-1)*1000+400))',"output_tokens":'$(((turns-1)*10+4))'},"last_token_usage":{"input_tokens":400,"output_tokens":4}}}'
line response_item '{"type":"function_call_output","call_id":"call_'$n'","output":"made"}'
line response_item '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"answer '$n'"}]}'
line event_msg '{"type":"token_count","info":{"total_token_usage":{"input_tokens":'${turns}000',"output_tokens":'${turns}0'},"last_token_usage":{"input_tokens":600,"output_tokens":6}}}'
printf '{"type":"thread.started","thread_id":"%s"}\n{"type":"turn.started"}\n' "$id"
printf '{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"make","aggregated_output":"made","exit_code":0,"status":"completed"}}\n'
printf '{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"answer %s"}}\n' $n
printf '{"type":"turn.completed","usage":{"input_tokens":%s,"output_tokens":%s}}\n' ${turns}000 ${turns}0
"#;

/// A stage whose program keeps files below the home folder.
pub struct Kept {
    pub stage: Stage,
    pub files: PathBuf,
}

impl Kept {
    pub fn new(name: &'static str, script: &str, below: &str) -> Kept {
        let holder = Stage::new(name, "");
        let files = holder.home.folder(below);
        let script = format!("FILES='{}'\n{script}", files.display());
        Kept {
            stage: holder.with_script(&script),
            files,
        }
    }

    pub fn claude() -> Kept {
        Kept::new("claude", CLAUDE, ".claude/projects/w")
    }

    pub fn codex() -> Kept {
        Kept::new("codex", CODEX, ".codex/sessions")
    }

    pub fn home(&self) -> &Home {
        &self.stage.home
    }

    pub fn import(&self) -> Value {
        let folder = self.files.display().to_string();
        let imported = self.home().run(&["import", &folder, "--json"]).ok().json();
        imported["imported"].clone()
    }

    /// Returns the number of sessions, input tokens and output tokens.
    pub fn totals(&self) -> (u64, u64, u64) {
        let stats = self.home().run(&["stats", "--all", "--json"]).ok().json();
        let totals = &stats["totals"];
        let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{stats:#}"));
        (
            number(&totals["sessions"]),
            number(&totals["tokens"]["input"]),
            number(&totals["tokens"]["output"]),
        )
    }

    fn append(&self, file: &str, lines: &[Value]) {
        let file = self.files.join(file);
        let mut file = fs::OpenOptions::new().append(true).open(file).unwrap();
        for line in lines {
            writeln!(file, "{line}").unwrap();
        }
    }

    /// Adds a turn to Claude Code's file, as if the program had been used by itself.
    fn type_in_claude(&self, n: &str, words: &str, answer: &str) {
        self.type_in("native-1", n, words, answer);
    }

    /// The same for a session with this id.
    pub fn type_in(&self, id: &str, n: &str, words: &str, answer: &str) {
        let now = Timestamp::now();
        self.append(
            &format!("{id}.jsonl"),
            &[
                json!({ "type": "user", "uuid": format!("nu{n}"), "parentUuid": "x", "timestamp": now,
                    "sessionId": id, "message": { "role": "user", "content": words } }),
                json!({ "type": "assistant", "uuid": format!("na{n}"), "parentUuid": format!("nu{n}"),
                    "timestamp": now, "sessionId": id, "requestId": format!("req_n{n}"),
                    "message": { "id": format!("msg_n{n}"), "role": "assistant", "model": "opus",
                        "content": [{ "type": "text", "text": answer }],
                        "usage": { "input_tokens": 7, "output_tokens": 3 } } }),
            ],
        );
    }
}

#[test]
fn a_session_that_tertulia_ran_with_claude_is_not_imported_again() {
    let kept = Kept::claude();
    kept.stage.say(&[], "one");
    kept.stage.say(&["-c"], "two");
    assert_eq!(kept.totals(), (1, 200, 4));
    let imported = kept.import();
    assert_eq!(imported[0]["result"], "known", "{imported:#}");
    let discover = ["import", "--discover", "--yes"];
    let discovered = kept
        .home()
        .prepare(&discover)
        .env("HOME", kept.home().path());
    discovered.run().ok();
    assert_eq!(kept.totals(), (1, 200, 4));
    let file = kept.files.join("native-1.jsonl").display().to_string();
    let report = kept.home().run(&["import", &file]).ok();
    report.says("nothing new: tertulia ran it as");
    // Words that were typed in the program itself are added, and the program is not told them again.
    kept.type_in_claude("1", "three, by itself", "fine");
    let imported = kept.import();
    assert_eq!(imported[0]["result"], "extended", "{imported:#}");
    assert_eq!(kept.totals(), (1, 207, 7));
    kept.stage.say(&["-c"], "four");
    assert_eq!(kept.stage.resumed(3).as_deref(), Some("native-1"));
    assert_eq!(kept.stage.given(3).1, "four");
    assert_eq!(kept.import()[0]["result"], "known");
    assert_eq!(kept.totals(), (1, 307, 9));
    kept.home().run(&["store", "rebuild"]).ok();
    assert_eq!(kept.totals(), (1, 307, 9));
}

#[test]
fn a_session_that_tertulia_ran_with_codex_is_not_imported_again() {
    let kept = Kept::codex();
    kept.stage.say(&[], "one");
    kept.stage.say(&["-c"], "two");
    assert_eq!(kept.totals(), (1, 2000, 20));
    let imported = kept.import();
    assert_eq!(imported[0]["result"], "known", "{imported:#}");
    assert_eq!(kept.totals(), (1, 2000, 20));
}

#[test]
fn a_conversation_that_was_handed_over_brings_no_new_words() {
    let kept = Kept::claude();
    kept.home().say("echo before");
    kept.stage.say(&["-c"], "and now you");
    assert!(kept.stage.given(1).1.contains("before"));
    let said = kept.home().said("@");
    let imported = kept.import();
    assert_eq!(imported[0]["result"], "known", "{imported:#}");
    assert_eq!(kept.home().said("@"), said);
    // Both go on: the program's words become a fork.
    kept.home()
        .run(&["chat", "-c", "--agent", "demo", "-p", "echo here"])
        .ok();
    kept.type_in_claude("1", "there", "yes");
    let imported = kept.import();
    assert_eq!(imported[0]["result"], "forked", "{imported:#}");
    let fork = imported[0]["session"].as_str().unwrap();
    let shown = kept.home().show(fork);
    assert_eq!(shown["parent"]["relation"], "fork", "{shown:#}");
    assert_eq!(
        kept.home().said(fork).last().map(String::as_str),
        Some("yes")
    );
    assert_eq!(kept.import()[0]["result"], "known");
}

/// Without the key, nothing of a sealed session comes in from the program's files as plain.
#[test]
fn the_files_of_a_sealed_session_wait_for_its_key() {
    let kept = Kept::claude();
    let home = kept.home();
    let key = home.path().join("keys/id.txt");
    home.run(&["seal", "--new-identity", key.to_str().unwrap()])
        .ok();
    let config = home.path().join(".config/tertulia/config.toml");
    let agents = fs::read_to_string(config).unwrap();
    let with_key = format!("{agents}[seal]\nidentity = {key:?}\n");
    home.settings_as_they_are(&with_key);
    kept.stage.say(&["--sealed"], "one");
    kept.type_in_claude("1", "xyzzy by itself", "fine");
    home.settings_as_they_are(&agents);
    let imported = kept.import();
    assert_eq!(imported[0]["result"], "sealed", "{imported:#}");
    let file = kept.files.join("native-1.jsonl").display().to_string();
    home.run(&["import", &file])
        .ok()
        .says("is sealed: its key is needed to import");
    let discover = ["import", "--discover", "--yes"];
    home.prepare(&discover)
        .env("HOME", home.path())
        .run()
        .ok()
        .says("is sealed: its key is needed");
    assert_eq!(home.all().len(), 1);
    home.settings_as_they_are(&with_key);
    assert_eq!(kept.import()[0]["result"], "extended");
    assert_eq!(home.all().len(), 1);
    assert_eq!(home.said("@").last().map(String::as_str), Some("fine"));
    let stored = home.run(&["export", "@", "--format", "jsonl"]).ok();
    stored.lacks("xyzzy");
    home.run(&["doctor"]).ok();
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_watched_folder_leaves_a_running_answer_to_its_session() {
    let kept = Kept::claude();
    let folder = kept.files.display().to_string();
    let spawn = |prepared: crate::home::Prepared<'_>| {
        let mut command = prepared.command();
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Running(command.stderr(Stdio::null()).spawn().unwrap())
    };
    let gate = kept.home().path().join("gate").display().to_string();
    let _watching = spawn(kept.home().prepare(&["import", &folder, "--watch"]));
    let asked = ["chat", "--agent", "claude", "-p", "one"];
    let mut asking = spawn(kept.home().prepare(&asked).env("GATE", &gate));
    until("the name of the program's session", || {
        let shown = kept.home().run(&["show", "@", "--entries"]);
        shown.stdout.contains("native-1").then_some(())
    });
    fs::write(format!("{gate}1"), "").unwrap();
    until("the result of the tool", || {
        (kept.home().said("@").len() == 3).then_some(())
    });
    fs::write(format!("{gate}2"), "").unwrap();
    // Then the file has the answer, and the session does not.
    let import = ["import", &folder, "--json"];
    let waits = || kept.home().run(&import).ok().json()["imported"][0]["result"] == "waiting";
    until("the answer in the file", || waits().then_some(()));
    kept.home()
        .run(&["import", &folder])
        .ok()
        .says("is open: import again when it is closed");
    fs::write(format!("{gate}3"), "").unwrap();
    assert!(asking.0.wait().unwrap().success());
    kept.type_in_claude("1", "by itself", "fine");
    until("the import of what was typed", || {
        (kept.totals() == (1, 107, 5)).then_some(())
    });
    assert_eq!(kept.home().all().len(), 1);
}

#[test]
fn an_export_that_went_on_in_another_program_comes_back_as_its_continuation() {
    let kept = Kept::claude();
    kept.stage.say(&[], "one");
    let by_agent = |kept: &Kept| {
        let stats = ["stats", "--all", "--by", "agent", "--csv"];
        kept.home().run(&stats).ok().stdout
    };
    let before = by_agent(&kept);
    for (form, program) in [("codex", "codex"), ("claude-code", "claude")] {
        let file = kept.home().path().join(format!("{program}.jsonl"));
        let path = file.display().to_string();
        kept.home()
            .run(&["export", "@", "--format", form, "-o", &path])
            .ok();
        kept.home()
            .run(&["import", &path])
            .ok()
            .says("nothing new: exported from");
        assert_eq!(by_agent(&kept), before, "{form}");
        assert_eq!(kept.home().all().len(), 1, "{form}");
    }
    let codex = kept.home().path().join("codex.jsonl");
    let path = codex.display().to_string();
    let add = |words: &str, total: u64| {
        let now = Timestamp::now();
        let message = |role: &str, kind: &str, text: &str| {
            json!({ "timestamp": now, "type": "response_item", "payload": { "type": "message",
                "role": role, "content": [{ "type": kind, "text": text }] } })
        };
        let used = json!({ "input_tokens": total, "output_tokens": total });
        let usage = json!({ "timestamp": now, "type": "event_msg", "payload": { "type": "token_count",
            "info": { "total_token_usage": used,
                "last_token_usage": { "input_tokens": 5, "output_tokens": 1 } } } });
        let lines = [
            message("user", "input_text", words),
            message("assistant", "output_text", &format!("codex says {words}")),
            usage,
        ];
        let mut file = fs::OpenOptions::new().append(true).open(&codex).unwrap();
        for line in lines {
            writeln!(file, "{line}").unwrap();
        }
    };
    add("there", 1000);
    kept.home().run(&["import", &path]).ok().says("added to");
    assert_eq!(kept.totals(), (1, 105, 3));
    kept.stage.say(&["-c"], "here");
    add("there again", 2000);
    let imported = kept.home().run(&["import", &path, "--json"]).ok().json();
    let imported = &imported["imported"][0];
    assert_eq!(imported["result"], "forked", "{imported:#}");
    assert_eq!(kept.totals(), (2, 210, 6));
    kept.home().run(&["store", "rebuild"]).ok();
    assert_eq!(kept.totals(), (2, 210, 6));
}
