use proptest::prelude::*;
use tertulia_core::entry::SpeakerKind;
use tertulia_core::query::SessionHits;

use super::*;
use crate::test_support::{any_key, any_size, hit, id, key, later, look, noon, said, screen};
use crate::view;

const TEXT: &str = "I think that the parser drops the last line when it ends without a newline.";

fn hits() -> Hits {
    let mut hits = Hits {
        hits: (1..9)
            .map(|number| {
                let minutes = i64::try_from(number * number * 7).unwrap();
                hit(
                    number,
                    &format!("Talk {number} 漢字"),
                    number + 3,
                    minutes,
                    ("parser line", TEXT),
                )
            })
            .collect(),
        total: 230,
        sessions: (1..100)
            .map(|number| SessionHits {
                session: id(number),
                count: 2,
            })
            .collect(),
        elsewhere: 4,
        ..Hits::default()
    };
    hits.hits[2].speaker = None;
    hits
}

fn around(spot: Spot) -> Vec<Item> {
    vec![
        said(
            spot.seq.0 - 1,
            "Ann",
            SpeakerKind::Human,
            9,
            "What is wrong?",
        ),
        said(spot.seq.0, "demo", SpeakerKind::Ai, 8, TEXT),
        said(
            spot.seq.0 + 1,
            "Ann",
            SpeakerKind::Human,
            7,
            &"so long ".repeat(1000),
        ),
    ]
}

fn serve(search: &mut Search, now: Timestamp) -> usize {
    let mut searches = 0;
    while let Some((ticket, wanted)) = search.wants(now) {
        match wanted {
            Wanted::Search(_) => {
                searches += 1;
                search.found(ticket, hits());
            }
            Wanted::Around { spot, .. } => search.around(ticket, around(spot)),
        }
    }
    searches
}

fn opened(words: &str) -> Search {
    Search::new(Filter::default(), Some("dir:/a".into()), words)
}

fn jump(spot: Spot) -> Reaction {
    Reaction::Resume {
        id: spot.session,
        at: Some(spot.seq),
    }
}

fn press(search: &mut Search, names: &[&str]) -> Reaction {
    let mut last = Reaction::Nothing;
    for name in names {
        last = search.key(key(name), noon());
    }
    last
}

fn shown(search: &Search, size: (u16, u16)) -> String {
    screen(size, |area, buffer| {
        view::search::draw(search, look(), area, buffer)
    })
}

fn spot_of(number: u64) -> Spot {
    Spot {
        session: id(number),
        seq: Seq(number + 3),
    }
}

#[test]
fn words_that_are_given_are_searched_for_at_once() {
    let mut search = opened("parser line");
    assert_eq!(serve(&mut search, noon()), 1);
    insta::assert_snapshot!("found_80", shown(&search, (80, 24)));
    insta::assert_snapshot!("found_120", shown(&search, (120, 40)));
    assert_eq!(press(&mut search, &["enter"]), jump(spot_of(1)));
    let outcome = press(&mut search, &["down", "down", "^f"]);
    assert_eq!(
        outcome,
        Reaction::Fork(spot_of(3).session, Some(spot_of(3).seq))
    );
    assert_eq!(press(&mut search, &["esc"]), Reaction::Close);
}

#[test]
fn what_is_typed_is_searched_for_after_a_pause_or_enter() {
    let mut search = opened("");
    assert_eq!(serve(&mut search, later(9999)), 0);
    press(&mut search, &["p", "a"]);
    assert_eq!(serve(&mut search, later(249)), 0);
    assert_eq!(search.due(), Some(later(250)));
    assert_eq!(serve(&mut search, later(250)), 1);
    // A key on an unsearched query must not take a hit of the previous one.
    assert_eq!(press(&mut search, &["r", "^f"]), Reaction::Nothing);
    assert_eq!(press(&mut search, &["enter"]), Reaction::Changed);
    assert_eq!(serve(&mut search, noon()), 1);
    assert_eq!(press(&mut search, &["enter"]), jump(spot_of(1)));
}

#[test]
fn late_answers_are_passed_over() {
    let mut search = opened("parser");
    let (early, _) = search.wants(noon()).unwrap();
    press(&mut search, &["s"]);
    search.found(early, hits());
    assert!(search.hits().hits.is_empty() && search.is_searching());
}

#[test]
fn tab_searches_everywhere() {
    let mut search = opened("parser");
    serve(&mut search, noon());
    press(&mut search, &["tab"]);
    let (_, wanted) = search.wants(noon()).unwrap();
    let Wanted::Search(query) = wanted else {
        panic!("{wanted:?}");
    };
    assert_eq!(query.filter.project, None);
}

#[test]
fn what_cannot_be_searched_for_is_said() {
    let mut search = opened("-only");
    assert_eq!(serve(&mut search, noon()), 0);
    assert!(shown(&search, (80, 24)).contains("only exclusions"));
    let mut search = opened("parser");
    let (ticket, _) = search.wants(noon()).unwrap();
    search.refused(ticket, "the index is being built".into());
    assert!(shown(&search, (80, 24)).contains("the index is being built"));
    assert!(search.wants(noon()).is_none());
    // Enter retries.
    press(&mut search, &["enter"]);
    assert_eq!(serve(&mut search, noon()), 1);
    press(&mut search, &["down"]);
    let (ticket, _) = search.wants(noon()).unwrap();
    search.refused(ticket, "damaged".into());
    let screen = shown(&search, (80, 24));
    assert!(
        screen.contains("damaged") && screen.contains("› Talk 2"),
        "{screen}"
    );
    assert!(search.wants(noon()).is_none());
}

#[test]
fn only_one_look_around_is_asked_for_at_a_time() {
    let mut search = opened("parser");
    let (ticket, _) = search.wants(noon()).unwrap();
    search.found(ticket, hits());
    let (first, _) = search.wants(noon()).unwrap();
    press(&mut search, &["down", "down", "down"]);
    assert!(search.wants(noon()).is_none());
    search.around(first, Vec::new());
    let (_, wanted) = search.wants(noon()).unwrap();
    assert!(matches!(wanted, Wanted::Around { spot, .. } if spot == spot_of(4)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn no_keys_and_no_size_break_it(
        keys in proptest::collection::vec(any_key(), 0..40), size in any_size(), told in any_size(),
    ) {
        let mut search = opened("x");
        search.resize(Size::new(told.0, told.1));
        for (number, key) in keys.into_iter().enumerate() {
            search.key(key, later(number as i64 * 200));
            shown(&search, size);
            serve(&mut search, later(number as i64 * 200 + 100));
            shown(&search, size);
        }
    }
}
