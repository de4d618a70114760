//! Usage statistics: what is counted, in which scope and at which price, and the forms of output.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::home::{Backend, Home, both, keys};
use crate::pty::{CAPABLE, Terminal};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tertulia-formats/fixtures/claude-code")
        .join(name)
}

fn import(home: &Home, names: &[&str]) {
    for name in names {
        let file = fixture(name);
        home.run(&["import", file.to_str().unwrap()]).ok();
    }
}

fn stats(home: &Home, args: &[&str]) -> Value {
    let args = [&["stats", "--json"], args].concat();
    home.run(&args).ok().json()
}

/// Returns input and output tokens of the answers in files of Claude Code, each answer once.
fn tokens_in(names: &[&str]) -> (u64, u64) {
    let mut answers: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for name in names {
        let text = fs::read_to_string(fixture(name)).unwrap();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let usage = &line["message"]["usage"];
            if line["type"] != "assistant" || usage.is_null() {
                continue;
            }
            let count = |key: &str| usage[key].as_u64().unwrap_or(0);
            let input = count("input_tokens")
                + count("cache_read_input_tokens")
                + count("cache_creation_input_tokens");
            let id = line["message"]["id"].as_str().unwrap().to_owned();
            answers.insert(id, (input, count("output_tokens")));
        }
    }
    let add = |sum: (u64, u64), one: &(u64, u64)| (sum.0 + one.0, sum.1 + one.1);
    answers.values().fold((0, 0), add)
}

fn tokens(document: &Value) -> (u64, u64) {
    let tokens = &document["totals"]["tokens"];
    let count = |key: &str| tokens[key].as_u64().unwrap();
    (count("input"), count("output"))
}

#[test]
fn the_demo_is_counted_and_its_missing_price_is_said() {
    let home = Home::new();
    let id = home.say("hello there");
    home.say_in(&id, "once more");
    home.say("another session");
    let document = stats(&home, &[]);
    let totals = &document["totals"];
    assert_eq!(
        (&totals["sessions"], &totals["messages"]),
        (&json!(2), &json!(6))
    );
    let listed = home.all();
    let sum = |key: &str| -> u64 {
        let sums = listed
            .iter()
            .map(|row| row["tokens"][key].as_u64().unwrap());
        sums.sum()
    };
    assert_eq!(tokens(&document), (sum("input"), sum("output")));
    assert!(totals["cost"]["usd"].is_null(), "{document}");
    let unknown = totals["cost"]["unknown_models"].as_array().unwrap();
    assert_eq!(unknown.len(), 1);
    assert_eq!(unknown[0]["tokens"]["output"], sum("output"));
    let model = unknown[0]["model"].as_str().unwrap();
    home.run(&["stats"])
        .ok()
        .says("cost: no price")
        .says(&format!("without a price: {model} ("))
        .notes(&format!("[prices.\"{model}\"]"));
}

#[test]
fn the_document_has_the_agreed_form() {
    let home = Home::new();
    home.say("hello");
    let document = stats(&home, &[]);
    assert_eq!(
        keys(&document),
        [
            "by",
            "files",
            "files_total",
            "heat",
            "hours",
            "longest",
            "scope",
            "since",
            "tools",
            "topics",
            "totals",
            "until",
            "zone"
        ]
    );
    assert_eq!(document["zone"], "UTC");
    let row = &document["by"]["rows"][0];
    assert_eq!(keys(row), ["cost", "key", "messages", "sessions", "tokens"]);
    assert_eq!(document["heat"].as_array().unwrap().len(), 7);
    assert_eq!(document["heat"][0].as_array().unwrap().len(), 24);
    assert_eq!(document["longest"][0]["title"], "hello");
    for by in [
        "day", "week", "month", "hour", "model", "agent", "project", "team", "session", "tool",
        "file",
    ] {
        let document = stats(&home, &["--by", by]);
        assert_eq!(document["by"]["kind"], by);
        let table = home.run(&["stats", "--csv", "--by", by]).ok().stdout;
        assert!(table.starts_with(&format!("{by},")), "{table}");
        let rows = document["by"]["rows"].as_array().unwrap().len();
        assert_eq!(table.lines().count(), rows + 1, "{table}");
        home.run(&["stats", "--by", by]).ok().says("messages: 2");
    }
}

#[test]
fn forks_and_imports_are_counted_once() {
    let names = ["multi-turn.jsonl", "forked.jsonl", "tool-write-read.jsonl"];
    let expected = tokens_in(&names);
    both(|home| {
        import(home, &names);
        let first = stats(home, &["--all"]);
        assert_eq!(tokens(&first), expected);
        // A second import and forks add nothing.
        import(home, &names);
        let id = home.all()[0]["id"].as_str().unwrap().to_owned();
        home.run(&["fork", &id]).ok();
        assert_eq!(tokens(&stats(home, &["--all"])), expected);
        // The same conversations in another order make the same sum.
        let other = Home::with(home.backend());
        import(
            &other,
            &["forked.jsonl", "tool-write-read.jsonl", "multi-turn.jsonl"],
        );
        assert_eq!(tokens(&stats(&other, &["--all"])), expected);
    });
}

#[test]
fn tools_and_files_of_an_import_are_listed() {
    let home = Home::new();
    import(&home, &["tool-write-read.jsonl"]);
    let document = stats(&home, &["--all"]);
    let names: Vec<&Value> = document["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, ["Read", "Write"]);
    let file = &document["files"][0];
    assert_eq!(file["path"], "/home/user/work-claude/note.txt");
    assert_eq!((&file["reads"], &file["writes"]), (&json!(1), &json!(1)));
    home.run(&["stats", "--all", "--by", "file"])
        .ok()
        .says("/home/user/work-claude/note.txt  1");
}

#[test]
fn days_are_those_of_the_zone() {
    let home = Home::new();
    import(&home, &["tool-write-read.jsonl"]);
    for (zone, expected) in [("UTC", "2026-11-15"), ("Asia/Tokyo", "2026-11-16")] {
        let run = home
            .prepare(&["stats", "--all", "--json"])
            .env("TZ", zone)
            .run();
        let document = run.ok().json();
        assert_eq!(document["by"]["rows"][0]["key"], expected, "{zone}");
        assert_eq!(document["zone"], zone);
    }
    let document = stats(&home, &["--all", "--since", "2026-11-16"]);
    assert_eq!(document["totals"]["messages"], 0);
    let document = stats(&home, &["--all", "--until", "2026-11-16"]);
    assert_eq!(document["totals"]["messages"], 6);
}

#[test]
fn the_scope_is_this_project_and_is_said() {
    let home = Home::new();
    home.say("here");
    let there = home.folder("elsewhere");
    home.prepare(&["chat", "-p", "there"])
        .folder(&there)
        .run()
        .ok();
    let document = stats(&home, &[]);
    assert_eq!(document["totals"]["sessions"], 1);
    assert_eq!(document["scope"]["all"], false);
    home.run(&["stats"])
        .ok()
        .says("scope: project ")
        .notes("Not counted: 1 in other projects (--all)");
    let document = stats(&home, &["--all", "--by", "project"]);
    assert_eq!(document["totals"]["sessions"], 2);
    assert_eq!(document["by"]["rows"].as_array().unwrap().len(), 2);
    home.run(&["stats", "--all"])
        .ok()
        .says("scope: all projects")
        .lacks("Not counted");
    for (flag, value) in [("--tag", "none"), ("--team", "none"), ("--kind", "team")] {
        let document = stats(&home, &["--all", flag, value]);
        assert_eq!(document["totals"]["sessions"], 0, "{flag}");
    }
}

#[test]
fn the_trash_counts_until_it_is_emptied() {
    both(|home| {
        let id = home.say("hello");
        home.say("stays");
        let before = tokens(&stats(home, &[]));
        home.run(&["rm", &id, "-y"]).ok();
        let document = stats(home, &[]);
        assert_eq!(tokens(&document), before);
        assert_eq!(document["totals"]["trashed_sessions"], 1);
        assert_eq!(stats(home, &["--trash"])["totals"]["sessions"], 1);
        home.settings("[retention]\ntrash = \"0s\"\n");
        home.run(&["prune", "-y", "--older-than", "100d"]).ok();
        assert_eq!(home.run(&["show", &id]).status.code(), Some(3));
        assert_eq!(stats(home, &[])["totals"]["sessions"], 1);
    });
}

#[test]
fn prices_come_from_the_settings() {
    let home = Home::new();
    home.say("hello there");
    let document = stats(&home, &[]);
    let unknown = &document["totals"]["cost"]["unknown_models"][0];
    let model = unknown["model"].as_str().unwrap().to_owned();
    let (input, output) = tokens(&document);
    home.settings(
        "[prices.\"demo*\"]\ninput = 500000\noutput = 1000000.0\nsince = \"2020-01-01\"\n",
    );
    let document = stats(&home, &[]);
    let cost = document["totals"]["cost"]["usd"].as_f64().unwrap();
    assert_eq!(cost, (input + 2 * output) as f64 / 2.0);
    assert_eq!(document["totals"]["cost"]["unknown_models"], json!([]));
    // The most specific price counts, and free is a price, too.
    let free = format!(
        "[prices.\"demo*\"]\ninput = 1\noutput = 1\n[prices.\"{model}\"]\ninput = 0\noutput = 0\n"
    );
    home.settings(&free);
    assert_eq!(stats(&home, &[])["totals"]["cost"]["usd"], 0.0);
    // A price that does not hold yet does not count.
    home.settings("[[prices.\"demo*\"]]\ninput = 1\noutput = 1\nsince = 2999-01-01\n");
    assert!(stats(&home, &[])["totals"]["cost"]["usd"].is_null());
}

#[test]
fn wrong_prices_are_named_and_not_used() {
    let home = Home::new();
    home.say("hello");
    for (toml, words) in [
        ("prices = 1", "'prices' must be a table"),
        ("[prices]\nx = 1", "'x' of [prices] must be a table such as"),
        (
            "[prices.\"demo*\"]\ninput = 1",
            "'output' of [prices.demo*] is missing",
        ),
        (
            "[prices.\"demo*\"]\ninput = \"1\"\noutput = 1",
            "'input' of [prices.demo*] must be a number of dollars",
        ),
        (
            "[prices.\"demo*\"]\ninput = -1\noutput = 1",
            "'input' of [prices.demo*] must be",
        ),
        (
            "[prices.\"demo*\"]\ninput = nan\noutput = 1",
            "'input' of [prices.demo*] must be",
        ),
        (
            "[prices.\"demo*\"]\ninput = 1\noutput = 1\ncache_read = true",
            "'cache_read' of",
        ),
        (
            "[prices.\"demo*\"]\ninput = 1\noutput = 1\nsince = \"soon\"",
            "'since' of [prices.demo*] must be a date",
        ),
    ] {
        home.settings(&format!("{toml}\n"));
        let output = home.run(&["stats"]).ok();
        let output = output.notes(words).notes("it is ignored");
        output.says("cost: no price");
        home.run(&["chat", "-p", "x"]).code(2).notes(words);
    }
    home.settings("[prices.\"demo*\"]\ninput = 1\noutput = 1\ncached = 1\n");
    home.run(&["stats"])
        .ok()
        .notes("unknown setting 'prices.demo*.cached'")
        .lacks("no price");
}

#[test]
fn wrong_usage_is_refused() {
    let home = Home::new();
    home.say("hello");
    for (args, words) in [
        (
            &["--since", "someday"][..],
            "'someday' is not a date or time",
        ),
        (&["--until", "2026-13-01"], "is not a date or time"),
        (
            &["--since", "1d", "--until", "2d"],
            "--since must be before --until",
        ),
        (
            &["--json", "--csv"],
            "choose one of --json, --csv and --html",
        ),
        (&["--csv", "--html"], "cannot be used with"),
        (&["--line", "--since", "1d"], "cannot be used with"),
        (&["-o", "x"], "--output needs --json, --csv or --html"),
        (&["--by", "colour"], "invalid value 'colour'"),
    ] {
        home.run(&[&["stats"], args].concat()).code(2).notes(words);
    }
    assert!(!home.project().join("x").exists());
}

#[test]
fn nothing_is_no_error() {
    let home = Home::new();
    let document = stats(&home, &[]);
    assert_eq!(document["totals"]["sessions"], 0);
    assert_eq!(document["totals"]["cost"]["usd"], 0.0);
    home.run(&["stats"]).ok().says("messages: 0");
    home.run(&["stats", "--line"])
        .ok()
        .says("today 0↑ 0↓ $0.00 · week $0.00");
    home.run(&["stats", "--html"]).ok().says("</html>");
}

#[test]
fn the_page_is_a_private_file() {
    let home = Home::new();
    home.say("<b>hello</b>");
    home.run(&["stats", "--html", "-o", "usage.html"])
        .ok()
        .notes("Wrote usage.html");
    let file = home.project().join("usage.html");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let page = fs::read_to_string(&file).unwrap();
    assert!(page.contains("&lt;b&gt;hello") && !page.contains("<b>hello"));
    assert!(!page.contains("<script"));
    home.run(&["stats", "--html", "-o", "usage.html"])
        .code(1)
        .notes("--force");
    let args = ["stats", "--csv", "-o", "usage.html", "--force"];
    home.run(&args).ok();
    assert!(fs::read_to_string(&file).unwrap().starts_with("day,"));
    let written = home
        .run(&["stats", "--json", "-o", "usage.json"])
        .ok()
        .json();
    assert_eq!(written["file"], "usage.json");
}

#[test]
fn the_line_follows_new_sessions() {
    let home = Home::new();
    for count in 0..20 {
        home.say(&format!("hello {count}"));
    }
    let line = || home.run(&["stats", "--line"]).ok().stdout;
    // A call has little time, and the next one goes on: no other command is needed.
    let mut calls = 0..200;
    while line().contains('…') {
        assert!(calls.next().is_some(), "it never ends");
    }
    let before = line();
    let document = home.run(&["stats", "--line", "--json"]).ok().json();
    let tokens = &document["today"]["tokens"];
    let all = &stats(&home, &[])["totals"]["tokens"];
    assert_eq!(tokens["input"], all["input"]);
    assert_eq!(tokens["output"], all["output"]);
    assert!(
        before.starts_with("today ") && !before.contains('…'),
        "{before}"
    );
    assert_eq!(before.lines().count(), 1);
    home.say("count to 50");
    assert_ne!(line(), before);
    let document = home.run(&["stats", "--line", "--json"]).ok().json();
    assert_eq!(keys(&document), ["partial", "today", "week"]);
}

#[test]
fn a_ledger_that_cannot_be_used_is_no_obstacle() {
    both(|home| {
        home.say("hello");
        let ledger = match home.backend() {
            Backend::Sqlite => home.database().with_file_name("tertulia.db-ledger"),
            Backend::Files => home.files_folder().join(".index/ledger.db"),
        };
        let expected = stats(home, &[]);
        assert!(ledger.is_file());
        let replace = |make: &dyn Fn()| {
            let _ = fs::remove_file(&ledger);
            let _ = fs::remove_dir(&ledger);
            make();
            assert_eq!(stats(home, &[])["totals"], expected["totals"]);
            home.run(&["stats", "--line"]).ok().says("today ");
        };
        replace(&|| {});
        replace(&|| fs::create_dir(&ledger).unwrap());
        replace(&|| fs::write(&ledger, "garbage that is no database at all").unwrap());
        // Another process that holds it does not hold up this one.
        let other = rusqlite::Connection::open(&ledger).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        home.say("more");
        assert_eq!(stats(home, &[])["totals"]["sessions"], 2);
        home.run(&["stats", "--line"]).ok().says("today ");
        home.run(&["list"]).ok();
        drop(other);
        home.run(&["store", "rebuild"]).ok();
        assert_eq!(stats(home, &[])["totals"]["sessions"], 2);
    });
}

#[test]
fn a_terminal_shows_bars() {
    let home = Home::new();
    import(&home, &["multi-turn.jsonl", "tool-write-read.jsonl"]);
    for (columns, side_by_side) in [(80, false), (140, true)] {
        let terminal = Terminal::open_wide(&home, &["stats", "--all"], &[CAPABLE], columns);
        let (code, shown) = terminal.ends();
        assert_eq!(code, 0, "{shown}");
        for words in ["Sun 15 Nov", "████", "Models", "Tools", "  Sun", "\u{1b}["] {
            assert!(shown.contains(words), "no {words:?} in {shown}");
        }
        let models = shown.lines().find(|line| line.contains("Models")).unwrap();
        assert_eq!(models.contains("Agents"), side_by_side, "{models}");
    }
    let terminal = Terminal::open(&home, &["stats", "--all", "--no-color"], &[CAPABLE]);
    let (_, shown) = terminal.ends();
    assert!(
        shown.contains("████") && !shown.contains("\u{1b}["),
        "{shown}"
    );
}

#[test]
fn repositories_of_one_name_are_told_apart() {
    let home = Home::new();
    for parent in ["x", "y"] {
        let folder = home.folder(parent).join("app");
        fs::create_dir(&folder).unwrap();
        let author = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        let commit = ["commit", "-q", "--allow-empty", "-m", parent];
        for args in [&["init", "-q"][..], &[&author[..], &commit].concat()] {
            let git = Command::new("git").args(args).current_dir(&folder).status();
            assert!(git.unwrap().success(), "{args:?}");
        }
        let talk = ["chat", "--agent", "demo", "-p", "hello"];
        home.prepare(&talk).folder(&folder).run().ok();
    }
    let groups = stats(&home, &["--all", "--by", "project"]);
    let groups = groups["by"]["rows"].as_array().unwrap().clone();
    let mut names: Vec<&str> = groups
        .iter()
        .map(|group| group["key"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["x/app", "y/app"]);
    let csv = home
        .run(&["stats", "--all", "--by", "project", "--csv"])
        .ok();
    csv.says("x/app,").says("y/app,");
    home.run(&["stats", "--all", "--by", "project"])
        .ok()
        .says("x/app")
        .says("y/app");
    home.run(&["list", "--all"])
        .ok()
        .says("x/app")
        .says("y/app");
}
