//! The vendors' programs: recorded output, and scripts that print it again.

mod asking;
mod recorded;
mod running;
mod stage;
