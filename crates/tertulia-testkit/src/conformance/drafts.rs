//! Drafts: partial answers.

use tertulia_store::Store;

use crate::ask::{assert_log, draft, now};
use crate::clock::still_clock;
use crate::conformance::texts::ODD;
use crate::logs::{Writer, ai, human};

/// A later draft replaces an earlier one.
pub fn kept_and_replaced(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    writer.say(store, "a question");
    assert_eq!(draft(store, writer.id), None);
    for content in ["Once", "Once upon", "Once upon a time"] {
        let kept = writer.draft(content);
        now(store.keep_draft(writer.id, &kept)).unwrap();
        assert_eq!(draft(store, writer.id), Some(kept));
    }
    // A draft is not an entry.
    assert_log(store, &writer);
    assert_eq!(crate::ask::found(store, "upon"), []);
}

/// The finished answer replaces its draft.
pub fn replaced_by_the_finished_answer(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    writer.say(store, "a question");
    now(store.keep_draft(writer.id, &writer.draft("Once"))).unwrap();
    writer.append(store, vec![ai("claude", "Once upon a time.")]);
    assert_eq!(draft(store, writer.id), None);
    assert_log(store, &writer);
    let next = writer.draft("The next");
    now(store.keep_draft(writer.id, &next)).unwrap();
    assert_eq!(draft(store, writer.id), Some(next));
}

/// A draft that answers an older head is ignored.
pub fn ignored_when_the_log_went_on(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    writer.say(store, "a question");
    let slow = writer.draft("a slow answer");
    writer.say(store, "never mind");
    now(store.keep_draft(writer.id, &slow)).unwrap();
    assert_eq!(draft(store, writer.id), None);
    let quick = writer.draft("a quick answer");
    now(store.keep_draft(writer.id, &quick)).unwrap();
    assert_eq!(draft(store, writer.id), Some(quick));
}

/// A draft that answers a head that was never written is ignored.
pub fn of_a_later_head_are_ignored(store: &dyn Store) {
    let writer = Writer::begin(store, &still_clock(1));
    let mut ahead = writer.clone();
    ahead.log.extend(ahead.chain(vec![human("never sent")]));
    now(store.keep_draft(writer.id, &ahead.draft("x"))).unwrap();
    assert_eq!(draft(store, writer.id), None);
}

/// Each session has its own draft; a fork starts without one.
pub fn one_per_session(store: &dyn Store) {
    let clock = still_clock(1);
    let first = Writer::begin(store, &clock);
    let second = Writer::begin(store, &clock);
    let (one, two) = (first.draft("one"), second.draft("two"));
    now(store.keep_draft(first.id, &one)).unwrap();
    now(store.keep_draft(second.id, &two)).unwrap();
    let fork = first.fork(store, 1);
    assert_eq!(draft(store, first.id), Some(one));
    assert_eq!(draft(store, second.id), Some(two.clone()));
    assert_eq!(draft(store, fork.id), None);
    now(store.purge(first.id)).unwrap();
    assert_eq!(draft(store, second.id), Some(two));
}

/// A rejected append does not remove the draft.
pub fn left_alone_by_a_conflict(store: &dyn Store) {
    let mut writer = Writer::begin(store, &still_clock(1));
    let mut late = writer.clone();
    writer.say(store, "a question");
    let kept = writer.draft("Once");
    now(store.keep_draft(writer.id, &kept)).unwrap();
    assert!(late.try_append(store, vec![human("late")]).is_err());
    assert_eq!(draft(store, writer.id), Some(kept));
}

/// A draft keeps every byte.
pub fn odd_texts(store: &dyn Store) {
    let writer = Writer::begin(store, &still_clock(1));
    for text in ODD {
        let mut kept = writer.draft(text);
        kept.thread = Some((*text).to_owned());
        kept.speaker.display_name = (*text).to_owned();
        now(store.keep_draft(writer.id, &kept)).unwrap();
        assert_eq!(draft(store, writer.id), Some(kept));
    }
}
