//! Sleep, lost connections and killed servers: nothing is missed, lost or said twice.

use serde_json::json;
use tertulia_testkit::ports::unused_port;

use super::driver::{Browser, ENTER, Kind, in_each_browser};
use super::stage::{
    Network, Site, go, has_answers, is_idle, open_session, patient_session, say, shown, sign_in,
    sign_in_with,
};
use crate::home::{Home, until};

in_each_browser!(
    a_network_that_swallows_everything_is_noticed_and_caught_up_with,
    a_killed_server_loses_and_doubles_nothing,
    a_cancelled_message_is_not_sent_when_the_page_is_opened_again,
);

/// Returns the texts of a session's messages, without the end of the last line.
fn said(home: &Home, id: &str) -> Vec<String> {
    let said = home.said(id).into_iter();
    said.map(|text| text.trim_end().to_owned()).collect()
}

const TURN: [&str; 2] = ["speak", "the beginning the end"];

#[test]
fn a_frozen_page_catches_up_when_it_wakes() {
    let home = Home::new();
    let id = patient_session(&home);
    let site = Site::start(&home);
    let browser = sign_in(&site);
    open_session(&browser, &site, &id);
    say(&browser, "speak");
    browser.sees(".stream .entry", "the beginning");
    browser.devtools("Page.setWebLifecycleState", json!({ "state": "frozen" }));
    go(&home);
    until("the answer is saved", || {
        (home.said(&id).len() == 4).then_some(())
    });
    browser.devtools("Page.setWebLifecycleState", json!({ "state": "active" }));
    browser.sees(".entries .entry", "the end");
    is_idle(&browser);
    assert_eq!(shown(&browser)[2..], TURN);
    assert_eq!(browser.complaints(), [""; 0]);
}

fn a_network_that_swallows_everything_is_noticed_and_caught_up_with(kind: Kind) {
    let home = Home::new();
    let id = patient_session(&home);
    let port = unused_port();
    let network = Network::to(port);
    let public = format!("http://127.0.0.1:{}", network.port);
    let mut site = Site::start_on(&home, port, &["--public-url", &public]);
    site.port = network.port;
    let browser = sign_in_with(&site, kind);
    open_session(&browser, &site, &id);
    say(&browser, "speak");
    browser.sees(".stream .entry", "the beginning");
    // The browser still calls its connection open.
    network.cut();
    browser.eval("window.dispatchEvent(new Event('offline'))");
    browser.sees("#banner", "Connection lost. Trying again…");
    browser.type_text(&format!("said without a network{ENTER}"));
    browser.sees(".stream .waiting", "not sent yet");
    go(&home);
    until("the answer is saved", || {
        (home.said(&id).len() == 4).then_some(())
    });
    network.mend();
    browser.eval("window.dispatchEvent(new Event('online'))");
    browser.sees("#banner", "Reconnected.");
    let expected = [&TURN[..], &["said without a network", TURN[1]]].concat();
    has_answers(&browser, 3);
    assert_eq!(shown(&browser)[2..], expected);
    assert_eq!(said(&home, &id)[2..], expected);

    // A message arrives, but the page is not told: it sends the message again, which is said once.
    network.cut_replies();
    browser.type_text(&format!("said once{ENTER}"));
    until("the message arrives", || {
        (home.said(&id).len() == 8).then_some(())
    });
    assert_eq!(browser.count(".stream .waiting"), 1);
    network.mend();
    browser.eval("window.dispatchEvent(new Event('online'))");
    has_answers(&browser, 4);
    assert_eq!(said(&home, &id)[6..], ["said once", TURN[1]]);
    assert_eq!(shown(&browser), said(&home, &id));
    browser.waits("!localStorage.getItem('tertulia.outbox')");
    assert_eq!(browser.complaints(), [""; 0]);
}

fn a_killed_server_loses_and_doubles_nothing(kind: Kind) {
    let home = Home::new();
    let id = patient_session(&home);
    let site = Site::start(&home);
    let port = site.port;
    let browser: Browser = sign_in_with(&site, kind);
    open_session(&browser, &site, &id);
    say(&browser, "speak");
    browser.sees(".stream .entry", "the beginning");
    browser.type_text(&format!("queued when it died{ENTER}"));
    browser.sees(".stream .waiting", "queued");
    site.kill();
    browser.sees("#banner", "Connection lost. Trying again…");
    browser.type_text(&format!("sent while it was away{ENTER}"));
    browser.sees(".stream .waiting", "sent while it was away");
    go(&home);
    let site = Site::start_on(&home, port, &[]);
    // What the old server had not accepted is sent, once. What only waited there is a draft.
    browser.waits("document.querySelectorAll('.entries .entry.human').length === 3");
    is_idle(&browser);
    browser.sees(
        ".stream .waiting.is-draft",
        "not sent: the server was restarted",
    );
    browser.eval("[...document.querySelectorAll('.waiting.is-draft button')].find((one) => one.textContent === 'Edit').click()");
    browser.waits("document.querySelector('.composer textarea').value === 'queued when it died'");
    browser.waits("!document.querySelector('.stream .waiting')");
    browser.waits("!localStorage.getItem('tertulia.outbox')");
    browser.type_text(ENTER);
    browser.waits("document.querySelectorAll('.entries .entry.human').length === 4");
    is_idle(&browser);
    let mine: Vec<String> = home
        .said(&id)
        .into_iter()
        .filter(|text| !text.starts_with("the "))
        .collect();
    assert_eq!(
        mine[1..],
        ["speak", "sent while it was away", "queued when it died"]
    );
    until("the page shows what is saved", || {
        (shown(&browser) == said(&home, &id)).then_some(())
    });
    assert_eq!(browser.complaints(), [""; 0]);
    drop(site);
}

fn a_cancelled_message_is_not_sent_when_the_page_is_opened_again(kind: Kind) {
    let home = Home::new();
    let id = patient_session(&home);
    let site = Site::start(&home);
    let browser = sign_in_with(&site, kind);
    open_session(&browser, &site, &id);
    say(&browser, "speak");
    browser.sees(".stream .entry", "the beginning");
    browser.type_text(&format!("never mind{ENTER}"));
    browser.sees(
        ".stream .waiting",
        "queued: sent when the current answer ends",
    );
    browser.eval("document.querySelector('.composer .stop').click()");
    browser.sees(".stream .waiting.is-draft", "not sent: cancelled");
    is_idle(&browser);
    // Where it was sent by itself.
    open_session(&browser, &site, &id);
    browser.sees(".stream .waiting.is-draft", "never mind");
    go(&home);
    say(&browser, "something else");
    has_answers(&browser, 3);
    assert!(!said(&home, &id).contains(&"never mind".to_owned()));
    browser.eval("[...document.querySelectorAll('.waiting.is-draft button')].find((one) => one.textContent === 'Discard').click()");
    browser.waits("!document.querySelector('.stream .waiting')");
    browser.waits("!localStorage.getItem('tertulia.outbox')");
    assert_eq!(browser.complaints(), [""; 0]);
}
