//! Tests with a history, its growth, and text that is not aider's.

use proptest::prelude::*;
use tertulia_core::entry::{SpeakerKind, Usage};
use tertulia_core::foreign::Foreign;

use super::*;

const HISTORY: &str = include_str!("../../fixtures/aider/chat.history.md");

fn sessions(content: &[u8]) -> Vec<Foreign> {
    let input = Input {
        path: Path::new("/work/app/.aider.chat.history.md"),
        content: Some(content),
    };
    let mut sessions = Vec::new();
    let take = &mut |session| {
        sessions.push(session);
        ControlFlow::Continue(())
    };
    Aider.read(&input, take).unwrap();
    sessions
}

fn said(session: &Foreign) -> Vec<(SpeakerKind, &str)> {
    let said = session.said.iter();
    said.map(|said| (said.message.speaker.kind, said.message.content.as_str()))
        .collect()
}

#[test]
fn a_history_has_a_session_for_each_start_with_a_prompt() {
    use SpeakerKind::{Ai, Human, System};
    assert!(Aider.recognises(Path::new("notes.md"), HISTORY.as_bytes()));
    let sessions = sessions(HISTORY.as_bytes());
    let [first, second] = &sessions[..] else {
        panic!("{sessions:?}");
    };
    let texts = said(first);
    let prompt = "Greet the user by name\n\nand say goodbye at the end";
    // What the program says at once is one message.
    assert_eq!(texts[0].0, System);
    assert_eq!(texts[0].1.lines().count(), 6);
    assert_eq!(texts[1], (Human, prompt));
    assert_eq!(texts[2].0, Ai);
    assert!(texts[2].1.starts_with("I'll change `app.py`:\n\n> A quote"));
    assert!(texts[2].1.contains("\n#### A heading of the model\n"));
    assert!(texts[2].1.ends_with(">>>>>>> REPLACE\n```"));
    assert_eq!(
        texts[3..],
        [
            (
                System,
                "Applied edit to app.py\nCommit 1a2b3c4 feat: greet the user"
            ),
            (Human, "/run python app.py"),
            (
                System,
                "hello Ana\n\n> not a quote\ngoodbye\n\
                 Add 0.1k tokens of command output to the chat? (Y)es/(N)o [Yes]: y"
            ),
            (Human, "/model gpt-4o"),
            (System, "Aider v0.86.1\nModel: gpt-4o with diff edit format"),
            (Human, "Thanks"),
            (Ai, "You're welcome."),
        ]
    );
    let answer = &first.said[2];
    assert_eq!(answer.thought.as_deref(), Some("They want two things."));
    assert_eq!(
        answer.message.model.as_deref(),
        Some("anthropic/claude-sonnet-4")
    );
    let usage = Usage {
        estimated: true,
        ..Usage::told(2_100, 301)
    };
    assert_eq!(answer.message.usage, Some(usage));
    let last = &first.said.last().unwrap().message;
    assert_eq!(last.model.as_deref(), Some("gpt-4o"));
    let usage = Usage {
        cache_read: 2_000,
        cache_written: 1_000,
        ..Usage::told(5_244, 12)
    };
    assert_eq!(last.usage, Some(usage));
    assert_eq!(first.source.version.as_deref(), Some("0.86.1"));
    assert!(first.source.original.starts_with("2025-03-01T09:05:30-"));
    assert_eq!(Some(first.created_at), local_time("2025-03-01 09:05:30"));
    assert_eq!(first.said[0].at, first.created_at);
    assert!(first.changes.lost().join(";").contains("costs (2)"));
    assert_eq!(
        said(second)[1..],
        [(Human, "What does app.py do?"), (Ai, "It greets the user.")]
    );
    assert!(second.changes.lost().is_empty());
}

#[test]
fn notices_at_the_end_wait_until_no_more_can_follow() {
    let beginning = "#### one  \n\nfirst\n\n> Applied edit to a.py  \n";
    let session = &sessions(beginning.as_bytes())[0];
    assert_eq!(said(session).len(), 2);
    assert!(
        session
            .changes
            .lost()
            .join(";")
            .contains("notices at the end")
    );
    let grown = format!("{beginning}> Commit 1a2b3c4 one  \n\n#### two  \n");
    let grown = &sessions(grown.as_bytes())[0];
    let block = "Applied edit to a.py\nCommit 1a2b3c4 one";
    assert_eq!(said(grown)[2], (SpeakerKind::System, block));
    assert_eq!(grown.said[..2], session.said[..]);
}

#[test]
fn the_folder_of_the_file_is_the_project() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    std::fs::write(&path, HISTORY).unwrap();
    let input = Input {
        path: &path,
        content: None,
    };
    let mut folders = Vec::new();
    let take = &mut |session: Foreign| {
        folders.push(session.source.cwd);
        ControlFlow::Break(())
    };
    Aider.read(&input, take).unwrap();
    assert_eq!(folders, [folder.path().to_str().map(str::to_owned)]);
    assert!(Aider.is_candidate(&path) && !Aider.is_candidate(Path::new("a.md")));
    assert!(!Aider.recognises(&path, b" \n") && !Aider.recognises(Path::new("a.md"), b"# notes"));
}

#[test]
fn text_without_its_spaces_and_headers_is_read() {
    use SpeakerKind::{Ai, Human, System};
    let content = b"#### one\n####\n#### more\n\nfirst\n> Applied edit\n\n#### two\n\nsecond\n";
    let sessions = sessions(content);
    let [session] = &sessions[..] else {
        panic!("{sessions:?}");
    };
    assert_eq!(
        said(session),
        [
            (Human, "one\n\nmore"),
            (Ai, "first"),
            (System, "Applied edit"),
            (Human, "two"),
            (Ai, "second"),
        ]
    );
    assert!(session.source.original.starts_with("unknown-"));
    let dated = [
        &content[..],
        b"# aider chat started at 2025-03-01 09:00:00\n",
    ]
    .concat();
    let dated = super::tests::sessions(&dated).remove(0);
    assert_eq!(dated.id, session.id);
    assert_eq!(Some(dated.created_at), local_time("2025-03-01 09:00:00"));
}

#[test]
fn a_line_that_is_too_long_is_counted() {
    let mut content = HISTORY.as_bytes().to_vec();
    content.extend(std::iter::repeat_n(b'x', 17_000_000));
    content.extend_from_slice(b"\n\xff\xfe #### \0\n");
    let last = sessions(&content).pop().unwrap();
    assert_eq!(last.changes.damaged.len(), 1);
    assert!(
        last.said
            .last()
            .unwrap()
            .message
            .content
            .ends_with("#### \u{fffd}")
    );
}

/// Returns the ids of each session's messages.
fn ids(sessions: &[Foreign]) -> Vec<Vec<String>> {
    let ids = |session: &Foreign| {
        session
            .said
            .iter()
            .map(|said| said.id.to_string())
            .collect()
    };
    sessions.iter().map(ids).collect()
}

#[test]
fn a_copy_of_a_session_with_another_end_has_the_same_beginning() {
    let other = HISTORY.replace("You're welcome.", "Gladly.");
    let (one, other) = (sessions(HISTORY.as_bytes()), sessions(other.as_bytes()));
    assert_eq!(one[0].id, other[0].id);
    let (one, other) = (ids(&one), ids(&other));
    let shared = one[0].iter().zip(&other[0]).take_while(|(a, b)| a == b);
    assert_eq!(shared.count(), one[0].len() - 1);
    assert_eq!(one[1], other[1]);
}

/// What the program writes at once: a prompt, an answer (true) or a notice.
fn write() -> impl Strategy<Value = (bool, String)> {
    let text = "(#### |> |Cost: )?[a-z]{1,5}(\n{0,2}(#### |> |- )?[a-z]{1,5}){0,4}";
    prop_oneof![
        text.prop_map(|text| {
            let lines: Vec<&str> = text.lines().collect();
            (false, format!("\n#### {}  \n", lines.join("  \n#### ")))
        }),
        text.prop_map(|text| (true, format!("\n{text}\n\n"))),
        "[a-z]{1,9}".prop_map(|text| (false, format!("> {text}  \n"))),
        Just((false, "> Tokens: 1.2k sent, 3 received.  \n".to_owned())),
    ]
}

proptest! {
    /// The program writes whole messages; a cut can only change the last one.
    #[test]
    fn a_file_that_grew_keeps_earlier_ids(cut in 0..HISTORY.len()) {
        let whole = ids(&sessions(HISTORY.as_bytes()));
        let part = ids(&sessions(&HISTORY.as_bytes()[..cut]));
        for (at, messages) in part.iter().enumerate() {
            let is_last = at + 1 == part.len();
            let complete = messages.len() - usize::from(is_last);
            prop_assert_eq!(&messages[..complete], &whole[at][..complete]);
        }
    }

    /// After each write of the program, a file has a prefix of its later messages.
    #[test]
    fn each_write_adds_messages(writes in prop::collection::vec(write(), 1..20)) {
        let mut file = String::from("\n# aider chat started at 2025-03-01 09:00:00\n\n");
        let mut states = Vec::new();
        let mut was_answer = false;
        for (is_answer, write) in &writes {
            // A notice of tokens follows each answer.
            if *is_answer && std::mem::replace(&mut was_answer, true) {
                continue;
            }
            was_answer = *is_answer;
            file.push_str(write);
            states.push(ids(&sessions(file.as_bytes())));
        }
        let Some(last) = states.last().cloned() else {
            return Ok(());
        };
        for state in states {
            for (earlier, later) in state.iter().zip(&last) {
                prop_assert!(later.starts_with(earlier));
            }
        }
    }

    #[test]
    fn any_text_is_read(text in "(?s)([#> \n]|####|# aider chat started at |Tokens: |.){0,200}") {
        sessions(text.as_bytes());
    }
}
