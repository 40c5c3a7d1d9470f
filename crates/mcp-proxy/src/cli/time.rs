//! Times as people type them.

use std::time::Duration;

use mcp_proxy_core::HoldTimeout;
use mcp_proxy_hub::config::parse_duration;

const DAY: Duration = Duration::from_secs(86_400);

/// How long a message may be held: a time, or `never`.
pub fn hold_timeout(text: &str) -> Result<HoldTimeout, String> {
    if text == "never" {
        return Ok(HoldTimeout::Never);
    }
    match time(text) {
        Ok(Duration::ZERO) => {
            Err("nothing would be held; use a time such as 55s, or never for no limit".to_owned())
        }
        Ok(time) => Ok(HoldTimeout::After(time)),
        Err(_) => Err(format!(
            "{text:?} is not a duration; use 55s, 500ms, 2m or never"
        )),
    }
}

/// `55s`, `500ms`, `1m30s`, and a bare number of seconds.
pub fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| format!("{text:?} is not a duration; use 55s, 500ms or 2m"))
}

/// A time of at least `shortest` and at most a day.
pub fn time_from(
    shortest: Duration,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text| match time(text)? {
        time if (shortest..=DAY).contains(&time) => Ok(time),
        _ => Err(format!(
            "use a time from {}ms to 24h, such as 500ms, 30s or 2m",
            shortest.as_millis()
        )),
    }
}

/// `90s`, `12h`, `30d`, `8w`: a unit says whether days or seconds are meant.
pub fn age(text: &str) -> Result<Duration, String> {
    let age = parse_duration(text).filter(|_| text.ends_with(char::is_alphabetic));
    age.ok_or_else(|| format!("{text:?} is not a time; use 12h, 30d or 8w"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_may_last_for_ever_but_not_for_no_time() {
        assert_eq!(hold_timeout("never"), Ok(HoldTimeout::Never));
        let minute = HoldTimeout::After(Duration::from_secs(60));
        assert_eq!(hold_timeout("1m"), Ok(minute));
        for wrong in ["0", "0s", "0ms", "off", "-1"] {
            assert!(hold_timeout(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(time("55s"), Ok(Duration::from_secs(55)));
        assert_eq!(time("55"), Ok(Duration::from_secs(55)));
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "s", "5x", "-1s", "99999999999999999999h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_outside_of_the_range_are_refused() {
        let shortest = Duration::from_millis(100);
        let parse = time_from(shortest);
        assert_eq!(parse("100ms"), Ok(shortest));
        assert_eq!(parse("24h"), Ok(DAY));
        for wrong in ["0", "99ms", "25h", "soon"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(time_from(Duration::ZERO)("0"), Ok(Duration::ZERO));
    }

    #[test]
    fn ages() {
        assert_eq!(age("30d").unwrap(), Duration::from_secs(2_592_000));
        assert_eq!(age("8w").unwrap(), Duration::from_secs(4_838_400));
        for wrong in ["", "30", "d", "1y", "-1d", "99999999999999999999w"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}
