//! Titles derived from first messages.

/// Maximum length of a derived title, in characters.
const TITLE_LENGTH: usize = 60;

/// Returns a team message without its markers. Approximate parsing is enough for a title.
pub(super) fn without_markers(content: &str) -> String {
    const KEYWORDS: [&str; 4] = ["[NEXT:", "[FROM:", "[DROP:", "[TEAM_TASK:"];
    // Found once, so that many brackets in a long text take linear time.
    let places = |part| content.match_indices(part).map(|(at, _)| at);
    let closings: Vec<usize> = places("]").collect();
    let redacted: Vec<usize> = places("[redacted:").collect();
    let mut words = String::new();
    let mut from = 0;
    for open in places("[") {
        let is_marker = KEYWORDS.iter().any(|keyword| {
            let start = content.get(open..open + keyword.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(keyword))
        });
        if open < from || !is_marker {
            continue;
        }
        let first = closings.partition_point(|at| *at < open);
        // A redaction placeholder inside a marker has brackets of its own.
        let inner = redacted.get(redacted.partition_point(|at| *at <= open));
        let has_inner = inner.is_some_and(|at| closings.get(first).is_some_and(|end| at < end));
        if let Some(end) = closings.get(first + usize::from(has_inner)) {
            words.push_str(&content[from..open]);
            from = end + 1;
        }
    }
    words.push_str(&content[from..]);
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
