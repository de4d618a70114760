//! The hash of an entry, which chains it to the one before it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{HASH_FIELD, HASH_TAIL};

/// BLAKE3 hash over the parent's hash and the bytes of the entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Parent hash of a first entry.
    pub const NONE: Hash = Hash([0; 32]);

    /// Returns the hash of a text without a parent.
    pub fn of_text(text: &str) -> Hash {
        Hash::of(&Hash::NONE, text.as_bytes())
    }

    /// Returns the bytes of the hash.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the hash with these bytes, or `None` if there are not exactly 32.
    pub fn from_bytes(bytes: &[u8]) -> Option<Hash> {
        bytes.try_into().ok().map(Hash)
    }

    pub(super) fn of(parent: &Hash, content: &[u8]) -> Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&parent.0);
        hasher.update(content);
        Hash(*hasher.finalize().as_bytes())
    }

    /// Completes a line without its hash.
    pub(super) fn append_to(self, line: &mut String) {
        line.reserve(HASH_TAIL);
        line.push_str(HASH_FIELD);
        line.push_str(&self.to_string());
        line.push_str("\"}");
    }

    pub(super) fn from_hex(hex: &str) -> Option<Hash> {
        blake3::Hash::from_hex(hex)
            .ok()
            .map(|hash| Hash(*hash.as_bytes()))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Hash::from_hex(&hex)
            .ok_or_else(|| serde::de::Error::custom("a hash has 64 hexadecimal digits"))
    }
}
