//! Look-ups of sessions.

use tertulia_core::query::Lookup;
use tertulia_store::Store;

use crate::ask::{find, ids, now};
use crate::clock::still_clock;
use crate::conformance::texts::ODD;
use crate::logs::{Writer, human, imported, renamed, trashed, undone};

fn several(store: &dyn Store, count: usize) -> Vec<Writer> {
    let clock = still_clock(1);
    (0..count).map(|_| Writer::begin(store, &clock)).collect()
}

fn part(store: &dyn Store, part: &str) -> Vec<tertulia_core::id::SessionId> {
    find(store, &Lookup::Part(part.to_owned()))
}

/// The full id finds one session.
pub fn by_id(store: &dyn Store) {
    for writer in several(store, 5) {
        assert_eq!(find(store, &Lookup::Id(writer.id)), [writer.id]);
        assert_eq!(part(store, &writer.id.to_string()), [writer.id]);
    }
}

/// A prefix of any length, including hyphens.
pub fn by_beginning(store: &dyn Store) {
    let writers = several(store, 20);
    for length in 4..=36 {
        for writer in &writers {
            let beginning = &writer.id.to_string()[..length];
            let mut expected: Vec<_> = writers
                .iter()
                .map(|writer| writer.id)
                .filter(|id| id.to_string().starts_with(beginning))
                .collect();
            // Newest first.
            expected.reverse();
            assert_eq!(part(store, beginning), expected, "{beginning}");
        }
    }
}

/// A suffix of any length, including hyphens: the short form shown to users.
pub fn by_ending(store: &dyn Store) {
    let writers = several(store, 20);
    for writer in &writers {
        assert_eq!(part(store, &writer.id.short()), [writer.id]);
        let text = writer.id.to_string();
        for length in 4..=36 {
            let found = part(store, &text[36 - length..]);
            assert!(found.contains(&writer.id), "{}", &text[36 - length..]);
            if length >= 8 {
                assert_eq!(found, [writer.id]);
            }
        }
    }
}

/// A prefix of the short form.
pub fn by_short_beginning(store: &dyn Store) {
    let writers = several(store, 20);
    for writer in &writers {
        let short = writer.id.short();
        for length in 4..=8 {
            let mut expected: Vec<_> = writers
                .iter()
                .map(|writer| writer.id)
                .filter(|id| id.is_named_by(&short[..length]))
                .collect();
            expected.reverse();
            let found = part(store, &short[..length]);
            assert!(found.contains(&writer.id), "{}", &short[..length]);
            assert_eq!(found, expected, "{}", &short[..length]);
        }
        // The middle of the short form does not match.
        assert!(!writer.id.is_named_by(&short[1..6]));
    }
}

/// Parts that no id has: from the middle, with misplaced hyphens, too long, without digits.
pub fn by_part_that_is_no_id(store: &dyn Store) {
    let writer = several(store, 1).remove(0);
    let text = writer.id.to_string();
    assert_eq!(part(store, &text[10..17]), []);
    assert_eq!(part(store, &text[..12].replace('-', "")), []);
    assert_eq!(part(store, &format!("{}-", &text[..4])), []);
    assert_eq!(part(store, &format!("-{}", &text[28..])), []);
    assert_eq!(part(store, &format!("{text}0")), []);
    assert_eq!(part(store, &format!("0{text}")), []);
    assert_eq!(part(store, &text[..9]), [writer.id]);
    assert_eq!(part(store, &text[23..]), [writer.id]);
    for words in ["title", "zzzz", "%", "____", "äöü", "''''", "0x12"] {
        assert_eq!(part(store, words), [], "{words}");
    }
}

/// The exact current title: given, derived or restored by undo.
pub fn by_title(store: &dyn Store) {
    let mut writers = several(store, 3);
    let title = |text: &str| find(store, &Lookup::Title(text.to_owned()));
    writers[0].append(store, vec![renamed("Plans")]);
    writers[1].append(store, vec![human("Plans for later")]);
    assert_eq!(title("Plans"), [writers[0].id]);
    assert_eq!(title("Plans for later"), [writers[1].id]);
    assert_eq!(title("plans"), []);
    assert_eq!(title("Plan%"), []);
    assert_eq!(title(""), []);
    writers[0].append(store, vec![renamed("Other plans")]);
    assert_eq!(title("Plans"), []);
    let at = writers[0].head().seq.0;
    writers[0].append(store, vec![undone(at)]);
    assert_eq!(title("Plans"), [writers[0].id]);
    let fork = writers[0].fork(store, 2);
    assert_eq!(title("Plans (fork)"), [fork.id]);
}

/// A title is literal text.
pub fn odd_titles(store: &dyn Store) {
    let clock = still_clock(1);
    for text in ODD {
        let mut writer = Writer::begin(store, &clock);
        writer.append(store, vec![renamed(text)]);
        let found = find(store, &Lookup::Title((*text).to_owned()));
        assert_eq!(found, [writer.id], "{text:?}");
    }
}

/// The id in the original program finds the imported session, but not its forks.
pub fn by_original_id(store: &dyn Store) {
    let clock = still_clock(1);
    let original = |text: &str| find(store, &Lookup::Original(text.to_owned()));
    let mut one = Writer::begin(store, &clock);
    let mut other = Writer::begin(store, &clock);
    one.append(store, vec![imported("session-456")]);
    other.say(store, "\"source\":{\"id\":\"session-456\",");
    one.say(store, "hello");
    let fork = one.fork(store, one.head().seq.0);
    assert_eq!(original("session-456"), [one.id]);
    assert_eq!(find(store, &Lookup::Id(fork.id)), [fork.id]);
    for none in ["session-45", "ession-456", "", "%", "session-4567"] {
        assert_eq!(original(none), [], "{none}");
    }
    for text in ODD {
        let mut writer = Writer::begin(store, &clock);
        writer.append(store, vec![imported(text)]);
        assert!(original(text).contains(&writer.id), "{text:?}");
    }
    // Two programs may have used the same id.
    other.append(store, vec![imported("session-456")]);
    let mut found = original("session-456");
    found.sort();
    assert_eq!(found, [one.id, other.id]);
}

/// Sessions in the trash are found, so that they can be restored.
pub fn trashed_too(store: &dyn Store) {
    let mut writers = several(store, 2);
    writers[0].append(store, vec![renamed("Same")]);
    writers[1].append(store, vec![renamed("Same")]);
    writers[0].append(store, vec![trashed()]);
    assert_eq!(find(store, &Lookup::Id(writers[0].id)), [writers[0].id]);
    assert_eq!(part(store, &writers[0].id.short()), [writers[0].id]);
    assert_eq!(
        find(store, &Lookup::Title("Same".into())),
        [writers[1].id, writers[0].id]
    );
}

/// Several matches are sorted newest first and limited.
pub fn several_newest_first(store: &dyn Store) {
    let mut writers = several(store, 6);
    for writer in &mut writers {
        writer.append(store, vec![renamed("Same")]);
    }
    writers[2].say(store, "I am the newest");
    let order = [2, 5, 4, 3, 1, 0].map(|n: usize| writers[n].id);
    for limit in 0..=7 {
        let rows = now(store.find(&Lookup::Title("Same".into()), limit)).unwrap();
        assert_eq!(ids(&rows), order[..limit.min(6)]);
        let beginning = Lookup::Part(writers[0].id.to_string()[..8].to_owned());
        let rows = now(store.find(&beginning, limit)).unwrap();
        assert_eq!(ids(&rows), order[..limit.min(6)]);
    }
}
