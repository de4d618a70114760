//! Parses and formats times as people write them: `7d`, `2026-11-01`, "3 hours ago".

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};
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

/// Parses a time: a span before now, a date, a full time, or words such as "yesterday", "last week",
/// "monday" and "3 days ago". A day begins at midnight, a week on Monday, both in the system's zone.
pub fn moment(text: &str, now: Timestamp) -> CommandResult<Timestamp> {
    moment_in(text, now, &TimeZone::system()).ok_or_else(|| {
        CommandError::new(ErrorKind::Usage, format!("'{text}' is not a date or time")).hint(
            "write how long ago (24h, 7d, \"3 days ago\"), a day (yesterday, monday, \"last week\", 2026-11-01) or a time (2026-11-01T08:00:00Z)",
        )
    })
}

fn moment_in(text: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    let local = |time: DateTime| Some(time.to_zoned(zone.clone()).ok()?.timestamp());
    if let Ok(time) = text.parse::<DateTime>() {
        return local(time);
    }
    let today = now.to_zoned(zone.clone()).date();
    let date = text.parse::<Date>().ok().or_else(|| day(text, today));
    if let Some(date) = date {
        return local(date.at(0, 0, 0, 0));
    }
    let text = text.to_ascii_lowercase();
    match words(&text).as_slice() {
        ["now"] => Some(now),
        [number, unit, "ago"] => before(now, zone, number, unit),
        [joined, "ago"] => now.checked_sub(span(joined).ok()?).ok(),
        _ => now.checked_sub(span(&text).ok()?).ok(),
    }
}

/// Returns the words of a text; `last-week` has two.
fn words(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| c.is_whitespace() || c == '-');
    let words = words.filter(|word| !word.is_empty());
    // A negative number is none of them.
    words
        .take(text.len() * usize::from(!text.starts_with('-')))
        .collect()
}

/// Returns the first day of what a name means: a day, a week, a month or a year.
fn day(text: &str, today: Date) -> Option<Date> {
    let text = text.to_ascii_lowercase();
    let back = |days: i64| today.checked_sub(Span::new().try_days(days).ok()?).ok();
    let since_monday = i64::from(today.weekday().to_monday_zero_offset());
    match words(&text).as_slice() {
        ["today"] => Some(today),
        ["yesterday"] => back(1),
        ["this", "week"] => back(since_monday),
        ["last", "week"] => back(since_monday + 7),
        ["this", "month"] => Some(today.first_of_month()),
        ["last", "month"] => Some(today.first_of_month().yesterday().ok()?.first_of_month()),
        ["this", "year"] => Some(today.first_of_year()),
        ["last", "year"] => Some(today.first_of_year().yesterday().ok()?.first_of_year()),
        [name] => back(days_since(name, since_monday)?),
        ["last", name] => match days_since(name, since_monday)? {
            0 => back(7),
            days => back(days),
        },
        _ => None,
    }
}

/// Returns how many days ago it was last this day of the week: 0 to 6.
fn days_since(name: &str, since_monday: i64) -> Option<i64> {
    const DAYS: [&str; 7] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    let is_named = |day: &&str| *day == name || (name.len() == 3 && day.starts_with(name));
    let wanted = i64::try_from(DAYS.iter().position(is_named)?).ok()?;
    Some((since_monday - wanted).rem_euclid(7))
}

/// Returns the time a number of units before now. Days and longer units keep the time of day.
fn before(now: Timestamp, zone: &TimeZone, number: &str, unit: &str) -> Option<Timestamp> {
    let number: i64 = match number {
        "a" | "an" | "one" => 1,
        number => number.parse().ok().filter(|number| *number >= 0)?,
    };
    let span = Span::new();
    let span = match unit.strip_suffix('s').unwrap_or(unit) {
        "second" | "sec" => span.try_seconds(number),
        "minute" | "min" => span.try_minutes(number),
        "hour" => span.try_hours(number),
        "day" => span.try_days(number),
        "week" => span.try_weeks(number),
        "month" => span.try_months(number),
        "year" => span.try_years(number),
        _ => return None,
    };
    let then = now.to_zoned(zone.clone()).checked_sub(span.ok()?).ok()?;
    Some(then.timestamp())
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
            "ago",
            "days ago",
            "-3 days ago",
            "someday",
            "last someday",
            "next week",
            "m",
            "99999999999999999999d",
            "9223372036854775807y",
            "9223372036854775807 years ago",
        ] {
            assert!(moment(wrong, now).is_err(), "{wrong}");
        }
    }

    /// A Wednesday afternoon in a zone whose clocks were set back on the Sunday before.
    #[test]
    fn words_name_days_in_the_zone() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let now: Timestamp = "2026-10-28T14:30:00Z".parse().unwrap();
        for (text, expected) in [
            ("now", "2026-10-28T14:30:00Z"),
            ("today", "2026-10-27T23:00:00Z"),
            ("yesterday", "2026-10-26T23:00:00Z"),
            ("Yesterday", "2026-10-26T23:00:00Z"),
            ("monday", "2026-10-25T23:00:00Z"),
            ("wed", "2026-10-27T23:00:00Z"),
            ("last wednesday", "2026-10-20T22:00:00Z"),
            ("friday", "2026-10-22T22:00:00Z"),
            ("this week", "2026-10-25T23:00:00Z"),
            ("last week", "2026-10-18T22:00:00Z"),
            ("last-week", "2026-10-18T22:00:00Z"),
            ("this month", "2026-09-30T22:00:00Z"),
            ("last month", "2026-08-31T22:00:00Z"),
            ("last year", "2024-12-31T23:00:00Z"),
            ("3 days ago", "2026-10-25T14:30:00Z"),
            ("4 days ago", "2026-10-24T13:30:00Z"),
            ("an hour ago", "2026-10-28T13:30:00Z"),
            ("2 weeks ago", "2026-10-14T13:30:00Z"),
            ("3d ago", "2026-10-25T14:30:00Z"),
        ] {
            let expected: Timestamp = expected.parse().unwrap();
            assert_eq!(moment_in(text, now, &zone), Some(expected), "{text}");
        }
    }
}
