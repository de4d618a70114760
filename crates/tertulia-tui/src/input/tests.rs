use proptest::prelude::*;

use super::*;

fn input() -> Input {
    Input::new(History::new(
        ["first", "second\nof two lines", "third"].map(str::to_owned),
    ))
}

/// Returns true if a search or a completion is open, which `Esc` closes first.
fn is_busy(input: &Input) -> bool {
    input.search.is_some() || input.completion.is_open()
}

fn press(input: &mut Input, code: KeyCode, modifiers: KeyModifiers) -> Did {
    input.key(KeyEvent::new(code, modifiers))
}

/// Presses keys one after the other: `<c-a>`, `<a-enter>`, `<up>`, and letters as they are.
pub(super) fn keys(input: &mut Input, keys: &str) -> Did {
    let mut did = Did::Nothing;
    let mut rest = keys;
    while let Some(letter) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let (code, modifiers) = match named {
            Some((name, after)) => {
                rest = after;
                key_named(name)
            }
            None => {
                rest = &rest[letter.len_utf8()..];
                (KeyCode::Char(letter), KeyModifiers::NONE)
            }
        };
        did = press(input, code, modifiers);
    }
    did
}

fn key_named(name: &str) -> (KeyCode, KeyModifiers) {
    let (modifiers, name) = match name.split_once('-') {
        Some(("c", name)) => (KeyModifiers::CONTROL, name),
        Some(("a", name)) => (KeyModifiers::ALT, name),
        Some(("s", name)) => (KeyModifiers::SHIFT, name),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match name {
        "enter" => KeyCode::Enter,
        "tab" => KeyCode::Tab,
        "esc" => KeyCode::Esc,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "back" => KeyCode::Backspace,
        "del" => KeyCode::Delete,
        letter => KeyCode::Char(letter.chars().next().unwrap()),
    };
    (code, modifiers)
}

/// Text after some keys, with the cursor as `|`.
fn after(pressed: &str) -> String {
    let mut input = input();
    keys(&mut input, pressed);
    marked(&input)
}

pub(super) fn marked(input: &Input) -> String {
    let (before, behind) = input.piece.text().split_at(input.cursor);
    format!("{before}|{behind}")
}

fn submitted(did: Did) -> String {
    match did {
        Did::Submit(words) => words,
        other => panic!("{other:?}"),
    }
}

#[test]
fn enter_sends_and_its_kin_begin_a_line() {
    let mut input = input();
    assert_eq!(submitted(keys(&mut input, "hello<enter>")), "hello");
    assert!(input.is_empty());
    assert_eq!(keys(&mut input, "<enter>"), Did::SubmitNothing);
    assert_eq!(keys(&mut input, "  <enter>"), Did::Nothing);
    let words = "a<a-enter>b<s-enter>c\\<enter>d<c-j>e<enter>";
    assert_eq!(submitted(keys(&mut input, words)), "  a\nb\nc\nd\ne");
}

#[test]
fn moves() {
    assert_eq!(after("one two<c-left>"), "one |two");
    assert_eq!(after("one two<a-b><a-b><a-f>"), "one| two");
    assert_eq!(after("one<home>x<end>y"), "xoney|");
    assert_eq!(after("one<c-a>x<c-e>y"), "xoney|");
    assert_eq!(after("a<c-j>bcd<c-a>x"), "a\nx|bcd");
    assert_eq!(after("ab<left><left><left><right>"), "a|b");
    assert_eq!(after("漢字e\u{301}<left><left>"), "漢|字e\u{301}");
}

#[test]
fn up_and_down_keep_the_column() {
    assert_eq!(after("abcdef<c-j>x<c-j>ghijkl<up>"), "abcdef\nx|\nghijkl");
    assert_eq!(
        after("abcdef<c-j>x<c-j>ghijkl<left><up><up>"),
        "abcde|f\nx\nghijkl"
    );
    assert_eq!(after("漢字<c-j>abc<up>"), "漢|字\nabc");
    assert_eq!(after("abc<c-j>d<up><down>"), "abc\nd|");
}

#[test]
fn deleting_and_putting_back() {
    assert_eq!(after("ab<back>"), "a|");
    assert_eq!(after("ae\u{301}<back>"), "a|");
    assert_eq!(after("ab<home><del>"), "|b");
    assert_eq!(after("ab<home><c-d>"), "|b");
    assert_eq!(after("one src/main.rs<a-back>"), "one src/main.|");
    assert_eq!(after("one src/main.rs<c-w>"), "one |");
    assert_eq!(after("one two<home><a-d>"), "| two");
    assert_eq!(after("a<c-j>one two<c-left><c-u>"), "a\n|two");
    assert_eq!(after("a<c-j>b<home><c-u>"), "a|b");
    assert_eq!(after("one two<c-left><c-k>x"), "one x|");
    assert_eq!(after("a<c-j>b<up><end><c-k>"), "a|b");
    assert_eq!(after("one two<c-w><c-y><c-y>"), "one twotwo|");
    assert_eq!(after("<c-y><c-k><c-u><c-w><back><del>"), "|");
}

#[test]
fn changes_are_taken_back_word_by_word() {
    assert_eq!(after("one two<a-u>"), "one |");
    assert_eq!(after("one two<c-_><c-7>"), "|");
    assert_eq!(after("one two<a-u><a-u><a-e>"), "one |");
    assert_eq!(after("one two<a-u><a-u><a-e><a-e><a-e>"), "one two|");
    assert_eq!(after("one two<a-u>x<a-e>"), "one x|");
    assert_eq!(after("one two<c-u><a-u>"), "one two|");
    assert_eq!(after("ab<left>x<a-u>"), "a|b");
}

#[test]
fn the_edges_lead_through_history_and_back() {
    assert_eq!(after("<up>"), "third|");
    assert_eq!(after("<up><up>"), "second\nof two lines|");
    assert_eq!(after("<up><up><up>"), "first|");
    assert_eq!(after("<up><up><up><up>"), "first|");
    assert_eq!(after("mine<up><up><down><down>"), "mine|");
    assert_eq!(after("mine<up><up><down><down><down>"), "mine|");
    assert_eq!(after("<up><up><left><up>"), "second|\nof two lines");
    assert_eq!(
        after("<up>x<up><down>"),
        "thirdx|",
        "what was changed is kept"
    );
    assert_eq!(after("mine<up><a-u>"), "mine|");
}

#[test]
fn what_was_said_is_history() {
    let mut input = input();
    keys(&mut input, "new words<enter>");
    keys(&mut input, "<up>");
    assert_eq!(marked(&input), "new words|");
}

#[test]
fn ctrl_d_leaves_when_nothing_is_written() {
    assert_eq!(keys(&mut input(), "<c-d>"), Did::Leave);
    assert_eq!(keys(&mut input(), "<del>"), Did::Nothing);
    assert_eq!(keys(&mut input(), "a<home><c-d>"), Did::Changed);
    assert_eq!(keys(&mut input(), "a<c-d>"), Did::Nothing);
}

#[test]
fn other_keys_are_passed_on() {
    for name in ["<esc>", "<c-c>", "<c-o>", "<c-l>", "<tab>", "<a-x>"] {
        assert!(matches!(keys(&mut input(), name), Did::Pass(_)), "{name}");
    }
    let mut release = KeyEvent::new(KeyCode::Char('a'), KeyModifiers::NONE);
    release.kind = KeyEventKind::Release;
    let mut input = input();
    assert_eq!(input.key(release), Did::Nothing);
    assert!(input.is_empty());
}

#[test]
fn a_long_paste_is_folded_and_sent_whole() {
    let log = "2026-11-01 \u{1b}[31merror\u{1b}[0m 漢字\t\r\n".repeat(1234);
    let mut input = input();
    keys(&mut input, "look: ");
    assert_eq!(input.paste(&log), Did::Changed);
    keys(&mut input, " please");
    assert_eq!(input.shown().folds()[0].label, "[pasted 1 234 lines]");
    assert_eq!(input.height(), 1);
    let sent = submitted(keys(&mut input, "<enter>"));
    assert_eq!(sent, format!("look: {log} please"));
}

#[test]
fn a_fold_is_deleted_put_back_and_unfolded() {
    let code = "let x = 1;\n".repeat(20);
    let mut input = input();
    input.paste(&code);
    keys(&mut input, "<back>");
    assert!(input.is_empty());
    keys(&mut input, "<a-u>");
    assert_eq!(input.text(), code);
    keys(&mut input, "<tab>");
    assert_eq!(input.piece.text(), code);
    keys(&mut input, "<a-u><c-w><c-y>");
    assert_eq!(input.text(), code);
    let huge = "y".repeat(500_000);
    input.paste(&huge);
    assert!(matches!(keys(&mut input, "<tab>"), Did::Pass(_)));
    assert_eq!(input.text(), code + &huge);
}

#[test]
fn what_is_pasted_does_not_open_offers_nor_send() {
    let mut input = input();
    assert_eq!(input.paste("/he"), Did::Changed);
    assert!(!is_busy(&input));
    assert_eq!(input.paste("lp\nme\n"), Did::Changed);
    assert_eq!(input.text(), "/help\nme\n");
}

#[test]
fn the_history_is_searched() {
    let mut input = input();
    keys(&mut input, "mine<c-r>");
    assert_eq!(input.shown_label(), "history>");
    keys(&mut input, "ir");
    assert_eq!(input.shown().text(), "third");
    keys(&mut input, "<c-r>");
    assert_eq!(input.shown().text(), "first");
    keys(&mut input, "<c-r>");
    assert_eq!(input.shown_label(), "history: no match for 'ir'");
    let mut other = self::input();
    keys(&mut other, "mine<c-r>ir<esc>");
    assert_eq!(marked(&other), "mine|");
    keys(&mut other, "<c-r>ir<c-c>");
    assert_eq!(marked(&other), "mine|");
    keys(&mut input, "<enter>");
    assert_eq!(marked(&input), "first|");
    assert_eq!(submitted(keys(&mut input, "<enter>")), "first");
}

#[test]
fn other_keys_take_what_was_found() {
    assert_eq!(after("<c-r>sec<home>"), "second\n|of two lines");
    assert_eq!(after("mine<c-r>zzz<enter>"), "mine|");
    assert_eq!(after("mine<c-r>thx<back><enter>"), "third|");
}

#[test]
fn commands_are_completed_and_then_sent() {
    let mut input = input();
    keys(&mut input, "/he");
    assert!(is_busy(&input));
    assert_eq!(keys(&mut input, "<enter>"), Did::Changed);
    assert_eq!(marked(&input), "/help|");
    assert!(!is_busy(&input));
    assert_eq!(submitted(keys(&mut input, "<enter>")), "/help");
    assert_eq!(submitted(keys(&mut input, "/end<enter>")), "/end");
    assert_eq!(keys(&mut input, "/hepl<tab>"), Did::Changed);
    assert_eq!(marked(&input), "/help|");
}

#[test]
fn an_argument_is_asked_for_once_its_command_is_there() {
    let mut input = input();
    let did = keys(&mut input, "/res<tab>");
    assert_eq!(did, Did::Complete(Asked::Sessions(String::new())));
    let found = vec![
        Candidate::new("11111111").labelled("one"),
        Candidate::new("22222222").labelled("two"),
    ];
    assert_eq!(
        input.candidates(&Asked::Sessions("x".to_owned()), Vec::new()),
        Did::Nothing
    );
    input.candidates(&Asked::Sessions(String::new()), found);
    keys(&mut input, "<down><enter>");
    assert_eq!(marked(&input), "/resume 22222222|");
    assert_eq!(submitted(keys(&mut input, "<enter>")), "/resume 22222222");
}

#[test]
fn esc_closes_the_offers_first() {
    let mut input = input();
    keys(&mut input, "/h");
    assert_eq!(keys(&mut input, "<esc>"), Did::Changed);
    assert!(matches!(keys(&mut input, "<esc>"), Did::Pass(_)));
    keys(&mut input, "e");
    assert!(!is_busy(&input), "it stays closed for this word");
    keys(&mut input, "<tab>");
    assert!(is_busy(&input), "unless it is asked for");
    keys(&mut input, "<left>");
    assert!(!is_busy(&input));
    keys(&mut input, "<tab><esc><c-e><c-u>/");
    assert!(is_busy(&input), "it is another word");
}

#[test]
fn offers_come_back_when_a_word_is_corrected() {
    let mut input = input();
    keys(&mut input, "/helxyz");
    assert!(!is_busy(&input));
    keys(&mut input, "<back><back><back>");
    assert!(is_busy(&input));
}

#[test]
fn members_are_named_and_folders_entered() {
    let mut input = input();
    input.set_members(vec![Candidate::new("alice"), Candidate::new("bob")]);
    keys(&mut input, "hi [NEXT: b<tab>");
    assert_eq!(marked(&input), "hi [NEXT: bob]|");
    keys(&mut input, " see @s");
    let asked = Asked::Files("s".to_owned());
    input.candidates(&asked, vec![Candidate::new("src/").going_on()]);
    let did = keys(&mut input, "<tab>");
    assert_eq!(did, Did::Complete(Asked::Files("src/".to_owned())));
    assert_eq!(marked(&input), "hi [NEXT: bob] see @src/|");
}

#[test]
fn it_grows_to_a_third_of_the_screen_and_then_scrolls() {
    let mut input = input();
    input.resize(80, 24);
    for lines in 1..=20_u16 {
        assert_eq!(input.height(), lines.min(8));
        keys(&mut input, "x<c-j>");
    }
    assert_eq!(input.seen().top, 13);
    keys(&mut input, "<up><up>");
    assert_eq!(input.seen().top, 13, "it moves only when it has to");
    for _ in 0..20 {
        keys(&mut input, "<up>");
    }
    assert_eq!(input.seen().top, 0);
    input.resize(80, 2);
    assert_eq!(input.height(), 1);
}

/// A terminal without bracketed paste sends a key per character: the shown text, and so the cost of
/// each key and frame, stays small however long the paste is.
#[test]
fn a_flood_of_keys_stays_cheap() {
    let mut input = input();
    let mut expected = String::new();
    for place in 0..36_000_u32 {
        let letter = char::from(b'a' + u8::try_from(place % 26).unwrap());
        press(&mut input, KeyCode::Char(letter), KeyModifiers::NONE);
        expected.push(letter);
        assert!(input.piece.text().len() <= fold::MOST_SHOWN);
    }
    assert!(input.seen().layout.rows().len() < 1000);
    assert_eq!(input.text(), expected);
    keys(&mut input, "<home>");
    for _ in 0..17_000 {
        press(&mut input, KeyCode::Char('z'), KeyModifiers::NONE);
        assert!(input.piece.text().len() <= fold::MOST_SHOWN + 1000);
    }
    assert_eq!(input.text(), "z".repeat(17_000) + &expected);
}

#[test]
fn a_huge_entry_of_the_history_is_folded_when_it_comes_back() {
    let huge = "line\n".repeat(100_000);
    let mut input = Input::new(History::new([huge.clone()]));
    keys(&mut input, "<up>");
    assert_eq!(input.shown().folds()[0].label, "[100 000 lines]");
    assert_eq!(input.text(), huge);
    keys(&mut input, "<down><c-r>line");
    assert!(input.shown().text().len() <= fold::MOST_SHOWN);
    assert_eq!(submitted(keys(&mut input, "<enter><enter>")), huge);
}

#[test]
fn what_was_put_there_can_be_taken_away() {
    let mut input = input();
    keys(&mut input, "mine");
    input.set_text("an older message");
    assert_eq!(marked(&input), "an older message|");
    input.clear();
    assert!(input.is_empty());
    keys(&mut input, "<a-u><a-u>");
    assert_eq!(marked(&input), "mine|");
}

#[derive(Clone, Debug)]
enum Step {
    Key(KeyCode, KeyModifiers),
    Paste(String),
    Resize(u16, u16),
    Answer,
}

fn step() -> impl Strategy<Value = Step> {
    let letters = prop::sample::select(vec![
        'a', ' ', '/', '@', '[', ':', 'N', '漢', '\u{301}', '👩', '\u{200d}', '👧', '\u{fffc}',
        '\t', '\r', '\u{1b}', '\u{600}', '🇩', 'é', '\\',
    ]);
    let codes = prop::sample::select(vec![
        KeyCode::Enter,
        KeyCode::Tab,
        KeyCode::Esc,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Backspace,
        KeyCode::Delete,
    ]);
    let commands = prop::sample::select("abdefhjknpruwy_".chars().collect::<Vec<_>>());
    let modifiers = prop::sample::select(vec![
        KeyModifiers::NONE,
        KeyModifiers::CONTROL,
        KeyModifiers::ALT,
        KeyModifiers::SHIFT,
    ]);
    prop_oneof![
        6 => letters.prop_map(|letter| Step::Key(KeyCode::Char(letter), KeyModifiers::NONE)),
        4 => (codes, modifiers.clone()).prop_map(|(code, with)| Step::Key(code, with)),
        4 => (commands, modifiers).prop_map(|(letter, with)| Step::Key(KeyCode::Char(letter), with)),
        1 => "(a|漢|\r|\n|\u{301}|\u{fffc}| ){0,30}".prop_map(Step::Paste),
        1 => Just(Step::Paste("pasted\n".repeat(50))),
        1 => (0..12_u16, 0..8_u16).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        1 => Just(Step::Answer),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// For any keys: no panic, the cursor is at a grapheme boundary, folds match their
    /// placeholders, and undoing everything restores the initial state.
    #[test]
    fn no_keys_can_break_it(steps in prop::collection::vec(step(), 0..60)) {
        let mut input = Input::new(History::new(["/help".to_owned(), "a\nb".to_owned()]));
        input.set_members(vec![Candidate::new("alice")]);
        for step in steps {
            match step {
                Step::Key(code, modifiers) => {
                    if let Did::Submit(words) = press(&mut input, code, modifiers) {
                        prop_assert!(input.is_empty() && !words.trim().is_empty());
                    }
                }
                Step::Paste(text) => drop(input.paste(&text)),
                Step::Resize(columns, rows) => input.resize(columns, rows),
                Step::Answer => {
                    input.candidates(&Asked::Files("a".to_owned()), vec![Candidate::new("a b")]);
                }
            }
            let text = input.piece.text();
            prop_assert!(text.is_char_boundary(input.cursor));
            prop_assert_eq!(text.matches(text::FOLD).count(), input.piece.folds().len());
            let seen = input.seen();
            prop_assert!(seen.row < seen.layout.rows().len());
            prop_assert!(seen.top <= seen.row && seen.row < seen.top + usize::from(input.height()));
        }
        if input.search.is_some() {
            keys(&mut input, "<esc>");
        }
        let last = input.text();
        let mut undone = 0;
        while keys(&mut input, "<a-u>") == Did::Changed {
            undone += 1;
        }
        prop_assert!(input.is_empty());
        for _ in 0..undone {
            keys(&mut input, "<a-e>");
        }
        prop_assert_eq!(input.text(), last);
    }

    /// Pasted text is sent byte for byte, unless all its line ends are carriage returns.
    #[test]
    fn pastes_are_sent_byte_for_byte(text in "\\PC{0,40}(\n|\r\n|\u{fffc}|\\PC){0,30}x\n") {
        let mut input = input();
        input.paste(&text);
        prop_assert_eq!(submitted(keys(&mut input, "<enter>")), text);
    }
}

#[test]
fn vim_mode_has_a_small_normal_mode() {
    let check = |pressed: &str, expected: &str| {
        let mut input = input();
        input.set_vim(true);
        keys(&mut input, pressed);
        assert_eq!(marked(&input), expected, "{pressed}");
    };
    check("one two<esc>", "one tw|o");
    check("one two<esc>0wx", "one |wo");
    check("one two<esc>bhi,", "one,| two");
    check("one two<esc>0ea!", "one!| two");
    check("one two<esc>0cwsix<esc>", "si|x two");
    check("one two<esc>0dwp", "tone| wo");
    check("one two<esc>bDu", "one |two");
    check("one two<esc>0$a.", "one two.|");
    check("one<esc>otwo<esc>kdd", "|two");
    check("one<esc>otwo<esc>kddp", "two\n|one");
    check("one<esc>z", "on|e");
    check("one<esc>di<esc>", "on|e");
    let mut input = input();
    input.set_vim(true);
    keys(&mut input, "one<esc>");
    assert!(input.is_normal() && input.shown_label().starts_with("[N]"));
    assert!(
        matches!(keys(&mut input, "<esc>"), Did::Pass(_)),
        "stops an answer"
    );
    assert_eq!(keys(&mut input, "<enter>"), Did::Submit("one".to_owned()));
    assert!(!input.is_normal(), "the next message is written");
}
