//! Decodes UTF-8 that arrives in chunks.

use std::mem;

/// Decodes UTF-8 that arrives in chunks.
#[derive(Debug, Default)]
pub struct Utf8Stream {
    rest: Vec<u8>,
    invalid: u64,
}

impl Utf8Stream {
    /// Decodes complete characters, and keeps an incomplete one for the next push.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = mem::take(&mut self.rest);
        all.extend_from_slice(bytes);
        let (mut left, mut text) = (all.as_slice(), String::with_capacity(all.len()));
        while let Err(error) = str::from_utf8(left) {
            let (valid, after) = left.split_at(error.valid_up_to());
            text.push_str(&String::from_utf8_lossy(valid));
            let Some(bad) = error.error_len() else {
                self.rest = after.to_vec();
                return text;
            };
            self.invalid += bad as u64;
            text.push(char::REPLACEMENT_CHARACTER);
            left = &after[bad..];
        }
        text.push_str(&String::from_utf8_lossy(left));
        text
    }

    /// Ends the stream: an incomplete character becomes U+FFFD.
    pub fn finish(&mut self) -> String {
        let torn = mem::take(&mut self.rest);
        self.invalid += torn.len() as u64;
        String::from_utf8_lossy(&torn).into_owned()
    }

    /// Number of bytes replaced so far.
    pub fn invalid_bytes(&self) -> u64 {
        self.invalid
    }
}
