//! Draws the start card of a session without messages: the program, the folder, who answers, and the
//! session that could be resumed instead.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use tertulia_core::entry::Kind;
use tertulia_engine::text::ago;

use super::brush::{Look, counted, write};
use crate::geometry::row;
use crate::state::State;
use crate::text::{cut, fold, width};

/// Minimum legible width of a title.
const LEAST_TITLE: usize = 8;

/// A line of the card.
struct Line {
    text: String,
    style: Style,
    /// Importance: on a small screen, the lowest are dropped first.
    weight: u8,
}

/// Columns left of the text, as in a transcript.
const GUTTER: u16 = 2;

/// Draws the card.
pub fn draw(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let gutter = GUTTER.min(area.width / 10);
    let area = Rect {
        x: area.x + gutter,
        width: area.width - gutter,
        ..area
    };
    let columns = usize::from(area.width).max(1);
    let mut lines = lines(state, look, columns);
    let rows = |line: &Line| fold(&line.text, columns, usize::MAX).0;
    let height = |lines: &[Line]| lines.iter().map(|line| rows(line).len()).sum::<usize>();
    while height(&lines) > usize::from(area.height) && lines.len() > 1 {
        let least = lines.iter().map(|line| line.weight).min();
        let last = lines.iter().rposition(|line| Some(line.weight) == least);
        lines.remove(last.unwrap_or_default());
    }
    let rows = lines
        .iter()
        .flat_map(|line| rows(line).into_iter().map(|text| (text, line.style)));
    for (number, (text, style)) in rows.enumerate() {
        write(buffer, row(area, number), &text, style);
    }
}

fn lines(state: &State, look: Look, columns: usize) -> Vec<Line> {
    let (info, theme) = (&state.info, look.theme);
    let mut lines = Vec::new();
    let mut add = |weight: u8, style: Style, text: String| {
        lines.push(Line {
            text,
            style,
            weight,
        });
    };
    let program = format!("tertulia {}", state.version);
    let program = program.trim_end();
    add(4, theme.strong(), format!("{program} · {}", info.folder));
    add(1, theme.text(), String::new());
    add(6, theme.text(), who(state));
    if let Some(last) = state.offered() {
        add(5, theme.text(), offer(last, look, columns));
    }
    if info.is_remote {
        let words = "A server runs this session: it goes on when you detach (Ctrl+\\).";
        add(3, theme.text(), words.to_owned());
    }
    add(1, theme.text(), String::new());
    let keys = "Enter sends · Alt+Enter new line · Esc stops an answer · F1 all keys";
    add(2, theme.dim(), keys.to_owned());
    let commands = match info.kind {
        Kind::Team => "/sessions earlier sessions · /help commands · @name first asks that member",
        Kind::Chat | Kind::Pair => "/sessions earlier sessions · /help commands · @ names a file",
    };
    add(2, theme.dim(), commands.to_owned());
    let (weight, saved) = match (info.ephemeral, &state.meta) {
        (true, _) => (5, "Nothing of this session is saved."),
        (false, Some(meta)) if meta.seal.is_some() => (
            3,
            "Every word is encrypted and saved before it is answered.",
        ),
        (false, _) => (0, "Every word is saved before it is answered."),
    };
    let style = match info.ephemeral {
        true => theme.warning(),
        false => theme.dim(),
    };
    add(weight, style, saved.to_owned());
    lines
}

/// Says who answers.
fn who(state: &State) -> String {
    let info = &state.info;
    if !info.introduction.is_empty() {
        return info.introduction.clone();
    }
    // Of a session on a server nothing more is known until it is open.
    match (&info.model, state.has_begun) {
        (Some(model), _) => format!("{} answers ({model}).", info.agent),
        (None, true) => format!("{} answers.", info.agent),
        (None, false) => "…".to_owned(),
    }
}

/// Offers to resume the last session; its title takes the room that is left.
fn offer(last: &tertulia_core::session::SessionMeta, look: Look, columns: usize) -> String {
    let facts = format!(
        "({}, {})",
        ago(last.updated_at, look.now),
        counted(last.messages, "message")
    );
    let rest = format!("Last session: \"\" {facts}: Enter resumes it.");
    let room = columns.saturating_sub(width(&rest)).max(LEAST_TITLE);
    let title = cut(last.title_or_untitled(), room);
    format!("Last session: \"{title}\" {facts}: Enter resumes it.")
}
