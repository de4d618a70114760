//! Standard input of a program: all at once, or in chunks.

use std::borrow::Cow;

use tokio::sync::mpsc;

/// Input of a program. Its stdin is closed after the last byte.
#[derive(Debug)]
pub enum Input<'a> {
    /// The whole input.
    Bytes(&'a [u8]),
    /// Chunks, until all senders are dropped.
    Chunks(mpsc::Receiver<Vec<u8>>),
}

impl<'a> From<&'a [u8]> for Input<'a> {
    fn from(bytes: &'a [u8]) -> Input<'a> {
        Input::Bytes(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Input<'a> {
    fn from(bytes: &'a [u8; N]) -> Input<'a> {
        Input::Bytes(bytes)
    }
}

/// The part of the input that is not written yet.
pub(super) struct Feed<'a> {
    bytes: Cow<'a, [u8]>,
    at: usize,
    more: Option<mpsc::Receiver<Vec<u8>>>,
}

impl<'a> Feed<'a> {
    pub(super) fn new(input: Input<'a>) -> Feed<'a> {
        let (bytes, more) = match input {
            Input::Bytes(bytes) => (bytes, None),
            Input::Chunks(more) => (&[] as &[u8], Some(more)),
        };
        Feed {
            bytes: Cow::Borrowed(bytes),
            at: 0,
            more,
        }
    }

    /// Returns whether nothing is left and nothing more can come.
    pub(super) fn ended(&self) -> bool {
        self.at == self.bytes.len() && self.more.is_none()
    }

    /// Waits for the next bytes to write; empty at the end. Cancel-safe: dropping it loses nothing.
    pub(super) async fn next(&mut self) -> &[u8] {
        while self.at == self.bytes.len()
            && let Some(more) = &mut self.more
        {
            match more.recv().await {
                Some(chunk) => (self.bytes, self.at) = (Cow::Owned(chunk), 0),
                None => self.more = None,
            }
        }
        &self.bytes[self.at..]
    }

    /// Marks `count` bytes as written.
    pub(super) fn advance(&mut self, count: usize) {
        self.at = (self.at + count).min(self.bytes.len());
    }
}
