//! Instructor and worker, with the built program in an empty home: rounds, budget, tools, signals,
//! `kill -9` at every stage, and sessions of claude-master.

mod earlier;
mod failing;
mod killed;
mod long;
mod rounds;
mod signals;
pub mod stage;
mod subtle;
mod terminal;
mod tools;
