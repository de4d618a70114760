//! Draws the full-text search.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tertulia_core::query::Hit;

use super::brush::{Look, counted, hints, row, rows, rule, write, write_right};
use super::marked::draw_marked;
use super::picker::draw_line;
use super::preview::draw_around;
use crate::picker::Scope;
use crate::search::Search;
use tertulia_engine::text::ago;
use tertulia_engine::text::grouped;

/// Lines per hit.
pub const HIT_LINES: usize = 2;
/// Minimum width for the messages around a hit beside the list.
const WIDE: u16 = 110;
/// Below this width the title has the line to itself.
const NARROW: u16 = 40;
/// Below this height the messages around a hit are not shown.
const LOW: u16 = 9;

/// Areas of the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    head: Rect,
    query: Rect,
    /// List of hits.
    pub list: Rect,
    around: Rect,
    keys: Rect,
}

/// Divides an area; a small one goes to the hits first.
pub fn parts(area: Rect) -> Parts {
    let height = usize::from(area.height);
    let (head, keys) = (usize::from(height >= 5), usize::from(height >= 4));
    let query = usize::from(height >= 3);
    let gap = usize::from(height >= 12);
    let above = head + query + gap;
    let middle = rows(area, above, height.saturating_sub(above + keys));
    let mut parts = Parts {
        head: rows(area, 0, head),
        query: rows(area, head, query),
        list: middle,
        around: Rect::default(),
        keys: rows(area, height - keys, keys),
    };
    if middle.width >= WIDE {
        let half = middle.width / 2;
        parts.list.width = half - 1;
        parts.around = Rect {
            x: middle.x + half,
            width: middle.width - half,
            ..middle
        };
    } else if middle.height >= LOW {
        let half = usize::from(middle.height / 2 / 2 * 2);
        parts.list = rows(middle, 0, half);
        parts.around = rows(middle, half, usize::from(middle.height) - half);
    }
    parts
}

/// Draws the search and returns the cursor position.
pub fn draw(search: &Search, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let (parts, theme) = (parts(area), look.theme);
    let left = write_right(buffer, parts.head, &total(search), theme.dim());
    let title = match search.scope() {
        Scope::Here => "Search this project",
        Scope::All => "Search everything",
    };
    write(buffer, left, title, theme.heading());
    let left = write(buffer, parts.query, "> ", theme.heading());
    let placeholder = "words, \"a phrase\", -without, begin*";
    let cursor = draw_line(search.query(), placeholder, theme, left, buffer);
    draw_hits(search, look, parts.list, buffer);
    if let Some((seq, items)) = search.shown_around() {
        rule(buffer, parts.around, theme);
        let inside = rows(parts.around, 1, usize::from(parts.around.height));
        draw_around(items, seq, look, inside, buffer);
    }
    let scope = match search.scope() {
        Scope::Here => "everywhere",
        Scope::All => "this project",
    };
    let keys = [
        ("Enter", "go there"),
        ("↑↓", "choose"),
        ("^F", "fork there"),
        ("Tab", scope),
        ("Esc", "back"),
    ];
    hints(buffer, parts.keys, theme, &keys);
    cursor
}

fn total(search: &Search) -> String {
    if search.is_searching() {
        return "searching …".to_owned();
    }
    let hits = search.hits();
    if !search.is_done() {
        return String::new();
    }
    let more = if hits.more { "more than " } else { "" };
    let elsewhere = match hits.elsewhere {
        0 => String::new(),
        count => format!(", {count} in other projects"),
    };
    let pending = match hits.pending {
        0 => String::new(),
        count => format!(", {} not indexed yet", grouped(count)),
    };
    format!("{more}{}{elsewhere}{pending}", counted(hits.total, "hit"))
}

fn draw_hits(search: &Search, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let hits = &search.hits().hits;
    if let Some(trouble) = search.trouble() {
        write(buffer, area, trouble, theme.warning());
        return;
    }
    if hits.is_empty() && search.is_done() {
        let words = match search.hits().more {
            true => {
                "Nothing found among the newest matches; more specific terms search further back."
            }
            false => "Nothing found.",
        };
        write(buffer, area, words, theme.dim());
        return;
    }
    let seen = (usize::from(area.height) / HIT_LINES).max(1);
    let (chosen, top) = search.places(seen);
    for (place, hit) in hits.iter().enumerate().skip(top).take(seen) {
        let area = rows(area, (place - top) * HIT_LINES, HIT_LINES);
        draw_hit(hit, look, place == chosen, area, buffer);
    }
}

fn draw_hit(hit: &Hit, look: Look, is_chosen: bool, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let head = row(area, 0).intersection(buffer.area);
    let mark = if is_chosen { "› " } else { "  " };
    let left = write(buffer, head, mark, theme.heading());
    let place = format!("{}:{}", hit.session.short(), hit.seq);
    let left = write_right(buffer, left, &place, theme.dim());
    // The title has priority: on a narrow screen speaker and age are dropped.
    let left = match left.width >= NARROW {
        true => write_right(buffer, left, &source(hit, look), theme.dim()),
        false => left,
    };
    let title = hit.title.as_deref().unwrap_or("(untitled)");
    write(buffer, left, title, theme.strong());
    if is_chosen {
        buffer.set_style(head, theme.chosen());
    }
    let below = write(buffer, row(area, 1), "  ", theme.text());
    let style = match is_chosen {
        true => theme.text(),
        false => theme.dim(),
    };
    draw_marked(&hit.snippet, theme, style, below, buffer);
}

fn source(hit: &Hit, look: Look) -> String {
    let who = hit.speaker.as_ref().map(|speaker| &speaker.display_name);
    let who = who.map_or("title", String::as_str);
    format!("{who} · {}", ago(hit.at, look.now))
}
