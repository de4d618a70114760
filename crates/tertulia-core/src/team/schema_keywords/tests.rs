use super::super::schema::Form;
use super::*;
use serde_json::json;

fn refusal(document: &Value) -> String {
    Schema::parse(document).unwrap_err()
}

/// Adds a keyword to every object within a schema, one at a time, and returns the results.
fn with_keyword_everywhere(document: &Value, keyword: &str) -> Vec<Value> {
    fn objects(value: &Value, path: &str, all: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                all.push(path.to_owned());
                for (name, field) in fields {
                    objects(field, &below(path, name), all);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    objects(item, &below(path, &index.to_string()), all);
                }
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    objects(document, "", &mut all);
    let changed = |path: &String| {
        let mut document = document.clone();
        document.pointer_mut(path).unwrap()[keyword] = json!(1);
        document
    };
    all.iter().map(changed).collect()
}

#[test]
fn the_schemas_use_only_what_is_supported() {
    for form in Form::ALL {
        let schema: Value = serde_json::from_str(form.schema()).unwrap();
        assert!(Schema::parse(&schema).is_ok(), "{form}");
        let changed = with_keyword_everywhere(&schema, "maxLength");
        assert!(changed.len() > 10, "{form}");
        for schema in changed {
            assert!(Schema::parse(&schema).is_err(), "{schema}");
        }
    }
}

#[test]
fn what_is_not_supported_is_named() {
    let check = |keyword: &str, value: Value, expected: &str| {
        let schema = json!({ "$schema": DRAFT, "properties": { "a": { keyword: value } } });
        assert_eq!(refusal(&schema), expected);
    };
    let here = |keyword: &str, reason: &str| format!("/properties/a/{keyword} {reason}");
    for (keyword, value) in [
        ("maxLength", json!(1)),
        ("allOf", json!([])),
        ("not", json!({})),
        ("$id", json!("x")),
        ("$schema", json!(DRAFT)),
        ("definitions", json!({})),
        ("then", json!({})),
        ("else", json!({})),
        ("format", json!("email")),
    ] {
        check(keyword, value, &here(keyword, "is not supported"));
    }
    let number = "is not a whole number from 0 to 4294967295";
    for (keyword, value) in [
        ("minimum", json!(-1)),
        ("maximum", json!(4_294_967_296_u64)),
        ("minItems", json!(1.5)),
        ("minLength", json!("1")),
        ("const", json!(null)),
        ("const", json!(0.1)),
    ] {
        check(keyword, value, &here(keyword, number));
    }
    check("enum", json!(["a", true]), &here("enum/1", number));
    check("enum", json!("a"), &here("enum", "is not a list"));
    check("required", json!([1]), &here("required", "is not a text"));
    check(
        "items",
        json!([]),
        &here("items", "is neither an object nor false"),
    );
    check(
        "items",
        json!(true),
        &here("items", "is neither an object nor false"),
    );
    check(
        "properties",
        json!([]),
        &here("properties", "is not an object"),
    );
    let odd = "/properties/a/type: there is no type `text`";
    check("type", json!("text"), odd);
    check("type", json!(["null", "text"]), odd);
    let schema = json!({ "$schema": DRAFT, "pattern": "(" });
    assert!(refusal(&schema).starts_with("/pattern: regex parse error"));
}

#[test]
fn references_lead_to_definitions_that_end() {
    let check = |schema: Value, expected: &str| assert_eq!(refusal(&schema), expected);
    let schema = |root: Value, definitions: Value| json!({ "$schema": DRAFT, "items": root, "definitions": definitions });
    check(
        schema(json!({ "$ref": "other.json" }), json!({})),
        "\"other.json\" at /items is not a definition of this schema",
    );
    check(
        schema(json!({ "$ref": "#/definitions/a" }), json!({})),
        "\"#/definitions/a\" at /items is not defined",
    );
    check(
        schema(
            json!({ "$ref": "#/definitions/a", "title": "A" }),
            json!({ "a": {} }),
        ),
        "`$ref` at /items does not stand alone",
    );
    check(
        schema(json!({}), json!({ "a": { "maxLength": 1 } })),
        "the definition `a` is not used",
    );
    check(
        schema(
            json!({ "$ref": "#/definitions/a" }),
            json!({ "a": { "items": { "$ref": "#/definitions/a" } } }),
        ),
        "\"#/definitions/a\" at /definitions/a/items contains itself",
    );
    check(
        json!({ "type": "null" }),
        &format!("`$schema` is not {DRAFT}"),
    );
}
