//! Permission requests on the page.

use super::driver::{ALT, ENTER};
use super::stage::{Site, is_idle, open_session, say, sign_in};
use crate::home::{Home, messages};

#[test]
fn tools_are_allowed_and_denied_with_their_preview() {
    let home = Home::new();
    let id = home.say("hello");
    let site = Site::start(&home);
    let browser = sign_in(&site);
    open_session(&browser, &site, &id);
    let ask = |name: &str| {
        say(
            &browser,
            &format!("use shell {{\"command\":\"touch {name}\"}}"),
        );
        browser.sees(".permission .preview", &format!("touch {name}"));
        browser.sees("#list .badge", "asks you");
    };
    let made = |name: &str| home.project().join(name).exists();

    // Allowed by a key while typing, by a button, and denied by a button.
    ask("one");
    assert!(!made("one"), "nothing runs before the answer");
    browser.press_with(ALT, "y");
    is_idle(&browser);
    assert!(made("one"));
    ask("two");
    browser.click(".permission .primary");
    is_idle(&browser);
    assert!(made("two"));
    ask("three");
    browser.click(".permission .danger");
    is_idle(&browser);
    assert!(!made("three"));
    assert_eq!(browser.count(".entries details.tool.ok"), 2);
    assert_eq!(browser.count(".entries details.tool.denied"), 1);

    // Denied with words, which the agent gets.
    ask("four");
    browser.press_with(ALT, "w");
    browser.type_text(&format!("take five{ENTER}"));
    is_idle(&browser);
    browser.sees(".entries .entry.agent:last-child", "take five");

    // Always: the same call runs without a question.
    ask("six");
    browser.press_with(ALT, "a");
    is_idle(&browser);
    say(&browser, "use shell {\"command\":\"touch six\"}");
    browser.waits("document.querySelectorAll('.entries details.tool.ok').length === 4");
    is_idle(&browser);

    // The policy is shown, and changes at once.
    browser.sees(".composer .chip", "tools: ask");
    browser.click(".composer .chip");
    browser.waits("document.activeElement.closest('dialog')");
    browser.eval("document.activeElement.value = 'all'");
    browser.click("dialog .primary");
    browser.sees(".composer .chip", "tools: all");
    say(&browser, "use shell {\"command\":\"touch seven\"}");
    browser.waits("document.querySelectorAll('.entries details.tool.ok').length === 5");
    is_idle(&browser);
    assert!(made("seven"));

    // A fork from a call has its result, too.
    browser.eval("document.querySelector('.entry:has(details.tool.ok) [aria-label=\"Fork from here\"]').click()");
    browser.waits(&format!(
        "location.pathname.startsWith('/s/') && location.pathname !== '/s/{id}'"
    ));
    let path = browser.eval("location.pathname");
    let fork = path.as_str().unwrap().trim_start_matches("/s/").to_owned();
    let last = messages(&home.show(&fork)).pop().unwrap();
    assert_eq!(last["role"], "tool", "{last}");
    assert_eq!(browser.complaints(), [""; 0]);
}
