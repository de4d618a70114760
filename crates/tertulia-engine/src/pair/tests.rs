//! The state machine against a simulated world: whatever agents and users do, and wherever the
//! program is killed, the counters add up and there is always a next step.

use jiff::Timestamp;
use proptest::prelude::*;

use super::budget::Change;
use super::state::CORRECTIONS;
use super::words::{narrator, speaker};
use super::*;
use tertulia_core::entry::{
    Body, Budgeted, Compacted, Entry, Failed, Head, Message, NewEntry, Paired, Role, Speaker,
    Thought, ToolCall,
};
use tertulia_core::entry::{human, plain};
use tertulia_core::id::{EntryId, Seq};

/// A log that is written and folded.
#[derive(Clone, Default)]
struct Log {
    head: Head,
    pair: Pair,
}

impl Log {
    fn write(&mut self, body: Body) {
        let new = NewEntry {
            id: EntryId::new(uuid::Uuid::nil()),
            at: Timestamp::UNIX_EPOCH,
            body,
            redacted: std::collections::BTreeMap::new(),
            author: None,
        };
        let entry = Entry::chain(&self.head, vec![new]).unwrap().remove(0);
        self.head = entry.head();
        self.pair.apply(&entry);
        // The row of a session list holds the same state as a resumed session.
        let row = serde_json::to_string(&self.pair).unwrap();
        assert_eq!(serde_json::from_str::<Pair>(&row).unwrap(), self.pair);
    }

    fn say(&mut self, seat: PairRole, by: &Speaker, role: Role, words: &str) {
        self.write(Body::Message(message(seat, by, role, words)));
    }

    fn human(&mut self, words: &str) {
        self.say(PairRole::Instructor, &human(), Role::User, words);
    }

    fn reply(&mut self, words: &str) {
        let by = speaker(PairRole::Instructor);
        self.say(PairRole::Instructor, &by, Role::Assistant, words);
    }

    fn hand_over(&mut self) {
        let words = self.pair.last_instruction.clone();
        self.say(
            PairRole::Worker,
            &speaker(PairRole::Instructor),
            Role::User,
            &words,
        );
    }

    fn work(&mut self, words: &str) {
        self.say(
            PairRole::Worker,
            &speaker(PairRole::Worker),
            Role::Assistant,
            words,
        );
    }

    fn report(&mut self) {
        let by = speaker(PairRole::Worker);
        self.say(PairRole::Instructor, &by, Role::User, "Worker says: x");
    }

    fn fail(&mut self, kind: &str) {
        self.write(Body::Failed(Failed {
            agent: "a".into(),
            kind: kind.into(),
            message: "broken".into(),
            retry_at: None,
            withdrawn: false,
        }));
    }

    fn budget(&mut self, budget: Budget) {
        self.write(Body::Budgeted(Budgeted { budget }));
    }

    fn cut_off(&mut self, seat: PairRole) {
        let mut half = message(seat, &speaker(seat), Role::Assistant, "half");
        half.interrupted = true;
        self.write(Body::Message(half));
    }
}

fn message(seat: PairRole, by: &Speaker, role: Role, words: &str) -> Message {
    Message {
        thread: Some(seat.name().to_owned()),
        ..plain(by, role, words.to_owned())
    }
}

#[test]
fn rounds_count_replies_and_the_budget_counts_instructions() {
    let mut log = Log::default();
    assert_eq!(log.pair.todo(), Todo::Wait(Wait::Idle));
    log.budget(Budget::Calls(1));
    log.human("build it");
    assert_eq!(log.pair.todo(), Todo::Ask(PairRole::Instructor));
    log.reply("<thinking>hm</thinking>Tell worker (use m): go");
    assert_eq!(log.pair.todo(), Todo::HandOver);
    assert_eq!((log.pair.round, log.pair.remaining), (1, Budget::Calls(1)));
    let reply = log.pair.last_reply.clone().unwrap();
    assert_eq!(
        (reply.thinking.as_str(), reply.worker_model),
        ("hm", Some("m".into()))
    );
    log.hand_over();
    assert_eq!(log.pair.todo(), Todo::Ask(PairRole::Worker));
    assert_eq!(
        (log.pair.worker_calls, log.pair.remaining),
        (1, Budget::Calls(0))
    );
    log.work("did it");
    assert_eq!(log.pair.todo(), Todo::Report);
    log.report();
    log.reply("Tell worker: more");
    assert_eq!(log.pair.todo(), Todo::Wait(Wait::Budget));
    assert!(log.pair.is_waiting());
    // After a budget increase the waiting instruction continues.
    log.budget(log.pair.remaining.changed(Change::Add(5)));
    assert_eq!(log.pair.todo(), Todo::HandOver);
    log.hand_over();
    log.work("did that too");
    log.report();
    log.reply("fine.\n\nDONE");
    assert_eq!(log.pair.todo(), Todo::Wait(Wait::Done));
    assert_eq!((log.pair.round, log.pair.worker_calls), (3, 2));
    assert_eq!(log.pair.last_instruction, "more");
}

#[test]
fn corrections_end_and_begin_anew_with_the_human() {
    let mut log = Log::default();
    log.human("build it");
    for attempt in 1..=CORRECTIONS {
        log.reply("hm");
        assert_eq!(log.pair.todo(), Todo::Correct(attempt));
        log.say(PairRole::Instructor, &narrator(), Role::User, "again");
        assert_eq!(log.pair.todo(), Todo::Ask(PairRole::Instructor));
    }
    log.reply("hm");
    assert_eq!(log.pair.todo(), Todo::Wait(Wait::Corrections));
    assert_eq!(log.pair.round, u64::from(CORRECTIONS) + 1);
    log.human("please");
    log.reply("hm");
    assert_eq!(log.pair.todo(), Todo::Correct(1));
    log.say(PairRole::Instructor, &narrator(), Role::User, "again");
    log.reply("Tell worker: x");
    assert_eq!((log.pair.corrections, log.pair.todo()), (0, Todo::HandOver));
}

#[test]
fn what_was_cut_off_is_pending_and_the_human_has_the_floor() {
    let mut log = Log::default();
    log.budget(Budget::Calls(1));
    log.human("build it");
    log.cut_off(PairRole::Instructor);
    assert!(log.pair.is_waiting());
    assert_eq!((log.pair.next, log.pair.round), (Next::Instructor, 0));
    log.say(
        PairRole::Instructor,
        &narrator(),
        Role::User,
        "again, whole",
    );
    assert!(!log.pair.is_waiting());
    log.fail("unavailable");
    assert!(log.pair.is_waiting());
    log.human("and now?");
    log.reply("Tell worker: x");
    log.hand_over();
    let mut calling = message(
        PairRole::Worker,
        &speaker(PairRole::Worker),
        Role::Assistant,
        "",
    );
    calling.tool_calls.push(ToolCall {
        id: "1".into(),
        name: "shell".into(),
        arguments: serde_json::json!({}),
    });
    log.write(Body::Message(calling));
    assert_eq!(
        (log.pair.next, log.pair.is_waiting()),
        (Next::Worker, false)
    );
    log.cut_off(PairRole::Worker);
    log.fail("cancelled");
    assert_eq!((log.pair.next, log.pair.is_waiting()), (Next::Worker, true));
    // Repeating the same instruction costs nothing.
    log.say(PairRole::Worker, &narrator(), Role::User, "look and finish");
    assert_eq!(
        (log.pair.todo(), log.pair.worker_calls),
        (Todo::Ask(PairRole::Worker), 1)
    );
    log.fail("timeout");
    assert_eq!(log.pair.todo(), Todo::Report);
    assert_eq!(log.pair.report_at, Some(log.head.seq));
}

#[test]
fn a_row_stays_small_and_summaries_are_known_by_thread() {
    let mut log = Log::default();
    log.write(Body::Paired(Paired {
        system: "long".repeat(10_000),
        work_dir: "/w".into(),
        round: Some(7),
        ..Paired::default()
    }));
    log.human(&"x".repeat(100_000));
    log.reply(&format!("Tell worker: {}", "é".repeat(100_000)));
    log.write(Body::Thought(Thought {
        thread: "instructor".into(),
        text: "t".repeat(100_000),
    }));
    assert!(serde_json::to_string(&log.pair).unwrap().len() < 20_000);
    assert_eq!(log.pair.round, 8);
    for (thread, upto) in [("worker", 2), ("instructor", 1), ("worker", 3)] {
        log.write(Body::Compacted(Compacted {
            upto: Seq(upto),
            summary: "s".into(),
            agent: "a".into(),
            model: None,
            usage: None,
            thread: Some(thread.into()),
        }));
    }
    let upto = |seat| log.pair.summary_of(seat).map(|summed| summed.upto);
    assert_eq!(upto(PairRole::Worker), Some(Seq(3)));
    assert_eq!(upto(PairRole::Instructor), Some(Seq(1)));
}

/// What happens when an agent is prompted.
#[derive(Clone, Copy, Debug)]
enum Chance {
    Good,
    Useless,
    Done,
    Fails,
    CutOff,
    Killed,
}

fn any_chance() -> impl Strategy<Value = Chance> {
    prop_oneof![
        4 => Just(Chance::Good),
        1 => Just(Chance::Useless),
        1 => Just(Chance::Done),
        1 => Just(Chance::Fails),
        1 => Just(Chance::CutOff),
        1 => Just(Chance::Killed),
    ]
}

/// Plays one step of a run as the policy would.
fn play(log: &mut Log, chance: Chance) {
    match log.pair.todo() {
        Todo::Wait(Wait::Budget) => log.budget(Budget::Calls(2)),
        Todo::Wait(_) => log.human("go on"),
        Todo::Correct(_) => log.say(PairRole::Instructor, &narrator(), Role::User, "again"),
        Todo::HandOver => log.hand_over(),
        Todo::Report => log.report(),
        Todo::Ask(seat) => match chance {
            Chance::Good if seat == PairRole::Worker => log.work("did it"),
            Chance::Useless | Chance::Done if seat == PairRole::Worker => log.work("DONE"),
            Chance::Good => log.reply("Tell worker: go"),
            Chance::Useless => log.reply("hm"),
            Chance::Done => log.reply("DONE"),
            Chance::Fails => log.fail("timeout"),
            Chance::CutOff => log.cut_off(seat),
            Chance::Killed => {}
        },
    }
}

proptest! {
    #[test]
    fn it_never_wedges_and_the_counters_add_up(chances in prop::collection::vec(any_chance(), 1..120), start in 0..4u64) {
        let mut log = Log::default();
        log.budget(Budget::Calls(start));
        let (mut given, mut spent, mut replies) = (start, 0, 0);
        for chance in chances {
            let before = log.clone();
            play(&mut log, chance);
            if before.pair.todo() == Todo::Wait(Wait::Budget) {
                given += 2;
            }
            let asked = matches!(before.pair.todo(), Todo::Ask(_));
            let moved = log.pair.todo() != before.pair.todo() || log.pair.round != before.pair.round;
            let unmoved = asked && matches!(chance, Chance::Fails | Chance::CutOff | Chance::Killed);
            prop_assert!(moved || unmoved, "{:?} after {:?}", log.pair, chance);
            spent += u64::from(before.pair.todo() == Todo::HandOver);
            replies += log.pair.round - before.pair.round;
            prop_assert_eq!(log.pair.worker_calls, spent);
            prop_assert_eq!(log.pair.round, replies);
            prop_assert_eq!(log.pair.remaining, Budget::Calls(given - spent));
            prop_assert!(log.pair.corrections <= CORRECTIONS);
        }
    }
}
