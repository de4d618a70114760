//! `store info`, `store du`, `store compress`, `store copy`, `store rebuild`.

use serde_json::{Value, json};

use crate::home::{Backend, Home, both, keys, short};

#[test]
fn info_counts() {
    both(|home| {
        let id = home.say("echo one");
        home.say("echo two");
        home.run(&["rm", "-y", &id]).ok();
        let info = home.run(&["store", "info", "--json"]).ok().json();
        let name = if home.backend() == Backend::Sqlite {
            "sqlite"
        } else {
            "files"
        };
        assert_eq!(info["backend"], name);
        assert_eq!(
            (&info["sessions"], &info["trashed"]),
            (&json!(2), &json!(1))
        );
        assert_eq!(info["entries"], 7);
        assert!(info["bytes"].as_u64().unwrap() > 0);
        assert_eq!(
            keys(&info),
            [
                "backend",
                "bytes",
                "entries",
                "format",
                "index_bytes",
                "place",
                "sessions",
                "trashed"
            ]
        );
        home.run(&["store", "info"])
            .ok()
            .says(&home.store_url())
            .says("1 in the trash");
    });
}

#[test]
fn copy_takes_everything_and_a_second_time_nothing() {
    for (from, to) in [
        (Backend::Sqlite, Backend::Files),
        (Backend::Files, Backend::Sqlite),
    ] {
        let (source, target) = (Home::with(from), Home::with(to));
        let id = source.say("echo one");
        source.run(&["tag", &id, "+x"]).ok();
        source
            .run(&["fork", &format!("{id}:2"), "--name", "child"])
            .ok();
        let gone = source.say("echo trash");
        source.run(&["rm", "-y", &gone]).ok();
        let urls = [source.store_url(), target.store_url()];
        let copy = |flag: &str| {
            source
                .run(&["store", "copy", &urls[0], &urls[1], flag])
                .ok()
        };
        let counts = copy("--json").json();
        assert_eq!(
            (&counts["sessions"], &counts["copied"]),
            (&json!(3), &json!(3))
        );
        for reference in [id.as_str(), "child", gone.as_str()] {
            let raw = |home: &Home| home.run(&["show", reference, "--raw"]).ok().stdout;
            assert_eq!(raw(&source), raw(&target), "{reference}");
        }
        let trash = target
            .run(&["list", "--all", "--trash", "--json"])
            .ok()
            .json();
        assert_eq!(trash["sessions"][0]["id"], gone.as_str());
        assert_eq!(target.show("child")["parent"]["id"], id.as_str());
        assert_eq!(copy("--json").json()["copied"], 0);
        copy("--no-color").notes("Copied 0 of 3 sessions, 0 entries; 3 already there.");
        source.say_in(&id, "echo two");
        assert_eq!(copy("--json").json()["copied"], 1);
        assert_eq!(target.said(&id).len(), 4);
        target.run(&["doctor"]).ok();
        target
            .run(&["search", "--all", "one"])
            .ok()
            .lacks("Nothing");
    }
}

#[test]
fn copy_of_what_is_not_there_makes_nothing() {
    let home = Home::new();
    home.run(&["store", "copy", "sqlite:no.db", "files:talks"])
        .code(3)
        .notes("no.db");
    assert_eq!(std::fs::read_dir(home.project()).unwrap().count(), 0);
    home.say("hello");
    let url = home.store_url();
    home.run(&["store", "copy", &url, &url]).code(2);
    home.run(&["store", "copy", &url]).code(2);
    home.run(&["store"]).code(2);
}

#[test]
fn rebuild_derives_the_same() {
    both(|home| {
        let id = home.say("echo one");
        home.run(&["tag", &id, "+x"]).ok();
        let before = home.all();
        let rebuilt = home.run(&["store", "rebuild", "--json"]).ok().json();
        assert_eq!(rebuilt, json!({ "sessions": 1, "entries": 4 }));
        assert_eq!(home.all(), before);
        home.run(&["search", "one"]).ok().notes("2 hits");
    });
}

#[test]
fn du_says_what_each_session_takes() {
    both(|home| {
        let empty = home.run(&["store", "du", "--json"]).ok().json();
        assert_eq!(empty["sessions"], json!([]));
        assert_eq!(keys(&empty["total"]), ["index", "own", "shared", "trash"]);
        let id = home.say(&format!("echo {}", "long ".repeat(2000)));
        home.run(&["fork", &format!("{id}:2"), "--name", "child"])
            .ok();
        let gone = home.say("echo trash");
        home.run(&["rm", "-y", &gone]).ok();
        let raw = |reference: &str| {
            let output = home.run(&["show", reference, "--raw"]).ok();
            output.stdout.len() as u64
        };
        let du = home.run(&["store", "du", "--json"]).ok().json();
        let sessions = du["sessions"].as_array().unwrap();
        assert_eq!(
            keys(&sessions[0]),
            ["forks", "id", "own", "shared", "title"]
        );
        let number = |value: &Value| value.as_u64().unwrap();
        let size = |at: usize| number(&sessions[at]["own"]) + number(&sessions[at]["shared"]);
        assert_eq!((size(0), size(1)), (raw(&id), raw("child")));
        assert_eq!(
            (&sessions[0]["forks"], &sessions[1]["title"]),
            (&json!(1), &json!("child"))
        );
        let total = &du["total"];
        assert_eq!(number(&total["trash"]), raw(&gone));
        let own = number(&sessions[0]["own"]) + number(&sessions[1]["own"]);
        assert_eq!(number(&total["own"]), own);
        assert_eq!(total["shared"], sessions[0]["shared"]);
        home.run(&["store", "du", "--limit", "1"])
            .ok()
            .says("10 kB")
            .says("total shared")
            .notes("Not shown: 1 smaller session (--limit)")
            .lacks("child");
    });
}

#[test]
fn compress_takes_less_room_and_changes_nothing_else() {
    both(|home| {
        let id = home.say(&format!("echo {}", "long tomato words ".repeat(1000)));
        home.say("short");
        let raw = |home: &Home| home.run(&["show", &id, "--raw"]).ok().stdout;
        let before = (
            raw(home),
            home.all(),
            home.run(&["export", &id]).ok().stdout,
        );
        let compress = |args: &[&str]| {
            let args = [&["store", "compress", "--older-than", "0s"], args].concat();
            home.run(&args).ok()
        };
        home.run(&["store", "compress"])
            .ok()
            .notes("Nothing to compress");
        compress(&["--dry-run"])
            .says(&short(&id))
            .notes("1 session would be compressed");
        let planned = compress(&["--dry-run", "--json"]).json();
        assert_eq!(
            (&planned["sessions"], &planned["ids"]),
            (&json!(1), &json!([id]))
        );
        assert_eq!(
            home.run(&["store", "info", "--json"]).ok().json()["format"],
            1
        );
        let done = compress(&["--json"]).json();
        assert_eq!(
            keys(&done),
            ["after", "before", "dry_run", "sessions", "skipped"]
        );
        assert_eq!(done["sessions"], 1);
        assert!(done["after"].as_u64().unwrap() * 10 < done["before"].as_u64().unwrap());
        assert_eq!(
            home.run(&["store", "info", "--json"]).ok().json()["format"],
            2
        );
        let du = home.run(&["store", "du", "--json"]).ok().json();
        let own = |id: &str| {
            let sessions = du["sessions"].as_array().unwrap().iter();
            let mut it = sessions.filter(|it| it["id"] == id);
            it.next().unwrap()["own"].clone()
        };
        assert_eq!(own(&id), done["after"]);
        let after = (
            raw(home),
            home.all(),
            home.run(&["export", &id]).ok().stdout,
        );
        assert_eq!(after, before);
        home.run(&["search", "tomato"]).ok().notes("2 hits");
        home.run(&["doctor"]).ok();
        compress(&[]).notes("Nothing to compress");
        let copy = Home::with(Backend::Files);
        let urls = [home.store_url(), copy.store_url()];
        home.run(&["store", "copy", &urls[0], &urls[1]]).ok();
        assert_eq!(raw(&copy), before.0);
        home.run(&["fork", &format!("{id}:2"), "--name", "child"])
            .ok();
        assert_eq!(home.said("child").len(), 1);
        // Going on makes it plain.
        home.say_in(&id, "echo on");
        assert_eq!(home.said(&id).len(), 4);
        let again = compress(&[]);
        again.notes("Compressed 1 session");
        home.run(&["doctor"]).ok();
    });
}
