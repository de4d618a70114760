//! Every backend against the conformance suite and the model, and the bytes of each on disk.

mod compressed;
mod conformance;
mod files;
mod ledger;
mod merge;
mod model;
mod postgres;
mod salvage;
mod sealed;
mod sync;
