//! Architecture rules that the compiler does not check: which module may name what, how long a file
//! may be, and that ARCHITECTURE.md names every module.

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of lines of a source file.
const LONGEST_FILE: usize = 520;
/// Maximum number of lines of a test file; tests may be longer, since they are lists.
const LONGEST_TEST: usize = 620;

/// Modules, and what must not be named in them, with the reason.
const WALLS: &[(&str, &[&str], &str)] = &[
    (
        "{tertulia-core/src,tertulia-agents/src/approval,tertulia-engine/src/answer,tertulia-engine/src/chat,tertulia-engine/src/context,tertulia-engine/src/policy,tertulia-engine/src/team,tertulia-engine/src/pair,tertulia-engine/src/slash,tertulia-engine/src/text,tertulia-engine/src/tokens}",
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
        "tertulia-formats/src",
        &["std::fs", "std::net", "std::process", "std::env", "tokio::"],
        "importers read files and databases through `importer`",
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
        "{tertulia-engine/src/event,tertulia-engine/src/error,tertulia-server/src/protocol,tertulia-server/src/lines,tertulia-server/src/read,tertulia-server/src/blocks,tertulia-server/src/reply_stream,tertulia-server/src/recent_events,tertulia-server/src/live_state,tertulia-server/src/schema}",
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
fn files_of(pattern: &str) -> Vec<PathBuf> {
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
        assert!(!here.is_empty(), "there is no module {name}");
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

/// Files that do within a module that decides.
const EDGES: &[&str] = &[
    "tertulia-formats/src/importer/database.rs",
    "tertulia-formats/src/importer/input.rs",
];

fn is_edge(file: &Path) -> bool {
    EDGES.iter().any(|edge| file.ends_with(edge))
}

#[test]
fn modules_keep_to_themselves() {
    let mut breaches = Vec::new();
    for (pattern, forbidden, reason) in WALLS {
        let files = files_of(pattern).into_iter();
        for file in files.filter(|file| !is_test(file) && !is_edge(file)) {
            let code = code(&file);
            for word in forbidden.iter().filter(|word| code.contains(**word)) {
                breaches.push(format!("{} names {word}: {reason}", file.display()));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

/// What a crate must not depend on, even indirectly, so that an embedding program need not compile
/// it. Default features that only read more formats do not count.
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
    (
        "tertulia-engine",
        &["ratatui", "crossterm", "clap", "reqwest", "genai"],
    ),
    (
        "tertulia-server",
        &["ratatui", "crossterm", "clap", "reqwest", "genai"],
    ),
    ("tertulia-tui", &["clap"]),
    // Only tests compile it: it takes longer than most other dependencies.
    ("tertulia", &["jsonschema"]),
];

/// Returns the crates that a crate depends on, even indirectly, a line each: name, version, and the
/// features that are on.
fn dependencies(name: &str) -> String {
    let tree = std::process::Command::new(env!("CARGO"))
        .args(["tree", "--offline", "-e", "normal", "--prefix", "none"])
        .args(["-f", "{p} {f}", "-p", name])
        .args((name == "tertulia-formats").then_some("--no-default-features"))
        .current_dir(root())
        .output()
        .unwrap();
    let listed = String::from_utf8(tree.stdout).unwrap();
    assert!(
        tree.status.success() && listed.starts_with(name),
        "{listed}"
    );
    listed
}

/// Tests cannot see this in what they compile: a crate that only they use turns the feature on too.
#[test]
fn numbers_are_read_exactly() {
    let listed = dependencies("tertulia");
    let reader = listed
        .lines()
        .find(|line| line.starts_with("serde_json "))
        .unwrap();
    assert!(reader.contains("float_roundtrip"), "{reader}");
}

#[test]
fn libraries_stay_light() {
    for (name, forbidden) in WITHOUT {
        let listed = dependencies(name);
        for crate_name in listed.lines().filter_map(|line| line.split(' ').next()) {
            assert!(
                !forbidden.contains(&crate_name),
                "{name} depends on {crate_name}"
            );
        }
    }
}

/// A test that sleeps hopes that something has happened meanwhile: on a busy machine it has not.
#[test]
fn tests_wait_for_events() {
    for file in sources(&root().join("crates")) {
        let text = fs::read_to_string(&file).unwrap();
        let tests = match is_test(&file) {
            true => 0,
            false => text.find("#[cfg(test)]").unwrap_or(text.len()),
        };
        let polls = file.ends_with("tertulia-testkit/src/waiting.rs")
            || file.iter().any(|at| at == "benches");
        let is_calm = polls || !text[tests..].contains(concat!("sleep", "("));
        assert!(is_calm, "{}: use `waiting` of the kit", file.display());
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
                "{} has {lines} lines, {limit} are allowed: split it into two modules",
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

/// Returns the roots of a crate's integration tests: the files that Cargo finds by itself, or those
/// that the manifest names.
fn test_roots(package: &Path) -> Vec<PathBuf> {
    let tests = package.join("tests");
    let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
    if manifest.contains("autotests = false") {
        let named = manifest.split("[[test]]").skip(1);
        return named.map(|_| tests.join("main.rs")).collect();
    }
    let entries = fs::read_dir(tests).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let roots = paths.filter_map(|path| {
        let root = if path.is_dir() {
            path.join("main.rs")
        } else {
            path
        };
        let is_rust = root.extension().is_some_and(|extension| extension == "rs");
        (is_rust && root.exists()).then_some(root)
    });
    roots.collect()
}

/// Each integration test binary is linked with everything that it tests: several of them cost
/// minutes. A file that no module names is not compiled at all.
#[test]
fn a_crate_has_one_integration_test_binary() {
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let package = entry.unwrap().path();
        let roots = test_roots(&package);
        if roots.len() > 1 {
            wrong.push(format!(
                "{} has {} test binaries",
                package.display(),
                roots.len()
            ));
        }
        for file in sources(&package.join("tests")) {
            let name = file.file_stem().unwrap().to_str().unwrap();
            let (folder, module) = match name {
                "main" => continue,
                "mod" => {
                    let folder = file.parent().unwrap();
                    (
                        folder.parent().unwrap(),
                        folder.file_name().unwrap().to_str().unwrap(),
                    )
                }
                name => (file.parent().unwrap(), name),
            };
            let parents = [
                folder.join("main.rs"),
                folder.join("mod.rs"),
                folder.with_extension("rs"),
            ];
            let texts = parents
                .iter()
                .filter_map(|path| fs::read_to_string(path).ok());
            let is_named = |text: String| text.contains(&format!("mod {module};"));
            if !roots.contains(&file) && !texts.into_iter().any(is_named) {
                wrong.push(format!("{} is no module of a test binary", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_architecture_names_every_module() {
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
        "tertulia-server/src/hosted",
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

/// Metaphors that are not allowed as names of types and files, each with the usual term.
const PRIVATE_WORDS: &[(&str, &str)] = &[
    ("Breach", "a schema error"),
    ("Chair", "PairRole"),
    ("Claim", "SessionLock"),
    ("Door", "a frontend"),
    ("Doorway", "a frontend"),
    ("Duet", "Pair"),
    ("Entrance", "SessionHandle"),
    ("Equipment", "tool access"),
    ("Gate", "SessionTask"),
    ("Gathering", "a session"),
    ("Happening", "SessionEvent"),
    ("HostedTalk", "SessionTask"),
    ("House", "Workspace"),
    ("Husk", "a shared prefix"),
    ("Leave", "PermissionRequest"),
    ("Librarian", "StoreService"),
    ("Mailbox", "EventQueue"),
    ("News", "LiveEvent"),
    ("Recorder", "LogWriter"),
    ("Scene", "SessionInfo"),
    ("Seat", "a participant"),
    ("Seating", "Roster"),
    ("Shelf", "SessionList"),
    ("Sieve", "a filter"),
    ("Stamp", "Clock"),
    ("Steward", "ServerHost"),
    ("TalkEvent", "SessionEvent"),
    ("Telling", "ReplyStream"),
    ("Utterance", "PromptMessage"),
];

/// Words that neither comments nor texts for users have: a session is no `talk`, and a subject is
/// named.
const RIDDLES: &[&str] = &["whoever", "somebody", "nobody", "talk", "talks"];

#[test]
fn types_and_files_have_the_words_of_the_field() {
    let mut found = Vec::new();
    for file in sources(&root().join("crates")) {
        let code = code(&file);
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        for (word, instead) in PRIVATE_WORDS {
            let defines = |kind: &str| {
                let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
                code.split(&format!("{kind} {word}")).skip(1).any(ends)
            };
            let defined = ["struct", "enum", "trait", "type"].into_iter().any(defines);
            if (defined && !is_test(&file)) || stem == word.to_lowercase() {
                found.push(format!("{}: {word}, say {instead}", file.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Returns the riddles in a text. What stands in backticks is a name and does not count.
fn riddles(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split('`').step_by(2).flat_map(str::split_whitespace);
    let words = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    words.filter(|word| RIDDLES.contains(&word.to_lowercase().as_str()))
}

#[test]
fn comments_name_their_subjects() {
    let mut found = Vec::new();
    for file in sources(&root().join("crates")) {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            let comment = line.trim_start().strip_prefix("//").unwrap_or_default();
            let riddles = riddles(comment);
            found.extend(riddles.map(|word| format!("{}:{number}: {word}", file.display())));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn pages_and_help_have_plain_words() {
    let folder = |name: &str, end: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(root().join(name)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let is_page = |path: &PathBuf| path.extension().is_some_and(|found| found == end);
        paths.filter(is_page).collect()
    };
    let mut pages = folder("docs", "md");
    pages.extend(folder("crates/tertulia/tests/cli/snapshots", "snap"));
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    let mut found = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            let riddles = riddles(line);
            found.extend(riddles.map(|word| format!("{}:{number}: {word}", page.display())));
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

/// Maximum number of files between the command line, the disk and the answer.
const LONGEST_WALK: usize = 20;

/// Returns the rows of the table below a heading, as cells without backticks.
fn table_below(document: &str, heading: &str) -> Vec<Vec<String>> {
    let section = document.split(heading).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let cells = |row: &str| {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().replace('`', "")).collect()
    };
    rows.skip(1).map(cells).collect()
}

/// Returns the name by which other modules name a file.
fn module_of(file: &str) -> String {
    let path = Path::new(file);
    let stem = path.file_stem().unwrap().to_str().unwrap();
    match stem {
        "mod" => {
            let folder = path.parent().unwrap().file_name().unwrap();
            folder.to_str().unwrap().to_owned()
        }
        stem => stem.to_owned(),
    }
}

/// A reader can follow a prompt to the disk and back: each file of the walk exists, is entered once,
/// and is named by the file that it is entered from.
#[test]
fn the_walk_is_as_the_architecture_says() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = table_below(&document, "## The walk");
    let mut wrong = Vec::new();
    let mut files: Vec<&str> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let [number, file, _, from] = &row[..] else {
            panic!("not four cells: {row:?}");
        };
        assert_eq!(*number, (at + 1).to_string());
        if files.contains(&file.as_str()) {
            wrong.push(format!("{file} is entered twice"));
        }
        if !root().join(file).is_file() {
            wrong.push(format!("{file} does not exist"));
        }
        // Behind a trait, the caller does not name the file.
        if let Ok(caller) = from.parse::<usize>() {
            assert!(caller < at + 1, "{file} is entered from a later file");
            let source = fs::read_to_string(root().join(files[caller - 1])).unwrap();
            let words =
                source.split(|character: char| !(character.is_alphanumeric() || character == '_'));
            let module = module_of(file);
            if !words.into_iter().any(|word| word == module) {
                wrong.push(format!("{} does not name {module}", files[caller - 1]));
            }
        }
        files.push(file);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!((2..=LONGEST_WALK).contains(&files.len()), "{}", files.len());
}
