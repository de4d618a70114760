//! Parses a line into a request, or an error.

use serde_json::{Map, Value};

use crate::protocol::{Ask, ErrorBody, ErrorKind, Id, LONGEST_ID, Request, TYPES};

/// A line that is not a valid request, with its request id if that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The request id.
    pub id: Option<Id>,
    /// The error.
    pub trouble: ErrorBody,
}

/// Parses a line.
pub fn request(line: &[u8]) -> Result<Request, Wrong> {
    let mut object = object(line).map_err(|message| Wrong {
        id: None,
        trouble: ErrorBody::new(ErrorKind::Malformed, message)
            .hint("a request is one line of JSON: {\"type\":\"ps\"}"),
    })?;
    let id = match object.remove("id") {
        None | Some(Value::Null) => None,
        Some(value) => Some(named(value)?),
    };
    ask(object)
        .map(|ask| Request {
            id: id.clone(),
            ask,
        })
        .map_err(|trouble| Wrong { id, trouble })
}

fn object(line: &[u8]) -> Result<Map<String, Value>, String> {
    let text = std::str::from_utf8(line)
        .map_err(|error| format!("the line is no UTF-8 from byte {} on", error.valid_up_to()))?;
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("the line is not a JSON object".to_owned()),
        Err(error) => Err(format!("the line is not JSON: {error}")),
    }
}

fn named(value: Value) -> Result<Id, Wrong> {
    let id = match serde_json::from_value(value) {
        Ok(Id::Text(text)) if text.len() > LONGEST_ID => None,
        Ok(id) => Some(id),
        Err(_) => None,
    };
    id.ok_or_else(|| Wrong {
        id: None,
        trouble: ErrorBody::new(
            ErrorKind::Usage,
            format!("an `id` is a whole number, or a text of at most {LONGEST_ID} bytes"),
        ),
    })
}

fn ask(object: Map<String, Value>) -> Result<Ask, ErrorBody> {
    let kind = match object.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        _ => {
            return Err(ErrorBody::new(
                ErrorKind::Malformed,
                "the request has no `type`",
            ));
        }
    };
    if !TYPES.contains(&kind.as_str()) {
        let shown: String = kind.chars().take(40).collect();
        return Err(ErrorBody::new(
            ErrorKind::UnknownType,
            format!("there is no request '{shown}'"),
        )
        .hint(format!("types: {}", TYPES.join(", "))));
    }
    read(&object).map_err(|error| {
        let words = unfit(&object, &error);
        ErrorBody::new(ErrorKind::Usage, format!("`{kind}`: {words}"))
    })
}

fn read(object: &Map<String, Value>) -> Result<Ask, String> {
    serde_json::from_value(Value::Object(object.clone())).map_err(|error| error.to_string())
}

/// Describes why an object is not a valid request, naming the field.
fn unfit(object: &Map<String, Value>, error: &str) -> String {
    if let Some(field) = error.strip_prefix("missing field ") {
        return format!("{field} is missing");
    }
    // The field whose removal changes the error.
    let is_to_blame = |field: &&String| {
        let mut others = object.clone();
        others.remove(*field);
        read(&others).err().as_deref() != Some(error)
    };
    let mut fields = object.keys().filter(|field| *field != "type");
    let Some(field) = fields.find(is_to_blame) else {
        return error.to_owned();
    };
    let expected = error
        .split_once("expected ")
        .map_or(error, |(_, rest)| rest);
    let expected = match expected {
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number, 0 or more",
        "i64" | "i32" => "a whole number",
        "a string" | "string" => "a text",
        "a boolean" | "a bool" => "true or false",
        "a sequence" => "a list",
        other => other,
    };
    let found: String = object[field].to_string().chars().take(40).collect();
    format!("`{field}` is {found}, expected {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(line: &[u8]) -> (Option<Id>, ErrorKind, String) {
        let wrong = request(line).unwrap_err();
        (wrong.id, wrong.trouble.kind, wrong.trouble.message)
    }

    #[test]
    fn what_is_wrong_is_told_with_the_id_where_it_can_be_read() {
        let id = Some(Id::Number(7));
        let (_, kind, message) = wrong(b"{\"type\":\"ps\"");
        assert!(kind == ErrorKind::Malformed && message.contains("not JSON"));
        assert_eq!(wrong(b"[]").1, ErrorKind::Malformed);
        assert_eq!(wrong(b"\xff{}").1, ErrorKind::Malformed);
        assert_eq!(wrong(b"{\"id\":7}").0, id);
        let (named, kind, message) = wrong(br#"{"type":"dance","id":7}"#);
        assert_eq!((named, kind), (id.clone(), ErrorKind::UnknownType));
        assert!(message.contains("'dance'"), "{message}");
        let (named, kind, message) = wrong(br#"{"id":7,"type":"query","words":"x"}"#);
        assert_eq!((named, kind), (id, ErrorKind::Usage));
        assert!(message.contains("query"), "{message}");
        assert_eq!(wrong(br#"{"id":{},"type":"ps"}"#).1, ErrorKind::Usage);
        let long = format!(r#"{{"id":"{}","type":"ps"}}"#, "x".repeat(300));
        assert_eq!(wrong(long.as_bytes()).1, ErrorKind::Usage);
    }

    #[test]
    fn a_wrong_field_is_named_in_plain_words() {
        let check = |line: &str, expected: &str| {
            let (_, kind, message) = wrong(line.as_bytes());
            assert_eq!((kind, message.as_str()), (ErrorKind::Usage, expected));
        };
        check(
            r#"{"type":"session_list","limit":-1}"#,
            "`session_list`: `limit` is -1, expected a whole number, 0 or more",
        );
        check(
            r#"{"type":"session_load","session_id":"x","last":"two"}"#,
            "`session_load`: `last` is \"two\", expected a whole number, 0 or more",
        );
        check(
            r#"{"type":"query","query":["x"]}"#,
            "`query`: `query` is [\"x\"], expected a text",
        );
        check(r#"{"type":"query"}"#, "`query`: `query` is missing");
        check(
            r#"{"type":"tool_approve","tool_id":"t","approved":"maybe"}"#,
            "`tool_approve`: `approved` is \"maybe\", expected true or false",
        );
    }

    #[test]
    fn what_is_not_known_in_a_request_is_passed_over() {
        let read = request(br#"{"type":"query","query":"x","colour":"red","id":"a"}"#).unwrap();
        assert_eq!(read.id, Some(Id::Text("a".into())));
        assert_eq!(
            read.ask,
            Ask::Query {
                query: "x".to_owned(),
                client_id: None,
            }
        );
    }

    #[test]
    fn every_type_can_be_read() {
        for kind in TYPES {
            let line = format!(
                r#"{{"type":"{kind}","query":"q","session_id":"s","tool_id":"t","approved":true,"format":"json","text":"x","verdict":"yes","title":"t","agent":"a","secret":"s","client_id":"c"}}"#
            );
            let read = request(line.as_bytes()).unwrap();
            let written = serde_json::to_value(&read).unwrap();
            assert_eq!(written["type"], *kind);
        }
    }
}
