//! The list of sessions: what a search finds, and a list that does not jump.

use std::fs;

use serde_json::json;

use super::driver::ESCAPE;
use super::stage::{Site, go, is_idle, open_session, patient_agent, say, sign_in};
use crate::home::Home;

/// Imports so many sessions of another program.
fn import(home: &Home, count: usize) {
    let folder = home.path().join("others");
    fs::create_dir(&folder).unwrap();
    for at in 0..count {
        let uuid = |number: usize| format!("00000000-0000-4000-8000-{number:012}");
        let line = json!({
            "parentUuid": null, "isSidechain": false, "type": "user", "uuid": uuid(at), "sessionId": uuid(100_000 + at),
            "timestamp": format!("2026-01-01T{:02}:{:02}:{:02}Z", at / 3600 % 24, at / 60 % 60, at % 60),
            "cwd": "/tmp", "version": "2.1.0", "message": { "role": "user", "content": format!("session {at}") },
        });
        fs::write(
            folder.join(format!("{}.jsonl", uuid(100_000 + at))),
            format!("{line}\n"),
        )
        .unwrap();
    }
    home.run(&["import", folder.to_str().unwrap()]).ok();
}

const ROWS: &str = "document.querySelectorAll('#list .rows a').length";
/// The first visible row, and its place.
const FIRST: &str = "(() => { \
    const top = document.querySelector('#list .scroll').getBoundingClientRect().top; \
    const row = [...document.querySelectorAll('#list .rows a')].find((one) => one.getBoundingClientRect().bottom > top); \
    return [row.querySelector('.title').textContent, Math.round(row.getBoundingClientRect().top)]; })()";

#[test]
fn a_long_list_keeps_its_rows_and_its_place() {
    let home = Home::new();
    import(&home, 620);
    let id = home.say("echo one");
    let site = Site::start(&home);
    let browser = sign_in(&site);
    open_session(&browser, &site, &id);
    // A row has the focus, and the list is scrolled beyond 500 rows.
    browser.waits(&format!("{ROWS} > 0"));
    browser.type_text(ESCAPE);
    browser.type_text("j");
    browser.waits("document.activeElement.matches('#list .rows a')");
    let bottom = "(() => { const list = document.querySelector('#list .scroll'); list.scrollTop = list.scrollHeight; })()";
    let mut rows = 0;
    while rows < 620 {
        browser.eval(bottom);
        browser.waits(&format!("{ROWS} > {rows}"));
        rows = browser.eval(ROWS).as_u64().unwrap();
        assert_ne!(
            browser.eval("document.querySelector('#list .scroll').scrollTop"),
            0
        );
    }
    browser.eval("document.querySelector('#list .scroll').scrollTop -= 3000");
    browser.eval("window.kept = document.querySelectorAll('#list .rows a')[400]");
    let first = browser.eval(FIRST);
    // A session begins to answer, and ends.
    say(&browser, "echo two");
    browser.sees(".entries .entry.agent", "two");
    browser
        .waits("document.querySelector('#list .rows a .facts').textContent.includes('4 messages')");
    assert_eq!(browser.eval(ROWS), 621);
    assert_eq!(browser.eval(FIRST), first);
    assert_eq!(
        browser.eval("window.kept === document.querySelectorAll('#list .rows a')[400]"),
        true
    );
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn hits_name_their_speakers_and_filters_stay_in_sight() {
    let home = Home::new();
    home.say("echo a walnut");
    let site = Site::start(&home);
    let browser = sign_in(&site);
    browser.type_text("/walnut");
    browser.waits("document.querySelectorAll('#list .hits .snippet').length === 2");
    assert_eq!(
        browser.eval(
            "[...document.querySelectorAll('#list .hits b')].map((one) => one.textContent).sort()"
        ),
        json!(["You: ", "demo: "])
    );
    assert_eq!(
        browser.eval("document.querySelector('#list .remark').hidden"),
        true
    );
    browser.type_text(ESCAPE);
    browser.click(".search button");
    browser.waits("[...document.querySelectorAll('.filters select')].every((one) => one.selectedOptions.length)");
    browser.eval("(() => { const kind = document.querySelector('.filters select'); kind.value = 'team'; kind.dispatchEvent(new Event('change')); })()");
    browser.sees("#list .remark", "No session fits");
    browser.click(".search button");
    browser.sees(".chips .chip", "Teams");
    browser.click(".chips .chip");
    browser.waits(&format!("{ROWS} === 1"));
    assert_eq!(browser.count(".chips .chip"), 0);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn an_empty_list_leads_to_a_new_session_which_has_its_title_at_once() {
    let home = Home::new();
    patient_agent(&home);
    let site = Site::start(&home);
    let browser = sign_in(&site);
    browser.sees("#list .remark", "No sessions yet");
    browser.click("#list .scroll .primary");
    browser.waits("document.querySelector('form.new')");
    browser.click("form.new textarea");
    browser.type_text("plant a walnut");
    browser.click("form.new .primary");
    browser.sees(".stream .entry", "the beginning");
    browser.sees("#list .title", "plant a walnut");
    go(&home);
    is_idle(&browser);
    assert_eq!(browser.complaints(), [""; 0]);
}
