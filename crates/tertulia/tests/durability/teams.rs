//! A team session that cannot be saved continues, and no message is lost.

use std::fs;

use super::full::{LONG, assert_told, bring_back, may_mount, rescued, said, small_world};
use super::world::{Backend, Place};

/// Every member answers although nothing can be saved.
fn full(backend: Backend, test: &str, resumed: bool) {
    if !may_mount(test) {
        return;
    }
    let (small, _root, place) = small_world(backend);
    place.run(&["team", "init"]).ok("a team");
    if resumed {
        place.run(&["team", "demo", "before"]).ok("a turn");
    }
    let before = place.everything();
    small.fill(0);
    let words = format!("{}precious", LONG.repeat(800));
    let prompt = format!("echo {words}");
    let mut args = vec!["team", "demo", &prompt];
    args.extend(resumed.then_some("-c"));
    let ran = place.run(&args);
    assert_told(&ran, &words);
    for name in ["Ada:", "Ben:", "Cleo:"] {
        assert!(ran.out.contains(name), "{name} was not asked: {ran:?}");
    }
    assert_eq!(place.everything(), before, "earlier talks are as they were");
    let file = rescued(&place, &ran);
    small.make_room();
    bring_back(&place, &file);
    assert_eq!(said(&place, &prompt), 1);
    let answer = format!("{words}\n\n[NEXT: ben]");
    assert_eq!(said(&place, &answer), 1);
    // The imported session can be resumed.
    let ran = place.run(&["team", "demo", "-c", "[NEXT: cleo] and you?"]);
    assert!(ran.ok("going on").contains("Cleo:"));
    place.assert_sound("with room again");
}

#[test]
fn sqlite_on_a_full_disk_lets_a_team_talk() {
    let test = "teams::sqlite_on_a_full_disk_lets_a_team_talk";
    full(Backend::Sqlite, test, false);
}

#[test]
fn files_on_a_full_disk_let_a_team_go_on() {
    let test = "teams::files_on_a_full_disk_let_a_team_go_on";
    full(Backend::Files, test, true);
}

/// The disk is full after the second of three answers, and has room again for the third.
#[test]
fn what_could_not_be_saved_is_saved_with_what_follows() {
    let test = "teams::what_could_not_be_saved_is_saved_with_what_follows";
    if !may_mount(test) {
        return;
    }
    let (small, _root, place) = small_world(Backend::Sqlite);
    let filler = small.filler().display().to_string();
    let scripts = [
        (
            "ada",
            format!("dd if=/dev/zero of={filler} bs=512 2>/dev/null; seq 1 2000"),
        ),
        ("ben", format!("rm {filler}; echo Ben made room")),
    ];
    team_of_scripts(&place, &scripts);
    let ran = place.run(&["team", "team.json", "[NEXT: ada, ben] go"]);
    let (out, err) = (ran.out.clone(), ran.err.clone());
    ran.ok("the talk");
    assert!(
        out.contains("2000") && out.contains("Ben made room"),
        "{out}"
    );
    assert!(err.contains("not saved"), "{err}");
    assert!(
        err.contains("saved: every message so far is on disk"),
        "{err}"
    );
    let everything = place.everything();
    let talk = everything
        .values()
        .find(|shown| shown["team"] == "two")
        .unwrap();
    let entries = talk["entries"].as_array().unwrap().iter();
    let spoke: Vec<&str> = entries
        .filter(|entry| entry["type"] == "message")
        .map(|entry| entry["speaker"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(spoke, ["ann", "ada", "ben"]);
    place.assert_sound("with room again");
}

fn team_of_scripts(place: &Place, scripts: &[(&str, String)]) {
    let settings = place.home.join(".config/tertulia");
    fs::create_dir_all(&settings).unwrap();
    let mut agents = String::new();
    let mut members = Vec::new();
    for (name, script) in scripts {
        let args = serde_json::json!(["-c", format!("cat >/dev/null; {script}")]);
        agents.push_str(&format!(
            "[agents.{name}]\ntype = \"command\"\ncommand = \"/bin/sh\"\nargs = {args}\nconfine = false\n"
        ));
        members.push(serde_json::json!({
            "name": name, "displayName": name, "role": "x", "type": "ai", "agentType": name,
            "baseDir": ".", "systemInstruction": "",
        }));
    }
    members.push(serde_json::json!({
        "name": "ann", "displayName": "Ann", "role": "x", "type": "human", "baseDir": ".",
        "systemInstruction": "",
    }));
    fs::write(settings.join("config.toml"), agents).unwrap();
    let team = serde_json::json!({
        "schemaVersion": "1.2",
        "team": {"name": "two", "description": "", "members": members},
    });
    fs::write(place.work.join("team.json"), team.to_string()).unwrap();
}
