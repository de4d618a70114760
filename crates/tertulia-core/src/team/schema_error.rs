//! Describes schema errors. The validator's own messages would repeat values, which may be secrets.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use super::problem::{A_TIME, Problem, below, found};

/// Pattern for member names in team files.
const NAME_PATTERN: &str = "^[a-zA-Z0-9_-]+$";

/// Converts a validation error to one problem, or to one for each unexpected field.
pub(super) fn problems(schema: &Value, error: &ValidationError<'_>) -> Vec<Problem> {
    let path = error.instance_path().as_str();
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => unexpected
            .iter()
            .map(|field| unexpected_field(path, field))
            .collect(),
        ValidationErrorKind::Required { property } => {
            let field = property.as_str().unwrap_or_default();
            let place = error.schema_path().as_str();
            vec![missing_field(schema, place, path, field)]
        }
        kind => vec![Problem {
            path: path.to_owned(),
            found: found(path, error.instance()),
            expected: expected(kind, error),
        }],
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

/// Returns the definition of a field that is required at `place`: a sibling, or further up if the
/// requirement is conditional.
fn definition<'a>(schema: &'a Value, place: &str, field: &str) -> Option<&'a Value> {
    let mut place = place;
    while let Some((above, _)) = place.rsplit_once('/') {
        let here = below(&format!("{above}/properties"), field);
        match schema.pointer(&here) {
            Some(definition) if definition.is_object() => {
                return Some(resolved(schema, definition));
            }
            _ => place = above,
        }
    }
    None
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

fn expected(kind: &ValidationErrorKind, error: &ValidationError<'_>) -> String {
    match kind {
        ValidationErrorKind::Enum { options } => one_of(options),
        ValidationErrorKind::Constant { expected_value } => expected_value.to_string(),
        ValidationErrorKind::Type { kind } => match kind {
            TypeKind::Single(single) => type_name(single.as_str()).to_owned(),
            TypeKind::Multiple(several) => {
                alternatives(several.iter().map(|single| single.as_str()))
            }
        },
        ValidationErrorKind::MinItems { limit } => format!("a list of at least {limit} items"),
        ValidationErrorKind::MinLength { .. } => "a text that is not empty".to_owned(),
        ValidationErrorKind::Minimum { limit } => format!("at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("at most {limit}"),
        ValidationErrorKind::Pattern { pattern } if pattern == NAME_PATTERN => {
            "a name of letters, digits, `_` and `-` only".to_owned()
        }
        ValidationErrorKind::Pattern { pattern } => {
            format!("a text that matches the regular expression {pattern}")
        }
        ValidationErrorKind::Format { format } if format == "date-time" => A_TIME.to_owned(),
        ValidationErrorKind::FalseSchema => {
            "nothing, because the older fields stand beside it".to_owned()
        }
        // The schemas use no other keywords; a future one is at least named.
        other => format!(
            "what `{}` at {} asks for",
            other.keyword(),
            error.schema_path()
        ),
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
