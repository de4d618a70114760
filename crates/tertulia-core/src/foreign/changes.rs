//! What importing changed or could not keep, counted by cause.

use crate::entry::MESSAGE_LIMIT;

/// Room for the mark that says how much of a message is missing.
const MARK: usize = 100;
/// More line numbers than this are counted, not listed.
const LISTED: usize = 20;

/// What importing a session changed or could not keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// How many texts had NUL characters, which were replaced.
    pub nul: usize,
    /// The sizes, in bytes, of the texts that were cut to the limit of a message.
    pub cut: Vec<usize>,
    /// The numbers of the lines that are damaged and were left out.
    pub damaged: Vec<usize>,
    /// Other changes, in words.
    pub changed: Vec<String>,
    /// What has no place in a session, in words.
    pub lost: Vec<String>,
}

impl Changes {
    /// The text as a message may have it: without NUL, and cut with a mark where it is too long.
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

    /// What was changed, a line for each cause.
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

    /// What was not kept, a line for each cause.
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

/// A number with its noun.
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
