//! `import` of agent-chatter's sessions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::home::{Backend, Home, files_below, messages, short};
use crate::saves::{Save, folder, import, talk};

/// Three messages of three kinds of speakers, with a task.
fn three() -> Save {
    talk("session-1764064800000-abc123xyz")
        .task("Review the parser")
        .says("ana", "human", "Please look at the parser. [NEXT: ada]")
        .says("ada", "ai", "It leaks.\n\n    let x = 1;\n")
        .says("system", "system", "ben has left the talk.")
        .at(5)
}

fn results(imported: &[Value]) -> Vec<&str> {
    let results = imported.iter().map(|row| row["result"].as_str().unwrap());
    results.collect()
}

/// Returns the raw log of every session, by id.
fn logs(home: &Home) -> BTreeMap<String, String> {
    let sessions = home.all().into_iter().map(|session| {
        let id = session["id"].as_str().unwrap().to_owned();
        let log = home.run(&["show", &id, "--raw"]).ok().stdout;
        (id, log)
    });
    sessions.collect()
}

#[test]
fn messages_task_order_and_speakers_are_restored() {
    let home = &Home::new();
    three().write(home);
    let imported = import(home);
    assert_eq!(results(&imported), ["created"]);
    assert_eq!(imported[0]["kept"], json!({"messages": 3, "task": true}));
    let id = imported[0]["session"].as_str().unwrap();
    let session = home.show(id);
    assert_eq!(
        (&session["kind"], &session["team"]),
        (&json!("team"), &json!("review"))
    );
    assert_eq!(session["created_at"], "2025-11-25T10:00:00Z");
    assert_eq!(session["updated_at"], "2025-11-25T10:00:20Z");
    let told = three();
    let said = messages(&session);
    assert_eq!(said.len(), 3);
    for (said, told) in said.iter().zip(&told.messages) {
        assert_eq!(said["content"], told["content"]);
        assert_eq!(said["speaker"], told["speaker"]);
    }
    let roles: Vec<&Value> = said.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "system"]);
    assert_eq!(said[1]["at"], "2025-11-25T10:00:10Z");
    let last = session["entries"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["type"], &last["task"]),
        (&json!("tasked"), &json!("Review the parser"))
    );
    home.run(&["search", "--all", "leaks"]).ok().notes("1 hit");
    home.run(&["doctor"]).ok();
}

#[test]
fn three_sessions_of_one_team_are_three_and_the_newest_stands_first() {
    let home = &Home::new();
    for (session, words) in [("s-1", 1), ("s-2", 3), ("s-3", 2)] {
        let mut save = talk(session).at(60);
        for n in 0..words {
            save = save.says("ana", "human", &format!("{session} {n}"));
        }
        save.write(home);
    }
    talk("s-1")
        .team("release")
        .says("ben", "human", "other")
        .write(home);
    assert_eq!(results(&import(home)), ["created"; 4]);
    let listed = home
        .run(&["list", "--all", "--team", "review", "--json"])
        .ok()
        .json();
    let titles: Vec<&Value> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| &session["title"])
        .collect();
    assert_eq!(titles, ["s-2 0", "s-3 0", "s-1 0"]);
    let none = home
        .run(&["list", "--all", "--team", "nobody", "--json"])
        .ok()
        .json();
    assert_eq!(none["sessions"], json!([]));
    home.run(&["show", "s-9"]).code(3);
}

#[test]
fn unicode_quotes_and_newlines_come_through() {
    let home = &Home::new();
    let texts = [
        "“quotes” \"and\" 'more' \\ / \u{7f}",
        "\n\n  line\r\n\ttab\n\n",
        "日本語 한국어 العربية 😀👩‍👩‍👧 e\u{301}",
        "",
    ];
    let mut save = talk("s-1").task("“task” 日本\n\tx");
    for text in texts {
        save = save.says("ada", "ai", text);
    }
    save.write(home);
    let imported = import(home);
    let id = imported[0]["session"].as_str().unwrap();
    assert_eq!(home.said(id), texts);
    let entries = home.show(id)["entries"].take();
    assert_eq!(
        entries.as_array().unwrap().last().unwrap()["task"],
        "“task” 日本\n\tx"
    );
}

#[test]
fn two_imports_of_the_same_give_the_same_logs() {
    let saves = |home: &Home| {
        three().write(home);
        talk("s-2").says("ana", "human", "a").at(1).write(home);
        talk("s-2").says("ana", "human", "b").at(2).write(home);
    };
    let home = &Home::new();
    let other = Home::new();
    saves(home);
    saves(&other);
    import(home);
    import(&other);
    let first = logs(home);
    assert_eq!(first.len(), 3);
    assert_eq!(first, logs(&other));
    let again = import(home);
    assert_eq!(results(&again), ["known"; 3]);
    assert_eq!(first, logs(home));
    home.run(&["doctor"]).ok();
}

/// agent-chatter used the first file whose name contained the session's id, which is the oldest.
#[test]
fn of_many_saves_the_newest_counts() {
    let home = &Home::new();
    let mut save = three().at(1);
    save.write(home);
    save = save.says("ana", "human", "Fix it.").at(2);
    save.write(home);
    save = save.says("ada", "ai", "Done.").task("Release").at(3);
    save.write(home);
    let imported = import(home);
    assert_eq!(results(&imported), ["earlier", "earlier", "created"]);
    let id = imported[2]["session"].as_str().unwrap();
    assert_eq!(imported[0]["session"], id);
    assert_eq!(home.said(id).len(), 5);
    let folder = folder(home);
    let said = home.run(&["import".as_ref(), folder.as_os_str()]).ok();
    said.says("nothing new").says("it contains 2 earlier saves");
}

/// In agent-chatter every save was a session in the list, and deleting one left the others.
#[test]
fn of_many_saves_there_is_one_session_and_deleting_it_leaves_none() {
    let home = &Home::new();
    let mut save = talk("s-1");
    for n in 0..4 {
        save = save.says("ana", "human", &format!("word {n}")).at(n);
        save.write(home);
    }
    import(home);
    let listed = home.all();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["messages"], 4);
    let id = listed[0]["id"].as_str().unwrap();
    for _ in 0..2 {
        home.run(&["rm", "-y", id]).ok();
        assert!(home.all().is_empty());
    }
    // A deliberately deleted session does not come back.
    assert_eq!(results(&import(home)).last(), Some(&"known"));
    assert!(home.all().is_empty());
}

/// In agent-chatter `a b` and `a_b` shared a folder, and its sessions could not be restored.
#[test]
fn teams_whose_names_look_alike_never_share_a_folder() {
    let home = &Home::new();
    let teams = ["a b", "a_b", "a-b", "A_B", "a%20b", "日本", "../a_b"];
    for (n, team) in teams.iter().enumerate() {
        let save = talk(&format!("s-{n}")).team(team);
        save.says("ana", "human", team).write(home);
    }
    import(home);
    for team in teams {
        let listed = home
            .run(&["list", "--all", "--team", team, "--json"])
            .ok()
            .json();
        let sessions = listed["sessions"].as_array().unwrap();
        assert_eq!(sessions.len(), 1, "{team}");
        assert_eq!(home.said(sessions[0]["id"].as_str().unwrap()), [team]);
    }
    if home.files_folder().exists() {
        let logs = files_below(&home.files_folder());
        let folders: std::collections::BTreeSet<&Path> = logs
            .iter()
            .filter(|file| file.extension().is_some_and(|name| name == "jsonl"))
            .filter_map(|file| file.parent())
            .collect();
        assert_eq!(folders.len(), teams.len(), "{folders:?}");
        assert!(home.files_folder().join("a%20b").is_dir());
    }
}

#[test]
fn a_later_save_adds_what_was_said_since() {
    let home = &Home::new();
    three().write(home);
    let first = import(home);
    let id = first[0]["session"].as_str().unwrap();
    let before = logs(home)[id].clone();
    let updated = home.show(id)["updated_at"].clone();
    let later = three()
        .says("ana", "human", "Fix it.")
        .says("ada", "ai", "Done.");
    let file = later.task("Release").at(9).write(home);
    let imported = home.run(&["import", &file.display().to_string()]).ok();
    imported.says(&format!("4 new entries added to {}", short(id)));
    let log = logs(home)[id].clone();
    assert!(log.starts_with(&before), "{log}");
    assert_eq!(home.said(id).len(), 5);
    assert!(home.show(id)["updated_at"].as_str() > updated.as_str());
    assert_eq!(home.all().len(), 1);
    home.run(&["doctor"]).ok();
}

#[test]
fn a_save_that_went_another_way_is_kept_too() {
    let home = &Home::new();
    let base = talk("s-1")
        .says("ana", "human", "one")
        .says("ada", "ai", "two");
    base.clone().says("ana", "human", "left").at(1).write(home);
    base.says("ana", "human", "right").at(2).write(home);
    for flag in ["--dry-run", "-q"] {
        let folder = folder(home);
        let args = ["import", "--json", flag].map(AsRef::as_ref);
        let output = home.run(&[&args[..], &[folder.as_os_str()]].concat()).ok();
        let rows = output.json()["imported"].as_array().unwrap().clone();
        assert_eq!(results(&rows), ["forked", "created"], "{flag}");
        assert_eq!(home.all().len(), if flag == "--dry-run" { 0 } else { 2 });
    }
    let said: Vec<Vec<String>> = home
        .all()
        .iter()
        .map(|session| home.said(session["id"].as_str().unwrap()))
        .collect();
    assert!(said.contains(&["one", "two", "left"].map(str::to_owned).to_vec()));
    assert!(said.contains(&["one", "two", "right"].map(str::to_owned).to_vec()));
    home.run(&["doctor"]).ok();
}

/// Several teams, or several speakers, may have sessions with the same id and text.
#[test]
fn the_same_words_of_another_are_a_talk_of_its_own() {
    let home = &Home::new();
    // Ids of tertulia, as in its exports.
    let of = |team: &str, speaker: &str| {
        let talk = talk("0193a0e0-0000-7000-8000-000000000001").team(team);
        let mut talk = talk.says(speaker, "human", "hello");
        talk.messages[0]["id"] = json!("0193a0e0-0000-7000-8000-000000000002");
        talk
    };
    let mut sessions = Vec::new();
    let talks = [
        of("review", "ana"),
        of("release", "ben"),
        of("release", "ana"),
    ];
    for talk in &talks {
        let file = talk.write(home).display().to_string();
        let imported = home.run(&["import", &file, "--json"]).ok().json();
        assert_eq!(imported["imported"][0]["result"], "created");
        sessions.push(imported["imported"][0]["session"].clone());
    }
    assert_eq!(home.all().len(), 3);
    // Each is recognised again.
    for (talk, session) in talks.iter().zip(&sessions) {
        let file = talk.write(home).display().to_string();
        let again = home.run(&["import", &file, "--json"]).ok().json();
        assert_eq!(again["imported"][0]["result"], "known");
        assert_eq!(again["imported"][0]["session"], *session);
    }
}

#[test]
fn damaged_and_other_versions_are_named_and_the_others_taken_in() {
    let home = &Home::new();
    let good = three().write(home);
    let folder = good.parent().unwrap();
    let text = fs::read_to_string(&good).unwrap();
    let write = |name: &str, content: &[u8]| fs::write(folder.join(name), content).unwrap();
    write("1-cut.json", &text.as_bytes()[..text.len() / 2]);
    write("2-rubbish.json", b"{ not json");
    write(
        "3-newer.json",
        text.replace("\"1.0\"", "\"2.0\"").as_bytes(),
    );
    write(
        "4-older.json",
        text.replace("\"1.0\"", "\"0.9\"").as_bytes(),
    );
    write(
        "5-field.json",
        text.replace("\"createdAt\"", "\"created\"").as_bytes(),
    );
    write(
        "6-binary.json",
        b"{\"teamId\": \"\xff\xfe\", \"sessionId\": 1}",
    );
    write("7-unfinished.json.tmp", b"{");
    write("8-settings.json", b"{\"theme\": \"dark\"}");
    let all = crate::saves::folder(home);
    let output = home.run(&["import".as_ref(), all.as_os_str()]).code(5);
    let output = output
        .says("imported as")
        .notes("6 files not imported")
        .notes("skipped ");
    for words in [
        "1-cut.json is not JSON: line",
        "2-rubbish.json is not JSON: line 1",
        "3-newer.json: schema version 2.0 is not supported",
        "4-older.json: schema version 0.9 is deprecated",
        "/createdAt: found nothing",
        "6-binary.json is not UTF-8",
    ] {
        assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
    }
    assert!(!output.stderr.contains("unfinished"), "{}", output.stderr);
    assert_eq!(home.all().len(), 1);
    let cut = folder.join("1-cut.json").display().to_string();
    let error = home.run(&["import", "--json", &cut]).code(5).error();
    assert_eq!(error["kind"], "invalid");
    let rubbish = folder.join("2-rubbish.json").display().to_string();
    home.run(&["import", &rubbish]).code(5).notes("not JSON");
}

#[test]
fn a_damaged_talk_stays_in_the_list_and_is_counted() {
    let home = Home::with(Backend::Files);
    three().write(&home);
    talk("s-2").says("ana", "human", "sound").write(&home);
    import(&home);
    let ids = |home: &Home| -> Vec<Value> {
        let sessions = home.all();
        sessions
            .into_iter()
            .map(|session| session["id"].clone())
            .collect()
    };
    let before = ids(&home);
    let hurt = before[0].as_str().unwrap();
    let files = files_below(&home.files_folder());
    let log = files
        .iter()
        .find(|file| file.to_string_lossy().contains(hurt))
        .unwrap();
    let text = fs::read_to_string(log).unwrap();
    fs::write(log, text.replacen("It leaks", "It keeps", 1)).unwrap();
    assert_eq!(ids(&home), before);
    let report = home.run(&["doctor", "--json"]).code(5).json();
    assert_eq!(report["damage"].as_array().unwrap().len(), 1);
    home.run(&["show", hurt])
        .ok()
        .notes("damaged: ")
        .says("Please look");
}

#[test]
fn one_file_is_known_by_its_look_and_standard_input_too() {
    let home = &Home::new();
    let file = three().write(home);
    let text = fs::read_to_string(&file).unwrap();
    let path = file.display().to_string();
    home.run(&["import", "--from", "tertulia", &path]).code(5);
    home.run(&["import", &path])
        .ok()
        .says("imported as")
        .notes("list --all");
    home.run(&["import", "--from", "agent-chatter", &path])
        .ok()
        .says("nothing new");
    home.prepare(&["import", "-"])
        .stdin(&text)
        .run()
        .ok()
        .says("nothing new");
    let team = home.project().join("team.json");
    fs::write(&team, "{\"team\": {}}").unwrap();
    home.run(&["import", "team.json"])
        .code(5)
        .notes("is not a session");
    home.run(&["import", "--from", "agent-chatter", "team.json"])
        .code(5)
        .notes("/teamId");
    home.run(&["import", "nosuch"]).code(3);
    let empty = home.folder("empty").display().to_string();
    let document = home.run(&["import", "--json", &empty]).code(5).json();
    assert_eq!(document["imported"], json!([]));
    assert_eq!(home.all().len(), 1);
}

#[test]
fn the_report_says_what_was_changed_and_lost() {
    let home = &Home::new();
    let mut save = three();
    for message in &mut save.messages {
        let mut speaker = message["speaker"].take();
        message["speaker"] = json!({
            "roleId": speaker["id"].take(),
            "roleName": speaker["name"].take(),
            "roleTitle": speaker["displayName"].take(),
            "type": speaker["type"].take(),
        });
    }
    save.messages[0]["routing"] = json!({
        "rawNextMarkers": ["[NEXT:ada]"],
        "resolvedAddressees": [{"identifier": "ada", "roleId": "ada", "roleName": "ada"}],
    });
    save.messages[1]["content"] =
        json!("My key: sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ");
    save.write(home);
    let imported = import(home);
    let changed = imported[0]["changed"].to_string();
    for words in ["roleTitle) became", "(4)", "ids of messages"] {
        assert!(changed.contains(words), "{words}: {changed}");
    }
    let lost = imported[0]["lost"].to_string();
    assert!(lost.contains("spelling of addressees"), "{lost}");
    assert!(!lost.contains("saved"), "{lost}");
    let id = imported[0]["session"].as_str().unwrap();
    let said = messages(&home.show(id));
    assert_eq!(said[0]["speaker"], three().messages[0]["speaker"]);
    assert_eq!(said[0]["addressees"][0]["member"], "ada");
    home.run(&["show", id]).ok().lacks("sk-ant");

    // If nothing was changed, the report does not mention changes.
    let again = home
        .run(&["export", id, "--format", "snapshot"])
        .ok()
        .stdout;
    let other = Home::new();
    let output = other.prepare(&["import", "-"]).stdin(&again).run().ok();
    output
        .says("(3 messages and the task)")
        .lacks("changed:")
        .lacks("lost:");
}
