//! Architecture rules that the compiler does not check: which module may name what, how long a file
//! may be, and that ARCHITECTURE.md names every module.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot read the sources should stop"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of lines of a source file.
const LONGEST_FILE: usize = 520;
/// Maximum number of lines of a test file; tests may be longer, since they are lists.
const LONGEST_TEST: usize = 620;

/// Modules, and what must not be named in them, with the reason.
const WALLS: &[(&str, &[&str], &str)] = &[
    (
        "{tertulia-core/src,tertulia-formats/src,tertulia-agents/src/approval,tertulia-engine/src/chat,tertulia-engine/src/context,tertulia-engine/src/team,tertulia-engine/src/pair,tertulia-engine/src/slash,tertulia-engine/src/text,tertulia-engine/src/tokens}",
        &[
            "std::fs",
            "std::net",
            "std::process",
            "std::env",
            "std::thread",
            "tokio::",
            "rusqlite",
            "rustix",
            "tertulia_store",
        ],
        "it decides, and deciding is pure; doing is at the edge",
    ),
    (
        "{tertulia-core/src,tertulia-store/src,tertulia-formats/src,tertulia-agents/src,tertulia-engine/src}",
        &[
            "std::env::var",
            "std::io::stdout",
            "std::io::stderr",
            "io::stdin",
            "Timestamp::now",
            "SystemTime::now",
            "Uuid::now",
            "Uuid::new_v4",
        ],
        "the library knows no terminal, no environment and no clock: they are passed in",
    ),
    (
        "{tertulia-engine/src/event,tertulia-engine/src/error,tertulia-server/src/protocol,tertulia-server/src/lines,tertulia-server/src/read,tertulia-server/src/blocks,tertulia-server/src/telling,tertulia-server/src/window,tertulia-server/src/moment,tertulia-server/src/schema}",
        &[
            "std::fs",
            "std::io",
            "std::net",
            "std::process",
            "std::env",
            "std::thread",
            "tokio::",
            "rustix",
        ],
        "it decides, and deciding is pure; doing is at the edge",
    ),
    (
        "tertulia-server/src",
        &[
            "std::env",
            "io::stdout",
            "io::stderr",
            "io::stdin",
            "Timestamp::now",
            "SystemTime::now",
            "Uuid::now",
        ],
        "the server knows no terminal, no environment and no clock: its host does",
    ),
    (
        "tertulia-tui/src",
        &[
            "std::env",
            "SystemTime",
            "Timestamp::now",
            "TimeZone::system",
        ],
        "the TUI knows no environment and no clock: its host does",
    ),
    (
        "tertulia/src/commands",
        &[
            "rusqlite",
            "io::stdout",
            "io::stderr",
            "env::var",
            "Timestamp::now",
            "std::time::SystemTime",
        ],
        "commands speak through ui and are given what they need",
    ),
    (
        "tertulia/src/{agents,args,error,input,moment,open,project,settings,show}.rs",
        &["rusqlite", "io::stdout", "io::stderr", "std::env::var"],
        "ui alone holds the streams, env alone reads variables",
    ),
    (
        "tertulia-tui/src/{activity,completion,dialog,effect,entries,geometry,help,history,input,item,key_event,keymap,links,live,markdown,overlay,picker,queue,rewind,search,session_info,sheet,slash,state,stats,status,text,toast,todos,transcript,tree,update,view}",
        &[
            "std::fs",
            "std::io",
            "std::env",
            "tokio::",
            "Instant::now",
            "SystemTime",
            "Timestamp::now",
        ],
        "a part of the screen is given keys and data, and the loop does what comes out",
    ),
];

/// Names that say nothing, so that anything ends up there.
const GRAB_BAGS: &[&str] = &[
    "utils", "util", "helpers", "helper", "common", "misc", "manager",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Returns all Rust files below a folder, or the file itself.
fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Returns the files of a module: `a/b` is `a/b.rs` and everything in `a/b`; braces list several.
fn room(pattern: &str) -> Vec<PathBuf> {
    let crates = root().join("crates");
    let names: Vec<String> = match (pattern.find('{'), pattern.find('}')) {
        (Some(open), Some(close)) => pattern[open + 1..close]
            .split(',')
            .map(|name| format!("{}{name}{}", &pattern[..open], &pattern[close + 1..]))
            .collect(),
        _ => vec![pattern.to_owned()],
    };
    let mut files = Vec::new();
    for name in names {
        let here: Vec<PathBuf> = [crates.join(&name), crates.join(format!("{name}.rs"))]
            .iter()
            .filter(|path| path.exists())
            .flat_map(|path| sources(path))
            .collect();
        assert!(!here.is_empty(), "there is no room {name}");
        files.extend(here);
    }
    files
}

/// Returns the code of a file without its tests and comments.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn is_test(file: &Path) -> bool {
    let path = file.to_string_lossy();
    path.contains("/tests/")
        || path.ends_with("tests.rs")
        || path.contains("testkit")
        || path.contains("/benches/")
}

#[test]
fn rooms_keep_to_themselves() {
    let mut breaches = Vec::new();
    for (pattern, forbidden, reason) in WALLS {
        for file in room(pattern).iter().filter(|file| !is_test(file)) {
            let code = code(file);
            for word in forbidden.iter().filter(|word| code.contains(**word)) {
                breaches.push(format!("{} names {word}: {reason}", file.display()));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

/// What a crate must not depend on, even indirectly, so that an embedding program need not compile
/// it.
const WITHOUT: &[(&str, &[&str])] = &[
    (
        "tertulia-core",
        &["tokio", "rusqlite", "reqwest", "crossterm", "async-trait"],
    ),
    (
        "tertulia-formats",
        &["tokio", "rusqlite", "reqwest", "crossterm"],
    ),
    (
        "tertulia-store",
        &[
            "reqwest",
            "genai",
            "ratatui",
            "tertulia-agents",
            "tertulia-formats",
        ],
    ),
    (
        "tertulia-agents",
        &["rusqlite", "ratatui", "tertulia-store"],
    ),
    ("tertulia-engine", &["ratatui", "crossterm", "clap"]),
    ("tertulia-server", &["ratatui", "crossterm", "clap"]),
    ("tertulia-tui", &["clap"]),
];

#[test]
fn libraries_stay_light() {
    for (name, forbidden) in WITHOUT {
        let tree = std::process::Command::new(env!("CARGO"))
            .args(["tree", "--offline", "-e", "normal", "--prefix", "none"])
            .args(["-p", name])
            .current_dir(root())
            .output()
            .unwrap();
        let listed = String::from_utf8(tree.stdout).unwrap();
        assert!(
            tree.status.success() && listed.starts_with(name),
            "{listed}"
        );
        for crate_name in listed.lines().filter_map(|line| line.split(' ').next()) {
            assert!(
                !forbidden.contains(&crate_name),
                "{name} depends on {crate_name}"
            );
        }
    }
}

#[test]
fn files_stay_readable() {
    let mut long = Vec::new();
    for file in sources(&root().join("crates")) {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        let limit = if is_test(&file) {
            LONGEST_TEST
        } else {
            LONGEST_FILE
        };
        if lines > limit {
            long.push(format!(
                "{} has {lines} lines, {limit} are allowed: cut it where it is two rooms",
                file.display()
            ));
        }
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        if GRAB_BAGS.contains(&name.as_str()) {
            long.push(format!("{}: a name that says nothing", file.display()));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn the_architecture_names_every_room() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut missing = Vec::new();
    for source in [
        "tertulia-core/src",
        "tertulia-core/src/pair",
        "tertulia-core/src/team",
        "tertulia-store/src",
        "tertulia-formats/src",
        "tertulia-agents/src",
        "tertulia-agents/src/tool",
        "tertulia-engine/src",
        "tertulia-engine/src/team",
        "tertulia-engine/src/pair",
        "tertulia-server/src",
        "tertulia-server/src/protocol",
        "tertulia-server/src/room",
        "tertulia-tui/src",
        "tertulia/src",
        "tertulia/src/serve",
        "tertulia/src/tui_host",
        "tertulia-testkit/src",
    ] {
        for entry in fs::read_dir(root().join("crates").join(source)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if ["lib", "mod", "main", "tests", "snapshots"].contains(&name.as_str()) {
                continue;
            }
            if !page.contains(&format!("`{name}`")) && !page.contains(&format!("`{name}/`")) {
                missing.push(format!("ARCHITECTURE.md does not name `{name}` ({source})"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Metaphors that are not allowed as type names, each with the usual term.
const PRIVATE_WORDS: &[(&str, &str)] = &[
    ("House", "Workspace"),
    ("Librarian", "StoreService"),
    ("Steward", "ServerHost"),
    ("Stamp", "Clock"),
    ("Utterance", "PromptMessage"),
    ("Recorder", "LogWriter"),
    ("Shelf", "SessionList"),
    ("Sieve", "a filter"),
    ("Chair", "PairRole"),
    ("Claim", "SessionLock"),
    ("Husk", "a shared prefix"),
    ("Breach", "a schema error"),
    ("Doorway", "a frontend"),
    ("News", "LiveEvent"),
    ("Mailbox", "EventQueue"),
    ("Scene", "SessionInfo"),
];

/// Crates whose comments must name their subjects.
const PLAIN: &[&str] = &[
    "tertulia-core",
    "tertulia-formats",
    "tertulia-store",
    "tertulia-agents",
    "tertulia-tui",
];

/// Words that comments in these crates must not use.
const RIDDLES: &[&str] = &["whoever", "somebody", "nobody", "talk", "talks"];

#[test]
fn types_have_the_words_of_the_field() {
    let mut found = Vec::new();
    for file in sources(&root().join("crates")) {
        let code = code(&file);
        for (word, instead) in PRIVATE_WORDS {
            for kind in ["struct", "enum", "trait", "type"] {
                let defined = format!("{kind} {word}");
                let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
                if code.split(&defined).skip(1).any(ends) && !is_test(&file) {
                    found.push(format!("{}: {word}, say {instead}", file.display()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn comments_name_their_subjects() {
    let mut found = Vec::new();
    for name in PLAIN {
        for file in sources(&root().join("crates").join(name)) {
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in (1..).zip(text.lines()) {
                let comment = line.trim_start().strip_prefix("//").unwrap_or_default();
                let words = comment.split(|c: char| !c.is_alphabetic());
                let riddles = words.filter(|word| RIDDLES.contains(&word.to_lowercase().as_str()));
                found.extend(riddles.map(|word| format!("{}:{number}: {word}", file.display())));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_command_has_a_row_in_the_readme() {
    let page = fs::read_to_string(root().join("README.md")).unwrap();
    for entry in fs::read_dir(root().join("crates/tertulia/src/commands")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if name != "mod" {
            assert!(
                page.contains(&format!("`{name}")),
                "README.md has no row for `{name}`"
            );
        }
    }
}
