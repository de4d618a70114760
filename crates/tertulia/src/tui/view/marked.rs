//! A piece of text with the words that were searched for.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use tertulia_core::search_text::Snippet;

use super::brush::write;
use crate::tui::theme::Theme;

/// Draws a snippet in one row, with its marks. What is left of the row.
pub fn draw_marked(
    snippet: &Snippet,
    theme: Theme,
    style: Style,
    area: Rect,
    buffer: &mut Buffer,
) -> Rect {
    let (mut left, mut done) = (area, 0);
    for mark in &snippet.marks {
        // A range that does not fit the text is passed over.
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
