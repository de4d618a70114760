use std::collections::HashSet;

use super::*;

fn press(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
    KeyEvent::new(code, modifiers)
}

const ESC: KeyEvent = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
const CTRL_C: KeyEvent = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);

#[test]
fn every_action_is_in_the_help() {
    let rows = help();
    for action in Action::ALL {
        assert!(
            rows.iter().any(|row| row.action == *action),
            "{action:?} has no key"
        );
    }
    let places: HashSet<Where> = rows.iter().map(|row| row.at).collect();
    assert_eq!(places.len(), Where::ALL.len());
    assert!(rows.iter().all(|row| !row.keys.is_empty()));
}

#[test]
fn no_key_means_two_things_in_one_place() {
    let mut seen = HashSet::new();
    for binding in table::BINDINGS {
        for key in binding.keys.iter().chain(binding.also.iter()) {
            assert!(seen.insert((binding.at, *key)), "{:?} {key:?}", binding.at);
        }
    }
}

#[test]
fn the_promised_keys_are_there() {
    let none = KeyModifiers::NONE;
    let ctrl = KeyModifiers::CONTROL;
    for (at, code, modifiers, expected) in [
        (Where::Input, KeyCode::Enter, none, Action::Send),
        (
            Where::Input,
            KeyCode::Enter,
            KeyModifiers::ALT,
            Action::NewLine,
        ),
        (Where::Talk, KeyCode::Esc, none, Action::Cancel),
        (
            Where::Input,
            KeyCode::Char('r'),
            ctrl,
            Action::SearchHistory,
        ),
        (Where::Talk, KeyCode::Char('o'), ctrl, Action::Transcript),
        (Where::Talk, KeyCode::Char('l'), ctrl, Action::Redraw),
        (Where::Talk, KeyCode::Char('c'), ctrl, Action::Interrupt),
        (Where::Talk, KeyCode::PageUp, none, Action::PageUp),
        (Where::Talk, KeyCode::PageDown, none, Action::PageDown),
        (Where::Talk, KeyCode::F(1), none, Action::Help),
        (Where::Picker, KeyCode::Enter, none, Action::Resume),
        (Where::Picker, KeyCode::Char(' '), none, Action::Preview),
        (Where::Picker, KeyCode::Char('r'), ctrl, Action::Rename),
        (Where::Picker, KeyCode::Char('t'), ctrl, Action::Tag),
        (Where::Picker, KeyCode::Char('f'), ctrl, Action::Fork),
        (Where::Picker, KeyCode::Char('x'), ctrl, Action::Trash),
        (Where::Picker, KeyCode::Tab, none, Action::Scope),
        (Where::Picker, KeyCode::Esc, none, Action::Close),
    ] {
        assert_eq!(action(at, press(code, modifiers)), Some(expected));
    }
    assert_eq!(
        action(Where::Picker, press(KeyCode::Char('x'), none)),
        None,
        "letters are searched for"
    );
}

#[test]
fn keys_that_are_let_go_of_mean_nothing() {
    let mut release = CTRL_C;
    release.kind = KeyEventKind::Release;
    assert_eq!(action(Where::Talk, release), None);
    let mut keys = Keys::default();
    let now = Instant::now();
    assert_eq!(
        keys.action(Where::Talk, CTRL_C, now),
        Some(Action::Interrupt)
    );
    assert_eq!(keys.action(Where::Talk, release, now), None);
    assert_eq!(keys.action(Where::Talk, CTRL_C, now), Some(Action::Leave));
}

#[test]
fn twice_is_something_else_if_it_is_soon() {
    let start = Instant::now();
    let at = |millis| start + Duration::from_millis(millis);
    let mut keys = Keys::default();
    let esc = |keys: &mut Keys, millis| keys.action(Where::Talk, ESC, at(millis)).unwrap();
    assert_eq!(esc(&mut keys, 0), Action::Cancel);
    assert_eq!(esc(&mut keys, 500), Action::Rewind);
    assert_eq!(esc(&mut keys, 600), Action::Cancel, "a third begins anew");
    assert_eq!(esc(&mut keys, 5000), Action::Cancel);
    keys.forget();
    assert_eq!(esc(&mut keys, 5100), Action::Cancel);

    let ctrl_c = |keys: &mut Keys, place, millis| keys.action(place, CTRL_C, at(millis)).unwrap();
    assert_eq!(ctrl_c(&mut keys, Where::Talk, 0), Action::Interrupt);
    assert_eq!(ctrl_c(&mut keys, Where::Picker, 1900), Action::Leave);
    assert_eq!(ctrl_c(&mut keys, Where::Talk, 3000), Action::Interrupt);
    assert_eq!(ctrl_c(&mut keys, Where::Talk, 5100), Action::Interrupt);
    keys.forget();
    assert_eq!(ctrl_c(&mut keys, Where::Talk, 5200), Action::Interrupt);
    let page = press(KeyCode::PageUp, KeyModifiers::NONE);
    keys.action(Where::Talk, page, at(5300));
    assert_eq!(ctrl_c(&mut keys, Where::Talk, 5400), Action::Interrupt);
}

#[test]
fn keys_have_names() {
    let rows = help();
    let keys = |at, action| {
        let row = rows.iter().find(|row| row.at == at && row.action == action);
        row.unwrap().keys.clone()
    };
    assert_eq!(keys(Where::Talk, Action::Rewind), "Esc Esc");
    assert_eq!(keys(Where::Picker, Action::Preview), "Space, Ctrl+V");
    assert_eq!(
        keys(Where::Input, Action::NewLine),
        "Alt+Enter, Shift+Enter, Ctrl+J"
    );
    assert_eq!(keys(Where::Anywhere, Action::Leave), "Ctrl+C Ctrl+C");
    assert_eq!(keys(Where::AgentRequest, Action::No), "n, Esc");
}

#[test]
fn keys_are_named_as_they_are_printed_on_them() {
    let name = |code, modifiers| Key::new(code, modifiers).name();
    let (none, shift) = (KeyModifiers::NONE, KeyModifiers::SHIFT);
    assert_eq!(name(KeyCode::BackTab, shift), "Shift+Tab");
    assert_eq!(name(KeyCode::BackTab, none), "Shift+Tab");
    assert_eq!(name(KeyCode::Char('r'), KeyModifiers::CONTROL), "Ctrl+R");
}
