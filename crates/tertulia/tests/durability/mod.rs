//! Acknowledged messages survive `kill -9`, power cuts, full disks, many writers and flipped bits.
//!
//! The acknowledgement used by these tests is the public one: a line of `--output-format
//! stream-json` whose `type` is `message` means that this message is durable.
//!
//! A sample of the kills, power cuts and flipped bytes runs; `./test --soak` runs all.
//! `TERTULIA_KILLS` sets how often a program is killed, `TERTULIA_SEED` the random seed.

#![allow(
    clippy::print_stderr,
    reason = "a test says on standard error what it measured"
)]

mod compressed;
mod crash;
mod damage;
mod disk;
mod full;
mod held;
mod kill;
mod merged;
mod served;
mod sync;
mod teams;
mod trace;
mod trouble;
mod unmade;
pub mod world;
mod writers;
