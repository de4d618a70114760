//! Slow servers, errors of the server, small windows, and logins that may only read.

use serde_json::json;

use super::driver::Browser;
use super::stage::{Site, go, is_idle, open_session, patient_session, say, sign_in};
use crate::home::Home;

#[test]
fn what_could_not_be_loaded_is_asked_for_again() {
    let home = Home::new();
    let id = home.say("hello");
    let site = Site::start(&home);
    let browser = sign_in(&site);
    open_session(&browser, &site, &id);
    // The server refuses every page of the session for a while.
    browser.eval(
        "(() => { window.send = WebSocket.prototype.send; \
         WebSocket.prototype.send = function (line) { window.send.call(this, line.replace('\"session_page\"', '\"no_page\"')); }; })()",
    );
    say(&browser, "echo two");
    browser.sees(".stream .notice", "could not be loaded");
    browser.eval("WebSocket.prototype.send = window.send");
    browser.sees(".entries .entry.agent", "two");
    browser.waits("!document.querySelector('.stream .notice.warning:not([hidden])')");
    is_idle(&browser);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_server_that_does_not_answer_gets_few_connections() {
    let home = Home::new();
    let site = Site::start(&home);
    let browser = sign_in(&site);
    // `ps` is not answered, because the server does not get it.
    browser.eval(
        "(() => { window.made = 0; const Real = WebSocket; \
         window.WebSocket = class extends Real { constructor(...words) { super(...words); window.made += 1; } \
         send(line) { if (!line.includes('\"ps\"')) super.send(line); } }; \
         const send = Real.prototype.send; Real.prototype.send = function (line) { if (!line.includes('\"ps\"')) send.call(this, line); }; })()",
    );
    // Twelve seconds in which the window gets the focus again and again.
    let storm = "new Promise((resolve) => { let count = 0; const timer = setInterval(() => { \
        window.dispatchEvent(new Event('focus')); count += 1; if (count === 40) { clearInterval(timer); resolve(window.made); } }, 300); })";
    let made = browser.eval(storm).as_u64().unwrap();
    assert!((1..=3).contains(&made), "{made} connections");
}

#[test]
fn a_login_that_may_only_read_offers_nothing_else() {
    let home = Home::new();
    let id = patient_session(&home);
    let made = home
        .run(&["web", "token", "create", "wall", "--read-only", "--json"])
        .ok();
    let token = made.json()["token"].as_str().unwrap().to_owned();
    let site = Site::start(&home);
    let browser = Browser::start();
    browser.open(&site.url("/login"));
    browser.click("#secret");
    browser.type_text(&format!("{token}\u{e007}"));
    browser.waits("document.querySelector('#list .rows a')");
    let offers = |selector: &str| {
        browser.eval(&format!(
            "[...document.querySelectorAll('{selector}')].some((one) => one.checkVisibility())"
        )) == true
    };
    browser.waits("document.body.dataset.access === 'read_only'");
    open_session(&browser, &site, &id);
    browser.waits("document.body.dataset.access === 'read_only'");
    browser.sees("#list .brand", "read-only");
    browser.sees(".session .bar", "read-only");
    assert!(!offers(".composer") && !offers("[href=\"/new\"]"));
    browser.click(".session .bar button[aria-haspopup]");
    browser.sees(".menu", "Family tree");
    assert!(!browser.text(".menu").contains("Rename"));
    browser.type_text("\u{e00c}");
    browser.type_text("n");
    browser.open(&site.url("/new"));
    browser.waits("document.body.dataset.access === 'read_only' && location.pathname === '/'");
    go(&home);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_permission_fits_low_windows() {
    let home = Home::new();
    let id = home.say(&format!("echo {}", "a long paragraph. ".repeat(100)));
    let site = Site::start(&home);
    let browser = sign_in(&site);
    open_session(&browser, &site, &id);
    let lines: Vec<String> = (0..60).map(|line| format!("echo {line}")).collect();
    let command = json!({ "command": lines.join("\n") });
    say(&browser, &format!("use shell {command}"));
    browser.sees(".permission .preview", "echo 1");
    for (width, height, is_phone) in [(844, 390, true), (720, 450, false), (320, 256, false)] {
        browser.resize(width, height, is_phone);
        browser.waits(&format!(
            "innerWidth === {width} && innerHeight === {height}"
        ));
        let visible = "(() => { const at = (selector) => document.querySelector(selector).getBoundingClientRect(); \
            const inside = ({ top, bottom, left, right }) => top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth; \
            return at('.transcript').height >= 40 && inside(at('.permission .primary')) && inside(at('.permission .danger')) \
                && at('.permission .what').height >= 30; })()";
        browser.waits(visible);
        assert_eq!(
            browser.eval("[...document.querySelectorAll('.permission kbd')].some((one) => one.checkVisibility())"),
            !is_phone && width > 800,
            "{width}"
        );
    }
    browser.click(".permission .danger");
    browser.resize(1440, 900, false);
    is_idle(&browser);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// What the events of a session mean is told without a page.
#[test]
fn the_state_of_a_session_follows_from_its_events() {
    let home = Home::new();
    let site = Site::start(&home);
    let browser = sign_in(&site);
    let told = browser.eval(
        "import(document.querySelector('link[href$=\"session_state.js\"]').href).then(({ UNKNOWN, answeredElsewhere, next, phase, remarks, status }) => { \
         const events = [ \
            { what: 'asked', speaker: { id: 'a', name: 'ada', displayName: 'Ada' } }, \
            { what: 'may_i', request: { call: { id: 't1' } } }, \
            { what: 'settled', tool_id: 't1', verdict: 'no' }, \
            { what: 'routed', output: { queue: { pending: [{ request: { target: 'a', intent: 'review' } }] } } }, \
            { what: 'failed', error: { message: 'no', hint: 'log in' } }, \
            { what: 'over', floor: { waiting: [], agent: 'ada' } }, \
            { what: 'gone', farewell: { told: [{ tone: 'note', text: 'Resume: tertulia --resume 1' }, { tone: 'note', text: 'bye' }] } }, \
            { what: 'of a later version' } ]; \
         let state = UNKNOWN; const told = []; \
         for (const event of events) { state = next(state, event); told.push([status(state), phase(state), state.queue, remarks(event).map(({ text }) => text).join()]); } \
         return [told, answeredElsewhere(state, 't1'), answeredElsewhere(state, 't2'), state.hasFailed, Object.isFrozen(UNKNOWN)]; })",
    );
    assert_eq!(
        told,
        json!([
            [
                ["Ada is answering", "answering", "", ""],
                ["Waiting for your answer", "asking", "", ""],
                ["Ada is answering", "answering", "", ""],
                ["Ada is answering", "answering", "Queue: Ada (review)", ""],
                [
                    "Ada is answering",
                    "answering",
                    "Queue: Ada (review)",
                    "hint: log in"
                ],
                [null, "waiting", "", ""],
                [null, "waiting", "", "bye"],
                [null, "waiting", "", ""],
            ],
            "Already denied elsewhere",
            "Already answered elsewhere",
            true,
            true
        ])
    );
}
