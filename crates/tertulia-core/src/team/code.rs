//! Finds the code in a text by the rules of CommonMark: fenced and indented blocks, also in quotes
//! and lists, and code spans. Markers inside code are not markers.

#[cfg(test)]
mod tests;

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// A part of a text that is code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Byte range, including fences or backticks. A block has whole lines.
    pub range: Range<usize>,
    /// True for a block (fenced or indented), false for a code span.
    pub fenced: bool,
}

/// Returns all code in a text, in order, without overlaps. Runs in linear time.
pub fn code(text: &str) -> Vec<Code> {
    // Tags and links have no meaning here: code inside of them, which agents write, is code too.
    let plain = text.replace(['<', '['], "\u{1}");
    let mut found: Vec<Code> = Vec::new();
    // True once there is plain text. Indented lines before it are not treated as code.
    let mut begun = false;
    let mut in_block = false;
    for (event, range) in Parser::new(&plain).into_offset_iter() {
        let range = match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                in_block = true;
                if kind == CodeBlockKind::Indented && !begun {
                    continue;
                }
                whole_lines(text, range)
            }
            Event::End(TagEnd::CodeBlock) => {
                in_block = false;
                continue;
            }
            Event::Code(_) => {
                begun = true;
                range
            }
            Event::Text(_) => {
                begun |= !in_block;
                continue;
            }
            _ => continue,
        };
        let start = found.last().map_or(0, |code| code.range.end);
        found.push(Code {
            range: range.start.max(start)..range.end,
            fenced: in_block,
        });
    }
    found
}

/// Extends a range to the beginning of its first line and the end of its last one.
fn whole_lines(text: &str, range: Range<usize>) -> Range<usize> {
    let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let rest = match text[range.clone()].ends_with('\n') {
        true => 0,
        false => text[range.end..]
            .find('\n')
            .map_or(text.len() - range.end, |at| at + 1),
    };
    start..range.end + rest
}
