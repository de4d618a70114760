//! Renders a screen as SVG, with every character in its column for any font.

use std::fmt::Write as _;

use super::{Screen, Size};

/// Width of a column.
const WIDTH: u32 = 9;
/// Height of a row.
const HEIGHT: u32 = 19;
/// Baseline within a row, from its top.
const BASELINE: u32 = 14;
const FONT: u32 = 15;
/// Margin around the text.
const MARGIN: u32 = 14;
/// Height of the title bar.
const BAR: u32 = 32;

const BACKGROUND: &str = "#1b1e25";
const FOREGROUND: &str = "#d5d9e0";
const FRAME: &str = "#2a2e38";
const TITLE: &str = "#9aa2b1";

/// The sixteen ANSI colours.
const SIXTEEN: [&str; 16] = [
    "#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4",
    "#7f848e", "#f0878f", "#b1d196", "#efd49c", "#84c3f7", "#d79bea", "#7fcdd6", "#ffffff",
];

/// Renders the screen in a window frame.
pub fn svg(screen: Screen<'_>, title: &str) -> String {
    let Size { columns, rows } = screen.size();
    let width = u32::from(columns) * WIDTH + 2 * MARGIN;
    let height = u32::from(rows) * HEIGHT + 2 * MARGIN + BAR;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n\
         <title>{label}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"{BACKGROUND}\"/>\n\
         <path d=\"M0 {BAR}V10a10 10 0 0 1 10-10H{right}a10 10 0 0 1 10 10V{BAR}z\" fill=\"{FRAME}\"/>\n",
        label = escaped(title),
        right = width - 10,
    );
    for (place, colour) in ["#e06c75", "#e5c07b", "#98c379"].iter().enumerate() {
        let x = 20 + 20 * place;
        let _ = writeln!(
            picture,
            "<circle cx=\"{x}\" cy=\"16\" r=\"6\" fill=\"{colour}\"/>"
        );
    }
    let _ = write!(
        picture,
        "<g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace\" \
         font-size=\"{FONT}\" xml:space=\"preserve\">\n\
         <text x=\"{middle}\" y=\"21\" text-anchor=\"middle\" font-size=\"13\" fill=\"{TITLE}\">{label}</text>\n",
        middle = width / 2,
        label = escaped(title),
    );
    for row in 0..rows {
        draw_row(&mut picture, screen, row);
    }
    picture.push_str("</g>\n</svg>\n");
    picture
}

/// Style of a cell.
#[derive(Clone, PartialEq, Eq)]
struct Look {
    ink: String,
    paper: Option<String>,
    dim: bool,
    bold: bool,
    italic: bool,
    underline: bool,
}

impl Look {
    fn of(cell: &vt100::Cell, is_cursor: bool) -> Look {
        let ink = colour(cell.fgcolor());
        let paper = colour(cell.bgcolor());
        let turned = cell.inverse() != is_cursor;
        let (ink, paper) = if turned {
            let paper = paper.unwrap_or_else(|| BACKGROUND.into());
            (paper, Some(ink.unwrap_or_else(|| FOREGROUND.into())))
        } else {
            (ink.unwrap_or_else(|| FOREGROUND.into()), paper)
        };
        Look {
            ink,
            paper,
            dim: cell.dim(),
            bold: cell.bold(),
            italic: cell.italic(),
            underline: cell.underline(),
        }
    }

    fn attributes(&self) -> String {
        let mut text = format!("fill=\"{}\"", self.ink);
        for (is_so, attribute) in [
            (self.dim, " fill-opacity=\"0.6\""),
            (self.bold, " font-weight=\"bold\""),
            (self.italic, " font-style=\"italic\""),
            (self.underline, " text-decoration=\"underline\""),
        ] {
            if is_so {
                text.push_str(attribute);
            }
        }
        text
    }
}

/// Adjacent cells of the same style.
struct Run {
    column: u16,
    columns: u16,
    look: Look,
    text: String,
}

fn draw_row(picture: &mut String, screen: Screen<'_>, row: u16) {
    let runs = runs(screen, row);
    let y = BAR + MARGIN + u32::from(row) * HEIGHT;
    for run in &runs {
        if let Some(paper) = &run.look.paper {
            let (x, width) = (left(run.column), u32::from(run.columns) * WIDTH);
            let _ = writeln!(
                picture,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" fill=\"{paper}\"/>"
            );
        }
    }
    for run in &runs {
        draw_run(picture, run, y);
    }
}

fn left(column: u16) -> u32 {
    MARGIN + u32::from(column) * WIDTH
}

/// Splits a row where the style changes, and around every character whose width may differ between
/// fonts.
fn runs(screen: Screen<'_>, row: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut joins = false;
    for column in 0..screen.size().columns {
        let Some(cell) = screen.inner().cell(row, column) else {
            continue;
        };
        if cell.is_wide_continuation() {
            continue;
        }
        let text = if cell.has_contents() {
            cell.contents()
        } else {
            " "
        };
        let look = Look::of(cell, screen.cursor() == Some((row, column)));
        let is_even = text.is_ascii();
        let columns = if cell.is_wide() { 2 } else { 1 };
        match runs.last_mut() {
            Some(run) if joins && is_even && run.look == look => {
                run.columns += columns;
                run.text.push_str(text);
            }
            _ => runs.push(Run {
                column,
                columns,
                look,
                text: text.to_owned(),
            }),
        }
        joins = is_even;
    }
    runs
}

fn draw_run(picture: &mut String, run: &Run, y: u32) {
    if let Some(drawn) = drawn(&run.text, left(run.column), y) {
        let _ = writeln!(picture, "{}", drawn.replace("INK", &run.look.ink));
        return;
    }
    let trimmed = run.text.trim_end();
    let text = if run.look.underline {
        &run.text
    } else {
        trimmed
    };
    let blanks = text.len() - text.trim_start().len();
    let text = &text[blanks..];
    if text.is_empty() {
        return;
    }
    // A single character is positioned by `x`; a longer run is also fixed in its width.
    let held = match text.chars().count() {
        1 => String::new(),
        _ if !text.is_ascii() => String::new(),
        letters => format!(
            " textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"",
            letters as u32 * WIDTH
        ),
    };
    let _ = writeln!(
        picture,
        "<text x=\"{}\" y=\"{}\"{held} {}>{}</text>",
        left(run.column) + blanks as u32 * WIDTH,
        y + BASELINE,
        run.look.attributes(),
        // Browsers join several blanks to one, and stretch the rest to the width of the run.
        escaped(text).replace("  ", "\u{a0}\u{a0}")
    );
}

/// Draws lines and blocks as shapes, without the gaps that fonts leave between rows.
fn drawn(text: &str, x: u32, y: u32) -> Option<String> {
    let mut letters = text.chars();
    let letter = letters.next().filter(|_| letters.next().is_none())?;
    let (middle, centre) = (x + WIDTH / 2, y + HEIGHT / 2);
    let (right, bottom) = (x + WIDTH, y + HEIGHT);
    let block = |x: u32, y: u32, width: u32, height: u32| {
        format!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"INK\"/>")
    };
    let path = match letter {
        '─' | '╌' | '┄' => format!("M{x} {centre}H{right}"),
        '│' | '┆' | '┊' => format!("M{middle} {y}V{bottom}"),
        '┌' => format!("M{right} {centre}H{middle}V{bottom}"),
        '┐' => format!("M{x} {centre}H{middle}V{bottom}"),
        '└' => format!("M{right} {centre}H{middle}V{y}"),
        '┘' => format!("M{x} {centre}H{middle}V{y}"),
        '╭' => format!("M{right} {centre}Q{middle} {centre} {middle} {bottom}"),
        '╮' => format!("M{x} {centre}Q{middle} {centre} {middle} {bottom}"),
        '╰' => format!("M{right} {centre}Q{middle} {centre} {middle} {y}"),
        '╯' => format!("M{x} {centre}Q{middle} {centre} {middle} {y}"),
        '├' => format!("M{middle} {y}V{bottom}M{middle} {centre}H{right}"),
        '┤' => format!("M{middle} {y}V{bottom}M{middle} {centre}H{x}"),
        '┬' => format!("M{x} {centre}H{right}M{middle} {centre}V{bottom}"),
        '┴' => format!("M{x} {centre}H{right}M{middle} {centre}V{y}"),
        '┼' => format!("M{x} {centre}H{right}M{middle} {y}V{bottom}"),
        '█' => return Some(block(x, y, WIDTH, HEIGHT)),
        '▌' => return Some(block(x, y, WIDTH / 2, HEIGHT)),
        '▏' | '▎' => return Some(block(x, y, 2, HEIGHT)),
        '▀' => return Some(block(x, y, WIDTH, HEIGHT / 2)),
        '▁'..='▇' => {
            let height = HEIGHT * (u32::from(letter) - u32::from('▁') + 1) / 8;
            return Some(block(x, bottom - height, WIDTH, height));
        }
        _ => return None,
    };
    Some(format!("<path d=\"{path}\" fill=\"none\" stroke=\"INK\"/>"))
}

fn colour(colour: vt100::Color) -> Option<String> {
    match colour {
        vt100::Color::Default => None,
        vt100::Color::Idx(number @ 0..16) => Some(SIXTEEN[usize::from(number)].to_owned()),
        vt100::Color::Idx(number @ 16..232) => {
            let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
            let number = number - 16;
            let (red, green, blue) = (step(number / 36), step(number / 6 % 6), step(number % 6));
            Some(format!("#{red:02x}{green:02x}{blue:02x}"))
        }
        vt100::Color::Idx(number) => {
            let grey = 8 + 10 * (number - 232);
            Some(format!("#{grey:02x}{grey:02x}{grey:02x}"))
        }
        vt100::Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

/// Escapes a text for XML, which allows no control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use quick_xml::events::Event;

    use super::super::screen::Emulator;
    use super::*;

    fn picture(text: &str) -> String {
        let mut emulator = Emulator::new(Size::new(20, 3));
        emulator.process(text.as_bytes());
        svg(emulator.screen(), "a & b")
    }

    /// Parses a picture and returns each text with its attributes.
    fn texts(picture: &str) -> Vec<(String, BTreeMap<String, String>)> {
        let mut reader = quick_xml::Reader::from_str(picture);
        reader.config_mut().check_comments = true;
        let mut found = Vec::new();
        let mut open = Vec::new();
        loop {
            match reader.read_event().unwrap() {
                Event::Start(start) => {
                    let attributes = start.attributes().map(|attribute| {
                        let attribute = attribute.unwrap();
                        let key = attribute.key.as_ref().to_owned();
                        (key, attribute.value.into_owned())
                    });
                    open.push((String::new(), attributes.collect()));
                }
                Event::Empty(empty) => assert!(empty.attributes().all(|one| one.is_ok())),
                Event::Text(text) => {
                    let text: &str = text.as_ref();
                    assert!(!text.contains(['<', '>', '&']), "{text}");
                    open.last_mut()
                        .unwrap_or(&mut Default::default())
                        .0
                        .push_str(text);
                }
                Event::GeneralRef(name) => {
                    let name: &str = name.as_ref();
                    let letter =
                        BTreeMap::from([("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"')])
                            [name];
                    open.last_mut().unwrap().0.push(letter);
                }
                Event::End(_) => found.push(open.pop().unwrap()),
                Event::Eof => break,
                other => panic!("{other:?}"),
            }
        }
        assert!(open.is_empty());
        found
    }

    #[test]
    fn a_picture_is_well_formed_and_has_every_character_in_its_place() {
        let picture =
            picture("a<b>&\"c'\x1b[2;3H世x界\x1b[1;31mred\x1b[0;7mback\x1b[3;1H\x1b[2mdim┌─┐");
        let texts = texts(&picture);
        let place = |words: &str| {
            let (_, attributes) = texts.iter().find(|(text, _)| text == words).unwrap();
            attributes
        };
        let titles = texts.iter().filter(|(text, _)| text == "a & b");
        assert_eq!(titles.count(), 2, "the title and the bar");
        let x = |words| place(words)["x"].parse::<u32>().unwrap();
        assert_eq!(x("a<b>&\"c'"), MARGIN);
        assert_eq!(place("a<b>&\"c'")["textLength"], (8 * WIDTH).to_string());
        assert_eq!((x("世"), x("x"), x("界")), (left(2), left(4), left(5)));
        assert_eq!((x("red"), x("back")), (left(7), left(10)));
        assert_eq!(place("red")["fill"], SIXTEEN[1]);
        assert_eq!(place("red")["font-weight"], "bold");
        assert_eq!(place("back")["fill"], BACKGROUND);
        assert_eq!(place("dim")["fill-opacity"], "0.6");
        assert_eq!(
            picture.matches("<path d=\"M").count(),
            4,
            "the bar and three lines"
        );
    }

    #[test]
    fn the_picture_of_the_readme_is_well_formed() {
        let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/screen.svg");
        let texts = texts(&std::fs::read_to_string(readme).unwrap());
        assert!(texts.iter().any(|(text, _)| text == "plan a bird table"));
    }

    #[test]
    fn colours_are_those_of_a_terminal() {
        let told = |number| colour(vt100::Color::Idx(number)).unwrap();
        assert_eq!((told(16), told(231)), ("#000000".into(), "#ffffff".into()));
        assert_eq!((told(196), told(244)), ("#ff0000".into(), "#808080".into()));
        assert_eq!(colour(vt100::Color::Rgb(1, 2, 255)).unwrap(), "#0102ff");
    }
}
