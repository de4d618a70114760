//! HTTP/1.1 on one connection, as far as tertulia's clients need it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Lengths of the pieces into which non-ASCII text is cut, so that most characters are split.
const CUTS: [usize; 7] = [5, 1, 7, 2, 3, 11, 1];

/// An HTTP request as received.
#[derive(Debug)]
pub struct Raw {
    pub method: String,
    pub target: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// A connection.
#[derive(Debug)]
pub struct Line {
    reader: BufReader<TcpStream>,
}

impl Line {
    pub fn new(stream: TcpStream) -> io::Result<Line> {
        // Without this, small pieces would be delayed and sent together.
        stream.set_nodelay(true)?;
        Ok(Line {
            reader: BufReader::new(stream),
        })
    }

    /// Reads the next request, or returns `None` if the client has disconnected.
    pub fn request(&mut self) -> io::Result<Option<Raw>> {
        let first = self.text_line()?;
        let mut words = first.split_whitespace().map(str::to_owned);
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Ok(None);
        };
        let headers = self.headers()?;
        if headers.contains_key("expect") {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = self.body(&headers)?;
        Ok(Some(Raw {
            method,
            target,
            headers,
            body,
        }))
    }

    fn text_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn headers(&mut self) -> io::Result<BTreeMap<String, String>> {
        let mut headers = BTreeMap::new();
        loop {
            let line = self.text_line()?;
            let Some((name, value)) = line.split_once(':') else {
                return Ok(headers);
            };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }

    fn body(&mut self, headers: &BTreeMap<String, String>) -> io::Result<Vec<u8>> {
        let chunked = headers
            .get("transfer-encoding")
            .is_some_and(|coding| coding.contains("chunked"));
        if !chunked {
            let length = headers.get("content-length");
            return self.bytes(length.and_then(|length| length.parse().ok()).unwrap_or(0));
        }
        let mut body = Vec::new();
        loop {
            let line = self.text_line()?;
            let size = line.split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
            body.extend(self.bytes(size)?);
            // The end of the chunk, or of the (empty) trailers.
            self.text_line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// Sends a complete response. With `missing`, the content length exceeds the body.
    pub fn respond(&mut self, answer: &Whole<'_>) -> io::Result<()> {
        let Whole { status, body, .. } = answer;
        let length = body.len() + answer.missing;
        let mut head = format!(
            "HTTP/1.1 {status} Fake\r\ncontent-type: {}\r\ncontent-length: {length}\r\n",
            answer.content_type
        );
        if let Some(seconds) = answer.retry_after {
            head.push_str(&format!("retry-after: {seconds}\r\n"));
        }
        head.push_str("\r\n");
        self.write(&[head.as_bytes(), body].concat())
    }

    /// Starts a chunked response.
    pub fn begin(&mut self, content_type: &str) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncache-control: no-cache\r\n\
             transfer-encoding: chunked\r\n\r\n"
        );
        self.write(head.as_bytes())
    }

    /// Sends more of a chunked response, cut at positions that clients must be able to handle.
    pub fn more(&mut self, text: &str) -> io::Result<()> {
        for piece in cut(text) {
            let head = format!("{:x}\r\n", piece.len());
            self.write(&[head.as_bytes(), piece, b"\r\n"].concat())?;
        }
        Ok(())
    }

    /// Ends a chunked response.
    pub fn end(&mut self) -> io::Result<()> {
        self.write(b"0\r\n\r\n")
    }

    /// Waits. Fails if the client disconnects meanwhile.
    pub fn pause(&mut self, time: Duration) -> io::Result<()> {
        let stream = self.reader.get_ref();
        stream.set_read_timeout(Some(time))?;
        let heard = stream.peek(&mut [0]);
        stream.set_read_timeout(None)?;
        match heard {
            Ok(0) => Err(io::ErrorKind::ConnectionAborted.into()),
            Ok(_) => Err(io::Error::other(
                "a second request before the first is answered",
            )),
            Err(error) if is_timeout(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sends nothing until the client disconnects; always returns an error.
    pub fn stall(&mut self) -> io::Error {
        match self.reader.get_ref().peek(&mut [0]) {
            Ok(_) => io::ErrorKind::ConnectionAborted.into(),
            Err(error) => error,
        }
    }

    /// Closes the connection. Data already written still arrives.
    pub fn close(&self) {
        // The client may have closed it first.
        let _ = self.reader.get_ref().shutdown(Shutdown::Both);
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// A complete response.
#[derive(Debug)]
pub struct Whole<'a> {
    pub status: u16,
    pub content_type: &'a str,
    pub retry_after: Option<&'a str>,
    pub body: &'a [u8],
    /// Number of bytes announced but not sent.
    pub missing: usize,
}

impl<'a> Whole<'a> {
    /// Returns a JSON response.
    pub fn json(status: u16, body: &'a [u8]) -> Whole<'a> {
        Whole {
            status,
            content_type: "application/json",
            retry_after: None,
            body,
            missing: 0,
        }
    }
}

/// Returns the pieces of a text: two halves if it is ASCII, otherwise cut inside characters.
fn cut(text: &str) -> Vec<&[u8]> {
    let mut rest = text.as_bytes();
    let mut pieces = Vec::new();
    if text.is_ascii() {
        let (head, tail) = rest.split_at(rest.len() / 2);
        pieces.extend([head, tail]);
    } else {
        for size in CUTS.iter().cycle() {
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    // An empty chunk would end the response.
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text_and_end_inside_characters() {
        for text in ["", "a", "data: x\n\n", "zażółć gęślą 今天 👩‍👩‍👧 שלום"]
        {
            let pieces = cut(text);
            assert_eq!(pieces.concat(), text.as_bytes());
            assert!(pieces.iter().all(|piece| !piece.is_empty()));
            let mut at = 0;
            let inside = pieces.iter().any(|piece| {
                at += piece.len();
                !text.is_char_boundary(at)
            });
            assert_eq!(inside, !text.is_ascii(), "{text}");
        }
    }
}
