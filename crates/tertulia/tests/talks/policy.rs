//! The tool policy applies to programs with their own tools, and ephemeral sessions leave nothing
//! behind.

use std::fs;

use super::stage::write_program;
use crate::home::{Home, files_below};

/// Writes its input to `sent`, with the content of files named as `@path`, as Claude Code does.
const CLAUDE: &str = r#"
words=$(cat); printf '%s' "$words" > "$LOG/sent"
for word in $words; do case "$word" in @*) cat "${word#@}" >> "$LOG/sent" 2>/dev/null;; esac; done
echo '{"type":"system","subtype":"init","session_id":"n1","tools":[],"model":"opus"}'
echo '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"seen"}]},"parent_tool_use_id":null}'
echo '{"type":"result","subtype":"success","is_error":false,"session_id":"n1","result":"seen","usage":{}}'
"#;

/// Saves its input in its home, and fails without its settings.
const GEMINI: &str = r#"
own="${GEMINI_CLI_HOME:-$HOME}/.gemini"
test -e "$own/settings.json" || exit 41
mkdir -p "$own/tmp/p/chats"; cat > "$own/tmp/p/chats/session.jsonl"
echo '{"type":"init","session_id":"g1","model":"m"}'
echo '{"type":"message","role":"assistant","content":"kept","delta":true}'
echo '{"type":"result","status":"success","stats":{}}'
"#;

const CODEX: &str = r#"
cat > /dev/null
echo '{"type":"thread.started","thread_id":"x1"}'
echo '{"type":"item.completed","item":{"id":"i0","type":"agent_message","text":"here"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'
"#;

/// An Agent Client Protocol agent that offers no modes and uses tools without asking.
const FREE: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{}}}\n' "$id";;
    *'"session/new"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s1"}}\n' "$id";;
    *'"session/prompt"'*) touch used
      printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"}}}}\n'
      printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$id";;
  esac
done
"#;

fn home(name: &str, kind: &str, script: &str) -> Home {
    let home = Home::new();
    let (log, program) = (home.folder("log"), home.folder("bin").join(name));
    write_program(&program, &format!("LOG='{}'\n{script}", log.display()));
    home.settings(&format!(
        "[agents.{name}]\ntype = \"{kind}\"\ncommand = \"{}\"\n",
        program.display()
    ));
    home
}

#[test]
fn words_do_not_make_a_program_read_a_file() {
    let home = home("claude", "claude", CLAUDE);
    let outside = home.path().join("outside.txt");
    fs::write(&outside, "OUTSIDE WORD").unwrap();
    let words = format!("review: see @{} and @Override", outside.display());
    let args = [
        "chat",
        "--agent",
        "claude",
        "--approve",
        "none",
        "-p",
        &words,
    ];
    home.run(&args).ok().says("seen");
    let sent = fs::read_to_string(home.path().join("log/sent")).unwrap();
    assert!(!sent.contains("OUTSIDE WORD"), "{sent}");
    // The text remains readable, and an `@` that names no file is unchanged.
    assert!(sent.contains(&format!("@{}", outside.display())), "{sent}");
    assert!(sent.contains(" @Override"), "{sent}");
    assert_eq!(home.said("@")[0], words);
}

#[test]
fn one_that_is_not_known_to_ask_is_refused_unless_it_may_do_everything() {
    let home = home("free", "acp", FREE);
    let used = home.project().join("used");
    for mode in ["none", "low"] {
        home.run(&["chat", "--agent", "free", "--approve", mode, "-p", "go"])
            .code(6)
            .notes("may run tools without asking")
            .notes("--approve all")
            .notes("`asks` in [agents.free]");
        assert!(!used.exists(), "{mode}");
    }
    home.run(&["chat", "--agent", "free", "--approve", "all", "-p", "go"])
        .ok()
        .says("done");
    fs::remove_file(&used).unwrap();
    let file = home.path().join(".config/tertulia/config.toml");
    let settings = fs::read_to_string(&file).unwrap();
    home.settings(&format!("{settings}asks = true\n"));
    home.run(&["chat", "--agent", "free", "--approve", "low", "-p", "go"])
        .ok()
        .says("done");
}

#[test]
fn who_cannot_ask_is_said_at_the_start() {
    let home = home("codex", "codex", CODEX);
    let words = "codex cannot ask for permission here: it runs read-only";
    let output = home.run(&["chat", "--agent", "codex", "-p", "hello"]).ok();
    assert_eq!(output.stderr.matches(words).count(), 1, "{}", output.stderr);
    let output = home
        .run(&[
            "chat",
            "--agent",
            "codex",
            "--approve",
            "all",
            "-p",
            "hello",
        ])
        .ok();
    assert!(!output.stderr.contains("cannot ask"), "{}", output.stderr);
}

#[test]
fn an_ephemeral_session_is_in_no_file() {
    let home = home("gemini-cli", "gemini-cli", GEMINI);
    let own = home.folder(".gemini");
    fs::write(own.join("settings.json"), "{}").unwrap();
    let kept = || {
        let all = files_below(home.path()).into_iter();
        let texts = all.filter_map(|file| fs::read_to_string(file).ok());
        texts.filter(|text| text.contains("UNIQUE WORD")).count()
    };
    let scratch = home.folder("scratch");
    let run = |more: &[&str]| {
        let args = [
            &["chat", "--agent", "gemini-cli", "-p", "say UNIQUE WORD"],
            more,
        ]
        .concat();
        home.prepare(&args)
            .env("TMPDIR", &scratch)
            .run()
            .ok()
            .says("kept");
    };
    run(&["--ephemeral"]);
    assert_eq!(kept(), 0);
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
    run(&[]);
    assert!(kept() > 0);
}

#[test]
fn earlier_names_mean_the_programs_that_are_here() {
    let home = home("codex", "codex", CODEX);
    home.run(&["chat", "--agent", "openai-codex", "-p", "hello"])
        .ok()
        .says("here");
    let member = |name: &str, kind: &str, more: &str| {
        format!(
            r#"{{"name":"{name}","displayName":"{name}","role":"r","type":"{kind}","baseDir":".","systemInstruction":"x"{more}}}"#
        )
    };
    let team = format!(
        r#"{{"schemaVersion":"1.2","agents":[{{"name":"openai-codex"}}],"team":{{"name":"t","description":"d","members":[{},{}]}}}}"#,
        member("ana", "human", ""),
        member("bot", "ai", r#","agentType":"openai-codex""#)
    );
    fs::write(home.project().join("team.json"), team).unwrap();
    home.run(&["team", "./team.json", "[NEXT: bot] hello"])
        .ok()
        .says("here");
}
