//! All samples of team files, agent registries and session snapshots: valid ones are read, and
//! invalid ones are rejected with all their problems.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test should stop")]

mod schemas;

use std::fmt::Write;
use std::path::Path;

use tertulia_core::team::{Registry, TeamError, TeamFile};
use tertulia_formats::snapshot::Snapshot;

/// Names and texts of the samples in a directory whose names begin with `form`, sorted.
fn samples(folder: &str, form: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/team")
        .join(folder);
    let mut samples: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .filter(|(name, _)| name.starts_with(form))
        .collect();
    samples.sort();
    assert!(samples.len() >= 3, "few samples of {form}");
    samples
}

/// Parses a sample as the kind of document that its name says.
fn read(name: &str, text: &str) -> Result<(), TeamError> {
    match name.split('-').next() {
        Some("team") => TeamFile::read(text, name).map(drop),
        Some("registry") => Registry::read(text, name).map(drop),
        Some("snapshot") => Snapshot::read(text, name).map(drop),
        _ => panic!("{name} does not say what it is"),
    }
}

fn refusals(form: &str) -> String {
    let mut all = String::new();
    for (name, text) in samples("invalid", form) {
        match read(&name, &text) {
            Ok(()) => panic!("{name} was read"),
            Err(error) => writeln!(all, "{error}").unwrap(),
        }
    }
    all
}

#[test]
fn what_is_right_is_read() {
    for form in ["team", "registry", "snapshot"] {
        for (name, text) in samples("valid", form) {
            if let Err(error) = read(&name, &text) {
                panic!("{error}");
            }
        }
    }
}

#[test]
fn every_sample_is_used() {
    for folder in ["valid", "invalid"] {
        let all = samples(folder, "").len();
        let used: usize = ["team-", "registry-", "snapshot-"]
            .iter()
            .map(|form| samples(folder, form).len())
            .sum();
        assert_eq!(used, all);
    }
}

#[test]
fn wrong_team_files_are_refused_with_all_that_is_wrong() {
    insta::assert_snapshot!(refusals("team"));
}

#[test]
fn wrong_registries_are_refused_with_all_that_is_wrong() {
    insta::assert_snapshot!(refusals("registry"));
}

#[test]
fn wrong_snapshots_are_refused_with_all_that_is_wrong() {
    insta::assert_snapshot!(refusals("snapshot"));
}

/// The samples beside the schemas, under the names that the first design gave them, each invalid one
/// with the place that its error names.
#[test]
fn samples_beside_the_schemas() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tertulia-core/schemas/__tests__");
    let sample = |name: &str| {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let kind = match name.split_once('/').unwrap().1 {
            file if file.starts_with("cli-config") => "team-",
            file if file.starts_with("agent-registry") => "registry-",
            _ => "snapshot-",
        };
        read(kind, &text)
    };
    for name in [
        "cli-config-minimal",
        "cli-config-full",
        "agent-registry",
        "session-snapshot-legacy",
        "session-snapshot-new-format",
    ] {
        sample(&format!("valid/{name}.json")).unwrap();
    }
    for (name, place) in [
        ("cli-config-missing-team", "team"),
        ("cli-config-wrong-schema-version", "9.9"),
        ("cli-config-ai-missing-agentType", "agentType"),
        ("cli-config-single-member", "members"),
        ("agent-registry-wrong-version", "2.0"),
        ("agent-registry-missing-required", "command"),
        ("session-snapshot-missing-context", "context"),
        ("session-snapshot-invalid-speaker", "speaker"),
    ] {
        let error = sample(&format!("invalid/{name}.json")).unwrap_err();
        assert!(error.to_string().contains(place), "{name}: {error}");
    }
}

/// Writing a snapshot and reading it again gives the same snapshot.
#[test]
fn snapshots_are_written_as_they_were_read() {
    for (name, text) in samples("valid", "snapshot") {
        let snapshot = Snapshot::read(&text, &name).unwrap();
        let written = snapshot.write().unwrap();
        assert_eq!(Snapshot::read(&written, &name).unwrap(), snapshot, "{name}");
    }
}

/// A truncated file is an error, wherever it ends.
#[test]
fn cut_off_anywhere_a_document_is_refused() {
    for form in ["team", "registry", "snapshot"] {
        let (name, text) = samples("valid", form).remove(0);
        let text = text.trim_end();
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            assert!(read(&name, &text[..end]).is_err(), "{name} cut at {end}");
        }
    }
}
