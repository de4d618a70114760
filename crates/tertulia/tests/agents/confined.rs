//! Programs of the type `command` run in a file system that they cannot write, unless the user says
//! otherwise. Where the kernel cannot confine, they are refused.

use std::fs;

use tertulia_agents::process::Kernel;

use crate::home::Home;

/// An agent that writes into its folder, and answers.
const WRITER: &str = "type = \"command\"\ncommand = \"sh\"\n\
                      args = [\"-c\", \"cat > /dev/null; echo x > touched.txt && echo done\"]\n";

fn touched(home: &Home) -> bool {
    let file = home.project().join("touched.txt");
    let found = file.exists();
    let _ = fs::remove_file(file);
    found
}

fn ask<'a>(home: &'a Home, more: &[&str]) -> crate::home::Prepared<'a> {
    home.prepare(&[&["chat", "--agent", "writer", "-p", "hello"], more].concat())
}

#[test]
fn a_program_writes_only_where_it_may() {
    let home = Home::new();
    home.settings(&format!("[agents.writer]\n{WRITER}"));
    let ways = |output: crate::home::Output| {
        let output = output.code(6);
        assert!(!touched(&home));
        output
            .notes("`confine = false` in [agents.writer]")
            .notes("--approve all")
    };
    for policy in ["none", "low", "ask", "edits"] {
        let output = ways(ask(&home, &["--approve", policy]).run());
        if Kernel::probe() == Kernel::Confines {
            output
                .notes("it runs read-only")
                .notes("touched.txt")
                .notes("`writable = [\"DIR\"]` in [agents.writer]");
        } else {
            output.notes("Landlock");
        }
    }
    let output = ask(&home, &["--approve", "all"]).run().ok();
    assert!(touched(&home));
    output.lacks("read-only");

    // The user's own settings let it write.
    home.settings(&format!("[agents.writer]\n{WRITER}confine = false\n"));
    let output = ask(&home, &["--approve", "none"]).run().ok();
    assert!(touched(&home));
    output.lacks("read-only");
    if Kernel::probe() == Kernel::Confines {
        home.settings(&format!("[agents.writer]\n{WRITER}writable = [\".\"]\n"));
        ask(&home, &["--approve", "low"]).run().ok();
        assert!(touched(&home));
        let missing = home.path().join("missing").display().to_string();
        home.settings(&format!(
            "[agents.writer]\n{WRITER}writable = [\"~/missing\"]\n"
        ));
        ask(&home, &[]).run().code(6).notes(&missing);
    }
}

#[test]
fn a_project_cannot_let_its_program_write() {
    let home = Home::new();
    let file = home.folder("project/.tertulia").join("config.toml");
    for say in ["confine = false", "writable = [\".\", \"/\"]"] {
        fs::write(&file, format!("[agents.writer]\n{WRITER}{say}\n")).unwrap();
        home.run(&["trust", "-y"]).ok();
        let key = say.split(' ').next().unwrap();
        let said = format!("agents.writer.{key} = ");
        ask(&home, &[])
            .run()
            .code(6)
            .notes(&said)
            .notes("your own settings");
        assert!(!touched(&home));
    }
    // What the user allows their own program is not for another one of the same name.
    home.settings("[agents.writer]\ntype = \"command\"\ncommand = \"cat\"\nconfine = false\n");
    fs::write(&file, format!("[agents.writer]\n{WRITER}")).unwrap();
    home.run(&["trust", "-y"]).ok();
    ask(&home, &[]).run().code(6);
    assert!(!touched(&home));
}

#[test]
fn a_filter_works_as_it_is() {
    if Kernel::probe() != Kernel::Confines {
        return;
    }
    let home = Home::new();
    home.settings(
        "[agents.upper]\ntype = \"command\"\ncommand = \"tr\"\nargs = [\"a-z\", \"A-Z\"]\n",
    );
    let output = home.run(&["chat", "--agent", "upper", "-p", "hello"]).ok();
    assert!(output.stdout.ends_with("HELLO\n"), "{}", output.stdout);
    // Said once in a session, and not as part of the answer.
    assert_eq!(output.stderr.matches("runs read-only").count(), 1);
}

#[test]
fn a_registered_program_is_confined_as_the_settings_say() {
    let home = Home::new();
    let program = home.path().join("writer.sh");
    crate::talks::stage::write_program(
        &program,
        "cat > /dev/null; echo x > touched.txt && echo done",
    );
    let program = program.to_str().unwrap();
    home.run(&["agents", "register", "writer", "--command", program])
        .ok();
    ask(&home, &[]).run().code(6);
    assert!(!touched(&home));
    home.settings("[agents.writer]\nconfine = false\n");
    ask(&home, &[]).run().ok();
    assert!(touched(&home));
}
