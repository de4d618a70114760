//! Activity line above the input during a turn: the agent, its activity, the elapsed time, and how
//! to stop it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tertulia_agents::Retry;

use super::view::brush::counted;
use crate::text::{cut, one_line, width};

/// Frames of the spinner.
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// Duration of a frame.
const FRAME: Duration = Duration::from_millis(100);
/// Update interval while waiting for the user: the spinner stands still and only the seconds count.
const SECOND: Duration = Duration::from_secs(1);
/// Mark shown instead of the spinner then.
const STILL: char = '?';
/// Maximum width of a name.
const NAME_COLUMNS: usize = 24;
/// Maximum number of bytes kept of texts from agents.
const KEPT_BYTES: usize = 1000;
/// Minimum legible width of an argument or a reason.
const LEAST_DETAIL: usize = 8;

/// The current activity, if any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    busy: Option<Busy>,
}

#[derive(Clone, Debug, PartialEq)]
struct Busy {
    who: String,
    doing: Doing,
    since: Timestamp,
    tokens: u64,
}

/// Activity of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// No text yet, or only reasoning.
    Thinking,
    /// It answers.
    Speaking,
    /// It uses a tool.
    Using {
        /// Tool name.
        name: String,
        /// Arguments in one line.
        argument: String,
    },
    /// It waits for the user's permission.
    Waiting,
    /// The request is retried.
    Retrying {
        /// Time of the next attempt.
        at: Timestamp,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// Maximum number of attempts.
        of: u32,
        /// Reason of the last failure.
        reason: String,
    },
    /// It writes a compaction summary.
    SummingUp,
    /// A shell command of the user runs.
    Running(String),
}

impl Doing {
    /// Creates a `Retrying` from a retry announced at `now`.
    pub fn retrying(retry: &Retry, now: Timestamp) -> Doing {
        let wait = SignedDuration::try_from(retry.wait).unwrap_or(SignedDuration::MAX);
        Doing::Retrying {
            at: now.checked_add(wait).unwrap_or(Timestamp::MAX),
            attempt: retry.attempt,
            of: retry.of,
            reason: begin(&retry.reason),
        }
    }

    /// Creates a `Running`.
    pub fn running(command: &str) -> Doing {
        Doing::Running(begin(command))
    }

    /// Creates a `Using`.
    pub fn using(name: &str, argument: &str) -> Doing {
        Doing::Using {
            name: begin(name),
            argument: begin(argument),
        }
    }
}

/// Frame of the spinner after a duration.
pub fn frame(elapsed: Duration) -> char {
    let number = elapsed.as_millis() / FRAME.as_millis();
    FRAMES[usize::try_from(number % FRAMES.len() as u128).unwrap_or_default()]
}

/// Formats a running duration: `12 s`, `3 min 5 s`, `1 h 2 min`.
pub fn counting(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min {} s", seconds % 60),
        _ => format!("{hours} h {} min", minutes % 60),
    }
}

impl Activity {
    /// Starts the turn of an agent.
    pub fn begin(&mut self, who: &str, now: Timestamp) {
        self.busy = Some(Busy {
            who: begin(who),
            doing: Doing::Thinking,
            since: now,
            tokens: 0,
        });
    }

    /// Sets the activity.
    pub fn does(&mut self, doing: Doing) {
        if let Some(busy) = &mut self.busy {
            busy.doing = doing;
        }
    }

    /// Sets the number of tokens written so far.
    pub fn wrote(&mut self, tokens: u64) {
        if let Some(busy) = &mut self.busy {
            busy.tokens = tokens;
        }
    }

    /// Ends the turn.
    pub fn end(&mut self) {
        self.busy = None;
    }

    /// The current activity.
    pub fn doing(&self) -> Option<&Doing> {
        self.busy.as_ref().map(|busy| &busy.doing)
    }

    /// Number of rows needed.
    pub fn height(&self) -> u16 {
        u16::from(self.busy.is_some())
    }

    /// Time of the next visible change without an event: at most ten times a second.
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let busy = self.busy.as_ref()?;
        let step = busy.step().as_millis();
        let next = (busy.elapsed(now).as_millis() / step + 1) * step;
        let next = SignedDuration::from_millis(i64::try_from(next).ok()?);
        // A clock that was set back must not delay the next frame.
        let soonest = now.checked_add(SignedDuration::from_millis(1)).ok()?;
        let latest = now
            .checked_add(SignedDuration::try_from(busy.step()).ok()?)
            .ok()?;
        Some(busy.since.checked_add(next).ok()?.clamp(soonest, latest))
    }

    /// Formats the line for a width: spinner, activity, and further information.
    pub fn line(&self, now: Timestamp, columns: usize) -> Option<Line> {
        self.busy.as_ref().map(|busy| busy.line(now, columns))
    }
}

/// The line in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Spinner.
    pub mark: char,
    /// Agent and activity.
    pub what: String,
    /// Elapsed time, tokens, and how to stop it.
    pub rest: String,
}

impl Busy {
    fn elapsed(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.since)).unwrap_or_default()
    }

    fn step(&self) -> Duration {
        match self.doing {
            Doing::Waiting => SECOND,
            _ => FRAME,
        }
    }

    fn line(&self, now: Timestamp, columns: usize) -> Line {
        let elapsed = self.elapsed(now);
        let mark = match self.doing {
            Doing::Waiting => STILL,
            _ => frame(elapsed),
        };
        let (before, detail, after) = self.words(now);
        let room = columns.saturating_sub(2);
        // Drop further information until the activity fits.
        let least = width(&before) + width(&after) + width(&detail).min(LEAST_DETAIL);
        let rest = self.rests(elapsed);
        let rest = rest.into_iter().find(|rest| least + width(rest) <= room);
        let rest = rest.unwrap_or_default();
        let detail_room = room.saturating_sub(width(&before) + width(&after) + width(&rest));
        let what = format!("{before}{}{after}", cut(&detail, detail_room));
        Line {
            mark,
            what: cut(&what, room),
            rest,
        }
    }

    /// Describes the activity: text before the part that may be cut, that part, and the text after
    /// it.
    fn words(&self, now: Timestamp) -> (String, String, String) {
        let who = cut(&self.who, NAME_COLUMNS);
        let plain = |verb: &str| (format!("{who} {verb}"), String::new(), String::new());
        match &self.doing {
            Doing::Thinking => plain("is thinking…"),
            Doing::Speaking => plain("is speaking…"),
            Doing::Waiting => plain("asks for permission"),
            Doing::SummingUp => plain("is summarising…"),
            Doing::Running(command) => (
                "running (".to_owned(),
                one_line(command).trim().to_owned(),
                ")…".to_owned(),
            ),
            Doing::Using { name, argument } => {
                let name = cut(name, NAME_COLUMNS);
                match one_line(argument).trim() {
                    "" => (format!("{who}: {name}"), String::new(), String::new()),
                    argument => (
                        format!("{who}: {name} "),
                        argument.to_owned(),
                        String::new(),
                    ),
                }
            }
            Doing::Retrying {
                at,
                attempt,
                of,
                reason,
            } => {
                let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default();
                // Round up: the attempt starts at 0.
                let wait = Duration::from_secs(wait.as_millis().div_ceil(1000) as u64);
                let when = match wait.is_zero() {
                    true => "now".to_owned(),
                    false => format!("in {}", counting(wait)),
                };
                let before = format!("{who}: retrying {when} ({attempt} of {of})");
                match one_line(reason).trim() {
                    "" => (before, String::new(), String::new()),
                    reason => (format!("{before}: "), reason.to_owned(), String::new()),
                }
            }
        }
    }

    /// Further information, most complete first.
    fn rests(&self, elapsed: Duration) -> [String; 4] {
        let time = counting(elapsed);
        let stop = match self.doing {
            Doing::Waiting => "",
            _ => " · Esc stops",
        };
        let tokens = match self.tokens {
            0 => String::new(),
            count => format!(" · {}", counted(count, "token")),
        };
        // After an ellipsis the time follows without a separator.
        let gap = match self.doing {
            Doing::Waiting | Doing::Using { .. } | Doing::Retrying { .. } => " · ",
            _ => " ",
        };
        [
            format!("{gap}{time}{tokens}{stop}"),
            format!("{gap}{time}{stop}"),
            stop.to_owned(),
            String::new(),
        ]
    }
}

/// Truncates a text from an agent.
fn begin(text: &str) -> String {
    text[..text.floor_char_boundary(KEPT_BYTES)].to_owned()
}

#[cfg(test)]
mod tests;
