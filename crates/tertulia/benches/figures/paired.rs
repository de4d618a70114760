//! Cost of resuming a pair: it depends on the end of the log, not on its length.

use std::time::{Duration, Instant};

use crate::home::{Backend, Home};
use crate::pair_stage::{ENDLESS, home_with, pair, write_rounds};
use crate::table::Table;

/// Returns the shortest time in which a session without worker calls left is resumed.
fn quickest(home: &Home) -> Duration {
    let once = |_| {
        let begun = Instant::now();
        let output = pair(home, &["--resume", "@"]).ok();
        output.notes("worker calls used up");
        begun.elapsed()
    };
    (0..5).map(once).min().unwrap()
}

pub fn measure(table: &mut Table) {
    for backend in [Backend::Sqlite, Backend::Files] {
        println!("pair, {backend:?}");
        let of_rounds = |rounds| {
            let home = home_with(backend, ENDLESS);
            write_rounds(&home, rounds);
            quickest(&home).as_secs_f64()
        };
        let (few, many) = (of_rounds(5), of_rounds(500));
        table.fact(
            &format!("{backend:?}: resume after 5 rounds"),
            few * 1000.0,
            "ms",
        );
        table.at_most(
            &format!("{backend:?}: resume after 500 rounds, to 5"),
            many / few,
            2.0,
            "×",
        );
    }
}
