//! Parses and formats times as people write them: `7d`, `2026-11-01`, "3 hours ago".

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
pub use tertulia_engine::text::ago;

use crate::error::{CommandError, CommandResult, ErrorKind};

/// Parses a span such as `24h`, `7d`, `4w`.
pub fn span(text: &str) -> CommandResult<SignedDuration> {
    let wrong = || {
        CommandError::new(ErrorKind::Usage, format!("'{text}' is not a span of time"))
            .hint("write 30m, 24h, 7d or 4w")
    };
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?);
    let number: i64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        "y" => 365 * 86_400,
        _ => return Err(wrong()),
    };
    number
        .checked_mul(seconds)
        .map(SignedDuration::from_secs)
        .ok_or_else(wrong)
}

/// Parses a time: a span before now, a date, or a full time.
pub fn moment(text: &str, now: Timestamp) -> CommandResult<Timestamp> {
    let wrong = || {
        CommandError::new(ErrorKind::Usage, format!("'{text}' is not a date or time"))
            .hint("write how long ago (24h, 7d, 4w), a date (2026-11-01) or a time (2026-11-01T08:00:00Z)")
    };
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    let local = |time: DateTime| {
        time.to_zoned(TimeZone::system())
            .map(|zoned| zoned.timestamp())
            .map_err(|_| wrong())
    };
    if let Ok(time) = text.parse::<DateTime>() {
        return local(time);
    }
    if let Ok(date) = text.parse::<Date>() {
        return local(date.at(0, 0, 0, 0));
    }
    let span = span(text).map_err(|_| wrong())?;
    now.checked_sub(span).map_err(|_| wrong())
}

/// Formats a time in the system's zone, with the date if it is not today.
pub fn clock(then: Timestamp, now: Timestamp) -> String {
    let zone = TimeZone::system();
    let then = then.to_zoned(zone.clone());
    let format = if then.date() == now.to_zoned(zone).date() {
        "%H:%M"
    } else {
        "%Y-%m-%d %H:%M"
    };
    then.strftime(format).to_string()
}

/// Returns the system's time zone.
pub fn zone() -> TimeZone {
    TimeZone::system()
}

/// Formats date and time in the system's zone.
pub fn dated(then: Timestamp) -> String {
    let then = then.to_zoned(TimeZone::system());
    then.strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn moments_are_read() {
        let now = at(1_000_000);
        let check = |text: &str, expected: i64| {
            assert_eq!(moment(text, now).unwrap().as_second(), expected)
        };
        check("1d", 1_000_000 - 86_400);
        check("2w", 1_000_000 - 14 * 86_400);
        check("1970-01-02T00:00:00Z", 86_400);
        for wrong in [
            "",
            "d",
            "5",
            "5 days",
            "yesterday",
            "99999999999999999999d",
            "9223372036854775807y",
        ] {
            assert!(moment(wrong, now).is_err(), "{wrong}");
        }
    }
}
