use super::super::names::Nature;
use super::super::queue::{LONGEST, Skip};
use super::*;
use proptest::prelude::*;
use uuid::Uuid;

fn message(number: u32) -> EntryId {
    EntryId::new(Uuid::from_u128(u128::from(number)))
}

fn member(id: &str, nature: Nature, order: usize) -> Member {
    Member {
        id: id.into(),
        name: id.into(),
        display_name: format!("The {id}"),
        nature,
        order,
        usual: Vec::new(),
    }
}

/// Lower-case names are agents, upper-case names humans.
fn members(names: &str) -> Vec<Member> {
    let nature = |name: &str| match name.starts_with(char::is_uppercase) {
        true => Nature::Human,
        false => Nature::Ai,
    };
    let names = names.split(' ').enumerate();
    names
        .map(|(order, name)| member(name, nature(name), order))
        .collect()
}

/// A router with helpers for tests: messages get rising ids.
struct Talk {
    router: Router,
    messages: u32,
}

fn talk(names: &str, max_rounds: u32) -> Talk {
    Talk {
        router: Router::new(members(names), max_rounds).unwrap(),
        messages: 0,
    }
}

impl Talk {
    fn says(&mut self, human: &str, text: &str) -> Vec<Output> {
        self.said(Voice::Human(human.into()), text)
    }

    /// The prompted agent says something.
    fn answers(&mut self, text: &str) -> Vec<Output> {
        let turn = self.turn();
        self.said(Voice::Ai(turn), text)
    }

    fn said(&mut self, by: Voice, text: &str) -> Vec<Output> {
        self.messages += 1;
        self.router.step(Event::Said {
            by,
            id: message(self.messages),
            text: text.into(),
        })
    }

    fn ends(&mut self, how: Ending) -> Vec<Output> {
        let turn = self.turn();
        self.router.step(Event::Ended { turn, how })
    }

    /// The prompted agent says something and ends its turn.
    fn turn_of(&mut self, text: &str) -> Vec<Output> {
        let mut outputs = self.answers(text);
        outputs.extend(self.ends(Ending::Finished));
        outputs
    }

    fn turn(&self) -> Turn {
        self.router.asked().expect("an agent is asked").0
    }

    fn pending(&self) -> Vec<&str> {
        let items = self.router.queue().items().iter();
        items.map(|item| item.request.target.as_str()).collect()
    }
}

/// Formats whose turn it is after these outputs: `ask x`, `wait X`, `pause X`; empty if unchanged.
fn floor(outputs: &[Output]) -> String {
    let changes = outputs
        .iter()
        .filter(|output| matches!(output, Output::Next(_)));
    assert!(
        changes.count() <= 1,
        "the floor is given away once: {outputs:?}"
    );
    match outputs.last() {
        Some(Output::Next(Next::Ask { item, .. })) => format!("ask {}", item.request.target),
        Some(Output::Next(Next::WaitFor { human, .. })) => format!("wait {human}"),
        Some(Output::Next(Next::Paused { human, rounds })) => format!("pause {human} {rounds}"),
        _ => String::new(),
    }
}

fn why(outputs: &[Output]) -> Option<Why> {
    match outputs.last() {
        Some(Output::Next(Next::WaitFor { why, .. })) => Some(*why),
        _ => None,
    }
}

fn unresolved(outputs: &[Output]) -> Option<(Vec<&str>, Missed)> {
    outputs.iter().find_map(|output| match output {
        Output::Unresolved(missed) => Some((
            missed.names.iter().map(String::as_str).collect(),
            missed.what,
        )),
        _ => None,
    })
}

fn updates(outputs: &[Output]) -> Vec<&QueueUpdate> {
    outputs
        .iter()
        .filter_map(|output| match output {
            Output::Queue(update) => Some(update),
            _ => None,
        })
        .collect()
}

#[test]
fn a_team_needs_a_human_and_ids() {
    let error = |names| Router::new(members(names), 0).unwrap_err();
    assert_eq!(error("a b"), TeamError::NoHuman);
    assert_eq!(error("H a b a"), TeamError::SameId("a".into()));
}

#[test]
fn the_addressed_speak_one_after_the_other() {
    let mut talk = talk("H a b", 0);
    assert_eq!(floor(&talk.says("H", "go [NEXT: a, The-B]")), "ask a");
    assert_eq!(floor(&talk.answers("well")), "");
    assert_eq!(floor(&talk.ends(Ending::Finished)), "ask b");
    let outputs = talk.turn_of("done");
    assert_eq!(floor(&outputs), "wait H");
    assert_eq!(why(&outputs), Some(Why::QueueEmpty));
}

#[test]
fn nobody_addressed_is_the_first_human() {
    let mut talk = talk("a H G", 0);
    assert_eq!(floor(&talk.says("G", "hello")), "wait H");
    let mut team = members("a H G");
    team[2].order = 0;
    team[0].order = 7;
    let mut reordered = Router::new(team, 0).unwrap();
    let outputs = reordered.step(Event::CancelledAll);
    assert_eq!(floor(&outputs), "wait G");
}

/// Replies are to messages of the log, so that a prompted agent can get the message to reply to.
#[test]
fn who_is_asked_replies_to_a_message_of_the_log() {
    let mut talk = talk("H a b", 0);
    let outputs = talk.says("H", "[NEXT: a!P3]");
    let Some(Output::Next(Next::Ask { item, .. })) = outputs.last() else {
        panic!("{outputs:?}")
    };
    assert_eq!(item.request.parent, message(1));
    assert_eq!(item.request.intent, markers::Intent::P3);
    let outputs = talk.turn_of("[NEXT: b]");
    let Some(Output::Next(Next::Ask { item, .. })) = outputs.last() else {
        panic!("{outputs:?}")
    };
    assert_eq!(
        (item.request.parent, item.request.trigger),
        (message(2), message(2))
    );
}

#[test]
fn replies_to_the_last_message_come_before_those_who_wait() {
    let mut talk = talk("H a b c", 0);
    talk.says("H", "[NEXT: a, b]");
    // An answer of two messages: the first addresses a member.
    talk.answers("[NEXT: c]");
    assert_eq!(floor(&talk.turn_of("and that is all")), "ask c");
    assert_eq!(floor(&talk.turn_of("")), "ask b");
}

/// Regression: a member whose program crashed blocked all others.
#[test]
fn a_failed_member_does_not_stop_the_talk() {
    let mut talk = talk("H a b", 0);
    talk.says("H", "[NEXT: a, b]");
    assert_eq!(floor(&talk.ends(Ending::Failed)), "ask b");
    let outputs = talk.ends(Ending::Failed);
    assert_eq!(
        (floor(&outputs).as_str(), why(&outputs)),
        ("wait H", Some(Why::Failed))
    );
    assert_eq!(floor(&talk.says("H", "[NEXT: a]")), "ask a");
    let outputs = talk.ends(Ending::Cancelled);
    assert_eq!(
        (floor(&outputs).as_str(), why(&outputs)),
        ("wait H", Some(Why::Stopped))
    );
}

/// Regression: stopping ended one member's turn, and the next one was prompted.
#[test]
fn stopping_stops_the_queue_and_names_the_unheard() {
    let mut talk = talk("a H b G c", 0);
    talk.says("G", "[NEXT: a, b, c, b!P3]");
    let turn = talk.turn();
    let outputs = talk.router.step(Event::CancelledAll);
    assert_eq!(
        outputs[0],
        Output::Stopped {
            cut_off: Some("a".into()),
            unheard: vec!["b".into(), "c".into()],
        }
    );
    assert_eq!(
        (floor(&outputs).as_str(), why(&outputs)),
        ("wait H", Some(Why::Stopped))
    );
    assert_eq!(talk.pending(), Vec::<&str>::new());
    // Later messages of the stopped member have no effect, and its end is reported once.
    assert_eq!(
        talk.said(Voice::Ai(turn), "[NEXT: b] [DROP: ALL]"),
        [Output::NotRouted(message(2))]
    );
    assert_eq!(
        talk.router.step(Event::Ended {
            turn,
            how: Ending::Cancelled
        }),
        []
    );
    assert_eq!(talk.router.waiting(), Some("H"));
    // The same if the member has been prompted again.
    assert_eq!(floor(&talk.says("H", "[NEXT: a]")), "ask a");
    let late = talk.said(Voice::Ai(turn), "[NEXT: b]");
    assert!(matches!(late[..], [Output::NotRouted(_)]), "{late:?}");
    assert_eq!(talk.pending(), Vec::<&str>::new());
    assert_eq!(
        talk.router.step(Event::Ended {
            turn,
            how: Ending::Cancelled
        }),
        []
    );
    assert!(talk.router.asked().is_some());
}

#[test]
fn a_human_in_the_queue_is_waited_for_and_the_rest_kept() {
    let mut talk = talk("H G a b", 0);
    talk.says("H", "[NEXT: a, G, b]");
    let outputs = talk.turn_of("");
    assert_eq!(floor(&outputs), "wait G");
    assert_eq!(why(&outputs), Some(Why::Addressed(message(1))));
    assert_eq!(talk.pending(), ["b"]);
    assert_eq!(talk.router.sender(None, "yes").unwrap().id, "G");
    assert_eq!(floor(&talk.says("G", "yes")), "ask b");
}

#[test]
fn some_names_that_are_nobodys_are_told_and_the_others_speak() {
    let mut talk = talk("H a", 0);
    let outputs = talk.says("H", "[NEXT: zed, a, yon!P1]");
    assert_eq!(
        outputs[0],
        Output::Unresolved(Unresolved {
            names: vec!["zed".into(), "yon".into()],
            available: vec!["H".into(), "a".into()],
            what: Missed::Some,
        })
    );
    assert_eq!(floor(&outputs), "ask a");
}

#[test]
fn only_names_that_are_nobodys_go_back_to_a_human() {
    let mut talk = talk("H G a b", 0);
    talk.says("H", "[NEXT: a, b]");
    let outputs = talk.turn_of("[NEXT: zed]");
    assert_eq!(unresolved(&outputs), Some((vec!["zed"], Missed::All)));
    assert_eq!(
        (floor(&outputs).as_str(), why(&outputs)),
        ("wait H", Some(Why::Unresolved))
    );
    assert_eq!(talk.pending(), ["b"]);
    let outputs = talk.says("G", "[NEXT: yon]");
    assert_eq!(
        (floor(&outputs).as_str(), why(&outputs)),
        ("wait G", Some(Why::Unresolved))
    );
    assert_eq!(floor(&talk.says("G", "go on")), "ask b");
}

#[test]
fn an_answer_of_several_messages_reaches_whom_any_of_them_reaches() {
    let mut talk = talk("H a b", 0);
    talk.says("H", "[NEXT: a]");
    talk.answers("[NEXT: b]");
    assert_eq!(floor(&talk.turn_of("[NEXT: zed]")), "ask b");
}

#[test]
fn rounds_end_in_a_pause_and_a_human_goes_on() {
    let mut talk = talk("H a b", 2);
    talk.says("H", "[NEXT: a]");
    assert_eq!(floor(&talk.turn_of("[NEXT: a]")), "ask a");
    assert_eq!(floor(&talk.turn_of("[NEXT: b, a]")), "pause H 2");
    assert_eq!(talk.pending(), ["b", "a"]);
    assert_eq!(floor(&talk.says("H", "go on")), "ask b");
    assert_eq!(floor(&talk.turn_of("")), "ask a");
    // No agent would be prompted: that is no pause.
    assert_eq!(floor(&talk.turn_of("[NEXT: H]")), "wait H");
}

#[test]
fn without_a_limit_there_is_no_pause() {
    let mut talk = talk("H a b", 0);
    talk.says("H", "[NEXT: a]");
    for _ in 0..500 {
        assert_eq!(floor(&talk.turn_of("[NEXT: b]")), "ask b");
        assert_eq!(floor(&talk.turn_of("[NEXT: a]")), "ask a");
    }
}

#[test]
fn a_human_may_speak_while_an_agent_answers() {
    let mut talk = talk("H a b c", 1);
    talk.says("H", "[NEXT: a, b]");
    assert_eq!(floor(&talk.says("H", "and [NEXT: c!P1]")), "");
    assert_eq!(talk.pending(), ["b", "c"]);
    assert_eq!(floor(&talk.turn_of("")), "ask c");
    talk.says("H", "[DROP: The B, zed]");
    assert_eq!(floor(&talk.turn_of("")), "wait H");
}

#[test]
fn drops_come_before_addressees() {
    let mut talk = talk("H a b c", 0);
    talk.says("H", "[NEXT: a, b, c]");
    let outputs = talk.turn_of("[NEXT: b] [DROP: all]");
    let [update, _] = updates(&outputs)[..] else {
        panic!("{outputs:?}")
    };
    assert!(matches!(
        update.changes[..],
        [Change::Dropped(_), Change::Dropped(_), Change::Queued(_)]
    ));
    assert_eq!(floor(&outputs), "ask b");
    let outputs = talk.answers("[DROP: zed]");
    assert_eq!(unresolved(&outputs), Some((vec!["zed"], Missed::Drop)));
    assert_eq!(floor(&talk.ends(Ending::Finished)), "wait H");
}

#[test]
fn the_queue_is_told_with_who_is_asked() {
    let mut talk = talk("H a b", 0);
    let outputs = talk.says("H", "[NEXT: a, b, b]");
    let [put, taken] = updates(&outputs)[..] else {
        panic!("{outputs:?}")
    };
    assert!(matches!(
        put.changes[2],
        Change::Skipped(_, Skip::Duplicate)
    ));
    assert_eq!(
        (put.stats.pending, put.stats.local, &put.asked),
        (2, 2, &None)
    );
    assert_eq!(taken.stats.pending, 1);
    assert_eq!(taken.asked.as_ref().unwrap().request.target, "a");
    talk.turn_of("");
    let outputs = talk.turn_of("");
    let last = updates(&outputs).pop().unwrap();
    assert_eq!((last.pending.len(), &last.asked), (0, &None));
}

#[test]
fn a_task_is_told_short_enough() {
    let mut talk = talk("H a", 0);
    let outputs = talk.says("H", "[TEAM_TASK: old] [TEAM_TASK: new]");
    let task = |text: &str, left_out| {
        Output::TeamTask(markers::TeamTask {
            text: text.into(),
            left_out,
        })
    };
    assert_eq!(outputs[0], task("new", 0));
    let outputs = talk.says("H", &format!("[TEAM_TASK: {}]", "x".repeat(6000)));
    assert_eq!(outputs[0], task(&"x".repeat(5120), 880));
}

#[test]
fn the_sender_is_found() {
    let mut two = talk("H G a", 0);
    let humans = vec!["H".to_owned(), "G".to_owned()];
    let sender = |talk: &Talk, explicit, text: &str| {
        let sender = talk.router.sender(explicit, text);
        sender.map(|member| member.id.clone())
    };
    let ambiguous = Err(SenderError::Ambiguous {
        humans: humans.clone(),
    });
    assert_eq!(sender(&two, None, "hi"), ambiguous);
    assert_eq!(sender(&two, Some("G"), "hi [FROM: H]"), Ok("G".into()));
    assert_eq!(sender(&two, None, "hi [FROM: the g]"), Ok("G".into()));
    assert_eq!(sender(&two, None, "hi `[FROM: G]`"), ambiguous);
    let error = sender(&two, None, "[FROM: zed]").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no person is called 'zed'; the people are H, G"
    );
    let error = sender(&two, None, "[FROM: a]").unwrap_err();
    assert!(matches!(error, SenderError::NotHuman { .. }), "{error}");
    assert!(sender(&two, Some("a"), "hi").is_err());
    // The human who has the turn is the sender, unless another is named.
    two.says("H", "[NEXT: G]");
    assert_eq!(sender(&two, None, "hi"), Ok("G".into()));
    assert_eq!(sender(&two, None, "[FROM: H] hi"), Ok("H".into()));
    two.says("G", "[NEXT: a]");
    assert_eq!(sender(&two, None, "hi"), ambiguous);
    let one = talk("a H", 0);
    assert_eq!(sender(&one, None, "hi"), Ok("H".into()));
}

#[test]
fn strangers_and_agents_do_not_speak_as_humans() {
    let mut talk = talk("H a b", 0);
    assert_eq!(
        talk.says("zed", "[NEXT: a]"),
        [Output::NotRouted(message(1))]
    );
    assert_eq!(talk.says("a", "[NEXT: b]"), [Output::NotRouted(message(2))]);
    assert_eq!(talk.pending(), Vec::<&str>::new());
}

#[test]
fn a_restored_talk_waits_for_the_first_human() {
    let mut talk = talk("H G a b", 1);
    talk.says("G", "[NEXT: a, b]");
    let outputs = talk.router.step(Event::Restored {
        last: Some(message(9)),
        task: Some("the task".into()),
    });
    assert!(matches!(&outputs[0], Output::TeamTask(task) if task.text == "the task"));
    assert_eq!(
        (floor(&outputs).as_str(), why(&outputs)),
        ("wait H", Some(Why::Restored))
    );
    assert_eq!(talk.pending(), Vec::<&str>::new());
    assert_eq!(floor(&talk.says("H", "[NEXT: b]")), "ask b");
}

#[derive(Clone, Debug)]
enum Move {
    Human(usize, String),
    Ai(String),
    Late(String),
    End(Ending),
    LateEnd,
    CancelAll,
    Restore,
}

fn moves() -> impl Strategy<Value = Move> {
    let name = prop_oneof!["[a-f]", "[H-J]", Just("zed".to_owned())];
    let intent = prop_oneof![Just(""), Just("!P1"), Just(" !p3"), Just("!P9")];
    let named = (name, intent).prop_map(|(name, intent)| format!("{name}{intent}"));
    let names = prop::collection::vec(named, 0..14).prop_map(|names| names.join(", "));
    let text = ("[NDF\\PC]{0,5}", names, 0usize..8).prop_map(|(words, names, form)| match form {
        0 => words,
        1 => format!("{words}[DROP: {names}]"),
        2 => format!("[DROP: ALL] {words}"),
        3 => format!("{words}\n```\n[NEXT: {names}]\n```\n"),
        4 => format!("[TEAM_TASK: {words}] [NEXT: {names}]"),
        _ => format!("{words} [NEXT: {names}]"),
    });
    prop_oneof![
        3 => (0usize..3, text.clone()).prop_map(|(who, text)| Move::Human(who, text)),
        4 => text.clone().prop_map(Move::Ai),
        1 => text.prop_map(Move::Late),
        3 => Just(Move::End(Ending::Finished)),
        1 => Just(Move::End(Ending::Failed)),
        1 => Just(Move::End(Ending::Cancelled)),
        1 => Just(Move::LateEnd),
        1 => Just(Move::CancelAll),
        1 => Just(Move::Restore),
    ]
}

fn play(talk: &mut Talk, play: Move, humans: &[&str]) -> Vec<Output> {
    let asked = talk.router.asked().map(|(turn, _)| turn);
    let late = Turn(asked.map_or(0, |turn| turn.0 - 1));
    match (play, asked) {
        (Move::Human(who, text), _) => talk.says(humans[who % humans.len()], &text),
        (Move::Ai(text), Some(turn)) => talk.said(Voice::Ai(turn), &text),
        (Move::Late(text) | Move::Ai(text), _) => talk.said(Voice::Ai(late), &text),
        (Move::End(how), Some(turn)) => talk.router.step(Event::Ended { turn, how }),
        (Move::LateEnd | Move::End(_), _) => talk.router.step(Event::Ended {
            turn: late,
            how: Ending::Finished,
        }),
        (Move::CancelAll, _) => talk.router.step(Event::CancelledAll),
        (Move::Restore, _) => talk.router.step(Event::Restored {
            last: None,
            task: None,
        }),
    }
}

proptest! {
    /// After any events, an agent is prompted or a human has the turn, as the last output says; the
    /// limits of the queue and of rounds hold, and ending turn after turn always leads back to a
    /// human.
    #[test]
    fn never_wedged(
        ais in 0usize..7,
        humans in 1usize..4,
        max_rounds in 0u32..4,
        moves in prop::collection::vec(moves(), 0..60),
    ) {
        let humans = &["H", "I", "J"][..humans];
        let names = [humans, &["a", "b", "c", "d", "e", "f"][..ais.min(6)]].concat();
        let mut talk = talk(&names.join(" "), max_rounds);
        talk.says("H", "");
        let mut rounds = 0;
        for one in moves {
            let by_human = matches!(one, Move::Human(..) | Move::Restore);
            let was = (talk.router.asked().map(|(turn, _)| turn), talk.router.waiting().map(str::to_owned));
            let outputs = play(&mut talk, one, humans);
            let now = (talk.router.asked().map(|(turn, _)| turn), talk.router.waiting().map(str::to_owned));
            prop_assert!(now.0.is_some() != now.1.is_some());
            let said = floor(&outputs);
            prop_assert!(!said.is_empty() || was == now, "the floor changed hands in silence");
            rounds = if by_human { 0 } else { rounds };
            if said.starts_with("ask") {
                rounds += 1;
                prop_assert!(max_rounds == 0 || rounds <= max_rounds);
            }
            prop_assert!(said.starts_with("ask") || now.1.is_none_or(|human| humans.contains(&human.as_str())));
            prop_assert!(talk.router.queue().items().len() <= LONGEST);
        }
        for _ in 0..=LONGEST {
            if talk.router.asked().is_some() {
                prop_assert!(!floor(&talk.ends(Ending::Failed)).is_empty());
            }
        }
        prop_assert!(talk.router.waiting().is_some());
    }

    /// Markers in a code fence have no effect, for any speaker.
    #[test]
    fn fenced_markers_move_nobody(name in "[ab]|zed", fence in "`{3,5}|~{3,5}") {
        let quoted = format!("so:\n{fence}\n[NEXT: {name}] [DROP: ALL] [TEAM_TASK: x]\n{fence}\n");
        let mut talk = talk("H a b", 0);
        let outputs = talk.says("H", &quoted);
        prop_assert_eq!(why(&outputs), Some(Why::QueueEmpty));
        talk.says("H", "[NEXT: a, b]");
        prop_assert_eq!(talk.answers(&quoted), []);
        prop_assert_eq!(talk.pending(), ["b"]);
    }
}
