//! The document for scripts.

use serde_json::{Map, Value, json};

use tertulia_core::entry::Usage;
use tertulia_core::stats::{Amount, By, FileUse, Group, Report, ToolUse, Unpriced};

/// Files in the list; `--by file` has all.
const FILES: usize = 50;

/// Returns the statistics as one document.
pub fn json(report: &Report) -> Value {
    let scope = &report.scope;
    let mut files: Vec<Value> = report.files.iter().take(FILES).map(file).collect();
    rename(&mut files, "key", "path");
    let mut tools: Vec<Value> = report.tools.iter().map(tool).collect();
    rename(&mut tools, "key", "name");
    let unknown: Vec<Value> = report.unpriced.iter().map(unpriced).collect();
    let longest = report.longest.iter().map(|session| {
        let mut object = amount(&session.amount);
        object.insert("id".into(), json!(session.id));
        object.insert("title".into(), json!(session.title));
        object.insert("duration_s".into(), json!(session.duration.as_secs()));
        object.remove("sessions");
        Value::Object(object)
    });
    json!({
        "scope": {
            "project": scope.project,
            "all": scope.project.is_none(),
            "kind": scope.kind,
            "team": scope.team,
            "tag": scope.tag,
            "trash": scope.trash,
        },
        "since": report.since,
        "until": report.until,
        "zone": report.zone,
        "totals": {
            "sessions": report.total.sessions,
            "messages": report.total.messages,
            "tokens": tokens(&report.total.usage),
            "cost": { "usd": usd(&report.total), "unknown_models": unknown },
            "trashed_sessions": report.trashed,
        },
        "by": { "kind": report.by.name(), "rows": rows(report) },
        "tools": tools,
        "files": files,
        "files_total": report.files.len(),
        "topics": report.topics,
        "hours": report.hours,
        "heat": report.heat,
        "longest": longest.collect::<Vec<_>>(),
    })
}

fn rows(report: &Report) -> Vec<Value> {
    match report.by {
        By::Tool => report.tools.iter().map(tool).collect(),
        By::File => report.files.iter().map(file).collect(),
        _ => report
            .rows
            .iter()
            .map(|group| row(group, report.by))
            .collect(),
    }
}

fn row(group: &Group, by: By) -> Value {
    let mut object = amount(&group.amount);
    object.insert("key".into(), json!(group.key));
    if by == By::Session {
        object.insert("title".into(), json!(group.title));
    }
    Value::Object(object)
}

fn amount(amount: &Amount) -> Map<String, Value> {
    let value = json!({
        "sessions": amount.sessions,
        "messages": amount.messages,
        "tokens": tokens(&amount.usage),
        "cost": usd(amount),
    });
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn tokens(usage: &Usage) -> Value {
    json!({
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_written": usage.cache_written,
        "estimated": usage.estimated,
    })
}

/// Returns the cost in dollars, to a millionth; null if there is no price for any of the usage.
pub fn usd(amount: &Amount) -> Option<f64> {
    let dollars = amount.dollars()?;
    Some((dollars * 1e6).round() / 1e6)
}

fn unpriced(unpriced: &Unpriced) -> Value {
    json!({
        "model": unpriced.model.as_deref(),
        "agent": unpriced.agent.as_deref(),
        "tokens": tokens(&unpriced.usage),
    })
}

fn tool(tool: &ToolUse) -> Value {
    json!({
        "key": tool.name,
        "sessions": tool.sessions,
        "calls": tool.calls,
        "ok": tool.ok,
        "failed": tool.failed,
        "denied": tool.denied,
        "unfinished": tool.unfinished,
    })
}

fn file(file: &FileUse) -> Value {
    json!({
        "key": file.path,
        "sessions": file.sessions,
        "reads": file.reads,
        "writes": file.writes,
        "last": file.last,
    })
}

/// Gives the key of a row the name that it has outside of `by`.
fn rename(rows: &mut [Value], from: &str, to: &str) {
    for row in rows.iter_mut().filter_map(Value::as_object_mut) {
        if let Some(value) = row.remove(from) {
            row.insert(to.to_owned(), value);
        }
    }
}
