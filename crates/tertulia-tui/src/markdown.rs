//! Renders markdown as rows, all at once or while it is streaming in.
//!
//! A text is split into top-level blocks, and each is rendered on its own, which makes streaming
//! cheap: everything before the last block is final. Therefore a block does not know the link
//! definitions of other blocks; these are shown as written, like all markup without a rendering of
//! its own.

mod blocks;
mod code;
mod render;
mod table;

use ratatui::style::Style;

use super::theme::Theme;
use crate::text::wrap::{Breaks, Margin, Piece, Row, restyle, rows};
pub use blocks::Blocks;

/// Format of a text.
#[derive(Clone, Debug)]
pub enum Form {
    /// Markdown.
    Markdown,
    /// Plain text, line by line.
    Plain {
        /// Style of the text.
        style: Style,
        /// Left margin.
        margin: Margin,
        /// Whether to colour its lines as a diff.
        diff: bool,
    },
}

/// Finds redaction marks in a text: `[redacted:KIND]`.
fn redacted(text: &str) -> Vec<std::ops::Range<usize>> {
    const MARK: &str = "[redacted:";
    text.match_indices(MARK)
        .filter_map(|(start, _)| {
            let kind = &text[start + MARK.len()..];
            let length = kind.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')?;
            let closed = length > 0 && kind[length..].starts_with(']');
            closed.then_some(start..start + MARK.len() + length + 1)
        })
        .collect()
}

/// Wraps one line of text into rows and highlights redaction marks.
fn marked_rows(
    pieces: Vec<Piece<'_>>,
    margin: &Margin,
    width: usize,
    breaks: Breaks,
    theme: Theme,
    out: &mut Vec<Row>,
) {
    let pieces = restyle(pieces, redacted, theme.redacted());
    rows(&pieces, margin, width, breaks, out);
}

#[cfg(test)]
mod tests;
