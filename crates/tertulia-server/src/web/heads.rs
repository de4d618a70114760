//! Heads of requests as they arrive, of which each line must end with a carriage return and a line feed.
//! The HTTP library takes a line feed alone, too; other programs do not, and programs that divide the same
//! bytes differently can be made to take one request for two.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::http::HeaderMap;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Takes the place of a line feed alone. No head may have it: the library refuses it with status 400.
const REFUSED: u8 = 0;
/// Headers of requests after whose head other bytes follow than those of another head. The server closes
/// the connection after such a request, or it becomes a WebSocket.
const OPEN_ENDED: [&str; 3] = ["content-length", "transfer-encoding", "upgrade"];
/// Bytes of a line that are kept: enough to know these headers.
const KEPT: usize = 20;

/// Where in a head the next byte is.
#[derive(Debug, Default)]
pub struct Heads {
    /// The beginning of the line, in lower case.
    line: Vec<u8>,
    /// The byte before.
    last: u8,
    /// Whether the request has an open-ended header.
    is_open_ended: bool,
    /// Whether the head of an open-ended request is over.
    is_over: bool,
}

impl Heads {
    /// Looks at the next bytes, and makes those unreadable that end a line wrongly.
    pub fn check(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if self.is_over {
                return;
            }
            match *byte {
                b'\n' if self.last != b'\r' => *byte = REFUSED,
                b'\n' => self.end_line(),
                other if self.line.len() < KEPT => self.line.push(other.to_ascii_lowercase()),
                _ => {}
            }
            self.last = *byte;
        }
    }

    fn end_line(&mut self) {
        let mut name = self.line.split(|byte| *byte == b':');
        let name = name.next().unwrap_or_default();
        self.is_open_ended |= OPEN_ENDED.iter().any(|known| known.as_bytes() == name);
        self.is_over = self.is_open_ended && self.line == b"\r";
        self.line.clear();
    }
}

/// Returns true for a request after whose head other bytes follow than those of another head.
pub fn is_open_ended(headers: &HeaderMap) -> bool {
    OPEN_ENDED.iter().any(|name| headers.contains_key(*name))
}

/// A connection whose heads are checked.
#[derive(Debug)]
pub struct Checked<S> {
    stream: S,
    heads: Heads,
}

impl<S> Checked<S> {
    /// Checks what arrives on a connection.
    pub fn new(stream: S) -> Checked<S> {
        Checked {
            stream,
            heads: Heads::default(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Checked<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.heads.check(&mut buffer.filled_mut()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Checked<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what becomes of bytes that arrive in pieces of `size`.
    fn checked(text: &str, size: usize) -> String {
        let mut bytes = text.as_bytes().to_vec();
        let mut heads = Heads::default();
        bytes.chunks_mut(size).for_each(|piece| heads.check(piece));
        String::from_utf8(bytes).unwrap().replace('\0', "!")
    }

    #[test]
    fn a_line_feed_alone_is_refused_in_heads_only() {
        let get = "GET / HTTP/1.1\r\nHost: a.very.long.name.of.a.host.example\r\n\r\n";
        let post = "POST / HTTP/1.1\r\nCONTENT-length: 4\r\n\r\na\n\nb";
        let upgrade = "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\n\n\n";
        for size in [1, 2, 3, 7, 1000] {
            for whole in [get, post, upgrade, &format!("{get}{get}{post}")] {
                assert_eq!(checked(whole, size), whole);
            }
            for (text, expected) in [
                ("GET /\nHost: x\n\n", "GET /!Host: x!!"),
                ("GET /\r\nHost: x\r\n\n", "GET /\r\nHost: x\r\n!"),
                ("\nGET /\r\n\r\n", "!GET /\r\n\r\n"),
                ("GET /\r\n\r\nGET /\n\n", "GET /\r\n\r\nGET /!!"),
                (
                    "X: content-length:\r\n\r\n\n",
                    "X: content-length:\r\n\r\n!",
                ),
            ] {
                assert_eq!(checked(text, size), expected);
            }
        }
    }
}
