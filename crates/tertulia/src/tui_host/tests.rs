//! Every request on real stores, including failures.

mod changes;
mod completion;
mod counting;
mod lists;
mod prompt_history;
mod transcript;

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tertulia_core::clock::Clock;
use tertulia_core::entry::{Body, Kind};
use tertulia_core::id::SessionId;
use tertulia_store::{Patience, Redaction, Sessions, Store};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, ai, human};
use tertulia_tui::completion::{Asked, Candidate};
use tertulia_tui::history::History;
use tertulia_tui::item::Item;
use tertulia_tui::store_service::{Answer, Family, Listed, Request, Searched, StoreService};
use tertulia_tui::{picker, rewind, search};

use super::*;
use crate::args::GlobalArgs;
use crate::open;
use crate::settings::Settings;
use counting::Counting;

/// A temporary folder with a store and a working directory.
struct World {
    folder: TempDir,
    workspace: Workspace,
    store: Arc<Counting>,
}

impl World {
    fn new(backend: &str) -> World {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let global = GlobalArgs {
            data_dir: Some(home.clone()),
            store: Some(match backend {
                "memory" => "sqlite::memory:".to_owned(),
                "files" => format!("files:{}", home.join("logs").display()),
                _ => format!("sqlite:{}", home.join("t.db").display()),
            }),
            ..GlobalArgs::default()
        };
        let mut settings =
            Settings::resolve(&global, &Ui::new(&global), crate::settings::Faults::Refuse).unwrap();
        settings.cwd = folder.path().join("work");
        settings.project.ids = "here".into();
        std::fs::create_dir(&settings.cwd).unwrap();
        let store = open::store(&settings, &settings.store, &Patience::default()).unwrap();
        let store = Arc::new(Counting::new(store));
        let clock = still_clock(1);
        let sessions = Sessions::new(store.clone(), clock, Redaction::On);
        World {
            folder,
            workspace: Workspace {
                settings,
                sessions,
                aside: None,
            },
            store,
        }
    }

    /// One world per kind of store.
    fn each() -> impl Iterator<Item = World> {
        ["sqlite", "files"].into_iter().map(World::new)
    }

    fn store_service(&self) -> Service {
        service(&self.workspace, false)
    }

    fn clock(&self) -> &Clock {
        self.workspace.sessions.clock()
    }

    fn store(&self) -> &dyn Store {
        self.workspace.sessions.store()
    }

    fn cwd(&self) -> &Path {
        &self.workspace.settings.cwd
    }

    /// A session in this project with a title and these entries.
    fn talk(&self, title: &str, bodies: Vec<Body>) -> Writer {
        let edit = |created: &mut tertulia_core::entry::Created| {
            created.title = Some(title.to_owned());
            created.project = Some("here".to_owned());
        };
        Writer::begin_with(self.store(), self.clock(), edit, bodies)
    }

    /// A session of one question and one answer.
    fn small(&self, title: &str) -> Writer {
        self.talk(title, vec![human("a question"), ai("demo", "an answer")])
    }

    fn nobody(&self) -> SessionId {
        self.clock().session_id()
    }

    fn answer(&self, request: Request) -> Answer {
        self.store_service().answer(request)
    }
}

/// A store service, and a runtime that waits for it.
struct Service(StoreService);

fn service(workspace: &Workspace, ephemeral: bool) -> Service {
    let global = GlobalArgs::default();
    let shared = Shared::new(&TalkArgs::default(), &global, &Ui::new(&global));
    let host = TuiHost::new(workspace.clone(), shared, ephemeral);
    Service(StoreService::new(Arc::new(host)))
}

impl Service {
    fn answer(&self, request: Request) -> Answer {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(self.0.answer(request))
    }

    fn history(&self) -> History {
        self.0.history()
    }
}

/// Content of an answer of the expected kind.
macro_rules! held {
    ($answer:expr, $pattern:pat => $value:expr) => {
        match $answer {
            $pattern => $value,
            other => panic!("not expected: {other:?}"),
        }
    };
}
use held;

/// The error message, on one line.
fn refused<T: std::fmt::Debug>(answered: TuiResult<T>) -> String {
    answered.unwrap_err().sentence()
}
