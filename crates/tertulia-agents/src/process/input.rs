//! What a program is given on its standard input: everything at once, or piece by piece.

use std::borrow::Cow;

use tokio::sync::mpsc;

/// What a program reads. Its stdin is closed after the last byte.
#[derive(Debug)]
pub enum Input<'a> {
    /// All of it.
    Bytes(&'a [u8]),
    /// As it comes, until all senders are gone.
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

/// The part that is not written yet.
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

    /// Whether nothing is left and nothing more can come.
    pub(super) fn ended(&self) -> bool {
        self.at == self.bytes.len() && self.more.is_none()
    }

    /// What is to be written next; nothing at the end. May be dropped at any time without loss.
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

    /// So many bytes of it were taken.
    pub(super) fn advance(&mut self, count: usize) {
        self.at = (self.at + count).min(self.bytes.len());
    }
}
