//! Resuming a session.

use crate::home::{Home, short};

const ASK: &str = "what did I say?";

#[test]
fn continue_takes_the_newest_of_this_project() {
    let home = &Home::new();
    home.say("one");
    home.say("two");
    let other = home.folder("other");
    home.prepare(&["chat", "-p", "three"])
        .folder(&other)
        .run()
        .ok();
    let output = home.run(&["-c", "-p", ASK]).ok();
    assert_eq!(output.stdout, "You said:\n\n1. two\n");
    assert_eq!(home.all().len(), 3);
}

#[test]
fn continue_without_an_earlier_talk_here_is_not_found() {
    let home = &Home::new();
    home.say("one");
    let prepared = home
        .prepare(&["-c", "-p", "hi"])
        .folder(home.folder("other"));
    prepared
        .run()
        .code(3)
        .notes("no earlier chat session in this project");
    assert_eq!(home.all().len(), 1);
}

#[test]
fn without_a_flag_a_new_session_starts() {
    let home = &Home::new();
    home.say("one");
    let output = home.run(&["chat", "-p", ASK]).ok();
    assert_eq!(output.stdout, "You have said nothing before this.\n");
    assert_eq!(home.all().len(), 2);
}

#[test]
fn resume_takes_the_named_session() {
    let home = &Home::new();
    let first = home.say("one");
    home.say("two");
    for args in [
        ["--resume", &first],
        ["-r", &short(&first)],
        ["-s", &first],
        ["--session", "one"],
    ] {
        let output = home.run(&[args[0], args[1], "-p", ASK]).ok();
        assert!(
            output.stdout.starts_with("You said:\n\n1. one\n"),
            "{output:?}"
        );
    }
    assert_eq!(home.all().len(), 2);
}

#[test]
fn bare_resume_takes_the_newest_also_of_another_project() {
    let home = &Home::new();
    home.say("one");
    home.say("two");
    let output = home.run(&["-p", ASK, "-r"]).ok();
    assert_eq!(output.stdout, "You said:\n\n1. two\n");
    let prepared = home
        .prepare(&["--resume", "-p", ASK])
        .folder(home.folder("other"));
    let output = prepared.run().ok();
    assert!(
        output.stdout.starts_with("You said:\n\n1. two\n"),
        "{output:?}"
    );
}

#[test]
fn a_value_with_a_space_is_the_prompt_for_the_newest() {
    let home = &Home::new();
    home.say("one");
    let output = home.run(&["--resume", "Continue with part 2"]).ok();
    output
        .notes("Continue with part 2")
        .notes("taken as the prompt");
    let said = home.said("@");
    assert_eq!(
        (said[0].as_str(), said[2].as_str()),
        ("one", "Continue with part 2")
    );
    assert_eq!(home.all().len(), 1);
}

#[test]
fn a_title_with_a_space_is_the_session_not_a_prompt() {
    let home = &Home::new();
    let id = home.say("one");
    home.run(&["rename", &id, "Part two of it"]).ok();
    home.say("newer");
    let output = home.run(&["--resume", "Part two of it", "-p", ASK]).ok();
    assert_eq!(output.stdout, "You said:\n\n1. one\n");
    output.lacks("taken as the prompt");
}

#[test]
fn session_with_a_space_is_never_a_prompt() {
    let home = Home::new();
    home.say("one");
    let output = home.run(&["--session", "Continue with part 2", "-p", "x"]);
    output.code(3).notes("Continue with part 2");
    assert_eq!(home.said("@").len(), 2);
}

#[test]
fn an_unknown_reference_is_not_found() {
    let home = &Home::new();
    home.say("one");
    let output = home.run(&["--resume", "nosuch", "-p", "x"]).code(3);
    output
        .notes("nosuch")
        .notes(&home.store_url())
        .lacks("did you mean");
    assert_eq!(home.said("@").len(), 2);
}

/// The syntax of claude-master, whose sessions `pair` continues.
#[test]
fn resume_and_session_together_name_one_session() {
    let home = &Home::new();
    let first = home.say("one");
    home.say("two");
    let output = home.run(&["--resume", "--session", &first, "-p", ASK]).ok();
    assert_eq!(output.stdout, "You said:\n\n1. one\n");
    // The value of --resume can only be the prompt here.
    let output = home.run(&["--resume", ASK, "--session", &first]).ok();
    assert!(
        output.stdout.starts_with("You said:\n\n1. one\n"),
        "{output:?}"
    );
    let both = home.run(&["--resume", "two", "--session", &first, "-p", "x"]);
    both.code(2).notes("omit one of the two");
}

#[test]
fn a_resumed_session_is_told_from_a_new_one() {
    let home = &Home::new();
    let run = |args: &[&str]| {
        let stream = ["--output-format", "stream-json"];
        let output = home.run(&[args, &stream].concat()).ok();
        (output.events().remove(0), output.stderr)
    };
    let (new, notes) = run(&["chat", "-p", "one"]);
    assert_eq!(new["type"], "session.started");
    assert_eq!(
        (&new["resumed"], &new["messages"]),
        (&false.into(), &0.into())
    );
    assert!(!notes.contains("Resumed"), "{notes}");
    let (again, notes) = run(&["-c", "-p", "two"]);
    assert_eq!(again["session_id"], new["session_id"]);
    assert_eq!(
        (&again["resumed"], &again["messages"]),
        (&true.into(), &2.into())
    );
    let year = jiff::Timestamp::now().strftime("%Y-").to_string();
    for words in ["Resumed \"one\" of ", &year, "(just now): 2 messages."] {
        assert!(notes.contains(words), "{words} in {notes}");
    }
}

#[test]
fn nothing_to_resume_names_nothing_that_was_not_typed() {
    let home = &Home::new();
    for args in [&["--resume", "-p", "x"][..], &["--resume", "two words"]] {
        let output = home.run(args).code(3);
        output
            .notes("no session to resume")
            .lacks("'@'")
            .lacks("did you mean");
    }
    for args in [["show"], ["export"], ["log"]] {
        home.run(&args)
            .code(3)
            .notes("there are no sessions")
            .lacks("'@'");
    }
    home.run(&["pair", "--resume", "x y"])
        .code(3)
        .notes("no pair session to resume");
}

#[test]
fn a_chosen_id_is_the_id() {
    let home = &Home::new();
    let id = "01900000-0000-7000-8000-0000000000aa";
    home.run(&["chat", "--session-id", id, "-p", "mine"]).ok();
    assert_eq!(home.show(id)["id"], id);
    let again = home.run(&["chat", "--session-id", id, "-p", "again"]);
    again.code(4).notes("--resume");
    assert_eq!(home.said(id).len(), 2);
    for wrong in [
        "../../etc/passwd",
        "42",
        "01900000000070008000000000000000",
        "",
    ] {
        home.run(&["chat", "--session-id", wrong, "-p", "x"])
            .code(2);
    }
    assert_eq!(home.all().len(), 1);
}

#[test]
fn flags_that_contradict_each_other_are_wrong_usage() {
    let home = Home::new();
    let id = "01900000-0000-7000-8000-0000000000aa";
    for flags in [
        &["-c", "-r", "x"][..],
        &["-c", "-s", "x"],
        &["-r", "x", "-s", "x"],
        &["-c", "--session-id", id],
        &["-r", "x", "--session-id", id],
        &["-c", "--fork", "--no-fork"],
    ] {
        let args = [flags, &["-p", "hi"]].concat();
        home.run(&args).code(2);
    }
    assert!(!home.database().exists());
}

#[test]
fn a_name_is_the_title() {
    let home = &Home::new();
    home.run(&["chat", "--name", "My talk", "-p", "one"]).ok();
    assert_eq!(home.show("@")["title"], "My talk");
    home.run(&["-c", "-n", "Other name", "-p", "two"]).ok();
    assert_eq!(home.show("@")["title"], "Other name");
    assert_eq!(home.show("@")["messages"], 4);
    home.run(&["chat", "--name", " ", "-p", "x"]).code(2);
    assert_eq!(home.all().len(), 1);
}

#[test]
fn fork_goes_on_beside_the_original() {
    let home = &Home::new();
    let first = home.say("one");
    let output = home
        .run(&["-c", "--fork", "--name", "Beside", "-p", ASK])
        .ok();
    assert_eq!(output.stdout, "You said:\n\n1. one\n");
    assert_eq!(home.said(&first).len(), 2);
    let fork = home.show("Beside");
    assert_eq!(fork["parent"]["id"], first.as_str());
    assert_eq!(fork["parent"]["seq"], 3);
    assert_eq!(fork["parent"]["relation"], "fork");
    assert_eq!(fork["messages"], 4);
    output
        .notes("Resume: tertulia")
        .notes(&short(fork["id"].as_str().unwrap()));
}

#[test]
fn another_model_than_recorded_is_said() {
    let home = &Home::new();
    home.settings(
        "[agents.m1]\ntype = \"command\"\ncommand = \"cat\"\nmodel = \"alpha\"\n\
             [agents.m2]\ntype = \"command\"\ncommand = \"cat\"\nmodel = \"beta\"\n",
    );
    home.run(&["chat", "--agent", "m1", "-p", "one"]).ok();
    let output = home.run(&["-c", "--agent", "m2", "-p", "two"]).ok();
    output.notes("warning").notes("alpha").notes("beta");
    let output = home.run(&["-c", "--agent", "m2", "-p", "three"]).ok();
    output.lacks("alpha answers").lacks("recorded with");
}

#[test]
fn a_session_is_readable_and_resumable_without_its_agent() {
    let home = &Home::new();
    home.script_agent("gone", "echo here");
    let id = home
        .run(&["chat", "--agent", "gone", "--json", "-p", "one"])
        .ok()
        .json();
    let id = id["session_id"].as_str().unwrap();
    home.settings("");
    assert_eq!(home.said(id), ["one", "here\n"]);
    // The messages of a session are not sent to another agent unasked.
    let output = home.run(&["-r", id, "-p", "echo on"]).code(6);
    output.notes("gone").notes("--agent");
    let output = home.run(&["-r", id, "--agent", "demo", "-p", "echo on"]);
    assert_eq!(output.ok().stdout, "on\n");
    home.run(&["-r", id, "--agent", "gone", "-p", "x"])
        .code(3)
        .notes("gone");
    assert_eq!(home.said(id).len(), 4);
}

#[test]
fn the_whole_talk_reaches_an_agent_that_remembers_nothing() {
    let home = &Home::new();
    home.script_agent("echoing", "cat");
    home.say("the first words");
    let output = home
        .run(&["-c", "--agent", "echoing", "-p", "and now?"])
        .ok();
    assert!(output.stdout.contains("the first words"));
    assert!(output.stdout.ends_with("and now?\n"));
}

#[test]
fn a_session_in_the_trash_is_resumed_with_a_warning() {
    let home = &Home::new();
    let id = home.say("one");
    home.run(&["rm", "-y", &id]).ok();
    home.run(&["-c", "-p", "x"]).code(3);
    let output = home.run(&["-r", &id, "-p", "echo on"]).ok();
    output.notes("in the trash").notes("restore");
}

/// A mistyped title is no prompt beside another one.
#[test]
fn a_title_that_no_session_has_is_not_found_beside_a_prompt() {
    let home = Home::new();
    home.say("one");
    for args in [
        &["chat", "--resume", "one 3", "-p", "two"][..],
        &["chat", "--resume", "nosuch"],
    ] {
        home.run(args).code(3).notes("there is no session '");
    }
    assert_eq!(
        home.run(&["show", "@", "--json"]).ok().json()["messages"],
        2
    );
    home.run(&["team", "init"]).ok();
    home.run(&["team", "demo", "--resume", "nosuch"])
        .code(3)
        .notes("there is no session 'nosuch'");
}
