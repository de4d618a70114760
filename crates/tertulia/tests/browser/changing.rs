//! Fork, search, rename, tag, trash, undo, and new sessions.

use super::driver::{ENTER, ESCAPE};
use super::stage::{Site, is_idle, open_session, say, shown, sign_in};
use crate::home::Home;

#[test]
fn sessions_are_found_forked_renamed_tagged_trashed_and_restored() {
    let home = Home::new();
    let id = home.say("echo a walnut and a plum");
    home.say_in(&id, "echo something else");
    home.say("unrelated");
    let site = Site::start(&home);
    let browser = sign_in(&site);

    // Search leads to the message.
    browser.type_text("/walnut");
    browser.sees("#list .hits mark", "walnut");
    browser.click("#list .hits a");
    browser.waits("document.querySelector('.entries .is-marked')");
    let path = browser.eval("location.pathname");
    assert!(
        path.as_str().unwrap().starts_with(&format!("/s/{id}/")),
        "{path}"
    );
    browser.sees(".entries .is-marked", "walnut");

    // A fork from the first answer has it, and nothing later.
    open_session(&browser, &site, &id);
    browser.click(".entries .entry.agent .actions button:last-child");
    browser.waits(&format!(
        "location.pathname.startsWith('/s/') && !location.pathname.includes('{id}')"
    ));
    browser.waits("document.querySelectorAll('.entries .entry > .text').length === 2");
    assert_eq!(
        shown(&browser),
        ["echo a walnut and a plum", "a walnut and a plum"]
    );
    say(&browser, "echo in the fork");
    is_idle(&browser);
    browser.waits("document.querySelectorAll('.entries .entry > .text').length === 4");
    browser.type_text(ESCAPE);
    browser.type_text("l");
    browser.waits("document.querySelectorAll('.family a').length === 2");
    browser.type_text(ESCAPE);

    browser.type_text("r");
    browser.waits("document.activeElement.closest('dialog')");
    browser.eval("document.activeElement.select()");
    browser.type_text(&format!("Fruit{ENTER}"));
    browser.sees(".bar h1", "Fruit");
    browser.sees("#list .title", "Fruit");
    browser.type_text("t");
    browser.waits("document.activeElement.closest('dialog')");
    browser.type_text(&format!("nuts{ENTER}"));
    browser.sees(".bar .tag", "nuts");

    let fork = browser.eval("location.pathname.slice(3)");
    let fork = fork.as_str().unwrap();
    browser.type_text("x");
    browser.waits("document.querySelector('dialog')");
    browser.click("dialog .danger");
    browser.waits("location.pathname === '/'");
    browser.waits("document.querySelectorAll('#list .rows a').length === 2");
    browser.type_text("u");
    browser.waits("document.querySelectorAll('#list .rows a').length === 3");
    assert_eq!(home.show(fork)["title"], "Fruit");
    assert_eq!(home.show(fork)["tags"][0], "nuts");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn chats_and_pairs_begin_on_the_page_and_statistics_are_drawn() {
    let home = Home::new();
    let site = Site::start(&home);
    let browser = sign_in(&site);
    browser.type_text("n");
    browser.waits("document.querySelector('form.new')");
    browser.click("form.new textarea");
    browser.type_text("echo first words");
    browser.click("form.new .primary");
    browser.sees(".entries .entry.agent", "first words");
    is_idle(&browser);
    browser.sees(".composer .chip", "demo");

    browser.open(&site.url("/new"));
    browser.waits("document.querySelector('form.new')");
    browser.click(".kind:last-of-type");
    browser.waits("document.querySelectorAll('form.new .fields select').length === 2");
    browser.click("form.new textarea");
    browser.type_text("write a plan");
    browser.click("form.new .primary");
    browser.sees(".entries .entry", "Both steps are done");
    is_idle(&browser);
    assert_eq!(home.all().len(), 2);

    browser.type_text(ESCAPE);
    browser.type_text("s");
    browser.waits("document.querySelector('.stats svg .column-bar')");
    browser.sees(".totals", "2");
    assert_eq!(browser.complaints(), [""; 0]);
}
