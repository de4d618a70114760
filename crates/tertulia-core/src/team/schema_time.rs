//! The format `date-time` of JSON Schema: a time as in RFC 3339.

use jiff::civil::Date;

const MINUTES_PER_DAY: i32 = 24 * 60;

/// Returns true for a date and time with an offset, as RFC 3339 defines them. Stricter than
/// [`jiff::Timestamp`], which also reads other notations, and wider: a fraction may have any number
/// of digits.
pub(super) fn is_date_time(text: &str) -> bool {
    text.split_once(['T', 't'])
        .is_some_and(|(date, time)| is_date(date) && is_time(time).unwrap_or(false))
}

fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = numbers(text, '-', [4, 2, 2]) else {
        return false;
    };
    let date = || {
        let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
        Date::new(i16::try_from(year).ok()?, month, day).ok()
    };
    date().is_some()
}

fn is_time(text: &str) -> Option<bool> {
    let (clock, rest) = text.split_at_checked("00:00:00".len())?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let offset = minutes_of_offset(without_fraction(rest)?)?;
    // A leap second is the last one of a day in UTC.
    let last = (hour * 60 + minute - offset).rem_euclid(MINUTES_PER_DAY) == MINUTES_PER_DAY - 1;
    Some(hour < 24 && minute < 60 && (second < 60 || second == 60 && last))
}

fn without_fraction(text: &str) -> Option<&str> {
    match text.strip_prefix('.') {
        None => Some(text),
        Some(fraction) => {
            let rest = fraction.trim_start_matches(|char: char| char.is_ascii_digit());
            (rest.len() < fraction.len()).then_some(rest)
        }
    }
}

fn minutes_of_offset(text: &str) -> Option<i32> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let (sign, clock) = match text.strip_prefix('-') {
        Some(clock) => (-1, clock),
        None => (1, text.strip_prefix('+')?),
    };
    let [hours, minutes] = numbers(clock, ':', [2, 2])?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// Parses numbers of exactly so many digits each.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[i32; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        if part.len() != digits || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns what the crate `jsonschema` says about a time.
    fn is_valid_by_reference(text: &str) -> bool {
        let schema = serde_json::json!({ "format": "date-time" });
        jsonschema::draft7::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap()
            .is_valid(&text.into())
    }

    #[test]
    fn times_are_those_of_the_rfc() {
        for time in [
            "2026-01-31T12:00:00Z",
            "2026-01-31t12:00:00z",
            "2026-01-31T12:00:00.1Z",
            "2026-01-31T12:00:00.123456789012345Z",
            "2026-01-31T12:00:00+00:00",
            "2026-01-31T12:00:00-00:00",
            "2026-01-31T12:00:00-23:59",
            "2024-02-29T00:00:00Z",
            "2000-02-29T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            // Leap seconds, at the end of a day in UTC.
            "2016-12-31T23:59:60Z",
            "2016-12-31T23:59:60.5z",
            "2017-01-01T00:59:60+01:00",
            "2016-12-31T15:59:60-08:00",
            "2016-12-31T23:29:60-00:30",
        ] {
            assert!(is_date_time(time), "{time}");
            assert!(is_valid_by_reference(time), "{time}");
        }
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in [
            "",
            "T",
            "2026-01-31",
            "12:00:00Z",
            "2026-01-31T12:00:00",
            "2026-01-31T12:00Z",
            "2026-01-31 12:00:00Z",
            "2026-01-31T12:00:00ZZ",
            "2026-01-31T12:00:00Z ",
            " 2026-01-31T12:00:00Z",
            "2026-01-31T12:00:00.Z",
            "2026-01-31T12:00:00,5Z",
            "2026-01-31T12:00:00.5",
            "2026-01-31T12:00:00+01",
            "2026-01-31T12:00:00+0100",
            "2026-01-31T12:00:00+24:00",
            "2026-01-31T12:00:00+01:60",
            "2026-01-31T12:00:00Z[UTC]",
            "2026-01-31T24:00:00Z",
            "2026-01-31T12:60:00Z",
            "2026-01-31T12:00:61Z",
            "2026-02-29T12:00:00Z",
            "1900-02-29T12:00:00Z",
            "2026-04-31T12:00:00Z",
            "2026-00-01T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-01-00T12:00:00Z",
            "2026-1-31T12:00:00Z",
            "26-01-31T12:00:00Z",
            "+2026-01-31T12:00:00Z",
            "-2026-01-31T12:00:00Z",
            "12026-01-31T12:00:00Z",
            "2026-01-31T1:00:00Z",
            "2026-01-31T12:00:0\u{664}Z",
            "２026-01-31T12:00:00Z",
            "2026-01-31T12:00:0ßZ",
            "20260131T120000Z",
            "2026-W05-6T12:00:00Z",
            // Leap seconds at other times.
            "2016-12-31T12:00:60Z",
            "2016-12-31T23:59:60+01:00",
            "2016-12-31T00:59:60-01:00",
        ] {
            assert!(!is_date_time(text), "{text}");
            assert!(!is_valid_by_reference(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn times_are_judged_as_the_standard_defines(
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9][Tt][0-2][0-9]:[0-5][0-9]:[0-6][0-9](\\.[0-9]{0,12})?([Zz]|[+-][0-2][0-9]:[0-6][0-9])",
            leap in "20[0-9]{2}-12-31T[0-2][0-9]:(59|29):60[+-][0-2][0-9]:[03]0",
        ) {
            for text in [text, leap] {
                prop_assert_eq!(is_date_time(&text), is_valid_by_reference(&text), "{}", text);
            }
        }
    }
}
