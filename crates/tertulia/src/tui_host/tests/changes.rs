//! Renaming, tagging, forking, exporting and comparing.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tertulia_core::entry::Created;
use tertulia_testkit::ask::now;

use super::*;

fn rename(world: &World, id: SessionId, title: &str) -> TuiResult<Box<Row>> {
    held!(world.answer(Request::Rename(id, title.to_owned())), Answer::Renamed(row) => row)
}

fn tag(world: &World, session: SessionId, add: &[&str], remove: &[&str]) -> TuiResult<Box<Row>> {
    let owned = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect();
    let (add, remove) = (owned(add), owned(remove));
    let request = Request::Tag {
        session,
        add,
        remove,
    };
    held!(world.answer(request), Answer::Tagged(row) => row)
}

fn undo(world: &World) -> usize {
    world
        .workspace
        .wait(world.workspace.sessions.undo())
        .unwrap()
        .len()
}

#[test]
fn changes_follow_the_rules_of_the_commands_and_can_be_undone() {
    for world in World::each() {
        let id = world.small("first").id;
        let meta = || {
            world
                .workspace
                .wait(world.workspace.sessions.row(id))
                .unwrap()
                .meta
        };
        let row = rename(&world, id, "  A better\ttitle ").unwrap();
        assert_eq!(row.meta.title.as_deref(), Some("A better title"));
        assert_eq!(row.meta, meta());
        for wrong in ["", "  ", &"x".repeat(201), "a\u{1b}b"] {
            assert!(refused(rename(&world, id, wrong)).contains("a title is one line"));
        }
        let row = tag(&world, id, &["#release", "urgent"], &[]).unwrap();
        assert_eq!(row.meta.tags, ["release", "urgent"]);
        let row = tag(&world, id, &[], &["urgent"]).unwrap();
        assert_eq!(row.meta.tags, ["release"]);
        for (add, remove) in [(&["a b"][..], &[][..]), (&[], &[""]), (&[], &[])] {
            let why = refused(tag(&world, id, add, remove));
            assert!(
                why.contains("is not a change of tags; write +name"),
                "{why}"
            );
        }
        let trashed =
            held!(world.answer(Request::Trash(id)), Answer::Trashed(_, row) => row.unwrap());
        assert!(trashed.meta.trashed_at.is_some());
        (0..3).for_each(|_| assert_eq!(undo(&world), 1));
        assert!(meta().tags.is_empty() && meta().trashed_at.is_none());
        assert_eq!(undo(&world), 1);
        assert_eq!(meta().title.as_deref(), Some("first"));
    }
}

#[test]
fn nothing_changes_what_is_not_there() {
    for world in World::each() {
        let id = world.nobody();
        let missing = |why: String| assert!(why.contains("there is no session"), "{why}");
        missing(refused(rename(&world, id, "x")));
        missing(refused(tag(&world, id, &["x"], &[])));
        missing(refused(
            held!(world.answer(Request::Trash(id)), Answer::Trashed(_, row) => row),
        ));
        missing(refused(fork(&world, id, None)));
        missing(refused(export(&world, id, None, None)));
        missing(refused(compare(&world, id, "@")));
    }
}

fn fork(world: &World, id: SessionId, at: Option<u64>) -> TuiResult<Box<Forked>> {
    let at = at.map(Seq);
    held!(world.answer(Request::Fork(id, at)), Answer::Forked(forked) => forked)
}

#[test]
fn forks_share_what_they_should() {
    for world in World::each() {
        let writer = world.small("talk");
        let parent = |forked: &Forked| forked.row.meta.parent.clone().unwrap();
        let all = fork(&world, writer.id, None).unwrap();
        assert_eq!((parent(&all).id, parent(&all).seq), (writer.id, Seq(3)));
        let some = fork(&world, writer.id, Some(2)).unwrap();
        assert_eq!((parent(&some).seq, some.row.meta.messages), (Seq(2), 1));
        assert_eq!(
            parent(&fork(&world, writer.id, Some(1)).unwrap()).seq,
            Seq(1)
        );
        for wrong in [0, 4, u64::MAX] {
            let why = refused(fork(&world, writer.id, Some(wrong)));
            let expected = format!(
                "session {} has no entry {wrong}; it has entries 1 to 3",
                writer.id.short()
            );
            assert_eq!(why, expected);
        }
    }
}

#[test]
fn an_answer_that_was_cut_off_is_kept_before_a_fork() {
    for world in World::each() {
        let mut writer = world.small("talk");
        writer.say(world.store(), "and then?");
        now(world
            .store()
            .keep_draft(writer.id, &writer.draft("then we")))
        .unwrap();
        // A draft of a session that is open elsewhere is not recovered.
        let claim = now(world.store().claim(writer.id)).unwrap();
        assert!(!fork(&world, writer.id, None).unwrap().recovered);
        drop(claim);
        // A fork that ends before the draft does not need it.
        assert!(!fork(&world, writer.id, Some(3)).unwrap().recovered);
        let forked = fork(&world, writer.id, None).unwrap();
        assert!(forked.recovered);
        assert_eq!(forked.row.meta.messages, 4);
        assert_eq!(forked.row.meta.parent.clone().unwrap().seq, Seq(5));
        assert!(!fork(&world, writer.id, None).unwrap().recovered);
    }
}

fn export(
    world: &World,
    session: SessionId,
    format: Option<ExportFormat>,
    file: Option<&str>,
) -> TuiResult<Exported> {
    let file = file.map(str::to_owned);
    let request = Request::Export {
        session,
        format,
        file,
    };
    held!(world.answer(request), Answer::Exported(exported) => exported)
}

#[test]
fn exports_never_replace_a_file() {
    for world in World::each() {
        let writer = world.small("talk");
        let short = writer.id.short();
        let export = |format, file| export(&world, writer.id, format, file);
        let first = export(None, None).unwrap();
        assert_eq!(first.path, world.cwd().join(format!("tertulia-{short}.md")));
        let text = fs::read_to_string(&first.path).unwrap();
        assert!(text.contains("an answer") && text.len() == first.bytes);
        assert_eq!(
            first.path.metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
        let second = export(None, None).unwrap();
        assert_eq!(
            second.path,
            world.cwd().join(format!("tertulia-{short}-2.md"))
        );
        let log = export(Some(ExportFormat::Jsonl), Some("talk.jsonl")).unwrap();
        assert_eq!(fs::read_to_string(&log.path).unwrap().lines().count(), 3);
        let why = refused(export(Some(ExportFormat::Jsonl), Some("talk.jsonl")));
        assert!(
            why.contains("is there already and stays as it is; choose another name"),
            "{why}"
        );
        fs::create_dir(world.cwd().join("out")).unwrap();
        let inside = export(Some(ExportFormat::Json), Some("out")).unwrap();
        assert_eq!(
            inside.path,
            world.cwd().join(format!("out/tertulia-{short}.json"))
        );
        let dangling = world.cwd().join("link");
        std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
        assert!(refused(export(None, Some("link"))).contains("is there already"));
        assert!(refused(export(None, Some("no/such/folder.md"))).contains("cannot be written"));
        assert!(
            refused(export(Some(ExportFormat::Snapshot), None))
                .contains("only a team session can be a snapshot")
        );
        let team = |created: &mut Created| {
            created.kind = Kind::Team;
            created.team = Some("review".to_owned());
        };
        let bodies = vec![
            human("hello"),
            tertulia_testkit::logs::tool_result("look", "x"),
        ];
        let team = Writer::begin_with(world.store(), world.clock(), team, bodies);
        let file =
            super::changes::export(&world, team.id, Some(ExportFormat::Snapshot), None).unwrap();
        assert!(
            file.notes[0].contains("left out: messages of tools"),
            "{:?}",
            file.notes
        );
    }
}

fn compare(world: &World, session: SessionId, with: &str) -> TuiResult<Vec<String>> {
    let with = with.to_owned();
    held!(world.answer(Request::Compare { session, with }), Answer::Compared(_, _, lines) => lines)
}

#[test]
fn two_sessions_are_compared_from_where_they_part() {
    for world in World::each() {
        let mut bodies: Vec<Body> = (0..60).map(|n| human(&format!("shared {n}"))).collect();
        bodies.push(ai("demo", "we could"));
        let mut writer = world.talk("talk", bodies);
        let mut other = writer.fork(world.store(), 62);
        writer.append(
            world.store(),
            vec![human("do it"), ai("demo", "done\nin red")],
        );
        other.append(
            world.store(),
            vec![human("do it"), ai("demo", "done\nin blue")],
        );
        let lines = compare(&world, writer.id, &other.id.short()).unwrap();
        assert!(lines[0].starts_with(&format!("- {}  talk  (63 messages", writer.id.short())));
        assert!(lines[1].starts_with(&format!("+ {}  talk (fork)", other.id.short())));
        assert_eq!(lines[2], "Both have entries 1 to 62, and part there.");
        let rest: Vec<&str> = lines[4..].iter().map(String::as_str).collect();
        assert_eq!(
            rest,
            [
                "  you:",
                "  do it",
                "",
                "  demo:",
                "  done",
                "- in red",
                "+ in blue",
                ""
            ]
        );
        // The first session is a prefix of the second.
        let end = writer.fork(world.store(), 64);
        let lines = compare(&world, writer.id, &end.id.short()).unwrap();
        let short = writer.id.short();
        assert_eq!(
            lines[2],
            format!("Both have entries 1 to 64, and {short} ends there.")
        );
        assert_eq!(lines.len(), 4);
        let stranger = world.small("stranger");
        let lines = compare(&world, stranger.id, &writer.id.short()).unwrap();
        assert!(lines[2].starts_with("They have nothing in common"));
        assert!(refused(compare(&world, writer.id, &short)).contains("is this session itself"));
        assert!(
            refused(compare(&world, writer.id, "no such talk")).contains("there is no session")
        );
    }
}

#[test]
fn long_sessions_are_compared_at_little_cost() {
    let world = World::new("sqlite");
    let mut writer = world.talk("talk", Vec::new());
    for round in 0..10 {
        let bodies = (0..1000).map(|n| human(&format!("{round} {n}\u{7}")));
        writer.append(world.store(), bodies.collect());
    }
    let mut other = writer.fork(world.store(), 4321);
    let bodies = (0..1000).map(|n| human(&format!("other {n}")));
    other.append(world.store(), bodies.collect());
    world.store.lines();
    let lines = compare(&world, writer.id, &other.id.short()).unwrap();
    assert_eq!(lines[2], "Both have entries 1 to 4321, and part there.");
    assert!(lines.last().unwrap().contains("too much to compare"));
    assert!(lines.iter().all(|line| !line.contains(char::is_control)));
    let read = world.store.lines();
    assert!(read < 1200, "{read} lines");
}
