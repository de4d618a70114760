//! The part of JSON Schema (draft 7) that the built-in schemas use, as types. Anything else in a
//! schema is an error: a rule that is not understood must not be skipped.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::{Map, Value};

use super::problem::below;

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// Prefix of references: they stay within the schema.
const DEFINITIONS: &str = "#/definitions/";

/// A parsed schema: a value fits if it meets all rules.
#[derive(Debug)]
pub(super) struct Schema<'s> {
    /// JSON pointer to this schema in the document that defines it.
    pub(super) place: String,
    pub(super) rules: Vec<Rule<'s>>,
}

/// What a schema says about a value.
#[derive(Debug)]
pub(super) enum Rule<'s> {
    /// A condition on the value as a whole.
    Limit(Limit<'s>),
    /// Fields that an object must have.
    Required(Vec<&'s str>),
    /// Schemas for the fields of an object.
    Fields {
        known: BTreeMap<&'s str, Schema<'s>>,
        others: Others<'s>,
    },
    /// Schema for each item of a list.
    Items(Schema<'s>),
    /// A schema that applies only to values that fit another one, or only to those that do not.
    If {
        condition: Schema<'s>,
        then: Option<Schema<'s>>,
        otherwise: Option<Schema<'s>>,
    },
}

/// What `additionalProperties` says about fields that `properties` does not list.
#[derive(Debug)]
pub(super) enum Others<'s> {
    Allowed,
    Forbidden,
    Checked(Box<Schema<'s>>),
}

/// A condition on a single value.
#[derive(Debug)]
pub(super) enum Limit<'s> {
    Type(BTreeSet<Type>),
    Enum(&'s Value),
    Const(&'s Value),
    MinLength(u32),
    Pattern(Regex),
    DateTime,
    MinItems(u32),
    Minimum(u32),
    Maximum(u32),
    AnyOf(Vec<Schema<'s>>),
    /// The schema `false`, which no value fits.
    Never,
}

/// Types of JSON Schema, in the order in which messages list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Type {
    const ALL: [Type; 7] = [
        Type::Null,
        Type::Boolean,
        Type::Integer,
        Type::Number,
        Type::String,
        Type::Array,
        Type::Object,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Type::Null => "null",
            Type::Boolean => "boolean",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::String => "string",
            Type::Array => "array",
            Type::Object => "object",
        }
    }
}

impl<'s> Schema<'s> {
    /// Parses a schema document. Returns the reason if any part of it is not supported.
    pub(super) fn parse(document: &'s Value) -> Result<Schema<'s>, String> {
        if document.get("$schema").and_then(Value::as_str) != Some(DRAFT) {
            return Err(format!("`$schema` is not {DRAFT}"));
        }
        let mut parser = Parser {
            document,
            open: Vec::new(),
            used: BTreeSet::new(),
        };
        let schema = parser.schema(document, "")?;
        // Definitions are parsed where they are used, so one without a use would go unchecked.
        let definitions = document.get("definitions").and_then(Value::as_object);
        let unused = definitions
            .into_iter()
            .flat_map(Map::keys)
            .find(|name| !parser.used.contains(name.as_str()));
        match unused {
            Some(name) => Err(format!("the definition `{name}` is not used")),
            None => Ok(schema),
        }
    }
}

struct Parser<'s> {
    document: &'s Value,
    /// Definitions that are being parsed, to stop at one that contains itself.
    open: Vec<&'s str>,
    used: BTreeSet<&'s str>,
}

impl<'s> Parser<'s> {
    fn schema(&mut self, value: &'s Value, place: &str) -> Result<Schema<'s>, String> {
        let rules = match value {
            Value::Bool(false) => vec![Rule::Limit(Limit::Never)],
            Value::Object(keywords) => match keywords.get("$ref") {
                // Draft 7 ignores what stands beside a reference.
                Some(_) if keywords.len() > 1 => {
                    return Err(format!("`$ref` at {place} does not stand alone"));
                }
                Some(target) => return self.definition(target, place),
                None => self.rules(keywords, place)?,
            },
            _ => return Err(format!("{place} is neither an object nor false")),
        };
        Ok(Schema {
            place: place.to_owned(),
            rules,
        })
    }

    fn definition(&mut self, target: &'s Value, place: &str) -> Result<Schema<'s>, String> {
        let unusable = |reason: &str| format!("{target} at {place} {reason}");
        let name = target
            .as_str()
            .and_then(|target| target.strip_prefix(DEFINITIONS))
            .ok_or_else(|| unusable("is not a definition of this schema"))?;
        let definition = self
            .document
            .get("definitions")
            .and_then(|definitions| definitions.get(name))
            .ok_or_else(|| unusable("is not defined"))?;
        if self.open.contains(&name) {
            return Err(unusable("contains itself"));
        }
        self.used.insert(name);
        self.open.push(name);
        let schema = self.schema(definition, &below("/definitions", name));
        self.open.pop();
        schema
    }

    fn rules(
        &mut self,
        keywords: &'s Map<String, Value>,
        place: &str,
    ) -> Result<Vec<Rule<'s>>, String> {
        let mut rules = Vec::new();
        for (keyword, value) in keywords {
            let here = below(place, keyword);
            let rule = match keyword.as_str() {
                "title" | "description" | "default" => continue,
                "$schema" | "definitions" if place.is_empty() => continue,
                // Part of another keyword.
                "then" | "else" if keywords.contains_key("if") => continue,
                "additionalProperties" if keywords.contains_key("properties") => continue,
                "properties" | "additionalProperties" => self.fields(keywords, place)?,
                "items" => Rule::Items(self.schema(value, &here)?),
                "if" => Rule::If {
                    condition: self.schema(value, &here)?,
                    then: self.optional(keywords, "then", place)?,
                    otherwise: self.optional(keywords, "else", place)?,
                },
                "required" => Rule::Required(texts(value, &here)?),
                "anyOf" => Rule::Limit(Limit::AnyOf(self.schemas(value, &here)?)),
                other => Rule::Limit(limit(other, value, &here)?),
            };
            rules.push(rule);
        }
        Ok(rules)
    }

    fn fields(
        &mut self,
        keywords: &'s Map<String, Value>,
        place: &str,
    ) -> Result<Rule<'s>, String> {
        let mut known = BTreeMap::new();
        if let Some(properties) = keywords.get("properties") {
            let place = below(place, "properties");
            let fields = properties
                .as_object()
                .ok_or_else(|| format!("{place} is not an object"))?;
            for (name, field) in fields {
                known.insert(name.as_str(), self.schema(field, &below(&place, name))?);
            }
        }
        let others = match keywords.get("additionalProperties") {
            None => Others::Allowed,
            Some(Value::Bool(false)) => Others::Forbidden,
            Some(other) => {
                let place = below(place, "additionalProperties");
                Others::Checked(Box::new(self.schema(other, &place)?))
            }
        };
        Ok(Rule::Fields { known, others })
    }

    fn optional(
        &mut self,
        keywords: &'s Map<String, Value>,
        keyword: &str,
        place: &str,
    ) -> Result<Option<Schema<'s>>, String> {
        keywords
            .get(keyword)
            .map(|value| self.schema(value, &below(place, keyword)))
            .transpose()
    }

    fn schemas(&mut self, value: &'s Value, place: &str) -> Result<Vec<Schema<'s>>, String> {
        list(value, place)?
            .iter()
            .enumerate()
            .map(|(index, schema)| self.schema(schema, &below(place, &index.to_string())))
            .collect()
    }
}

/// Parses a keyword that is a condition on a single value.
fn limit<'s>(keyword: &str, value: &'s Value, here: &str) -> Result<Limit<'s>, String> {
    Ok(match keyword {
        "type" => Limit::Type(types(value, here)?),
        "enum" => {
            for (index, option) in list(value, here)?.iter().enumerate() {
                comparable(option, &below(here, &index.to_string()))?;
            }
            Limit::Enum(value)
        }
        "const" => {
            comparable(value, here)?;
            Limit::Const(value)
        }
        "minLength" => Limit::MinLength(whole(value, here)?),
        "minItems" => Limit::MinItems(whole(value, here)?),
        "minimum" => Limit::Minimum(whole(value, here)?),
        "maximum" => Limit::Maximum(whole(value, here)?),
        "pattern" => {
            let pattern = Regex::new(text(value, here)?);
            Limit::Pattern(pattern.map_err(|error| format!("{here}: {error}"))?)
        }
        "format" if value == "date-time" => Limit::DateTime,
        _ => return Err(format!("{here} is not supported")),
    })
}

fn types(value: &Value, here: &str) -> Result<BTreeSet<Type>, String> {
    let names = match value {
        Value::Array(_) => texts(value, here)?,
        single => vec![text(single, here)?],
    };
    let known = |name: &str| Type::ALL.into_iter().find(|known| known.name() == name);
    names
        .into_iter()
        .map(|name| known(name).ok_or_else(|| format!("{here}: there is no type `{name}`")))
        .collect()
}

/// Allows only constants that are compared exactly.
fn comparable(value: &Value, here: &str) -> Result<(), String> {
    match value {
        Value::String(_) => Ok(()),
        other => whole(other, here).map(drop),
    }
}

/// Returns a limit, which is small enough to be exact as a float.
fn whole(value: &Value, here: &str) -> Result<u32, String> {
    value
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| format!("{here} is not a whole number from 0 to {}", u32::MAX))
}

fn text<'s>(value: &'s Value, here: &str) -> Result<&'s str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("{here} is not a text"))
}

fn texts<'s>(value: &'s Value, here: &str) -> Result<Vec<&'s str>, String> {
    let items = list(value, here)?.iter();
    items.map(|item| text(item, here)).collect()
}

fn list<'s>(value: &'s Value, here: &str) -> Result<&'s [Value], String> {
    value
        .as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| format!("{here} is not a list"))
}

#[cfg(test)]
mod tests;
