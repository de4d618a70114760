//! Renders Markdown of a message. Raw HTML stays text, and links lead only to the web and to mail.

use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html,
};

use super::code::Painter;
use super::escape;

/// Beginnings of addresses that a link may have.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// How the ends of lines are rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// As Markdown does: they separate words.
    Flow,
    /// As written, for people who type text and not Markdown.
    Keep,
}

/// Renders a text.
pub(super) fn render(text: &str, lines: Lines, painter: &mut Painter) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut safe = Safe {
        lines,
        painter,
        code: None,
        links: Vec::new(),
    };
    let events = Parser::new_ext(text, options).flat_map(|event| safe.event(event));
    let mut rendered = String::with_capacity(text.len() * 2);
    html::push_html(&mut rendered, events);
    rendered
}

/// Replaces events that could be more than text.
struct Safe<'p> {
    lines: Lines,
    painter: &'p mut Painter,
    /// Language and text of the code block that is being read.
    code: Option<(String, String)>,
    /// For each open link or image, whether it is kept.
    links: Vec<bool>,
}

impl Safe<'_> {
    fn event<'a>(&mut self, event: Event<'a>) -> Vec<Event<'a>> {
        if let Some((_, code)) = &mut self.code {
            match event {
                Event::Text(text) => {
                    code.push_str(&text);
                    return Vec::new();
                }
                Event::End(TagEnd::CodeBlock) => {}
                _ => return Vec::new(),
            }
        }
        match event {
            Event::Html(text) | Event::InlineHtml(text) => vec![Event::Text(text)],
            Event::Start(Tag::HtmlBlock) => vec![Event::Html("<p class=\"raw\">".into())],
            Event::End(TagEnd::HtmlBlock) => vec![Event::Html("</p>\n".into())],
            Event::SoftBreak if self.lines == Lines::Keep => vec![Event::HardBreak],
            Event::Start(Tag::Heading { level, .. }) => vec![Event::Start(Tag::Heading {
                level: deeper(level),
                id: None,
                classes: Vec::new(),
                attrs: Vec::new(),
            })],
            Event::End(TagEnd::Heading(level)) => vec![Event::End(TagEnd::Heading(deeper(level)))],
            Event::Start(Tag::CodeBlock(kind)) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info,
                    CodeBlockKind::Indented => CowStr::Borrowed(""),
                };
                let word = info.split(|c: char| c.is_whitespace() || c == ',' || c == '{');
                let language = word.into_iter().next().unwrap_or_default();
                self.code = Some((language.to_owned(), String::new()));
                Vec::new()
            }
            Event::End(TagEnd::CodeBlock) => {
                let (language, code) = self.code.take().unwrap_or_default();
                vec![Event::Html(self.painter.block(&language, &code).into())]
            }
            Event::Start(
                Tag::Link {
                    link_type,
                    dest_url,
                    ..
                }
                | Tag::Image {
                    link_type,
                    dest_url,
                    ..
                },
            ) => vec![self.link(link_type, &dest_url)],
            Event::End(TagEnd::Link | TagEnd::Image) => {
                let end = match self.links.pop() {
                    Some(true) => "</a>",
                    _ => "</span>",
                };
                vec![Event::Html(end.into())]
            }
            other => vec![other],
        }
    }

    /// Returns the beginning of a link. An image is a link, too: a page that loads images tells
    /// their servers who reads it.
    fn link<'a>(&mut self, kind: LinkType, address: &str) -> Event<'a> {
        let address = match kind {
            LinkType::Email => format!("mailto:{address}"),
            _ => address.to_owned(),
        };
        let lower = address.trim().to_ascii_lowercase();
        let is_safe = SCHEMES.iter().any(|scheme| lower.starts_with(scheme));
        self.links.push(is_safe);
        let address = escape(&address);
        Event::Html(
            match is_safe {
                true => format!("<a href=\"{address}\" rel=\"noopener noreferrer\">"),
                false => format!("<span class=\"target\" title=\"{address}\">"),
            }
            .into(),
        )
    }
}

/// Headings of a message stand below those of the page.
fn deeper(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}
