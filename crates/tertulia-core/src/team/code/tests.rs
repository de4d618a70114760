use super::*;
use std::time::{Duration, Instant};

use proptest::prelude::*;

/// Checks the code of a text; expected blocks are prefixed with `#`.
fn check(text: &str, expected: &[&str]) {
    let found: Vec<String> = code(text)
        .into_iter()
        .map(|code| {
            let mark = if code.fenced { "#" } else { "" };
            format!("{mark}{}", &text[code.range])
        })
        .collect();
    assert_eq!(found, expected, "{text:?}");
}

#[test]
fn fences_make_code() {
    check("a\n```rust\nb\n```\nc", &["#```rust\nb\n```\n"]);
    check("~~~\nb\n~~~", &["#~~~\nb\n~~~"]);
    check("```\r\nb\r\n```\r\nc", &["#```\r\nb\r\n```\r\n"]);
    check("a\n```\nb", &["#```\nb"]);
    check("", &[]);
    check("plain\n\ntext", &[]);
}

#[test]
fn a_fence_ends_with_one_of_its_kind_that_is_as_long() {
    check("````\n```\n````\nc", &["#````\n```\n````\n"]);
    check("```\n~~~\n```\nc", &["#```\n~~~\n```\n"]);
    check("```\n`````  \nc", &["#```\n`````  \n"]);
    check("```\n``` x\n```\nc", &["#```\n``` x\n```\n"]);
    check("```\n    ```\n```\nc", &["#```\n    ```\n```\n"]);
}

#[test]
fn a_fence_stands_three_columns_in_at_most() {
    check("   ```\nb\n  ```\nc", &["#   ```\nb\n  ```\n"]);
    check("    ~~~\nb", &[]);
    check("\t~~~\nb", &[]);
    check("``\nb", &[]);
    check("~~ ~\nb", &[]);
}

#[test]
fn backticks_after_a_fence_of_backticks_make_it_running_text() {
    check("``` a`b\nc", &[]);
    check("```x```\nc", &["```x```"]);
    check("~~~ a`b`\nc", &["#~~~ a`b`\nc"]);
}

#[test]
fn fences_stand_in_quotes_and_lists() {
    check("> ```\n> b\n> ```\n> c", &["#> ```\n> b\n> ```\n"]);
    check("> ```\n> b\nc", &["#> ```\n> b\n"]);
    check("- a\n  ```\n  b\n  ```\n  c", &["#  ```\n  b\n  ```\n"]);
    check("- ```\n  b\n\n  ```\nc", &["#- ```\n  b\n\n  ```\n"]);
    check(
        "10. a\n    - b\n\n      ~~~\n      c\n      ~~~\nd",
        &["#      ~~~\n      c\n      ~~~\n"],
    );
    check("- ~~~\n  b\nc", &["#- ~~~\n  b\n"]);
    check("- a\n```\nb\n```\nc", &["#```\nb\n```\n"]);
}

#[test]
fn backticks_make_code_within_lines() {
    check("a `b` c ``d ` e`` f", &["`b`", "``d ` e``"]);
    check("a `b\nc` d", &["`b\nc`"]);
    check("a ` b", &[]);
    check("a `` b ` c", &[]);
    check("`a` ` `b", &["`a`", "` `"]);
}

#[test]
fn code_within_lines_stays_in_its_paragraph() {
    check("a ` b\n\nc ` d", &[]);
    check("- a ` b\n- c ` d", &[]);
    check("# a ` b\nc ` d", &[]);
    check("a ` b\n```\nc\n```\nd ` e", &["#```\nc\n```\n"]);
    check("> a ` b\nc ` d", &["` b\nc `"]);
}

#[test]
fn a_backslash_keeps_a_backtick_from_beginning_code() {
    check(r"\`a` b", &[]);
    check(r"\\`a` b", &["`a`"]);
    check(r"`a\` b`", &[r"`a\`"]);
    check(r"\``a` b", &["`a`"]);
}

/// With quadratic time this would take many minutes.
#[test]
fn long_hostile_texts_take_no_long_time() {
    let begun = Instant::now();
    for piece in ["`", "` ", "- ", "> ", "``a`", "- \n", "\\`", "\t"] {
        code(&piece.repeat(300_000));
    }
    code(&("- ".repeat(100_000) + &"\n".repeat(100_000)));
    let runs: String = (1..800).map(|length| "`".repeat(length) + " ").collect();
    code(&runs);
    assert!(begun.elapsed() < Duration::from_secs(60));
}

proptest! {
    /// Ranges are sorted, disjoint, not empty, and at character boundaries.
    #[test]
    fn parts_are_in_order(text in "([`~> \\-\n\\\\ä1.]|```\n|~~~\n|- |> |    ){0,60}") {
        let mut at = 0;
        for code in code(&text) {
            prop_assert!(at <= code.range.start && code.range.start < code.range.end);
            prop_assert!(text.get(code.range.clone()).is_some());
            at = code.range.end;
        }
    }
}
