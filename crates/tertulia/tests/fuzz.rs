//! A short run of the fuzz targets: the seeds, and mutations of them that are the same in every run.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tertulia_testkit::soak::soak;

use self::targets::{TARGETS, Target};
use crate::durability::world::Chance;

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

/// Pieces that the readers treat in a special way.
const PIECES: &[&[u8]] = &[
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\n\n",
    b"\0",
    b"\xff",
    b"\\u0000",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"null",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"9999-12-31T23:59:59Z",
    b"[NEXT:",
    b"[TEAM_TASK:",
    b"[redacted:",
    b"```\n",
    b"    ",
    b"> ",
    "ſ\u{301}".as_bytes(),
];

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut paths: Vec<_> = fs::read_dir(folder.join(target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{target} has no seeds");
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Changes a seed at one to four places.
fn mutated(seeds: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let below = |chance: &mut Chance, limit: usize| chance.below(limit.max(1) as u64) as usize;
    let mut bytes = seeds[below(chance, seeds.len())].clone();
    for _ in 0..=below(chance, 4) {
        let at = below(chance, bytes.len() + 1);
        let end = at + below(chance, (bytes.len() - at).min(64) + 1);
        match below(chance, 6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << below(chance, 8),
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = PIECES[below(chance, PIECES.len())];
                drop(bytes.splice(at..at, piece.iter().copied()));
            }
            4 => {
                let copy = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, copy));
            }
            _ => {
                let other = &seeds[below(chance, seeds.len())];
                let from = below(chance, other.len() + 1);
                drop(bytes.splice(at..end, other[from..].iter().copied().take(64)));
            }
        }
    }
    bytes
}

fn feed(name: &str, target: Target) {
    let seeds = seeds(name);
    let mut chance = Chance::new(1);
    let rounds = if soak() { 200_000 } else { 2_000 };
    let mutations = (0..rounds).map(|_| mutated(&seeds, &mut chance));
    for bytes in seeds.iter().cloned().chain(mutations) {
        let held = catch_unwind(AssertUnwindSafe(|| target(&bytes)));
        assert!(held.is_ok(), "{name}: {}", bytes.escape_ascii());
    }
}

/// One test per target, so that they run in parallel.
macro_rules! feed {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                feed(stringify!($name), targets::$name);
            }
        )*

        #[test]
        fn every_target_is_fed() {
            let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

feed!(
    entry,
    log,
    aider,
    claude_code,
    claude_master,
    codex,
    copilot,
    crush,
    gemini_cli,
    goose,
    llm,
    openagent_terminal,
    opencode,
    snapshot,
    team,
    markers,
    protocol
);
