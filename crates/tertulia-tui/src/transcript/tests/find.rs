//! Search in a session of which only a part is loaded.

use super::*;

/// Entries searched at once.
const PART: u64 = 1000;

/// Answers all requests of a search in a log of `total` messages; returns the last outcome.
fn search(transcript: &mut Transcript, total: u64) -> Did {
    let mut did = Did::Nothing;
    while let Some(scan) = transcript.wants_scan() {
        let after = scan.upto.back(PART);
        let items: Vec<Item> = (after.0 + 1..=scan.upto.0)
            .map(|seq| agent(seq, &format!("message {seq}")))
            .collect();
        let matches = matches(&items, &scan.pattern);
        did = transcript.scanned(scan.ticket, Some(Scanned { matches, after }));
        serve(transcript, total);
    }
    did
}

fn shows(transcript: &Transcript, text: &str) -> bool {
    seen(transcript).iter().any(|row| row == text)
}

#[test]
fn the_whole_session_is_searched() {
    const TOTAL: u64 = 100_000;
    let mut transcript = loaded(TOTAL);
    press(&mut transcript, "/message 777\n");
    assert_eq!(transcript.standing(), Some(Standing::Searching(0)));
    search(&mut transcript, TOTAL);
    // 777, 7770 to 7779 and 77700 to 77799.
    assert!(shows(&transcript, "message 77799"));
    assert_eq!(transcript.standing(), Some(Standing::At(111, 111)));
    let text = screen(&mut transcript, 80, 24);
    assert!(text.contains(" 111 of 111 "), "{text}");
    for _ in 0..110 {
        press(&mut transcript, "n");
        serve(&mut transcript, TOTAL);
    }
    assert!(shows(&transcript, "message 777"));
    assert_eq!(transcript.standing(), Some(Standing::At(1, 111)));
    press(&mut transcript, "n");
    serve(&mut transcript, TOTAL);
    assert!(shows(&transcript, "message 77799"), "around the beginning");
    press(&mut transcript, "N");
    serve(&mut transcript, TOTAL);
    assert!(shows(&transcript, "message 777"), "around the end");
    press(&mut transcript, "N");
    serve(&mut transcript, TOTAL);
    assert!(shows(&transcript, "message 7770"));
    assert!(transcript.items.len() <= super::super::window::MOST_ITEMS);
}

#[test]
fn what_is_nowhere_is_said_once_all_is_searched() {
    let mut transcript = loaded(20_000);
    assert_eq!(press(&mut transcript, "/mesage\n"), Did::Changed);
    let nothing = Did::NotFound("mesage".to_owned());
    assert_eq!(search(&mut transcript, 20_000), nothing);
    assert_eq!(transcript.standing(), None);
    assert_eq!(press(&mut transcript, "n"), nothing);
    assert!(transcript.wants_scan().is_none());
}

#[test]
fn hits_that_are_loaded_need_no_wait() {
    let mut transcript = loaded(20_000);
    press(&mut transcript, "/message 1999\n");
    assert!(shows(&transcript, "message 19999"));
    press(&mut transcript, "n");
    assert!(shows(&transcript, "message 19998"));
    // The one below the newest is the oldest, which is not known yet.
    press(&mut transcript, "NN");
    assert!(shows(&transcript, "message 19999"));
    search(&mut transcript, 20_000);
    assert!(shows(&transcript, "message 1999"));
    assert_eq!(transcript.standing(), Some(Standing::At(1, 11)));
}

#[test]
fn a_later_search_drops_the_earlier_one() {
    let mut transcript = loaded(20_000);
    press(&mut transcript, "/message 7\n");
    let early = transcript.wants_scan().unwrap();
    press(&mut transcript, "/message 12345\n");
    let scanned = Scanned {
        matches: Matches::from([(ItemKey::default(), 3)]),
        after: Seq::START,
    };
    assert_eq!(
        transcript.scanned(early.ticket, Some(scanned)),
        Did::Nothing
    );
    search(&mut transcript, 20_000);
    assert!(shows(&transcript, "message 12345"));
    assert_eq!(transcript.standing(), Some(Standing::At(1, 1)));
    // What cannot be read ends the search.
    press(&mut transcript, "/message 8x\n");
    let scan = transcript.wants_scan().unwrap();
    let did = transcript.scanned(scan.ticket, None);
    assert_eq!(did, Did::NotFound("message 8x".to_owned()));
}

#[test]
fn several_hits_in_one_item_count_each_and_the_current_one_stands_out() {
    let mut transcript = of(vec![
        agent(1, "a needle, a `needle`\n\nand a needle"),
        agent(2, "no hay"),
        said(None, "ana", SpeakerKind::Ai, "an unsaved needle"),
    ]);
    let place = |transcript: &mut Transcript| {
        let at = transcript.current_hit();
        at.map(|(row, nth)| (seen(transcript)[row].clone(), nth))
    };
    press(&mut transcript, "/needle\n");
    assert_eq!(transcript.standing(), Some(Standing::At(4, 4)));
    assert_eq!(
        place(&mut transcript),
        Some(("an unsaved needle".to_owned(), 0))
    );
    let check = |transcript: &mut Transcript, at, row: &str, nth| {
        press(transcript, "n");
        assert_eq!(transcript.standing(), Some(Standing::At(at, 4)));
        assert_eq!(place(transcript), Some((row.to_owned(), nth)));
    };
    check(&mut transcript, 3, "and a needle", 0);
    check(&mut transcript, 2, "a needle, a needle", 1);
    check(&mut transcript, 1, "a needle, a needle", 0);
    for palette in [Palette::Dark, Palette::Light, Palette::Plain] {
        let theme = Theme::new(palette);
        assert_ne!(theme.hit(), theme.current_hit());
        assert_ne!(theme.hit(), theme.code());
    }
}

#[test]
fn a_long_message_of_a_person_is_folded_until_a_hit_is_in_it() {
    let lines: Vec<String> = (1..=300).map(|line| format!("line {line}")).collect();
    let paste = said(Some(1), "You", SpeakerKind::Human, &lines.join("\n"));
    let mut transcript = of(vec![paste, agent(2, "I see.")]);
    assert!(shows(&transcript, "line 10") && !shows(&transcript, "line 11"));
    assert!(shows(&transcript, "… 290 more lines, o unfolds"));
    press(&mut transcript, "o");
    assert!(
        !seen(&transcript)
            .iter()
            .any(|row| row.contains("more lines"))
    );
    press(&mut transcript, "o");
    assert!(shows(&transcript, "… 290 more lines, o unfolds"));
    press(&mut transcript, "/line 7\n");
    assert!(shows(&transcript, "line 79"), "{:?}", seen(&transcript));
    // All of it is copied, folded or not.
    press(&mut transcript, "a");
    assert_eq!(
        press(&mut transcript, "Vky"),
        Did::Copy(format!("{}\n\nI see.", lines.join("\n")))
    );
    // Answers are not folded.
    let answer = agent(1, &lines.join("\n\n"));
    let transcript = of(vec![answer]);
    assert!(shows(&transcript, "line 300"));
}
