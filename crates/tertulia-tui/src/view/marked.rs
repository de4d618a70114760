//! Draws a search snippet with highlighted matches.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use tertulia_core::search_text::Snippet;

use super::brush::write;
use crate::theme::Theme;

/// Draws a snippet with its highlights in one row and returns the rest of the row.
pub fn draw_marked(
    snippet: &Snippet,
    theme: Theme,
    style: Style,
    area: Rect,
    buffer: &mut Buffer,
) -> Rect {
    let (mut left, mut done) = (area, 0);
    for mark in &snippet.marks {
        // Skips a range that does not fit the text.
        let (Some(plain), Some(hit)) = (
            snippet.text.get(done..mark.start),
            snippet.text.get(mark.clone()),
        ) else {
            continue;
        };
        left = write(buffer, left, plain, style);
        left = write(buffer, left, hit, style.patch(theme.found()));
        done = mark.end;
    }
    write(
        buffer,
        left,
        snippet.text.get(done..).unwrap_or_default(),
        style,
    )
}
