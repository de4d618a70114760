//! Extracts completed code blocks from a stream of text. The text itself stays unchanged.

/// A code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Language after the opening fence, if any.
    pub language: Option<String>,
    /// Content between the fences, each line with its line feed.
    pub text: String,
}

impl Block {
    /// Returns `diff` or `code`: clients show a diff differently.
    pub fn kind(&self) -> &'static str {
        match self.language.as_deref() {
            Some("diff" | "patch") => "diff",
            _ => "code",
        }
    }
}

/// Incremental parser of a text stream.
#[derive(Debug, Default)]
pub struct Blocks {
    /// The incomplete last line.
    line: String,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    fence: char,
    length: usize,
    /// Indentation of the fence, which is removed from the lines of the block.
    indent: usize,
    block: Block,
}

impl Blocks {
    /// Parses more text and returns the blocks that it completes.
    pub fn push(&mut self, text: &str) -> Vec<Block> {
        let mut done = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                done.extend(self.take(&line));
            }
        }
        done
    }

    /// Ends the stream and returns the block whose fence was never closed, if any.
    pub fn finish(&mut self) -> Option<Block> {
        let line = std::mem::take(&mut self.line);
        let closed = match line.is_empty() {
            true => None,
            false => self.take(&line),
        };
        closed.or_else(|| self.open.take().map(|open| open.block))
    }

    fn take(&mut self, line: &str) -> Option<Block> {
        let Some(open) = &mut self.open else {
            self.open = opening(line);
            return None;
        };
        if open.is_closed_by(line) {
            return self.open.take().map(|open| open.block);
        }
        let indent = line.len() - line.trim_start_matches(' ').len();
        open.block.text.push_str(&line[indent.min(open.indent)..]);
        None
    }
}

impl Open {
    fn is_closed_by(&self, line: &str) -> bool {
        let Some((_, rest)) =
            fence_of(line, Some(self.fence)).filter(|(fence, _)| fence.1 >= self.length)
        else {
            return false;
        };
        rest.trim().is_empty()
    }
}

/// Parses the fence at the start of a line: character, length and indentation; and the rest of the
/// line.
fn fence_of(line: &str, wanted: Option<char>) -> Option<((char, usize, usize), &str)> {
    let body = line.trim_start_matches(' ');
    let indent = line.len() - body.len();
    let fence = body.chars().next().filter(|first| match wanted {
        Some(wanted) => *first == wanted,
        None => ['`', '~'].contains(first),
    })?;
    let rest = body.trim_start_matches(fence);
    let length = body.len() - rest.len();
    (length >= 3 && indent <= 12).then_some(((fence, length, indent), rest))
}

fn opening(line: &str) -> Option<Open> {
    let ((fence, length, indent), rest) = fence_of(line, None)?;
    // Backticks later in the line: this is inline code.
    if fence == '`' && rest.contains('`') {
        return None;
    }
    let language = rest.split_whitespace().next().map(str::to_owned);
    Some(Open {
        fence,
        length,
        indent,
        block: Block {
            language,
            text: String::new(),
        },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks(parts: &[&str]) -> Vec<(Option<String>, String)> {
        let mut blocks = Blocks::default();
        let mut all: Vec<Block> = parts.iter().flat_map(|part| blocks.push(part)).collect();
        all.extend(blocks.finish());
        all.into_iter().map(|b| (b.language, b.text)).collect()
    }

    fn check(text: &str, expected: &[(Option<&str>, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(language, text)| (language.map(str::to_owned), (*text).to_owned()))
            .collect();
        assert_eq!(blocks(&[text]), expected, "{text}");
    }

    #[test]
    fn blocks_end_with_a_fence_of_their_own() {
        check(
            "a\n```rust\nfn x() {}\n\n```\nb",
            &[(Some("rust"), "fn x() {}\n\n")],
        );
        check("````\n```\nx\n```\n````", &[(None, "```\nx\n```\n")]);
        check("~~~sh title=x\n```\n~~~\n", &[(Some("sh"), "```\n")]);
        check(
            "1. so:\n   ```py\n   if x:\n       y\n   ```\n",
            &[(Some("py"), "if x:\n    y\n")],
        );
        check("```a```\nno block\n``\n", &[]);
        check("```\ncut off", &[(None, "cut off")]);
        check("```\n```x\n```", &[(None, "```x\n")]);
    }

    #[test]
    fn a_diff_is_one() {
        let mut blocks = Blocks::default();
        let done = blocks.push("```diff\n+a\n```\n");
        assert_eq!(done[0].kind(), "diff");
    }

    proptest! {
        /// The blocks do not depend on how the text is split.
        #[test]
        fn pieces_make_no_difference(parts in prop::collection::vec("[`~a \n]{0,5}", 0..14)) {
            let whole = parts.concat();
            let pieces: Vec<&str> = parts.iter().map(String::as_str).collect();
            prop_assert_eq!(blocks(&pieces), blocks(&[&whole]));
        }
    }
}
