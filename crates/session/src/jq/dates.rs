//! Dates, as jq computes with them. All are in UTC: a filter does not read the machine's time zone.

use jaq_core::native::{Fun, run, v};
use jaq_core::{Cv, ValX, box_iter::box_once};
use jaq_json::Val;
use jaq_std::ValT as _;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

use super::JqEngine;
use super::natives::{as_str, failed};

pub(super) fn functions() -> Vec<Fun<JqEngine>> {
    vec![
        run(("todateiso8601", v(0), |cv| {
            box_once(timestamp(&cv.1).map(|time| Val::utf8_str(time.to_string())))
        })),
        run(("gmtime", v(0), |cv| {
            let parts = timestamp(&cv.1).map(|time| parts(time.to_zoned(TimeZone::UTC).datetime()));
            box_once(parts)
        })),
        run(("mktime", v(0), |cv| {
            box_once(zoned(&cv.1).map(|time| seconds(time.timestamp())))
        })),
        run(("strftime", v(1), |cv| box_once(format(cv)))),
        run(("strptime", v(1), |cv| box_once(parse(cv)))),
    ]
}

fn format<'a>(mut cv: Cv<'a, JqEngine>) -> ValX<'a, Val> {
    let form = cv.0.pop_var();
    let text = strtime::format(as_str(&form)?, &zoned(&cv.1)?).map_err(failed)?;
    Ok(Val::utf8_str(text))
}

fn parse<'a>(mut cv: Cv<'a, JqEngine>) -> ValX<'a, Val> {
    let form = cv.0.pop_var();
    let mut read =
        strtime::BrokenDownTime::parse(as_str(&form)?, as_str(&cv.1)?).map_err(failed)?;
    if read.offset().is_none() {
        read.set_offset(Some(Offset::UTC));
    }
    Ok(parts(read.to_zoned().map_err(failed)?.datetime()))
}

/// A time in seconds since 1970, or in parts as `gmtime` gives them.
fn zoned<'a>(value: &Val) -> ValX<'a, Zoned, Val> {
    let Val::Arr(parts) = value else {
        return Ok(timestamp(value)?.to_zoned(TimeZone::UTC));
    };
    let part = |at: usize| parts.get(at).and_then(Val::as_f64);
    let whole = |at: usize, offset: f64| part(at).map(|part| (part + offset) as i8);
    let time = (|| {
        let second = part(5)?;
        let nanosecond = (second.fract() * 1e9) as i32;
        let (month, day) = (whole(1, 1.0)?, whole(2, 0.0)?);
        let (hour, minute) = (whole(3, 0.0)?, whole(4, 0.0)?);
        let year = part(0)? as i16;
        Some(DateTime::new(
            year,
            month,
            day,
            hour,
            minute,
            second as i8,
            nanosecond,
        ))
    })();
    let time = time.ok_or_else(|| failed("a time in parts needs six numbers"))?;
    let zoned = time.and_then(|time| time.to_zoned(TimeZone::UTC));
    zoned.map_err(failed)
}

fn timestamp<'a>(value: &Val) -> ValX<'a, Timestamp, Val> {
    let time = match (value.as_isize(), value.as_f64()) {
        (Some(seconds), _) => Timestamp::from_second(seconds as i64),
        (None, Some(seconds)) => Timestamp::from_microsecond((seconds * 1e6) as i64),
        (None, None) => return Err(failed("a time is a number of seconds since 1970")),
    };
    time.map_err(failed)
}

fn seconds(time: Timestamp) -> Val {
    match time.subsec_nanosecond() {
        0 => Val::from(time.as_second() as isize),
        _ => Val::from(time.as_microsecond() as f64 / 1e6),
    }
}

fn parts(time: DateTime) -> Val {
    let second = match time.subsec_nanosecond() {
        0 => Val::from(time.second() as isize),
        nanosecond => Val::from(f64::from(time.second()) + f64::from(nanosecond) / 1e9),
    };
    let number = |number: i16| Val::from(number as isize);
    [
        number(time.year()),
        number(i16::from(time.month()) - 1),
        number(i16::from(time.day())),
        number(i16::from(time.hour())),
        number(i16::from(time.minute())),
        second,
        number(i16::from(time.weekday().to_sunday_zero_offset())),
        number(time.day_of_year() - 1),
    ]
    .into_iter()
    .collect()
}
