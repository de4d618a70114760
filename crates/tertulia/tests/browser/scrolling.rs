//! Following the end of a session, and reading what is above it while the answer grows.

use super::driver::{Browser, Kind, in_each_browser};
use super::stage::{
    Site, go, is_idle, open_session, say, sign_in, sign_in_with, talkative_session,
};
use crate::home::Home;

in_each_browser!(the_wheel_and_keys_leave_the_end_and_return_to_it,);

const VIEW: &str = ".transcript";

/// Opens a session whose answer grows, on a screen that it has filled already.
fn watch(home: &Home, kind: Kind) -> (Browser, Site) {
    let id = talkative_session(home);
    let site = Site::start(home);
    let browser = sign_in_with(&site, kind);
    open_session(&browser, &site, &id);
    say(&browser, "speak");
    (browser, site)
}

fn fills_the_screen(browser: &Browser) {
    browser.waits("(({ scrollHeight, clientHeight }) => scrollHeight > clientHeight + 400)(document.querySelector('.transcript'))");
}

/// Returns the place of the transcript, and its distance to the end.
fn place(browser: &Browser) -> (f64, f64) {
    let found = browser.eval(
        "(({ scrollTop, scrollHeight, clientHeight }) => [scrollTop, scrollHeight - scrollTop - clientHeight])(document.querySelector('.transcript'))",
    );
    (found[0].as_f64().unwrap(), found[1].as_f64().unwrap())
}

/// Waits until ten more paragraphs are there.
fn grows(browser: &Browser) {
    let last = "Math.max(...[...document.querySelector('.stream').innerText.matchAll(/paragraph ([0-9]+)/g)].map(([, number]) => Number(number)))";
    let seen = browser.eval(last).as_u64().unwrap();
    browser.waits(&format!("{last} > {}", seen + 10));
}

/// Resolves when the transcript has not moved for twenty frames.
const AT_REST: &str = "new Promise((resolve) => { \
    const view = document.querySelector('.transcript'); let [last, same] = [NaN, 0]; \
    const look = () => { same = view.scrollTop === last ? same + 1 : 0; last = view.scrollTop; \
        if (same < 20) requestAnimationFrame(look); else resolve(true); }; look(); })";

/// Resolves to whether the end stays in view for thirty frames, some of which add to it. Before that,
/// a scroll comes to rest.
const FOLLOWS: &str = "new Promise((resolve) => { let frames = 0; const view = document.querySelector('.transcript'); \
    const look = () => { frames += 1; \
        if (frames > 30 && view.scrollHeight - view.scrollTop - view.clientHeight > 2) resolve(false); \
        else if (frames > 60) resolve(true); else requestAnimationFrame(look); }; look(); })";

#[track_caller]
fn stays(browser: &Browser) {
    browser.eval(AT_REST);
    let (top, distance) = place(browser);
    assert!(distance > 40.0, "{distance} pixels above the end");
    grows(browser);
    let (later, farther) = place(browser);
    assert!((later - top).abs() <= 1.0, "moved from {top} to {later}");
    assert!(farther > distance, "nothing was added below");
}

#[track_caller]
fn follows(browser: &Browser) {
    for _ in 0..3 {
        browser.waits("(({ scrollTop, scrollHeight, clientHeight }) => scrollHeight - scrollTop - clientHeight <= 2)(document.querySelector('.transcript'))");
        grows(browser);
    }
}

#[test]
fn a_finger_scrolls_up_while_an_answer_grows() {
    let home = Home::new();
    let (browser, _site) = watch(&home, Kind::Chromium);
    browser.resize(390, 844, true);
    fills_the_screen(&browser);
    follows(&browser);
    for _ in 0..3 {
        browser.draw_finger(VIEW, 100);
        stays(&browser);
        browser.lift();
        stays(&browser);
        browser.click(".to-end");
        follows(&browser);
    }
    // A finger that only rests holds the text, and lets go of it again.
    browser.draw_finger(VIEW, 0);
    let (top, _) = place(&browser);
    grows(&browser);
    assert!((place(&browser).0 - top).abs() <= 1.0);
    browser.lift();
    follows(&browser);
    // A finger that leads back to the end follows it again.
    browser.draw_finger(VIEW, 100);
    browser.lift();
    stays(&browser);
    go(&home);
    is_idle(&browser);
    for _ in 0..40 {
        browser.draw_finger(VIEW, -300);
        browser.lift();
        if place(&browser).1 <= 2.0 {
            break;
        }
    }
    browser.waits("document.querySelector('.to-end').hidden");
    assert_eq!(browser.complaints(), [""; 0]);
}

fn the_wheel_and_keys_leave_the_end_and_return_to_it(kind: Kind) {
    let home = Home::new();
    let (browser, _site) = watch(&home, kind);
    fills_the_screen(&browser);
    follows(&browser);
    browser.wheel(VIEW, -120);
    browser.waits("!document.querySelector('.to-end').hidden");
    stays(&browser);
    // The end moves on while the wheel turns.
    for _ in 0..40 {
        for _ in 0..10 {
            browser.wheel(VIEW, 20_000);
        }
        if browser.eval(FOLLOWS) == true {
            break;
        }
    }
    follows(&browser);
    browser.eval("document.querySelector('.transcript').focus()");
    // Page up, and the end key.
    browser.type_text("\u{e00e}");
    browser.waits("!document.querySelector('.to-end').hidden");
    stays(&browser);
    browser.type_text("\u{e010}");
    follows(&browser);
    go(&home);
    is_idle(&browser);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn the_end_stays_in_view_when_a_permission_is_asked_for() {
    let home = Home::new();
    let id = home.say(&format!("echo {}", "a long paragraph. ".repeat(400)));
    let site = Site::start(&home);
    let browser = sign_in(&site);
    open_session(&browser, &site, &id);
    let lines: Vec<String> = (0..60).map(|line| format!("echo {line}")).collect();
    let command = serde_json::json!({ "command": lines.join("\n") });
    for _ in 0..3 {
        browser.resize(1440, 900, false);
        say(&browser, &format!("use shell {command}"));
        browser.resize(390, 844, true);
        browser.sees(".permission .preview", "echo 1");
        browser.waits("(({ scrollTop, scrollHeight, clientHeight }) => scrollHeight - scrollTop - clientHeight <= 2)(document.querySelector('.transcript'))");
        browser.click(".permission .danger");
        is_idle(&browser);
        browser.waits("(({ scrollTop, scrollHeight, clientHeight }) => scrollHeight - scrollTop - clientHeight <= 2)(document.querySelector('.transcript'))");
    }
    assert_eq!(browser.complaints(), [""; 0]);
}
