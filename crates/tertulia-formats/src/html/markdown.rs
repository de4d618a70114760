//! Renders Markdown of a message. Raw HTML stays text, and links lead only to the web and to mail.

use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd,
    html,
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
        table: Table::default(),
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
    table: Table,
}

/// The table that is being read, where cells are aligned by a class.
#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    in_head: bool,
    /// Number of the next cell of the row.
    column: usize,
}

impl Table {
    fn cell(&mut self) -> String {
        let tag = if self.in_head { "th" } else { "td" };
        let alignment = self.alignments.get(self.column);
        self.column += 1;
        match alignment {
            Some(Alignment::Left) => format!("<{tag} class=\"left\">"),
            Some(Alignment::Center) => format!("<{tag} class=\"center\">"),
            Some(Alignment::Right) => format!("<{tag} class=\"right\">"),
            Some(Alignment::None) | None => format!("<{tag}>"),
        }
    }
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
        if !self.painter.allows_styles()
            && let Some(event) = self.aligned(&event)
        {
            return vec![event];
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

    /// Aligns the cells of a table by classes instead of styles.
    fn aligned<'a>(&mut self, event: &Event<'a>) -> Option<Event<'a>> {
        match event {
            Event::Start(Tag::Table(alignments)) => {
                self.table.alignments.clone_from(alignments);
                let none = vec![Alignment::None; alignments.len()];
                return Some(Event::Start(Tag::Table(none)));
            }
            Event::Start(Tag::TableHead) => (self.table.in_head, self.table.column) = (true, 0),
            Event::End(TagEnd::TableHead) => self.table.in_head = false,
            Event::Start(Tag::TableRow) => self.table.column = 0,
            Event::Start(Tag::TableCell) => return Some(Event::Html(self.table.cell().into())),
            _ => {}
        }
        None
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
