//! Compares the checks with those of the crate `jsonschema`, which implements the whole standard.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, json};

use super::super::schema::Form;
use super::*;

/// An error as the path of the value and the place in the schema, including the keyword.
type Reported = (String, String);

/// Schemas in the order of [`Form::ALL`], with the validator that the checks are compared with.
static REFERENCES: LazyLock<[(Value, Validator); 3]> = LazyLock::new(|| {
    Form::ALL.map(|form| {
        let schema = serde_json::from_str(form.schema()).unwrap();
        let options = jsonschema::options().should_validate_formats(true);
        let validator = options.build(&schema).unwrap();
        (schema, validator)
    })
});

fn schema(form: Form) -> &'static Value {
    &REFERENCES[form as usize].0
}

fn reported(schema: &Schema<'_>, document: &Value) -> BTreeSet<Reported> {
    let errors = schema.errors(document).into_iter();
    errors
        .map(|error| {
            let (path, keyword) = match error.fault {
                Fault::Missing(field) => (below(&error.path, field), "/required"),
                Fault::Unexpected(field) => (below(&error.path, field), "/additionalProperties"),
                Fault::Beyond(limit) => (error.path, keyword(limit)),
            };
            (path, format!("{}{keyword}", error.place))
        })
        .collect()
}

fn keyword(limit: &Limit<'_>) -> &'static str {
    match limit {
        Limit::Type(_) => "/type",
        Limit::Enum(_) => "/enum",
        Limit::Const(_) => "/const",
        Limit::MinLength(_) => "/minLength",
        Limit::Pattern(_) => "/pattern",
        Limit::DateTime => "/format",
        Limit::MinItems(_) => "/minItems",
        Limit::Minimum(_) => "/minimum",
        Limit::Maximum(_) => "/maximum",
        Limit::AnyOf(_) => "/anyOf",
        Limit::Never => "",
    }
}

fn reported_by_reference(form: Form, document: &Value) -> BTreeSet<Reported> {
    let validator = &REFERENCES[form as usize].1;
    validator
        .iter_errors(document)
        .flat_map(|error| {
            let path = error.instance_path().as_str();
            let paths = match error.kind() {
                ValidationErrorKind::Required { property } => {
                    vec![below(path, property.as_str().unwrap())]
                }
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    unexpected.iter().map(|field| below(path, field)).collect()
                }
                _ => vec![path.to_owned()],
            };
            let place = error.schema_path().as_str().to_owned();
            paths.into_iter().map(move |path| (path, place.clone()))
        })
        .collect()
}

/// Returns a valid document with every field and with both branches of every condition.
fn valid(form: Form) -> Value {
    match form {
        Form::Team => team(),
        Form::Registry => registry(),
        Form::Snapshot => snapshot(),
    }
}

fn team() -> Value {
    json!({
        "schemaVersion": "1.2",
        "agents": [
            { "name": "claude", "command": "claude", "args": ["-p"], "usePty": false },
            { "name": "codex" },
        ],
        "team": {
            "name": "review",
            "displayName": "Review team",
            "description": "Reviews changes.",
            "instructionFile": "TEAM.md",
            "roleDefinitions": [
                { "name": "author", "displayName": "Author", "description": "Writes." },
            ],
            "members": [
                {
                    "name": "ada", "displayName": "Ada", "role": "author", "displayRole": "Author",
                    "type": "ai", "agentType": "demo", "themeColor": "cyan", "baseDir": ".",
                    "systemInstruction": ["Write.", "Pass it on."], "instructionFile": "ADA.md",
                    "env": { "LANG": "C", "a/b~c": "" }, "more": [1],
                },
                {
                    "name": "you", "displayName": "You", "role": "lead", "type": "human",
                    "baseDir": ".", "systemInstruction": "",
                },
            ],
        },
        "maxRounds": 20,
        "conversation": {
            "maxAgentResponseTime": 1000, "showThinkingTimer": false, "allowEscCancel": true,
            "contextWindowSize": 1, "maxBytes": 4_294_967_295_u32,
        },
    })
}

fn registry() -> Value {
    json!({
        "schemaVersion": "1.1",
        "agents": {
            "claude": {
                "name": "claude", "displayName": "Claude", "command": "claude", "args": ["-v"],
                "usePty": false, "version": "2.0.5", "installedAt": "2025-11-25T10:00:00Z",
                "lastVerified": "2025-11-25T10:00:00.123+01:00",
            },
            "a/b~c": {
                "name": "a/b~c", "displayName": "", "command": "x", "args": [], "usePty": true,
            },
        },
    })
}

fn snapshot() -> Value {
    let newer = json!({
        "id": "m1", "timestamp": "2025-11-25T10:00:00.000Z", "content": "Please look.",
        "speaker": { "type": "human", "id": "you", "name": "you", "displayName": "You" },
        "routing": {
            "rawNextMarkers": ["ada"],
            "resolvedAddressees": [
                { "identifier": "ada", "memberId": "ada", "memberName": null },
            ],
        },
    });
    let older = json!({
        "id": "m2", "timestamp": "2025-11-25t10:01:00z", "content": "",
        "speaker": { "type": "ai", "roleId": "ada", "roleName": "ada", "roleTitle": "Ada" },
        "routing": {
            "resolvedAddressees": [{ "identifier": "you", "roleId": null, "roleName": "You" }],
        },
    });
    json!({
        "schemaVersion": "1.0",
        "teamId": "review",
        "sessionId": "s1",
        "createdAt": "2025-11-25T10:00:00Z",
        "updatedAt": "2025-11-25T10:05:00Z",
        "context": {
            "messages": [newer, older], "teamTask": null, "timestamp": 1_764_065_100_000_u64,
            "version": 1,
        },
        "metadata": { "messageCount": 2, "lastSpeakerId": "ada", "summary": "2 messages" },
    })
}

/// One change of a document.
#[derive(Clone, Debug)]
enum Change {
    Drop,
    Replace(Value),
    Insert(String, Value),
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        select(values_at_limits()),
        any::<f64>().prop_map(|number| json!(number)),
        any::<i64>().prop_map(|number| json!(number)),
        times().prop_map(Value::String),
        "[a-zA-Z0-9_ \n-]{0,6}".prop_map(Value::String),
        (1..100_usize).prop_map(|depth| (0..depth).fold(json!(1), |inside, _| json!([inside]))),
        (1..100_usize)
            .prop_map(|depth| (0..depth).fold(json!(1), |inside, _| json!({ "name": inside }))),
    ]
}

fn values_at_limits() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-0.0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(-1),
        json!(999),
        json!(1000.0),
        json!(4_294_967_295_u64),
        json!(4_294_967_295.5),
        json!(4_294_967_296_u64),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e300),
        json!(-1e300),
        json!(""),
        json!("1.1"),
        json!("1.0"),
        json!("ai"),
        json!("human"),
        json!("ada\n"),
        json!("\u{1f600}"),
        json!([]),
        json!([1, "two", null]),
        json!({}),
        json!({ "name": "x" }),
    ]
}

/// Times, most of them not quite right. No digit is replaced by punctuation, some of which
/// `jsonschema` takes for digits.
fn times() -> impl Strategy<Value = String> {
    "[0-9]{3,5}-[01][0-9a]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]:(59|60|61|[0-9]{1,2})(\\.[0-9]{0,12})?([Zz]|[+-][0-2][0-9]:?[0-6][0-9]|[+-][01][0-9])?"
}

fn any_change() -> impl Strategy<Value = Change> {
    let names = vec![
        "",
        "x",
        "a/b~c",
        "name",
        "type",
        "agentType",
        "id",
        "roleId",
        "roleName",
        "roleTitle",
        "memberId",
        "memberName",
        "displayName",
        "maxRounds",
        "$ref",
    ];
    prop_oneof![
        2 => Just(Change::Drop),
        4 => any_value().prop_map(Change::Replace),
        2 => (select(names), any_value())
            .prop_map(|(name, value)| Change::Insert(name.to_owned(), value)),
    ]
}

fn pointers(value: &Value, path: &str, all: &mut Vec<String>) {
    all.push(path.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &below(path, &index.to_string()), all);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                pointers(field, &below(path, name), all);
            }
        }
        _ => {}
    }
}

fn apply(document: &mut Value, place: Index, change: &Change) {
    let mut all = Vec::new();
    pointers(document, "", &mut all);
    let path: &String = place.get(&all);
    apply_at(document, path, change);
}

fn apply_at(document: &mut Value, path: &str, change: &Change) {
    let target = document.pointer_mut(path).unwrap();
    match change {
        Change::Replace(value) => *target = value.clone(),
        Change::Insert(name, value) => match target {
            Value::Object(fields) => drop(fields.insert(name.clone(), value.clone())),
            Value::Array(items) => items.push(value.clone()),
            other => *other = Value::Object(Map::from_iter([(name.clone(), value.clone())])),
        },
        Change::Drop => {
            let Some((above, step)) = path.rsplit_once('/') else {
                return;
            };
            match document.pointer_mut(above).unwrap() {
                Value::Array(items) => drop(items.remove(step.parse().unwrap())),
                Value::Object(fields) => {
                    fields.shift_remove(&step.replace("~1", "/").replace("~0", "~"));
                }
                _ => unreachable!("only lists and objects have something below them"),
            }
        }
    }
}

/// Fails unless a document has the same errors here and in the reference.
fn compare(form: Form, document: &Value) -> Result<BTreeSet<Reported>, TestCaseError> {
    let schema = schema(form);
    let errors = reported(&Schema::parse(schema).unwrap(), document);
    let expected = reported_by_reference(form, document);
    prop_assert_eq!(&errors, &expected, "{}: {}", form, document);
    Ok(errors)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_documents_have_the_errors_that_the_standard_defines(
        changes in proptest::collection::vec((any::<Index>(), any_change()), 1..5),
    ) {
        for form in Form::ALL {
            let mut document = valid(form);
            for (place, change) in &changes {
                apply(&mut document, *place, change);
                compare(form, &document)?;
            }
        }
    }
}

/// Every value of a document is dropped, and replaced by each value that is at a limit.
#[test]
fn every_rule_is_checked_as_the_standard_defines() {
    let (mut valid_ones, mut broken) = (0, BTreeSet::new());
    for form in Form::ALL {
        let mut places = Vec::new();
        pointers(&valid(form), "", &mut places);
        let replacements = values_at_limits().into_iter().map(Change::Replace);
        let changes: Vec<Change> = replacements.chain([Change::Drop]).collect();
        for place in &places {
            for change in &changes {
                let mut document = valid(form);
                apply_at(&mut document, place, change);
                let errors = compare(form, &document).unwrap();
                valid_ones += usize::from(errors.is_empty());
                let keywords = errors
                    .iter()
                    .filter_map(|(_, rule)| rule.rsplit('/').next());
                broken.extend(keywords.map(str::to_owned));
            }
        }
    }
    assert!(valid_ones > 300, "{valid_ones}");
    let expected = [
        "additionalProperties",
        "const",
        "enum",
        "format",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "pattern",
        "required",
        "type",
    ];
    assert!(broken.iter().eq(expected), "{broken:?}");
}

#[test]
fn a_document_without_errors_has_none() {
    for form in Form::ALL {
        assert_eq!(compare(form, &valid(form)).unwrap(), BTreeSet::new());
    }
}

/// The errors that only an added field causes.
#[test]
fn fields_of_both_ways_to_name_a_speaker_are_errors() {
    let mut document = valid(Form::Snapshot);
    document["context"]["messages"][1]["speaker"]["id"] = json!(5);
    document["context"]["messages"][1]["speaker"]["a/b~c"] = json!(5);
    let speaker = "/context/messages/1/speaker";
    let at = |field: &str, rule: &str| {
        let rule = format!("/definitions/speaker{rule}");
        (below(speaker, field), rule)
    };
    let expected = [
        at("a/b~c", "/additionalProperties"),
        at("id", "/properties/id/type"),
        at("id", "/then/properties/id"),
    ];
    let errors = compare(Form::Snapshot, &document).unwrap();
    assert_eq!(errors, BTreeSet::from(expected));
}
