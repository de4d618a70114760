//! What was acknowledged stays: under `kill -9`, a power cut, a full disk, many writers, flipped bits.
//!
//! The acknowledgement that these tests go by is the one that everybody can see: a line of
//! `--output-format stream-json` whose `type` is `message` says that this message is durable now.
//!
//! `TERTULIA_KILLS` sets how often a program is killed, `TERTULIA_SEED` where the chances come from.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and says on standard error what it measured"
)]

mod crash;
mod damage;
mod disk;
mod full;
mod held;
mod kill;
mod served;
mod sync;
mod teams;
mod trace;
mod trouble;
mod unmade;
mod world;
mod writers;
