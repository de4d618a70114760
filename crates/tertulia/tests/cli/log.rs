//! `log`.

use crate::home::{Home, short};

#[test]
fn the_family_is_drawn() {
    let home = &Home::new();
    let root = home.say("echo root");
    let fork = |reference: &str, name: &str| {
        let output = home.run(&["fork", reference, "--name", name]).ok();
        output.stdout.trim().to_owned()
    };
    let first = fork(&format!("{root}:2"), "first");
    let grandchild = fork(&first, "grandchild");
    let second = fork(&root, "second");
    home.say("a stranger");
    let text = home.run(&["log", &grandchild, "--graph"]).ok().stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(
        lines[0].starts_with(&format!("○ {}", short(&root))),
        "{text}"
    );
    assert!(
        lines[1].starts_with(&format!("├─○ {}  first  fork at 2", short(&first))),
        "{text}"
    );
    assert!(
        lines[2].starts_with(&format!("│ └─● {}", short(&grandchild))),
        "{text}"
    );
    assert!(
        lines[3].starts_with(&format!("└─○ {}  second  fork at 3", short(&second))),
        "{text}"
    );
}

#[test]
fn the_family_as_json() {
    let home = &Home::new();
    let root = home.say("echo root");
    let fork = home.run(&["fork", &root]).ok().stdout.trim().to_owned();
    let document = home.run(&["log", "--json", &fork]).ok().json();
    assert_eq!(document["id"], root.as_str());
    assert_eq!(document["forks"][0]["id"], fork.as_str());
    assert_eq!(document["forks"][0]["parent"]["relation"], "fork");
    assert_eq!(document["forks"][0]["forks"].as_array().unwrap().len(), 0);
}

#[test]
fn what_is_in_the_trash_stays_in_the_family() {
    let home = &Home::new();
    let root = home.say("echo root");
    home.run(&["fork", &root, "--name", "child"]).ok();
    home.run(&["rm", "-y", &root]).ok();
    let text = home.run(&["log", "child", "--graph"]).ok().stdout;
    assert!(
        text.lines().next().unwrap().contains("in the trash"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn a_session_without_family_is_alone() {
    let home = &Home::new();
    home.say("alone");
    let text = home.run(&["log"]).ok().stdout;
    assert_eq!(text.lines().count(), 1);
    home.run(&["log", "nosuch"]).code(3);
}
