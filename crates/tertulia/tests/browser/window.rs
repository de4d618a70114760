//! Long sessions: a window over the log.

use super::stage::{Site, open_session, sign_in};
use crate::home::Home;

/// Scrolls up by half a screen twenty times. Returns how far the first visible entry moved at most
/// while older entries were loaded, in pixels.
const SCROLL_UP: &str = r#"(async () => {
  const view = document.querySelector('.transcript');
  const top = view.getBoundingClientRect().top;
  const place = (node) => node.getBoundingClientRect().top - top;
  let worst = 0;
  for (let step = 0; step < 20; step += 1) {
    view.scrollTop -= view.clientHeight / 2;
    const first = [...document.querySelectorAll('.entries .entry')].find((one) => one.getBoundingClientRect().bottom > top);
    const before = place(first);
    for (let frame = 0; frame < 6; frame += 1) await new Promise(requestAnimationFrame);
    worst = Math.max(worst, Math.abs(place(first) - before));
  }
  return worst;
})()"#;

#[test]
fn a_long_session_is_shown_in_a_window_that_does_not_jump() {
    let home = Home::new();
    let id = long_session(&home, 3000);
    let site = Site::start(&home);
    let browser = sign_in(&site);
    open_session(&browser, &site, &id);
    browser.sees(".entries .entry:last-child", "message 2999");
    assert_eq!(
        browser.eval("document.querySelector('.transcript').scrollTop > 10000"),
        true
    );
    let moved = browser.eval(SCROLL_UP).as_f64().unwrap();
    assert!(moved < 2.0, "{moved}");
    let is_small = "document.querySelectorAll('.entries .entry').length <= 260";
    assert_eq!(browser.eval(is_small), true);
    // The scroll bar leads anywhere.
    browser.eval("document.querySelector('.transcript').scrollTo(0, 0)");
    browser.waits(
        "document.querySelector('.entries .entry.human .text').innerText.trim() === 'message 0'",
    );
    assert_eq!(browser.eval(is_small), true);
    browser.click(".to-end");
    browser.sees(".entries .entry:last-child", "message 2999");
    // An address leads to a message.
    browser.open(&site.url(&format!("/s/{id}/1500")));
    browser.waits("document.querySelector('.entries #e1500.is-marked')");
    let is_in_view = "(() => { const { top, bottom } = document.querySelector('.is-marked').getBoundingClientRect(); \
        return top >= 0 && bottom <= innerHeight; })()";
    browser.waits(is_in_view);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Imports a session of `count` messages and returns its id.
fn long_session(home: &Home, count: usize) -> String {
    let uuid = |number: usize| format!("00000000-0000-4000-8000-{number:012}");
    let mut lines = String::new();
    for at in 0..count {
        let (role, content) = match at % 2 {
            0 => ("user", serde_json::json!(format!("message {at}"))),
            _ => (
                "assistant",
                serde_json::json!([{ "type": "text", "text": answer(at) }]),
            ),
        };
        let parent = at.checked_sub(1).map(uuid);
        let line = serde_json::json!({
            "parentUuid": parent, "isSidechain": false, "type": role, "uuid": uuid(at), "sessionId": uuid(999_999),
            "timestamp": format!("2026-01-01T{:02}:{:02}:{:02}Z", at / 3600 % 24, at / 60 % 60, at % 60),
            "cwd": "/tmp", "version": "2.1.0", "message": { "role": role, "id": format!("m{at}"), "content": content },
        });
        lines.push_str(&format!("{line}\n"));
    }
    let file = home.path().join("long.jsonl");
    std::fs::write(&file, lines).unwrap();
    home.run(&["import", file.to_str().unwrap()]).ok();
    home.all()[0]["id"].as_str().unwrap().to_owned()
}

/// Returns an answer whose height differs from that of its neighbours.
fn answer(at: usize) -> String {
    let more = "It has a few more words than the others do. ".repeat(at % 7);
    match at % 20 {
        1 => format!(
            "message {at}\n\n```rust\nfn main() {{\n    println!(\"{at}\");\n}}\n```\n\n{more}"
        ),
        _ => format!("message {at}. {more}"),
    }
}
