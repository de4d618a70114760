//! The line above the input while somebody answers: who, what they do, for how long, and how to stop it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tertulia_agents::Retry;

use super::columns::{cut, one_line, width};
use super::view::brush::counted;

/// The looks of what turns, one after the other.
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// How long each is seen.
const FRAME: Duration = Duration::from_millis(100);
/// While a person is waited for nothing turns, and only the seconds count.
const SECOND: Duration = Duration::from_secs(1);
/// What stands there then.
const STILL: char = '?';
/// Names are no longer than this, however much room there is.
const NAME_COLUMNS: usize = 24;
/// So much is kept of words that others chose.
const KEPT_BYTES: usize = 1000;
/// An argument or a reason that is shorter than this says nothing.
const LEAST_DETAIL: usize = 8;

/// What is going on, if anything is.
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

/// What somebody does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Nothing came yet, or only thoughts.
    Thinking,
    /// It answers.
    Speaking,
    /// It uses a tool.
    Using {
        /// The tool.
        name: String,
        /// What with, in a line.
        argument: String,
    },
    /// It waits for a person's leave.
    Waiting,
    /// It is asked again.
    Retrying {
        /// When.
        at: Timestamp,
        /// Which attempt, from 1.
        attempt: u32,
        /// How many there are at most.
        of: u32,
        /// Why the last one failed.
        reason: String,
    },
    /// It sums up the older part.
    SummingUp,
}

impl Doing {
    /// Another attempt, as it was told at this time.
    pub fn retrying(retry: &Retry, now: Timestamp) -> Doing {
        let wait = SignedDuration::try_from(retry.wait).unwrap_or(SignedDuration::MAX);
        Doing::Retrying {
            at: now.checked_add(wait).unwrap_or(Timestamp::MAX),
            attempt: retry.attempt,
            of: retry.of,
            reason: begin(&retry.reason),
        }
    }

    /// A tool that is used, with what.
    pub fn using(name: &str, argument: &str) -> Doing {
        Doing::Using {
            name: begin(name),
            argument: begin(argument),
        }
    }
}

/// The look of what turns after so long.
pub fn frame(elapsed: Duration) -> char {
    let number = elapsed.as_millis() / FRAME.as_millis();
    FRAMES[usize::try_from(number % FRAMES.len() as u128).unwrap_or_default()]
}

/// How long something goes on, counted as one watches it: `12 s`, `3 min 5 s`, `1 h 2 min`.
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
    /// Somebody is asked.
    pub fn begin(&mut self, who: &str, now: Timestamp) {
        self.busy = Some(Busy {
            who: begin(who),
            doing: Doing::Thinking,
            since: now,
            tokens: 0,
        });
    }

    /// Whoever is asked does something else now.
    pub fn does(&mut self, doing: Doing) {
        if let Some(busy) = &mut self.busy {
            busy.doing = doing;
        }
    }

    /// So many tokens were written so far.
    pub fn wrote(&mut self, tokens: u64) {
        if let Some(busy) = &mut self.busy {
            busy.tokens = tokens;
        }
    }

    /// Nobody is asked any more.
    pub fn end(&mut self) {
        self.busy = None;
    }

    /// What is being done.
    pub fn doing(&self) -> Option<&Doing> {
        self.busy.as_ref().map(|busy| &busy.doing)
    }

    /// How many rows it takes.
    pub fn height(&self) -> u16 {
        u16::from(self.busy.is_some())
    }

    /// When it will look different without anything happening: ten times a second at most.
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let busy = self.busy.as_ref()?;
        let step = busy.step().as_millis();
        let next = (busy.elapsed(now).as_millis() / step + 1) * step;
        let next = SignedDuration::from_millis(i64::try_from(next).ok()?);
        // A clock that was set back must not keep it waiting.
        let soonest = now.checked_add(SignedDuration::from_millis(1)).ok()?;
        let latest = now
            .checked_add(SignedDuration::try_from(busy.step()).ok()?)
            .ok()?;
        Some(busy.since.checked_add(next).ok()?.clamp(soonest, latest))
    }

    /// The line, in so many columns: what turns, what is done, and what else there is to say.
    pub fn line(&self, now: Timestamp, columns: usize) -> Option<Line> {
        self.busy.as_ref().map(|busy| busy.line(now, columns))
    }
}

/// The line in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What turns.
    pub mark: char,
    /// Who does what.
    pub what: String,
    /// For how long, with how many tokens, and how to stop it.
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
        // With less and less of the rest, until what is done has its place.
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

    /// What is done: the words before what may be cut, that, and the words after it.
    fn words(&self, now: Timestamp) -> (String, String, String) {
        let who = cut(&self.who, NAME_COLUMNS);
        let plain = |verb: &str| (format!("{who} {verb}"), String::new(), String::new());
        match &self.doing {
            Doing::Thinking => plain("is thinking…"),
            Doing::Speaking => plain("is speaking…"),
            Doing::Waiting => plain("asks for permission"),
            Doing::SummingUp => plain("is summing up…"),
            Doing::Using { name, argument } => {
                let name = cut(name, NAME_COLUMNS);
                match one_line(argument).trim() {
                    "" => plain(&format!("uses {name}…")),
                    argument => (
                        format!("{who} uses {name} ("),
                        argument.to_owned(),
                        ")…".to_owned(),
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
                // Whatever is left of a second is one: at 0 it is tried.
                let wait = Duration::from_secs(wait.as_millis().div_ceil(1000) as u64);
                let when = match wait.is_zero() {
                    true => "now".to_owned(),
                    false => format!("in {}", counting(wait)),
                };
                let before = format!("{who} tries again {when} ({attempt} of {of}");
                match one_line(reason).trim() {
                    "" => (before, String::new(), ")".to_owned()),
                    reason => (format!("{before}: "), reason.to_owned(), ")".to_owned()),
                }
            }
        }
    }

    /// What else there is to say, the most first.
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
        // What trails off is followed by the time at once.
        let gap = match self.doing {
            Doing::Waiting | Doing::Retrying { .. } => " · ",
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

/// The beginning of words that others chose.
fn begin(text: &str) -> String {
    text[..text.floor_char_boundary(KEPT_BYTES)].to_owned()
}

#[cfg(test)]
mod tests;
