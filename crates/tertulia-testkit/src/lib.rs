//! Shared test support.
//!
//! | module | contents |
//! |---|---|
//! | [`clock`] | deterministic time and ids |
//! | [`waiting`] | waiting for events, the one place where tests poll |
//! | [`idle`] | whether a process waits for events only |
//! | [`scratch`] | temporary directory |
//! | [`ports`] | ports for servers that cannot choose one |
//! | [`place`] | location of a store, to open it several times like several processes |
//! | [`logs`] | bodies, chained entries, and a writer that records the expected log |
//! | [`ask`] | blocking queries on a store |
//! | [`conformance`] | behaviour of every backend, one test per guarantee |
//! | [`model`] | random operations on a backend and on a model of plain vectors |
//! | [`postgres`] | a real PostgreSQL server, and stores in it |
//! | [`postgres_proxy`] | programs between client and server: one that cuts connections, and a pooler |
//! | [`provider`] | a fake of the LLM HTTP APIs that answers or fails as a prompt says |
//! | [`soak`] | whether a run takes all cases of the long tests, or a sample |
//! | [`terminal`] | a program on a real pseudo-terminal, observed with a terminal emulator |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "everything here runs inside tests, where a panic is the report"
)]

pub mod ask;
pub mod clock;
pub mod conformance;
pub mod idle;
pub mod logs;
pub mod model;
pub mod place;
pub mod ports;
pub mod postgres;
pub mod postgres_proxy;
pub mod provider;
pub mod scratch;
pub mod soak;
pub mod terminal;
pub mod waiting;
