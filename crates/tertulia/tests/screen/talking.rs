//! Conversations: greeting, answers, stopping, resuming.

use std::fs;

use tertulia_testkit::provider::{Api, FakeProvider};
use tertulia_testkit::terminal::Terminal;

use super::agents;
use super::stage::{leave, open, ready, say, status, status_says, talk, wrote};
use crate::home::{Home, short};

#[test]
fn the_first_screen_says_who_is_there_and_what_to_do() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    let shown = terminal.contents();
    for words in [
        "demo",
        "Enter sends",
        "F1",
        "/sessions",
        "saved before it is answered",
    ] {
        assert!(shown.contains(words), "no {words:?} in\n{shown}");
    }
    let (row, column) = terminal.cursor().expect("a cursor");
    assert_eq!(terminal.row(row).split('>').next(), Some("you"));
    assert_eq!((row, column), (22, 5), "{shown}");
    terminal.look(|screen| {
        assert!(screen.marks_pastes() && screen.hears_the_mouse());
        assert!(!status(screen).contains("saved"), "{}", status(screen));
    });
    leave(&mut terminal);
    assert!(
        home.all().is_empty(),
        "nothing was said, and nothing is kept"
    );
}

#[test]
fn what_is_said_is_answered_and_kept() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    say(&mut terminal, "hello", "Hello! I am the demo agent");
    say(&mut terminal, "what did I say?", "1. hello");
    assert_eq!(home.said("@").len(), 4);
    let session = home.show("@");
    let id = short(session["id"].as_str().unwrap());
    terminal.look(|screen| {
        let status = status(screen);
        assert!(
            status.contains(&id) && status.ends_with(" · saved"),
            "{status}"
        );
    });
    leave(&mut terminal);
    assert!(!terminal.is_alternate());
    let shown = terminal.contents();
    let hint = format!("tertulia --resume {id}");
    assert!(shown.contains(&hint), "{shown}");
}

#[test]
fn words_on_the_command_line_are_said_first() {
    let home = Home::new();
    let mut terminal = open(&home, &["count to 5"]);
    terminal.sees("1 2 3 4 5");
    ready(&mut terminal);
    leave(&mut terminal);
    assert_eq!(home.said("@"), ["count to 5", "1 2 3 4 5"]);
}

#[test]
fn a_talk_is_gone_on_with_where_it_was() {
    let home = Home::new();
    let id = home.say("the milk");
    home.say_in(&id, "the bread");
    let mut terminal = talk(&home, &["-c"]);
    terminal.sees("── restored: 4 messages");
    status_says(&mut terminal, "restored 4");
    for words in ["the milk", "the bread", "Our session has 3 messages"] {
        terminal.sees(words);
    }
    say(&mut terminal, "what did I say?", "2. the bread");
    terminal.look(|screen| {
        let place = |words| screen.place_of(words).unwrap().0;
        assert!(place("── restored") < place("2. the bread"));
    });
    leave(&mut terminal);
    assert_eq!(home.all().len(), 1);
    assert_eq!(home.said("@").len(), 6);
}

/// Both keys arrive before the conversation has processed the first.
#[test]
fn what_was_only_just_said_can_be_stopped() {
    let home = Home::new();
    home.settings("[agents.demo]\npace = 50\n");
    let mut terminal = talk(&home, &[]);
    terminal.send("count to 100\r\u{1b}[27u");
    terminal.sees("· stopped");
    ready(&mut terminal);
    leave(&mut terminal);
    let said = home.said("@");
    assert_eq!(said[0], "count to 100");
    assert!(!said.concat().contains("99"), "{said:?}");
}

#[test]
fn an_earlier_talk_is_offered_and_enter_resumes_it() {
    let home = Home::new();
    home.say("the milk");
    let mut terminal = talk(&home, &[]);
    terminal.sees(concat!("tertulia ", env!("CARGO_PKG_VERSION")));
    terminal.sees("Last session: \"the milk\" (just now, 2 messages): Enter resumes it.");
    leave(&mut terminal);
    assert_eq!(home.all().len(), 1);
    let mut terminal = talk(&home, &[]);
    terminal.keys("Enter");
    terminal.sees("── restored: 2 messages");
    ready(&mut terminal);
    say(&mut terminal, "what did I say?", "1. the milk");
    // From the first turn on it is a session like any other.
    terminal.look(|screen| assert!(!status(screen).contains("restored")));
    leave(&mut terminal);
    assert_eq!(home.all().len(), 1);
}

#[test]
fn esc_stops_an_answer_and_the_talk_goes_on() {
    let home = Home::new();
    home.settings("[agents.demo]\npace = 50\n");
    let mut terminal = talk(&home, &[]);
    terminal.type_text("count to 500\n");
    terminal.sees("7 8 9 ");
    terminal.sees("Esc stops");
    terminal.keys("Esc");
    terminal.sees("⏹ interrupted");
    ready(&mut terminal);
    say(&mut terminal, "echo still here", "still here");
    leave(&mut terminal);
    let session = home.show("@");
    assert_eq!(session["entries"][2]["interrupted"], true);
    let kept = session["entries"][2]["content"].as_str().unwrap();
    assert!(
        kept.starts_with("1 2 3 4 5 6 7 8 9") && !kept.contains("499"),
        "{kept}"
    );
    assert_eq!(home.said("@")[3], "still here");
}

/// A prompt that was stopped before an answer is not sent again with the next one.
#[test]
fn esc_before_an_answer_withdraws_the_words() {
    let home = Home::new();
    let script = "cat > ../told; if grep -q '^DELETE EVERYTHING$' ../told; then touch ../hanging; sleep 60; fi; echo fine";
    home.script_agent("slow", script);
    let mut terminal = talk(&home, &["--agent", "slow"]);
    terminal.type_text("DELETE EVERYTHING\n");
    crate::home::until("it is asked", || {
        home.path().join("hanging").exists().then_some(())
    });
    terminal.keys("Esc");
    terminal.sees("(stopped before an answer)");
    ready(&mut terminal);
    say(&mut terminal, "what time is it?", "fine");
    leave(&mut terminal);
    let told = fs::read_to_string(home.path().join("told")).unwrap();
    let at = told.find("DELETE EVERYTHING").unwrap();
    assert!(told[..at].contains("Do not act on it"), "{told}");
    assert!(told.ends_with("what time is it?"), "{told}");
}

/// The byte that a plain terminal sends for Esc also begins other keys.
#[test]
fn esc_of_a_plain_terminal_stops_an_answer() {
    let home = Home::new();
    home.settings("[agents.demo]\npace = 50\n");
    let mut terminal = open(&home, &["count to 500"]);
    terminal.sees("7 8 9 ");
    terminal.keys("Esc");
    terminal.sees("⏹ interrupted");
    ready(&mut terminal);
    leave(&mut terminal);
}

#[test]
fn what_is_written_meanwhile_is_said_afterwards() {
    let home = Home::new();
    home.script_agent("slow", crate::running::WAITING);
    let mut terminal = talk(&home, &["--agent", "slow"]);
    terminal.type_text("first\n");
    terminal.sees("begun");
    terminal.type_text("second\n");
    terminal.sees("queued: second");
    terminal.type_text("half");
    wrote(&mut terminal, &["half"]);
    agents::go(&home);
    terminal.wait_for("two answers", |screen| screen.rows_with("done") == 2);
    ready(&mut terminal);
    wrote(&mut terminal, &["half"]);
    let said = home.said("@");
    assert_eq!(
        (said[0].as_str(), said[2].as_str(), said.len()),
        ("first", "second", 4)
    );
}

#[test]
fn what_was_to_be_said_comes_back_when_the_answer_is_stopped() {
    let home = Home::new();
    home.script_agent("slow", crate::running::WAITING);
    let mut terminal = talk(&home, &["--agent", "slow"]);
    terminal.type_text("first\n");
    terminal.sees("begun");
    terminal.type_text("second\n");
    terminal.sees("queued: second");
    terminal.keys("Esc");
    terminal.sees("⏹ interrupted");
    wrote(&mut terminal, &["second"]);
    ready(&mut terminal);
    assert_eq!(home.said("@")[0], "first");
    assert!(!home.said("@").contains(&"second".to_owned()));
}

#[test]
fn a_queued_message_is_edited_and_removed() {
    let home = Home::new();
    home.script_agent("slow", crate::running::WAITING);
    let mut terminal = talk(&home, &["--agent", "slow"]);
    terminal.type_text("first\n");
    terminal.sees("begun");
    // Both at once would be a paste.
    terminal.type_text("second\n");
    terminal.sees("queued: second");
    terminal.type_text("third\n");
    terminal.sees("queued: second (+1) · ↑ edit");
    terminal.keys("Up");
    wrote(&mut terminal, &["third"]);
    terminal.keys("^x");
    terminal.sees("queued: second · ↑ edit");
    terminal.keys("Up");
    terminal.type_text(" thought\n");
    terminal.sees("queued: second thought");
    // A command that has to wait is not lost.
    terminal.type_text("/new\n");
    terminal.sees("slow is answering; Esc first, then /new");
    wrote(&mut terminal, &["/new"]);
    terminal.keys("^u");
    agents::go(&home);
    terminal.wait_for("two answers", |screen| screen.rows_with("done") == 2);
    ready(&mut terminal);
    leave(&mut terminal);
    let said = home.said("@");
    assert_eq!((said[2].as_str(), said.len()), ("second thought", 4));
}

/// The prompt is in the log once, however often it is asked for.
#[test]
fn a_failed_answer_is_asked_for_again() {
    let home = Home::new();
    home.script_agent(
        "shaky",
        "if [ -e ok ]; then echo there it is; else touch ok; exit 3; fi",
    );
    let mut terminal = talk(&home, &["--agent", "shaky"]);
    terminal.type_text("hello\n");
    status_says(&mut terminal, "FAILED");
    terminal.sees("/retry asks again · /agents chooses another agent");
    assert!(
        !terminal.contents().contains("--agent"),
        "{}",
        terminal.contents()
    );
    terminal.type_text("/retry\n");
    terminal.sees("there it is");
    ready(&mut terminal);
    terminal.type_text("/retry\n");
    terminal.sees("nothing to retry");
    ready(&mut terminal);
    leave(&mut terminal);
    assert_eq!(home.said("@"), ["hello", "there it is\n"]);
    home.run(&["doctor"]).ok();
}

/// The program is killed in the middle of an answer: the prompt is asked again, and is not doubled.
#[test]
fn an_answer_that_was_cut_off_is_asked_for_again() {
    let home = Home::new();
    home.script_agent("slow", crate::running::WAITING);
    let mut terminal = talk(&home, &["--agent", "slow"]);
    terminal.type_text("first\n");
    terminal.sees("begun");
    rustix::process::kill_process(terminal.pid(), rustix::process::Signal::KILL).unwrap();
    drop(terminal);
    agents::go(&home);
    let mut terminal = talk(&home, &["-c", "--agent", "slow"]);
    terminal.type_text("/retry\n");
    terminal.sees("done");
    ready(&mut terminal);
    leave(&mut terminal);
    let said = home.said("@");
    assert_eq!(said.iter().filter(|words| *words == "first").count(), 1);
    assert_eq!(said.last().unwrap(), "begun\ndone\n");
    home.run(&["doctor"]).ok();
}

#[test]
fn a_long_paste_is_folded_everywhere() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    let lines: Vec<String> = (1..=300).map(|line| format!("line {line}")).collect();
    terminal.paste(&lines.join("\n"));
    wrote(&mut terminal, &["[pasted 300 lines]"]);
    terminal.keys("Enter");
    terminal.sees("… 290 more lines, o unfolds");
    ready(&mut terminal);
    terminal.keys("Up");
    wrote(&mut terminal, &["[300 lines]"]);
    terminal.keys("Tab");
    terminal.wait_for("how many lines are above", |screen| {
        screen.rows().iter().any(|row| row.starts_with("↑29"))
    });
}

#[test]
fn a_failure_is_told_and_the_talk_goes_on() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    terminal.type_text("fail\n");
    terminal.sees("the demo failed, as it was asked to");
    status_says(&mut terminal, "FAILED");
    say(&mut terminal, "echo still here", "still here");
    leave(&mut terminal);
    assert!(home.said("@").contains(&"still here".to_owned()));
}

#[test]
fn thoughts_are_shown_apart_from_the_answer() {
    let provider = FakeProvider::start();
    let home = Home::new();
    let url = provider.base_url(Api::Ollama);
    home.settings(&format!(
        "agent = \"a\"\n[agents.a]\ntype = \"ollama\"\nbase_url = \"{url}\"\nmodel = \"m\"\n"
    ));
    let mut terminal = talk(&home, &[]);
    let words = "[[think:They want a word.]] [[say:Here it is.]]";
    terminal.type_text(&format!("{words}\n"));
    terminal.sees("  Here it is.");
    terminal.sees("  ▸ thought: They want a word.");
    ready(&mut terminal);
    leave(&mut terminal);
    let session = home.show("@");
    let answer = session["entries"].as_array().unwrap().last().unwrap();
    assert_eq!(answer["reasoning"], "They want a word.", "{answer}");
    let mut terminal = open(&home, &["-c"]);
    terminal.sees("▸ thought: They want a word.");
    terminal.sees("  Here it is.");
    terminal.keys("^o");
    terminal.type_text("a");
    terminal.sees("┊ They want a word.");
}

/// It is saved without an answer, and shown once.
#[test]
fn reasoning_of_a_stopped_answer_stays() {
    let provider = FakeProvider::start();
    let home = Home::new();
    let url = provider.base_url(Api::Ollama);
    home.settings(&format!(
        "agent = \"a\"\n[agents.a]\ntype = \"ollama\"\nbase_url = \"{url}\"\nmodel = \"m\"\n"
    ));
    let mut terminal = talk(&home, &[]);
    terminal.type_text("[[think:One two three four five six seven eight.]] [[delay:200]]\n");
    terminal.wait_for("reasoning", |screen| {
        let mut rows = screen.rows().into_iter();
        rows.any(|row| row.starts_with("  ┊") && row.contains("One two"))
    });
    terminal.keys("Esc");
    ready(&mut terminal);
    terminal.sees("▸ thought: One two");
    terminal.look(|screen| assert_eq!(screen.rows_with("thought: One"), 1));
    let session = home.show("@");
    let entries = session["entries"].as_array().unwrap();
    let thoughts = entries.iter().filter(|entry| entry["type"] == "thought");
    assert_eq!(thoughts.count(), 1, "{entries:?}");
}

/// Reasoning that was on the screen for more than a second survives a kill, and is no answer.
#[test]
fn reasoning_survives_a_kill() {
    let provider = FakeProvider::start();
    let home = Home::new();
    let url = provider.base_url(Api::Ollama);
    home.settings(&format!(
        "agent = \"a\"\n[agents.a]\ntype = \"ollama\"\nbase_url = \"{url}\"\nmodel = \"m\"\n"
    ));
    let mut terminal = talk(&home, &[]);
    let words: Vec<String> = (0..400).map(|word| format!("word{word}")).collect();
    let prompt = format!("[[think:{}]] [[delay:50]] [[say:so]]", words.join(" "));
    terminal.type_text(&format!("{prompt}\n"));
    terminal.wait_for("fifty words of reasoning", |screen| {
        let mut rows = screen.rows().into_iter();
        rows.any(|row| row.starts_with("  ┊") && row.contains("word50"))
    });
    terminal.kill9();
    let session = home.show("@");
    let entries = session["entries"].as_array().unwrap();
    let thought = entries.iter().find(|entry| entry["type"] == "thought");
    let text = thought.unwrap()["text"].as_str().unwrap();
    assert!(text.contains("word20 "), "{text}");
}

#[test]
fn loaded_instructions_are_named_in_every_session_of_the_run() {
    let provider = FakeProvider::start();
    let home = Home::new();
    let url = provider.base_url(Api::Ollama);
    home.settings(&format!(
        "agent = \"a\"\n[agents.a]\ntype = \"ollama\"\nbase_url = \"{url}\"\nmodel = \"m\"\n"
    ));
    fs::write(home.project().join("AGENTS.md"), "Plant tulips.").unwrap();
    let answered = |terminal: &mut Terminal, words: &str| {
        terminal.type_text(&format!("[[say:{words}]]\n"));
        terminal.wait_for("the answer", |screen| {
            screen.rows().contains(&format!("  {words}"))
        });
        ready(terminal);
    };
    let has_them = |args: &[&str]| {
        let mut terminal = talk(&home, args);
        if args.is_empty() {
            terminal.wait_for("the instructions in the welcome", |screen| {
                let text = screen.rows().join(" ");
                text.contains("AGENTS.md (13 bytes).") && text.contains("Enter sends")
            });
        }
        answered(&mut terminal, "Here it is.");
        // The flag holds for the next session as well.
        terminal.type_text("/new\n");
        terminal.sees("Last session:");
        ready(&mut terminal);
        answered(&mut terminal, "And again.");
        leave(&mut terminal);
        let mut asked = provider.requests();
        asked.retain(|request| request.method == "POST");
        let last = asked.split_off(asked.len() - 2);
        let told = last.iter().map(|request| request.body.to_string());
        told.map(|body| body.contains("Plant tulips."))
            .collect::<Vec<bool>>()
    };
    assert_eq!(has_them(&[]), [true, true]);
    assert_eq!(has_them(&["--no-project-instructions"]), [false, false]);
}

#[test]
fn what_an_agent_means_to_do_is_listed() {
    let home = Home::new();
    agents::plans(&home);
    let mut terminal = talk(&home, &[]);
    terminal.type_text("mend it\n");
    terminal.sees("1 of 2 done");
    terminal.sees("☑ look at 漢字");
    terminal.sees("☐ mend it");
    agents::go(&home);
    terminal.sees("mended");
    ready(&mut terminal);
    leave(&mut terminal);
}

#[test]
fn nothing_of_an_answer_steers_the_terminal() {
    let home = Home::new();
    home.script_agent(
        "evil",
        "printf 'a\\033]0;owned\\007b\\033[2Jc\\rd\\302\\2332Je\\033[?1049lf\\n'; printf 'no\\033[2J\\007' >&2",
    );
    let mut terminal = talk(&home, &["--agent", "evil"]);
    terminal.type_text("hi\n");
    terminal.sees("abc");
    ready(&mut terminal);
    assert!(terminal.is_alternate());
    assert_eq!(terminal.bells(), 0);
    leave(&mut terminal);
    let raw = terminal.raw_text();
    assert!(
        !raw.contains("\u{1b}]0;owned") && !raw.contains('\u{9b}'),
        "{raw:?}"
    );
}

#[test]
fn markdown_is_drawn_as_it_is_meant() {
    let home = Home::new();
    agents::says(&home, "writer", agents::MARKDOWN);
    let mut terminal = super::stage::open_at(
        &home,
        &["--agent", "writer", "write it down"],
        tertulia_testkit::terminal::Size::new(80, 50),
    );
    ready(&mut terminal);
    terminal.sees("quoted");
    let shown = terminal.contents();
    for marks in ["**", "```", "|:--", "[a link]("] {
        assert!(!shown.contains(marks), "{marks:?} in\n{shown}");
    }
    terminal.look(|screen| {
        let style = |words| {
            let (row, column) = screen
                .place_of(words)
                .unwrap_or_else(|| panic!("no {words:?} in\n{}", screen.framed()));
            screen.inner().cell(row, column).unwrap().clone()
        };
        assert!(style("bold").bold());
        assert!(style("leaning").italic());
        assert_ne!(style("-old").fgcolor(), style("+new").fgcolor());
        assert_ne!(style("fn main").fgcolor(), style("// a comment").fgcolor());
    });
    let file = fs::read_to_string(home.path().join("writer.answer")).unwrap();
    assert_eq!(
        home.said("@")[1].trim_end(),
        file.trim_end(),
        "the text at rest is the agent's"
    );
}
