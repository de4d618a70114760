//! Measures the figures that the design promises: bytes, CPU time and syncs per turn, which are
//! stable, and wall times, which are not and are therefore compared with raw writes and as many
//! syncs in the same run.
//!
//! `./bench` runs everything, `./bench append fork` a part. The final table shows each figure with
//! its limit.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench that cannot run should say so and stop"
)]

mod append;
mod compare;
#[path = "../../tests/home.rs"]
#[allow(dead_code, reason = "the home of the tests; this needs a part of it")]
mod home;
#[cfg(feature = "web")]
#[path = "../../tests/http"]
mod http {
    pub mod siege;
    #[allow(dead_code, reason = "the page of the tests; this needs a part of it")]
    pub mod stage;
}
mod logs;
mod on_server;
#[path = "../../tests/pairs/stage.rs"]
#[allow(
    dead_code,
    reason = "the pairs of the tests; this needs a part of them"
)]
mod pair_stage;
mod paired;
mod reads;
mod screen;
mod sealed;
#[path = "../../tests/serve"]
mod serve {
    pub mod crowd;
    #[allow(
        dead_code,
        reason = "the clients of the tests; this needs a part of them"
    )]
    pub mod stage;
}
mod served;
mod table;
mod teams;
mod writers;

use table::Table;

fn main() {
    // This process was started by a benchmark: as one of several writers, under strace or as a
    // team.
    if let Ok(role) = std::env::var("TERTULIA_BENCH_ROLE") {
        return match role.as_str() {
            "writer" => writers::be_a_writer(),
            "turns" => append::be_traced(),
            "team" => teams::be_a_team(),
            other => panic!("unknown role {other}"),
        };
    }
    // Ignore flags that Cargo adds.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let mut table = Table::default();
    if wants("start") {
        reads::start(&mut table);
    }
    if wants("append") {
        append::measure(&mut table);
    }
    if wants("fork") {
        append::fork(&mut table);
    }
    if wants("read") {
        reads::last_and_whole(&mut table);
    }
    if wants("diff") {
        compare::measure(&mut table);
    }
    if wants("list") {
        reads::list(&mut table);
    }
    if wants("search") {
        reads::search(&mut table);
    }
    if wants("writers") {
        writers::measure(&mut table);
    }
    if wants("postgres") {
        on_server::measure(&mut table);
    }
    if wants("sealed") {
        sealed::measure(&mut table);
    }
    if wants("screen") {
        screen::measure(&mut table);
    }
    if wants("team") {
        teams::measure(&mut table);
    }
    if wants("pair") {
        paired::measure(&mut table);
    }
    if wants("serve") {
        served::measure(&mut table);
    }
    table.print();
}
