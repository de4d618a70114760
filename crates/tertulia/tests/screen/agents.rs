//! Agents whose answers are difficult to display.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::home::Home;

/// Number of letters in [`LONG_LINE`].
pub const LONG: usize = 200_000;

/// One long line, and a short one after it.
pub const LONG_LINE: &str =
    "head -c 200000 /dev/zero | tr '\\0' x; printf '\\n\\nthat was long\\n'";

/// 5 000 words a second, in small pieces, for four seconds.
pub const FAST: &str = "words=$(seq -s ' ' 100); i=0; while [ $i -lt 200 ]; do \
     printf '%s ' \"$words\"; sleep 0.02; i=$((i+1)); done; printf '\\n\\nthat was fast\\n'";

/// All Markdown elements that an answer may have.
pub const MARKDOWN: &str = "# A heading 漢字

Some **bold**, some *leaning*, some `code` and 👩‍👩‍👧 with 漢字かな.

| name | 何 | count |
|:-----|:--:|------:|
| plain | 漢字 | 1 |
| emoji | 👍🏽 | 22 |
| end | e\u{301} | 333 |

```rust
fn main() { println!(\"漢字\"); } // a comment
```

```diff
-old 漢
+new 字
```

1. first
2. second
   - deeper

> quoted

[a link](https://example.org/page)
";

/// Adds an agent that answers with a text.
pub fn says(home: &Home, name: &str, text: &str) {
    let file = home.path().join(format!("{name}.answer"));
    fs::write(&file, text).unwrap();
    home.script_agent(name, &format!("cat '{}'", file.display()));
}

/// Adds a vendor's agent that reports a plan, and waits for the file `go` in the home.
pub fn plans(home: &Home) {
    let list = |done: bool| {
        json!({ "type": "item.updated", "item": { "id": "1", "type": "todo_list", "items": [
            { "text": "look at 漢字", "completed": done },
            { "text": "mend it", "completed": false },
        ] } })
    };
    let script = format!(
        "cat > /dev/null; echo '{}'; echo '{}'; i=0; \
         while [ ! -e '{}' ] && [ $i -lt 1200 ]; do sleep 0.05; i=$((i+1)); done; \
         echo '{}'; echo '{}'; echo '{}'",
        json!({ "type": "thread.started", "thread_id": "t" }),
        list(true),
        home.path().join("go").display(),
        json!({ "type": "item.completed", "item": { "id": "0", "type": "reasoning", "text": "I wonder." } }),
        json!({ "type": "item.completed", "item": { "id": "2", "type": "agent_message", "text": "mended" } }),
        json!({ "type": "turn.completed", "usage": { "input_tokens": 3, "output_tokens": 2 } }),
    );
    let program = home.folder("bin").join("codex");
    write_program(&program, &script);
    home.settings(&format!(
        "agent = \"codex\"\n[agents.codex]\ntype = \"codex\"\ncommand = \"{}\"\n",
        program.display()
    ));
}

/// Creates the file `go`, for which an agent waits.
pub fn go(home: &Home) {
    fs::write(home.path().join("go"), "").unwrap();
}

/// Writes an executable shell script. Done by another process: if a concurrent test forks while
/// this process has the file open for writing, executing it would fail as "busy".
fn write_program(path: &std::path::Path, script: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"printf "%s" "$1" > "$0"; chmod 755 "$0""#]);
    shell.arg(path).arg(format!("#!/bin/sh\n{script}\n"));
    assert!(shell.status().unwrap().success());
}

/// Returns a prompt that makes the demo agent use a tool.
pub fn wanted(tool: &str, arguments: &serde_json::Value) -> String {
    format!("use {tool} {arguments}")
}
