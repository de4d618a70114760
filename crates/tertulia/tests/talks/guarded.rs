//! Processes started by an agent's program or a tool end with tertulia, even if it is killed.

use std::fs;

use serde_json::json;

use super::stage::{wanted, write_program};
use crate::home::{Home, until};
use crate::running::{Running, agents_of};

/// Keeps working, with a lock that all its processes hold: a child that ignores signals, and one in
/// its own process session with an empty environment.
const WORKS_ON: &str = r#"
exec 9>held; flock 9
( trap '' TERM HUP PIPE INT; echo > first; sleep 1000; sleep 1000 ) >/dev/null 2>&1 &
setsid env -i PATH="$PATH" sh -c 'echo > second; sleep 1000; sleep 1000' >/dev/null 2>&1 &
"#;

/// Reports a tool use and works.
const CLAUDE: &str = r#"
cat > /dev/null
echo '{"type":"system","subtype":"init","session_id":"n1","tools":[],"model":"opus"}'
echo '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"work"}}]},"parent_tool_use_id":null,"session_id":"n1"}'
WORK
trap '' TERM HUP PIPE INT; wait
"#;

/// The same over the Agent Client Protocol.
const ACP: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{}}}\n' "$id";;
    *'"session/new"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s1","modes":{"currentModeId":"default","availableModes":[]}}}\n' "$id";;
    *'"session/prompt"'*)
      printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"work","kind":"execute","status":"in_progress","rawInput":{"command":"work"}}}}\n'
      WORK
      trap '' TERM HUP PIPE INT; wait;;
  esac
done
"#;

/// Kills the program while a tool runs, and checks that none of its processes continues.
fn nothing_goes_on(home: &Home, args: &[&str]) {
    let mut running = Running::start(home, args);
    running.until("tool.started");
    let at_work = |name: &str| home.project().join(name).exists();
    until("both work", || {
        (at_work("first") && at_work("second")).then_some(())
    });
    running.kill();
    until("its processes are gone", || {
        agents_of(home).is_empty().then_some(())
    });
    // The process with an empty environment cannot be identified, but it holds the lock.
    let held = fs::File::open(home.project().join("held")).unwrap();
    until("no process holds the lock", || held.try_lock().ok());
}

fn agent(home: &Home, kind: &str, script: &str) {
    let program = home.folder("bin").join("agent");
    write_program(&program, &script.replace("WORK", WORKS_ON));
    home.settings(&format!(
        "[agents.a]\ntype = \"{kind}\"\ncommand = \"{}\"\n",
        program.display()
    ));
}

#[test]
fn a_vendors_program_ends_with_this_one() {
    let home = Home::new();
    agent(&home, "claude", CLAUDE);
    nothing_goes_on(&home, &["--agent", "a", "-p", "work"]);
}

#[test]
fn an_acp_agent_ends_with_this_program() {
    let home = Home::new();
    agent(&home, "acp", ACP);
    nothing_goes_on(&home, &["--agent", "a", "-p", "work"]);
}

#[test]
fn a_shell_tool_ends_with_this_program() {
    let home = Home::new();
    let command = format!("{WORKS_ON}\nwait");
    let words = wanted("shell", &json!({ "command": command }));
    nothing_goes_on(
        &home,
        &["--agent", "demo", "--approve", "all", "-p", &words],
    );
}
