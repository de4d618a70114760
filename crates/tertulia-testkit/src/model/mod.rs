//! Random histories of operations, run on a backend and on plain vectors: after every step both
//! must give the same results.
//!
//! | part | contents |
//! |---|---|
//! | [`op`] | operations, and the generation of histories |
//! | [`plain`] | the reference model: a vector of entries per session |
//! | [`play`] | runs one history on both, step by step |
//! | `compare` | all comparisons |
//!
//! `PROPTEST_CASES=1000 cargo nextest run -p tertulia-store model::` runs more histories.

mod compare;
pub mod op;
pub mod plain;
pub mod play;

use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use tertulia_store::{Store, StoreResult};

use crate::place::Place;
use op::{Handles, Op};
use play::Play;

/// Number of histories unless `PROPTEST_CASES` is set: takes a few seconds.
const HISTORIES: u32 = 50;

/// Defines the model test of a backend: `model_suite!(name, place: || Folder::new(open))`.
#[macro_export]
macro_rules! model_suite {
    ($backend:ident, memory: $store:expr) => {
        #[test]
        fn $backend() {
            $crate::model::on_stores($store);
        }
    };
    ($backend:ident, place: $place:expr) => {
        #[test]
        fn $backend() {
            $crate::model::on_places($place);
        }
    };
}

/// Store handles used by a history.
pub trait Doors {
    /// Returns the current handle.
    fn store(&self) -> &dyn Store;

    /// Switches to another handle.
    fn other(&mut self);
}

struct One<S>(S);

impl<S: Store> Doors for One<S> {
    fn store(&self) -> &dyn Store {
        &self.0
    }

    fn other(&mut self) {}
}

struct Several<'a> {
    place: &'a dyn Place,
    handles: [Box<dyn Store>; 2],
}

impl Doors for Several<'_> {
    fn store(&self) -> &dyn Store {
        &*self.handles[0]
    }

    /// Switches to the handle that was opened earlier, and reopens the one used so far.
    fn other(&mut self) {
        self.handles.rotate_left(1);
        self.handles[1] = self.place.open();
    }
}

/// Runs histories on stores with a single handle.
pub fn on_stores<S: Store>(open: impl Fn() -> StoreResult<S>) {
    run(Handles::One, |ops| {
        let store = open().map_err(|error| error.to_string())?;
        Play::new().all(ops, &mut One(store))
    });
}

/// Runs histories on stores with several handles.
pub fn on_places<P: Place>(place: impl Fn() -> P) {
    run(Handles::Several, |ops| {
        let place = place();
        let mut doors = Several {
            place: &place,
            handles: [place.open(), place.open()],
        };
        Play::new().all(ops, &mut doors)
    });
}

fn run(handles: Handles, play: impl Fn(&[Op]) -> Result<(), String>) {
    let mut config = Config {
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..Config::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = HISTORIES;
    }
    let result = TestRunner::new(config).run(&op::histories(handles), |ops| {
        play(&ops).map_err(TestCaseError::fail)
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(reason, ops)) => {
            let steps: Vec<String> = ops.iter().map(|op| format!("    {op:?},\n")).collect();
            panic!("{reason}\nin this history:\n{}", steps.concat());
        }
        Err(error) => panic!("{error}"),
    }
}
