//! How much of the long tests runs: kills, power cuts, flipped bytes.

/// Returns true if this run is to take every case (`./test --soak`, which sets `TERTULIA_TEST_ALL`),
/// false if a sample is enough.
pub fn soak() -> bool {
    std::env::var_os("TERTULIA_TEST_ALL").is_some()
}

/// Returns all cases in a soak run, otherwise every `one_in`th.
pub fn sampled<T>(cases: impl Iterator<Item = T>, one_in: usize) -> Vec<T> {
    cases.step_by(if soak() { 1 } else { one_in }).collect()
}
