//! The protocol as a JSON Schema, for authors of clients.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::protocol::{PROTOCOL, Reply, Request};

/// Returns the schema of both directions, with `Request` and `Reply` among its definitions.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let request = generator.subschema_for::<Request>();
    let answer = generator.subschema_for::<Reply>();
    let definitions = generator.take_definitions(true);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("tertulia protocol {PROTOCOL}"),
        "description": "One line of JSON each, over standard input and output or a Unix socket. A client sends requests (#/$defs/Request), the server sends answers (#/$defs/Reply).",
        "anyOf": [request, answer],
        "$defs": definitions,
    })
}
