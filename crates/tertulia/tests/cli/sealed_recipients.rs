//! Sealed sessions that several people read: recipients come and go, and bundles carry the key.

use std::fs;
use std::path::PathBuf;

use tertulia_core::entry::Entry;

use crate::home::{Backend, Home, both};

use super::sealed::{lines, sealed_chat, with_key, without_key};

fn add(home: &Home, id: &str, recipient: &str) {
    home.run(&["seal", "add", id, "--recipient", recipient])
        .ok()
        .notes("can read session");
}

/// Returns a home of another person, with their key.
fn another() -> (Home, String) {
    let home = Home::with(Backend::Files);
    let recipient = with_key(&home);
    (home, recipient)
}

#[test]
fn a_recipient_is_added_and_removed() {
    both(|ada| {
        with_key(ada);
        let (eve, recipient) = another();
        let id = sealed_chat(ada, "echo first");
        ada.run(&["push", &eve.store_url()]).ok();
        eve.run(&["show", &id]).code(5);
        add(ada, &id, &recipient);
        ada.say_in(&id, "echo second");
        ada.run(&["push", &eve.store_url()]).ok();
        assert_eq!(eve.said(&id), ada.said(&id));
        eve.say_in(&id, "echo third");
        ada.run(&["sync", &eve.store_url()]).ok();
        assert_eq!(ada.said(&id).len(), 6);
        let fork = ada.run(&["fork", &id, "--json"]).ok().json();
        let fork = fork["id"].as_str().unwrap().to_owned();
        let removed = ada.run(&["seal", "remove", &id, "--recipient", &recipient]);
        removed
            .ok()
            .notes("Earlier entries stay readable to them")
            .notes(&format!("seal remove {}", &fork[fork.len() - 8..]));
        ada.say_in(&id, "echo fourth");
        ada.run(&["push", &eve.store_url()]).ok();
        let refused = eve.run(&["show", &id]).code(5);
        assert!(
            refused.stderr.contains("new key from entry"),
            "{}",
            refused.stderr
        );
        eve.run(&["chat", "-r", &id, "-p", "late"]).code(5);
        assert_eq!(lines(&eve, &id), lines(ada, &id));
        // The rest works as with one key.
        assert_eq!(ada.said(&id).len(), 8);
        let hits = ada.run(&["search", "fourth", "--json"]).ok().json();
        assert!(hits["total"].as_u64().unwrap() > 0);
        ada.run(&["rename", &id, "another title"]).ok();
        ada.run(&["export", &id, "--format", "md"])
            .ok()
            .says("fourth");
        ada.run(&["doctor"]).ok();
        eve.run(&["doctor"]).ok();
        let whole = ada.said(&id);
        ada.run(&["unseal", "-y", &id]).ok();
        without_key(ada);
        assert_eq!(ada.said(&id), whole);
    });
}

#[test]
fn wrong_recipients_and_sessions_are_refused() {
    let home = Home::new();
    let own = with_key(&home);
    let (_, other) = another();
    let plain = home.say("echo plain");
    let id = sealed_chat(&home, "echo sealed");
    home.run(&["seal", "add", &id]).code(2);
    home.run(&["seal", "add", &id, "--recipient", "age1nobody"])
        .code(2);
    home.run(&["seal", "add", &plain, "--recipient", &other])
        .code(5)
        .notes("is not sealed");
    home.run(&["seal", "add", "nosuch", "--recipient", &other])
        .code(3);
    // A user cannot remove their own key.
    home.run(&["seal", "remove", &id, "--recipient", &own])
        .code(5)
        .notes("your own key");
    add(&home, &id, &other);
    home.run(&["seal", "add", &id, "--recipient", &other])
        .code(5)
        .notes("already");
    home.run(&["seal", "remove", &id, "--recipient", &other])
        .ok();
    home.run(&["seal", "remove", &id, "--recipient", &other])
        .code(5)
        .notes("has no key for");
    let before = lines(&home, &id);
    without_key(&home);
    home.run(&["seal", "add", &id, "--recipient", &other])
        .code(5)
        .notes("identity");
    assert_eq!(lines(&home, &id), before);
}

/// `seal REF` is as it was: a title may begin with the name of a command, and `add` has an id.
#[test]
fn a_session_with_the_title_add_is_sealed_by_its_id() {
    let home = Home::new();
    with_key(&home);
    let id = home.say("echo one");
    home.run(&["rename", &id, "add"]).ok();
    home.run(&["seal", "-y", "add"]).ok();
    assert_eq!(home.all()[0]["sealed"], true);
    home.run(&["unseal", "-y", "add"]).code(3);
    home.run(&["unseal", "-y", &id]).ok();
    home.run(&["seal", &id, "-y"]).ok();
    home.run(&["seal", "--new", "-p", "add", "one", "and", "two"])
        .ok();
    assert_eq!(home.said("@")[0], "add one and two");
}

/// Returns the file of a session in a store of files.
fn file_of(home: &Home, id: &str) -> PathBuf {
    let mut waiting = vec![home.files_folder()];
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(path).unwrap();
            waiting.extend(entries.map(|entry| entry.unwrap().path()));
        } else if path.to_string_lossy().ends_with(&format!("{id}.jsonl")) {
            return path;
        }
    }
    panic!("no file of {id}");
}

#[test]
fn a_key_entry_that_was_put_in_is_damage() {
    let (eve, recipient) = another();
    let home = Home::with(Backend::Files);
    with_key(&home);
    let id = sealed_chat(&home, "echo one");
    let other = sealed_chat(&home, "echo two");
    add(&home, &other, &recipient);
    // The entry of another session, at the same place, with a hash that is right.
    let (here, there) = (lines(&home, &id), lines(&home, &other));
    let decode = |line: &str| Entry::decode(line.as_bytes()).unwrap();
    let head = decode(here.lines().last().unwrap()).head();
    let forged = decode(there.lines().last().unwrap()).continuing(&head);
    assert!(forged.follows(&head));
    let log = format!("{here}{}\n", forged.line());
    let file = home.path().join("forged.jsonl");
    fs::write(&file, &log).unwrap();
    home.run(&["import", file.to_str().unwrap()])
        .code(5)
        .notes("change of keys");
    fs::write(file_of(&home, &id), &log).unwrap();
    home.run(&["doctor"]).code(5).says("change of keys");
    home.run(&["show", &id]).ok().notes("change of keys");
    home.say_in(&id, "echo three");
    assert_eq!(home.said(&id).len(), 4);
    home.run(&["push", &eve.store_url()])
        .code(5)
        .notes("change of keys");
    // Without the key it cannot be told from others.
    eve.run(&["import", file.to_str().unwrap()]).ok();
    eve.run(&["show", &id]).code(5);
    eve.run(&["doctor"]).ok().says("not checked");
}

fn bundle(home: &Home, id: &str, to: &[&str]) -> String {
    let file = home.path().join("one.age").display().to_string();
    let args = ["export", id, "-f", "bundle", "--force", "-o", &file];
    home.run(&[&args, to].concat()).ok();
    file
}

#[test]
fn a_bundle_carries_the_key_of_a_sealed_session() {
    both(|ada| {
        with_key(ada);
        let (eve, recipient) = another();
        let (bert, _) = another();
        let id = sealed_chat(ada, "echo first");
        let file = bundle(ada, &id, &["--recipient", &recipient]);
        eve.run(&["import", &file]).ok();
        assert_eq!(eve.said(&id), ada.said(&id));
        assert_eq!(lines(&eve, &id), lines(ada, &id));
        bert.run(&["import", &file]).code(5);
        // It is the same session, and goes on in both.
        eve.say_in(&id, "echo second");
        ada.run(&["sync", &eve.store_url()]).ok();
        assert_eq!(ada.all().len(), 1);
        assert_eq!(ada.said(&id), eve.said(&id));
        // Importing again adds nothing; a later key comes with a later bundle.
        let (_, other) = another();
        add(ada, &id, &other);
        ada.run(&["seal", "remove", &id, "--recipient", &other])
            .ok();
        ada.say_in(&id, "echo third");
        let file = bundle(ada, &id, &["--recipient", &recipient]);
        ada.run(&["push", &eve.store_url()]).ok();
        eve.run(&["show", &id]).code(5);
        eve.run(&["import", &file]).ok().says("nothing new");
        assert_eq!(eve.said(&id), ada.said(&id));
        // Without the key it cannot be handed on.
        without_key(ada);
        let out = ada.path().join("none.age");
        let args = [
            "export",
            &id,
            "-f",
            "bundle",
            "--recipient",
            &recipient,
            "-o",
        ];
        let refused = ada
            .run(&[&args[..], &[out.to_str().unwrap()]].concat())
            .code(5);
        assert!(refused.stderr.contains("identity"), "{}", refused.stderr);
        assert!(!out.exists());
    });
}

#[test]
fn a_decrypted_bundle_is_imported_with_its_key() {
    let ada = Home::new();
    with_key(&ada);
    ada.settings(&format!(
        "[seal]\nidentity = {:?}\nwork_factor = 2\npassphrase_command = \"echo open sesame\"\n",
        ada.path().join("keys/age/id.txt")
    ));
    let id = sealed_chat(&ada, "echo first");
    let file = bundle(&ada, &id, &["--passphrase"]);
    let eve = Home::new();
    eve.settings("[seal]\npassphrase_command = \"echo open sesame\"\n");
    eve.run(&["import", &file]).ok();
    assert_eq!(eve.said(&id), ada.said(&id));
    eve.settings("");
    eve.run(&["show", &id]).code(5);
}
