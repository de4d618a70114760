//! Tests of the comparison between an imported session and an existing log.

use uuid::Uuid;

use super::*;
use crate::entry::{Speaker, Touched};

fn entry_id(n: usize) -> EntryId {
    EntryId::new(Uuid::from_u128(n as u128 + 1))
}

/// A team session with these messages, one per second.
fn talk(words: &[&str], task: Option<&str>) -> Foreign {
    let said = words.iter().enumerate().map(|(place, words)| Said {
        id: entry_id(place),
        at: Timestamp::from_second(10 + place as i64).unwrap(),
        message: Message {
            speaker: Speaker::plain("ana", SpeakerKind::Human),
            role: Role::User,
            content: (*words).to_owned(),
            reasoning: None,
            thread: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            usage: None,
            usage_id: None,
            requests: Vec::new(),
            model: None,
            addressees: Vec::new(),
            asked: None,
            interrupted: false,
            outcome: None,
            attachments: Vec::new(),
            client_id: None,
            metadata: None,
        },
        compacts: None,
        thought: None,
    });
    Foreign {
        id: SessionId::new(Uuid::from_u128(7)),
        kind: Kind::Team,
        title: None,
        team: Some("review".into()),
        created_at: Timestamp::from_second(1).unwrap(),
        said: said.collect(),
        task: task.map(str::to_owned),
        closing: Vec::new(),
        source: Imported::new("agent-chatter", "session-1"),
        changes: Changes::default(),
        identity: Identity::Words,
        fork: None,
    }
}

/// The log of a session: first entry, messages, task.
fn log(talk: &Foreign) -> Log {
    let mut new = vec![talk.opening(talk.id)];
    new.extend(
        talk.said
            .iter()
            .map(|said| new_entry(said.id, said.at, Body::Message(said.message.clone()))),
    );
    new.extend(talk.task.clone().map(|task| talk.tasking(talk.id, task)));
    Log {
        entries: Entry::chain(&Head::START, new).unwrap(),
        damage: Vec::new(),
    }
}

fn goes_on(shared: usize, task: Option<&str>) -> Meeting {
    let task = task.map(str::to_owned);
    Meeting::GoesOn { shared, task }
}

#[test]
fn a_log_knows_a_talk_and_all_its_earlier_states() {
    let whole = log(&talk(&["a", "b", "c"], Some("t")));
    for words in [&["a", "b", "c"][..], &["a", "b"], &["a"], &[]] {
        for task in [Some("t"), None] {
            assert_eq!(talk(words, task).meet(&whole), Meeting::Known, "{words:?}");
        }
    }
    // An earlier state must not restore its earlier task.
    assert_eq!(talk(&["a"], Some("old")).meet(&whole), Meeting::Known);
}

#[test]
fn a_later_state_goes_on_where_the_log_ends() {
    let earlier = log(&talk(&["a", "b"], Some("t")));
    let meet = |words: &[&str], task| talk(words, task).meet(&earlier);
    assert_eq!(meet(&["a", "b", "c"], Some("t")), goes_on(2, None));
    assert_eq!(meet(&["a", "b", "c"], None), goes_on(2, None));
    assert_eq!(meet(&["a", "b", "c"], Some("u")), goes_on(2, Some("u")));
    assert_eq!(meet(&["a", "b"], Some("u")), goes_on(2, Some("u")));
    let silent = log(&talk(&[], None));
    assert_eq!(talk(&["a"], None).meet(&silent), goes_on(0, None));
}

#[test]
fn tools_and_tidying_between_the_words_do_not_part_them() {
    let mut with_tools = talk(&["a", "output", "b"], None);
    with_tools.said[1].message.role = Role::Tool;
    let mut log = log(&with_tools);
    let trashed = Body::Trashed(Touched {
        operation: entry_id(50),
    });
    let head = log.entries.last().unwrap().head();
    let at = Timestamp::from_second(99).unwrap();
    let new = vec![new_entry(entry_id(51), at, trashed)];
    log.entries.extend(Entry::chain(&head, new).unwrap());

    let mut told = talk(&["a", "tool", "b", "c"], None);
    told.said.remove(1);
    assert_eq!(told.meet(&log), goes_on(2, None));
    told.said.pop();
    assert_eq!(told.meet(&log), Meeting::Known);
}

#[test]
fn other_words_another_speaker_and_another_time_part_them() {
    let ours = talk(&["a", "b", "c"], Some("t"));
    let log = log(&ours);
    let second = log.entries[2].head();
    let check = |change: fn(&mut Said)| {
        let mut other = ours.clone();
        change(&mut other.said[2]);
        let parted = Meeting::Parts {
            shared: 2,
            at: Some(second),
            // The task was set after the divergence.
            task: Some("t".into()),
        };
        assert_eq!(other.meet(&log), parted);
    };
    check(|said| said.message.content = "C".into());
    check(|said| said.message.speaker = Speaker::plain("ben", SpeakerKind::Human));
    check(|said| said.at = Timestamp::from_second(77).unwrap());
}

#[test]
fn a_session_of_another_team_shares_nothing() {
    let log = log(&talk(&["a", "b"], None));
    let mut other = talk(&["a", "b"], None);
    other.team = Some("release".into());
    let nothing = Meeting::Parts {
        shared: 0,
        at: None,
        task: None,
    };
    assert_eq!(other.meet(&log), nothing);
    other.said.clear();
    assert_eq!(other.meet(&log), nothing);
    let mut other = talk(&["x"], None);
    assert_eq!(other.meet(&log), nothing);
    other.kind = Kind::Chat;
    assert_eq!(other.meet(&log), nothing);
}

#[test]
fn words_are_the_same_before_and_after_secrets_are_replaced() {
    let secret = "the key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ";
    let clean = redact(secret).text.into_owned();
    assert_ne!(clean, secret);
    for (kept, told) in [(clean.as_str(), secret), (secret, clean.as_str())] {
        let log = log(&talk(&["a", kept], Some(kept)));
        assert_eq!(talk(&["a", told], Some(told)).meet(&log), Meeting::Known);
    }
}

#[test]
fn what_parts_is_named_after_where_it_does() {
    let one = talk(&["a", "b", "c"], None);
    let longer = talk(&["a", "b", "c", "d"], None);
    let other = talk(&["a", "B", "c"], None);
    assert_eq!(one.apart(1), longer.apart(1));
    assert_ne!(one.apart(1), other.apart(1));
    assert_ne!(one.apart(1), one.apart(2));
    assert_ne!(one.apart(1), one.id);
    let mut of_another = one.clone();
    of_another.said[1].message.speaker = Speaker::plain("ben", SpeakerKind::Human);
    assert_ne!(
        one.apart(1),
        of_another.apart(1),
        "the same words of another"
    );
    let mut of_others = one.clone();
    of_others.team = Some("release".into());
    assert_ne!(one.apart(0), of_others.apart(0));
    assert_ne!(one.apart(9), of_others.apart(9));
}
