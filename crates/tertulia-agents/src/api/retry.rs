//! Decides whether to retry, and when. Does not wait itself.

use std::time::Duration;

use jiff::fmt::rfc2822;
use serde_json::Value;

/// Maximum wait that tertulia chooses itself.
const LONGEST: Duration = Duration::from_secs(30);

/// The end of an attempt, as far as a retry depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// Number of failed attempts, including this one.
    pub failed: u32,
    /// Whether the failure is temporary, so that a retry may succeed.
    pub retryable: bool,
    /// Whether a part of the answer has arrived: a retry would repeat it.
    pub spoke: bool,
    /// Wait that the server requested.
    pub asked: Option<Duration>,
    /// Time left for the whole answer.
    pub left: Duration,
}

/// Returns the wait before the next attempt, or `None` if there is none.
pub(super) fn wait(ended: Ended, retries: u32, first: Duration) -> Option<Duration> {
    if ended.spoke || !ended.retryable || ended.failed > retries {
        return None;
    }
    let doubled = 2_u32.saturating_pow(ended.failed.saturating_sub(1));
    let wait = ended
        .asked
        .unwrap_or_else(|| first.saturating_mul(doubled).min(LONGEST));
    // A wait beyond the time limit would only delay the same failure.
    (wait < ended.left).then_some(wait)
}

/// Returns the wait that the server requests, in its headers or in the body of its error.
pub(super) fn asked<'a>(header: impl Fn(&str) -> Option<&'a str>, body: &str) -> Option<Duration> {
    header("retry-after-ms")
        .and_then(|words| milliseconds(words.parse().ok()?))
        .or_else(|| {
            let words = header("retry-after")?.trim();
            match words.parse::<f64>() {
                Ok(seconds) => milliseconds(seconds * 1000.0),
                Err(_) => until(words, header("date")?),
            }
        })
        .or_else(|| delay_in_body(&serde_json::from_str(body).ok()?))
}

fn milliseconds(count: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(count / 1000.0).ok()
}

/// Converts a date to a wait, relative to the server's own clock in the `date` header.
fn until(moment: &str, now: &str) -> Option<Duration> {
    let moment = rfc2822::parse(moment).ok()?.timestamp();
    let now = rfc2822::parse(now).ok()?.timestamp();
    Some(Duration::try_from(moment.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// Reads Gemini's `"retryDelay": "34s"` from the details of the error.
fn delay_in_body(body: &Value) -> Option<Duration> {
    let error = body.get(0).unwrap_or(body).get("error")?;
    let details = error.get("details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail.get("retryDelay")?.as_str())?;
    milliseconds(delay.strip_suffix('s')?.parse::<f64>().ok()? * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(500);

    fn ended(failed: u32) -> Ended {
        Ended {
            failed,
            retryable: true,
            spoke: false,
            asked: None,
            left: Duration::from_secs(1800),
        }
    }

    #[test]
    fn waits_double_up_to_a_limit() {
        for (failed, waited) in [(1, 500), (2, 1000), (3, 2000), (7, 30_000), (40, 30_000)] {
            assert_eq!(
                wait(ended(failed), 100, FIRST),
                Some(Duration::from_millis(waited)),
                "{failed}"
            );
        }
    }

    #[test]
    fn some_failures_are_final() {
        let asked = Some(Duration::from_secs(7));
        let table = [
            (ended(3), Some(Duration::from_secs(2))),
            (ended(4), None),
            (
                Ended {
                    spoke: true,
                    ..ended(1)
                },
                None,
            ),
            (
                Ended {
                    retryable: false,
                    ..ended(1)
                },
                None,
            ),
            (Ended { asked, ..ended(1) }, asked),
            (
                Ended {
                    asked,
                    left: Duration::from_secs(7),
                    ..ended(1)
                },
                None,
            ),
            (
                Ended {
                    left: Duration::ZERO,
                    ..ended(1)
                },
                None,
            ),
        ];
        for (ended, waited) in table {
            assert_eq!(wait(ended, 3, FIRST), waited, "{ended:?}");
        }
        assert_eq!(wait(ended(1), 0, FIRST), None);
    }

    #[test]
    fn what_the_server_asks_is_understood() {
        let gemini = r#"[{"error": {"details": [{"@type": "x"}, {"retryDelay": "34.5s"}]}}]"#;
        for (headers, body, millis) in [
            (&[("retry-after", "2")][..], "", Some(2000)),
            (&[("retry-after", "0.25")], "", Some(250)),
            (
                &[("retry-after", "9"), ("retry-after-ms", "120")],
                "",
                Some(120),
            ),
            (
                &[
                    ("retry-after", "Sat, 07 Nov 2026 10:00:05 GMT"),
                    ("date", "Sat, 07 Nov 2026 10:00:00 GMT"),
                ],
                "",
                Some(5000),
            ),
            (
                &[
                    ("retry-after", "Sat, 07 Nov 2026 09:00:00 GMT"),
                    ("date", "Sat, 07 Nov 2026 10:00:00 GMT"),
                ],
                "",
                Some(0),
            ),
            (
                &[("retry-after", "Sat, 07 Nov 2026 10:00:05 GMT")],
                "",
                None,
            ),
            (&[("retry-after", "-3")], "", None),
            (&[("retry-after", "soon")], "", None),
            (&[], gemini, Some(34_500)),
            (&[], "<html>", None),
        ] {
            let header = |name: &str| {
                let found = headers.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| *value)
            };
            assert_eq!(
                asked(header, body),
                millis.map(Duration::from_millis),
                "{headers:?} {body}"
            );
        }
    }
}
