//! Teams and pairs in the TUI.

use tertulia_testkit::terminal::Terminal;

use super::stage::{leave, open, ready, say, status, status_says, talk};
use crate::home::Home;
use crate::teams::cast::{Cast, speakers};

fn cast() -> Cast {
    Cast::of(&["ada", "ben", "cleo"], &["ann", "zoe"])
}

#[test]
fn a_team_talks_and_who_is_next_is_shown() {
    let cast = cast();
    let go = cast.home.path().join("go");
    let waits = format!(
        "i=0; while [ ! -e '{}' ] && [ $i -lt 1200 ]; do sleep 0.05; i=$((i+1)); done; echo Ada speaks.",
        go.display()
    );
    cast.does("ada", &waits);
    let mut terminal = talk(&cast.home, &["team", "team.json"]);
    terminal.sees("Ann/Zoe>");
    terminal.type_text("[FROM: ann] [NEXT: ada, ben, cleo] go\n");
    terminal.wait_for("the queue", |screen| {
        screen
            .rows()
            .iter()
            .any(|row| row.contains("next: Ben → Cleo"))
    });
    terminal.look(|screen| assert!(status(screen).contains("Ada"), "{}", status(screen)));
    std::fs::write(go, "").unwrap();
    for words in ["Ada speaks.", "Ben speaks.", "Cleo speaks."] {
        terminal.sees(words);
    }
    ready(&mut terminal);
    terminal.wait_for("the queue is empty", |screen| !screen.has("next:"));
    leave(&mut terminal);
    assert_eq!(speakers(&cast.messages("@")), ["ann", "ada", "ben", "cleo"]);
}

#[test]
fn members_are_completed_and_have_their_colours() {
    let cast = cast();
    let mut terminal = talk(&cast.home, &["team", "team.json", "--as", "ann"]);
    terminal.sees("Ann>");
    terminal.type_text("[NEXT: b");
    terminal.sees("ben");
    terminal.keys("Tab");
    terminal.type_text("] hello\n");
    terminal.sees("Ben speaks.");
    ready(&mut terminal);
    terminal.type_text("[NEXT: ada] hello\n");
    terminal.sees("Ada speaks.");
    ready(&mut terminal);
    let colours = terminal.look(|screen| {
        ["Ada", "Ben"].map(|name| {
            let rows = screen.rows();
            let heading = format!("  {name}");
            let row = rows.iter().position(|row| row.starts_with(&heading));
            screen
                .inner()
                .cell(u16::try_from(row.unwrap()).unwrap(), 2)
                .unwrap()
                .fgcolor()
        })
    });
    assert_ne!(colours[0], colours[1]);
    leave(&mut terminal);
}

/// Waits for the dialog, and until it accepts answers.
#[track_caller]
fn is_asked(terminal: &mut Terminal) {
    terminal.sees("Resume the earlier session of");
    terminal.sees("[R] Resume");
    terminal.sees("Esc decide later");
}

#[test]
fn an_earlier_talk_of_a_team_is_offered() {
    let cast = cast();
    cast.turn(&["--as", "ann", "[NEXT: ada] first words"]);
    let mut terminal = open(&cast.home, &["team", "team.json", "--as", "ann"]);
    is_asked(&mut terminal);
    terminal.keys("r Enter");
    terminal.sees("first words");
    terminal.sees("Ada speaks.");
    terminal.sees("restored: 2 messages");
    ready(&mut terminal);
    leave(&mut terminal);
    let mut terminal = open(&cast.home, &["team", "team.json", "--as", "ann"]);
    is_asked(&mut terminal);
    terminal.keys("n Enter");
    ready(&mut terminal);
    terminal.type_text("[NEXT: ben] anew\n");
    terminal.sees("Ben speaks.");
    ready(&mut terminal);
    leave(&mut terminal);
    assert_eq!(cast.home.all().len(), 2);
    let mut terminal = open(&cast.home, &["team", "team.json", "--as", "ann"]);
    is_asked(&mut terminal);
    terminal.keys("Esc");
    assert_eq!(terminal.exit_code(), 0);
}

/// Two files of one team: with the second one, its members answer.
#[test]
fn the_team_that_was_named_goes_on_with_the_earlier_session() {
    for deletes in [false, true] {
        let mut cast = cast();
        cast.run(&["--as", "ann", "[NEXT: ada] begin"]).ok();
        let first = cast.file();
        let second = first.with_file_name("second.json");
        cast.change(|document| {
            let members = document["team"]["members"].as_array_mut().unwrap();
            members.retain(|member| member["name"] != "ada");
        });
        std::fs::rename(&first, &second).unwrap();
        if !deletes {
            cast.change(|_| {});
        }
        let mut terminal = open(&cast.home, &["team", "./second.json", "--as", "ann"]);
        is_asked(&mut terminal);
        terminal.keys("r Enter");
        terminal.sees("no longer in the team: Ada");
        // The suggested command works here.
        terminal.sees("/team map");
        ready(&mut terminal);
        terminal.type_text("@ada are you there?\n");
        ready(&mut terminal);
        terminal.type_text("@ben and you?\n");
        terminal.sees("Ben speaks.");
        ready(&mut terminal);
        terminal.type_text("/team map ada=cleo\n");
        terminal.sees("restored: 5 messages");
        ready(&mut terminal);
        terminal.type_text("@cleo what was it?\n");
        terminal.sees("Cleo speaks.");
        ready(&mut terminal);
        leave(&mut terminal);
        assert!(
            cast.prompt("cleo").contains("Cleo: Ada speaks."),
            "{}",
            cast.prompt("cleo")
        );
        assert_eq!(cast.asked("ada"), 1, "a former member is not asked");
    }
}

#[test]
fn whoever_wants_neither_is_back_where_they_were() {
    let cast = cast();
    cast.turn(&["--as", "ann", "[NEXT: ada] first words"]);
    let mut terminal = talk(&cast.home, &["--agent", "demo"]);
    say(&mut terminal, "echo before the team", "before the team");
    terminal.type_text("/team deploy team.json\n");
    is_asked(&mut terminal);
    terminal.keys("Esc");
    terminal.sees("restored: 2 messages");
    terminal.sees("echo before the team");
    ready(&mut terminal);
    leave(&mut terminal);
}

/// An instructor that gives the worker one step after the other, and is done after two.
const BOSS: &str = "n=$(grep -c 'worked-[0-9]'); if [ $n -ge 2 ]; then echo 'all is well'; echo DONE; \
     else echo \"so far $n\"; echo; echo \"Tell worker: step-$((n+1))\"; fi";
const HAND: &str = "k=$(grep -o 'step-[0-9]*' | tail -1); echo \"worked-${k#step-}\"";

#[test]
fn a_pair_works_in_rounds() {
    let home = Home::new();
    home.script_agent("boss", BOSS);
    home.script_agent("hand", HAND);
    let args = [
        "pair",
        "--instructor",
        "boss",
        "--worker",
        "hand",
        "-r",
        "5",
    ];
    let mut terminal = talk(&home, &args);
    terminal.type_text("build it\n");
    terminal.sees("worked-2");
    terminal.sees("all is well");
    status_says(&mut terminal, "round");
    ready(&mut terminal);
    leave(&mut terminal);
    let pair = home.show("@")["pair"].clone();
    assert_eq!(pair["remaining"], 3, "{pair}");
    let mut terminal = talk(&home, &["pair", "-c"]);
    terminal.sees("worked-2");
    terminal.sees("restored");
    leave(&mut terminal);
}
