use proptest::prelude::*;
use ratatui::style::Color;

use super::*;
use crate::theme::{Palette, Token};

fn drawn(text: &str, width: usize) -> Vec<String> {
    let theme = Theme::new(Palette::Dark);
    let plain = (&Margin::default(), theme.text());
    let rows = rows(text, 0, plain, width, theme);
    rows.iter().map(|row| row.line.to_string()).collect()
}

const DIFF: &str = "--- src/main.rs\n+++ src/main.rs\n@@ -9,3 +9,4 @@\n fn main() {\n-    old();\n\
    +    new();\n+    newer();\n }\n@@ -20,2 +21 @@\n-gone\n kept";

#[test]
fn lines_have_their_numbers() {
    assert_eq!(
        drawn(DIFF, 40),
        [
            "src/main.rs",
            " 9   fn main() {",
            "10 -     old();",
            "10 +     new();",
            "11 +     newer();",
            "12   }",
            "⋯",
            "20 - gone",
            "21   kept",
        ]
    );
}

#[test]
fn numbers_are_not_made_up() {
    assert_eq!(
        drawn("--- /dev/null\n+++ a\n@@\n+one\n+two", 40),
        ["a (new file)", "+ one", "+ two"]
    );
    assert_eq!(
        drawn(
            "everywhere in a:\n--- a\n+++ a\n@@\n b\n-c\n+d\n(a reason)",
            40
        ),
        [
            "everywhere in a:",
            "--- a",
            "+++ a",
            "  b",
            "- c",
            "+ d",
            "(a reason)"
        ]
    );
}

#[test]
fn no_line_of_an_agent_is_left_out() {
    // Lines of a file that look like the head of a diff.
    let tricky = "--- a\n+++ a\n@@ -1,2 +1,2 @@\n--- rm -rf /\n+++ b\n same";
    assert_eq!(
        drawn(tricky, 40),
        ["a", "1 - -- rm -rf /", "1 + ++ b", "2   same"]
    );
    let placeless = "--- a\n+++ a\n@@\n--- x\n+++ y\n@@\n+z";
    assert_eq!(drawn(placeless, 40), ["a", "- -- x", "+ ++ y", "⋯", "+ z"]);
    // More lines than the place promises.
    let longer = "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n+z\n";
    assert_eq!(drawn(longer, 40), ["a", "1 - x", "1 + y", "+z"]);
    assert_eq!(drawn("@@ -1 +1 @@ rm -rf /", 40), ["⋯ rm -rf /"]);
    assert_eq!(drawn("@@ rm -rf /", 40), ["⋯ rm -rf /"]);
}

#[test]
fn a_long_line_goes_on_below() {
    assert_eq!(
        drawn("--- a\n+++ a\n@@ -1 +1 @@\n-abcdefgh\n+x", 8),
        ["a", "1 - abcd", "  ↪ efgh", "1 + x"]
    );
}

#[test]
fn code_has_its_colours() {
    let theme = Theme::new(Palette::Dark);
    let diff = "--- a.rs\n+++ a.rs\n@@ -1,2 +1,2 @@\n let a = 1;\n-let b = 2;\n+let c = 3;";
    let rows = rows(diff, 0, (&Margin::default(), theme.text()), 40, theme);
    let style = |row: usize, text: &str| {
        let mut spans = rows[row].line.spans.iter();
        spans
            .find(|span| span.content == text)
            .map(|span| span.style)
    };
    assert_eq!(style(1, "let"), Some(theme.token(Token::Keyword)));
    assert_eq!(
        style(2, "let b = 2;").and_then(|style| style.fg),
        Some(Color::Red)
    );
    assert_eq!(
        style(3, "+ ").and_then(|style| style.fg),
        Some(Color::Green)
    );
    assert_eq!(style(3, "let"), Some(theme.token(Token::Keyword)));
}

proptest! {
    #[test]
    fn any_text_is_drawn_with_its_source(
        text in "([-+@ \\\\]{0,3}[a-z0-9,漢]{0,6}( -1,2 \\+1 @@)?\r?\n?){0,12}", width in 0..30_usize,
    ) {
        let theme = Theme::new(Palette::Dark);
        let rows = rows(&text, 5, (&Margin::default(), theme.text()), width, theme);
        for row in rows {
            prop_assert!(row.source.start >= 5 && row.source.end <= text.len() + 5);
        }
    }
}
