//! Text as agents write it, on a screen: markdown as rows, at once or while it is still being written.
//!
//! A text is cut into its outermost blocks, and each is drawn by itself. That is what makes an answer that grows cheap: what
//! came before its last block never changes again. So a block does not know link definitions of other blocks; these are
//! shown as they are written, like everything that has no look of its own.

mod blocks;
mod code;
mod render;
mod table;

use ratatui::style::Style;

use super::theme::Theme;
use super::wrap::{Breaks, Margin, Piece, Row, restyle, rows};
pub use blocks::Blocks;

/// How a text is to be read.
#[derive(Clone, Debug)]
pub enum Form {
    /// As markdown.
    Markdown,
    /// As it is, line by line.
    Plain {
        /// How it looks.
        style: Style,
        /// What stands left of it.
        margin: Margin,
        /// Whether its lines are those of a diff.
        diff: bool,
    },
}

/// Where secrets stood in a text: `[redacted:KIND]`.
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

/// One line of text as rows, with what was redacted in it marked.
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
