//! What every importer promises, for every recorded file in `fixtures`: files are recognised by one
//! program, a file that grew keeps its messages, damage is never fatal.

mod damage;
mod recognition;

use std::collections::HashMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

use super::*;
use tertulia_core::id::{EntryId, SessionId};

/// A recorded file.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) path: PathBuf,
    pub(crate) content: Vec<u8>,
}

/// Returns the importers whose fixtures are files that the programs themselves wrote. The others
/// have tests with files and databases that are made in the published form.
pub(crate) fn with_recordings() -> impl Iterator<Item = &'static dyn Importer> {
    let programs = ["claude-code", "codex", "gemini-cli", "opencode"];
    programs.into_iter().filter_map(importer)
}

/// Returns the recorded files of a program.
pub(crate) fn fixtures(program: &str) -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let entries = fs::read_dir(folder.join(program)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{program} has no recorded files");
    let fixture = |path: PathBuf| Fixture {
        content: fs::read(&path).unwrap(),
        path,
    };
    paths.into_iter().map(fixture).collect()
}

/// Returns the sessions of a file.
pub(crate) fn read(
    importer: &dyn Importer,
    path: &Path,
    content: &[u8],
) -> Result<Vec<Foreign>, ReadError> {
    let input = Input {
        path,
        content: Some(content),
    };
    let mut sessions = Vec::new();
    importer.read(&input, &mut |session| {
        sessions.push(session);
        ControlFlow::Continue(())
    })?;
    Ok(sessions)
}

/// Returns the sessions of a recorded file.
pub(crate) fn recorded(importer: &dyn Importer, name: &str) -> Vec<Foreign> {
    let fixtures = fixtures(importer.name());
    let mut found = fixtures
        .iter()
        .filter(|fixture| fixture.path.ends_with(name));
    let fixture = found
        .next()
        .unwrap_or_else(|| panic!("{name} is not recorded"));
    read(importer, &fixture.path, &fixture.content).unwrap()
}

/// Returns the texts of a session's messages.
pub(crate) fn texts(session: &Foreign) -> Vec<&str> {
    let said = session.said.iter();
    said.map(|said| said.message.content.as_str()).collect()
}

/// Returns the ids of a session's messages.
pub(crate) fn ids(session: &Foreign) -> Vec<EntryId> {
    session.said.iter().map(|said| said.id).collect()
}

/// Returns input, cached input and output of all usage, each counted once.
pub(crate) fn counted(sessions: &[Foreign]) -> (u64, u64, u64) {
    let said = sessions.iter().flat_map(|session| &session.said);
    let mut counted = HashMap::new();
    for message in said.map(|said| &said.message) {
        if let (Some(usage), Some(id)) = (message.usage, &message.usage_id) {
            let known = counted.insert(id.clone(), usage);
            assert!(known.is_none_or(|known| known == usage), "{id}");
        }
    }
    let sum = |of: fn(&tertulia_core::entry::Usage) -> u64| counted.values().map(of).sum();
    (
        sum(|usage| usage.input),
        sum(|usage| usage.cache_read),
        sum(|usage| usage.output),
    )
}

#[test]
fn a_file_is_recognised_by_the_program_that_wrote_it_alone() {
    for program in with_recordings() {
        for fixture in fixtures(program.name()) {
            let end = fixture.content.len().min(BEGINNING);
            let beginning = &fixture.content[..end];
            let all = IMPORTERS.iter();
            let found = all.filter(|one| one.recognises(&fixture.path, beginning));
            let found: Vec<&str> = found.map(|one| one.name()).collect();
            assert_eq!(found, [program.name()], "{}", fixture.path.display());
            let begun = program.begun(beginning);
            assert!(begun.is_some(), "{}", fixture.path.display());
        }
    }
}

#[test]
fn a_second_reading_finds_the_same() {
    for program in with_recordings() {
        for fixture in fixtures(program.name()) {
            let once = read(program, &fixture.path, &fixture.content).unwrap();
            let twice = read(program, &fixture.path, &fixture.content).unwrap();
            assert_eq!(once, twice, "{}", fixture.path.display());
        }
    }
}

/// A file is imported while its program writes it: what is imported first must be the beginning of
/// what is imported later, because the store appends.
#[test]
fn a_file_that_grew_keeps_all_earlier_messages() {
    for program in with_recordings() {
        for fixture in fixtures(program.name()) {
            let Fixture { path, content } = &fixture;
            let whole = read(program, path, content).unwrap();
            let whole: HashMap<SessionId, Vec<EntryId>> = whole
                .iter()
                .map(|session| (session.id, ids(session)))
                .collect();
            let ends = content.iter().enumerate();
            let ends = ends.filter(|(_, byte)| **byte == b'\n');
            for end in ends.map(|(end, _)| end + 1) {
                // A cut document is no document.
                let Ok(earlier) = read(program, path, &content[..end]) else {
                    assert!(path.extension().is_some_and(|end| end == "json"));
                    continue;
                };
                for session in earlier {
                    let later = &whole[&session.id];
                    let earlier = ids(&session);
                    let name = format!("{} cut at {end}", path.display());
                    assert_eq!(later.get(..earlier.len()), Some(&earlier[..]), "{name}");
                }
            }
        }
    }
}

#[test]
fn messages_have_times_and_ids_of_their_own() {
    for program in with_recordings() {
        for fixture in fixtures(program.name()) {
            for session in read(program, &fixture.path, &fixture.content).unwrap() {
                let ids = ids(&session);
                let mut unique = ids.clone();
                unique.sort();
                unique.dedup();
                assert_eq!(unique.len(), ids.len(), "{}", fixture.path.display());
                let early = session.said.iter().find(|said| said.at.as_second() == 0);
                assert_eq!(early, None, "{}", fixture.path.display());
            }
        }
    }
}
