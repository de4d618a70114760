//! The server as other programs use it: the built program in an empty home, real sockets, real
//! clients.

mod crowd;
mod ending;
mod examples;
mod following;
mod patience;
mod rude;
mod several;
mod socket;
pub mod stage;
mod starting;
mod tools;
mod transcript;
