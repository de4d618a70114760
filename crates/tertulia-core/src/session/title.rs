//! Titles derived from first messages.

/// Maximum length of a derived title, in characters.
const TITLE_LENGTH: usize = 60;

/// Returns a team message without its markers. Approximate parsing is enough for a title.
pub(super) fn without_markers(content: &str) -> String {
    let mut words = String::new();
    let mut rest = content;
    while let Some(open) = rest.find('[') {
        let (before, marker) = rest.split_at(open);
        words.push_str(before);
        let keywords = ["[NEXT:", "[FROM:", "[DROP:", "[TEAM_TASK:"];
        let is_marker = keywords.iter().any(|keyword| {
            let start = marker.get(..keyword.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(keyword))
        });
        // A redaction placeholder inside a marker has brackets of its own.
        let inner = marker[1..].find("[redacted:").map(|at| at + 1);
        let first = marker.find(']');
        let from = match (inner, first) {
            (Some(inner), Some(first)) if inner < first => first + 1,
            _ => 0,
        };
        let end = marker[from..].find(']').map(|at| from + at);
        let end = end.filter(|_| is_marker);
        rest = match end {
            Some(end) => &marker[end + 1..],
            None => {
                words.push('[');
                &marker[1..]
            }
        };
    }
    words.push_str(rest);
    if words.trim().is_empty() {
        return content.to_owned();
    }
    words
}

/// Returns the first non-empty line, cut at a word boundary where that loses little.
pub(super) fn title_from(content: &str) -> Option<String> {
    let line = content
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())?;
    let line: String = line
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.chars().count() <= TITLE_LENGTH {
        return Some(line);
    }
    let cut: String = line.chars().take(TITLE_LENGTH - 1).collect();
    let at_word = cut.rfind(' ').filter(|&at| at > cut.len() * 2 / 3);
    Some(format!("{}…", &cut[..at_word.unwrap_or(cut.len())]))
}
