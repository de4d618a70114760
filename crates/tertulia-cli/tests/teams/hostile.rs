//! A team file that came with somebody's project: what it wants to run is said in full, and it gets at
//! nothing that is the person's own.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::cast::Cast;
use crate::home::Output;

/// A cast whose first agent is a program of the team file: this script.
fn runs(script: &str) -> Cast {
    let mut cast = Cast::of(&["ada", "ben"], &["ann"]);
    cast.change(|document| {
        document["agents"] = json!([{"name": "theirs", "command": "sh", "args": ["-c", script]}]);
    });
    cast.change_member("ada", |ada| ada["agentType"] = json!("theirs"));
    cast
}

#[test]
fn all_of_what_it_runs_is_shown() {
    let end = "; id > /tmp/never \u{1b}[2K\r";
    let cast = runs(&format!("true ; : {}{end}", "x".repeat(3000)));
    let check = ["team", "check", crate::cast::FILE];
    for output in [cast.home.run(&check), cast.run(&["[NEXT: ben] hello"])] {
        output
            .ok()
            .notes("; id > /tmp/never \\u{1b}[2K\\r\", as the team file says")
            .lacks("\u{1b}");
    }
}

/// Keys that are in the environment, as its program sees them.
const TELLS_KEYS: &str =
    "cat > /dev/null; echo \"keys: $ANTHROPIC_API_KEY $MY_KEY $OWN_KEY $COLOUR\"";

fn with_keys(cast: &Cast) -> Output {
    let prepared = cast.prepare(&["[NEXT: ada] hello"]);
    let prepared = prepared.env("ANTHROPIC_API_KEY", "first");
    let prepared = prepared.env("MY_KEY", "second");
    prepared.env("COLOUR", "green").run().ok()
}

#[test]
fn its_program_does_not_get_the_persons_keys() {
    let mut cast = runs(TELLS_KEYS);
    let settings = cast.home.path().join(".config/tertulia/config.toml");
    let mut text = fs::read_to_string(&settings).unwrap();
    text.push_str("[agents.other]\ntype = \"openai\"\nkey_env = \"MY_KEY\"\n");
    fs::write(&settings, &text).unwrap();
    // What the team file itself gives is its own.
    cast.change_member("ada", |ada| ada["env"] = json!({"OWN_KEY": "third"}));
    with_keys(&cast).says("keys:   third green\n");
    // A person's own program has them, unless the team file could have put another in its place.
    let args = json!(["-c", TELLS_KEYS]);
    text.push_str(&format!(
        "[agents.mine]\ntype = \"command\"\ncommand = \"sh\"\nargs = {args}\n"
    ));
    fs::write(&settings, &text).unwrap();
    cast.change_member("ada", |ada| ada["agentType"] = json!("mine"));
    with_keys(&cast).says("keys: first second third green\n");
    cast.change_member("ada", |ada| ada["env"] = json!({"LD_PRELOAD": ""}));
    with_keys(&cast).says("keys:    green\n");
}

/// A vendor's program that is installed here needs its key, whoever names it.
#[test]
fn a_vendors_program_has_its_key_only_where_it_is_installed() {
    let mut cast = Cast::of(&["ada"], &["ann"]);
    let script = format!(
        "#!/bin/sh\n{TELLS_KEYS} > \"$0.keys\"\n\
         echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\"}}'\n"
    );
    let installed = cast.home.folder("bin").join("claude");
    let theirs = cast.home.folder("project/tools").join("claude");
    for program in [&installed, &theirs] {
        fs::write(program, &script).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", installed.parent().unwrap().display());
    cast.change_member("ada", |ada| ada["agentType"] = json!("claude"));
    for (command, program, keys) in [
        ("claude", &installed, "keys: first   \n"),
        ("./tools/claude", &theirs, "keys:    \n"),
    ] {
        cast.change(|document| {
            document["agents"] = json!([{"name": "claude", "command": command}]);
        });
        let prepared = cast.prepare(&["[NEXT: ada] hello"]);
        let prepared = prepared.env("ANTHROPIC_API_KEY", "first");
        prepared.env("PATH", &path).run().ok().says("done");
        let told = fs::read_to_string(program.with_extension("keys")).unwrap();
        assert_eq!(told, keys, "{command}");
    }
}
