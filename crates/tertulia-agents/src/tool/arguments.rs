//! Reads the arguments of a call one by one, so that errors name the argument.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Arguments of a call. Unknown ones are ignored.
pub(super) struct Arguments<'a>(Option<&'a Map<String, Value>>);

impl<'a> Arguments<'a> {
    /// Accepts an object; null counts as an object without fields.
    pub(super) fn of(value: &'a Value) -> Result<Arguments<'a>, String> {
        match value {
            Value::Object(fields) => Ok(Arguments(Some(fields))),
            Value::Null => Ok(Arguments(None)),
            _ => Err("the arguments are wrong: they must be one JSON object".to_owned()),
        }
    }

    /// Returns an argument that must be present.
    pub(super) fn required<T: DeserializeOwned>(&self, name: &str) -> Result<T, String> {
        self.optional(name)?
            .ok_or_else(|| format!("the argument `{name}` is missing"))
    }

    /// Returns an argument that may be absent or null.
    pub(super) fn optional<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, String> {
        match self.0.and_then(|fields| fields.get(name)) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => T::deserialize(value)
                .map(Some)
                .map_err(|error| format!("the argument `{name}` is wrong: {error}")),
        }
    }

    /// Returns a whole number of at least `least`. Some models write every number with a decimal
    /// point.
    pub(super) fn whole(&self, name: &str, least: u64) -> Result<Option<u64>, String> {
        let Some(number) = self.optional::<f64>(name)? else {
            return Ok(None);
        };
        // As an integer it is exact, or larger than any meaningful value.
        let whole = number as u64;
        if number < 0.0 || number.fract() != 0.0 || whole < least {
            return Err(format!(
                "the argument `{name}` is wrong: it must be a whole number of at least {least}"
            ));
        }
        Ok(Some(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_is_named() {
        let value = json!({"path": 3, "limit": "ten", "offset": 0, "more": [1]});
        let arguments = Arguments::of(&value).unwrap();
        let check = |error: String, words: &[&str]| {
            for word in words {
                assert!(error.contains(word), "{error}");
            }
        };
        check(
            arguments.required::<String>("path").unwrap_err(),
            &["`path`", "string"],
        );
        check(
            arguments.whole("limit", 1).unwrap_err(),
            &["`limit`", "\"ten\""],
        );
        check(
            arguments.whole("offset", 1).unwrap_err(),
            &["`offset`", "at least 1"],
        );
        check(
            arguments.required::<String>("pattern").unwrap_err(),
            &["`pattern`", "missing"],
        );
        assert!(Arguments::of(&json!("path")).is_err());
    }

    #[test]
    fn numbers_are_whole() {
        let value = json!({"a": 3, "b": 3.0, "c": 3.5, "d": -1, "e": 1e300});
        let arguments = Arguments::of(&value).unwrap();
        assert_eq!(arguments.whole("a", 1), Ok(Some(3)));
        assert_eq!(arguments.whole("b", 1), Ok(Some(3)));
        assert_eq!(arguments.whole("e", 1), Ok(Some(u64::MAX)));
        assert!(arguments.whole("c", 1).is_err());
        assert!(arguments.whole("d", 0).is_err());
    }

    #[test]
    fn absent_and_null_are_the_same() {
        for value in [json!({"path": null}), json!({}), json!(null)] {
            let arguments = Arguments::of(&value).unwrap();
            assert_eq!(arguments.optional::<String>("path"), Ok(None));
        }
    }
}
