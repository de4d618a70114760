use crossterm::event::KeyModifiers;
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use tertulia_core::entry::{Kind, SpeakerKind};
use tertulia_core::query::{Cursor, Hits, Listing, Row, SessionHits};

use super::*;
use crate::test_support::{
    any_key, any_size, before, hit, id, key, later, look, noon, said, screen, session, spoke,
};
use crate::view;

/// A fake store for the picker: sessions, newest first.
struct Store {
    rows: Vec<Row>,
    hidden: Hidden,
    /// Number of pages requested.
    pages: usize,
}

impl Store {
    fn new(rows: Vec<Row>) -> Store {
        let hidden = Hidden {
            elsewhere: 12,
            trashed: 3,
        };
        Store {
            rows,
            hidden,
            pages: 0,
        }
    }

    fn many(count: u64) -> Store {
        let title = |number| match number % 100 {
            7 => format!("parser {number}"),
            _ => format!("talk {number}"),
        };
        let minutes = |number| i64::try_from(number).unwrap();
        let rows = (0..count).map(|number| session(number, &title(number), minutes(number)));
        Store::new(rows.collect())
    }

    /// Answers all requests of a picker.
    fn serve(&mut self, picker: &mut Picker, now: Timestamp) {
        while let Some((ticket, wanted)) = picker.wants(now) {
            match wanted {
                Wanted::Page { page, .. } => {
                    self.pages += 1;
                    let listing = self.page(&page);
                    picker.page(ticket, &listing);
                }
                Wanted::Search(_) => picker.found(ticket, found()),
                Wanted::Preview { id, .. } => picker.preview(ticket, last_of(id)),
            }
        }
    }

    fn page(&self, page: &Page) -> Listing {
        let after = page.cursor.map(|cursor| cursor.id);
        let from = after.and_then(|id| self.rows.iter().position(|row| row.meta.id == id));
        let from = from.map_or(0, |at| at + 1);
        let to = (from + page.limit).min(self.rows.len());
        let next = (to < self.rows.len()).then(|| Cursor {
            at: self.rows[to - 1].meta.updated_at,
            id: self.rows[to - 1].meta.id,
        });
        Listing {
            rows: self.rows[from..to].to_vec(),
            hidden: self.hidden,
            sessions: self.rows.len() as u64 + self.hidden.total(),
            next,
            ..Listing::default()
        }
    }
}

fn found() -> Hits {
    let text = "I think that the parser drops the last line when it ends without a newline.";
    Hits {
        hits: vec![
            hit(3, "Release notes", 14, 300, ("parser", text)),
            hit(3, "Release notes", 9, 301, ("parser", text)),
            hit(1, "Fix the parser", 2, 10, ("parser", text)),
        ],
        total: 3,
        sessions: vec![
            SessionHits {
                session: id(3),
                count: 2,
            },
            SessionHits {
                session: id(1),
                count: 1,
            },
        ],
        elsewhere: 0,
        ..Hits::default()
    }
}

fn last_of(id: SessionId) -> Vec<Item> {
    vec![
        said(1, "Ann", SpeakerKind::Human, 20, "Why does it fail?"),
        said(
            2,
            "demo",
            SpeakerKind::Ai,
            19,
            &format!("Because of {}.", id.short()),
        ),
    ]
}

fn some() -> Store {
    let mut team = session(2, "Plan der Übergabe 漢字 👩‍👩‍👧", 60);
    team.meta.kind = Kind::Team;
    team.meta.team = Some("design".to_owned());
    team.meta.speakers = ["Ann", "Bob"].map(spoke).to_vec();
    team.open = true;
    let mut tagged = session(3, "Release notes", 3000);
    tagged.meta.tags = vec!["release".to_owned(), "urgent".to_owned()];
    Store::new(vec![
        session(1, "Fix the parser", 10),
        team,
        session(9, "", 70),
        tagged,
        session(4, "evil \u{1b}[31mtitle\nin two lines", 5000),
        session(5, &"A title that goes on and on ".repeat(10), 100_000),
    ])
}

fn opened(store: &mut Store) -> Picker {
    let mut picker = Picker::new(Filter::default(), Some("git:github.com/ann/parser".into()));
    store.serve(&mut picker, noon());
    picker
}

fn press(picker: &mut Picker, names: &[&str]) -> Reaction {
    let mut last = Reaction::Nothing;
    for name in names {
        last = picker.key(key(name), noon());
    }
    last
}

fn type_in(picker: &mut Picker, text: &str) {
    for letter in text.chars() {
        picker.key(key(&letter.to_string()), noon());
    }
}

fn shown(picker: &Picker, size: (u16, u16)) -> String {
    screen(size, |area, buffer| {
        view::picker::draw(picker, look(), area, buffer)
    })
}

#[test]
fn sessions_are_listed_and_the_newest_is_chosen() {
    let mut store = some();
    let mut picker = opened(&mut store);
    insta::assert_snapshot!("listed_80", shown(&picker, (80, 24)));
    insta::assert_snapshot!("listed_120", shown(&picker, (120, 40)));
    assert_eq!(
        press(&mut picker, &["enter"]),
        Reaction::Resume {
            id: id(1),
            at: None
        }
    );
}

#[test]
fn typing_searches_titles_at_once_and_everything_said_after_a_pause() {
    let mut store = some();
    let mut picker = opened(&mut store);
    type_in(&mut picker, "parser");
    assert_eq!(picker.len(), 1);
    store.serve(&mut picker, later(299));
    assert_eq!((picker.len(), picker.due()), (1, Some(later(300))));
    store.serve(&mut picker, later(300));
    assert_eq!((picker.len(), picker.due()), (2, None));
    insta::assert_snapshot!("searched_80", shown(&picker, (80, 24)));
    let outcome = press(&mut picker, &["down", "enter"]);
    let at = Some(tertulia_core::id::Seq(14));
    assert_eq!(outcome, Reaction::Resume { id: id(3), at });
    // Esc clears the query first.
    assert_eq!(press(&mut picker, &["esc"]), Reaction::Changed);
    assert!(picker.query().is_empty() && picker.len() == 5);
    assert_eq!(press(&mut picker, &["esc"]), Reaction::Close);
}

#[test]
fn what_fits_is_marked_in_titles_and_in_what_was_said() {
    let mut store = some();
    let mut picker = opened(&mut store);
    type_in(&mut picker, "parser");
    store.serve(&mut picker, later(300));
    let area = Rect::new(0, 0, 80, 24);
    let mut buffer = Buffer::empty(area);
    view::picker::draw(&picker, look(), area, &mut buffer);
    let marked = |y: u16| -> String {
        let cells = (0..80).map(|x| &buffer[(x, y)]);
        let marked = cells.filter(|cell| cell.modifier.contains(Modifier::UNDERLINED));
        marked.map(|cell| cell.symbol()).collect()
    };
    assert_eq!([marked(3), marked(6)], ["parser", "parser"]);
}

#[test]
fn an_answer_to_an_earlier_search_is_passed_over() {
    let mut store = some();
    let mut picker = opened(&mut store);
    type_in(&mut picker, "par");
    let (early, wanted) = picker.wants(later(300)).unwrap();
    assert!(matches!(wanted, Wanted::Search(_)));
    type_in(&mut picker, "s");
    picker.found(early, found());
    assert_eq!(picker.len(), 1);
}

#[test]
fn what_the_search_has_not_reached_is_said() {
    let mut store = some();
    let mut picker = opened(&mut store);
    type_in(&mut picker, "zebra");
    let (ticket, wanted) = picker.wants(later(300)).unwrap();
    assert!(matches!(wanted, Wanted::Search(_)));
    let hits = Hits {
        pending: 12_345,
        ..Hits::default()
    };
    picker.found(ticket, hits);
    assert!(shown(&picker, (80, 12)).contains("12 345 messages not indexed yet"));
}

#[test]
fn an_id_finds_its_session() {
    let mut store = some();
    let mut picker = opened(&mut store);
    let short = id(4).short();
    type_in(&mut picker, &short);
    let chosen = picker.chosen().map(Chosen::id);
    assert_eq!((picker.len(), chosen), (1, Some(id(4))));
}

#[test]
fn space_looks_into_a_session_and_is_typed_in_a_search() {
    let mut store = some();
    let mut picker = opened(&mut store);
    press(&mut picker, &["space", "down"]);
    insta::assert_snapshot!("previewing", shown(&picker, (80, 24)));
    store.serve(&mut picker, noon());
    insta::assert_snapshot!("previewed_80", shown(&picker, (80, 24)));
    insta::assert_snapshot!("previewed_120", shown(&picker, (120, 40)));
    press(&mut picker, &["esc"]);
    assert!(picker.shown_preview().is_none());
    type_in(&mut picker, "fix the");
    assert_eq!(picker.query().text(), "fix the");
    press(&mut picker, &["down", "space"]);
    assert!(picker.shown_preview().is_some());
    // The other key works while a query is typed, too.
    press(&mut picker, &["esc", "x", "^v"]);
    assert!(picker.shown_preview().is_some());
    assert_eq!(picker.query().text(), "fix thex");
}

#[test]
fn a_wide_screen_shows_the_preview_by_itself() {
    let mut store = some();
    let mut picker = opened(&mut store);
    picker.resize(Size::new(100, 30));
    store.serve(&mut picker, noon());
    assert!(shown(&picker, (100, 30)).contains("Because of"));
    // It is not in the way of Esc.
    assert_eq!(press(&mut picker, &["esc"]), Reaction::Close);
    press(&mut picker, &["space"]);
    assert!(picker.shown_preview().is_none());
    picker.resize(Size::new(99, 30));
    press(&mut picker, &["space"]);
    assert!(picker.shown_preview().is_some());
}

#[test]
fn answers_are_previewed_as_they_are_read() {
    let mut picker = opened(&mut some());
    press(&mut picker, &["space"]);
    let (ticket, _) = picker.wants(noon()).unwrap();
    let text = "A **bold** word:\n\n- one\n- two\n";
    let items = vec![
        said(1, "You", SpeakerKind::Human, 20, "**as** written"),
        said(2, "demo", SpeakerKind::Ai, 19, text),
    ];
    picker.preview(ticket, items);
    let shown = shown(&picker, (80, 24));
    assert!(shown.contains("A bold word:"), "{shown}");
    assert!(shown.contains("**as** written"), "{shown}");
}

#[test]
fn end_goes_to_the_last_session_of_all() {
    let mut store = Store::many(5_000);
    let mut picker = opened(&mut store);
    // All are counted, although only the first page is read.
    assert!(shown(&picker, (80, 24)).contains("5000 sessions"));
    press(&mut picker, &["end"]);
    store.serve(&mut picker, noon());
    assert_eq!(picker.chosen().map(Chosen::id), Some(id(4_999)));
    assert!(shown(&picker, (80, 24)).contains("5000 sessions"));
    // Another key while it is read stops it.
    let mut store = Store::many(5_000);
    let mut picker = opened(&mut store);
    press(&mut picker, &["end", "home"]);
    store.serve(&mut picker, noon());
    assert_eq!(picker.chosen().map(Chosen::id), Some(id(0)));
    assert!(!picker.read().1);
}

/// A listing does not count the sessions of a kind or a team.
#[test]
fn sessions_of_a_team_are_counted_by_reading_them() {
    let mut store = Store::many(5_000);
    let filter = Filter {
        team: Some("review".to_owned()),
        ..Filter::default()
    };
    let mut picker = Picker::new(filter, None);
    store.serve(&mut picker, noon());
    assert!(shown(&picker, (80, 24)).contains("5000 sessions"));
    type_in(&mut picker, "talk");
    store.serve(&mut picker, later(300));
    let drawn = shown(&picker, (80, 24));
    assert!(drawn.contains("4 950 of 5 000"), "{drawn}");
}

#[test]
fn more_hits_come_while_one_scrolls() {
    let mut store = some();
    let mut picker = opened(&mut store);
    type_in(&mut picker, "zebra");
    let text = "a zebra in it";
    let answer = |limit: usize| {
        let numbers = 100..(100 + limit as u64).min(400);
        let hits = numbers.map(|number| hit(number, "Talk", 2, 10, ("zebra", text)));
        let sessions = (100..400).map(|number| SessionHits {
            session: id(number),
            count: 1,
        });
        Hits {
            hits: hits.collect(),
            sessions: sessions.collect(),
            total: 300,
            ..Hits::default()
        }
    };
    let serve = |picker: &mut Picker| {
        let mut limits = Vec::new();
        while let Some((ticket, wanted)) = picker.wants(later(300)) {
            if let Wanted::Search(query) = wanted {
                limits.push(query.limit);
                picker.found(ticket, answer(query.limit));
            }
        }
        limits
    };
    assert_eq!(serve(&mut picker), [60]);
    assert!(
        shown(&picker, (80, 24)).contains("300 of 5"),
        "{}",
        shown(&picker, (80, 24))
    );
    let before = picker.row(59).map(Chosen::id);
    press(&mut picker, &["end"]);
    assert_eq!(serve(&mut picker), [240]);
    assert_eq!(
        (picker.len(), picker.row(59).map(Chosen::id)),
        (240, before)
    );
    press(&mut picker, &["end"]);
    assert_eq!(serve(&mut picker), [960]);
    assert!(shown(&picker, (80, 24)).contains("300 of 5"));
    press(&mut picker, &["end"]);
    assert!(serve(&mut picker).is_empty());
}

#[test]
fn a_row_names_its_project_only_among_others() {
    let mut store = some();
    store.rows[0].meta.project = Some("dir:/home/ann/projects/web".to_owned());
    let mut picker = opened(&mut store);
    assert!(!shown(&picker, (80, 24)).contains("web"));
    press(&mut picker, &["tab"]);
    store.serve(&mut picker, noon());
    let shown = shown(&picker, (80, 24));
    assert!(
        shown.contains(" · web") && !shown.contains("/home/ann"),
        "{shown}"
    );
}

#[test]
fn a_session_taken_out_of_the_trash_is_listed_and_chosen_again() {
    let mut store = some();
    let mut picker = opened(&mut store);
    press(&mut picker, &["down"]);
    picker.trashed(id(3));
    let undo = crossterm::event::KeyEvent::new(KeyCode::Char('u'), KeyModifiers::ALT);
    assert_eq!(picker.key(undo, noon()), Reaction::Undo);
    picker.read_again(Some(id(3)), noon());
    store.serve(&mut picker, noon());
    assert_eq!(picker.chosen().map(Chosen::id), Some(id(3)));
}

#[test]
fn sessions_are_renamed_in_place() {
    let mut store = some();
    let mut picker = opened(&mut store);
    press(&mut picker, &["down", "^r", "^u"]);
    type_in(&mut picker, "Übergabe 2");
    insta::assert_snapshot!("renaming", shown(&picker, (80, 24)));
    let outcome = press(&mut picker, &["enter"]);
    assert_eq!(outcome, Reaction::Rename(id(2), "Übergabe 2".into()));
    picker.replace(&session(2, "Übergabe 2", 60));
    assert!(shown(&picker, (80, 24)).contains("› Übergabe 2"));
    // An empty title is not accepted.
    assert_eq!(
        press(&mut picker, &["^r", "^u", "enter"]),
        Reaction::Changed
    );
    assert_eq!(press(&mut picker, &["^r", "x", "esc"]), Reaction::Changed);
    assert_eq!(picker.mode(), &Mode::Browse);
}

#[test]
fn tags_are_put_on_and_taken_off() {
    let mut store = some();
    let mut picker = opened(&mut store);
    press(&mut picker, &["down", "down", "^t"]);
    insta::assert_snapshot!("tagging", shown(&picker, (80, 24)));
    type_in(&mut picker, "+a -#urgent, b +");
    let outcome = press(&mut picker, &["enter"]);
    let expected = Reaction::Tag {
        id: id(3),
        add: vec!["a".into(), "b".into()],
        remove: vec!["urgent".into()],
    };
    assert_eq!(outcome, expected);
}

#[test]
fn only_a_yes_moves_to_the_trash() {
    let mut store = some();
    let mut picker = opened(&mut store);
    for no in ["n", "enter", "esc", "down", "x", "space"] {
        assert_eq!(press(&mut picker, &["home", "^x", no]), Reaction::Changed);
        assert_eq!(picker.mode(), &Mode::Browse, "{no}");
    }
    press(&mut picker, &["home", "^x"]);
    insta::assert_snapshot!("trashing", shown(&picker, (80, 24)));
    assert_eq!(press(&mut picker, &["Y"]), Reaction::Trash(id(1)));
    picker.trashed(id(1));
    assert_eq!(picker.chosen().map(Chosen::id), Some(id(2)));
    assert!(shown(&picker, (80, 24)).contains("4 in the trash"));
    assert_eq!(press(&mut picker, &["^f"]), Reaction::Fork(id(2), None));
}

#[test]
fn tab_lists_the_other_projects_too_and_keeps_what_was_chosen() {
    let mut store = some();
    let mut picker = opened(&mut store);
    press(&mut picker, &["down", "tab"]);
    let (ticket, wanted) = picker.wants(noon()).unwrap();
    let Wanted::Page { filter, page } = wanted else {
        panic!("{wanted:?}");
    };
    assert_eq!((filter.project, page.cursor), (None, None));
    let mut rows = store.rows.clone();
    rows.insert(0, session(20, "From elsewhere", 1));
    let listing = Listing {
        rows,
        ..Listing::default()
    };
    picker.page(ticket, &listing);
    assert_eq!(picker.chosen().map(Chosen::id), Some(id(2)));
    assert!(shown(&picker, (80, 24)).starts_with("All sessions"));
    // A late answer belongs to an outdated list and is dropped.
    picker.page(ticket, &listing);
    assert_eq!(picker.len(), 6);
}

#[test]
fn empty_sessions_are_shown_on_demand() {
    let mut store = some();
    let mut picker = opened(&mut store);
    assert!(shown(&picker, (80, 24)).contains("1 empty (^E)"));
    press(&mut picker, &["^e"]);
    assert_eq!(picker.len(), 6);
    assert!(!shown(&picker, (80, 24)).contains("empty"));
}

#[test]
fn what_cannot_be_read_is_said_and_tried_again_with_the_next_key() {
    let mut picker = Picker::new(Filter::default(), None);
    let (ticket, _) = picker.wants(noon()).unwrap();
    picker.refused(ticket, "the disk is gone".into());
    assert!(picker.wants(noon()).is_none());
    assert!(shown(&picker, (80, 24)).contains("the disk is gone"));
    press(&mut picker, &["down"]);
    assert!(picker.wants(noon()).is_some());
    let mut picker = opened(&mut some());
    press(&mut picker, &["space"]);
    let (ticket, _) = picker.wants(noon()).unwrap();
    picker.refused(ticket, "damaged".into());
    assert!(picker.wants(noon()).is_none());
    assert!(shown(&picker, (80, 24)).contains("\ndamaged\n"));
    press(&mut picker, &["down"]);
    picker.refused(ticket, "late".into());
    assert_eq!(picker.note(), None, "what nobody waits for is not told");
}

#[test]
fn a_hundred_thousand_sessions_are_read_as_somebody_scrolls() {
    let mut store = Store::many(100_000);
    let mut picker = opened(&mut store);
    assert_eq!((store.pages, picker.len()), (1, 100));
    for _ in 0..30 {
        press(&mut picker, &["pgdn"]);
        store.serve(&mut picker, noon());
    }
    let read = picker.len();
    assert!(read < 1000, "{read}");
    // A chosen row stays chosen until the query changes, which reads all sessions.
    let chosen = picker.chosen().map(Chosen::id).unwrap();
    let numbers = (0..100_000).find(|number| id(*number) == chosen);
    assert_eq!(numbers, Some(30 * picker.seen_rows() as u64));
    type_in(&mut picker, "parser 99907");
    store.serve(&mut picker, noon());
    assert_eq!(picker.chosen().map(Chosen::id), Some(id(99_907)));
    assert!(picker.read().1 && store.pages < 110, "{}", store.pages);
}

#[test]
fn a_chosen_row_stays_chosen_when_better_ones_come() {
    for moved in [false, true] {
        let mut rows = vec![session(1, "pxaxrxsxexr", 1), session(2, "pxaxrxsxexr", 2)];
        rows.extend((3..103).map(|number| session(number, "talk", 3)));
        rows.push(session(200, "parser", 9));
        let mut store = Store::new(rows);
        let mut picker = Picker::new(Filter::default(), None);
        let (ticket, _) = picker.wants(noon()).unwrap();
        picker.page(ticket, &store.page(&Page::first(100)));
        type_in(&mut picker, "parser");
        if moved {
            press(&mut picker, &["down"]);
        }
        store.serve(&mut picker, noon());
        assert_eq!(picker.row(0).map(Chosen::id), Some(id(200)));
        let expected = if moved { id(2) } else { id(200) };
        assert_eq!(picker.chosen().map(Chosen::id), Some(expected));
    }
}

#[test]
fn nothing_to_choose_is_no_trouble() {
    let mut picker = Picker::new(Filter::default(), None);
    for name in ["enter", "^r", "^t", "^x", "^f", "tab"] {
        assert_eq!(press(&mut picker, &[name]), Reaction::Nothing, "{name}");
    }
    let (ticket, _) = picker.wants(noon()).unwrap();
    picker.page(ticket, &Listing::default());
    assert!(shown(&picker, (80, 24)).contains("No sessions here."));
}

#[test]
fn a_key_that_comes_up_does_nothing() {
    let mut store = some();
    let mut picker = opened(&mut store);
    let mut up = key("enter");
    up.kind = crossterm::event::KeyEventKind::Release;
    assert_eq!(picker.key(up, noon()), Reaction::Nothing);
}

#[test]
fn ages_are_told_from_now() {
    let mut store = Store::new(vec![session(1, "one", 0)]);
    store.rows[0].meta.updated_at = before(60 * 24 * 3);
    let picker = opened(&mut store);
    assert!(shown(&picker, (80, 24)).contains("3 days ago"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn no_keys_and_no_size_break_it(
        keys in proptest::collection::vec(any_key(), 0..40), size in any_size(), content_hit in any_size(),
    ) {
        let mut store = some();
        let mut picker = opened(&mut store);
        picker.resize(Size::new(content_hit.0, content_hit.1));
        for (number, key) in keys.into_iter().enumerate() {
            picker.key(key, later(number as i64 * 200));
            shown(&picker, size);
            store.serve(&mut picker, later(number as i64 * 200 + 100));
            shown(&picker, size);
        }
    }
}
