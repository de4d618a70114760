use proptest::prelude::*;
use ratatui::backend::CrosstermBackend;
use ratatui::style::{Modifier, Style};
use ratatui::{Terminal, TerminalOptions, Viewport};

use super::*;
use crate::markdown::{Blocks, Form};
use crate::text::width_of;
use crate::theme::Theme;
use crate::view::brush::clear;

/// Model of a terminal with links: a symbol and an address per cell.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    cells: Vec<(String, Option<String>)>,
    columns: u16,
}

impl Model {
    fn new(area: Rect) -> Model {
        Model {
            cells: vec![(" ".to_owned(), None); area.area() as usize],
            columns: area.width,
        }
    }

    /// Prints the output of ratatui: the symbols of the changed cells, each at its position.
    fn print(&mut self, before: &Buffer, after: &Buffer) {
        for (x, y, cell) in before.diff(after) {
            let mut at = usize::from(y * self.columns + x);
            let mut url = None;
            let mut rest = cell.symbol();
            while !rest.is_empty() {
                if let Some(sequence) = rest.strip_prefix("\x1b]8;") {
                    let (sequence, after) = sequence.split_once("\x1b\\").unwrap();
                    let (_, address) = sequence.split_once(';').unwrap();
                    url = (!address.is_empty()).then(|| address.to_owned());
                    rest = after;
                    continue;
                }
                let letter = match url {
                    Some(_) => &rest[..1],
                    None => rest,
                };
                rest = &rest[letter.len()..];
                at += self.put(at, letter, url.clone());
            }
            assert_eq!(url, None, "a link is left open");
        }
    }

    /// Writes a symbol into one or two cells; overwriting half of a wide character clears the other
    /// half.
    fn put(&mut self, at: usize, letter: &str, url: Option<String>) -> usize {
        let wide = width_of(letter).max(1);
        for at in at..at + wide {
            if self.cells[at].0.is_empty() {
                self.cells[at - 1] = (" ".to_owned(), None);
            }
            if self.cells.get(at + 1).is_some_and(|cell| cell.0.is_empty()) {
                self.cells[at + 1] = (" ".to_owned(), None);
            }
            self.cells[at] = (String::new(), url.clone());
        }
        self.cells[at].0 = letter.to_owned();
        wide
    }

    /// Rows with `{` before each link and its address after it.
    fn shown(&self) -> Vec<String> {
        let rows = self.cells.chunks(usize::from(self.columns));
        rows.map(|row| {
            let mut out = String::new();
            let mut open: Option<&String> = None;
            for (letter, url) in row {
                if open != url.as_ref() {
                    out.extend(open.map(|url| format!("}}({url})")));
                    out.push_str(if url.is_some() { "{" } else { "" });
                    open = url.as_ref();
                }
                out.push_str(letter);
            }
            out.extend(open.map(|url| format!("}}({url})")));
            out.trim_end().to_owned()
        })
        .collect()
    }
}

fn screen(rows: &[&str], columns: u16) -> Buffer {
    let area = Rect::new(0, 0, columns, rows.len() as u16);
    let mut buffer = Buffer::empty(area);
    for (y, row) in rows.iter().enumerate() {
        buffer.set_stringn(0, y as u16, row, columns.into(), Style::new());
    }
    buffer
}

/// Draws rows and returns what the terminal shows, with links.
fn shown(rows: &[&str], columns: u16, joints: &[Joint]) -> Vec<String> {
    let mut buffer = screen(rows, columns);
    let area = buffer.area;
    lay(&find(&buffer, area, joints), &mut buffer);
    drawn(&buffer)
}

fn drawn(buffer: &Buffer) -> Vec<String> {
    let mut model = Model::new(buffer.area);
    model.print(&Buffer::empty(buffer.area), buffer);
    model.shown()
}

#[test]
fn an_address_is_a_link_and_the_rest_is_not() {
    let rows = ["漢 https://a.b/c. x", "no link"];
    let expected = ["漢 {https://a.b/c}(https://a.b/c). x", "no link"];
    assert_eq!(shown(&rows, 30, &[]), expected);
}

#[test]
fn rows_that_go_on_are_one_link() {
    let rows = ["go https://a.b/c", "  ↪ /d/e/f, and", "https://g.h/ijkl"];
    let joints = [Joint::Joined(4), Joint::Apart, Joint::Unknown];
    let url = "https://a.b/c/d/e/f";
    let expected = [
        format!("go {{https://a.b/c}}({url})"),
        format!("  ↪ {{/d/e/f}}({url}), and"),
        // The end of this address is unknown.
        "https://g.h/ijkl".to_owned(),
    ];
    assert_eq!(shown(&rows, 16, &joints), expected);
    let mut buffer = screen(&rows, 16);
    let links = find(&buffer, buffer.area, &joints);
    lay(&links, &mut buffer);
    let id = format!("id={:x};", id(url));
    assert!(buffer[(3, 0)].symbol().contains(&id));
    assert!(buffer[(4, 1)].symbol().contains(&id));
}

#[test]
fn what_goes_on_out_of_sight_is_no_link() {
    let rows = ["https://a.b/cdef"];
    assert_eq!(shown(&rows, 16, &[Joint::Joined(0)]), rows);
    assert_eq!(shown(&rows, 16, &[Joint::Unknown]), rows);
    assert_eq!(shown(&rows, 16, &[]), rows);
    let whole = ["{https://a.b/cdef}(https://a.b/cdef)"];
    assert_eq!(shown(&rows, 16, &[Joint::Apart]), whole);
    // There was room for more.
    assert_eq!(shown(&rows, 17, &[]), whole);
    // A scroll bar is not room.
    assert_eq!(shown(&["https://a.b/cd│"], 15, &[]), ["https://a.b/cd│"]);
}

#[test]
fn what_is_covered_is_no_link() {
    let rows = ["https://a.b/long", "/path here      "];
    let mut buffer = screen(&rows, 16);
    let links = find(&buffer, buffer.area, &[Joint::Joined(0), Joint::Apart]);
    assert_eq!(links[0].url, "https://a.b/long/path");
    buffer.set_string(9, 0, " saved ", Style::new());
    lay(&links, &mut buffer);
    let expected = ["https://a saved", "{/path}(https://a.b/long/path) here"];
    assert_eq!(drawn(&buffer), expected);
}

#[test]
fn a_link_keeps_its_looks() {
    let mut buffer = screen(&["https://a.b/cde"], 20);
    buffer.set_style(Rect::new(8, 0, 3, 1), Modifier::REVERSED);
    lay(&find(&buffer, buffer.area, &[]), &mut buffer);
    let width = |x: u16| match buffer[(x, 0)].diff_option {
        CellDiffOption::ForcedWidth(width) => width.get(),
        _ => 0,
    };
    assert_eq!([width(0), width(8), width(11)], [8, 3, 4]);
    assert!(buffer[(8, 0)].modifier.contains(Modifier::REVERSED));
    assert_eq!(drawn(&buffer), ["{https://a.b/cde}(https://a.b/cde)"]);
}

#[test]
fn broken_rows_know_how_they_go_on() {
    let joined = |text: &str, width: u16| {
        let mut blocks = Blocks::new(Form::Markdown, width, Theme::default());
        blocks.upto(text);
        let rows: Vec<Row> = blocks.iter().cloned().collect();
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, rows.len() as u16));
        for (y, row) in rows.iter().enumerate() {
            buffer.set_line(0, y as u16, &row.line, width);
        }
        let links = find(&buffer, buffer.area, &joints(&rows));
        links.into_iter().map(|link| link.url).collect::<Vec<_>>()
    };
    let url = "https://example.org/a/long/path";
    for width in 8..50 {
        for text in [
            format!("see {url} and more"),
            format!("> see {url}, and\n> more"),
            format!("- one\n- {url} two\n\nthree"),
            format!("```sh\ncurl {url} --flag\nnext\n```\nend"),
        ] {
            let found = joined(&text, width);
            assert!(
                found.is_empty() || found == [url],
                "{width} {text}: {found:?}"
            );
            // A wrapped address is found too, unless its end is uncertain.
            if width > 12 && !text.starts_with("```") {
                assert_eq!(found, [url], "{width} {text}");
            }
        }
    }
}

#[test]
fn what_follows_a_link_stands_at_its_place() {
    let mut bytes = Vec::new();
    let area = Rect::new(0, 0, 20, 1);
    let options = TerminalOptions {
        viewport: Viewport::Fixed(area),
    };
    let mut terminal = Terminal::with_options(CrosstermBackend::new(&mut bytes), options).unwrap();
    let draw = |frame: &mut ratatui::Frame<'_>| {
        let buffer = frame.buffer_mut();
        buffer.set_string(0, 0, "https://a.b x", Style::new());
        let links = find(buffer, area, &[]);
        lay(&links, buffer);
    };
    terminal.draw(draw).unwrap();
    drop(terminal);
    let sent = String::from_utf8(bytes).unwrap();
    let link = linked("https://a.b", "https://a.b");
    let (_, after) = sent.split_once(&link).unwrap();
    assert!(after.starts_with("\x1b[1;13Hx"), "{after:?}");
}

/// Rows with addresses, words and wide characters.
fn any_row() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("https://a.b/c".to_owned()),
        Just("https://a.b/d".to_owned()),
        "[ ./abc漢]{0,6}",
        Just(" ".to_owned()),
    ];
    proptest::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn any_joint() -> impl Strategy<Value = Joint> {
    prop_oneof![
        Just(Joint::Apart),
        (0..30_u16).prop_map(Joint::Joined),
        Just(Joint::Unknown)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_link_outlives_its_address(
        frames in proptest::collection::vec(
            (proptest::collection::vec((any_row(), any_joint()), 4), 0..24_u16, any_row(), any::<bool>()),
            1..6,
        ),
    ) {
        let area = Rect::new(0, 0, 24, 4);
        let mut before = Buffer::empty(area);
        let mut model = Model::new(area);
        for (rows, x, cover, underlined) in frames {
            let (texts, joints): (Vec<String>, Vec<Joint>) = rows.into_iter().unzip();
            let mut after = screen(&texts.iter().map(String::as_str).collect::<Vec<_>>(), 24);
            if underlined {
                after.set_style(Rect::new(x, 0, 24 - x, 4), Modifier::UNDERLINED);
            }
            let links = find(&after, area, &joints);
            clear(&mut after, Rect::new(x, 1, 24 - x, 1));
            after.set_stringn(x, 1, cover, usize::from(24 - x), Style::new());
            lay(&links, &mut after);
            model.print(&before, &after);
            let mut fresh = Model::new(area);
            fresh.print(&Buffer::empty(area), &after);
            prop_assert_eq!(model.shown(), fresh.shown());
            before = after;
        }
    }

    #[test]
    fn no_size_breaks_it(
        columns in 0..6_u16, rows in proptest::collection::vec(any_row(), 0..4),
        area in any::<(u8, u8, u8, u8)>(), joints in proptest::collection::vec(any_joint(), 0..6),
    ) {
        let mut buffer = screen(&rows.iter().map(String::as_str).collect::<Vec<_>>(), columns * 5);
        let area = Rect::new(area.0.into(), area.1.into(), area.2.into(), area.3.into());
        for area in [buffer.area, area] {
            let links = find(&buffer, area, &joints);
            lay(&links, &mut buffer);
            lay(&links, &mut Buffer::empty(Rect::new(0, 0, 3, 1)));
        }
    }
}
