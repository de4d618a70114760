//! Serves sessions to other programs: connects the server to agents, settings and texts of this
//! program.

pub mod detach;
pub mod place;
mod run;
mod server_host;
pub mod trouble;

pub use run::{Manner, over_socket, over_stdio};
