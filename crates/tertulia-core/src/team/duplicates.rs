//! Finds duplicate keys in a JSON text. Parsers silently keep the last value.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// Returns the paths of keys that occur more than once in an object, in the order of the text.
/// Stops at the first syntax error.
pub fn duplicate_keys(text: &str) -> Vec<String> {
    let found = RefCell::new(Vec::new());
    let walk = Walk {
        path: String::new(),
        found: &found,
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // Syntax errors are reported by the actual parser.
    let _ = walk.deserialize(&mut serde_json::Deserializer::from_str(text));
    found.into_inner()
}

/// A value during the traversal.
struct Walk<'a> {
    path: String,
    found: &'a RefCell<Vec<String>>,
}

impl Walk<'_> {
    fn inside(&self, step: impl fmt::Display) -> Self {
        Walk {
            path: format!("{}/{step}", self.path),
            found: self.found,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = self.inside(&key);
            if !seen.insert(key) {
                self.found.borrow_mut().push(value.path.clone());
            }
            map.next_value_seed(value)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut at = 0;
        while list.next_element_seed(self.inside(at))?.is_some() {
            at += 1;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_stand_twice_are_found_with_their_path() {
        let check = |text: &str, expected: &[&str]| assert_eq!(duplicate_keys(text), expected);
        check(
            r#"{"a": 1, "b": {"a": 2}, "c": [true, null, "a", 1.5]}"#,
            &[],
        );
        check(
            r#"{"a": 1, "team": {"members": [{}, {"name": "x", "env": {}, "name": "y"}]}, "a": -2}"#,
            &["/team/members/1/name", "/a"],
        );
        check("\u{feff}{\"a\": 1, \"a\": 2}", &["/a"]);
        check("{", &[]);
        check("", &[]);
    }
}
