//! The command line as a user sees it: the built program in an empty home, by its output and exit
//! codes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod agents;
mod battered;
mod chat;
mod doctor;
mod export_import;
mod fork;
mod help;
mod hints;
mod home;
mod imports;
mod list;
mod log;
mod plain;
mod projects;
mod pty;
mod references;
mod registry;
mod repair;
mod resume;
mod running;
mod saves;
mod search;
mod secrets;
mod session_file;
mod settings;
mod show;
mod signals;
mod snapshot_export;
mod snapshot_import;
mod store;
mod team;
mod terminal;
mod tidy;
mod trust;
mod two_writers;
mod unfit_stores;
mod words;
mod wrong_input;
