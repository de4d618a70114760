//! Tests of pages: what they show, and that text of a session never becomes markup.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use serde_json::json;
use tertulia_core::entry::{Body, Compacted, Kind, Message, ToolOutcome};
use tertulia_core::id::Seq;
use tertulia_core::session::Damage;

use super::*;
use crate::exporter::Listed;
use crate::exporter::tests::sample::{self, Sample, agent, call, result, user};
use code::Painter;
use markdown::Lines;

fn page_of(sample: &Sample) -> String {
    page(&sample.meta, &sample.log, &TimeZone::UTC)
}

fn rendered(text: &str) -> String {
    markdown::render(text, Lines::Flow, &mut Painter::new())
}

/// The page without its style sheet, whose changes are not worth a review.
fn body(page: &str) -> String {
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    format!("{head}<style/>{rest}")
}

#[test]
fn a_chat_as_a_page() {
    insta::assert_snapshot!(body(&page_of(&sample::chat())));
}

#[test]
fn a_team_as_a_page() {
    insta::assert_snapshot!(body(&page_of(&sample::team())));
}

#[test]
fn every_entry_that_is_shown_has_an_anchor() {
    let sample = sample::chat();
    let page = page_of(&sample);
    let last = sample.log.entries.len();
    for seq in 2..=last {
        let id = format!("id=\"e{seq}\"");
        assert_eq!(page.matches(&id).count(), 1, "{id}");
    }
    // Links of the page lead to anchors in it.
    for link in page.split("href=\"#").skip(1) {
        let target = link.split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{target}\"")), "{target}");
    }
}

#[test]
fn a_page_needs_nothing_else_and_runs_nothing() {
    let page = page_of(&sample::chat());
    for outside in [
        "<script", "<link", "src=", "url(", "@import", "<iframe", "<img",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("@media print"));
}

#[test]
fn html_in_a_message_stays_text() {
    let check = |text: &str, expected: &str| assert_eq!(rendered(text), expected);
    check(
        "a <script>alert(1)</script> b",
        "<p>a &lt;script&gt;alert(1)&lt;/script&gt; b</p>\n",
    );
    check(
        "<div onclick=\"x()\">\nb\n</div>",
        "<p class=\"raw\">&lt;div onclick=\"x()\"&gt;\nb\n&lt;/div&gt;</p>\n",
    );
    check("`<b>`", "<p><code>&lt;b&gt;</code></p>\n");
    check(
        "```\n</code><script>\n```",
        "<pre><code>&lt;/code&gt;&lt;script&gt;</code></pre>\n",
    );
    check(
        "```a\"onload=\"x\nb\n```",
        "<pre data-language=\"a&quot;onload=&quot;x\"><code>b</code></pre>\n",
    );
    check("# a", "<h3>a</h3>\n");
}

#[test]
fn links_lead_to_the_web_only() {
    let check =
        |text: &str, expected: &str| assert_eq!(rendered(text), format!("<p>{expected}</p>\n"));
    check(
        "[a](https://x.org/?a=1&b=\"2\")",
        "<a href=\"https://x.org/?a=1&amp;b=&quot;2&quot;\" rel=\"noopener noreferrer\">a</a>",
    );
    for address in [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "&#106;avascript:alert(1)",
        "vbscript:x",
        "data:text/html,x",
        "file:///etc/passwd",
        "//x.org",
    ] {
        let html = rendered(&format!("[a]({address})"));
        assert!(!html.contains("href"), "{html}");
        assert!(html.contains(">a</span>"), "{html}");
    }
    check(
        "![pic](https://x.org/p.png)",
        "<a href=\"https://x.org/p.png\" rel=\"noopener noreferrer\">pic</a>",
    );
    check(
        "<a@x.org>",
        "<a href=\"mailto:a@x.org\" rel=\"noopener noreferrer\">a@x.org</a>",
    );
}

#[test]
fn people_keep_their_lines() {
    let kept = markdown::render("a\nb", Lines::Keep, &mut Painter::new());
    assert_eq!(kept, "<p>a<br />\nb</p>\n");
    assert_eq!(rendered("a\nb"), "<p>a\nb</p>\n");
}

#[test]
fn a_diff_is_coloured_by_its_signs() {
    let html = Painter::new().block("diff", "@@ -1 @@\n-<a>\n+b\n c");
    assert_eq!(
        html,
        "<pre data-language=\"diff\"><code><span class=\"c\">@@ -1 @@</span>\n\
         <span class=\"del\">-&lt;a&gt;</span>\n<span class=\"ins\">+b</span>\n c</code></pre>\n"
    );
}

#[cfg(feature = "highlight")]
#[test]
fn code_is_highlighted_and_keeps_its_text() {
    let code = "// why\nlet a = \"<b>\"; // & 漢\n";
    let html = Painter::new().block("rust", code);
    assert!(
        html.contains("<span class=\"c\">// why\n</span><span class=\"k\">let</span>"),
        "{html}"
    );
    for (language, code) in [
        ("rust", code),
        ("json", "{\"a\": [1, null]}"),
        ("sh", "ls | x && y"),
    ] {
        let html = Painter::new().block(language, code);
        assert!(html.contains("<span"), "{html}");
        assert_eq!(text_of(&html).trim(), code.trim());
    }
    let unknown = Painter::new().block("klingon", "let a = 1;");
    assert!(!unknown.contains("<span"));
    let long = Painter::new().block("rust", &"let a = 1;\n".repeat(10_000));
    assert!(!long.contains("<span"));
    let line = format!("let a = 1;\nlet b = \"{}\";\nlet c = 2;", "x".repeat(3_000));
    let html = Painter::new().block("rust", &line);
    assert_eq!(text_of(&html).trim(), line);
}

/// Returns the text of HTML that has only elements and the entities that `escape` writes.
#[cfg(feature = "highlight")]
fn text_of(html: &str) -> String {
    let mut text = String::new();
    for part in html.split('<').skip(1) {
        text.push_str(part.split_once('>').unwrap().1);
    }
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(text, |text, (entity, c)| text.replace(entity, c))
}

#[test]
fn calls_without_results_and_results_without_calls_are_shown() {
    let asking = Message {
        tool_calls: vec![
            call("1", "shell", json!({ "command": "ls <x>" })),
            call("2", "odd", json!([1, "<i>"])),
            call("3", "none", json!(null)),
        ],
        ..agent("claude", "")
    };
    let sample = sample::session(
        Kind::Chat,
        vec![
            Body::Message(asking),
            Body::Message(result("shell", "1", "<out>", ToolOutcome::Failed)),
            Body::Message(result("lonely", "9", "alone", ToolOutcome::Ok)),
        ],
    );
    let page = page_of(&sample);
    assert_eq!(page.matches("no result was recorded").count(), 2);
    assert!(page.contains("its call is not in this export") && page.contains("alone"));
    assert!(page.contains("class=\"tool failed\"") && page.contains("&lt;out&gt;"));
    assert!(!page.contains("<i>") && !page.contains("<x>"));
}

#[test]
fn damage_and_summaries_are_shown() {
    let mut sample = sample::session(
        Kind::Chat,
        vec![
            Body::Message(user("one")),
            Body::Compacted(Compacted {
                upto: Seq(2),
                summary: "It was *about* one.".into(),
                agent: "claude".into(),
                model: None,
                usage: None,
                thread: None,
            }),
        ],
    );
    sample.log.damage.push(Damage {
        session: sample.meta.id,
        seq: Seq(4),
        reason: "it is <missing>".into(),
    });
    let page = page_of(&sample);
    assert!(page.contains("entry 4: it is &lt;missing&gt;"));
    assert!(page.contains("It was <em>about</em> one."));
}

#[test]
fn the_index_links_each_session() {
    let mut sample = sample::chat();
    sample.meta.title = Some("a|b <i> [x](y)".into());
    let listed = [Listed {
        meta: &sample.meta,
        file: "2026 a&b.html",
    }];
    let page = index(&listed, &TimeZone::UTC);
    assert!(
        page.contains("<a href=\"2026%20a%26b.html\">a|b &lt;i&gt; [x](y)</a>"),
        "{page}"
    );
    assert!(page.contains("/home/ana/parser") && is_export(&page));
    let text = crate::markdown::index(&listed, &TimeZone::UTC);
    insta::assert_snapshot!(text);
    assert!(crate::markdown::is_index(&text));
}

#[test]
fn long_texts_are_shortened_to_one_line() {
    let check = |text: &str, expected: &str| assert_eq!(shortened(text, 10), expected);
    check("a  b\nc", "a b c");
    check("exactly 10", "exactly 10");
    check("exactly 10 and more", "exactly 10…");
    check("漢字漢字漢字漢字漢字漢字", "漢字漢字漢字漢字漢字…");
    assert_eq!(grouped(1_234_567).replace('\u{202f}', " "), "1 234 567");
    assert_eq!(grouped(12), "12");
}

/// Elements that a rendered text may have.
const KNOWN: &[&str] = &[
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "input",
    "li",
    "ol",
    "p",
    "pre",
    "span",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];

proptest! {
    /// Whatever a text contains, it is rendered to known elements without handlers.
    #[test]
    fn no_text_becomes_markup(text in "[-<>/=\"'`~#*_!|\\[\\]()a-cjs:&;\\\\ \n\t]{0,60}|(<script>|</p>|<img src=x onerror=a>|\\[a\\]\\(javascript:b\\)|```\n|\n\n|    ){0,8}") {
        for lines in [Lines::Flow, Lines::Keep] {
            let html = markdown::render(&text, lines, &mut Painter::new());
            for tag in html.split('<').skip(1) {
                let tag = tag.split('>').next().unwrap();
                let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
                prop_assert!(KNOWN.contains(&name), "{} in {}", name, html);
                let attributes = tag.split_once(' ').map_or("", |(_, rest)| rest);
                let unquoted: String = attributes.split('"').step_by(2).collect();
                prop_assert!(!unquoted.contains("on") || name == "input", "{} in {}", tag, html);
                prop_assert!(!tag.contains("href=\"j"), "{}", html);
            }
        }
    }
}

#[test]
fn the_web_page_gets_one_element_per_entry() {
    let sample = sample::chat();
    let parts = fragments(Kind::Chat, &sample.log, &TimeZone::UTC);
    let page = page_of(&sample);
    for part in &parts {
        let begins = part.html.starts_with("<article class=\"entry ");
        assert!(begins && part.html.ends_with("</article>\n"), "{part:?}");
        let id = format!("id=\"e{}\"", part.seq);
        assert_eq!(part.html.matches(&id).count(), 1, "{}", part.html);
        assert!(part.last >= part.seq && page.contains(&id));
        for wrong in ["<script", " style=", " onclick", "<img", "<style"] {
            assert!(!part.html.contains(wrong), "{wrong} in {}", part.html);
        }
    }
    // Entries that are shown in others have no element of their own.
    assert!(parts.iter().any(|part| part.last > part.seq));
    assert!(parts.iter().any(|part| part.text.is_some()));
}

#[test]
fn texts_for_the_web_page_have_classes_only() {
    assert_eq!(
        text("|a|b|c|\n|:-|:-:|-:|\n|<b>|2|3|"),
        "<table><thead><tr><th class=\"left\">a</th><th class=\"center\">b</th>\
         <th class=\"right\">c</th></tr></thead><tbody>\n<tr><td class=\"left\">&lt;b&gt;</td>\
         <td class=\"center\">2</td><td class=\"right\">3</td></tr>\n</tbody></table>\n"
    );
    // The exported page has a style sheet in itself, and keeps its styles.
    assert!(rendered("|a|\n|-:|\n|1|").contains("style="));
    for attack in [
        "<script>alert(1)</script>",
        "[a](javascript:alert(1))",
        "<svg onload=alert(1)>",
        "![x](data:image/svg+xml,<svg onload=alert(1)>)",
    ] {
        let html = text(attack);
        assert!(!html.contains("<script") && !html.contains("<svg") && !html.contains("href=\"j"));
        assert!(!html.contains("<img"), "{html}");
    }
    assert_eq!(
        text("a\u{202e}b [x](https://a/\u{2066})"),
        "<p>a[U+202E]b <a href=\"https://a/[U+2066]\" rel=\"noopener noreferrer\">x</a></p>\n"
    );
}

#[test]
fn previews_are_diffs_or_commands() {
    assert!(preview("--- a\n+++ b\n@@ -1 @@\n-x\n+y").contains("class=\"ins\""));
    let command = preview("rm -rf <x>");
    assert!(!command.contains("<x>") && command.contains("data-language=\"bash\""));
}
