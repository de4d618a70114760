use proptest::prelude::*;

use super::*;
use crate::test_support::{any_size, later, look, noon, screen};
use crate::theme::{Palette, Theme};
use crate::view;
use crate::view::brush::Look;

fn busy(doing: Doing) -> Activity {
    let mut activity = Activity::default();
    activity.begin("Ada", noon());
    activity.wrote(340);
    activity.does(doing);
    activity
}

fn at(activity: &Activity, now: Timestamp, palette: Palette, size: (u16, u16)) -> String {
    let look = Look {
        now,
        theme: Theme::new(palette),
    };
    screen(size, |area, buffer| {
        view::activity::draw(activity, look, area, buffer);
        None
    })
}

fn line(doing: Doing, columns: u16) -> String {
    let shown = at(&busy(doing), later(12_345), Palette::Plain, (columns, 1));
    shown.trim_end().to_owned()
}

fn retry(reason: &str) -> Doing {
    let retry = Retry {
        attempt: 2,
        of: 5,
        wait: Duration::from_millis(14_500),
        reason: reason.to_owned(),
    };
    Doing::retrying(&retry, noon())
}

fn gallery(columns: u16) -> String {
    let all = [
        Doing::Thinking,
        Doing::Speaking,
        Doing::using(
            "read_file",
            "src/tui/activity.rs, lines 1 to 200 of 345, and then some more",
        ),
        Doing::using("list", " "),
        Doing::using("run", "echo 漢字\necho \u{1b}[31m red"),
        Doing::Waiting,
        retry("the server is busy"),
        retry(""),
        Doing::SummingUp,
    ];
    all.into_iter()
        .map(|doing| line(doing, columns) + "\n")
        .collect()
}

#[test]
fn every_doing_has_its_words() {
    insta::assert_snapshot!("doings_80", gallery(80));
    insta::assert_snapshot!("doings_120", gallery(120));
    insta::assert_snapshot!("doings_30", gallery(30));
}

#[test]
fn it_is_one_line_of_the_screen() {
    let activity = busy(Doing::Thinking);
    for (name, size) in [("activity_80", (80, 24)), ("activity_120", (120, 40))] {
        insta::assert_snapshot!(name, at(&activity, later(300), Palette::Plain, size));
    }
}

#[test]
fn colours_change_no_word() {
    let activity = busy(retry("busy"));
    let shown = |palette| at(&activity, later(10), palette, (80, 1));
    assert_eq!(shown(Palette::Plain), shown(Palette::Dark));
}

#[test]
fn nothing_is_shown_when_nobody_answers() {
    let mut activity = busy(Doing::Speaking);
    assert_eq!(activity.height(), 1);
    activity.end();
    activity.does(Doing::SummingUp);
    activity.wrote(5);
    assert_eq!(activity, Activity::default());
    assert_eq!((activity.height(), activity.due(noon())), (0, None));
    assert_eq!(at(&activity, noon(), Palette::Plain, (40, 1)), "\n");
}

#[test]
fn it_turns_ten_times_a_second() {
    let turned: String = (0..11)
        .map(|number| frame(Duration::from_millis(number * 100 + 99)))
        .collect();
    assert_eq!(turned, "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏⠋");
    frame(Duration::MAX);
    let activity = busy(Doing::Thinking);
    assert_eq!(activity.due(noon()), Some(later(100)));
    assert_eq!(activity.due(later(99)), Some(later(100)));
    assert_eq!(activity.due(later(100)), Some(later(200)));
    // The clock was set back.
    assert_eq!(activity.due(later(-60_000)), Some(later(-59_900)));
    // While waiting for the user only the seconds change.
    let waiting = busy(Doing::Waiting);
    assert_eq!(waiting.due(later(100)), Some(later(1000)));
}

#[test]
fn time_is_counted_as_one_watches_it() {
    let check = |seconds, expected: &str| {
        assert_eq!(counting(Duration::from_secs(seconds)), expected);
    };
    check(0, "0 s");
    check(59, "59 s");
    check(185, "3 min 5 s");
    check(3600, "1 h 0 min");
    check(90_000, "25 h 0 min");
    let waits = |milliseconds| {
        let shown = at(
            &busy(retry("")),
            later(milliseconds),
            Palette::Plain,
            (40, 1),
        );
        shown.trim_end().to_owned()
    };
    assert!(waits(13_500).contains("in 1 s"), "{}", waits(13_500));
    assert!(waits(13_501).contains("in 1 s"));
    assert!(waits(14_500).contains("now"));
    assert!(waits(99_000).contains("now"));
}

#[test]
fn the_way_to_stop_it_goes_last() {
    let shown = |columns| line(Doing::Thinking, columns);
    assert_eq!(
        shown(49),
        "⠸ Ada is thinking… 12 s · 340 tokens · Esc stops"
    );
    assert_eq!(shown(40), "⠸ Ada is thinking… 12 s · Esc stops");
    assert_eq!(shown(32), "⠸ Ada is thinking… · Esc stops");
    assert_eq!(shown(20), "⠸ Ada is thinking…");
    assert_eq!(shown(10), "⠸ Ada is …");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_size_and_no_words_break_it(
        size in any_size(), words in any::<[String; 3]>(), attempt in any::<u32>(), now in any::<i32>(),
    ) {
        let [who, name, argument] = words;
        let mut activity = Activity::default();
        activity.begin(&who, noon());
        activity.wrote(u64::from(attempt));
        for doing in [Doing::using(&name, &argument), Doing::Waiting, Doing::Retrying {
            at: later(5), attempt, of: attempt, reason: argument.clone(),
        }] {
            activity.does(doing);
            at(&activity, later(now.into()), Palette::Plain, size);
            let due = activity.due(later(now.into()));
            prop_assert!(due.is_some_and(|due| due > later(now.into())));
            if let Some(line) = activity.line(look().now, size.0.into()) {
                let columns = 2 + width(&line.what) + width(&line.rest);
                prop_assert!(columns <= usize::from(size.0).max(2), "{line:?}");
            }
        }
    }
}
