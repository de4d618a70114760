//! The fake provider, as a real client of the four APIs meets it.

mod answers;
mod client;
mod failures;
mod line;
mod refusals;
