//! Signing in, the list, saying and streaming.

use super::driver::{Browser, ENTER, ESCAPE, Kind, in_each_browser};
use super::stage::{
    Site, go, has_answers, is_idle, open_session, patient_session, say, shown, sign_in_with,
};
use crate::home::{Home, until};

in_each_browser!(
    a_code_opens_the_page_once_and_sessions_are_opened_by_keys,
    an_answer_streams_through_a_reload_and_can_be_cancelled,
);

fn a_code_opens_the_page_once_and_sessions_are_opened_by_keys(kind: Kind) {
    let home = Home::new();
    home.say("older words");
    let id = home.say("newer words");
    let site = Site::start(&home);
    let browser = sign_in_with(&site, kind);
    assert_eq!(
        browser.eval("location.href"),
        site.url("/"),
        "the code is gone"
    );
    assert_eq!(browser.eval("document.cookie"), "", "scripts see no cookie");
    assert_eq!(browser.count("#list .rows a"), 2);
    // Keys alone: the first session, open it, write, leave.
    browser.type_text("j");
    browser.type_text(ENTER);
    browser.waits(&format!("location.pathname === '/s/{id}'"));
    browser.sees(".entries .entry.human", "newer words");
    browser.waits("document.activeElement.localName === 'textarea'");
    browser.type_text(&format!("echo **bold** words{ENTER}"));
    browser.waits(
        "document.querySelector('.entries .text strong')?.parentElement.innerText.includes('bold words')",
    );
    is_idle(&browser);
    assert_eq!(shown(&browser).len(), 4);
    browser.type_text(ESCAPE);
    browser.type_text(ESCAPE);
    browser.waits("location.pathname === '/'");
    browser.type_text("?");
    browser.sees("dialog", "Previous, next message");
    browser.type_text(ESCAPE);
    assert_eq!(browser.complaints(), [""; 0]);
    // Signing out leaves nothing behind.
    browser.click("#list > header button");
    browser.click(".menu button:last-child");
    browser.waits("location.pathname === '/login' && localStorage.length === 0");
    browser.open(&site.url("/"));
    browser.waits("location.pathname === '/login'");
    // The code is used up: another browser is told so, and sees nothing.
    let other = Browser::start_as(kind);
    other.open(&site.link);
    other.sees("#problem", "used");
    assert_eq!(other.eval("location.pathname"), "/login");
    other.open(&site.url(&format!("/s/{id}")));
    assert!(!other.text("body").contains("newer words"));
    assert_eq!(home.said(&id).len(), 4);
}

fn an_answer_streams_through_a_reload_and_can_be_cancelled(kind: Kind) {
    let home = Home::new();
    let id = patient_session(&home);
    let site = Site::start(&home);
    let browser = sign_in_with(&site, kind);
    open_session(&browser, &site, &id);
    // All but the login.
    browser.eval(
        "Object.keys(localStorage).filter((key) => key !== 'tertulia.secret').forEach((key) => localStorage.removeItem(key))",
    );
    say(&browser, "speak");
    browser.sees(".stream .entry", "the beginning");
    browser.sees("#list .badge", "answering");
    // A second message is queued, and a third is only a draft.
    browser.type_text(&format!("wait your turn{ENTER}"));
    browser.sees(".stream .waiting", "queued");
    browser.type_text("not sent");
    browser.waits("localStorage.length === 3");
    // The time that the answer has taken so far is that of the session, not of the page.
    browser.waits("parseInt(document.querySelector('.elapsed').textContent) >= 4");
    browser.reload();
    browser.waits(
        "parseInt(document.querySelector('.elapsed').textContent) >= 4 && performance.now() < 4000",
    );
    browser.sees(".stream .entry", "the beginning");
    browser.waits("document.querySelector('textarea').value === 'not sent'");
    go(&home);
    has_answers(&browser, 3);
    assert_eq!(
        shown(&browser)[2..],
        [
            "speak",
            "the beginning the end",
            "wait your turn",
            "the beginning the end"
        ]
    );
    browser.waits("!localStorage.getItem('tertulia.outbox')");
    std::fs::remove_file(home.path().join("go")).unwrap();
    browser.click(".composer textarea");
    browser.type_text(&format!(", now it is{ENTER}"));
    browser.sees(".stream .entry", "the beginning");
    browser.type_text(ESCAPE);
    is_idle(&browser);
    browser.sees(".entries .entry", "interrupted before its end");
    let said = home.said(&id);
    assert_eq!(said[6], "not sent, now it is");
    assert_eq!(browser.complaints(), [""; 0]);
    until("what is shown is what is saved", || {
        (shown(&browser).len() == said.len()).then_some(())
    });
}
