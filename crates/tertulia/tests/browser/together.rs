//! Two windows and a terminal on one session.

use super::driver::ENTER;
use super::stage::{Site, go, has_answers, open_session, patient_session, say, shown, sign_in};
use crate::home::Home;
use crate::screen::stage::talk;

#[test]
fn two_windows_and_a_terminal_see_the_same_session() {
    let home = Home::new();
    let id = patient_session(&home);
    let site = Site::start(&home);
    let browser = sign_in(&site);
    let first = browser.window();
    open_session(&browser, &site, &id);
    let second = browser.another_window();
    browser.switch(&second);
    open_session(&browser, &site, &id);
    let mut terminal = talk(&home, &["attach", &id]);

    // The terminal asks, both windows see each token.
    terminal.type_text("from the terminal\n");
    for window in [&first, &second] {
        browser.switch(window);
        browser.sees(".entries .entry.human", "from the terminal");
        browser.sees(".stream .entry", "the beginning");
    }
    // A window queues a message, the answer ends for all.
    say(&browser, "from a window");
    go(&home);
    for window in [&first, &second] {
        browser.switch(window);
        has_answers(&browser, 3);
        assert_eq!(
            shown(&browser)[2..],
            [
                "from the terminal",
                "the beginning the end",
                "from a window",
                "the beginning the end"
            ]
        );
        assert_eq!(browser.complaints(), [""; 0]);
    }
    terminal.sees("from a window");
    // Both windows say the same words at once: both are said.
    for window in [&first, &second] {
        browser.switch(window);
        browser.click(".composer textarea");
        browser.type_text(&format!("the same{ENTER}"));
    }
    has_answers(&browser, 5);
    assert_eq!(
        home.said(&id)
            .iter()
            .filter(|text| *text == "the same")
            .count(),
        2
    );
}
