//! Markdown rendering: the visible result, streaming gives the same as rendering at once, and the
//! cost.

use proptest::prelude::*;
use ratatui::style::Modifier;
use ratatui::text::Line;

use super::super::theme::Palette;
use super::blocks::WINDOW;
use super::*;
use crate::text::wrap::width_of;

const DARK: Theme = Theme::new(Palette::Dark);

const EVERYTHING: &str = r#"# A heading

A paragraph with *emphasis*, **weight**, ~~regret~~, `inline code` and a [link](https://example.org/a?b=c), long enough
to be broken; <https://example.org> needs no second address, and neither does **`bold code`**.
A line that the writer broke.

Second heading
---

- first
- second with `code`
  - nested, and long enough that the line has to be broken somewhere before it ends at the edge
    1. numbered
    2. twice
- [ ] to do
- [x] done

7. seven

8. eight, loosely

   with a second paragraph

> A quotation
> of two lines
>
> - with a list

```rust
fn main() {
    let greeting = "hello";	// a tab before this
    println!("{greeting} {}", "a line of code that is much longer than the screen is wide, so that it has to go on below");

}
```

    indented code

| Name | Meaning | Count |
|:-----|:-------:|------:|
| one | the first | 1 |
| 漢字 | wide | 22 |
| `code` | a cell that is so long that the table would be wider than the screen if nobody broke it | 333 |

***

<details>
<summary>HTML</summary>
</details>

A [reference][1] and a secret: [redacted:aws-key].

[1]: https://example.org/definition "Title"

![a picture](picture.png)
"#;

/// Renders markdown as lines of a width.
fn lines(text: &str, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let mut blocks = Blocks::new(Form::Markdown, width, theme);
    blocks.upto(text);
    blocks.iter().map(|row| row.line.clone()).collect()
}

/// A streaming answer, for one width.
struct Streaming {
    text: String,
    blocks: Blocks,
}

impl Streaming {
    fn new(width: u16) -> Streaming {
        Streaming {
            text: String::new(),
            blocks: Blocks::new(Form::Markdown, width, DARK),
        }
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// The text so far, as [`lines`] would show it. Only the last block is rendered again.
    fn lines(&mut self) -> impl Iterator<Item = &Line<'static>> {
        self.blocks.upto(&self.text);
        self.blocks.iter().map(|row| &row.line)
    }
}

fn text_of(lines: &[Line<'_>]) -> String {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn shown(text: &str, width: u16) -> String {
    text_of(&lines(text, width, DARK))
}

fn style_of(text: &str, word: &str, theme: Theme) -> Style {
    let lines = lines(text, 80, theme);
    let mut spans = lines.iter().flat_map(|line| &line.spans);
    let found = spans.find(|span| span.content.contains(word));
    found.unwrap_or_else(|| panic!("{word} is not shown")).style
}

#[test]
fn everything_at_80() {
    insta::assert_snapshot!(shown(EVERYTHING, 80));
}

#[test]
fn everything_at_120() {
    insta::assert_snapshot!(shown(EVERYTHING, 120));
}

#[test]
fn everything_in_a_crack() {
    insta::assert_snapshot!(shown(EVERYTHING, 14));
}

#[test]
fn no_width_is_too_small_and_no_line_too_wide() {
    for width in 0..60 {
        for line in lines(EVERYTHING, width, DARK) {
            let wide = width_of(&line.spans) <= usize::from(width.max(2));
            assert!(wide, "{width}: {line}");
        }
    }
}

#[test]
fn words_look_like_what_they_are() {
    let modifiers = |text: &str, word: &str| style_of(text, word, DARK).add_modifier;
    assert_eq!(modifiers("a *b* c", "b"), Modifier::ITALIC);
    assert_eq!(modifiers("a **b** c", "b"), Modifier::BOLD);
    assert_eq!(
        modifiers("a ***b*** c", "b"),
        Modifier::BOLD | Modifier::ITALIC
    );
    assert_eq!(modifiers("a ~~b~~ c", "b"), Modifier::CROSSED_OUT);
    assert_eq!(style_of("a `b` c", "b", DARK), DARK.code());
    assert_eq!(style_of("[b](c)", "b", DARK), DARK.link());
    assert_eq!(style_of("a https://b.c/d_e_f.", "b.c", DARK), DARK.link());
    assert_eq!(style_of("`https://b.c`", "b.c", DARK).fg, DARK.link().fg);
    let secret = style_of("x [redacted:bearer-token] y", "redacted", DARK);
    assert_eq!(secret, DARK.redacted());
    let in_code = style_of("```\nkey [redacted:aws-key]\n```", "redacted", DARK);
    assert_eq!(in_code, DARK.redacted());
    assert_eq!(style_of("```diff\n+new\n```", "new", DARK), DARK.added());
}

#[test]
fn without_colours_code_has_its_marks() {
    let plain = Theme::new(Palette::Plain);
    assert_eq!(text_of(&lines("a `b` c", 80, plain)), "a `b` c");
    assert_eq!(
        style_of("```rust\nlet a = 1;\n```", "let", plain),
        Style::new()
    );
}

#[test]
fn nothing_steers_the_terminal() {
    let odd = "a\u{1b}[31m `b\u{7}`\n\n```\nc\u{9b}1m\u{0}\n```\n\n[d](e\u{1b}f)\n";
    let shown = shown(odd, 80);
    assert!(
        !shown.chars().any(|c| c.is_control() && c != '\n'),
        "{shown:?}"
    );
    assert!(shown.contains("a\u{fffd}[31m b\u{fffd}"), "{shown:?}");
}

/// Copying returns the source: the source ranges of the rows cover the whole text except for the
/// gaps between blocks.
#[test]
fn rows_know_their_source() {
    let mut blocks = Blocks::new(Form::Markdown, 40, DARK);
    blocks.upto(EVERYTHING);
    let find = |part: &str| {
        let at = EVERYTHING.find(part).unwrap();
        blocks.get(blocks.row_of(at)).unwrap()
    };
    for part in [
        "weight",
        "nested",
        "eight, loosely",
        "fn main",
        "so that it",
        "22",
        "aws-key",
    ] {
        let row = find(part);
        let source = &EVERYTHING[row.source.clone()];
        assert!(source.contains(part), "{part}: {source}");
    }
    let item = find("first");
    assert_eq!(&EVERYTHING[item.source.clone()], "- first");
    let line = EVERYTHING
        .lines()
        .find(|line| line.contains("println"))
        .unwrap();
    let start = EVERYTHING.find(line).unwrap();
    let rows = blocks.row_of(start)..=blocks.row_of(start + line.len() - 1);
    assert!(rows.clone().count() > 2);
    let parts: Vec<&str> = rows
        .map(|row| &EVERYTHING[blocks.get(row).unwrap().source.clone()])
        .collect();
    assert_eq!(parts.concat(), line);
}

#[test]
fn code_in_a_list_is_copied_as_it_was_written() {
    let text = "- item\n\n\t```go\n\tfunc main() {\n\t\treturn\n\t}\n\t```\n";
    let mut blocks = Blocks::new(Form::Markdown, 40, DARK);
    blocks.upto(text);
    let rows: Vec<&Row> = blocks.iter().collect();
    let first = rows
        .iter()
        .find(|row| row.line.to_string().contains("func"));
    let last = rows.last().unwrap();
    assert_eq!(last.line.to_string().trim_start().chars().next(), Some('└'));
    let copied = &text[first.unwrap().source.start..last.source.end];
    assert_eq!(copied.trim(), "func main() {\n\t\treturn\n\t}");
}

#[test]
fn code_is_framed_and_names_its_language() {
    let two = "```rust\na\n```\n```sh,ignore\nb\n```";
    let expected = "┌─ rust ───\n│ a\n└──────────\n\n┌─ sh ─────\n│ b\n└──────────";
    assert_eq!(shown(two, 11), expected);
    let item = "• ┌─────────\n  │ a\n  └─────────";
    assert_eq!(shown("- ```\n  a\n  ```", 12), item);
    assert_eq!(shown("```\n```", 3), "┌──\n└──");
    let wide = shown("```\na\n```", 200);
    assert!(wide.lines().all(|row| row.chars().count() <= PROSE));
}

#[test]
fn headings_differ_by_weight_and_colour_not_by_signs() {
    for palette in [Palette::Dark, Palette::Light, Palette::Plain] {
        let theme = Theme::new(palette);
        let text = |level| format!("{} heading", "#".repeat(level));
        let looks: Vec<Style> = (1..=4)
            .map(|level| style_of(&text(level), "heading", theme))
            .collect();
        let bold = |style: &Style| style.add_modifier.contains(Modifier::BOLD);
        assert!(looks.iter().all(bold), "{palette:?}");
        assert_ne!(looks[0], looks[1], "{palette:?}");
    }
    assert_eq!(shown("# One\n\n### Three #", 80), "One\n\nThree");
}

#[test]
fn tasks_have_boxes() {
    let tasks = "- [ ] to do\n- [x] done\n- other\n\n1. [x] first\n\n* [ ]\n  loose\n";
    let expected = "☐ to do\n☑ done\n• other\n\n1. ☑ first\n\n☐ loose";
    assert_eq!(shown(tasks, 80), expected);
}

#[test]
fn prose_is_at_most_100_columns_wide_and_code_is_not() {
    let text = format!("{}\n\n    {}\n", "word ".repeat(60), "x".repeat(150));
    let lines = lines(&text, 200, DARK);
    let widest = |letter: char| {
        let lines = lines.iter().map(ToString::to_string);
        let lines = lines.filter(|line| line.contains(letter));
        lines.map(|line| line.chars().count()).max()
    };
    assert_eq!(widest('w'), Some(99));
    assert_eq!(widest('x'), Some(152));
}

/// Random markdown of parts chosen for their effect on the text before and after them.
fn markdown() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("\n"),
        Just("\n\n"),
        Just("word "),
        Just("*"),
        Just("**"),
        Just("`"),
        Just("```"),
        Just("```rust\nlet a = \"b\";\n"),
        Just("~~~\n"),
        Just("# "),
        Just("---\n"),
        Just("===\n"),
        Just("- "),
        Just("+ x\n"),
        Just("1. "),
        Just("2) "),
        Just("    "),
        Just("  "),
        Just("\t"),
        Just("> "),
        Just("[a]"),
        Just("[a]: /b\n"),
        Just("[a](b)"),
        Just("| a | b |\n|---|--:|\n"),
        Just("| c | d |\n"),
        Just("<b>"),
        Just("<div>\n"),
        Just("<!-- "),
        Just("-->\n"),
        Just("\\"),
        Just("&amp;"),
        Just("- [x] "),
        Just("漢字"),
        Just("👩‍👩‍👧"),
        Just("[redacted:aws-key]"),
        Just("\u{1b}[0m"),
        Just("\r\n"),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_grows_looks_like_what_is_whole(
        text in markdown(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        width in 1u16..60,
    ) {
        let mut places: Vec<usize> = cuts
            .iter()
            .map(|cut| text.floor_char_boundary(cut.index(text.len() + 1)))
            .collect();
        places.push(text.len());
        places.sort_unstable();
        let mut streaming = Streaming::new(width);
        let mut at = 0;
        for place in places {
            streaming.push(&text[at..place]);
            streaming.lines().count();
            at = place;
        }
        let grown: Vec<Line<'_>> = streaming.lines().cloned().collect();
        prop_assert_eq!(text_of(&grown), shown(&text, width));
        prop_assert_eq!(grown, lines(&text, width, DARK));
    }

    #[test]
    fn rows_are_in_the_order_of_the_text(text in markdown(), width in 1u16..60) {
        let mut blocks = Blocks::new(Form::Markdown, width, DARK);
        blocks.upto(&text);
        let mut latest = 0;
        for row in blocks.iter() {
            prop_assert!(row.source.start >= latest, "{row:?}");
            prop_assert!(row.source.end >= row.source.start && row.source.end <= text.len());
            prop_assert!(text.get(row.source.clone()).is_some(), "{row:?}");
            latest = row.source.start;
        }
    }

    #[test]
    fn any_text_is_shown(text in any::<String>(), width in 0u16..20) {
        lines(&text, width, DARK);
    }
}

#[test]
fn blocks_longer_than_the_window_are_cut_and_go_on() {
    let long = [
        "word ".repeat(3 * WINDOW / 5),
        "x".repeat(3 * WINDOW),
        format!("```rust\n{}```\nafter", "let a = 1;\n".repeat(WINDOW / 5)),
        format!("intro\n\n{}\n\nend", "- item\n".repeat(WINDOW / 3)),
        format!("~~~~\n{}\n~~~~\n\n# end", "漢".repeat(WINDOW)),
    ];
    for text in long {
        let whole = lines(&text, 80, DARK);
        let letters: usize = whole.iter().map(|line| line.to_string().len()).sum();
        assert!(
            letters + 1_000 > text.trim().len() * 2 / 3,
            "{letters} of {}",
            text.len()
        );
        let mut streaming = Streaming::new(80);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.floor_char_boundary(999));
            streaming.push(piece);
            streaming.lines().count();
            rest = later;
        }
        assert!(streaming.lines().eq(whole.iter()), "{}", &text[..20]);
    }
    let code = format!("```\n{}```\n", "    a\n".repeat(WINDOW / 3));
    let shown = shown(&code, 80);
    let (mut rows, code) = (shown.lines(), "│     a");
    assert!(rows.next().is_some_and(|row| row.starts_with("┌──")));
    assert!(rows.next_back().is_some_and(|row| row.starts_with("└──")));
    assert!(rows.all(|row| row == code), "one frame around all parts");
}

/// Bytes rendered for an answer that streams in pieces of this size and is shown after each.
fn work(text: &str, piece: usize) -> usize {
    let mut streaming = Streaming::new(80);
    for part in text.as_bytes().chunks(piece) {
        streaming.push(std::str::from_utf8(part).unwrap());
        streaming.lines().count();
    }
    streaming.blocks.work
}

#[test]
fn an_answer_of_many_paragraphs_is_drawn_about_once() {
    let text = "Some words of a paragraph that goes on.\n\n".repeat(500);
    let long = text.repeat(10);
    assert!(work(&long, 40) < 12 * work(&text, 40));
    assert!(work(&text, 40) < 4 * text.len());
}

#[test]
fn an_answer_of_one_line_is_never_drawn_beyond_its_window() {
    let (short, long) = ("x".repeat(2 * WINDOW), "x".repeat(6 * WINDOW));
    let piece = WINDOW / 16;
    assert!(work(&long, piece) < 4 * work(&short, piece));
}
