//! Draws the fork tree of a session.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tertulia_engine::text::ago;

use super::brush::{Look, counted, hints, write, write_right};
use crate::geometry::{row, rows};
use crate::text::cut;
use crate::tree::{Node, Tree};

/// Columns of indentation per level.
const LEVEL_COLUMNS: usize = 2;

/// Draws the tree.
pub fn draw(tree: &Tree, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let height = usize::from(area.height);
    let (head, keys) = (usize::from(height >= 3), usize::from(height >= 2));
    let gap = usize::from(height >= 8);
    let count = counted(tree.nodes().len() as u64, "session");
    let left = write_right(buffer, rows(area, 0, head), &count, theme.dim());
    write(buffer, left, "Forks of this session", theme.heading());
    let list = rows(area, head + gap, height.saturating_sub(head + gap + keys));
    let seen = usize::from(list.height).max(1);
    let (chosen, top) = tree.places(seen);
    for (place, node) in tree.nodes().iter().enumerate().skip(top).take(seen) {
        let line = row(list, place - top).intersection(buffer.area);
        let most = usize::from(line.width) / 3 / LEVEL_COLUMNS;
        let lead = tree.branches(place, most);
        draw_node(node, &lead, look, line, buffer);
        if place == chosen {
            buffer.set_style(line, theme.chosen());
        }
    }
    let hint = [("Enter", "resume"), ("↑↓", "choose"), ("Esc", "back")];
    hints(buffer, rows(area, height - keys, keys), theme, &hint);
}

fn draw_node(node: &Node, lead: &str, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    // The title has priority: on a narrow screen the facts are cut.
    let room = usize::from(area.width) * 3 / 5;
    let facts = cut(&facts(node, look), room);
    let left = write_right(buffer, area, &facts, theme.dim());
    let left = write(buffer, left, lead, theme.frame());
    let mark = if node.is_asked { "● " } else { "○ " };
    let left = write(buffer, left, mark, theme.heading());
    let left = write(buffer, left, &node.id.short(), theme.dim());
    let left = write(buffer, left, "  ", theme.text());
    let style = match node.is_trashed {
        true => theme.dim(),
        false => theme.strong(),
    };
    write(buffer, left, &node.title, style);
}

fn facts(node: &Node, look: Look) -> String {
    let mut facts = Vec::new();
    if let Some((relation, seq)) = node.from {
        facts.push(match seq {
            Some(seq) => format!("{} at {seq}", relation.name()),
            None => relation.name().to_owned(),
        });
    }
    facts.push(counted(node.messages, "message"));
    facts.push(ago(node.updated_at, look.now));
    if node.is_trashed {
        facts.push("in the trash".to_owned());
    }
    if node.is_open {
        facts.push("open".to_owned());
    }
    facts.join(" · ")
}
