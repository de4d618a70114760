//! Checks a document against a parsed schema and finds all errors, not only the first.

use serde_json::Value;

use super::problem::below;
use super::schema_keywords::{Limit, Others, Rule, Schema, Type};
use super::schema_time::is_date_time;

/// One place where a document does not fit its schema.
#[derive(Debug)]
pub(super) struct SchemaError<'a> {
    /// JSON pointer to the value; empty for the whole document.
    pub(super) path: String,
    /// The value.
    pub(super) value: &'a Value,
    /// JSON pointer to the schema that the value does not fit.
    pub(super) place: &'a str,
    pub(super) fault: Fault<'a>,
}

/// What is wrong with a value.
#[derive(Debug)]
pub(super) enum Fault<'a> {
    /// A required field is absent.
    Missing(&'a str),
    /// A field is not listed in the schema.
    Unexpected(&'a str),
    /// The value violates a limit.
    Beyond(&'a Limit<'a>),
}

/// Path to a value. Rendered only for errors, because most values have none.
#[derive(Clone, Copy)]
enum Path<'p> {
    Root,
    Field(&'p Path<'p>, &'p str),
    Item(&'p Path<'p>, usize),
}

impl Path<'_> {
    fn pointer(&self) -> String {
        match self {
            Path::Root => String::new(),
            Path::Field(above, name) => below(&above.pointer(), name),
            Path::Item(above, index) => below(&above.pointer(), &index.to_string()),
        }
    }
}

impl Schema<'_> {
    /// Returns all errors of a document.
    pub(super) fn errors<'a>(&'a self, document: &'a Value) -> Vec<SchemaError<'a>> {
        let mut errors = Vec::new();
        self.check(document, Path::Root, &mut errors);
        errors
    }

    fn fits(&self, value: &Value) -> bool {
        self.errors(value).is_empty()
    }

    fn check<'a>(&'a self, value: &'a Value, path: Path<'_>, errors: &mut Vec<SchemaError<'a>>) {
        for rule in &self.rules {
            match rule {
                Rule::Limit(limit) => {
                    if !limit.holds(value) {
                        errors.push(self.error(value, path, Fault::Beyond(limit)));
                    }
                }
                Rule::Required(fields) => {
                    let object = value.as_object();
                    for field in fields {
                        if object.is_some_and(|object| !object.contains_key(*field)) {
                            errors.push(self.error(value, path, Fault::Missing(field)));
                        }
                    }
                }
                Rule::Fields { known, others } => {
                    for (name, field) in value.as_object().into_iter().flatten() {
                        let schema = match (known.get(name.as_str()), others) {
                            (Some(schema), _) => schema,
                            (None, Others::Checked(schema)) => schema,
                            (None, Others::Allowed) => continue,
                            (None, Others::Forbidden) => {
                                errors.push(self.error(value, path, Fault::Unexpected(name)));
                                continue;
                            }
                        };
                        schema.check(field, Path::Field(&path, name), errors);
                    }
                }
                Rule::Items(schema) => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        schema.check(item, Path::Item(&path, index), errors);
                    }
                }
                Rule::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    let fits = condition.fits(value);
                    if let Some(schema) = if fits { then } else { otherwise } {
                        schema.check(value, path, errors);
                    }
                }
            }
        }
    }

    fn error<'a>(&'a self, value: &'a Value, path: Path<'_>, fault: Fault<'a>) -> SchemaError<'a> {
        SchemaError {
            path: path.pointer(),
            value,
            place: &self.place,
            fault,
        }
    }
}

impl Limit<'_> {
    /// Returns false if a value violates the limit. Limits for another type than the value's do not
    /// apply: they are in addition to `type`.
    fn holds(&self, value: &Value) -> bool {
        match self {
            Limit::Type(types) => types.iter().any(|wanted| wanted.includes(value)),
            Limit::Enum(options) => {
                let mut options = options.as_array().into_iter().flatten();
                options.any(|option| equal(option, value))
            }
            Limit::Const(constant) => equal(constant, value),
            Limit::MinLength(least) => value
                .as_str()
                .is_none_or(|text| text.chars().count() >= *least as usize),
            Limit::Pattern(pattern) => value.as_str().is_none_or(|text| pattern.is_match(text)),
            Limit::DateTime => value.as_str().is_none_or(is_date_time),
            Limit::MinItems(least) => value
                .as_array()
                .is_none_or(|items| items.len() >= *least as usize),
            Limit::Minimum(least) => number(value).is_none_or(|value| value >= f64::from(*least)),
            Limit::Maximum(most) => number(value).is_none_or(|value| value <= f64::from(*most)),
            Limit::AnyOf(schemas) => schemas.iter().any(|schema| schema.fits(value)),
            Limit::Never => false,
        }
    }
}

impl Type {
    fn includes(self, value: &Value) -> bool {
        match self {
            Type::Null => value.is_null(),
            Type::Boolean => value.is_boolean(),
            // `5.0` is a whole number too.
            Type::Integer => number(value).is_some_and(|number| number.fract() == 0.0),
            Type::Number => value.is_number(),
            Type::String => value.is_string(),
            Type::Array => value.is_array(),
            Type::Object => value.is_object(),
        }
    }
}

/// Compares with a constant of a schema. Numbers are compared by value: `1.0` equals `1`.
fn equal(constant: &Value, value: &Value) -> bool {
    match number(constant) {
        // Constants are small whole numbers, to which no other number is rounded.
        Some(constant) => number(value) == Some(constant),
        None => constant == value,
    }
}

/// Returns a number as a float. That rounds large ones, but never across the limits of a schema,
/// which are small whole numbers.
fn number(value: &Value) -> Option<f64> {
    value.as_f64()
}

#[cfg(test)]
mod tests;
