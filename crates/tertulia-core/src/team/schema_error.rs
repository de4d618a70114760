//! Describes schema errors. Values are shown by `found`, because they may be secrets.

use serde_json::Value;

use super::problem::{A_TIME, Problem, below, found};
use super::schema_check::{Fault, SchemaError};
use super::schema_keywords::{Limit, Type};

/// Pattern for member names in team files.
const NAME_PATTERN: &str = "^[a-zA-Z0-9_-]+$";

/// Converts a schema error to a problem. `schema` is the document with the definitions.
pub(super) fn problem(schema: &Value, error: &SchemaError<'_>) -> Problem {
    let path = error.path.as_str();
    match error.fault {
        Fault::Unexpected(field) => unexpected_field(path, field),
        Fault::Missing(field) => missing_field(schema, error.place, path, field),
        Fault::Beyond(limit) => Problem {
            path: path.to_owned(),
            found: found(path, error.value),
            expected: expected(limit, error.place),
        },
    }
}

fn unexpected_field(path: &str, field: &str) -> Problem {
    Problem {
        path: below(path, field),
        found: "a field that is not known".to_owned(),
        expected: "no such field".to_owned(),
    }
}

fn missing_field(schema: &Value, place: &str, path: &str, field: &str) -> Problem {
    let wanted = definition(schema, place, field).map_or("a value".to_owned(), wanted);
    Problem {
        path: below(path, field),
        found: "nothing".to_owned(),
        expected: format!("{wanted} (it is required)"),
    }
}

/// Returns the definition of a field that the schema at `place` requires: its own, or one further up
/// if the requirement is conditional.
fn definition<'a>(schema: &'a Value, place: &str, field: &str) -> Option<&'a Value> {
    let mut place = place;
    loop {
        let here = below(&format!("{place}/properties"), field);
        match schema.pointer(&here) {
            Some(definition) if definition.is_object() => {
                return Some(resolved(schema, definition));
            }
            _ => place = place.rsplit_once('/')?.0,
        }
    }
}

/// Follows a `$ref` within the schema.
fn resolved<'a>(schema: &'a Value, definition: &'a Value) -> &'a Value {
    definition
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| schema.pointer(reference.strip_prefix('#')?))
        .unwrap_or(definition)
}

/// Describes briefly what a definition requires.
fn wanted(definition: &Value) -> String {
    if definition
        .get("format")
        .is_some_and(|format| format == "date-time")
    {
        return A_TIME.to_owned();
    }
    if let Some(options) = definition.get("enum") {
        return one_of(options);
    }
    if let Some(value) = definition.get("const") {
        return value.to_string();
    }
    match definition.get("type") {
        Some(Value::String(single)) => type_name(single).to_owned(),
        Some(Value::Array(several)) => alternatives(several.iter().filter_map(Value::as_str)),
        _ => "a value".to_owned(),
    }
}

fn expected(limit: &Limit<'_>, place: &str) -> String {
    match limit {
        Limit::Enum(options) => one_of(options),
        Limit::Const(value) => value.to_string(),
        Limit::Type(types) => alternatives(types.iter().copied().map(Type::name)),
        Limit::MinItems(least) => format!("a list of at least {least} items"),
        Limit::MinLength(_) => "a text that is not empty".to_owned(),
        Limit::Minimum(least) => format!("at least {least}"),
        Limit::Maximum(most) => format!("at most {most}"),
        Limit::Pattern(pattern) if pattern.as_str() == NAME_PATTERN => {
            "a name of letters, digits, `_` and `-` only".to_owned()
        }
        Limit::Pattern(pattern) => {
            format!("a text that matches the regular expression {pattern}")
        }
        Limit::DateTime => A_TIME.to_owned(),
        Limit::Never => "nothing, because the older fields stand beside it".to_owned(),
        // The schemas use it only in conditions.
        Limit::AnyOf(_) => format!("what `anyOf` at {place}/anyOf asks for"),
    }
}

fn one_of(options: &Value) -> String {
    let options: Vec<String> = options
        .as_array()
        .into_iter()
        .flatten()
        .map(Value::to_string)
        .collect();
    format!("one of {}", options.join(", "))
}

fn alternatives<'a>(types: impl Iterator<Item = &'a str>) -> String {
    types.map(type_name).collect::<Vec<_>>().join(" or ")
}

fn type_name(name: &str) -> &str {
    match name {
        "string" => "a string",
        "array" => "a list",
        "object" => "an object",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        other => other,
    }
}
