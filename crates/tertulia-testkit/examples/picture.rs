//! Plays short sessions on a terminal of 100×30 and draws what is seen: `./picture` writes the pictures in `docs`.
//!
//! Nothing in the picture depends on when or where it is made.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a picture that cannot be made should say so and stop"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use tertulia_testkit::terminal::{Size, Terminal, picture};

const SIZE: Size = Size::new(100, 30);
/// The end of it is on the screen.
const SESSION: &str = "0199d0c0-7e57-7000-8000-0000b12d7ab1";

/// A picture: its file in the folder, its title, the arguments of the program, and what is done before it is taken.
struct Scene {
    file: &'static str,
    title: &'static str,
    args: &'static [&'static str],
    play: fn(&mut Terminal),
}

const SCENES: &[Scene] = &[
    Scene {
        file: "screen.svg",
        title: "tertulia team demo",
        args: &["team", "demo"],
        play: team,
    },
    Scene {
        file: "start.svg",
        title: "tertulia",
        args: &["chat"],
        play: ready,
    },
    Scene {
        file: "permission.svg",
        title: "tertulia",
        args: &["chat"],
        play: permission,
    },
    Scene {
        file: "cards.svg",
        title: "tertulia",
        args: &["chat"],
        play: cards,
    },
    Scene {
        file: "sessions.svg",
        title: "tertulia --resume",
        args: &["--resume"],
        play: sessions,
    },
];

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let program = arguments.next().expect("the program is the first argument");
    let program = std::path::absolute(program).unwrap();
    let folder = arguments.next().expect("the folder is the second argument");
    for scene in SCENES {
        std::fs::write(folder.join(scene.file), drawn(scene, &program)).unwrap();
    }
}

/// Plays a scene in a home of its own.
fn drawn(scene: &Scene, program: &Path) -> String {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("garden");
    std::fs::create_dir_all(project.join("src")).unwrap();
    std::fs::write(project.join("src/main.rs"), SOURCE).unwrap();
    let settings = home.path().join(".config/tertulia");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(
        settings.join("config.toml"),
        "agent = \"demo\"\n[agents.demo]\npace = 0\n",
    )
    .unwrap();
    let run = |args: &[&str]| {
        let mut command = at_home(program, home.path(), &project);
        assert!(command.args(args).output().unwrap().status.success());
    };
    run(&["team", "init"]);
    if scene.args.contains(&"--resume") {
        for prompt in [
            "plan a bird table",
            "echo **Oak** or *pine*?\n\n- oak lasts\n- pine is light",
        ] {
            run(&["chat", "-p", prompt]);
        }
    }
    let mut command = at_home(program, home.path(), &project);
    command.args(scene.args);
    if !scene.args.contains(&"--resume") {
        command.args(["--session-id", SESSION]);
    }
    let mut terminal = Terminal::open(&mut command, SIZE);
    (scene.play)(&mut terminal);
    timeless(&terminal.look(|screen| picture::svg(screen, scene.title)))
}

/// What the agent of a scene works on.
const SOURCE: &str = "fn main() {\n    let birds = 3;\n    println!(\"{birds} birds\");\n}\n";
/// The demo agent calls the tool that it is told to.
const EDIT: &str = "use file_edit {\"path\":\"src/main.rs\",\"old_text\":\"let birds = 3;\",\"new_text\":\"let birds = 3 + 4;\"}";

/// The program with nothing of this machine around it.
fn at_home(program: &Path, home: &Path, project: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(project)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env("TZ", "UTC");
    command
}

/// Waits until no agent answers.
fn ready(terminal: &mut Terminal) {
    terminal.wait_for("no agent answers", |screen| {
        screen.row(SIZE.rows - 1).starts_with("● ready")
    });
}

fn team(terminal: &mut Terminal) {
    ready(terminal);
    terminal.type_text("plan a bird table\n");
    terminal.sees("with far too many");
    ready(terminal);
    terminal.type_text("/");
    terminal.sees("/sessions");
}

fn permission(terminal: &mut Terminal) {
    ready(terminal);
    terminal.type_text(&format!("{EDIT}\n"));
    terminal.sees("this session");
}

fn cards(terminal: &mut Terminal) {
    permission(terminal);
    // A key that comes at once was not meant for the question, which offers no answers yet.
    terminal.sees("Enter no");
    terminal.type_text("y");
    terminal.keys("Enter");
    ready(terminal);
    terminal.type_text("use file_read {\"path\":\"src/none.rs\"}\n");
    terminal.sees("none.rs ✗");
    ready(terminal);
    terminal.type_text("!git --version | cut -c1-11\n");
    terminal.sees("git version");
    ready(terminal);
}

fn sessions(terminal: &mut Terminal) {
    terminal.sees("Enter resume");
    terminal.sees("oak lasts");
}

/// The time of day is another one each time, and the same in the picture.
fn timeless(picture: &str) -> String {
    let mut letters: Vec<char> = picture.chars().collect();
    for at in 0..letters.len().saturating_sub(4) {
        let is_time = |(place, letter): (usize, &char)| match place {
            2 => *letter == ':',
            _ => letter.is_ascii_digit(),
        };
        if letters[at..at + 5].iter().enumerate().all(is_time) {
            letters[at..at + 5].copy_from_slice(&['1', '8', ':', '3', '0']);
        }
    }
    letters.into_iter().collect()
}
