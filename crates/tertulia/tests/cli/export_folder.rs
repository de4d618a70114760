//! `export` of several sessions into a folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::home::{Backend, Home, both, files_below, short};

fn names(folder: &std::path::Path) -> Vec<String> {
    let mut names: Vec<String> = files_below(folder)
        .iter()
        .map(|path| path.strip_prefix(folder).unwrap().display().to_string())
        .collect();
    names.sort();
    names
}

/// Creates a home with two sessions.
fn two() -> (Home, String, String) {
    let home = Home::new();
    let (one, two) = (home.say("echo Größe/zwei & <b>"), home.say("count to 3"));
    (home, one, two)
}

#[test]
fn a_folder_gets_a_page_per_session_and_an_index() {
    let (home, one, two) = two();
    let folder = home.project().join("deep/pages");
    let args = ["export", &one, &two, "@", "-f", "html", "-o", "deep/pages"];
    let prepared = home.prepare(&args).umask("000");
    prepared.run().ok().notes("index.html");
    let files = names(&folder);
    assert_eq!(files.len(), 3, "{files:?}");
    let first = files
        .iter()
        .find(|name| name.contains(&short(&one)))
        .unwrap();
    assert!(first.contains("-echo-größe-zwei-b-"), "{first}");
    let index = fs::read_to_string(folder.join("index.html")).unwrap();
    for expected in [
        "Sessions (2)",
        "echo Größe/zwei &amp; &lt;b&gt;",
        "Gr%C3%B6",
        ".html\"",
    ] {
        let expected = expected.replace("Gr%C3%B6", "gr%C3%B6");
        assert!(index.contains(&expected), "{expected} in {index}");
    }
    for path in files_below(&folder) {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    for path in ["deep", "deep/pages"] {
        let folder = home.project().join(path);
        assert_eq!(
            folder.metadata().unwrap().permissions().mode() & 0o777,
            0o700
        );
    }
    home.run(&["export", &one, &two, "-o", "texts"]).ok();
    let index = fs::read_to_string(home.project().join("texts/index.md")).unwrap();
    assert!(index.contains("| [count to 3](<"), "{index}");
    // Formats for programs need no index.
    home.run(&["export", &one, &two, "-f", "json", "-o", "json"])
        .ok();
    assert_eq!(names(&home.project().join("json")).len(), 2);
}

#[test]
fn json_lists_the_files() {
    let (home, one, two) = two();
    let args = [
        "export",
        &one,
        &two,
        "-f",
        "claude-code",
        "-o",
        "out",
        "--json",
    ];
    let output = home.run(&args).ok();
    assert_eq!(output.stderr, "");
    let document = output.json();
    let exported = document["exported"].as_array().unwrap();
    assert_eq!(exported.len(), 2);
    for (id, one) in [one, two].iter().zip(exported) {
        assert_eq!(one["session"], id.as_str());
        let file = home.project().join(one["file"].as_str().unwrap());
        assert_eq!(
            file.metadata().unwrap().len(),
            one["bytes"].as_u64().unwrap()
        );
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        assert_eq!(one["resume"], format!("claude --resume {name}"));
    }
    assert!(document["index"].is_null());
}

#[test]
fn programs_find_their_files_in_their_own_layout() {
    let (home, one, _) = two();
    let slug: String = home
        .project()
        .canonicalize()
        .unwrap()
        .display()
        .to_string()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    home.run(&["export", &one, "-f", "claude-code", "-o", "claude/"])
        .ok()
        .notes("resume: claude --resume ");
    let found = names(&home.project().join("claude"));
    assert!(found.len() == 1 && found[0].starts_with(&slug), "{found:?}");
    home.run(&["export", &one, "-f", "codex", "-o", "codex/"])
        .ok()
        .notes("resume: codex resume ");
    let found = names(&home.project().join("codex"));
    assert!(found[0].contains("/rollout-20"), "{found:?}");
}

#[test]
fn nothing_foreign_is_overwritten() {
    let (home, one, two) = two();
    let args = ["export", &one, &two, "-f", "html", "-o", "pages"];
    let folder = home.project().join("pages");
    fs::create_dir(&folder).unwrap();
    let foreign: PathBuf = folder.join("index.html");
    fs::write(&foreign, "mine").unwrap();
    let forced = [&args[..], &["--force"]].concat();
    for args in [&args[..], &forced] {
        let refused = home.run(args);
        assert_eq!(refused.status.code(), Some(1));
        refused.notes("index.html is there already");
        // Nothing is written before it is clear that all can be.
        assert_eq!(names(&folder), ["index.html"]);
        assert_eq!(fs::read_to_string(&foreign).unwrap(), "mine");
    }
    fs::remove_file(&foreign).unwrap();
    home.run(&args).ok();
    home.run(&args).code(1).notes("--force");
    home.say_in(&one, "echo more");
    home.run(&forced).ok();
    let page = names(&folder)
        .into_iter()
        .find(|name| name.contains(&short(&one)));
    let page = folder.join(page.unwrap());
    assert!(fs::read_to_string(&page).unwrap().contains("more"));
    // A page that was edited so that it is none any more.
    fs::write(&page, "my notes").unwrap();
    home.run(&forced).code(1).notes("is there already");
    assert_eq!(fs::read_to_string(&page).unwrap(), "my notes");
}

#[test]
fn a_session_that_the_other_program_continued_stays() {
    let (home, one, _) = two();
    for (format, theirs) in [
        (
            "claude-code",
            "{\"type\":\"last-prompt\",\"sessionId\":\"x\"}\n",
        ),
        (
            "codex",
            "{\"type\":\"turn_context\",\"payload\":{\"model\":\"x\"}}\n",
        ),
    ] {
        let folder = format!("{format}/");
        let args = ["export", &one, "-f", format, "-o", &folder, "--force"];
        home.run(&args).ok();
        home.run(&args).ok();
        let file = files_below(&home.project().join(format)).remove(0);
        let continued = fs::read_to_string(&file).unwrap() + theirs;
        fs::write(&file, &continued).unwrap();
        home.run(&args).code(1).notes("not an unchanged export");
        assert_eq!(fs::read_to_string(&file).unwrap(), continued);
    }
}

#[test]
fn every_format_replaces_its_own_files() {
    let (home, one, two) = two();
    for format in [
        "md",
        "html",
        "json",
        "jsonl",
        "claude-code",
        "codex",
        "atif",
    ] {
        let args = ["export", &one, &two, "-f", format, "-o", format, "--force"];
        home.run(&args).ok();
        home.run(&args).ok();
    }
}

#[test]
fn several_sessions_need_a_folder() {
    let (home, one, two) = two();
    let refused = home.run(&["export", &one, &two]).code(2);
    assert_eq!(refused.stdout, "");
    refused.notes("-o FOLDER");
    home.run(&["export", &one, "nosuch", "-o", "out"]).code(3);
    assert!(!home.project().join("out").exists());
    fs::write(home.project().join("file"), "x").unwrap();
    home.run(&["export", &one, &two, "-o", "file"])
        .code(1)
        .notes("the folder file cannot be created");
    home.run(&["export", &one, &two, "-o", "/proc/x"]).code(1);
    // The same session twice is one session.
    home.run(&["export", &two, "@"]).ok().says("count to 3");
}

#[test]
fn one_session_that_does_not_fit_keeps_no_other_back() {
    let (home, one, two) = two();
    home.say_in(&two, "echo more");
    // Only the second session has an entry 4.
    let args = [
        "export", &one, &two, "-f", "html", "--from", "4", "-o", "out",
    ];
    home.run(&args).code(2).notes(&short(&one));
    let found = names(&home.project().join("out"));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().any(|name| name.contains(&short(&two))));
    home.run(&["export", &one, &two, "-f", "snapshot", "-o", "none"])
        .code(2);
    assert!(names(&home.project().join("none")).is_empty());
}

#[test]
fn an_altered_entry_is_exported_and_named() {
    both(|home| {
        let id = home.say("echo tomatoes");
        home.say_in(&id, "echo later");
        super::doctor::flip(home, "tomatoes");
        for format in ["html", "claude-code", "codex", "atif"] {
            let output = home.run(&["export", &id, "-f", format]).ok();
            output.says("later").notes("damaged: ").notes("entry 3");
        }
        let page = home.run(&["export", &id, "-f", "html"]).ok();
        page.says("This session is damaged").says("entry 3");
    });
}

#[test]
fn a_missing_entry_is_counted_and_the_rest_exported() {
    let home = &Home::with(Backend::Files);
    let id = home.say("echo tomatoes");
    home.say_in(&id, "echo later");
    let logs = files_below(&home.files_folder()).into_iter();
    let log = logs.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    for path in log {
        let text = fs::read_to_string(&path).unwrap();
        let kept: Vec<&str> = text
            .lines()
            .filter(|line| !line.contains("\"seq\":3,"))
            .collect();
        fs::write(&path, kept.join("\n") + "\n").unwrap();
    }
    for format in ["claude-code", "codex", "atif"] {
        let output = home.run(&["export", &id, "-f", format]).ok();
        let output = output.says("later").notes("entry 3: it is missing");
        output.notes("damaged entries (1)");
    }
    let page = home.run(&["export", &id, "-f", "html", "--redact"]).ok();
    page.says("entry 3: it is missing").says("id=\"e4\"");
}
