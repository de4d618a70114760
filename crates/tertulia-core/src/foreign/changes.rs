//! Content that an import changed or could not keep, counted by cause.

use crate::entry::MESSAGE_LIMIT;

/// Bytes reserved for the note that a message was cut.
const MARK: usize = 100;
/// Maximum number of line numbers listed.
const LISTED: usize = 20;

/// Content that the import of a session changed or could not keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Number of texts with NUL characters, which were replaced.
    pub nul: usize,
    /// Original sizes, in bytes, of texts that were cut to the message limit.
    pub cut: Vec<usize>,
    /// Numbers of damaged lines, which were skipped.
    pub damaged: Vec<usize>,
    /// Descriptions of other changes.
    pub changed: Vec<String>,
    /// Descriptions of content that a session cannot represent.
    pub lost: Vec<String>,
}

impl Changes {
    /// Returns the text as a message may contain it: without NUL, and cut with a note if it is too
    /// long.
    pub fn keepable(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        if text.contains('\0') {
            self.nul += 1;
            text = text.replace('\0', "\u{fffd}");
        }
        if text.len() > MESSAGE_LIMIT {
            self.cut.push(text.len());
            let kept = text.floor_char_boundary(MESSAGE_LIMIT - MARK);
            let missing = text.len() - kept;
            text.truncate(kept);
            text.push_str(&format!("\n[cut here: {missing} more bytes]"));
        }
        text
    }

    /// Returns the changes, one line for each cause.
    pub fn changed(&self) -> Vec<String> {
        let mut words = self.changed.clone();
        if self.nul > 0 {
            words.push(format!(
                "NUL characters replaced in {}",
                counted(self.nul, "message")
            ));
        }
        if !self.cut.is_empty() {
            let sizes: Vec<String> = self.cut.iter().map(usize::to_string).collect();
            words.push(format!(
                "{} cut at {MESSAGE_LIMIT} bytes, full size: {} bytes",
                counted(self.cut.len(), "message"),
                sizes.join(", ")
            ));
        }
        words
    }

    /// Returns the lost content, one line for each cause.
    pub fn lost(&self) -> Vec<String> {
        let mut words = self.lost.clone();
        if !self.damaged.is_empty() {
            let mut lines: Vec<String> = self.damaged.iter().map(usize::to_string).collect();
            lines.truncate(LISTED);
            let more = self.damaged.len() - lines.len();
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            words.push(format!(
                "{}: {}{more}",
                counted(self.damaged.len(), "damaged line"),
                lines.join(", ")
            ));
        }
        words
    }
}

/// Formats a number with its noun.
fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_counted_on_its_own() {
        let mut changes = Changes::default();
        assert_eq!(changes.keepable("as it was"), "as it was");
        assert_eq!(changes, Changes::default());
        assert_eq!(changes.keepable("a\0b"), "a\u{fffd}b");
        let cut = changes.keepable(&"x".repeat(1_500_000));
        assert!(cut.len() <= MESSAGE_LIMIT && cut.ends_with("more bytes]"));
        changes.damaged = (1..=25).collect();
        assert_eq!(
            changes.changed(),
            [
                "NUL characters replaced in 1 message",
                "1 message cut at 1000000 bytes, full size: 1500000 bytes",
            ]
        );
        let lost = changes.lost().remove(0);
        assert!(lost.starts_with("25 damaged lines: 1, 2,"), "{lost}");
        assert!(lost.ends_with("20 and 5 more"), "{lost}");
    }
}
