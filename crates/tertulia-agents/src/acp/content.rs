//! Renders the content of an agent's messages and tools as text.

use serde_json::Value;
use tertulia_core::text_diff::TextDiff;

/// Maximum number of bytes kept of a tool's output.
const OUTPUT_LIMIT: usize = 64 * 1024;

/// Renders a content block of a message.
pub(super) fn block(block: &Value) -> String {
    let word = |key: &str| block[key].as_str().unwrap_or_default();
    match word("type") {
        "text" => word("text").to_owned(),
        "resource_link" => match word("title") {
            "" => word("uri").to_owned(),
            title => format!("{title} <{}>", word("uri")),
        },
        "resource" => match block["resource"]["text"].as_str() {
            Some(text) => text.to_owned(),
            None => format!(
                "[{}]",
                block["resource"]["uri"].as_str().unwrap_or("resource")
            ),
        },
        "" => String::new(),
        // Pictures and sounds cannot be shown; a placeholder names them.
        other => format!("[{other}]"),
    }
}

/// Renders a tool's content: texts and diffs, in order.
pub(super) fn of_tool(content: &Value) -> String {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let shown: Vec<String> = parts
        .iter()
        .map(|part| match part["type"].as_str() {
            Some("content") => block(&part["content"]),
            Some("diff") => diff(part),
            _ => String::new(),
        })
        .filter(|text| !text.is_empty())
        .collect();
    shown.join("\n")
}

fn diff(part: &Value) -> String {
    let word = |key: &str| part[key].as_str().unwrap_or_default();
    let (old, new) = (word("oldText"), word("newText"));
    let unified = TextDiff::of_lines(old, new, None).unified(None);
    format!("{}\n{unified}", word("path")).trim_end().to_owned()
}

/// Cuts long output at a character boundary, with a mark that says how much is missing.
pub(super) fn cut(mut text: String) -> String {
    if text.len() <= OUTPUT_LIMIT {
        return text;
    }
    let mut at = OUTPUT_LIMIT;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let missing = text.len() - at;
    text.truncate(at);
    text.push_str(&format!("\n[cut here: {missing} more bytes]"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn blocks_become_words() {
        assert_eq!(block(&json!({"type": "text", "text": "hola"})), "hola");
        assert_eq!(block(&json!({"type": "image", "data": "x"})), "[image]");
        assert_eq!(
            block(&json!({"type": "resource_link", "uri": "file:///a", "title": "A"})),
            "A <file:///a>"
        );
        assert_eq!(block(&json!(null)), "");
    }

    #[test]
    fn a_diff_shows_what_changes() {
        let shown = of_tool(&json!([
            {"type": "content", "content": {"type": "text", "text": "look"}},
            {"type": "diff", "path": "a.txt", "oldText": "one\ntwo\n", "newText": "one\n2\n"},
            {"type": "terminal", "terminalId": "t"},
        ]));
        assert!(shown.starts_with("look\na.txt\n"), "{shown}");
        assert!(shown.contains("\n-two\n+2"), "{shown}");
        let added =
            of_tool(&json!([{"type": "diff", "path": "n", "oldText": null, "newText": "x"}]));
        assert!(added.ends_with("+x"), "{added}");
    }

    #[test]
    fn long_output_is_cut_between_characters() {
        let text = cut("ż".repeat(OUTPUT_LIMIT));
        assert!(text.len() < OUTPUT_LIMIT + 100);
        assert!(
            text.ends_with("ż\n[cut here: 65536 more bytes]"),
            "{}",
            &text[text.len() - 40..]
        );
        assert_eq!(cut("short".into()), "short");
    }
}
