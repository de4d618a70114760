use crossterm::event::{KeyCode, KeyEvent};
use proptest::prelude::*;

use super::super::tests::{keys, marked};
use super::*;
use crate::history::History;

fn input() -> Input {
    let mut input = Input::new(History::new(Vec::new()));
    input.set_vim(true);
    input
}

/// Types a text, goes to its beginning, and types commands.
#[track_caller]
fn check(text: &str, commands: &str, expected: &str) {
    let mut input = input();
    input.paste(text);
    keys(&mut input, "<esc>gg0");
    keys(&mut input, commands);
    assert_eq!(marked(&input), expected, "{text:?} {commands}");
}

#[test]
fn commands_have_counts() {
    check("a b c d e", "3w", "a b c |d e");
    check("a b c d e", "2dw", "|c d e");
    check("a b c d e", "d2w", "|c d e");
    check("a b c d e f g", "2d2w", "|e f g");
    check("abcdef", "3x", "|def");
    check("abcdef", "10l2X", "abcd|");
    check("abcdef", "3rx", "xx|xdef");
    check("abc", "4rx", "|abc");
    check("1\n2\n3\n4", "2dd", "|3\n4");
    check("1\n2\n3\n4", "2jdk", "1\n|4");
    check("1\n2\n3\n4", "3Gdj", "1\n|2");
    check("1\n2\n3\n4", "dG", "|");
    check("ab", "x3p", "baa|a");
}

#[test]
fn letters_are_searched_in_the_line() {
    check("one,two,three", "f,", "one|,two,three");
    check("one,two,three", "2f,", "one,two|,three");
    check("one,two,three", "f,;", "one,two|,three");
    check("one,two,three", "2f,,", "one|,two,three");
    check("one,two,three", "dt,", "|,two,three");
    check("one,two,three", "df,", "|two,three");
    check("one,two,three", "$dF,", "one,two|e");
    check("one,two,three", "ct,1<esc>", "|1,two,three");
    check("one,two,three", "fx", "|one,two,three");
}

#[test]
fn text_objects_are_changed() {
    check("say one two", "wciwno<esc>", "say n|o two");
    check("say one two", "wdaw", "say |two");
    check("f(a, b)", "fadi(", "f(|)");
    check("f(a, b)", "da)", "|f(a, b)");
    check("let s = \"one two\";", "ftci\"x<esc>", "let s = \"|x\";");
    check("x [1, [2]] y", "f2da]", "x [1, |] y");
    check("one", "diz", "|one");
}

#[test]
fn lines_are_copied_and_put() {
    check("one\ntwo", "yyp", "one\n|one\ntwo");
    check("one\ntwo", "jyyp", "one\ntwo\n|two");
    check("one\ntwo", "jYP", "one\n|two\ntwo");
    check("one\ntwo", "ddp", "two\n|one");
    check("one\ntwo", "jdd", "|one");
    check("one two", "yw$p", "one twoone| ");
    check("one two", "wyiwP", "one tw|otwo");
    check("one\ntwo", "ccnew<esc>", "ne|w\ntwo");
    check("  one", "Idone <esc>", "  done| one");
    check("one", "A two<esc>", "one tw|o");
    check("one", "Ozero<esc>", "zer|o\none");
}

#[test]
fn a_change_is_repeated() {
    check("a b c d", "dw.", "|c d");
    check("aaaa", "xx.", "|a");
    check("one two one", "ciwno<esc>w.", "no n|o one");
    check("1\n2\n3", "A,<esc>j.j.", "1,\n2,\n3|,");
    check("a.b.c", "f.rx;.", "axb|xc");
    check("1\n2\n3\n4\n5", "2dd.", "|5");
    check("one", ".", "|one");
    // Only changes are repeated.
    check("a b c d", "dww.", "b |d");
    check("aaa", "xyy.", "|a");
}

#[test]
fn insert_mode_ends_on_an_empty_line() {
    let mut input = input();
    keys(&mut input, "<esc>");
    assert!(input.is_normal());
    assert!(matches!(keys(&mut input, "<esc>"), Did::Pass(_)));
    keys(&mut input, "ione<enter>");
    assert!(!input.is_normal(), "the next message is written");
    keys(&mut input, "<esc>d<esc>x");
    assert!(input.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_commands_break_it(
        text in "[a-c ,(\"\n漢é\u{301}\u{fffc}]{0,20}", commands in "[a-zA-Z0-9$^.,;()\"\u{1b}]{0,40}",
    ) {
        let mut input = input();
        input.paste(&text);
        for letter in commands.chars() {
            let code = match letter {
                '\u{1b}' => KeyCode::Esc,
                letter => KeyCode::Char(letter),
            };
            input.key(KeyEvent::from(code));
            prop_assert!(input.piece.text().is_char_boundary(input.cursor));
        }
    }
}
