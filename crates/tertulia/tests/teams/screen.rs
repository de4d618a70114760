//! A team in line mode on a terminal: the offer to resume, whose turn it is, and slash commands.

use super::cast::{Cast, speakers};
use crate::home::short;
use crate::pty::{CTRL_D, Terminal};

fn cast() -> Cast {
    let cast = Cast::of(&["ada", "ben"], &["ann", "zoe"]);
    cast.says("ada", "Ada said this.");
    cast
}

/// A team with a session of two messages; returns its id.
fn with_a_talk() -> (Cast, String) {
    let cast = cast();
    let document = cast.turn(&["--as", "ann", "first words\n[NEXT: ada]"]);
    let id = document["session_id"].as_str().unwrap().to_owned();
    (cast, id)
}

fn leaves(mut terminal: Terminal) -> String {
    terminal.types("/end\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, 0, "{shown}");
    shown
}

#[test]
fn an_earlier_talk_is_offered_with_its_age_count_and_summary() {
    let (cast, id) = with_a_talk();
    let mut terminal = cast.open(&[]);
    terminal.sees("[R] Resume  [N] New", 1);
    let shown = terminal.shown();
    for words in [
        "The cast has an earlier session",
        "2 messages",
        "first words",
    ] {
        assert!(shown.contains(words), "{words:?} in {shown}");
    }
    assert!(
        shown.contains("just now") || shown.contains("ago"),
        "{shown}"
    );
    terminal.types("x\n");
    terminal.sees("type R to resume it", 1);
    terminal.types("r\n");
    terminal.sees("(just now): 2 messages (Ann 1, Ada 1", 1);
    terminal.sees("Ann> ", 1);
    terminal.types("[NEXT: ben] go on\n");
    terminal.sees("Ben speaks.", 1);
    terminal.sees("Ann> ", 2);
    let shown = leaves(terminal);
    assert!(
        shown.contains(&format!("Resume: tertulia --resume {}", short(&id))),
        "{shown}"
    );
    let prompt = cast.prompt("ben");
    assert!(
        prompt.contains("Ann: first words") && prompt.contains("Ada said this."),
        "{prompt}"
    );
    assert_eq!(speakers(&cast.messages(&id)), ["ann", "ada", "ann", "ben"]);
    assert_eq!(cast.home.all().len(), 1);
}

#[test]
fn a_new_talk_knows_nothing_of_the_old_one() {
    let (cast, id) = with_a_talk();
    let mut terminal = cast.open(&[]);
    terminal.sees("[N] New", 1);
    terminal.types("N\n");
    terminal.sees("Ann/Zoe> ", 1);
    terminal.types("[FROM: zoe] [NEXT: ben] new words\n");
    terminal.sees("Ben speaks.", 1);
    terminal.sees("\nAnn> ", 1);
    leaves(terminal);
    let prompt = cast.prompt("ben");
    assert!(
        !prompt.contains("first words") && !prompt.contains("Ada said"),
        "{prompt}"
    );
    assert_eq!(cast.home.all().len(), 2);
    assert_eq!(cast.home.said(&id).len(), 2);
}

#[test]
fn the_offer_can_be_left() {
    let (cast, id) = with_a_talk();
    for keys in ["q\n", "Q\n", CTRL_D] {
        let mut terminal = cast.open(&[]);
        terminal.sees("[N] New", 1);
        terminal.types(keys);
        let (code, shown) = terminal.ends();
        assert_eq!(code, 0, "{shown}");
    }
    assert_eq!(cast.home.all().len(), 1);
    assert_eq!(cast.home.said(&id).len(), 2);
}

/// A user who names a session is not asked, and neither is a script.
#[test]
fn nobody_is_asked_who_has_said_what_they_want() {
    let (cast, id) = with_a_talk();
    let mut terminal = cast.open(&["-c"]);
    terminal.sees("Resumed", 1);
    terminal.sees("Ann> ", 1);
    assert!(!leaves(terminal).contains("[R] Resume"));
    let terminal = cast.open(&["-p", "--as", "ann", "[NEXT: ben] go"]);
    let (code, shown) = terminal.ends();
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains("[R] Resume"), "{shown}");
    assert_eq!(cast.home.said(&id).len(), 2);
}

/// A new session that starts with a prompt mentions the earlier one without asking.
#[test]
fn an_earlier_talk_is_mentioned_to_who_begins_with_words() {
    let (cast, id) = with_a_talk();
    let mut terminal = cast.open(&["--as", "ann", "[NEXT: ben] go"]);
    terminal.sees("Ben speaks.", 1);
    terminal.sees("Ann> ", 1);
    let shown = leaves(terminal);
    let hint = format!("`tertulia --resume {}` resumes it", short(&id));
    assert!(
        shown.contains("\"first words\"") && shown.contains(&hint),
        "{shown}"
    );
    assert!(!shown.contains("[R] Resume"), "{shown}");
    assert_eq!(cast.home.said(&id).len(), 2);
    // Without a terminal it is not mentioned.
    let output = cast.run(&["--as", "ann", "[NEXT: ben] go"]).ok();
    output.lacks("earlier session");
}

#[test]
fn a_team_that_has_not_talked_begins_at_once() {
    let cast = cast();
    cast.home.say("a chat is not a team session");
    let mut terminal = cast.open(&[]);
    terminal.sees("The cast: Ada (ada), Ben (ben), Ann, Zoe.", 1);
    terminal.sees("Ann/Zoe> ", 1);
    let shown = leaves(terminal);
    assert!(!shown.contains("[R] Resume"), "{shown}");
    // Without a message nothing is saved.
    assert!(!shown.contains("Resume:"), "{shown}");
    assert_eq!(cast.home.all().len(), 1);
}

#[test]
fn slash_commands_tell_about_the_talk() {
    let cast = cast();
    let mut terminal = cast.open(&["--as", "zoe"]);
    terminal.sees("Zoe> ", 1);
    let mut prompts = 1;
    let mut asks = |terminal: &mut Terminal, keys: &str, words: &[&str]| {
        terminal.types(format!("{keys}\n"));
        prompts += 1;
        terminal.sees("> ", prompts);
        let shown = terminal.shown();
        for word in words {
            assert!(shown.contains(word), "{keys}: no {word:?} in {shown}");
        }
    };
    asks(&mut terminal, "/info", &["no messages yet"]);
    asks(&mut terminal, "/task", &["the team has no task"]);
    asks(&mut terminal, "/queue", &["the queue is empty"]);
    let members = ["Ada  [NEXT: ada]  agent", "Zoe  [NEXT: zoe]  person"];
    asks(&mut terminal, "/members", &members);
    asks(
        &mut terminal,
        "/help",
        &["/members", "/queue", "/task", "/as NAME", "[NEXT: name]"],
    );
    asks(
        &mut terminal,
        "/mebmers",
        &["there is no command /mebmers", "/members"],
    );
    asks(
        &mut terminal,
        "[NEXT: ada] [TEAM_TASK: Count sheep] hello",
        &["Ada said this."],
    );
    asks(&mut terminal, "/task", &["Count sheep"]);
    asks(
        &mut terminal,
        "/info",
        &["2 messages (Zoe 1, Ada 1, within"],
    );
    asks(&mut terminal, "/as ann", &["\nas Ann> "]);
    asks(&mut terminal, "/as ada", &["'ada' is an agent", "ann, zoe"]);
    asks(&mut terminal, "/as eve", &["'eve'"]);
    asks(&mut terminal, "thank you", &[]);
    asks(&mut terminal, "/as", &[]);
    leaves(terminal);
    assert_eq!(speakers(&cast.messages("@")), ["zoe", "ada", "ann"]);
}

/// On a terminal, `[FROM]` in a prompt takes precedence over `--as` and `/as`.
#[test]
fn words_may_be_another_persons_than_the_seat_that_was_taken() {
    let cast = cast();
    let mut terminal = cast.open(&["--as", "ann", "[FROM: zoe] [NEXT: ada] hello"]);
    terminal.sees("as Ann> ", 1);
    terminal.types("/as zoe\n");
    terminal.sees("as Zoe> ", 1);
    terminal.types("[FROM: ann] [NEXT: ada] again\n");
    terminal.sees("as Zoe> ", 2);
    terminal.types("thank you\n");
    terminal.sees("as Zoe> ", 3);
    terminal.types("/as\n");
    terminal.sees("\nAnn> ", 1);
    leaves(terminal);
    let said = cast.messages("@");
    assert_eq!(speakers(&said), ["zoe", "ada", "ann", "ada", "zoe"]);
}

#[test]
fn words_of_nobody_are_not_taken_and_can_be_said_again() {
    let cast = cast();
    let mut terminal = cast.open(&[]);
    terminal.sees("Ann/Zoe> ", 1);
    terminal.types("[NEXT: ada] hello\n");
    terminal.sees("who is speaking?", 1);
    terminal.sees("Ann/Zoe> ", 2);
    terminal.types("[FROM: ada] hello\n");
    terminal.sees("'ada' is an agent", 1);
    terminal.sees("Ann/Zoe> ", 3);
    assert_eq!(cast.asked("ada"), 0);
    terminal.types("[FROM: zoe] [NEXT: ada] hello\n");
    terminal.sees("Ada said this.", 1);
    terminal.sees("Ann> ", 1);
    leaves(terminal);
    assert_eq!(speakers(&cast.messages("@")), ["zoe", "ada"]);
}

/// A session that `-c` would not resume is not mentioned.
#[test]
fn a_chat_does_not_mention_a_teams_talk() {
    let cast = Cast::of(&["ada"], &["ann"]);
    cast.turn(&["[NEXT: ada] go"]);
    let mut terminal = Terminal::open(&cast.home, &["chat", "--no-color"], &[]);
    terminal.sees("you> ", 1);
    terminal.types("/exit\n");
    let (_, shown) = terminal.ends();
    assert!(!shown.contains("earlier session"), "{shown}");
}
