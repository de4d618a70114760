//! The web page as browsers and attackers reach it: the built program, raw HTTP, real WebSockets.

mod abuse;
mod access;
mod live;
mod siege;
pub mod stage;
mod tokens;
