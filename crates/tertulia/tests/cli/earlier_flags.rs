//! Flags of earlier systems, and what scripts ask first: `help`, `--version --json`, `--retry`.

use serde_json::json;

use crate::home::{Home, short};

#[test]
fn they_are_understood_and_the_new_name_is_said() {
    let home = Home::new();
    let one = home.say("echo one");
    let two = home.say("echo two");
    home.run(&["--list-sessions"])
        .ok()
        .says("echo two")
        .notes("--list-sessions is now `tertulia list`");
    home.run(&["--restore", &short(&one), "-p", "echo again"])
        .ok()
        .says("again")
        .notes("--restore is now `tertulia --resume");
    assert_eq!(home.said(&one).len(), 4);
    home.run(&["--diff", &one, &two])
        .code(1)
        .notes("--diff is now `tertulia diff");
    home.run(&["--replay", &two, "--with-model", "other"])
        .ok()
        .notes("--replay is now `tertulia replay");
    home.run(&["--merge", &one, &two]).ok();
    // Asks like `prune`, also if it would do something.
    home.run(&["--clean-sessions", "--older-than", "0d"])
        .code(2)
        .notes("add -y");
    home.run(&["--clean-sessions", "--older-than", "7d"])
        .ok()
        .notes("Nothing to prune.");
    // The help does not have them.
    home.run(&["--help"]).ok().lacks("--list-sessions");
}

#[test]
fn the_cloud_is_the_partner_of_sync() {
    let home = Home::new();
    let id = home.say("echo one");
    home.run(&["--save-to-cloud"]).code(2).notes("[sync]");
    let hub = format!("files:{}", home.path().join("hub").display());
    home.settings(&format!("[sync]\nwith = \"{hub}\"\n"));
    home.run(&["--save-to-cloud"])
        .ok()
        .notes("--save-to-cloud is now `tertulia push`");
    home.run(&["--resume", "--from-cloud", "-p", "echo two"])
        .ok()
        .says("two")
        .notes("--from-cloud is now `tertulia pull` and then");
    assert_eq!(home.said(&id).len(), 4);
}

#[test]
fn a_round_is_forked() {
    let home = Home::new();
    let args = ["pair", "do it", "--instructor", "demo", "--worker", "demo"];
    home.run(&args);
    let before = home.all().len();
    home.run(&["--resume", "--fork-at-round", "1"])
        .ok()
        .notes("--fork-at-round is now `tertulia fork @ --at-round 1`");
    assert_eq!(home.all().len(), before + 1);
}

#[test]
fn help_is_a_command() {
    let home = Home::new();
    for (command, flag) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "list"], &["list", "--help"]),
        (&["help", "team", "check"], &["team", "check", "--help"]),
    ] {
        let expected = home.run(flag).ok().stdout;
        assert_eq!(
            home.run(command).ok().stdout.trim_end(),
            expected.trim_end()
        );
    }
    home.run(&["help", "lst"])
        .code(2)
        .notes("did you mean `tertulia list`?");
}

#[test]
fn the_version_as_a_document() {
    let document = Home::new().run(&["--version", "--json"]).ok().json();
    assert_eq!(document["name"], json!("tertulia"));
    assert!(document["version"].is_string());
}

#[test]
fn a_failed_answer_is_asked_for_again() {
    let home = Home::new();
    home.script_agent(
        "shy",
        "cat > /dev/null; test -e ../well && echo 'here I am' || exit 4",
    );
    home.run(&["--agent", "shy", "-p", "hello?"]).code(6);
    home.run(&["--retry"]).code(2).notes("add -c");
    home.run(&["-c", "--retry"]).code(6);
    std::fs::write(home.path().join("well"), "").unwrap();
    home.run(&["-c", "--retry"]).ok().says("here I am");
    let session = home.show("@");
    let said = home.said(session["id"].as_str().unwrap());
    assert_eq!(said, ["hello?", "here I am\n"]);
    home.run(&["-c", "--retry"])
        .code(1)
        .notes("nothing to retry");
}
