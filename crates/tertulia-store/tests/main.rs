//! Every backend against the conformance suite and the model, and the bytes of each on disk.

mod compressed;
mod conformance;
mod files;
mod flips;
mod forged;
mod ledger;
mod merge;
mod model;
mod postgres;
mod recipients;
mod restored;
mod salvage;
mod sealed;
mod sync;
