//! Answers of programs name the requests that they used, as an import of the program's own file
//! names them: whichever way the same request comes in, it counts once.

use std::fs;

use serde_json::Value;

use super::own_files::Kept;
use super::stage::write_program;
use crate::home::Home;

/// Answers with two requests, and keeps a file as Gemini CLI does.
const GEMINI: &str = r#"
now() { date -u +%Y-%m-%dT%H:%M:%S.%3NZ; }
file="$FILES/session-2026-01-02T03-04-$id.jsonl"
[ -e "$file" ] || printf '{"sessionId":"%s","projectHash":"%s","startTime":"%s","kind":"main"}\n' "$id" "$(printf '%064d' 1)" "$(now)" > "$file"
printf '{"type":"init","session_id":"%s","model":"gemini-2.5-pro"}\n' "$id"
said() { printf '{"id":"%s","timestamp":"%s","type":"%s","content":%s%s}\n' "$1" "$(now)" "$2" "$3" "$4" >> "$file"; }
tokens() { printf ',"tokens":{"input":%s,"output":%s,"cached":0,"thoughts":0,"tool":0,"total":1},"model":"gemini-2.5-pro"' $1 $2; }
said "u$n" user '[{"text":"words"}]' ''
said "g$n-1" gemini '"looking"' "$(tokens 40 1)"
said "g$n-2" gemini '"answer"' "$(tokens 60 2)"
printf '{"type":"message","role":"assistant","content":"answer","delta":true}\n'
printf '{"type":"result","status":"success","stats":{"input_tokens":100,"output_tokens":3,"cached":0}}\n'
"#;

/// The same as OpenCode's folder of files.
const OPENCODE: &str = r#"
ms() { date +%s%3N; }
ses="ses_native_$n"; for arg in "$@"; do case "$arg" in ses_*) ses=$arg;; esac; done
put() { mkdir -p "$(dirname "$FILES/../$1")"; printf '%s' "$2" > "$FILES/../$1"; }
put "session/global/$ses.json" '{"id":"'$ses'","directory":"/w","title":"t","time":{"created":'$(ms)'}}'
put "message/$ses/msg_$n-0.json" '{"id":"msg_'$n'-0","role":"user","time":{"created":'$(ms)'}}'
put "part/msg_$n-0/prt_0.json" '{"id":"prt_0","type":"text","text":"words"}'
step() {
  put "message/$ses/msg_$n-$1.json" '{"id":"msg_'$n-$1'","role":"assistant","modelID":"m","time":{"created":'$(ms)',"completed":'$(ms)'},"tokens":{"input":'$2',"output":'$3'}}'
  put "part/msg_$n-$1/prt_1.json" '{"id":"prt_1","type":"step-start"}'
  put "part/msg_$n-$1/prt_2.json" '{"id":"prt_2","type":"text","text":"part '$1'"}'
  put "part/msg_$n-$1/prt_3.json" '{"id":"prt_3","type":"step-finish","reason":"stop","tokens":{"input":'$2',"output":'$3',"reasoning":0,"cache":{"read":0,"write":0}}}'
  printf '{"type":"step_start","sessionID":"%s","part":{}}\n{"type":"text","sessionID":"%s","part":{"text":"part %s"}}\n' $ses $ses $1
  printf '{"type":"step_finish","sessionID":"%s","part":{"reason":"stop","tokens":{"input":%s,"output":%s,"reasoning":0,"cache":{"read":0,"write":0}}}}\n' $ses $2 $3
}
step 1 40 1; step 2 60 2
"#;

/// Speaks the Agent Client Protocol, and keeps the file that `$KEEP` writes.
const ACP: &str = r#"
while read -r request; do
  number=$(printf '%s' "$request" | sed -n 's/.*"id":\([0-9a-f"-]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$number" "$1"; }
  case "$request" in
    *'"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":false},"authMethods":[]}';;
    *'"session/new"'*) answer '{"sessionId":"'$id'"}';;
    *'"session/prompt"'*)
      keep
      printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"answer"}}}}\n' "$id"
      answer '{"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":3,"totalTokens":103}}';;
    *) [ -z "$number" ] || answer '{}';;
  esac
done
"#;

const KEEPS_CODEX: &str = r#"id=native-1
now() { date -u +%Y-%m-%dT%H:%M:%S.%3NZ; }
keep() {
  file="$FILES/rollout-2026-01-02T03-04-05-$id.jsonl"
  line() { printf '{"timestamp":"%s","type":"%s","payload":%s}\n' "$(now)" "$1" "$2" >> "$file"; }
  line session_meta '{"id":"'$id'","timestamp":"'$(now)'","cwd":"/w","originator":"codex_acp","cli_version":"1"}'
  line turn_context '{"model":"gpt-5.5","cwd":"/w"}'
  line response_item '{"type":"message","role":"user","content":[{"type":"input_text","text":"words"}]}'
  line response_item '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"answer"}]}'
  line event_msg '{"type":"token_count","info":{"total_token_usage":{"input_tokens":100,"output_tokens":3},"last_token_usage":{"input_tokens":100,"output_tokens":3}}}'
}
"#;

const KEEPS_CLAUDE: &str = r#"id=native-1
now() { date -u +%Y-%m-%dT%H:%M:%S.%3NZ; }
keep() {
  file="$FILES/$id.jsonl"
  printf '{"type":"user","uuid":"u","parentUuid":null,"sessionId":"%s","cwd":"/w","timestamp":"%s","message":{"role":"user","content":"words"}}\n' $id "$(now)" >> "$file"
  printf '{"type":"assistant","uuid":"a","parentUuid":"u","sessionId":"%s","timestamp":"%s","requestId":"req_1","message":{"id":"msg_1","role":"assistant","model":"opus","content":[{"type":"text","text":"answer"}],"usage":{"input_tokens":100,"output_tokens":3}}}\n' $id "$(now)" >> "$file"
}
"#;

/// Returns the requests that the answers of the newest session name.
fn recorded(home: &Home) -> Vec<String> {
    let shown = home.run(&["show", "@", "--json"]).ok().json();
    let entries = shown["entries"].as_array().unwrap().iter();
    let named = entries.filter_map(|entry| entry["requests"].as_array());
    let named = named
        .flatten()
        .map(|name| name.as_str().unwrap().to_owned());
    named.collect()
}

/// Returns the names of usage that an import into an empty store gives.
fn imported(home: &Home, files: &str) -> Vec<String> {
    let store = format!("files:{}", home.path().join("other").display());
    home.run(&["import", files, "--store", &store]).ok();
    let raw = ["show", "@", "--raw", "--store", &store];
    let lines = home.run(&raw).ok().stdout;
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter_map(|line| Some(line["usage_id"].as_str()?.to_owned()))
        .collect()
}

fn names_its_requests(kept: &Kept, count: usize) {
    kept.stage.say(&[], "words");
    let named = recorded(kept.home());
    assert_eq!(named.len(), count, "{named:?}");
    let files = kept.files.display().to_string();
    assert_eq!(named, imported(kept.home(), &files));
}

#[test]
fn claude_names_them_while_it_answers() {
    names_its_requests(&Kept::claude(), 2);
}

#[test]
fn those_of_codex_are_read_from_its_file() {
    names_its_requests(&Kept::codex(), 2);
}

#[test]
fn those_of_gemini_are_read_from_its_file() {
    names_its_requests(&Kept::new("gemini-cli", GEMINI, ".gemini/tmp/w/chats"), 2);
}

#[test]
fn those_of_opencode_are_read_from_its_file() {
    let below = ".local/share/opencode/storage/session";
    names_its_requests(&Kept::new("opencode", OPENCODE, below), 2);
}

#[test]
fn those_of_adapters_are_read_from_the_file_of_their_program() {
    for (program, keeps, below) in [
        ("codex-acp", KEEPS_CODEX, ".codex/sessions"),
        ("claude-agent-acp", KEEPS_CLAUDE, ".claude/projects/w"),
    ] {
        let home = Home::new();
        let files = home.folder(below).display().to_string();
        let command = home.folder("bin").join(program);
        write_program(&command, &format!("FILES='{files}'\n{keeps}{ACP}"));
        home.settings(&format!(
            "[agents.a]\ntype = \"acp\"\ncommand = \"{}\"\n",
            command.display()
        ));
        home.run(&["--agent", "a", "--approve", "all", "-p", "words"])
            .ok();
        let named = recorded(&home);
        assert_eq!(named.len(), 1, "{program}: {named:?}");
        assert_eq!(named, imported(&home, &files), "{program}");
    }
}

/// The program made a copy of its session, which went on by itself.
#[test]
fn a_copy_of_a_session_that_tertulia_ran_is_its_fork() {
    let kept = Kept::claude();
    kept.stage.say(&[], "one");
    kept.stage.say(&["-c"], "two");
    let own = fs::read_to_string(kept.files.join("native-1.jsonl")).unwrap();
    fs::write(
        kept.files.join("copy.jsonl"),
        own.replace("\"native-1\"", "\"copy\""),
    )
    .unwrap();
    let imported = kept.import();
    let results = imported.as_array().unwrap();
    assert!(
        results.iter().all(|one| one["result"] == "known"),
        "{imported:#}"
    );
    assert_eq!(kept.totals(), (1, 200, 4));
    kept.type_in("copy", "1", "by itself", "fine");
    kept.import();
    assert_eq!(kept.totals(), (2, 207, 7));
    let sessions = kept.home().all();
    assert_eq!(sessions.len(), 2);
    let fork = sessions
        .iter()
        .find(|row| row["parent"].is_object())
        .unwrap();
    assert_eq!(fork["parent"]["relation"], "fork");
    kept.home().run(&["store", "rebuild"]).ok();
    assert_eq!(kept.totals(), (2, 207, 7));
    // What is there is not brought in again.
    kept.import();
    assert_eq!(kept.totals(), (2, 207, 7));
}
