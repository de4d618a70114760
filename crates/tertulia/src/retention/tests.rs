use std::sync::Arc;

use tertulia_core::entry::Body;
use tertulia_core::id::SessionId;
use tertulia_core::query::{Filter, Trash};
use tertulia_store::{Patience, Redaction, Sessions, Store};
use tertulia_testkit::clock::{frozen_clock, moment};
use tertulia_testkit::logs::{Writer, human, tagged};

use super::plan::everything;
use super::*;
use crate::args::GlobalArgs;
use crate::open;
use crate::settings::{Faults, Settings};
use crate::ui::Told;

const DAY: i64 = 24 * 3600;

/// A store whose clock the test sets, in days.
struct World {
    store: Arc<dyn Store>,
    settings: Settings,
    _folder: tempfile::TempDir,
}

impl World {
    fn new(backend: &str, toml: &str) -> World {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join("config.toml"), toml).unwrap();
        let global = GlobalArgs {
            data_dir: Some(home.clone()),
            store: Some(format!("{backend}:{}", home.join("sessions").display())),
            ..GlobalArgs::default()
        };
        let settings = Settings::resolve(&global, &Ui::new(&global), Faults::Refuse).unwrap();
        World {
            store: open::store(&settings, &settings.store, &Patience::default()).unwrap(),
            settings,
            _folder: folder,
        }
    }

    /// Returns the workspace on a day.
    fn on(&self, day: i64) -> Workspace {
        let clock = frozen_clock(day.unsigned_abs(), day * DAY);
        Workspace {
            settings: self.settings.clone(),
            sessions: Sessions::new(self.store.clone(), clock, Redaction::On),
            aside: None,
        }
    }

    /// Applies the rules on a day and returns what is said.
    fn run(&self, day: i64) -> String {
        let mut ui = Ui::new(&GlobalArgs::default());
        ui.hold();
        keep_workspace(&self.on(day), &mut ui);
        let told = ui.take_held().into_iter().map(|told| match told {
            Told::Note(text) | Told::Warning(text) | Told::Data(text) => text,
            Told::Error { message, .. } => message,
        });
        told.collect::<Vec<_>>().join("\n")
    }

    /// Begins a session on a day.
    fn say(&self, day: i64, title: &str, more: Vec<Body>) -> SessionId {
        let clock = frozen_clock(title.len() as u64 * 1000 + day.unsigned_abs(), day * DAY);
        let edit = |created: &mut tertulia_core::entry::Created| {
            created.title = Some(title.to_owned());
        };
        let bodies = [vec![human("x")], more].concat();
        Writer::begin_with(&*self.store, &clock, edit, bodies).id
    }

    /// Returns the titles of sessions, in alphabetical order.
    fn titles(&self, trash: Trash) -> Vec<String> {
        let filter = Filter {
            trash,
            ..Filter::default()
        };
        let rows = everything(&self.on(0), &filter).unwrap();
        let mut titles: Vec<String> = rows.into_iter().filter_map(|row| row.meta.title).collect();
        titles.sort();
        titles
    }
}

fn each(toml: &str, check: impl Fn(&World)) {
    for backend in ["sqlite", "files"] {
        check(&World::new(backend, toml));
    }
}

#[test]
fn the_first_run_announces_and_a_later_day_applies() {
    each("[retention]\nmax_age = \"30d\"\n", |world| {
        world.say(0, "old", vec![]);
        world.say(39, "new", vec![]);
        let said = world.run(40);
        assert!(said.contains("will move 1 session to the trash"), "{said}");
        let next = dated(moment(41 * DAY));
        assert!(said.contains("\"old\"") && said.contains(&next), "{said}");
        assert_eq!(world.titles(Trash::Without), ["new", "old"]);
        // On the same day nothing is said or done.
        assert_eq!(world.run(40), "");
        assert_eq!(world.titles(Trash::Without), ["new", "old"]);
        let said = world.run(41);
        assert!(said.contains("moved 1 session to the trash"), "{said}");
        assert_eq!(world.titles(Trash::Only), ["old"]);
        // At most once a day.
        world.say(0, "also old", vec![]);
        assert_eq!(world.run(41), "");
        assert_eq!(world.titles(Trash::Only), ["old"]);
        world.run(42);
        assert_eq!(world.titles(Trash::Only), ["also old", "old"]);
        // The trash keeps sessions for 30 days.
        assert!(!world.run(71).contains("deleted"));
        let said = world.run(72);
        assert!(said.contains("deleted 1 session for good"), "{said}");
        assert!(said.contains("30 days"), "{said}");
        assert_eq!(world.titles(Trash::With), ["also old", "new"]);
    });
}

#[test]
fn changed_rules_are_announced_again() {
    let mut world = World::new("sqlite", "[retention]\nmax_age = \"30d\"\n");
    world.say(0, "old", vec![]);
    assert!(world.run(40).contains("will move"));
    world.settings.retention.max_age = Some(SignedDuration::from_hours(24));
    world.say(38, "newer", vec![]);
    assert!(world.run(40).contains("will move 2 sessions"));
    assert_eq!(world.titles(Trash::Only), Vec::<String>::new());
    assert!(world.run(41).contains("moved 2 sessions"));
}

#[test]
fn a_clock_that_was_set_back_announces_again() {
    let world = World::new("sqlite", "[retention]\nmax_age = \"30d\"\n");
    world.say(0, "old", vec![]);
    assert!(world.run(60).contains("will move"));
    assert!(world.run(40).contains("will move"));
    assert_eq!(world.titles(Trash::Only), Vec::<String>::new());
    assert!(world.run(42).contains("moved 1 session"));
}

#[test]
fn each_store_is_announced_for_itself() {
    let world = World::new("sqlite", "[retention]\nmax_count = 0\n");
    world.say(0, "old", vec![]);
    assert!(world.run(5).contains("will move"));
    assert!(world.run(6).contains("moved"));
    let mut other = World::new("files", "[retention]\nmax_count = 0\n");
    other.settings.data.clone_from(&world.settings.data);
    other.say(0, "old", vec![]);
    assert!(other.run(6).contains("will move"));
    assert_eq!(other.titles(Trash::Only), Vec::<String>::new());
}

#[test]
fn open_pinned_and_restored_sessions_are_left_alone() {
    each("[retention]\nmax_count = 1\n", |world| {
        let open = world.say(0, "open", vec![]);
        world.say(0, "pinned", vec![tagged(&["pinned"], &[])]);
        let restored = world.say(0, "restored", vec![]);
        world.say(9, "new", vec![]);
        let workspace = world.on(10);
        let lock = workspace.wait(world.store.claim(open)).unwrap().unwrap();
        world.run(10);
        world.run(11);
        assert_eq!(world.titles(Trash::Only), ["restored"]);
        workspace.wait(workspace.sessions.undo()).unwrap();
        assert_eq!(world.titles(Trash::Only), Vec::<String>::new());
        assert_eq!(world.run(12), "");
        drop(lock);
        let plan = plan(&rules(&world.on(13)), &world.on(13)).unwrap();
        let titles = |rows: &[Row]| -> Vec<String> {
            rows.iter()
                .filter_map(|row| row.meta.title.clone())
                .collect()
        };
        assert_eq!(titles(&plan.trash), ["open"]);
        assert_eq!(titles(&plan.pinned), ["pinned"]);
        assert_eq!(titles(&plan.restored), ["restored"]);
        world.run(13);
        assert_eq!(world.titles(Trash::Only), ["open"]);
        // A new message ends the exception.
        let later = world.on(14);
        let row = later.wait(later.sessions.row(restored)).unwrap();
        later
            .wait(
                later
                    .sessions
                    .append(row.meta.id, row.meta.head, vec![human("more")]),
            )
            .unwrap();
        world.say(15, "newest", vec![]);
        world.run(20);
        assert_eq!(world.titles(Trash::Without), ["newest", "pinned"]);
    });
}

#[test]
fn old_sessions_are_compressed() {
    each("[retention]\ncompress_after = \"90d\"\n", |world| {
        let more = || vec![human(&"words ".repeat(2000))];
        let old = world.say(0, "old", more());
        world.say(50, "newer", more());
        world.say(0, "small", vec![]);
        assert_eq!(world.run(80), "");
        let said = world.run(91);
        assert!(said.contains("[retention] compressed 1 session"), "{said}");
        assert_eq!(world.run(91), "");
        let logs = world.on(92).wait(world.store.sizes()).unwrap();
        let compressed = logs.iter().filter(|log| log.is_compressed());
        let ids: Vec<_> = compressed
            .filter_map(|log| Some(log.session.as_ref()?.id))
            .collect();
        assert_eq!(ids, [old]);
        assert_eq!(world.titles(Trash::Without), ["newer", "old", "small"]);
    });
}
