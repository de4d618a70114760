//! Lines to and from the other end of a link. That end is not trusted: it can neither make this one
//! hold more than a few lines of limited length, nor make it wait without limit.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Bytes that must arrive or leave within [`LinkLimits::silence`], so that single bytes now and then
/// do not count as progress.
const PIECE: usize = 16_384;

/// What the other end of a link may cost.
#[derive(Clone, Copy, Debug)]
pub struct LinkLimits {
    /// Maximum length of a line in bytes. Reading one takes a few times as much memory.
    pub line: usize,
    /// Longest time to wait for a sign of life.
    pub silence: Duration,
    /// Maximum number of sessions that the other end lists: all of them are compared at once.
    pub sessions: usize,
}

impl Default for LinkLimits {
    fn default() -> LinkLimits {
        LinkLimits {
            line: 8_000_000,
            silence: Duration::from_secs(30),
            sessions: 100_000,
        }
    }
}

/// Why a link ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The other end closed it, or broke off.
    Ended,
    /// The other end sent a line that is longer than so many bytes.
    TooLong(usize),
    /// The other end did nothing for so long.
    Silent(Duration),
    /// The other end sent something that was not asked for.
    Unasked,
    /// The other end sent something else than the protocol allows.
    Unreadable(String),
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::Ended => f.write_str("the link was cut"),
            Cut::TooLong(most) => write!(f, "it sent a line of more than {most} bytes"),
            Cut::Silent(time) => write!(f, "it was silent for {}", in_words(*time)),
            Cut::Unasked => f.write_str("it sent an answer to no request"),
            Cut::Unreadable(reason) => {
                write!(f, "it does not speak the sync protocol: {reason}")
            }
        }
    }
}

pub(super) fn in_words(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds => format!("{seconds} s"),
    }
}

/// When bytes were exchanged last.
#[derive(Debug)]
struct Activity {
    began: Instant,
    /// Milliseconds since then.
    last: AtomicU64,
}

impl Activity {
    fn new() -> Activity {
        Activity {
            began: Instant::now(),
            last: AtomicU64::new(0),
        }
    }

    fn note(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    fn idle(&self) -> Duration {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(last)
    }
}

/// What arrives: a line, a wake-up from this end, or the end of the link.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A line.
    Line(String),
    /// [`Waker::wake`] was called.
    Woken,
    /// Nothing more arrives.
    Cut(Cut),
}

/// Wakes up the thread that waits for the next line.
#[derive(Clone, Debug)]
pub struct Waker(SyncSender<Arrival>);

impl Waker {
    /// Wakes it up. If it has not taken the last arrival yet, it is awake.
    pub fn wake(&self) {
        let _ = self.0.try_send(Arrival::Woken);
    }
}

/// One end of a link. Threads of their own read and write, so that waiting has limits.
#[derive(Debug)]
pub struct Lines {
    pub(super) limits: LinkLimits,
    activity: Arc<Activity>,
    outgoing: Sender<Vec<u8>>,
    /// A message for each line that was written.
    written: Receiver<()>,
    arrivals: Receiver<Arrival>,
    /// Why reading ended: a failed write is its consequence.
    ended: Arc<RwLock<Option<Cut>>>,
    waker: Waker,
}

impl Lines {
    /// Starts to read and write. `admit` sees each line first: it returns whether to deliver the line,
    /// or why to end the link.
    pub fn start(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        limits: LinkLimits,
        admit: impl FnMut(&str) -> Result<bool, Cut> + Send + 'static,
    ) -> std::io::Result<Lines> {
        let activity = Arc::new(Activity::new());
        let ended = Arc::new(RwLock::new(None));
        // One line that waits is enough: the other end waits for an answer to it.
        let (arrived, arrivals) = sync_channel(1);
        let (outgoing, to_write) = channel();
        let (wrote, written) = channel();
        let waker = Waker(arrived.clone());
        let reading = Reading {
            arrived,
            limits,
            activity: activity.clone(),
            ended: ended.clone(),
        };
        let thread = std::thread::Builder::new().name("tertulia-link-in".to_owned());
        thread.spawn(move || reading.run(input, admit))?;
        let active = activity.clone();
        let thread = std::thread::Builder::new().name("tertulia-link-out".to_owned());
        thread.spawn(move || write_all(output, &to_write, &wrote, &active))?;
        Ok(Lines {
            limits,
            activity,
            outgoing,
            written,
            arrivals,
            ended,
            waker,
        })
    }

    /// Starts to read standard input and to write standard output.
    pub fn on_standard_streams(limits: LinkLimits) -> std::io::Result<Lines> {
        Lines::start(std::io::stdin(), std::io::stdout(), limits, |_| Ok(true))
    }

    /// Returns what wakes up [`Lines::next`].
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Writes a line and waits until the other end has taken it.
    pub fn write(&self, mut line: Vec<u8>) -> Result<(), Cut> {
        line.push(b'\n');
        self.activity.note();
        let sent = self.outgoing.send(line).map_err(|_| Cut::Ended);
        let sent = sent.and_then(|()| self.wait(&self.written));
        sent.map_err(|cut| match cut {
            Cut::Ended => {
                let ended = self.ended.read().unwrap_or_else(PoisonError::into_inner);
                ended.clone().unwrap_or(Cut::Ended)
            }
            cut => cut,
        })
    }

    /// Returns what arrives next, within the limit of silence.
    pub fn next(&self) -> Arrival {
        self.activity.note();
        self.wait(&self.arrivals).unwrap_or_else(Arrival::Cut)
    }

    /// Returns what arrives next, however long that takes.
    pub fn next_at_leisure(&self) -> Arrival {
        self.arrivals.recv().unwrap_or(Arrival::Cut(Cut::Ended))
    }

    fn wait<T>(&self, receiver: &Receiver<T>) -> Result<T, Cut> {
        loop {
            let left = self.limits.silence.saturating_sub(self.activity.idle());
            match receiver.recv_timeout(left) {
                Ok(message) => return Ok(message),
                Err(RecvTimeoutError::Disconnected) => return Err(Cut::Ended),
                Err(RecvTimeoutError::Timeout) => {
                    if self.activity.idle() >= self.limits.silence {
                        return Err(Cut::Silent(self.limits.silence));
                    }
                }
            }
        }
    }
}

/// The reading thread.
struct Reading {
    arrived: SyncSender<Arrival>,
    limits: LinkLimits,
    activity: Arc<Activity>,
    ended: Arc<RwLock<Option<Cut>>>,
}

impl Reading {
    fn run(self, input: impl Read, mut admit: impl FnMut(&str) -> Result<bool, Cut>) {
        let mut input = BufReader::with_capacity(PIECE, input);
        let cut = loop {
            let line = match read_line(&mut input, self.limits.line, &self.activity) {
                Ok(line) => line,
                Err(cut) => break cut,
            };
            match admit(&line) {
                Ok(false) => {}
                Ok(true) => {
                    if self.arrived.send(Arrival::Line(line)).is_err() {
                        return;
                    }
                }
                Err(cut) => break cut,
            }
        };
        // Before the other end can notice, and a write can fail because of it.
        *self.ended.write().unwrap_or_else(PoisonError::into_inner) = Some(cut.clone());
        // The other end must not go on sending into a buffer.
        drop(input);
        let _ = self.arrived.send(Arrival::Cut(cut));
    }
}

/// Reads a line of at most `most` bytes.
fn read_line(input: &mut impl BufRead, most: usize, activity: &Activity) -> Result<String, Cut> {
    let mut line = Vec::new();
    let mut piece = 0;
    loop {
        let bytes = match input.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return Err(Cut::Ended),
        };
        if bytes.is_empty() {
            return Err(Cut::Ended);
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        if line.len() + part.len() > most {
            return Err(Cut::TooLong(most));
        }
        line.extend_from_slice(part);
        let taken = part.len() + usize::from(end.is_some());
        input.consume(taken);
        piece += taken;
        if piece >= PIECE {
            activity.note();
            piece = 0;
        }
        if end.is_some() {
            return String::from_utf8(line)
                .map_err(|_| Cut::Unreadable("a line is not UTF-8".to_owned()));
        }
    }
}

/// The writing thread.
fn write_all(
    mut output: impl Write,
    lines: &Receiver<Vec<u8>>,
    wrote: &Sender<()>,
    activity: &Activity,
) {
    for line in lines {
        for piece in line.chunks(PIECE) {
            if output.write_all(piece).is_err() {
                return;
            }
            activity.note();
        }
        if output.flush().is_err() || wrote.send(()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, sink};
    use std::os::unix::net::UnixStream;

    fn limits() -> LinkLimits {
        LinkLimits {
            line: 10,
            silence: Duration::from_millis(20),
            sessions: 10,
        }
    }

    #[test]
    fn lines_have_a_limited_length_and_arrive_in_order() {
        let text = Cursor::new("one\n\n1234567890\n12345678901");
        let lines = Lines::start(text, sink(), limits(), |_| Ok(true)).unwrap();
        for line in ["one", "", "1234567890"] {
            assert_eq!(lines.next(), Arrival::Line(line.to_owned()));
        }
        assert_eq!(lines.next(), Arrival::Cut(Cut::TooLong(10)));
    }

    #[test]
    fn what_is_not_admitted_ends_the_link() {
        let admit = |line: &str| match line {
            "skip" => Ok(false),
            "bad" => Err(Cut::Unasked),
            _ => Ok(true),
        };
        let text = Cursor::new("skip\ngood\nbad\nmore\n");
        let lines = Lines::start(text, sink(), limits(), admit).unwrap();
        assert_eq!(lines.next(), Arrival::Line("good".to_owned()));
        assert_eq!(lines.next(), Arrival::Cut(Cut::Unasked));
    }

    /// Gives one line. Its end is told, and lasts until it is released.
    struct Lingering {
        line: Cursor<&'static str>,
        ends: Sender<()>,
        release: Receiver<()>,
    }

    impl Read for Lingering {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.line.read(buffer)
        }
    }

    impl Drop for Lingering {
        fn drop(&mut self) {
            self.ends.send(()).unwrap();
            self.release.recv().unwrap();
        }
    }

    /// Refuses what is written as soon as the input is no longer read.
    struct Refusing(Receiver<()>);

    impl Write for Refusing {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            self.0.recv().unwrap();
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_write_that_fails_tells_why_reading_ended() {
        let (ends, ended) = channel();
        let (released, release) = channel();
        let input = Lingering {
            line: Cursor::new("bad\n"),
            ends,
            release,
        };
        let refused = |_: &str| Err(Cut::Unasked);
        let lines = Lines::start(input, Refusing(ended), LinkLimits::default(), refused).unwrap();
        let written = lines.write(b"x".to_vec());
        released.send(()).unwrap();
        assert_eq!(written, Err(Cut::Unasked));
    }

    #[test]
    fn nobody_is_waited_for_without_limit() {
        let (near, far) = UnixStream::pair().unwrap();
        let input = near.try_clone().unwrap();
        let lines = Lines::start(input, near, limits(), |_| Ok(true)).unwrap();
        let silent = Cut::Silent(limits().silence);
        assert_eq!(lines.next(), Arrival::Cut(silent.clone()));
        // The other end does not read: this is more than the system takes.
        assert_eq!(lines.write(vec![b'x'; 50_000_000]), Err(silent));
        drop(far);
    }

    #[test]
    fn waking_is_never_lost() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let input = near.try_clone().unwrap();
        let lines = Lines::start(input, near, LinkLimits::default(), |_| Ok(true)).unwrap();
        lines.waker().wake();
        lines.waker().wake();
        assert_eq!(lines.next_at_leisure(), Arrival::Woken);
        far.write_all(b"line\n").unwrap();
        assert_eq!(lines.next_at_leisure(), Arrival::Line("line".to_owned()));
        drop(far);
        assert_eq!(lines.next_at_leisure(), Arrival::Cut(Cut::Ended));
        assert_eq!(lines.write(b"x".to_vec()), Err(Cut::Ended));
    }
}
