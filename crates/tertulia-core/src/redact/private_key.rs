//! Private keys (PEM, OpenSSH, PGP): the only secrets that span lines.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::Ending;

/// Kind of private keys.
pub(super) const KIND: &str = "private-key";

pub(super) static KEY_BOUNDARY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"-{4,5} ?(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}").ok()
});

/// Recognisable part of a truncated key: headers and long base64 lines.
pub(super) static CUT_OFF_KEY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"\A(?:(?:\s|\\[nr]|["'+,|>])*"#,
        r"(?:(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]{1,100}|[A-Za-z0-9+/=]{24,}))+"
    ))
    .ok()
});

/// Returns the ranges of all private keys, in order and without overlaps.
pub(super) fn blocks(text: &str, ending: Ending) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    if !text.contains("PRIVATE KEY") {
        return blocks;
    }
    let (Some(boundary), Some(cut_off)) = (KEY_BOUNDARY.as_ref(), CUT_OFF_KEY.as_ref()) else {
        return blocks;
    };
    let mut boundaries = boundary.find_iter(text).peekable();
    while let Some(opening) = boundaries.next() {
        if !opening.as_str().contains("BEGIN") {
            continue;
        }
        let rest = &text[opening.end()..];
        let end = match boundaries.peek() {
            Some(closing) if closing.as_str().contains("END") => {
                let body = &text[opening.end()..closing.start()];
                is_key_body(body).then_some(closing.end())
            }
            None if ending == Ending::Streaming => Some(text.len()),
            _ => cut_off
                .find(rest)
                .filter(|body| has_long_base64(body.as_str()))
                .map(|body| opening.end() + body.end()),
        };
        if let Some(end) = end {
            blocks.push(opening.start()..end);
        }
    }
    blocks
}

/// Returns false for code that only mentions the two boundary lines: it has quotes between them,
/// but no key.
fn is_key_body(body: &str) -> bool {
    let lines = body.replace("\\r", "").replace("\\n", "\n");
    let is_block = lines.trim_start_matches('\r').starts_with('\n');
    let is_code = lines.contains(['"', '\'', '`']);
    let has_content = lines.bytes().any(|b| b.is_ascii_alphanumeric());
    (is_block && !is_code && has_content) || has_long_base64(body)
}

fn has_long_base64(body: &str) -> bool {
    body.split(|c: char| !(c.is_ascii_alphanumeric() || "+/=".contains(c)))
        .any(|run| run.len() >= 24)
}
