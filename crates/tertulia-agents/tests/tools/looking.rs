//! Reading, listing and finding.

use std::fs::{File, FileTimes};
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{call, marker, world};

#[tokio::test]
async fn a_file_is_read_as_it_is() {
    let world = world();
    world.write("a.txt", "añ€\n\ttwo\r\nthree");
    assert_eq!(
        world.done("file_read", json!({"path": "a.txt"})).await,
        "añ€\n\ttwo\r\nthree"
    );
    let part = json!({"path": "a.txt", "offset": 2, "limit": 1, "unknown": true});
    assert_eq!(
        world.done("file_read", part).await,
        "\ttwo\r\n[there is more: read on with offset 3]"
    );
    let beyond = json!({"path": "a.txt", "offset": 9});
    world.fails("file_read", beyond, &["only 3 lines"]).await;
}

#[tokio::test]
async fn a_long_file_is_read_page_by_page() {
    let mut world = world();
    world.limits.output = 1000;
    let whole: String = (1..=500).map(|n| format!("line {n} €\n")).collect();
    world.write("long", &whole);
    let (mut all, mut offset, mut pages) = (String::new(), 1_u64, 0);
    loop {
        let arguments = json!({"path": "long", "offset": offset});
        let page = world.done("file_read", arguments).await;
        pages += 1;
        let Some((text, mark)) = page.split_once("[cut at the output limit") else {
            all.push_str(&page);
            break;
        };
        all.push_str(text);
        let next = mark.trim_end_matches(']').rsplit(' ').next().unwrap();
        offset = next.parse().unwrap();
    }
    assert_eq!(all, whole);
    assert!((6..=10).contains(&pages), "{pages}");
}

#[tokio::test]
async fn what_is_no_text_is_said() {
    let world = world();
    world.write("binary", b"\x7fELF\0\0");
    world.write("latin", b"caf\xe9\n");
    world.write("empty", "");
    let check = async |name: &str, words: &[&str]| {
        world.fails("file_read", json!({"path": name}), words).await;
    };
    check("binary", &["binary", "6 bytes"]).await;
    check("latin", &["not UTF-8", "5 bytes"]).await;
    check("missing", &["no file missing"]).await;
    check(".", &["work folder itself"]).await;
    let text = world.done("file_read", json!({"path": "empty"})).await;
    assert_eq!(text, "[the file is empty]");
}

#[tokio::test]
async fn of_a_huge_file_only_what_is_needed_is_read() {
    let world = world();
    // A hole of 4 TB after the text: it takes no space, and more time to read than a tool has.
    let mut start = "text ".repeat(4000);
    start.push('\n');
    world.write("huge", format!("first\n{start}"));
    let file = File::options()
        .write(true)
        .open(world.path("huge"))
        .unwrap();
    file.set_len(4 << 40).unwrap();
    let arguments = json!({"path": "huge", "limit": 1});
    let text = world.done("file_read", arguments).await;
    assert_eq!(text, "first\n[there is more: read on with offset 2]");
    world
        .fails(
            "file_edit",
            json!({"path": "huge", "old_text": "first", "new_text": "1"}),
            &["too large"],
        )
        .await;
    let found = world.done("grep", json!({"pattern": "first"})).await;
    assert!(
        found.contains("[1 files above 32 MiB were not searched]"),
        "{found}"
    );
}

#[tokio::test]
async fn a_line_too_far_down_is_given_up() {
    let mut world = world();
    world.limits.time = Duration::from_millis(300);
    world.write("huge", format!("{}\n", "text ".repeat(4000)));
    let file = File::options()
        .write(true)
        .open(world.path("huge"))
        .unwrap();
    file.set_len(1 << 40).unwrap();
    let arguments = json!({"path": "huge", "offset": 3});
    world.fails("file_read", arguments, &["too far down"]).await;
}

#[tokio::test]
async fn a_folder_is_listed_by_name() {
    let world = world();
    world.write("b.txt", "12345");
    world.write("src/deep/a.rs", "");
    world.write(".hidden", "1");
    world.write(".git/config", "");
    world.write("target/x", "");
    world.write(".gitignore", "target/\n*.log\n");
    world.write("x.log", "");
    world.write("odd\nname", "");
    symlink("../out", world.path("away")).unwrap();
    assert_eq!(
        world.done("directory_list", json!({})).await,
        ".gitignore (14 bytes)\n.hidden (1 bytes)\naway -> ../out\nb.txt (5 bytes)\n\
         odd\\nname (0 bytes)\nsrc/"
    );
    let text = world.done("directory_list", json!({"path": "src"})).await;
    assert_eq!(text, "deep/");
    world.write("bare/.gitignore", "*");
    let text = world.done("directory_list", json!({"path": "bare"})).await;
    assert_eq!(text, "[nothing in it]");
    world
        .fails("directory_list", json!({"path": "b.txt"}), &["b.txt"])
        .await;
    world
        .fails("directory_list", json!({"path": "none"}), &["none"])
        .await;
}

#[tokio::test]
async fn a_long_list_has_an_end() {
    let world = world();
    for n in 0..510 {
        world.write(&format!("many/{n:03}"), "");
    }
    let text = world.done("directory_list", json!({"path": "many"})).await;
    assert_eq!(text.lines().count(), 501);
    assert!(text.starts_with("000 (") && text.contains("\n499 ("));
    assert!(
        text.ends_with("[10 or more are not listed: use glob]"),
        "{text}"
    );
}

#[tokio::test]
async fn files_are_found_by_name_newest_first() {
    let world = world();
    let day = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    for (age, name) in ["src/a.rs", "b.rs", "src/deep/c.rs", "d.txt"]
        .iter()
        .enumerate()
    {
        world.write(name, "");
        let changed = day - Duration::from_secs(age as u64);
        let file = File::options().write(true).open(world.path(name)).unwrap();
        file.set_times(FileTimes::new().set_modified(changed))
            .unwrap();
    }
    world.write(".gitignore", "/skipped\n");
    world.write("skipped/e.rs", "");
    world.write("src/.gitignore", "generated.rs\n!kept.rs\n");
    world.write("src/deep/generated.rs", "");
    world.write(".git/f.rs", "");
    symlink("../out", world.path("away")).unwrap();
    symlink(world.path("src"), world.path("again")).unwrap();
    let check = async |arguments, expected: &str| {
        assert_eq!(world.done("glob", arguments).await, expected);
    };
    check(json!({"pattern": "*.rs"}), "src/a.rs\nb.rs\nsrc/deep/c.rs").await;
    check(json!({"pattern": "src/*.rs"}), "src/a.rs").await;
    check(json!({"pattern": "**/c.*", "path": "src"}), "src/deep/c.rs").await;
    check(json!({"pattern": "secret"}), "[no files match]").await;
    // A named folder is searched although it is ignored, but rules of the folders above still
    // apply.
    check(json!({"pattern": "*", "path": "skipped"}), "skipped/e.rs").await;
    check(
        json!({"pattern": "gen*", "path": "src/deep"}),
        "[no files match]",
    )
    .await;
    for pattern in ["../*", "/etc/*", "src/../../*"] {
        let words = ["`pattern`", "leads out"];
        world
            .fails("glob", json!({"pattern": pattern}), &words)
            .await;
    }
}

#[tokio::test]
async fn lines_are_found_by_what_they_say() {
    let world = world();
    world.write("a.rs", "fn one() {}\nfn two() {}\n// three\n");
    world.write("sub/b.txt", "FN ONE\r\n");
    world.write("binary", b"fn one\0");
    world.write(".gitignore", "ignored\n");
    world.write("ignored", "fn one\n");
    symlink("../out/secret", world.path("secret")).unwrap();
    symlink("../out", world.path("away")).unwrap();
    let check = async |arguments, expected: &str| {
        assert_eq!(world.done("grep", arguments).await, expected);
    };
    check(
        json!({"pattern": r"fn \w+\("}),
        "a.rs:1:fn one() {}\na.rs:2:fn two() {}",
    )
    .await;
    check(
        json!({"pattern": "fn one$", "case_insensitive": true}),
        "sub/b.txt:1:FN ONE",
    )
    .await;
    check(
        json!({"pattern": "two", "path": "a.rs", "context": 1}),
        "a.rs-1-fn one() {}\na.rs:2:fn two() {}\na.rs-3-// three",
    )
    .await;
    check(
        json!({"pattern": "(?i)one", "glob": "*.txt"}),
        "sub/b.txt:1:FN ONE",
    )
    .await;
    check(json!({"pattern": "secret words"}), "[no matches]").await;
    check(
        json!({"pattern": "one", "path": "ignored"}),
        "ignored:1:fn one",
    )
    .await;
    let nowhere = json!({"pattern": "x", "path": "none"});
    world.fails("grep", nowhere, &["none"]).await;
}

#[tokio::test]
async fn a_search_ends_in_time_with_what_it_has() {
    let mut world = world();
    world.limits.time = Duration::ZERO;
    world.write("a", "x\n");
    for (name, arguments) in [
        ("grep", json!({"pattern": "x"})),
        ("glob", json!({"pattern": "*"})),
        ("directory_list", json!({})),
    ] {
        let text = world.done(name, arguments).await;
        assert!(text.contains("not everything was looked at"), "{text}");
    }
}

#[tokio::test]
async fn a_search_that_is_cancelled_stops() {
    let world = world();
    world.write("a", "x\n");
    let cancel = CancellationToken::new();
    cancel.cancel();
    for (name, arguments) in [
        ("grep", json!({"pattern": "x"})),
        ("glob", json!({"pattern": "*"})),
        ("file_write", json!({"path": "b", "content": ""})),
    ] {
        let output = world
            .tools()
            .run(&call(name, arguments), &marker(), &cancel)
            .await;
        assert!(
            !output.ok && output.text.contains("stopped"),
            "{}",
            output.text
        );
    }
    assert_eq!(world.names(), ["a"]);
}
