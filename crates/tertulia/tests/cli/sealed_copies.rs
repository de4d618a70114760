//! A session that is sealed in one store while another one has it in plain, and goes on there.

use crate::home::{Backend, Home};

use super::sealed::with_key;

/// Two stores that share a session, which `a` then seals; both go on with it if `both_go_on`.
fn shared_and_sealed(both_go_on: bool) -> (Home, Home, String) {
    let (a, b) = (Home::new(), Home::with(Backend::Files));
    let id = a.say("echo shared");
    a.run(&["push", &b.store_url()]).ok();
    with_key(&a);
    a.run(&["seal", "-y", &id]).ok();
    if both_go_on {
        a.say_in(&id, "echo onlysealed");
    }
    // Three entries, since it moves to this home's folder.
    b.say_in(&id, "echo onlyplain");
    (a, b, id)
}

fn give_key(from: &Home, to: &Home) {
    let key = from.path().join("keys/age/id.txt");
    to.settings(&format!("[seal]\nidentity = {key:?}\n"));
}

/// Returns true if a store has a word.
fn has(home: &Home, word: &str) -> bool {
    let hits = home.run(&["search", "--all", word, "--json"]).ok().json();
    hits["total"].as_u64().unwrap() > 0
}

#[test]
fn with_the_key_a_sync_seals_the_plain_copy_and_keeps_what_only_it_has() {
    for both_go_on in [false, true] {
        for from_plain in [false, true] {
            let (a, b, id) = shared_and_sealed(both_go_on);
            give_key(&a, &b);
            if from_plain {
                b.run(&["sync", &a.store_url()])
                    .ok()
                    .notes("the copy here is sealed now, too (3 entries of it only here)");
                assert!(b.all().iter().all(|row| row["sealed"] == true));
                assert!(has(&b, "onlyplain"));
            } else {
                a.run(&["sync", &b.store_url()])
                    .code(5)
                    .notes("3 entries that only that copy has are sealed here");
            }
            for word in ["shared", "onlyplain"] {
                assert!(has(&a, word), "{word} {both_go_on} {from_plain}");
            }
            assert_eq!(has(&a, "onlysealed"), both_go_on);
            assert!(a.all().iter().all(|row| row["sealed"] == true));
            a.run(&["doctor"]).ok();
            b.run(&["doctor"]).ok();
            // What earlier versions advised: nothing is lost by it any more.
            b.run(&["rm", "-y", &id]).ok();
            let key = a.path().join("keys/age/id.txt");
            b.settings(&format!(
                "[seal]\nidentity = {key:?}\n[retention]\ntrash = \"0s\"\n"
            ));
            b.run(&["prune", "-y"]).ok();
            b.run(&["sync", &a.store_url()]).ok();
            for home in [&a, &b] {
                assert!(has(home, "onlyplain") && has(home, "shared"));
            }
        }
    }
}

#[test]
fn without_the_key_both_copies_stay_and_the_difference_is_counted() {
    let (a, b, id) = shared_and_sealed(false);
    let output = b.run(&["sync", &a.store_url()]).code(5);
    output
        .notes("only the plain copy has its last 3 entries")
        .notes("both copies stay as they are")
        .lacks("tertulia rm")
        .lacks("prune");
    assert!(has(&b, "onlyplain"));
    assert_eq!(b.said(&id).len(), 4);
    let json = b.run(&["pull", &a.store_url(), "--json"]).code(5).json();
    let reason = json["skipped"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("last 3 entries"), "{json}");
}
