//! Tests of the schemas: every rule is violated by a sample, and every document that passes can be
//! read.

use serde_json::{Value, json};
use tertulia_core::team::{Form, TeamError};

use super::{read, samples};

/// Prefix of the sample names of a kind of document.
fn prefix(form: Form) -> &'static str {
    match form {
        Form::Team => "team",
        Form::Registry => "registry",
        Form::Snapshot => "snapshot",
    }
}

/// Keywords that count as rules; types are tested by [`whatever_passes_a_schema_can_be_read`].
const RULES: &[&str] = &[
    "additionalProperties",
    "const",
    "else",
    "enum",
    "format",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "then",
];

/// Collects all places in a document, as JSON pointers.
fn places(value: &Value, path: &str, all: &mut Vec<String>) {
    all.push(path.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{path}/{index}"), all);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                let step = key.replace('~', "~0").replace('/', "~1");
                places(field, &format!("{path}/{step}"), all);
            }
        }
        _ => {}
    }
}

/// Returns the document without the value at a place.
fn without(document: &Value, path: &str) -> Value {
    let mut document = document.clone();
    let (above, step) = path.rsplit_once('/').unwrap();
    match document.pointer_mut(above).unwrap() {
        Value::Array(items) => drop(items.remove(step.parse().unwrap())),
        Value::Object(fields) => drop(fields.shift_remove(step)),
        _ => unreachable!("only lists and objects have something below them"),
    }
    document
}

/// Returns the number of errors that a schema finds in each document.
fn counts(schema: &Value, documents: &[Value]) -> Vec<usize> {
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .unwrap();
    documents
        .iter()
        .map(|document| validator.iter_errors(document).count())
        .collect()
}

fn is_rule(path: &str) -> bool {
    let steps: Vec<&str> = path.rsplit('/').collect();
    let required = steps.len() > 1 && steps[1] == "required" && !path.contains("/if/");
    // Names below `properties` may look like keywords.
    let keyword = RULES.contains(&steps[0]) && steps.get(1) != Some(&"properties");
    required || keyword && !path.contains("/if/")
}

#[test]
fn every_rule_of_a_schema_is_broken_by_a_sample() {
    let mut idle = Vec::new();
    for form in Form::ALL {
        let schema: Value = serde_json::from_str(form.schema()).unwrap();
        let documents: Vec<Value> = samples("invalid", prefix(form))
            .iter()
            .filter_map(|(_, text)| serde_json::from_str(text).ok())
            .collect();
        let found = counts(&schema, &documents);
        let mut all = Vec::new();
        places(&schema, "", &mut all);
        let rules: Vec<&String> = all.iter().filter(|path| is_rule(path)).collect();
        assert!(rules.len() > 5, "few rules for {form}");
        for rule in rules {
            if counts(&without(&schema, rule), &documents) == found {
                idle.push(format!("{form}: {rule}"));
            }
        }
    }
    assert!(idle.is_empty(), "no sample breaks\n{}", idle.join("\n"));
}

/// Samples that together contain every field.
const RICHEST: &[&str] = &[
    "team-every-field.json",
    "registry-every-field.json",
    "snapshot-addressees.json",
    "snapshot-older-names.json",
];

/// Replaces every value of a sample. Each result is read, or rejected with its problems; a document
/// that passes its schema but cannot be read would be a bug.
#[test]
fn whatever_passes_a_schema_can_be_read() {
    let others = [
        json!(null),
        json!(true),
        json!(0),
        json!(5.0),
        json!(1.5),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("x"),
        json!("2025-11-25T10:00:60Z"),
        json!([]),
        json!([1]),
        json!({}),
        json!({"x": "y"}),
    ];
    let (mut accepted, mut refused) = (0, 0);
    for name in RICHEST {
        let (name, text) = samples("valid", "")
            .into_iter()
            .find(|(known, _)| known == name)
            .unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let mut all = Vec::new();
        places(&document, "", &mut all);
        for path in &all {
            for other in &others {
                let mut changed = document.clone();
                *changed.pointer_mut(path).unwrap() = other.clone();
                match read(&name, &changed.to_string()) {
                    Ok(()) => accepted += 1,
                    Err(error @ TeamError::Schema { .. }) => {
                        panic!("{name} with {other} at {path}: {error}")
                    }
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(accepted > 100 && refused > 1000, "{accepted} {refused}");
}
