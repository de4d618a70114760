//! The fields of an entry's body as they stand in its line. Sealing and unsealing keep them byte for
//! byte, with the fields of later versions.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{Entry, EntryError, Hash, Head, VERSION, is_zero};
use crate::id::{EntryId, Seq};

/// Fields of a line that are not part of its body.
const ENVELOPE: &[&str] = &["v", "seq", "id", "at", "then", "author", "host", "hash"];

/// A JSON object whose values keep their bytes.
struct RawFields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for RawFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = RawFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawFields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(RawFields(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Fields in front of the body.
#[derive(Serialize)]
struct Front {
    v: u32,
    seq: Seq,
    id: EntryId,
    at: jiff::Timestamp,
    #[serde(skip_serializing_if = "is_zero")]
    then: u32,
}

impl Entry {
    /// Returns the fields of the body as a JSON object, as they stand in the line.
    pub fn body_fields(&self) -> Result<String, EntryError> {
        let fields: RawFields =
            serde_json::from_str(&self.line).map_err(|error| EntryError::Unreadable {
                reason: error.to_string(),
            })?;
        let mut object = String::with_capacity(self.line.len());
        for (name, value) in &fields.0 {
            if ENVELOPE.contains(&name.as_str()) {
                continue;
            }
            object.push(if object.is_empty() { '{' } else { ',' });
            object.push_str(&quoted(name));
            object.push(':');
            object.push_str(value.get());
        }
        object.push('}');
        Ok(object)
    }

    /// Returns the entry with another body, given by the fields of a JSON object, chained after
    /// `parent`. The reverse of [`Entry::body_fields`].
    pub fn with_body_fields(&self, parent: &Head, fields: &str) -> Result<Entry, EntryError> {
        let unwritable = |source| EntryError::Unwritable {
            seq: self.seq,
            source,
        };
        let front = Front {
            v: VERSION,
            seq: parent.seq.next(),
            id: self.id,
            at: self.at,
            then: self.then,
        };
        let mut line = serde_json::to_string(&front).map_err(unwritable)?;
        line.pop();
        line.push(',');
        line.push_str(fields.trim_start_matches('{'));
        line.pop();
        if let Some(author) = &self.author {
            let (name, host) = (quoted(&author.name), quoted(&author.host));
            line.push_str(&format!(",\"author\":{name},\"host\":{host}"));
        }
        let hash = Hash::of(&parent.hash, line.as_bytes());
        hash.append_to(&mut line);
        Entry::decode(line.as_bytes())
    }
}

/// Returns a text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
