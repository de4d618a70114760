//! Resuming a team session: which session, which members remain, and what their prompts contain.

use std::fs;

use serde_json::{Value, json};

use super::cast::{Cast, FILE, agent, person, said_in, speakers};
use crate::home::{Backend, Home, short};
use crate::saves;

fn cast() -> Cast {
    let cast = Cast::of(&["ada", "ben"], &["ann"]);
    cast.says("ada", "Ada said this.");
    cast.says("ben", "Ben said that.");
    cast
}

/// Runs one turn with Ada in a new session and returns its id.
fn begun(cast: &Cast) -> String {
    id(&cast.turn(&["[NEXT: ada] first words"]))
}

fn id(document: &Value) -> String {
    document["session_id"].as_str().unwrap().to_owned()
}

/// Returns all sessions in full, to check that nothing was written.
fn everything(home: &Home) -> Vec<Value> {
    let mut all = home.all();
    for session in &mut all {
        let id = session["id"].as_str().unwrap().to_owned();
        *session = home.show(&id);
    }
    all
}

/// Creates another team in the same folder.
fn rivals(cast: &Cast) {
    let text = fs::read_to_string(cast.file()).unwrap();
    let text = text.replace("\"name\":\"cast\"", "\"name\":\"rivals\"");
    fs::write(cast.home.project().join("rivals.json"), text).unwrap();
}

/// Prints `begun`, waits for the file `go` in the home, and prints `done`.
const WAITS: &str = "echo begun; i=0; while [ ! -e ../../go ] && [ $i -lt 1200 ]; do \
    sleep 0.05; i=$((i+1)); done; echo done";

#[test]
fn by_id_by_flag_and_by_title_the_talk_goes_on() {
    let cast = cast();
    let first = begun(&cast);
    let newer = begun(&cast);
    assert_ne!(first, newer, "without a flag a new session begins");
    cast.home.run(&["rename", &first, "the first"]).ok();
    let ways: &[&[&str]] = &[
        &["--resume", &first],
        &["-r", &short(&first)],
        &["--session", &first[..13]],
        &["-s", "the first"],
        &["-c"],
        &["--resume", "@"],
    ];
    let mut length = 2;
    for way in ways {
        let document = cast.turn(&[way, &["[NEXT: ben] again"][..]].concat());
        length += 2;
        assert_eq!(id(&document), first, "{way:?}");
        assert_eq!(cast.home.said(&first).len(), length, "{way:?}");
    }
    assert_eq!(cast.home.said(&newer).len(), 2);
    cast.run(&["--resume", &newer, "--fork", "[NEXT: ben] elsewhere"])
        .ok();
    assert_eq!(cast.home.said(&newer).len(), 2);
    assert_eq!(cast.home.said("@").len(), 4);
    assert_eq!(
        cast.home.all().len(),
        3,
        "however often it is saved, a session is one"
    );
}

/// agent-chatter used one folder for teams whose names differ in a special character only, and
/// found neither.
#[test]
fn teams_of_similar_names_do_not_meet() {
    for backend in [Backend::Sqlite, Backend::Files] {
        let mut cast = Cast::in_home(Home::with(backend), &["ada"], &["ann"]);
        let names = ["a b", "a_b", "a/b", "A B", "../a"];
        let named = |cast: &mut Cast, name: &str| {
            cast.change(|document| document["team"]["name"] = json!(name));
        };
        for name in names {
            named(&mut cast, name);
            cast.turn(&[&format!("[NEXT: ada] we are {name}")]);
        }
        assert_eq!(cast.home.all().len(), names.len());
        for name in names {
            named(&mut cast, name);
            let document = cast.turn(&["-c", "--keep-going", "and on"]);
            let said = cast.home.said(&id(&document));
            assert_eq!(said[0], format!("[NEXT: ada] we are {name}"));
        }
        let kept = crate::home::files_below(cast.home.path());
        let stray = kept
            .iter()
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        for path in stray {
            assert!(
                path.starts_with(cast.home.files_folder()),
                "{}",
                path.display()
            );
        }
        cast.home.run(&["doctor"]).ok();
    }
}

/// Two processes in one session: the second continues in a fork and says so, and neither loses a
/// message.
#[test]
fn a_talk_that_is_open_elsewhere_goes_on_in_a_fork() {
    for backend in [Backend::Sqlite, Backend::Files] {
        let cast = Cast::in_home(Home::with(backend), &["ada", "ben"], &["ann"]);
        let first = begun(&cast);
        cast.does("ada", WAITS);
        let mut talk = cast.start(&["-c", "[NEXT: ada] wait"]);
        talk.until("text");
        let output = cast.run(&["-c", "[NEXT: ben] meanwhile"]).ok();
        output.notes("continuing in a fork").says("Ben speaks.");
        let alone = ["--resume", &first, "--no-fork", "[NEXT: ben] meanwhile"];
        cast.run(&alone).code(4);
        fs::write(cast.home.path().join("go"), "").unwrap();
        talk.end().ok();
        let said = cast.messages(&first);
        assert_eq!(speakers(&said), ["ann", "ada", "ann", "ada"]);
        assert!(said[3]["content"].as_str().unwrap().contains("done"));
        cast.home.run(&["doctor"]).ok();
    }
}

#[test]
fn only_a_talk_of_this_team_is_gone_on_with() {
    let cast = cast();
    let ours = begun(&cast);
    rivals(&cast);
    let rivals = |args: &[&str]| {
        let args = [&["team", "rivals.json"], args].concat();
        cast.home.run(&args)
    };
    // The other team has no session yet.
    let output = rivals(&["-c", "[NEXT: ben] again"]).code(3);
    output.notes("'rivals'").notes("sqlite:");
    let theirs = rivals(&["--json", "[NEXT: ben] new"]).ok().json();
    cast.home.say("a chat that is newer");
    let document = cast.turn(&["-c", "[NEXT: ben] again"]);
    assert_eq!(id(&document), ours);
    let before = everything(&cast.home);
    let theirs = id(&theirs);
    let output = cast
        .run(&["--resume", &theirs, "[NEXT: ben] again"])
        .code(2);
    output
        .notes("'rivals'")
        .notes("'cast'")
        .notes(&format!("--resume {}", short(&theirs)));
    let output = rivals(&["--resume", &ours, "[NEXT: ben] again"]).code(2);
    output.notes("'rivals'").notes("'cast'");
    let chat = before
        .iter()
        .find(|session| session["kind"] == "chat")
        .unwrap();
    let chat = chat["id"].as_str().unwrap();
    let output = cast.run(&["--resume", chat, "[NEXT: ben] again"]).code(2);
    output.notes("is a chat");
    assert_eq!(everything(&cast.home), before, "nothing was written");
}

#[test]
fn one_that_is_not_there_is_not_found() {
    let cast = cast();
    let first = begun(&cast);
    let before = everything(&cast.home);
    for flag in ["--resume", "--session"] {
        let output = cast.run(&[flag, "00000000", "[NEXT: ben] again"]).code(3);
        let output = output.notes("'00000000'").notes("sqlite:").notes("'cast'");
        output.lacks("did you mean").lacks(&short(&first));
    }
    let error = cast
        .run(&["--json", "--resume", "00000000", "x"])
        .code(3)
        .error();
    assert_eq!(error["kind"], "not_found");
    assert_eq!(everything(&cast.home), before);
}

#[test]
fn the_first_prompt_afterwards_has_all_that_was_said() {
    let mut cast = Cast::of(&["ada", "claude"], &["ann"]);
    cast.says("ada", "Ada said this.");
    cast.turn(&["[NEXT: ada] [TEAM_TASK: Count sheep] first words"]);
    // It does not depend on the current members, except for their names.
    cast.change_member("ada", |ada| ada["displayName"] = json!("Ada L."));
    let output = cast.run(&["-c", "[NEXT: claude] more words"]).ok();
    output
        .lacks("no longer in the team")
        .notes("the team's task: Count sheep");
    let prompt = cast.prompt("claude");
    let place = |words: &str| match prompt.find(words) {
        Some(place) => place,
        None => panic!("no {words:?} in {prompt}"),
    };
    assert!(place("[TEAM_TASK]\nCount sheep") < place("[CONTEXT]"));
    assert!(place("[CONTEXT]\n- Ann -> Ada L.:") < place("first words"));
    assert!(place("first words") < place("- Ada -> all: Ada said this."));
    assert!(place("Ada said this.") < place("[MESSAGE]\nAnn:"));
    assert!(place("[MESSAGE]\nAnn:") < place("more words"));
    assert_eq!(prompt.matches("more words").count(), 1);
    assert_eq!(prompt.matches("first words").count(), 1);
}

#[test]
fn a_session_that_rests_is_paused_and_counted() {
    let cast = cast();
    let first = begun(&cast);
    cast.run(&["-c", "[NEXT: ben, ada] again"]).ok();
    let session = cast.home.show(&first);
    assert_eq!(session["status"], "paused");
    assert_eq!(session["messages"], 5);
    let counts: Vec<(&str, u64)> = session["speakers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|spoke| {
            (
                spoke["name"].as_str().unwrap(),
                spoke["messages"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(counts, [("ann", 2), ("ada", 2), ("ben", 1)]);
    let shown = cast.home.run(&["show", &first]).ok().stdout;
    let third = shown.lines().nth(2).unwrap();
    assert!(third.starts_with("Ann 2, Ada 2, Ben 1, within "), "{third}");
    let snapshot = cast
        .home
        .run(&["export", &first, "-f", "snapshot"])
        .ok()
        .json();
    assert_eq!(snapshot["metadata"]["messageCount"], 5);
}

#[test]
fn who_has_left_is_named_and_the_talk_goes_on() {
    let mut cast = cast();
    let first = begun(&cast);
    let earlier = cast.messages(&first);
    cast.change(|document| {
        let members = document["team"]["members"].as_array_mut().unwrap();
        members.retain(|member| member["name"] != "ada");
        members.push(person("zoe"));
    });
    let before = everything(&cast.home);
    let strict = ["--resume", &first, "--strict", "[NEXT: ben] again"];
    cast.run(&strict).code(5).notes("Ada").notes("--map");
    assert_eq!(everything(&cast.home), before, "nothing was written");
    assert_eq!(cast.asked("ben"), 0);
    let output = cast.run(&["-c", "[NEXT: ben] again"]).ok();
    output
        .notes("no longer in the team: Ada;")
        .says("Ben said that.");
    assert_eq!(
        &cast.messages(&first)[..2],
        earlier,
        "history keeps its names"
    );
    assert!(cast.prompt("ben").contains("Ada: Ada said this."));
    // A former member cannot be prompted.
    cast.run(&["-c", "[NEXT: ada] and you?"])
        .code(6)
        .notes("no member is called 'ada'");
}

#[test]
fn a_seat_that_is_taken_over_stays_so() {
    let mut cast = cast();
    let first = begun(&cast);
    cast.change_member("ada", |ada| {
        ada["name"] = json!("eva");
        ada["displayName"] = json!("Eva");
    });
    let output = cast
        .run(&["-c", "--map", "Ada=eva", "--strict", "[NEXT: ben] again"])
        .ok();
    output.lacks("no longer in the team");
    let said = cast.messages(&first);
    assert_eq!(
        speakers(&said),
        ["ann", "ada", "ann", "ben"],
        "history keeps its names"
    );
    assert_eq!(said[1]["speaker"]["displayName"], "Ada");
    assert!(
        cast.prompt("ben").contains("Eva: Ada said this."),
        "{}",
        cast.prompt("ben")
    );
    // The mapping is remembered without the flag.
    let output = cast.run(&["-c", "--strict", "[NEXT: eva] and you?"]).ok();
    output
        .lacks("no longer in the team")
        .says("Eva:\nAda said this.");
    cast.run(&["-c", "[NEXT: ben] more"])
        .ok()
        .lacks("no longer in the team");
    assert!(cast.prompt("ben").contains("Eva: Ada said this."));
}

#[test]
fn who_is_seated_again_is_not_missed() {
    let mut cast = cast();
    let first = begun(&cast);
    cast.run(&["-c", "[NEXT: ben] you too"]).ok();
    let original = fs::read(cast.file()).unwrap();
    cast.hires("eva");
    cast.change(|document| {
        let members = document["team"]["members"].as_array_mut().unwrap();
        members.retain(|member| !["ada", "ben"].contains(&member["name"].as_str().unwrap()));
        let mut eva = agent("eva");
        eva["displayName"] = json!("Ben");
        members.push(eva);
    });
    let taken = ["--resume", &first, "--map", "ada=eva", "--map", "ben=eva"];
    cast.run(&[&taken[..], &["[NEXT: eva] and you?"]].concat())
        .ok()
        .lacks("no longer in the team");
    // With the old file all members are back, and their replacements are not reported as missing.
    fs::write(cast.file(), original).unwrap();
    let output = cast.run(&["--resume", &first, "--strict", "[NEXT: ada] back"]);
    output
        .ok()
        .lacks("no longer in the team")
        .says("Ada said this.");
    assert!(cast.prompt("ada").contains("Ada: Ada said this."));
}

#[test]
fn a_wrong_seat_is_refused() {
    let cast = cast();
    begun(&cast);
    let before = everything(&cast.home);
    let refuse = |args: &[&str], words: &[&str]| {
        let mut output = cast.run(&[args, &["[NEXT: ben] again"]].concat()).code(2);
        for word in words {
            output = output.notes(word);
        }
    };
    refuse(&["-c", "--map", "eve=ben"], &["'eve'", "not spoken"]);
    refuse(&["-c", "--map", "ada=eve"], &["'eve'", "ada, ben, ann"]);
    refuse(&["-c", "--map", "ada"], &["--map", "old=new"]);
    refuse(&["-c", "--map", "=ben"], &["--map", "old=new"]);
    refuse(&["--map", "ada=ben"], &["--map needs a session"]);
    assert_eq!(everything(&cast.home), before, "nothing was written");
}

/// Speakers with names from agent-chatter's oldest files, and a system message, which is not
/// reported as missing.
#[test]
fn a_snapshot_of_old_is_gone_on_with() {
    let cast = cast();
    let mut save = saves::talk("session-1764064800000-abc123xyz")
        .team("cast")
        .task("Review the parser");
    save = save.says("ann", "human", "Please look. [NEXT: ada]");
    save = save.says("old-1", "ai", "It leaks.");
    save = save.says("old-2", "ai", "It does.");
    save = save.says("system", "system", "old-2 has left.");
    for (place, name) in [(1, "old-1"), (2, "old-2")] {
        save.messages[place]["speaker"] = json!({
            "roleId": name,
            "roleName": name,
            "roleTitle": format!("Reviewer {name}"),
            "type": "ai",
        });
    }
    save.write(&cast.home);
    let id = saves::import(&cast.home)[0]["session"]
        .as_str()
        .unwrap()
        .to_owned();
    let strict = ["--resume", &id, "--strict", "[NEXT: ben] again"];
    cast.run(&strict)
        .code(5)
        .notes("Reviewer old-1, Reviewer old-2");
    let map = ["--resume", &id, "--map", "old-1=ada", "[NEXT: ben] again"];
    let output = cast.run(&map).ok();
    let output = output.notes("no longer in the team: Reviewer old-2;");
    output.lacks("system").notes("Review the parser");
    let prompt = cast.prompt("ben");
    for words in [
        "Ada: It leaks.",
        "Reviewer old-2: It does.",
        "Review the parser",
    ] {
        assert!(prompt.contains(words), "{words:?} in {prompt}");
    }
    let said = cast.messages(&id);
    assert_eq!(said[1]["speaker"]["displayName"], "Reviewer old-1");
    assert_eq!(said.last().unwrap()["speaker"]["name"], "ben");
}

#[test]
fn another_model_than_before_is_said() {
    let cast = cast();
    let settings = cast.home.path().join(".config/tertulia/config.toml");
    let plain = fs::read_to_string(&settings).unwrap();
    let with = |model: &str| {
        let line = format!("[agents.ada]\nmodel = \"{model}\"");
        fs::write(&settings, plain.replace("[agents.ada]", &line)).unwrap();
    };
    with("old-model");
    let first = begun(&cast);
    assert_eq!(cast.messages(&first)[1]["model"], "old-model");
    cast.run(&["-c", "[NEXT: ada] again"])
        .ok()
        .lacks("old-model before");
    with("new-model");
    let output = cast.run(&["-c", "[NEXT: ada] again"]).ok();
    output
        .notes("Ada")
        .notes("old-model before")
        .notes("new-model answers now");
    assert_eq!(cast.messages(&first).last().unwrap()["model"], "new-model");
}

#[test]
fn from_any_folder_the_session_finds_its_team() {
    let cast = cast();
    let first = begun(&cast);
    let elsewhere = cast.home.folder("elsewhere");
    let from = |args: &[&str]| cast.home.prepare(args).folder(&elsewhere).run();
    let short = short(&first);
    let asked = ["--resume", &short, "-p", "[NEXT: ben] from afar"];
    from(&asked).ok().says("Ben said that.");
    let asked = cast.home.prepare(&["team", "--resume", &short]);
    let asked = asked.folder(&elsewhere).stdin("[NEXT: ben] from afar");
    asked.run().ok().says("Ben said that.");
    assert_eq!(cast.home.said(&first).len(), 6);
    // Without its file the team is unknown.
    let moved = cast.home.folder("moved").join("other.json");
    fs::rename(cast.file(), &moved).unwrap();
    let before = everything(&cast.home);
    let asked = ["--resume", &short, "-p", "[NEXT: ben] from afar"];
    let output = from(&asked).code(3).notes("'cast'").notes(FILE);
    output.notes(&format!("team CONFIG --resume {short}"));
    assert_eq!(everything(&cast.home), before);
    from(&["show", &short]).ok().says("Ada said this.");
    // The new path is remembered.
    let moved = moved.display().to_string();
    from(&["team", &moved, "--resume", &short, "[NEXT: ben] here"]).ok();
    from(&["--resume", &short, "-p", "[NEXT: ben] from afar"])
        .ok()
        .says("Ben said that.");
}

#[test]
fn a_restored_talk_waits_for_the_first_human_with_an_empty_queue() {
    let cast = Cast::of(&["ada", "ben"], &["ann", "zoe"]);
    // Zoe is waited for, and Ben is queued after her.
    let document = cast.turn(&["--as", "ann", "[NEXT: zoe, ben] go"]);
    assert_eq!(document["waiting_for"], "zoe");
    let output = cast.run(&["-c", "and now?"]).code(6);
    output.notes("still queued when tertulia exited: ben (ask again with [NEXT: ben])");
    let document = cast.turn(&["-c", "--keep-going", "and now?"]);
    assert_eq!(speakers(said_in(&document)), ["ann"]);
    assert_eq!(cast.asked("ben"), 0);
    // Reported once.
    cast.run(&["-c", "and now?"]).code(6).lacks("still queued");
    let stream = ["--output-format", "stream-json", "-c", "[NEXT: ada] go"];
    let events = cast.run(&stream).ok().events();
    let queue = events
        .iter()
        .find(|event| event["type"] == "queue")
        .unwrap();
    assert_eq!(
        (&queue["executing"], &queue["pending"]),
        (&Value::Null, &json!([]))
    );
}

/// Nothing is saved, so there is no session to resume.
#[test]
fn an_ephemeral_talk_leaves_nothing() {
    let cast = cast();
    cast.run(&["--ephemeral", "[NEXT: ada] go"])
        .ok()
        .says("Ada said this.")
        .lacks("Resume:");
    assert!(cast.home.all().is_empty());
    cast.run(&["-c", "[NEXT: ada] go"]).code(3);
    cast.run(&["-c", "--ephemeral", "[NEXT: ada] go"]).code(2);
}

/// An imported session belongs to no project.
#[test]
fn an_imported_talk_is_found_where_there_is_none_of_the_project() {
    let cast = cast();
    let save = |session: &str, team: &str, words: &str| {
        let talk = saves::talk(session).team(team);
        talk.says("ann", "human", words).write(&cast.home);
    };
    save("session-1-abc", "cast", "from before");
    save("session-2-abc", "rivals", "of others");
    saves::import(&cast.home);
    // A session of another project is not used, however new it is.
    let elsewhere = cast.home.folder("elsewhere");
    fs::copy(cast.file(), elsewhere.join(FILE)).unwrap();
    let there = cast.prepare(&["[NEXT: ada] elsewhere"]).folder(&elsewhere);
    there.run().ok();
    let mut terminal = cast.open(&[]);
    terminal.sees("[R] Resume", 1);
    assert!(terminal.shown().contains("from before"));
    terminal.types("q\n");
    assert_eq!(terminal.ends().0, 0);
    for way in [&["-c"][..], &["--resume", "@"]] {
        let document = cast.turn(&[way, &["[NEXT: ben] again"]].concat());
        assert_eq!(cast.home.said(&id(&document))[0], "from before", "{way:?}");
    }
    // A session of this project takes precedence.
    let ours = begun(&cast);
    let document = cast.turn(&["-c", "[NEXT: ben] again"]);
    assert_eq!(id(&document), ours);
}

/// A named session knows its team, so the first argument may be part of the prompt.
#[test]
fn where_a_session_is_named_the_first_word_may_be_said() {
    let cast = cast();
    let first = begun(&cast);
    let file = cast.home.path().join("talk.jsonl").display().to_string();
    let export = ["export", &first, "--format", "jsonl", "-o", &file];
    cast.home.run(&export).ok();
    let mut length = 2;
    for way in [&["-c"][..], &["-r", &first], &["-s", &short(&first)]] {
        let words: &[&str] = &["[NEXT: ben] again", "and again"];
        let args = [&["team"], way, words].concat();
        let output = cast.home.run(&args).ok().says("Ben said that.");
        output.notes("there is no team '[NEXT: ben] again': taken as the prompt");
        length += 2;
        let said = cast.home.said(&first);
        assert_eq!(said.len(), length, "{way:?}");
        assert_eq!(said[length - 2], "[NEXT: ben] again and again");
    }
    let args = ["team", "--session-file", &file, "[NEXT: ben] again"];
    let output = cast.home.run(&args);
    assert!(
        !output.stderr.contains("error: there is no team"),
        "{output:#?}"
    );
    // A mistyped file or team name is not sent as a prompt, nor is anything without a named
    // session.
    fs::create_dir_all(cast.home.project().join(".tertulia/teams")).unwrap();
    let named = cast.home.project().join(".tertulia/teams/review.json");
    fs::copy(cast.file(), named).unwrap();
    let before = everything(&cast.home);
    for args in [
        &["team", "reviw", "-c", "hello"][..],
        &["team", "taem.json", "-c", "hello"],
        &["team", "hello"],
    ] {
        cast.home.run(args).code(3).notes("error: there is no team");
    }
    assert_eq!(everything(&cast.home), before);
}

/// As whom the user chose to speak belongs to the session: in every frontend, and in its forks.
#[test]
fn the_user_speaks_as_before() {
    let cast = Cast::of(&["ada", "ben"], &["ann", "zoe"]);
    let first = cast.turn(&["[FROM: zoe] [NEXT: ben] go"]);
    let first = first["session_id"].as_str().unwrap();
    let mut terminal = cast.open(&["-c"]);
    terminal.sees("Ann> ", 1);
    terminal.types("/as zoe\n");
    terminal.sees("Zoe> ", 1);
    terminal.types("[NEXT: ben] go on\n");
    terminal.sees("Zoe> ", 2);
    terminal.types("/end\n");
    assert_eq!(terminal.ends().0, 0);
    cast.run(&["-c", "[NEXT: ben] and on"]).ok();
    cast.run(&["-c", "[FROM: ann] [NEXT: ben] but I"]).ok();
    cast.run(&["-c", "--as", "ann", "[NEXT: ben] and I"]).ok();
    let said = cast.messages(first);
    let people: Vec<_> = speakers(&said).into_iter().step_by(2).collect();
    assert_eq!(people, ["zoe", "zoe", "zoe", "ann", "ann"]);
    cast.run(&["-c", "--fork", "[NEXT: ben] and on"]).ok();
    let fork = cast.home.all()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(speakers(&cast.messages(&fork))[10], "zoe");
}
