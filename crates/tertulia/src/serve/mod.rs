//! Serving talks to other programs: what the server does not know of agents, settings and words.

pub mod detach;
pub mod place;
mod run;
mod server_host;
mod trouble;

pub use run::{Manner, over_socket, over_stdio};
