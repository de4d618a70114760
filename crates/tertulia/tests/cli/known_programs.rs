//! Programs that `agents scan` knows: their versions, types and arguments.

use super::registry::{program, with_bin};
use crate::home::Home;

#[test]
fn the_second_opencode_is_told_apart() {
    let home = Home::new();
    let opencode = program(&home, "bin/opencode", "echo 2.0.32");
    let only = "2.0.32: runs with `--approve all` only";
    with_bin(&home, &["agents", "opencode"])
        .run()
        .ok()
        .says(only);
    let scan = ["agents", "scan"];
    let scan = with_bin(&home, &scan).run().ok().says("2.0.32");
    assert!(scan.stdout.contains(&format!("{opencode}: runs with")));
    let auto = ["agents", "register", "--auto", "opencode"];
    with_bin(&home, &auto).run().ok();
    home.run(&["agents", "verify"]).ok().says(only);
    // It is refused before it does anything.
    let asked = [
        "chat",
        "--agent",
        "opencode",
        "--approve",
        "none",
        "-p",
        "x",
    ];
    with_bin(&home, &asked)
        .run()
        .code(6)
        .notes("OpenCode 2, whose tools cannot be restricted");
    program(&home, "bin/opencode", "echo 1.18.33");
    let output = with_bin(&home, &["agents", "opencode"]).run().ok();
    output.says("1.18.33").lacks("--approve all");
}
