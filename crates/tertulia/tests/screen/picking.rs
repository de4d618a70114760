//! The session list.

use tertulia_testkit::terminal::Terminal;

use super::stage::{leave, open, ready, status_says, talk};
use crate::home::{Home, short, until};

/// A home with three sessions, the newest last, and one in another project.
fn home() -> (Home, Vec<String>) {
    let home = Home::new();
    let ids = [
        "echo about apples",
        "echo about pears 梨",
        "echo about plums",
    ];
    let ids = ids.iter().map(|words| home.say(words)).collect();
    let elsewhere = home.folder("elsewhere");
    home.prepare(&["chat", "-p", "echo far away"])
        .folder(elsewhere)
        .run()
        .ok();
    (home, ids)
}

/// Opens the list with `--resume`.
fn list(home: &Home) -> Terminal {
    let mut terminal = open(home, &["--resume"]).with_clear_keys();
    terminal.sees("Sessions of this project");
    terminal.sees("3 sessions");
    terminal
}

fn chosen(terminal: &mut Terminal, words: &str) {
    terminal.wait_for(&format!("{words:?} is chosen"), |screen| {
        let rows = screen.rows();
        rows.iter()
            .any(|row| row.starts_with("› ") && row.contains(words))
    });
}

#[test]
fn a_talk_is_chosen_and_gone_on_with() {
    let (home, ids) = home();
    let mut terminal = list(&home);
    chosen(&mut terminal, "about plums");
    terminal.look(|screen| {
        let (row, _) = screen.place_of("about plums").unwrap();
        assert!(screen.row(row).ends_with(&short(&ids[2])));
        let facts = screen.row(row + 1);
        assert!(
            facts.contains("2 messages") && facts.contains("chat"),
            "{facts}"
        );
        assert!(screen.has("Hidden: 1 in other projects (Tab)"));
    });
    terminal.keys("Down");
    chosen(&mut terminal, "about pears 梨");
    terminal.keys("Enter");
    terminal.sees("── restored: 2 messages");
    status_says(&mut terminal, &short(&ids[1]));
    ready(&mut terminal);
    super::stage::say(&mut terminal, "what did I say?", "1. echo about pears");
    leave(&mut terminal);
    assert_eq!(home.said(&ids[1]).len(), 4);
}

#[test]
fn the_list_is_searched_by_typing() {
    let (home, _) = home();
    let mut terminal = list(&home);
    terminal.type_text("app");
    terminal.sees("1 of 3");
    chosen(&mut terminal, "about apples");
    terminal.keys("Backspace Backspace Backspace");
    terminal.sees("3 sessions");
    terminal.type_text("zzzz");
    terminal.sees("Nothing fits.");
}

#[test]
fn a_talk_is_looked_into() {
    let (home, _) = home();
    let mut terminal = list(&home);
    terminal.keys("Space");
    terminal.wait_for("what was said in it", |screen| {
        screen.rows().contains(&"about plums".to_owned())
    });
    terminal.keys("Down");
    terminal.wait_for("what was said in the next", |screen| {
        screen.rows().contains(&"about pears 梨".to_owned())
    });
}

#[test]
fn a_talk_is_renamed_and_tagged() {
    let (home, ids) = home();
    let mut terminal = list(&home);
    terminal.keys("^r");
    terminal.sees("title:");
    terminal.keys("^u");
    terminal.type_text("Plums 李\n");
    chosen(&mut terminal, "Plums 李");
    until("it is renamed", || {
        (home.show(&ids[2])["title"] == "Plums 李").then_some(())
    });
    terminal.keys("^t");
    terminal.sees("tags:");
    terminal.type_text("+fruit\n");
    terminal.sees("#fruit");
    until("it is tagged", || {
        (home.show(&ids[2])["tags"] == serde_json::json!(["fruit"])).then_some(())
    });
}

#[test]
fn a_talk_is_forked() {
    let (home, ids) = home();
    let mut terminal = list(&home);
    terminal.keys("^f");
    until("there is a fork", || (home.all().len() == 5).then_some(()));
    ready(&mut terminal);
    terminal.sees("about plums");
    super::stage::say(&mut terminal, "echo elsewhere", "elsewhere");
    assert_eq!(home.said(&ids[2]).len(), 2);
    leave(&mut terminal);
}

#[test]
fn a_talk_goes_into_the_trash_after_a_y() {
    let (home, _) = home();
    let mut terminal = list(&home);
    terminal.keys("^x");
    terminal.sees("y/N");
    terminal.keys("n");
    terminal.sees_no_more("y/N");
    assert_eq!(home.all().len(), 4);
    terminal.keys("^x");
    terminal.sees("y/N");
    terminal.keys("y");
    terminal.sees("2 sessions");
    until("it is in the trash", || {
        (home.all().len() == 3).then_some(())
    });
    terminal.sees("\"echo about plums\" moved to trash");
    terminal.keys("Alt+u");
    terminal.sees("undone: \"echo about plums\" restored from the trash");
    chosen(&mut terminal, "about plums");
    assert_eq!(home.all().len(), 4);
    // The same from inside a session.
    terminal.keys("Enter");
    ready(&mut terminal);
    terminal.type_text("/rename Plums\n");
    terminal.sees("renamed to \"Plums\"");
    terminal.type_text("/undo\n");
    terminal.sees("undone: renamed to \"echo about plums\"");
    leave(&mut terminal);
}

#[test]
fn a_wide_screen_shows_what_was_said() {
    let (home, _) = home();
    let size = tertulia_testkit::terminal::Size::new(100, 24);
    let mut terminal = super::stage::open_at(&home, &["--resume"], size).with_clear_keys();
    terminal.wait_for("the preview", |screen| {
        screen
            .rows()
            .iter()
            .any(|row| row.ends_with(" about plums"))
    });
    terminal.keys("Down");
    terminal.wait_for("the next one", |screen| {
        screen
            .rows()
            .iter()
            .any(|row| row.ends_with(" about pears 梨"))
    });
    terminal.keys("^v");
    terminal.wait_for("the list alone", |screen| {
        !screen
            .rows()
            .iter()
            .any(|row| row.ends_with(" about pears 梨"))
    });
}

#[test]
fn tab_shows_those_of_all_projects() {
    let (home, _) = home();
    let mut terminal = list(&home);
    terminal.keys("Tab");
    terminal.sees("All sessions");
    terminal.sees("4 sessions");
    terminal.sees("far away");
    terminal.keys("Tab");
    terminal.sees("3 sessions");
}

#[test]
fn esc_leaves_the_list() {
    let (home, _) = home();
    // Who came to choose a session leaves without one.
    for way_out in ["Esc", "^c"] {
        let mut terminal = list(&home);
        terminal.keys(way_out);
        assert_eq!(terminal.exit_code(), 0, "{way_out}");
        assert_eq!(home.all().len(), 4);
    }
    let mut terminal = talk(&home, &[]);
    terminal.type_text("/sessions\n");
    terminal.sees("Sessions of this project");
    terminal.keys("Esc");
    ready(&mut terminal);
    leave(&mut terminal);
}
