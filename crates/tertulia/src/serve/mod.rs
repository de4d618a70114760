//! Serves sessions to other programs: connects the server to agents, settings and texts of this
//! program.

mod browsing;
pub mod detach;
pub mod file_watch;
pub mod place;
mod run;
mod server_host;
pub mod trouble;
#[cfg_attr(not(feature = "web"), path = "no_web.rs")]
pub mod web;

pub use run::{Manner, over_socket, over_stdio};
