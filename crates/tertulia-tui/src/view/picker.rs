//! Draws the session list.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use tertulia_core::id::SessionId;
use tertulia_engine::text::ago;
use tertulia_engine::text::grouped;
use unicode_segmentation::UnicodeSegmentation;

use super::brush::{Look, counted, hints, rule, write, write_right};
use super::marked::draw_marked;
use super::preview::draw_end;
use crate::geometry::{ListAreas, ROW_LINES, list_areas, row, rows};
use crate::one_line::OneLine;
use crate::picker::content_hits::ContentHit;
use crate::picker::fuzzy::FuzzyFilter;
use crate::picker::session_item::SessionItem;
use crate::picker::{Chosen, Mode, Picker, Scope};
use crate::text::cut;
use crate::theme::Theme;

/// Draws the session list and returns the cursor position.
pub fn draw(picker: &Picker, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let areas = list_areas(area, picker.panes());
    let theme = look.theme;
    draw_head(picker, theme, areas.head, buffer);
    let left = write(buffer, areas.query, "> ", theme.heading());
    let mut cursor = draw_line(picker.query(), "type to search", theme, left, buffer);
    if let Some(inside) = draw_rows(picker, look, areas.list, buffer) {
        cursor = Some(inside);
    }
    if let Some(preview) = picker.shown_preview() {
        rule(buffer, areas.second, theme);
        let inside = rows(areas.second, 1, usize::from(areas.second.height));
        match (preview.of, picker.chosen().map(Chosen::id)) {
            (Some(of), Some(chosen)) if of == chosen => {
                draw_end(&preview.items, look, inside, buffer);
            }
            (_, Some(_)) => {
                write(buffer, inside, "…", theme.dim());
            }
            _ => {}
        }
    }
    draw_foot(picker, theme, areas, buffer);
    if let Mode::Trash(id, title) = picker.mode() {
        return draw_question(*id, title, theme, areas.keys, buffer);
    }
    cursor
}

fn draw_head(picker: &Picker, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let (read, all) = picker.read();
    let plus = |more: bool| if more { "+" } else { "" };
    let len = picker.len() as u64;
    let mut count = match (picker.query().is_empty(), picker.matching()) {
        (true, Some(sessions)) => counted(sessions, "session"),
        (true, None) => format!("{}+ sessions", grouped(len)),
        (false, matching) => {
            let matching_words = grouped(matching.unwrap_or(len));
            let (more_hits, more) = (plus(matching.is_none()), plus(!all));
            format!(
                "{matching_words}{more_hits} of {}{more}",
                grouped(read as u64)
            )
        }
    };
    if picker.is_reading() {
        count.push_str(" …");
    }
    if picker.pending() > 0 {
        let pending = grouped(picker.pending());
        count.push_str(&format!(", {pending} messages not indexed yet"));
    }
    let left = write_right(buffer, area, &count, theme.dim());
    let scope = match picker.scope() {
        Scope::Here => "Sessions of this project",
        Scope::All => "All sessions",
    };
    write(buffer, left, scope, theme.heading());
}

/// Draws a one-line field, or its placeholder while it is empty, and returns the cursor position.
pub fn draw_line(
    line: &OneLine,
    placeholder: &str,
    theme: Theme,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    let area = row(area, 0).intersection(buffer.area);
    if area.is_empty() {
        return None;
    }
    let (text, column) = line.seen(area.width);
    if line.is_empty() {
        write(buffer, area, placeholder, theme.dim());
    } else {
        write(buffer, area, text, theme.text());
    }
    Some(Position::new(area.x + column, area.y))
}

/// Draws the rows and returns the cursor position if one of them is being edited.
fn draw_rows(picker: &Picker, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let theme = look.theme;
    if picker.len() == 0 {
        let words = match (picker.is_reading(), picker.query().is_empty()) {
            (true, _) => "",
            (false, true) => "No sessions here.",
            (false, false) => "Nothing fits.",
        };
        write(buffer, area, words, theme.dim());
        return None;
    }
    let seen = (usize::from(area.height) / ROW_LINES).max(1);
    let (chosen, top) = picker.places(seen);
    let mut fuzzy =
        (!picker.query().is_empty()).then(|| FuzzyFilter::new(picker.query().text(), false));
    let mut cursor = None;
    for place in top..(top + seen).min(picker.len()) {
        let Some(shown) = picker.row(place) else {
            break;
        };
        let area = rows(area, (place - top) * ROW_LINES, ROW_LINES);
        let is_chosen = place == chosen;
        match (picker.mode(), is_chosen) {
            (Mode::Rename(_, line), true) => {
                let left = draw_mark(theme, true, row(area, 0), buffer);
                let left = write(buffer, left, "title: ", theme.heading());
                cursor = draw_line(line, "a title", theme, left, buffer);
            }
            _ => draw_title(shown, fuzzy.as_mut(), theme, is_chosen, area, buffer),
        }
        match (picker.mode(), is_chosen) {
            (Mode::Tag(_, line), true) => {
                let left = write(buffer, row(area, 1), "  tags: ", theme.heading());
                let tags: Vec<String> = picker.chosen_tags().iter().map(hash).collect();
                let has = match tags.is_empty() {
                    true => "+add -remove".to_owned(),
                    false => format!("+add -remove   (has {})", tags.join(" ")),
                };
                cursor = draw_line(line, &has, theme, left, buffer);
            }
            _ => draw_facts(shown, picker.scope(), look, row(area, 1), buffer),
        }
    }
    cursor
}

fn draw_mark(theme: Theme, is_chosen: bool, area: Rect, buffer: &mut Buffer) -> Rect {
    let mark = if is_chosen { "› " } else { "  " };
    write(buffer, area, mark, theme.heading())
}

fn draw_title(
    shown: Chosen<'_>,
    fuzzy: Option<&mut FuzzyFilter>,
    theme: Theme,
    is_chosen: bool,
    area: Rect,
    buffer: &mut Buffer,
) {
    let area = row(area, 0).intersection(buffer.area);
    let left = draw_mark(theme, is_chosen, area, buffer);
    let left = write_right(buffer, left, &shown.id().short(), theme.dim());
    let (title, is_open) = match shown {
        Chosen::SessionItem(item) => (item.title_or_untitled(), item.open),
        Chosen::ContentHit(content_hit) => {
            (content_hit.title.as_deref().unwrap_or("(untitled)"), false)
        }
    };
    let left = match is_open {
        true => write_right(buffer, left, "(open)", theme.warning()),
        false => left,
    };
    let marks = fuzzy.map(|fuzzy| fuzzy.marks(title)).unwrap_or_default();
    let title = cut(title, usize::from(left.width));
    let mut rest = left;
    for (number, letter) in title.graphemes(true).enumerate() {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let style = match marks.binary_search(&number) {
            Ok(_) => theme.found(),
            Err(_) => theme.strong(),
        };
        rest = write(buffer, rest, letter, style);
    }
    if is_chosen {
        buffer.set_style(area, theme.chosen());
    }
}

fn draw_facts(shown: Chosen<'_>, scope: Scope, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let left = write(buffer, area, "  ", theme.dim());
    match shown {
        Chosen::SessionItem(item) => {
            write(buffer, left, &facts(item, scope, look), theme.dim());
        }
        Chosen::ContentHit(content_hit) => {
            let left = write(buffer, left, &source(content_hit, look), theme.dim());
            draw_marked(&content_hit.snippet, theme, Style::new(), left, buffer);
        }
    }
}

fn facts(item: &SessionItem, scope: Scope, look: Look) -> String {
    let mut facts = vec![
        ago(item.updated_at, look.now),
        counted(item.messages, "message"),
        item.kind.name().to_owned(),
    ];
    facts.push(item.with.clone());
    // In the list of one project, every row would repeat it.
    if scope == Scope::All {
        facts.push(item.project_name().to_owned());
    }
    facts.push(item.tags.iter().map(hash).collect::<Vec<_>>().join(" "));
    facts.retain(|fact| !fact.is_empty());
    facts.join(" · ")
}

fn source(content_hit: &ContentHit, look: Look) -> String {
    let who = content_hit.speaker.as_deref().unwrap_or("title");
    let more = match content_hit.more {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    format!("{who}, {}{more}: ", ago(content_hit.at, look.now))
}

fn hash(tag: &String) -> String {
    format!("#{tag}")
}

fn draw_foot(picker: &Picker, theme: Theme, areas: ListAreas, buffer: &mut Buffer) {
    match picker.note() {
        Some(note) => write(buffer, areas.notes, note, theme.warning()),
        None => write(buffer, areas.notes, &hidden(picker), theme.dim()),
    };
    let keys: &[(&str, &str)] = match picker.mode() {
        Mode::Browse => &browsing(picker),
        Mode::Rename(..) | Mode::Tag(..) => &[("Enter", "save"), ("Esc", "cancel")],
        Mode::Trash(..) => &[],
    };
    hints(buffer, areas.keys, theme, keys);
}

fn browsing(picker: &Picker) -> Vec<(&'static str, &'static str)> {
    let mut keys = vec![("Enter", "resume")];
    keys.push(match picker.space_previews() {
        true => ("Space", "preview"),
        false => ("^V", "preview"),
    });
    keys.push(match picker.scope() {
        Scope::Here => ("Tab", "all"),
        Scope::All => ("Tab", "project"),
    });
    keys.extend([
        ("^R", "name"),
        ("^F", "fork"),
        ("^X", "trash"),
        ("^T", "tag"),
    ]);
    keys.push(("Esc", "back"));
    keys
}

/// Describes how many sessions are hidden, and why.
fn hidden(picker: &Picker) -> String {
    let (hidden, empty) = picker.hidden();
    let mut parts = Vec::new();
    if hidden.elsewhere > 0 {
        parts.push(format!("{} in other projects (Tab)", hidden.elsewhere));
    }
    if hidden.trashed > 0 {
        parts.push(format!("{} in the trash", hidden.trashed));
    }
    if empty > 0 {
        parts.push(format!("{empty} empty (^E)"));
    }
    let damaged = match picker.damaged() {
        0 => None,
        1 => Some("1 session is damaged: run `tertulia doctor`".to_owned()),
        count => Some(format!(
            "{count} sessions are damaged: run `tertulia doctor`"
        )),
    };
    let hidden = (!parts.is_empty()).then(|| format!("Hidden: {}", parts.join(", ")));
    let texts: Vec<String> = damaged.into_iter().chain(hidden).collect();
    texts.join(" · ")
}

fn draw_question(
    id: SessionId,
    title: &str,
    theme: Theme,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    let room = usize::from(area.width).saturating_sub(40);
    let name = match title {
        "" => id.short(),
        title => format!("\"{}\"", cut(title, room.max(8))),
    };
    let question = format!("Move {name} to the trash? [y/N] ");
    let left = write(buffer, area, &question, theme.warning());
    (!left.is_empty()).then(|| left.as_position())
}
