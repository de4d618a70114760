//! The server as other programs use it: the built program in an empty home, real sockets, real
//! clients.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod crowd;
mod ending;
mod examples;
mod following;
#[path = "../cli/home.rs"]
#[allow(
    dead_code,
    reason = "the home of the other tests; these need a part of it"
)]
mod home;
mod patience;
mod rude;
#[path = "../cli/running.rs"]
#[allow(
    dead_code,
    reason = "what runs in the other tests; these need a part of it"
)]
mod running;
mod several;
mod socket;
mod stage;
mod starting;
mod tools;
mod transcript;
