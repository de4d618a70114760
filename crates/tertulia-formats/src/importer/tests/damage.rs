//! Damaged variants of recorded files: they never stop an import, and nothing is invented.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Fixture, fixtures, read};
use crate::importer::{Importer, importer};
use tertulia_core::foreign::Foreign;

/// Variants of each recorded file.
const VARIANTS: u64 = 1_000;
/// Time within which each must be read. A variant is read in a few milliseconds.
const LIMIT: Duration = Duration::from_secs(20);

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

fn damaged(content: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = content.to_vec();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(bytes.len() + 1);
        match numbers.below(8) {
            0 => bytes.truncate(at),
            1 | 2 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
            3 => drop(bytes.drain(at..(at + 40).min(bytes.len()))),
            4 | 5 => bytes = with_other_lines(&bytes, numbers),
            _ => bytes = with_other_values(&bytes, numbers),
        }
    }
    bytes
}

/// Swaps, repeats or removes lines.
fn with_other_lines(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let (one, other) = (numbers.below(lines.len()), numbers.below(lines.len()));
    match numbers.below(3) {
        0 => lines.swap(one, other),
        1 => lines.insert(other, lines[one]),
        _ => drop(lines.remove(one)),
    }
    lines.join(&b'\n')
}

/// Replaces a value by one of another type, or by another value of the file: an id becomes that of
/// another message, so that parents form cycles.
fn with_other_values(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    if let Ok(mut document) = serde_json::from_slice::<Value>(bytes) {
        let other = document.clone();
        replace(&mut document, &other, numbers);
        return serde_json::to_vec_pretty(&document).unwrap();
    }
    let mut lines: Vec<Cow<'_, [u8]>> = bytes
        .split(|byte| *byte == b'\n')
        .map(Cow::Borrowed)
        .collect();
    let (one, other) = (numbers.below(lines.len()), numbers.below(lines.len()));
    let other = serde_json::from_slice(&lines[other]).unwrap_or_default();
    if let Ok(mut line) = serde_json::from_slice::<Value>(&lines[one]) {
        replace(&mut line, &other, numbers);
        lines[one] = Cow::Owned(line.to_string().into_bytes());
    }
    lines.join(&b'\n')
}

fn replace(value: &mut Value, other: &Value, numbers: &mut Numbers) {
    let mut places = Vec::new();
    pointers(value, String::new(), &mut places);
    let place = &places[numbers.below(places.len())];
    let new = match numbers.below(10) {
        0 => Value::Null,
        1 => json!(-1),
        2 => json!(u64::MAX),
        3 => json!(1e300),
        4 => json!([]),
        5 => json!({ "a": [[[{}]]] }),
        6 => json!(""),
        // The same field of another line.
        _ => other.pointer(place).cloned().unwrap_or(json!(true)),
    };
    if let Some(place) = value.pointer_mut(place) {
        *place = new;
    }
}

fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                pointers(value, format!("{at}/{key}"), found);
            }
        }
        Value::Array(values) => {
            for (place, value) in values.iter().enumerate() {
                pointers(value, format!("{at}/{place}"), found);
            }
        }
        _ => {}
    }
    found.push(at);
}

/// Adds the strings of a value, and of JSON in them.
fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            found.push(key.clone());
            strings(value, found);
        }),
        Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
        Value::String(text) => {
            found.push(text.replace('\0', "\u{fffd}"));
            if let Ok(inner) = serde_json::from_str::<Value>(text) {
                strings(&inner, found);
            }
        }
        _ => {}
    }
}

/// Returns true if a line of a message is in the file: in one of its strings, or put together from
/// several.
fn is_from(line: &str, strings: &[String]) -> bool {
    if strings.iter().any(|text| text.contains(line)) {
        return true;
    }
    // The name of a part that was left out may itself be damaged.
    let is_placeholder = line.starts_with('[') && line.ends_with(']');
    let placeholder = line.strip_prefix('[').and_then(|line| line.split_once(']'));
    if is_placeholder || placeholder.is_some_and(|(_, rest)| is_from(rest, strings)) {
        return true;
    }
    if let Ok(inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(line) {
        let mut own = Vec::new();
        self::strings(&inner, &mut own);
        return own.iter().all(|text| strings.contains(text));
    }
    let starts = strings.iter().filter(|text| !text.is_empty());
    let mut starts = starts.filter_map(|text| line.strip_prefix(text.as_str()));
    starts.any(|rest| rest.is_empty() || is_from(rest, strings))
}

fn check(sessions: &[Foreign], content: &[u8], name: &str) {
    let raw = String::from_utf8_lossy(content);
    let mut all: Option<Vec<String>> = None;
    let said = sessions.iter().flat_map(|session| &session.said);
    let texts = said.flat_map(|said| [Some(&said.message.content), said.thought.as_ref()]);
    for line in texts.flatten().flat_map(|text| text.lines()) {
        if raw.contains(line) {
            continue;
        }
        let all = all.get_or_insert_with(|| {
            let mut found = Vec::new();
            match serde_json::from_slice(content) {
                Ok(document) => strings(&document, &mut found),
                Err(_) => {
                    let lines = content.split(|byte| *byte == b'\n');
                    let lines =
                        lines.filter_map(|line| serde_json::from_slice(line.trim_ascii()).ok());
                    lines.for_each(|line: Value| strings(&line, &mut found));
                }
            }
            found
        });
        assert!(is_from(line, all), "{name}: {line:?} is not in the file");
    }
}

fn damage(program: &str) {
    let importer: &dyn Importer = importer(program).unwrap();
    for (place, Fixture { path, content }) in fixtures(program).iter().enumerate() {
        let mut kept = 0;
        for variant in 0..VARIANTS {
            let mut numbers = Numbers((place as u64) << 32 | variant);
            let bytes = damaged(content, &mut numbers);
            let name = format!("{}, variant {variant}", path.display());
            let start = Instant::now();
            let sessions = read(importer, path, &bytes);
            assert!(start.elapsed() < LIMIT, "{name}");
            let sessions = sessions.unwrap_or_default();
            kept += usize::from(!sessions.is_empty());
            check(&sessions, &bytes, &name);
        }
        let whole = read(importer, path, content).unwrap();
        // Otherwise the variants would say little.
        let least = if whole.is_empty() {
            0
        } else {
            VARIANTS as usize / 5
        };
        assert!(
            kept >= least,
            "{}: {kept} variants kept something",
            path.display()
        );
    }
}

#[test]
fn damaged_files_of_claude_code_are_read_as_far_as_possible() {
    damage("claude-code");
}

#[test]
fn damaged_files_of_codex_are_read_as_far_as_possible() {
    damage("codex");
}

#[test]
fn damaged_files_of_gemini_cli_are_read_as_far_as_possible() {
    damage("gemini-cli");
}

#[test]
fn damaged_files_of_opencode_are_read_as_far_as_possible() {
    damage("opencode");
}
