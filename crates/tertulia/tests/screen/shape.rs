//! Sizes, resizing, wide characters, colours.

use tertulia_testkit::terminal::Size;

use super::agents;
use super::stage::{leave, open_at, open_with, ready, say, status, talk};
use crate::home::Home;

#[test]
fn it_works_on_small_and_large_screens() {
    for size in [
        Size::new(80, 24),
        Size::new(40, 12),
        Size::new(20, 5),
        Size::new(220, 60),
    ] {
        let home = Home::new();
        let mut terminal = open_at(&home, &[], size);
        ready(&mut terminal);
        // Look for 76, which neither a time nor the prompt contains; skip the status line, whose id
        // may have any digits.
        terminal.type_text("count to 77\n");
        terminal.wait_for("the answer", |screen| {
            (0..screen.size().rows - 1).any(|row| screen.row(row).contains("76"))
        });
        ready(&mut terminal);
        leave(&mut terminal);
        assert_eq!(home.said("@").len(), 2, "{size:?}");
    }
}

/// Not a usable size, but dragging a window passes through it.
#[test]
fn it_lives_on_hardly_any_screen() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    for size in [
        Size::new(1, 1),
        Size::new(2, 2),
        Size::new(80, 1),
        Size::new(1, 24),
        Size::new(7, 3),
    ] {
        terminal.resize(size);
        terminal.type_text("ab");
        terminal.keys("Backspace Backspace");
    }
    terminal.resize(Size::new(80, 24));
    ready(&mut terminal);
    say(&mut terminal, "echo alive", "alive");
    terminal.keys("^l");
    say(&mut terminal, "echo again", "again");
    leave(&mut terminal);
    // The program must not query the terminal: answers could be late, or be taken for keys.
    let raw = terminal.raw_text();
    for question in ["\u{1b}[6n", "\u{1b}[c", "\u{1b}[?u", "\u{1b}[5n"] {
        assert!(!raw.contains(question), "{question:?}");
    }
}

#[test]
fn a_storm_of_resizes_while_somebody_answers() {
    let home = Home::new();
    home.settings("[agents.demo]\npace = 1\n");
    let mut terminal = talk(&home, &[]);
    terminal.type_text("count to 3000\n");
    terminal.sees("10 11 12");
    for round in 0..200_u16 {
        terminal.resize(Size::new(20 + round * 7 % 100, 4 + round * 3 % 40));
    }
    terminal.resize(Size::new(72, 20));
    terminal.sees("2998 2999");
    ready(&mut terminal);
    // Nothing of the other sizes remains: a full redraw gives the same screen.
    let before = terminal.contents();
    terminal.keys("^l");
    terminal.type_text("x");
    terminal.sees("you> x");
    terminal.keys("Backspace");
    terminal.wait_for("the same screen", |screen| screen.text() == before);
    let rows: Vec<String> = terminal.look(|screen| screen.rows());
    assert!(
        rows.iter().all(|row| row.chars().count() <= 72),
        "{rows:#?}"
    );
    leave(&mut terminal);
    assert!(home.said("@")[1].ends_with("2999 3000"));
}

#[test]
fn wide_characters_stand_in_their_columns() {
    let home = Home::new();
    agents::says(&home, "writer", agents::MARKDOWN);
    let mut terminal = open_at(
        &home,
        &["--agent", "writer", "write it down"],
        Size::new(80, 50),
    );
    terminal.sees("quoted");
    ready(&mut terminal);
    terminal.look(|screen| {
        // The table's borders are aligned, by the columns of the terminal.
        let mut edges = Vec::new();
        for words in ["plain", "emoji", "end "] {
            let (row, _) = screen
                .place_of(words)
                .unwrap_or_else(|| panic!("{}", screen.framed()));
            let columns: Vec<u16> = (0..80)
                .filter(|column| {
                    let cell = screen.inner().cell(row, *column).unwrap();
                    cell.contents() == "│"
                })
                .collect();
            edges.push(columns);
        }
        assert!(!edges[0].is_empty(), "{}", screen.framed());
        assert!(
            edges.iter().all(|columns| *columns == edges[0]),
            "{edges:?}\n{}",
            screen.framed()
        );
    });
}

#[test]
fn wide_characters_are_written_and_wrapped() {
    let home = Home::new();
    let mut terminal = open_at(&home, &[], Size::new(40, 12));
    ready(&mut terminal);
    let words = "漢字かな交じり文を書いて、幅がどこで折り返されるかを見る。👩‍👩‍👧 👍🏽";
    terminal.type_text(words);
    terminal.sees("漢字かな");
    terminal.keys("Enter");
    terminal.sees("You said");
    ready(&mut terminal);
    assert_eq!(home.said("@")[0], words);
    terminal.look(|screen| {
        for row in 0..12 {
            // No half of a wide character is at the edge.
            let last = screen.inner().cell(row, 39).unwrap();
            assert!(!last.is_wide(), "{}", screen.framed());
        }
    });
}

/// Bold, dim and reversed are not colours.
#[test]
fn no_color_has_no_colours() {
    let home = Home::new();
    let coloured = |args: &[&str], variables: &[(&str, &str)]| {
        let mut terminal = open_with(&home, args, variables);
        ready(&mut terminal);
        say(&mut terminal, "hello", "Hello! I am the demo agent");
        leave(&mut terminal);
        colours(&terminal.raw_text())
    };
    assert_ne!(coloured(&[], &[]), Vec::<String>::new());
    assert_eq!(coloured(&[], &[("NO_COLOR", "1")]), Vec::<String>::new());
    assert_eq!(coloured(&["--no-color"], &[]), Vec::<String>::new());
}

/// Returns the escape sequences that set a colour.
fn colours(raw: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in raw.split("\u{1b}[").skip(1) {
        let Some((numbers, _)) = part.split_once('m') else {
            continue;
        };
        if !numbers
            .chars()
            .all(|letter| letter.is_ascii_digit() || letter == ';')
        {
            continue;
        }
        let sets_one = |number: &str| matches!(number.parse::<u32>().unwrap_or_default(), 30..=38 | 40..=48 | 90..=97 | 100..=107);
        if numbers.split(';').any(sets_one) {
            found.push(numbers.to_owned());
        }
    }
    found
}

#[test]
fn the_status_line_is_the_last_row_whatever_the_size() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    for (columns, rows) in [(100, 30), (60, 15), (30, 8), (80, 24)] {
        terminal.resize(Size::new(columns, rows));
        terminal.wait_for("the status line below", |screen| {
            screen.size().rows == rows
                && status(screen).contains("● ready")
                && screen.rows_with("● ready") == 1
        });
    }
    leave(&mut terminal);
}
