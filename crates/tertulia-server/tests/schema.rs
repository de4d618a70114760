//! The schema in the project is the one of the types, and the page about the protocol tells of all of it.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tertulia_server::protocol::TYPES;
use tertulia_server::schema::schema;

fn project(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(path)
}

/// The tags of a direction, each with its fields.
fn tags(definition: &str) -> Vec<(String, Vec<String>)> {
    let schema = schema();
    let mut variants = schema["$defs"][definition]["oneOf"]
        .as_array()
        .unwrap()
        .clone();
    for variant in &mut variants {
        if let Some(reference) = variant["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap();
            let referred = schema["$defs"][name].clone();
            variant["properties"]
                .as_object_mut()
                .unwrap()
                .extend(referred["properties"].as_object().unwrap().clone());
        }
    }
    let read = |variant: &Value| {
        let properties = variant["properties"].as_object().unwrap();
        let tag = properties["type"]["const"].as_str().unwrap().to_owned();
        let fields = properties
            .keys()
            .filter(|key| *key != "type" && *key != "id");
        (tag, fields.cloned().collect())
    };
    variants.iter().map(read).collect()
}

#[test]
fn the_schema_is_the_one_of_the_types() {
    let made = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    let file = project("schemas/protocol-1.json");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == made,
        "the types have changed: UPDATE_SCHEMAS=1 cargo test -p tertulia-server --test schema"
    );
}

#[test]
fn every_type_that_is_read_is_in_the_schema() {
    let found: Vec<String> = tags("Request").into_iter().map(|(tag, _)| tag).collect();
    assert_eq!(found, TYPES);
}

#[test]
fn the_page_tells_of_every_type_and_every_field() {
    let page = std::fs::read_to_string(project("docs/protocol.md")).unwrap();
    let mut missing = Vec::new();
    for definition in ["Request", "Reply"] {
        for (tag, fields) in tags(definition) {
            if !page.contains(&format!("`{tag}`")) {
                missing.push(format!("{definition} `{tag}`"));
            }
            let named = |field: &str| {
                let word = |c: char| !c.is_alphanumeric() && c != '_';
                page.split(word).any(|found| found == field)
            };
            let unnamed = fields.iter().filter(|field| !named(field));
            missing.extend(unnamed.map(|field| format!("{tag}.{field}")));
        }
    }
    let schema = schema();
    for kind in ["ErrorKind", "Status", "TalkState", "Tone", "Detail"] {
        for variant in names(&schema["$defs"][kind]) {
            if !page.contains(&format!("`{variant}`")) && !page.contains(&format!("\"{variant}\""))
            {
                missing.push(format!("{kind} {variant}"));
            }
        }
    }
    for what in schema["$defs"]["Happening"]["oneOf"].as_array().unwrap() {
        let what = what["properties"]["what"]["const"].as_str().unwrap();
        if !page.contains(&format!("`{what}`")) {
            missing.push(format!("happening {what}"));
        }
    }
    assert!(missing.is_empty(), "not in docs/protocol.md: {missing:#?}");
}

/// The names of an enum.
fn names(definition: &Value) -> Vec<String> {
    let variants = definition["oneOf"].as_array().unwrap();
    let name = |variant: &Value| variant["const"].as_str().unwrap().to_owned();
    variants.iter().map(name).collect()
}

#[test]
fn the_lines_on_the_page_are_of_the_protocol() {
    let page = std::fs::read_to_string(project("docs/protocol.md")).unwrap();
    let schema = schema();
    let one = |definition: &str| {
        let root = serde_json::json!({ "$ref": format!("#/$defs/{definition}"), "$defs": schema["$defs"] });
        jsonschema::validator_for(&root).unwrap()
    };
    let (request, reply) = (one("Request"), one("Reply"));
    let lines = page.lines().filter(|line| line.starts_with("{\""));
    let mut count = 0;
    for line in lines {
        let value: Value = serde_json::from_str(line).unwrap();
        let known = TYPES.contains(&value["type"].as_str().unwrap());
        let validator = if known { &request } else { &reply };
        let wrong: Vec<String> = validator
            .iter_errors(&value)
            .map(|e| e.to_string())
            .collect();
        assert!(wrong.is_empty(), "{line}: {wrong:?}");
        count += 1;
    }
    assert!(count >= 8, "{count} lines");
}
