//! Budget of worker calls, and the syntax to change it.

use serde::{Deserialize, Serialize};

/// Number of worker calls left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// No limit. A separate variant, so that no arithmetic turns it into a number.
    #[default]
    Unlimited,
    /// This many calls.
    Calls(u64),
}

/// A change of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `[r+5]`: adds calls.
    Add(u64),
    /// `[r=10]`: sets the number of calls.
    Set(u64),
}

impl Budget {
    /// Returns true if no call is left.
    pub const fn is_spent(self) -> bool {
        matches!(self, Budget::Calls(0))
    }

    /// Returns the budget after one more call.
    #[must_use]
    pub const fn spend(self) -> Budget {
        match self {
            Budget::Unlimited => Budget::Unlimited,
            Budget::Calls(calls) => Budget::Calls(calls.saturating_sub(1)),
        }
    }

    /// Returns the budget after a change.
    #[must_use]
    pub const fn changed(self, change: Change) -> Budget {
        match (self, change) {
            (_, Change::Set(calls)) => Budget::Calls(calls),
            (Budget::Unlimited, Change::Add(_)) => Budget::Unlimited,
            (Budget::Calls(calls), Change::Add(more)) => Budget::Calls(calls.saturating_add(more)),
        }
    }

    /// Returns the number of calls left, or `None` if unlimited.
    pub const fn calls(self) -> Option<u64> {
        match self {
            Budget::Unlimited => None,
            Budget::Calls(calls) => Some(calls),
        }
    }
}

/// Formats the budget for users.
impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Budget::Unlimited => f.write_str("unlimited worker calls"),
            Budget::Calls(1) => f.write_str("1 worker call left"),
            Budget::Calls(calls) => write!(f, "{calls} worker calls left"),
        }
    }
}

/// Splits user input into the budget changes at its beginning and the remaining text.
pub fn read(input: &str) -> (Vec<Change>, &str) {
    let mut changes = Vec::new();
    let mut rest = input;
    while let Some((change, after)) = change(rest.trim_start()) {
        changes.push(change);
        rest = after;
    }
    let words = if changes.is_empty() {
        input
    } else {
        rest.trim_start()
    };
    (changes, words)
}

fn change(text: &str) -> Option<(Change, &str)> {
    let (inside, after) = text.strip_prefix('[')?.split_once(']')?;
    let inside = inside.trim().strip_prefix(['r', 'R'])?.trim_start();
    let make = match inside.chars().next()? {
        '+' => Change::Add,
        '=' => Change::Set,
        _ => return None,
    };
    let digits = inside[1..].trim();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A number that overflows is as good as the maximum.
    let calls = digits.parse().unwrap_or(u64::MAX);
    Some((make(calls), after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(input: &str, changes: &[Change], words: &str) {
        assert_eq!(read(input), (changes.to_vec(), words), "{input:?}");
    }

    #[test]
    fn changes_stand_at_the_beginning() {
        check("go on", &[], "go on");
        check("  go on ", &[], "  go on ");
        check("[r+5] go on", &[Change::Add(5)], "go on");
        check("[R=10]", &[Change::Set(10)], "");
        check(" [ r + 5 ]x", &[Change::Add(5)], "x");
        check(
            "[r=2][R+3] [r+1]\n\nand more [r+9]",
            &[Change::Set(2), Change::Add(3), Change::Add(1)],
            "and more [r+9]",
        );
        for plain in ["[r-5] a", "[r+] a", "[r+x]", "[rr+5]", "[r+5", "r+5", "[]"] {
            check(plain, &[], plain);
        }
        check("[r=0] stop", &[Change::Set(0)], "stop");
        check("[r=99999999999999999999999]", &[Change::Set(u64::MAX)], "");
    }

    #[test]
    fn unlimited_stays_unlimited() {
        let written = serde_json::to_string(&Budget::Unlimited).unwrap();
        assert_eq!(written, "\"unlimited\"");
        let read: Budget = serde_json::from_str(&written).unwrap();
        assert_eq!(read, Budget::Unlimited);
        assert!(!read.is_spent());
        assert_eq!(read.spend().changed(Change::Add(5)), Budget::Unlimited);
        assert_eq!(read.changed(Change::Set(0)), Budget::Calls(0));
        let five: Budget = serde_json::from_str("{\"calls\":5}").unwrap();
        assert_eq!(five, Budget::Calls(5));
    }

    proptest! {
        #[test]
        fn never_below_nothing(start in any::<u64>(), steps in prop::collection::vec(0..4u8, 0..40)) {
            let mut budget = Budget::Calls(start);
            for step in steps {
                budget = match step {
                    0 => budget.changed(Change::Add(u64::MAX)),
                    1 => budget.changed(Change::Set(1)),
                    _ => budget.spend(),
                };
                prop_assert!(budget.calls().is_some());
            }
        }
    }
}
