//! How near a name that was typed is to a session that exists, for suggestions.

use tertulia_core::id::SHORTEST_PART;

/// Minimum similarity of a suggestion.
pub const NEAR: f64 = 0.5;

/// Returns the similarity of the typed text to a title or a short id, from 0 to 1.
pub fn likeness(wanted: &str, title: &str, short: &str) -> f64 {
    // Users often remember only a part of a title.
    let is_part = wanted.chars().count() >= SHORTEST_PART && title.contains(wanted);
    let title = match is_part {
        true => 1.0,
        false => strsim::sorensen_dice(wanted, title),
    };
    // Allows one or two wrong characters in an id that was copied from a list.
    let is_id = wanted.len().abs_diff(short.len()) <= 1;
    let id = match is_id && strsim::damerau_levenshtein(wanted, short) <= 2 {
        true => 1.0,
        false => 0.0,
    };
    title.max(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_is_offered() {
        let near = |wanted: &str, title: &str| likeness(wanted, title, "a11a9ddc") >= NEAR;
        assert!(near("parser", "parsers") && near("the parser", "about the parsers"));
        assert!(near(
            "parser",
            "a long title that names the parser somewhere"
        ));
        assert!(near("a11a9dcd", "hi") && near("a11a9dd", "hi"));
        for (wanted, title) in [
            ("%", "hi"),
            ("../../etc/passwd", "hi"),
            ("nosuch", "one"),
            ("parser", "search"),
            ("x", "xylophone"),
        ] {
            assert!(!near(wanted, title), "{wanted} {title}");
        }
        assert!(likeness("parser", "parsers", "") > likeness("parser", "sparse", ""));
    }
}
