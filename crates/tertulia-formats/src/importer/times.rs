//! Times as other programs record them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// First number that can only be milliseconds: as seconds it is the year 5138.
const MILLISECONDS: i64 = 100_000_000_000;

/// Returns the time of a number of seconds or milliseconds since 1970. Times before are unknown.
pub fn unix_time(number: i64) -> Option<Timestamp> {
    match number {
        ..=0 => None,
        seconds if seconds < MILLISECONDS => Timestamp::from_second(seconds).ok(),
        milliseconds => Timestamp::from_millisecond(milliseconds).ok(),
    }
}

/// Parses a time with an offset, or one in UTC without it, as SQLite writes it.
pub fn utc_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let with_offset = text.parse().ok();
    with_offset.or_else(|| in_zone(text, TimeZone::UTC))
}

/// Parses a time in the time zone of this machine.
pub fn local_time(text: &str) -> Option<Timestamp> {
    in_zone(text.trim(), TimeZone::system())
}

fn in_zone(text: &str, zone: TimeZone) -> Option<Timestamp> {
    let time: DateTime = text.parse().ok()?;
    zone.to_timestamp(time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_form() {
        let noon: Timestamp = "2026-01-02T12:00:00Z".parse().unwrap();
        assert_eq!(unix_time(noon.as_second()), Some(noon));
        assert_eq!(unix_time(noon.as_millisecond()), Some(noon));
        for text in [
            "2026-01-02 12:00:00",
            "2026-01-02T13:00:00+01:00",
            "2026-01-02T12:00:00.000Z",
            " 2026-01-02 12:00:00+00:00\n",
        ] {
            assert_eq!(utc_time(text), Some(noon), "{text}");
        }
        for number in [0, -5, i64::MIN, i64::MAX] {
            assert_eq!(unix_time(number), None, "{number}");
        }
        for text in ["", "yesterday", "2026-13-40 12:00:00"] {
            assert_eq!((utc_time(text), local_time(text)), (None, None), "{text}");
        }
        assert!(local_time("2026-01-02 12:00:00").is_some());
    }
}
