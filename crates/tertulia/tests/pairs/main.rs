//! Instructor and worker, with the built program in an empty home: rounds, budget, tools, signals,
//! `kill -9` at every stage, and sessions of claude-master.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod earlier;
#[path = "../cli/home.rs"]
#[allow(
    dead_code,
    reason = "the home of the other tests; these need a part of it"
)]
mod home;
mod killed;
mod long;
#[path = "../cli/pty.rs"]
#[allow(
    dead_code,
    reason = "the terminal of the other tests; these need a part of it"
)]
mod pty;
mod rounds;
#[path = "../cli/running.rs"]
#[allow(
    dead_code,
    reason = "what runs in the other tests; these need a part of it"
)]
mod running;
mod signals;
mod stage;
mod subtle;
mod terminal;
#[path = "../talks/stage.rs"]
#[allow(
    dead_code,
    reason = "the stage of the other tests; these need a part of it"
)]
mod tool_stage;
mod tools;
#[path = "../agents/world.rs"]
#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the world of the other tests; these need a part of it"
)]
mod world;
