//! Slash commands.

use std::fs;

use tertulia_testkit::terminal::Terminal;

use super::stage::{leave, ready, say, status_says, talk, wrote};
use crate::home::{Home, short, until};
use crate::teams::cast::Cast;

/// A session with a prompt and an answer.
fn talked(home: &Home) -> Terminal {
    let mut terminal = talk(home, &[]);
    say(&mut terminal, "echo the first words", "the first words");
    terminal
}

/// Opens an overlay by a command, checks that it shows these texts, and closes it.
#[track_caller]
fn shows(terminal: &mut Terminal, command: &str, words: &[&str]) {
    terminal.type_text(&format!("{command}\n"));
    for words in words {
        terminal.sees(words);
    }
    terminal.keys("Esc");
    ready(terminal);
}

fn titles(home: &Home) -> Vec<String> {
    let sessions = home.all().into_iter();
    sessions
        .map(|session| session["title"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn help_info_members_queue_task_agents_and_stats_tell() {
    let home = Home::new();
    let mut terminal = talked(&home);
    shows(&mut terminal, "/help", &["Commands", "/rename"]);
    let id = home.all()[0]["id"].as_str().unwrap().to_owned();
    shows(
        &mut terminal,
        "/info",
        &["This session", &id, "messages  2"],
    );
    shows(&mut terminal, "/members", &["Members", "demo"]);
    shows(&mut terminal, "/queue", &["the queue is empty"]);
    shows(&mut terminal, "/task", &["the team has no task"]);
    shows(
        &mut terminal,
        "/agents",
        &["Agents", "demo", "in use", "not ready"],
    );
    shows(
        &mut terminal,
        "/stats",
        &["Statistics", "2 messages", "By agent"],
    );
    shows(&mut terminal, "/team list", &["Teams"]);
    shows(
        &mut terminal,
        "/tree",
        &["Forks of this session", "1 session"],
    );
    shows(
        &mut terminal,
        "/search first",
        &["Search this project", "the first words"],
    );
    shows(
        &mut terminal,
        "/sessions",
        &["Sessions of this project", "1 session"],
    );
    shows(&mut terminal, "/resume", &["Sessions of this project"]);
    leave(&mut terminal);
}

#[test]
fn rename_and_tag_change_the_session() {
    let home = Home::new();
    let mut terminal = talked(&home);
    terminal.type_text("/rename A better 題\n");
    status_says(&mut terminal, "A better 題");
    until("it is renamed", || {
        (titles(&home) == ["A better 題"]).then_some(())
    });
    terminal.type_text("/tag +red +blue\n");
    terminal.sees("#blue #red");
    terminal.type_text("/tag -red\n");
    until("it is tagged", || {
        (home.all()[0]["tags"] == serde_json::json!(["blue"])).then_some(())
    });
    leave(&mut terminal);
}

#[test]
fn new_and_resume_change_the_talk() {
    let home = Home::new();
    let mut terminal = talked(&home);
    let first = home.all()[0]["id"].as_str().unwrap().to_owned();
    terminal.type_text("/new\n");
    terminal.sees("Last session: \"echo the first words\"");
    ready(&mut terminal);
    say(&mut terminal, "echo other words", "other words");
    assert_eq!(home.all().len(), 2);
    terminal.type_text(&format!("/resume {}\n", short(&first)));
    terminal.sees("the first words");
    terminal.sees("── restored: 2 messages");
    status_says(&mut terminal, &short(&first));
    ready(&mut terminal);
    say(&mut terminal, "what did I say?", "1. echo the first words");
    terminal.type_text("/resume nosuch\n");
    terminal.sees("nosuch");
    terminal.keys("Esc");
    ready(&mut terminal);
    leave(&mut terminal);
    assert_eq!(home.said(&first).len(), 4);
}

#[test]
fn fork_and_rewind_go_on_in_a_copy() {
    let home = Home::new();
    let mut terminal = talked(&home);
    let first = home.all()[0]["id"].as_str().unwrap().to_owned();
    say(&mut terminal, "echo the second words", "the second words");
    terminal.type_text("/fork 3\n");
    until("there is a fork", || (home.all().len() == 2).then_some(()));
    terminal.sees_no_more("the second words");
    ready(&mut terminal);
    terminal.sees("the first words");
    say(&mut terminal, "echo elsewhere", "elsewhere");
    assert_eq!(home.said(&first).len(), 4);
    // Rewinds to before the last prompt, so that it can be edited.
    terminal.type_text("/rewind 5\n");
    wrote(&mut terminal, &["echo elsewhere"]);
    ready(&mut terminal);
    until("there is another", || (home.all().len() == 3).then_some(()));
    terminal.keys("^u");
    leave(&mut terminal);
    assert_eq!(home.said(&first).len(), 4);
}

#[test]
fn compact_sums_up() {
    let home = Home::new();
    let mut terminal = talked(&home);
    terminal.type_text("/compact\n");
    terminal.sees("(o shows it).");
    assert!(!terminal.contents().contains("the log keeps every message"));
    ready(&mut terminal);
    leave(&mut terminal);
}

#[test]
fn export_writes_a_file() {
    let home = Home::new();
    let mut terminal = talked(&home);
    terminal.type_text("/export md talk.md\n");
    terminal.sees("written:");
    let text = fs::read_to_string(home.project().join("talk.md")).unwrap();
    assert!(text.contains("the first words"), "{text}");
    terminal.type_text("/export\n");
    until("a file with a name of its own", || {
        (fs::read_dir(home.project()).unwrap().count() == 2).then_some(())
    });
    leave(&mut terminal);
}

#[test]
fn compare_shows_two_talks() {
    let home = Home::new();
    let other = home.say("echo something else");
    let mut terminal = talked(&home);
    let command = format!("/compare {}", short(&other));
    shows(
        &mut terminal,
        &command,
        &["the first words", "something else"],
    );
    leave(&mut terminal);
}

#[test]
fn a_model_is_chosen_and_the_session_goes_on() {
    let home = Home::new();
    let mut terminal = talked(&home);
    terminal.type_text("/model\n");
    terminal.sees("● demo-1");
    terminal.keys("Esc");
    // Text typed next does not select a model, and one that is not listed is asked about.
    terminal.type_text("/model oops\n");
    terminal.sees("'oops' is not listed by demo; use it anyway?");
    terminal.sees("Enter no");
    terminal.keys("Esc");
    ready(&mut terminal);
    // What is in the input stays there.
    terminal.type_text("/model demo-1\n");
    terminal.sees("demo answers from here on (demo-1)");
    ready(&mut terminal);
    terminal.look(|screen| assert!(!screen.has("restored")));
    leave(&mut terminal);
}

#[test]
fn another_agent_answers_in_the_same_session() {
    let home = Home::new();
    home.script_agent("upper", "cat > /dev/null; echo I AM UPPER");
    let mut terminal = talked(&home);
    terminal.type_text("/agents uper\n");
    terminal.sees("there is no agent 'uper'; did you mean upper?");
    wrote(&mut terminal, &["/agents uper"]);
    terminal.keys("^u");
    terminal.type_text("/agents\n");
    terminal.sees("in use");
    terminal.type_text("upp");
    terminal.sees_no_more("in use");
    terminal.keys("Enter");
    terminal.sees("upper answers from here on");
    ready(&mut terminal);
    say(&mut terminal, "who are you?", "I AM UPPER");
    terminal.look(|screen| assert!(!screen.has("restored")));
    leave(&mut terminal);
    assert_eq!(home.all().len(), 1);
    let shown = home.run(&["show", "@", "--entries"]).ok();
    shown.says("upper answers from here on");
    let shown = home.run(&["export", "@", "--format", "md"]).ok();
    shown.says("> upper answers from here on");
    // A copy by its own format has it, and the session is resumed with that agent.
    let mut terminal = talk(&home, &["-c"]);
    status_says(&mut terminal, "upper");
    leave(&mut terminal);
}

#[test]
fn an_agent_chosen_first_begins_the_session() {
    let home = Home::new();
    home.script_agent("upper", "cat > /dev/null; echo I AM UPPER");
    let mut terminal = talk(&home, &[]);
    terminal.type_text("/agent upper\n");
    terminal.sees("upper answers (");
    status_says(&mut terminal, "upper");
    assert!(home.all().is_empty(), "nothing was said");
    say(&mut terminal, "who are you?", "I AM UPPER");
    leave(&mut terminal);
    let shown = home.run(&["show", "@", "--entries"]).ok();
    shown.says("upper answers from here on");
}

#[test]
fn a_team_is_deployed() {
    let cast = Cast::of(&["ada"], &["ann"]);
    let mut terminal = talk(&cast.home, &[]);
    terminal.type_text("/team deploy team.json\n");
    terminal.sees("The cast: Ada (ada), Ann.");
    terminal.sees("Ann>");
    ready(&mut terminal);
    terminal.type_text("[NEXT: ada] hello\n");
    terminal.sees("Ada speaks.");
    ready(&mut terminal);
    terminal.type_text("/as ann\n");
    terminal.type_text("/members\n");
    terminal.sees("[NEXT: ada]");
    terminal.keys("Esc");
    ready(&mut terminal);
    leave(&mut terminal);
}

#[test]
fn an_unknown_command_names_the_nearest_and_is_not_lost() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    terminal.type_text("/renmae New\n");
    terminal.sees("there is no command /renmae");
    terminal.sees("/rename");
    wrote(&mut terminal, &["/renmae New"]);
    terminal.keys("^u");
    terminal.type_text("/rename New\n");
    terminal.sees("no messages yet");
    leave(&mut terminal);
    assert!(home.all().is_empty());
}

#[test]
fn every_way_of_leaving() {
    for command in ["/exit", "/quit", "/end"] {
        let home = Home::new();
        let mut terminal = talked(&home);
        terminal.type_text(&format!("{command}\n"));
        assert_eq!(terminal.exit_code(), 0, "{command}");
        assert!(!terminal.is_alternate());
        assert_eq!(home.said("@").len(), 2);
    }
}

/// The policy that the user chose last holds wherever the screen goes.
#[test]
fn a_tightened_policy_does_not_come_back() {
    let home = Home::new();
    let earlier = home.say("echo earlier");
    let mut terminal = talk(&home, &["--approve", "all"]);
    say(&mut terminal, "echo the first words", "the first words");
    status_says(&mut terminal, "approve: all");
    terminal.type_text("/approve ask\n");
    terminal.wait_for("it is tightened", |screen| !screen.has("approve: all"));
    let is_tight = |terminal: &mut Terminal, words: &str| {
        terminal.sees(words);
        ready(terminal);
        shows(terminal, "/permissions", &["tool policy: ask"]);
    };
    terminal.type_text("/fork\n");
    is_tight(&mut terminal, "── restored: 2 messages");
    terminal.type_text("/new\n");
    is_tight(&mut terminal, "Last session:");
    terminal.type_text(&format!("/resume {}\n", short(&earlier)));
    is_tight(&mut terminal, "echo earlier");
    leave(&mut terminal);
}

/// A session that is resumed elsewhere works in its own folder, and so does the next one.
#[test]
fn a_new_session_works_where_the_one_before_did() {
    let home = Home::new();
    let own = home.folder("own");
    let first = home.prepare(&["chat", "-p", "echo earlier", "--name", "first"]);
    first.folder(&own).run().ok();
    let mut terminal = talk(&home, &["--approve", "all", "-r", "first"]);
    status_says(&mut terminal, "in own");
    terminal.type_text("/new\n");
    terminal.sees("Last session:");
    ready(&mut terminal);
    status_says(&mut terminal, "in own");
    let writes = r#"use file_write {"path":"made","content":"x"}"#;
    say(&mut terminal, writes, "The tool said");
    assert!(own.join("made").exists() && !home.project().join("made").exists());
    leave(&mut terminal);
}
