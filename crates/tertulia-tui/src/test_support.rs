//! Helpers for TUI tests: keys by name, sessions by number, and screens as text.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tertulia_core::entry::{Speaker, SpeakerKind};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Hit, Row};
use tertulia_core::search_text::SearchTerms;
use tertulia_core::session::{SessionMeta, Spoke};

use super::item::{Item, Said, What};
use super::theme::{Palette, Theme};
use super::view::brush::Look;

/// Start time of every test.
pub fn noon() -> Timestamp {
    "2026-11-01T12:00:00Z".parse().unwrap()
}

/// Start time on the monotonic clock.
pub fn tick() -> std::time::Instant {
    std::time::Instant::now()
}

/// `milliseconds` after the start time.
pub fn later(milliseconds: i64) -> Timestamp {
    noon() + SignedDuration::from_millis(milliseconds)
}

/// `minutes` before the start time.
pub fn before(minutes: i64) -> Timestamp {
    noon() - SignedDuration::from_mins(minutes)
}

/// Theme and time of tests: no colours, at noon.
pub fn look() -> Look {
    Look {
        theme: Theme::new(Palette::Plain),
        now: noon(),
    }
}

/// A key by name: `x`, `enter`, `^r`.
pub fn key(name: &str) -> KeyEvent {
    if let Some(letter) = name.strip_prefix('^') {
        let letter = letter.chars().next().unwrap();
        return KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    }
    KeyEvent::from(match name {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "backtab" => KeyCode::BackTab,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "pgup" => KeyCode::PageUp,
        "pgdn" => KeyCode::PageDown,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "backspace" => KeyCode::Backspace,
        "space" => KeyCode::Char(' '),
        "f1" => KeyCode::F(1),
        letter => KeyCode::Char(letter.chars().next().unwrap()),
    })
}

/// Any key.
pub fn any_key() -> impl Strategy<Value = KeyEvent> {
    const NAMES: &[&str] = &[
        "enter",
        "esc",
        "tab",
        "up",
        "down",
        "left",
        "right",
        "pgup",
        "pgdn",
        "home",
        "end",
        "backspace",
        "space",
        "f1",
        "^r",
        "^t",
        "^f",
        "^x",
        "^e",
        "^u",
        "^w",
        "^n",
        "^p",
        "a",
        "n",
        "y",
        "r",
        "c",
        "漢",
        "\u{301}",
        "👩",
        "#",
        "-",
        "\"",
    ];
    proptest::sample::select(NAMES).prop_map(key)
}

/// Id of a session by number.
pub fn id(number: u64) -> SessionId {
    let id = format!(
        "01936f5e-6c5a-7b3a-9d2f-{:012x}",
        number * 0x1_0001 + 0xa000_0000
    );
    id.parse().unwrap()
}

/// A session: number, title, and minutes since its last message.
pub fn session(number: u64, title: &str, minutes: i64) -> Row {
    let mut meta = SessionMeta::blank(id(number));
    meta.title = (!title.is_empty()).then(|| title.to_owned());
    meta.messages = if title.is_empty() { 0 } else { 2 + number };
    meta.model = Some("demo-1".to_owned());
    meta.project = Some("git:github.com/ann/parser".to_owned());
    meta.updated_at = before(minutes);
    meta.created_at = before(minutes + 5);
    Row { meta, open: false }
}

/// A speaker of a team.
pub fn spoke(name: &str) -> Spoke {
    let plain = Speaker::plain(name, SpeakerKind::Ai);
    Spoke {
        id: plain.id,
        name: plain.name,
        display_name: plain.display_name,
        kind: plain.kind,
        messages: 1,
        tokens: Default::default(),
        model: None,
    }
}

/// A message.
pub fn said(seq: u64, name: &str, kind: SpeakerKind, minutes: i64, text: &str) -> Item {
    Item {
        seq: Some(Seq(seq)),
        what: What::Said(Said {
            speaker: Speaker::plain(name, kind),
            to: Vec::new(),
            at: Some(before(minutes)),
            model: None,
            text: text.to_owned(),
            interrupted: false,
            streaming: false,
        }),
    }
}

/// A search hit.
pub fn hit(session: u64, title: &str, seq: u64, minutes: i64, (words, text): (&str, &str)) -> Hit {
    let words = SearchTerms::parse(words).unwrap();
    Hit {
        session: id(session),
        title: Some(title.to_owned()),
        seq: Seq(seq),
        speaker: Some(Speaker::plain("Ann", SpeakerKind::Human)),
        at: before(minutes),
        snippet: words.snippet(text, 120),
        score: 1.0,
    }
}

/// Draws a view at a size and returns the screen as text; `▏` marks the cursor.
pub fn screen(
    (columns, lines): (u16, u16),
    draw: impl FnOnce(Rect, &mut Buffer) -> Option<Position>,
) -> String {
    let area = Rect::new(0, 0, columns, lines);
    let mut buffer = Buffer::empty(area);
    let cursor = draw(area, &mut buffer);
    let mut out = String::new();
    for y in 0..lines {
        let mut line = String::new();
        let mut hidden = 0;
        for x in 0..columns {
            let symbol = buffer[(x, y)].symbol();
            if cursor == Some(Position::new(x, y)) {
                line.push('▏');
            }
            // A wide character covers the next cell.
            if hidden == 0 {
                line.push_str(symbol);
                hidden = crate::text::width(symbol).saturating_sub(1);
            } else {
                hidden -= 1;
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Sizes to test, including very small ones.
pub fn any_size() -> impl Strategy<Value = (u16, u16)> {
    prop_oneof![
        (0..4_u16, 0..4_u16),
        (0..40_u16, 0..14_u16),
        Just((80, 24)),
        Just((130, 40)),
    ]
}
