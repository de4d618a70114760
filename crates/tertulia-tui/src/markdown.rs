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

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use ratatui::style::Style;

use super::links;
use super::theme::Theme;
use crate::text::wrap::{Breaks, Margin, Piece, Row, restyle, rows};
pub use blocks::Blocks;
pub(crate) use code::pieces;

/// Maximum width of prose: longer lines are hard to read.
pub const PROSE: usize = 100;

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
        /// Maximum width.
        widest: usize,
    },
}

/// Finds redaction marks in a text: `[redacted:KIND]`.
fn redacted(text: &str) -> Vec<Range<usize>> {
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

/// Finds the code blocks of a markdown text: their source ranges, and their code without fences.
pub fn code_blocks(text: &str) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (event, range) in Parser::new_ext(text, blocks::options()).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => {
                inside = true;
                found.push((range, String::new()));
            }
            Event::End(TagEnd::CodeBlock) => inside = false,
            Event::Text(part) if inside => {
                if let Some((_, code)) = found.last_mut() {
                    code.push_str(&part);
                }
            }
            _ => {}
        }
    }
    found
}

/// Wraps one line of text into rows and highlights redaction marks, and addresses unless it is code.
fn marked_rows(
    pieces: Vec<Piece<'_>>,
    margin: &Margin,
    width: usize,
    breaks: Breaks,
    theme: Theme,
    out: &mut Vec<Row>,
) {
    let mut pieces = restyle(pieces, redacted, theme.redacted());
    if breaks == Breaks::Words {
        pieces = restyle(pieces, links::addresses, theme.link());
    }
    rows(&pieces, margin, width, breaks, out);
}

#[cfg(test)]
mod tests;
