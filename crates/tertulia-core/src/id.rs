//! Ids of sessions and entries, sequence numbers, and the references that users type.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Defines an id as a newtype around a UUID, so that ids of different things cannot be mixed up.
macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID.
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// Returns the UUID.
            pub const fn uuid(self) -> Uuid {
                self.0
            }

            /// Returns true if the id was derived from other data, not created.
            pub fn is_derived(self) -> bool {
                self.0.get_version_num() == 8
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                // Only the hyphenated form: ids are file names and search keys, so each has one
                // spelling.
                match Uuid::try_parse(text) {
                    Ok(uuid) if text.len() == 36 => Ok(Self(uuid)),
                    _ => Err(IdError::NotAUuid(text.to_owned())),
                }
            }
        }
    };
}

uuid_id!(
    /// Id of a session, globally unique. UUIDv7: ids created later sort later.
    SessionId
);
uuid_id!(
    /// Id of an entry, the same in every session that contains the entry.
    EntryId
);

/// Returns a UUID (version 8) derived from texts: equal texts give equal UUIDs. Imported data gets
/// such ids, so that a second import recognises it.
pub fn derived(parts: &[&str]) -> Uuid {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        // Includes the length of each part, so that lists with equal concatenations differ.
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    Uuid::new_v8(bytes)
}

/// Returns the UUID if another program's id is one that can be kept. The nil and max UUIDs are
/// rejected.
pub fn foreign_uuid(text: &str) -> Option<Uuid> {
    let id: EntryId = text.parse().ok()?;
    Some(id.uuid()).filter(|uuid| !uuid.is_nil() && !uuid.is_max())
}

impl SessionId {
    /// Returns the short form shown to users: the last 8 characters. The first ones encode the time
    /// and are often equal.
    pub fn short(self) -> String {
        let text = self.to_string();
        text[text.len() - SHORT..].to_owned()
    }

    /// Returns true if `part` is a prefix or suffix of the id, or a prefix of its short form.
    pub fn is_named_by(self, part: &str) -> bool {
        let text = self.to_string();
        text.starts_with(part)
            || text.ends_with(part)
            || text[text.len() - SHORT..].starts_with(part)
    }
}

/// Sequence number of an entry in its session log, from 1. Zero precedes the first entry.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Precedes the first entry.
    pub const START: Seq = Seq(0);

    /// Returns the next sequence number.
    #[must_use]
    pub const fn next(self) -> Seq {
        Seq(self.0 + 1)
    }

    /// Returns the sequence number `n` before this one, at least [`Seq::START`].
    #[must_use]
    pub const fn back(self, n: u64) -> Seq {
        Seq(self.0.saturating_sub(n))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A session reference as typed by the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reference {
    /// `@`, `latest`, `@~2`: the newest session, or the given number of sessions before it.
    Latest(usize),
    /// Full id.
    Id(SessionId),
    /// Prefix or suffix of an id, or a title.
    Words(String),
}

/// Minimum length of a partial id.
pub const SHORTEST_PART: usize = 4;

/// Length of the short form of an id.
pub const SHORT: usize = 8;

impl FromStr for Reference {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if text.trim().is_empty() {
            return Err(IdError::Empty);
        }
        if text == "@" || text == "latest" {
            return Ok(Reference::Latest(0));
        }
        // `@~2:12` names an entry, see [`Place`]; as a whole it can only be a title, like `@:12`.
        if let Some(back) = text.strip_prefix("@~").filter(|back| !has_seq(back)) {
            return back
                .parse()
                .map(Reference::Latest)
                .map_err(|_| IdError::NotANumber(text.to_owned()));
        }
        if let Ok(id) = text.to_ascii_lowercase().parse() {
            return Ok(Reference::Id(id));
        }
        Ok(Reference::Words(text.to_owned()))
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Latest(0) => f.write_str("@"),
            Reference::Latest(back) => write!(f, "@~{back}"),
            Reference::Id(id) => id.fmt(f),
            Reference::Words(words) => f.write_str(words),
        }
    }
}

impl Reference {
    /// Returns the text as a partial id if it can be one: hexadecimal digits and hyphens, at least
    /// [`SHORTEST_PART`] characters.
    pub fn id_part(&self) -> Option<String> {
        let Reference::Words(words) = self else {
            return None;
        };
        let fits = words.len() >= SHORTEST_PART
            && words.len() <= 36
            && words.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        fits.then(|| words.to_ascii_lowercase())
    }
}

/// A session reference with an optional entry: `REF:12`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The session.
    pub session: Reference,
    /// Sequence number of the entry, if given.
    pub seq: Option<Seq>,
}

/// Splits `REF:12` before the colon.
fn split_seq(text: &str) -> Option<(&str, &str)> {
    text.rsplit_once(':').filter(|(session, number)| {
        !session.is_empty() && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    })
}

/// Returns true if a number is followed by that of an entry: `2:12`.
fn has_seq(text: &str) -> bool {
    split_seq(text).is_some_and(|(back, _)| back.bytes().all(|b| b.is_ascii_digit()))
}

impl FromStr for Place {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if let Some((session, number)) = split_seq(text) {
            let seq = number
                .parse()
                .map_err(|_| IdError::NotANumber(number.to_owned()))?;
            return Ok(Place {
                session: session.parse()?,
                seq: Some(Seq(seq)),
            });
        }
        Ok(Place {
            session: text.parse()?,
            seq: None,
        })
    }
}

/// Reasons why a reference or id is invalid.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum IdError {
    /// The text is empty.
    #[error(
        "a session is named by its id, the beginning or end of it, its title, or @ for the newest; this is empty"
    )]
    Empty,
    /// Not a full id.
    #[error(
        "'{0}' is not a session id: expected a UUID such as 01900000-0000-7000-8000-000000000000"
    )]
    NotAUuid(String),
    /// Not a number where one is expected.
    #[error("'{0}' has no number where one belongs")]
    NotANumber(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: Reference, seq: Option<u64>) {
        let place: Place = text.parse().unwrap();
        assert_eq!(
            (place.session, place.seq),
            (expected, seq.map(Seq)),
            "{text}"
        );
    }

    #[test]
    fn places_are_read() {
        let id: SessionId = "01936f5e-6c5a-7b3a-9d2f-5f3a9c1e0b7d".parse().unwrap();
        check("@", Reference::Latest(0), None);
        check("latest", Reference::Latest(0), None);
        check("@~2", Reference::Latest(2), None);
        check("@:12", Reference::Latest(0), Some(12));
        check("@~2:12", Reference::Latest(2), Some(12));
        check(&id.to_string(), Reference::Id(id), None);
        check(&id.to_string().to_uppercase(), Reference::Id(id), None);
        check("9c1e0b7d:3", Reference::Words("9c1e0b7d".into()), Some(3));
        check(
            "My talk: part two",
            Reference::Words("My talk: part two".into()),
            None,
        );
        check(
            "../../etc/passwd",
            Reference::Words("../../etc/passwd".into()),
            None,
        );
    }

    #[test]
    fn derived_ids_are_the_same_for_the_same_texts_only() {
        assert_eq!(derived(&["a", "b"]), derived(&["a", "b"]));
        for other in [&["b", "a"][..], &["ab"], &["a", "b", ""], &["", "ab"]] {
            assert_ne!(derived(&["a", "b"]), derived(other), "{other:?}");
        }
        assert_eq!(derived(&[]).get_version_num(), 8);
    }

    #[test]
    fn uuids_of_other_programs_are_kept() {
        for kept in [
            "01936f5e-6c5a-7b3a-9d2f-5f3a9c1e0b7d",
            "0b5a6c9e-3a54-4d6f-8a5f-3f1b5a3b8c11",
        ] {
            assert_eq!(foreign_uuid(kept), Uuid::try_parse(kept).ok());
        }
        for other in [
            "session-1764064800000-k3v9x1q2z",
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "",
        ] {
            assert_eq!(foreign_uuid(other), None, "{other}");
        }
    }

    #[test]
    fn wrong_references_say_why() {
        assert_eq!("".parse::<Place>(), Err(IdError::Empty));
        assert_eq!("  ".parse::<Reference>(), Err(IdError::Empty));
        assert!(matches!(
            "@~x".parse::<Reference>(),
            Err(IdError::NotANumber(_))
        ));
        for wrong in ["@~:3", "@~x:3", "@~1:", "@~1:x"] {
            let place = wrong.parse::<Place>();
            assert!(matches!(place, Err(IdError::NotANumber(_))), "{wrong}");
        }
        assert!(matches!(
            "../x".parse::<SessionId>(),
            Err(IdError::NotAUuid(_))
        ));
        // A second spelling of a UUID would be a second name for one session.
        assert!(
            "01936f5e6c5a7b3a9d2f5f3a9c1e0b7d"
                .parse::<SessionId>()
                .is_err()
        );
    }

    #[test]
    fn only_hexadecimal_words_are_pieces_of_an_id() {
        let part = |text: &str| Reference::Words(text.into()).id_part();
        assert_eq!(part("9C1E"), Some("9c1e".into()));
        assert_eq!(part("9c1"), None);
        assert_eq!(part("../a"), None);
        assert_eq!(part("title"), None);
    }

    proptest! {
        #[test]
        fn ids_round_trip(bytes: [u8; 16]) {
            let id = SessionId::new(Uuid::from_bytes(bytes));
            prop_assert_eq!(id.to_string().parse::<SessionId>().unwrap(), id);
            prop_assert!(id.to_string().ends_with(&id.short()));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = text.parse::<Place>();
        }
    }
}
