//! The difference of two sessions as one page of HTML: no script, nothing from elsewhere.

use std::fmt::Write as _;

use tertulia_core::diff::words::{WordOp, Words, words};
use tertulia_core::diff::{Common, Item, Scope, SideBySide};
use tertulia_core::entry::Message;
use tertulia_core::session::SessionMeta;

use super::{Compared, counts};

const STYLE: &str = "
:root { color-scheme: light dark; --text: #1f2328; --dim: #59636e; --page: #fff; --line: #d1d9e0;
  --del: #ffebe9; --ins: #dafbe1; --del-word: #ffc1bc; --ins-word: #aceebb; --changed: #fff8c5; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --dim: #9198a1; --page: #0d1117; --line: #3d444d;
  --del: #2d1517; --ins: #12261e; --del-word: #7d2529; --ins-word: #1b6133; --changed: #272115; } }
body { margin: 2rem auto; max-width: 90rem; padding: 0 1rem; color: var(--text); background: var(--page);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin-bottom: 0.2rem; }
.dim { color: var(--dim); font-size: 0.85rem; }
table { width: 100%; border-collapse: collapse; table-layout: fixed; margin-top: 1rem; }
th, td { width: 50%; text-align: left; vertical-align: top; padding: 0.4rem 0.7rem; border: 1px solid var(--line); }
pre { margin: 0.2rem 0 0; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext;
  font: 0.85rem/1.45 ui-monospace, monospace; }
td.del { background: var(--del); } td.ins { background: var(--ins); } td.changed { background: var(--changed); }
td.equal { text-align: center; }
del, ins { text-decoration: none; border-radius: 2px; }
del { background: var(--del-word); text-decoration: line-through; } ins { background: var(--ins-word); }
";

/// Returns the page.
pub fn page(compared: &Compared<'_>) -> String {
    let titles = [compared.a, compared.b].map(|meta| escaped(meta.title_or_untitled()));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{} / {}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>Difference of two sessions</h1>\n",
        titles[0], titles[1]
    );
    // Writing to a string cannot fail.
    let _ = writeln!(page, "<p class=\"dim\">{}</p>", summary(compared));
    page.push_str("<table>\n<thead><tr>");
    for meta in [compared.a, compared.b] {
        page.push_str(&heading(meta));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in compared.comparison.rows() {
        page.push_str("<tr>");
        page.push_str(&match row {
            SideBySide::Equal(count) => equal(count, compared.comparison.scope),
            SideBySide::Only(a, b) => cell("del", a) + &cell("ins", b),
            SideBySide::Changed(a, b) => changed(a, b),
        });
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table>\n</body>\n</html>\n");
    page
}

fn summary(compared: &Compared<'_>) -> String {
    let shared = match compared.common() {
        Common::Ancestor => format!("Both have entries 1 to {}.", compared.shared),
        Common::Alignment => "No common entry: aligned by content.".to_owned(),
        Common::None => "Nothing in common.".to_owned(),
    };
    format!("{shared} {}", counts(compared.comparison))
}

fn heading(meta: &SessionMeta) -> String {
    format!(
        "<th>{}<div class=\"dim\">{} · {} · {} messages</div></th>",
        escaped(meta.title_or_untitled()),
        meta.id,
        meta.kind.name(),
        meta.messages
    )
}

fn equal(count: usize, scope: Scope) -> String {
    let items = scope.items(count);
    format!("<td class=\"equal dim\" colspan=\"2\">{count} equal {items}</td>")
}

fn cell(class: &str, item: Option<&Item<'_>>) -> String {
    match item {
        None => "<td></td>".to_owned(),
        Some(item) => with_text(class, item, &escaped(&item.text())),
    }
}

fn changed(a: &Item<'_>, b: &Item<'_>) -> String {
    let (text_a, text_b) = (a.text(), b.text());
    let parts = words(&text_a, &text_b);
    with_text("changed", a, &marked(&parts, WordOp::Delete, "del"))
        + &with_text("changed", b, &marked(&parts, WordOp::Insert, "ins"))
}

/// Returns one of the two texts, with the words that the other lacks in an element.
fn marked(parts: &[Words<'_>], own: WordOp, element: &str) -> String {
    let mut text = String::new();
    for part in parts {
        let content = escaped(part.text);
        match part.op {
            WordOp::Equal => text.push_str(&content),
            op if op == own => {
                let _ = write!(text, "<{element}>{content}</{element}>");
            }
            _ => {}
        }
    }
    text
}

fn with_text(class: &str, item: &Item<'_>, text: &str) -> String {
    let mut facts = format!("{} · {}", item.entry.seq, item.entry.at);
    if let Some(model) = &item.message.model {
        let _ = write!(facts, " · {}", escaped(model));
    }
    let result = item.result.map_or(item.message, |(_, result)| result);
    if let Some(outcome) = Message::tool_outcome(result) {
        let _ = write!(facts, " · {}", outcome.name());
    }
    format!(
        "<td class=\"{class}\"><strong>{}</strong> <span class=\"dim\">{facts}</span><pre>{text}</pre></td>",
        escaped(&item.message.speaker.display_name)
    )
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Control characters are not allowed in a page.
            c if c.is_control() && c != '\n' && c != '\t' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_becomes_markup() {
        assert_eq!(
            escaped("<script>'a' & \"b\"</script>\u{1b}\n"),
            "&lt;script&gt;&#39;a&#39; &amp; &quot;b&quot;&lt;/script&gt;\u{fffd}\n"
        );
    }

    #[test]
    fn each_side_has_its_own_words() {
        let parts = words("use <tabs> here", "use spaces here");
        assert_eq!(
            marked(&parts, WordOp::Delete, "del"),
            "use <del>&lt;tabs&gt;</del> here"
        );
        assert_eq!(
            marked(&parts, WordOp::Insert, "ins"),
            "use <ins>spaces</ins> here"
        );
    }
}
