use super::*;
use tertulia_core::entry::Attachment;
use tertulia_core::id::EntryId;
use uuid::Uuid;

/// A message of ten bytes with this sequence number; a number below 0 is not in the log yet.
fn spoken(seq: i64) -> Spoken {
    Spoken {
        id: EntryId::new(Uuid::from_u128(u128::from(seq.unsigned_abs()))),
        seq: u64::try_from(seq).ok().map(Seq),
        by: "ana".into(),
        from: "Ana".into(),
        to: Vec::new(),
        replies_to: None,
        text: format!("message {seq:>2}"),
        attachments: Vec::new(),
    }
}

fn summaries(window: usize, max_bytes: usize) -> Summaries {
    Summaries::new(true, window, max_bytes)
}

fn drop_all(summaries: &mut Summaries, seqs: impl IntoIterator<Item = i64>) {
    for seq in seqs {
        summaries.take(vec![spoken(seq)]);
    }
}

fn made(upto: u64) -> SummaryResult {
    SummaryResult::Made(TeamSummary {
        upto: Seq(upto),
        text: format!("up to {upto}"),
    })
}

fn seqs(batch: Option<&Batch>) -> Vec<Option<u64>> {
    let messages = batch.into_iter().flat_map(|batch| &batch.messages);
    messages.map(|spoken| Some(spoken.seq?.0)).collect()
}

#[test]
fn a_summary_is_due_when_a_quarter_of_a_window_has_left_it() {
    for (window, least) in [(50, 13), (40, 10), (5, 4), (1, 4), (0, 4)] {
        let mut summaries = summaries(window, 1_000_000);
        drop_all(&mut summaries, 1..least);
        assert_eq!(summaries.due(&[]), None, "{window}");
        drop_all(&mut summaries, [least]);
        let batch = summaries.due(&[]).unwrap();
        assert_eq!(batch.len(), usize::try_from(least).unwrap());
        assert_eq!(batch.upto(batch.len()), Some(Seq(least.unsigned_abs())));
        summaries.end(made(least.unsigned_abs()));
        assert_eq!(summaries.due(&[]), None);
        assert_eq!(summaries.text(false), Some(&*format!("up to {least}")));
    }
}

#[test]
fn a_quarter_of_the_bytes_is_enough_too() {
    let mut summaries = summaries(50, 80);
    drop_all(&mut summaries, [1]);
    assert_eq!(summaries.due(&[]), None);
    drop_all(&mut summaries, [2]);
    assert_eq!(seqs(summaries.due(&[]).as_ref()), [Some(1), Some(2)]);
}

#[test]
fn what_a_prompt_has_no_room_for_counts_too_and_once() {
    let mut summaries = summaries(16, 1_000_000);
    let (third, fourth) = (spoken(3), spoken(4));
    drop_all(&mut summaries, [1, 2]);
    assert_eq!(summaries.due(&[&third]), None);
    let batch = summaries.due(&[&third, &fourth]);
    assert_eq!(seqs(batch.as_ref()), [Some(1), Some(2), Some(3), Some(4)]);
    summaries.end(made(4));
    drop_all(&mut summaries, [3, 4, 5]);
    let batch = summaries.batch(&[]);
    assert_eq!(seqs(batch.as_ref()), [Some(5)]);
    assert_eq!(batch.unwrap().before.as_deref(), Some("up to 4"));
}

#[test]
fn a_failed_summary_is_tried_again_later_and_not_at_each_turn() {
    let mut summaries = summaries(16, 1_000_000);
    drop_all(&mut summaries, 1..=4);
    assert!(summaries.due(&[]).is_some());
    summaries.end(SummaryResult::Failed);
    drop_all(&mut summaries, 5..=7);
    assert_eq!(summaries.due(&[]), None);
    // The user may ask at any time.
    assert_eq!(summaries.batch(&[]).unwrap().len(), 7);
    drop_all(&mut summaries, [8]);
    assert_eq!(summaries.due(&[]).unwrap().len(), 8);
    summaries.end(SummaryResult::Failed);
    drop_all(&mut summaries, 9..=15);
    assert_eq!(summaries.due(&[]), None);
    drop_all(&mut summaries, [16]);
    assert!(summaries.due(&[]).is_some());
    // An agent that was not asked has not failed.
    summaries.end(SummaryResult::NotAsked);
    assert!(summaries.due(&[]).is_some());
}

#[test]
fn a_summary_is_given_only_where_messages_are_missing() {
    let mut summaries = summaries(16, 1_000_000);
    let newest = TeamSummary {
        upto: Seq(4),
        text: "tea".into(),
    };
    // The window was made larger: everything fits now.
    summaries.resume(Some(newest.clone()), false);
    assert_eq!(summaries.text(false), None);
    assert_eq!(summaries.text(true), Some("tea"));
    summaries.resume(Some(newest.clone()), true);
    assert_eq!(summaries.text(false), Some("tea"));
    // What it covers is not summarised again.
    drop_all(&mut summaries, 1..=8);
    assert_eq!(summaries.due(&[]).unwrap().len(), 4);
    let mut off = Summaries::new(false, 16, 1_000_000);
    off.resume(Some(newest), true);
    drop_all(&mut off, 1..=100);
    assert_eq!((off.text(true), off.due(&[])), (None, None));
    assert!(off.uncovered.is_empty());
}

#[test]
fn a_message_that_is_not_in_the_log_does_not_end_a_batch() {
    let mut summaries = summaries(16, 1_000_000);
    drop_all(&mut summaries, [1, -2, 3, -4]);
    let batch = summaries.due(&[]).unwrap();
    assert_eq!(seqs(Some(&batch)), [Some(1), None, Some(3)]);
    assert_eq!((batch.upto(2), batch.upto(0)), (Some(Seq(1)), None));
    summaries.end(made(3));
    assert_eq!(summaries.batch(&[]), None);
    drop_all(&mut summaries, [5]);
    assert_eq!(seqs(summaries.batch(&[]).as_ref()), [None, Some(5)]);
}

#[test]
fn no_more_is_held_than_fits_a_prompt() {
    let mut summaries = summaries(16, 100);
    drop_all(&mut summaries, 1..=50);
    assert_eq!(summaries.uncovered.len(), 10);
    let batch = summaries.due(&[]).unwrap();
    let request = batch.request(batch.len(), batch.room).content;
    assert!(request.contains("[40 older messages are missing here]"));
    summaries.end(made(50));
    assert_eq!((summaries.uncovered.len(), summaries.bytes), (0, 0));
    drop_all(&mut summaries, [51]);
    assert_eq!(summaries.batch(&[]).unwrap().missing, 0);
}

#[test]
fn the_request_has_the_earlier_summary_and_the_messages_with_their_files() {
    let mut summaries = summaries(16, 1_000_000);
    summaries.resume(
        Some(TeamSummary {
            upto: Seq(1),
            text: "Tea was chosen.".into(),
        }),
        true,
    );
    let mut second = spoken(2);
    second.to = vec!["Ben".into()];
    second.attachments = vec![Attachment {
        path: "kettle.txt".into(),
        bytes: 3,
        content: "hot".into(),
        cut: 0,
    }];
    summaries.take(vec![second, spoken(3)]);
    let batch = summaries.batch(&[]).unwrap();
    let request = batch.request(2, batch.room);
    let expected = "# Summary of what was before\n\nTea was chosen.\n\n# Messages\n\n- Ana -> Ben: message  2\n\n- Ana -> all: message  3";
    assert!(request.content.ends_with(expected), "{}", request.content);
    assert_eq!(request.attachments.len(), 1);
    let request = batch.request(1, batch.room).content;
    assert!(!request.contains("message  3"));
    // A message that is too long for the agent is cut.
    let mut long = spoken(4);
    long.text = "tea ".repeat(5000);
    summaries.take(vec![long]);
    let batch = summaries.batch(&[]).unwrap();
    let request = batch.request(3, 2000).content;
    assert!(request.len() < 4000 && request.contains("bytes are missing here"));
}
