use proptest::prelude::*;

use super::*;

fn ok(words: &str) -> Slash {
    parse(words).unwrap().unwrap()
}

fn wrong(words: &str) -> String {
    parse(words).unwrap().unwrap_err().to_string()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn every_command_is_read() {
    for command in COMMANDS {
        let words = match command.name {
            "/rename" | "/search" | "/compare" => format!("{} x", command.name),
            "/tag" => "/tag +x".to_owned(),
            "/team" => "/team list".to_owned(),
            "/approve" => "/approve low".to_owned(),
            name => name.to_owned(),
        };
        let read = ok(&words);
        let leaves = ["/exit", "/quit"].contains(&command.name);
        assert_eq!(read == Slash::Exit, leaves, "{words} is read as {read:?}");
        assert!(!command.help.is_empty() && command.help.len() < 60);
    }
}

#[test]
fn arguments_are_read() {
    assert_eq!(ok("/resume"), Slash::Resume(None));
    assert_eq!(ok("/resume @~2"), Slash::Resume(some("@~2")));
    assert_eq!(ok(" /resume My talk "), Slash::Resume(some("My talk")));
    assert_eq!(ok("/resume \"My talk\""), Slash::Resume(some("My talk")));
    assert_eq!(
        ok("/rename The \"great\" talk"),
        Slash::Rename("The \"great\" talk".to_owned())
    );
    assert_eq!(
        ok("/rename \"a\" and \"b\""),
        Slash::Rename("\"a\" and \"b\"".to_owned())
    );
    assert_eq!(
        ok("/tag +a -b +\"c\""),
        Slash::Tag {
            add: vec!["a".to_owned(), "c".to_owned()],
            remove: vec!["b".to_owned()]
        }
    );
    assert_eq!(ok("/fork"), Slash::Fork(None));
    assert_eq!(ok("/fork 12"), Slash::Fork(Some(12)));
    assert_eq!(ok("/rewind 3"), Slash::Rewind(Some(3)));
    assert_eq!(
        ok("/search \"exact phrase\" -not"),
        Slash::Search("\"exact phrase\" -not".to_owned())
    );
    assert_eq!(
        ok("/team deploy 'my team.json'"),
        Slash::TeamDeploy("my team.json".to_owned())
    );
    assert_eq!(ok("/as Ana María"), Slash::As(some("Ana María")));
    assert_eq!(ok("/HELP"), Slash::Help);
}

#[test]
fn a_form_is_told_from_a_file() {
    let export = |words: &str| match ok(words) {
        Slash::Export { format, file } => (format, file),
        other => panic!("{other:?}"),
    };
    assert_eq!(export("/export"), (None, None));
    assert_eq!(export("/export json"), (Some(ExportFormat::Json), None));
    assert_eq!(
        export("/export markdown"),
        (Some(ExportFormat::Markdown), None)
    );
    assert_eq!(
        export("/export talk.jsonl"),
        (Some(ExportFormat::Jsonl), some("talk.jsonl"))
    );
    assert_eq!(
        export("/export talk.html"),
        (Some(ExportFormat::Html), some("talk.html"))
    );
    assert_eq!(
        export("/export claude-code"),
        (Some(ExportFormat::ClaudeCode), None)
    );
    assert_eq!(export("/export ./talk"), (None, some("./talk")));
    assert_eq!(export("/export .md"), (None, some(".md")));
    assert_eq!(
        export("/export md my\\ talk.txt"),
        (Some(ExportFormat::Markdown), some("my talk.txt"))
    );
    assert_eq!(
        wrong("/export pdf talk.pdf"),
        "/export has no format 'pdf'; formats: md, html, json, jsonl, snapshot, claude-code, codex, atif: /export [FORMAT] [FILE]"
    );
    for line in ["/export pdf", "/export talk.pdf"] {
        let why = wrong(line);
        assert!(why.contains("no format 'pdf'; formats: md, html"), "{why}");
    }
    assert_eq!(export("/export talk.txt"), (None, some("talk.txt")));
}

#[test]
fn what_is_wrong_is_said() {
    assert_eq!(
        wrong("/hepl"),
        "there is no command /hepl; did you mean /help?"
    );
    assert_eq!(
        wrong("/resmue abc"),
        "there is no command /resmue; did you mean /resume?"
    );
    assert_eq!(
        wrong("/frobnicate"),
        "there is no command /frobnicate; /help shows all"
    );
    assert_eq!(wrong("/rename"), "/rename needs a title: /rename TITLE");
    assert_eq!(
        wrong("/fork x"),
        "/fork needs the number of an entry, not 'x': /fork [N]"
    );
    assert_eq!(
        wrong("/tag a"),
        "/tag needs + or - before 'a': /tag +TAG -TAG"
    );
    assert_eq!(
        wrong("/tag +\"a"),
        "/tag has a \" that is not closed: /tag +TAG -TAG"
    );
    assert_eq!(wrong("/new talk"), "/new stands alone: /new");
    assert_eq!(
        wrong("/team"),
        "/team needs to know what to do: /team deploy FILE|list|map OLD=NEW"
    );
}

#[test]
fn a_sentence_may_begin_with_a_path() {
    for words in [
        "/etc/passwd is world readable",
        "/tmp is full",
        "/etc has changed",
        "/home is where the files are",
        "/usr and /var",
        "/opt is mine",
        "/ is full",
        "//help",
        "/v1 of the API",
        "and /help",
        "",
        "/",
    ] {
        assert_eq!(parse(words), None, "{words}");
    }
    assert!(parse("/tmp").is_some(), "alone it looks like a command");
}

proptest! {
    #[test]
    fn nothing_that_is_written_can_stop_the_screen(words in "/?[a-z]{0,8}[ \"'\\\\+-]{0,3}\\PC{0,20}") {
        let _ = parse(&words);
        let _ = arguments(&words);
    }

    #[test]
    fn quoted_arguments_come_back(texts in prop::collection::vec("[^\u{0}]{1,8}", 0..4)) {
        let quoted: Vec<String> = texts
            .iter()
            .map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
            .collect();
        prop_assert_eq!(arguments(&quoted.join(" ")).unwrap(), texts);
    }
}
