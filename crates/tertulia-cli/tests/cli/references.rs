//! The ways to name a session.

use crate::home::{Home, both, short};

const ID: &str = "01900000-0000-7000-8000-00000000beef";
const LIKE: &str = "01900000-0000-7000-8000-0000dead0001";

fn talk(home: &Home, id: &str, words: &str) {
    home.run(&["chat", "--session-id", id, "-p", words]).ok();
}

fn named(home: &Home, reference: &str) -> String {
    home.show(reference)["id"].as_str().unwrap().to_owned()
}

#[test]
fn every_way_of_naming_works() {
    both(|home| {
        talk(home, ID, "one");
        let newer = home.say("two");
        home.run(&["rename", ID, "The first talk"]).ok();
        let references = [
            ID,
            &ID.to_uppercase(),
            &short(ID),
            "beef",
            "BEEF",
            "0000beef",
            "-00000000beef",
            "0190",
            "01900000-0000",
            "The first talk",
            "@~1",
        ];
        for reference in references {
            let session = home.run(&["show", "--json", "--", reference]).ok().json();
            assert_eq!(session["id"], ID, "{reference}");
        }
        for reference in ["@", "latest", "@~0"] {
            assert_eq!(named(home, reference), newer, "{reference}");
        }
    });
}

#[test]
fn what_names_several_is_ambiguous() {
    both(|home| {
        talk(home, ID, "one");
        talk(home, LIKE, "two");
        let output = home.run(&["show", "0190"]).code(3);
        output
            .notes("'0190' names 2 sessions")
            .notes(&short(ID))
            .notes(&short(LIKE))
            .notes("one")
            .notes("two")
            .notes("just now");
        let error = home.run(&["--json", "rm", "-y", "0190"]).code(3).error();
        assert_eq!(error["kind"], "ambiguous");
        assert!(error["hint"].as_str().unwrap().contains(&short(ID)));
        assert_eq!(home.all().len(), 2);
        for id in [ID, LIKE] {
            home.run(&["rename", id, "Same title"]).ok();
        }
        home.run(&["show", "Same title"]).code(3).notes(&short(ID));
        // What is in the trash is meant only if nothing else is.
        home.run(&["rm", "-y", LIKE]).ok();
        assert_eq!(named(home, "Same title"), ID);
    });
}

#[test]
fn what_names_nothing_is_not_found() {
    both(|home| {
        talk(home, ID, "a talk about parsers");
        let check = |reference: &str| {
            let output = home.run(&["show", reference]).code(3);
            output.notes(reference).notes(&home.store_url());
        };
        for reference in [
            "nosuch",
            "bee",
            "eef",
            "a talk",
            "../../etc/passwd",
            "/etc/passwd",
        ] {
            check(reference);
        }
        let near = home.run(&["show", "a talk about parser"]).code(3);
        near.notes("did you mean").notes(&short(ID));
        check("@~5");
        check("01900000-0000-7000-8000-000000000000");
        let error = home.run(&["show", "nosuch", "--json"]).code(3).error();
        assert_eq!(error["kind"], "not_found");
    });
}

#[test]
fn odd_references_are_wrong_usage() {
    both(|home| {
        home.say("one");
        for reference in ["", " ", "@~x", "@~", "@~-1"] {
            home.run(&["show", reference]).code(2);
        }
    });
}

#[test]
fn the_newest_is_the_newest_here_or_else_of_all() {
    both(|home| {
        let here = home.say("here");
        let other = home.folder("other");
        home.prepare(&["chat", "-p", "there"])
            .folder(&other)
            .run()
            .ok();
        assert_eq!(named(home, "@"), here);
        let third = home.folder("third");
        let output = home
            .prepare(&["show", "@", "--json"])
            .folder(third)
            .run()
            .ok();
        assert_eq!(output.json()["title"], "there");
    });
}

#[test]
fn in_an_empty_store_nothing_is_found() {
    both(|home| {
        for reference in ["@", "latest", "abcd1234", "x"] {
            home.run(&["show", reference]).code(3);
        }
        home.run(&["-r", "-p", "hi"]).code(3);
        home.run(&["export"]).code(3);
        home.run(&["log"]).code(3);
    });
}
