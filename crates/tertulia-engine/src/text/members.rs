//! The members of a team as aligned lines.

use unicode_width::UnicodeWidthStr;

use super::harmless;

/// What a line says of a member.
#[derive(Clone, Copy, Debug)]
pub struct MemberRow<'a> {
    /// Name shown to people.
    pub display_name: &'a str,
    /// Name in markers.
    pub name: &'a str,
    /// Role, if it is known.
    pub role: Option<&'a str>,
    /// Agent with its model, if it is known.
    pub agent: Option<&'a str>,
    /// Whether the member is a person.
    pub is_human: bool,
    /// What the member does: `speaking`, `queued`, or nothing.
    pub does: &'a str,
}

/// Formats members: `Ada  [NEXT: ada]  Author  sage · claude-sonnet-4-5  speaking`.
pub fn member_lines(members: &[MemberRow<'_>]) -> Vec<String> {
    let rows: Vec<[String; 5]> = members.iter().map(cells).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max();
    let widths = [0, 1, 2, 3, 4].map(|column| width(column).unwrap_or(0));
    let line = |row: &[String; 5]| {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths).filter(|(_, width)| *width > 0) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width - cell.width() + 2));
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn cells(member: &MemberRow<'_>) -> [String; 5] {
    let kind = match member.is_human {
        true => "person",
        false => "agent",
    };
    [
        harmless(member.display_name),
        format!("[NEXT: {}]", harmless(member.name)),
        harmless(member.role.unwrap_or_default()),
        harmless(member.agent.unwrap_or(kind)),
        member.does.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_aligned_with_role_agent_and_turn() {
        let ada = MemberRow {
            display_name: "Ada",
            name: "ada",
            role: Some("Author"),
            agent: Some("sage · claude-sonnet-4-5"),
            is_human: false,
            does: "speaking",
        };
        let you = MemberRow {
            display_name: "漢字",
            name: "you",
            role: Some("Lead"),
            agent: None,
            is_human: true,
            does: "",
        };
        let lines = member_lines(&[ada, you]);
        let expected = [
            "Ada   [NEXT: ada]  Author  sage · claude-sonnet-4-5  speaking",
            "漢字  [NEXT: you]  Lead    person",
        ];
        assert_eq!(lines, expected);
        let bare = |row| MemberRow {
            role: None,
            agent: None,
            does: "",
            ..row
        };
        let lines = member_lines(&[bare(ada)]);
        assert_eq!(lines, ["Ada  [NEXT: ada]  agent"]);
    }
}
