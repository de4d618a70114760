//! Arguments of a tool call, readable: commands and files as text, not as escaped JSON.

use serde_json::Value;

use super::code::Painter;
use super::{escape, shortened};

/// Length of the arguments in the line that stands for a folded call.
const SUMMARY: usize = 90;

/// Returns the argument that tells most, for the line of a folded call.
pub(super) fn summary(arguments: &Value) -> String {
    const TELLING: [&str; 10] = [
        "command",
        "cmd",
        "file_path",
        "path",
        "pattern",
        "query",
        "url",
        "description",
        "prompt",
        "name",
    ];
    let Some(fields) = arguments.as_object() else {
        return match arguments {
            Value::Null => String::new(),
            Value::String(text) => shortened(text, SUMMARY),
            other => shortened(&other.to_string(), SUMMARY),
        };
    };
    let telling = TELLING.iter().find_map(|name| fields.get(*name)?.as_str());
    let first = || fields.values().find_map(Value::as_str);
    let text = telling.or_else(first).unwrap_or_default();
    shortened(text, SUMMARY)
}

/// Renders all arguments.
pub(super) fn render(arguments: &Value, painter: &mut Painter) -> String {
    let Some(fields) = arguments.as_object() else {
        return match arguments {
            Value::Null => String::new(),
            Value::String(text) => painter.block("", text),
            other => painter.block("json", &pretty(other)),
        };
    };
    let language = language_of_file(arguments);
    let mut text = String::new();
    for (name, value) in fields {
        let label = format!("<span class=\"name\">{}</span>", escape(name));
        text.push_str(&match value {
            Value::String(words) if name == "command" || name == "cmd" => {
                format!("<div>{label}{}</div>\n", painter.block("bash", words))
            }
            Value::String(words) if words.contains('\n') => {
                format!("<div>{label}{}</div>\n", painter.block(language, words))
            }
            Value::String(words) => format!("<div>{label} <code>{}</code></div>\n", escape(words)),
            Value::Array(_) | Value::Object(_) => {
                format!(
                    "<div>{label}{}</div>\n",
                    painter.block("json", &pretty(value))
                )
            }
            other => format!("<div>{label} <code>{other}</code></div>\n"),
        });
    }
    text
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns the extension of the file that a call is about.
fn language_of_file(arguments: &Value) -> &str {
    let path = ["file_path", "path", "filename"]
        .iter()
        .find_map(|name| arguments.get(name)?.as_str());
    let name = path.and_then(|path| path.rsplit('/').next());
    let extension = name.and_then(|name| name.rsplit_once('.'));
    extension.map_or("", |(_, extension)| extension)
}
