//! Help, version, completions, the manual page.

use crate::home::Home;

const COMMANDS: [&[&str]; 61] = [
    &["chat"],
    &["list"],
    &["show"],
    &["search"],
    &["log"],
    &["blame"],
    &["rename"],
    &["tag"],
    &["rm"],
    &["restore"],
    &["undo"],
    &["prune"],
    &["fork"],
    &["diff"],
    &["merge"],
    &["replay"],
    &["export"],
    &["import"],
    &["seal"],
    &["seal", "add"],
    &["seal", "remove"],
    &["unseal"],
    &["stats"],
    &["doctor"],
    &["store"],
    &["store", "info"],
    &["store", "du"],
    &["store", "compress"],
    &["store", "copy"],
    &["store", "rebuild"],
    &["push"],
    &["pull"],
    &["sync"],
    &["agents"],
    &["agents", "check"],
    &["agents", "models"],
    &["agents", "scan"],
    &["agents", "register"],
    &["agents", "list"],
    &["agents", "verify"],
    &["agents", "info"],
    &["agents", "delete"],
    &["team"],
    &["team", "list"],
    &["team", "check"],
    &["team", "init"],
    &["pair"],
    &["trust"],
    &["serve"],
    &["web"],
    &["web", "code"],
    &["web", "token"],
    &["web", "token", "create"],
    &["web", "token", "list"],
    &["web", "token", "revoke"],
    &["attach"],
    &["ps"],
    &["stop"],
    &["help"],
    &["completions"],
    &["man"],
];

/// Returns an example of a help text whose comment touches the command: one blank before the column of
/// the comments, where others have more.
fn touching(help: &str) -> Option<&str> {
    let examples = help.split_once("Examples:\n")?.1;
    let examples: Vec<&str> = examples
        .lines()
        .take_while(|line| !line.is_empty())
        .collect();
    let comment = |line: &str| {
        let gap = line.trim_start().find("  ")? + line.len() - line.trim_start().len();
        Some(gap + line[gap..].len() - line[gap..].trim_start().len())
    };
    let column = examples.iter().filter_map(|line| comment(line)).max()?;
    examples.into_iter().find(|line| {
        // A long command may have a blank at this column, too.
        let is_short = !line.contains(['>', '|']);
        let before = line.get(..column);
        let before = before.filter(|_| is_short && comment(line).is_none());
        before.is_some_and(|before| before.ends_with(' ') && line.len() > column)
    })
}

#[test]
fn comments_of_examples_stand_apart() {
    let home = Home::new();
    for command in COMMANDS {
        let help = home.run(&[command, &["--help"]].concat()).ok().stdout;
        assert_eq!(touching(&help), None, "{command:?}");
    }
    let text = "Examples:\n  tertulia a      one\n  tertulia b --cc two\n";
    assert_eq!(touching(text), Some("  tertulia b --cc two"));
}

#[test]
fn the_help_of_the_program() {
    let home = Home::new();
    insta::assert_snapshot!("root", home.run(&["--help"]).ok().stdout);
    insta::assert_snapshot!("root_short", home.run(&["-h"]).ok().stdout);
}

#[test]
fn the_help_of_every_command() {
    let home = Home::new();
    for command in COMMANDS {
        let output = home.run(&[command, &["--help"]].concat()).ok();
        assert_eq!(output.stderr, "");
        insta::assert_snapshot!(command.join("_"), output.stdout);
    }
}

#[test]
fn every_help_has_examples() {
    let home = Home::new();
    home.run(&["--help"]).ok().says("Examples:");
    for command in COMMANDS {
        for flag in ["--help", "-h"] {
            home.run(&[command, &[flag]].concat())
                .ok()
                .says("Examples:");
        }
    }
    assert!(!home.database().exists());
}

#[test]
fn every_command_of_the_help_is_covered_here() {
    let text = Home::new().run(&["--help"]).ok().stdout;
    let commands = text
        .split("Commands:\n")
        .nth(1)
        .unwrap()
        .split("\n\n")
        .next()
        .unwrap();
    let listed: Vec<&str> = commands
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let known: Vec<&str> = COMMANDS
        .iter()
        .filter(|c| c.len() == 1)
        .map(|c| c[0])
        .collect();
    assert_eq!(listed, known);
}

#[test]
fn the_version() {
    let home = Home::new();
    let expected = format!("tertulia {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(home.run(&["--version"]).ok().stdout, expected);
    assert_eq!(home.run(&["-V"]).ok().stdout, expected);
}

#[test]
fn completions_for_every_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = home.run(&["completions", shell]).ok();
        assert_eq!(output.stderr, "");
        output.says("export").says("restore").says("output-format");
    }
    home.run(&["completions", "cobol"]).code(2);
    assert!(!home.database().exists());
}

#[test]
fn the_bash_completion_is_a_script() {
    let home = Home::new();
    let script = home.run(&["completions", "bash"]).ok().stdout;
    let path = home.path().join("completion.bash");
    std::fs::write(&path, script).unwrap();
    let checked = std::process::Command::new("bash")
        .arg("-n")
        .arg(&path)
        .status();
    assert!(checked.unwrap().success());
}

#[test]
fn the_manual_page() {
    let home = Home::new();
    home.run(&["man"])
        .ok()
        .says(".TH")
        .says("tertulia")
        .says("Examples");
    home.run(&["man", "search"]).ok().says(".TH").says("phrase");
    home.run(&["man", "nosuch"]).code(2).notes("nosuch");
}

#[test]
fn the_exit_codes_are_in_the_help() {
    let output = Home::new().run(&["--help"]).ok();
    for code in [
        "0 done",
        "1 failed",
        "2 wrong usage",
        "3 not found",
        "4 conflict",
        "5 invalid",
        "6 an agent",
        "130 interrupted",
    ] {
        assert!(output.stdout.contains(code), "{code}");
    }
}
