//! Widths, colours, contrast, and messages that try to be more than text.

use super::driver::Browser;
use super::stage::{Site, is_idle, open_session, say, sign_in};
use crate::home::Home;

/// Returns the texts whose contrast with their background is below 4.5 : 1.
const FAINT: &str = r#"(() => {
  const parse = (text) => text.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (node) => {
    for (let up = node; up; up = up.parentElement) {
      const colour = parse(getComputedStyle(up).backgroundColor);
      if (colour[3] !== 0) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility({ opacityProperty: true }) || node.closest('.unseen')) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faint.push(`${node.className}: ${walker.currentNode.data.trim()} ${contrast.toFixed(2)}`);
  }
  return faint;
})()"#;

const HOSTILE: &str = "echo <script>window.hurt = 1</script> <img src=x onerror=\"window.hurt = 1\"> \
    [a](javascript:window.hurt=1) <svg onload=\"window.hurt=1\"> \u{202e}gnp.exe `code`";

fn check(browser: &Browser, is_phone: bool) {
    let is_visible = |selector: &str| {
        browser.eval(&format!(
            "document.querySelector('{selector}').checkVisibility()"
        )) == true
    };
    assert_eq!(is_visible("#list"), !is_phone);
    assert!(is_visible(".composer textarea"));
    assert_eq!(is_visible(".bar .back"), is_phone);
    assert_eq!(
        browser.eval("document.documentElement.scrollWidth <= innerWidth"),
        true
    );
    let wide = browser.eval(
        "[...document.querySelectorAll('.entry')].every((one) => one.getBoundingClientRect().right <= innerWidth)",
    );
    assert_eq!(wide, true);
    assert_eq!(browser.eval(FAINT), serde_json::json!([]));
}

#[test]
fn the_page_fits_phones_and_desktops_in_dark_and_light() {
    let home = Home::new();
    let id = home.say("hello");
    let site = Site::start(&home);
    let browser = sign_in(&site);
    open_session(&browser, &site, &id);
    say(&browser, HOSTILE);
    is_idle(&browser);
    browser.sees(".entries .entry.agent", "<script>window.hurt = 1</script>");
    assert_eq!(browser.eval("window.hurt"), serde_json::Value::Null);
    assert_eq!(
        browser.count(
            ".entries script, .entries img, .entries svg:not(.icon), .entries [href^=javascript]"
        ),
        0
    );
    assert!(!browser.text(".entries").contains('\u{202e}'));
    let mut pages = Vec::new();
    for (width, height, is_phone) in [(1440, 900, false), (390, 844, true)] {
        browser.resize(width, height, is_phone);
        for scheme in ["light", "dark"] {
            browser.colours(scheme);
            browser.waits(&format!("innerWidth === {width}"));
            check(&browser, is_phone);
            pages.push(browser.eval("getComputedStyle(document.body).backgroundColor"));
        }
    }
    assert_eq!(pages[0], pages[2]);
    assert_ne!(pages[0], pages[1]);
    // On a phone the list and the session take turns.
    browser.click(".bar .back");
    browser.waits("document.querySelector('#list').checkVisibility() && !document.querySelector('#main').checkVisibility()");
    assert_eq!(browser.eval(FAINT), serde_json::json!([]));
    browser.click("#list .rows a");
    browser.waits("document.querySelector('.composer textarea')?.checkVisibility()");
    // Nothing pulls the page down.
    assert_eq!(
        browser.eval("getComputedStyle(document.documentElement).overscrollBehaviorY"),
        "none"
    );
    assert_eq!(browser.complaints(), [""; 0]);
}
