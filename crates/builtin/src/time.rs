//! The `time` server.
//!
//! Its tools have the names, arguments and results of the well-known `mcp-server-time`, so that prompts written for
//! that server work here.

mod definitions;
mod zone;

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::error::BuiltinError;
use crate::tool::{ToolDefinition, ToolFailure, ToolOutput, ToolResult, clip};
use zone::{find_zone, local_zone, zone_name};

/// How a time of today may be written.
const TIMES: &[&str] = &["%H:%M", "%H:%M:%S"];
/// How a time on another day may be written.
const DATES_AND_TIMES: &[&str] = &[
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S",
];

/// Answers what time it is.
pub struct TimeServer {
    /// For calls that name no zone.
    local: TimeZone,
    tools: Vec<ToolDefinition>,
}

impl TimeServer {
    /// A server whose local zone is the system's, or UTC if the system does not name one.
    pub fn new() -> TimeServer {
        TimeServer::with_zone(local_zone())
    }

    /// A server with a local zone of its own, by its IANA name.
    pub fn in_zone(name: &str) -> Result<TimeServer, BuiltinError> {
        let zone = find_zone("zone", name).map_err(|failure| BuiltinError::UnknownZone {
            reason: failure.to_string(),
        })?;
        Ok(TimeServer::with_zone(zone))
    }

    fn with_zone(local: TimeZone) -> TimeServer {
        TimeServer {
            tools: definitions::tools(zone_name(&local)),
            local,
        }
    }

    pub(crate) fn instructions(&self) -> String {
        let local = zone_name(&self.local);
        format!(
            "Tells the current time and converts times between zones. The local zone is {local}."
        )
    }

    pub(crate) fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Arguments<'_>) -> ToolResult {
        let now = Timestamp::now();
        let value = match tool {
            definitions::CONVERT_TIME => convert_time(now, arguments)?,
            definitions::GET_CURRENT_TIME => self.current_time(now, arguments)?,
            _ => return Err(ToolFailure::unknown_tool(tool)),
        };
        Ok(ToolOutput::structured(value))
    }

    fn current_time(
        &self,
        now: Timestamp,
        arguments: &Arguments<'_>,
    ) -> Result<Value, ToolFailure> {
        let zone = match arguments.optional_text("timezone")? {
            Some(name) => find_zone("timezone", name)?,
            None => self.local.clone(),
        };
        Ok(describe(&now.to_zoned(zone)))
    }
}

impl Default for TimeServer {
    fn default() -> TimeServer {
        TimeServer::new()
    }
}

fn convert_time(now: Timestamp, arguments: &Arguments<'_>) -> Result<Value, ToolFailure> {
    let source_zone = find_zone("source_timezone", arguments.text("source_timezone")?)?;
    let target_zone = find_zone("target_timezone", arguments.text("target_timezone")?)?;
    let time = arguments.text("time")?;
    let today = now.to_zoned(source_zone.clone()).date();
    let time = parse_time(time, |time| today.to_datetime(time)).ok_or_else(|| {
        ToolFailure::new(format!(
            "`time` must be HH:MM in 24-hour format, or YYYY-MM-DDTHH:MM for another day: got `{}`",
            clip(time, 64)
        ))
    })?;
    let out_of_range = |_| ToolFailure::new("`time` is out of range");
    let source = time.to_zoned(source_zone).map_err(out_of_range)?;
    let target = source.with_time_zone(target_zone);
    Ok(json!({
        "source": describe(&source),
        "target": describe(&target),
        "time_difference": difference(&source, &target),
    }))
}

fn parse_time(text: &str, today: impl Fn(Time) -> DateTime) -> Option<DateTime> {
    let mut times = TIMES
        .iter()
        .filter_map(|format| Time::strptime(format, text).ok());
    let mut dates = DATES_AND_TIMES
        .iter()
        .filter_map(|format| DateTime::strptime(format, text).ok());
    times.next().map(today).or_else(|| dates.next())
}

fn describe(time: &Zoned) -> Value {
    let is_dst = time
        .time_zone()
        .to_offset_info(time.timestamp())
        .dst()
        .is_dst();
    json!({
        "timezone": zone_name(time.time_zone()),
        "datetime": time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        "day_of_week": time.strftime("%A").to_string(),
        "is_dst": is_dst,
    })
}

/// Hours with one decimal, or as many as the zones need: `+9.0h`, `-3.5h`, `+5.75h`.
fn difference(source: &Zoned, target: &Zoned) -> String {
    let seconds = target.offset().seconds() - source.offset().seconds();
    let hours = f64::from(seconds) / 3600.0;
    if seconds % 360 == 0 {
        format!("{hours:+.1}h")
    } else {
        format!("{hours:+.2}h")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::tool::call_result;

    fn arguments(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn convert(value: Value) -> Result<Value, String> {
        let server = TimeServer::new();
        let values = arguments(&value);
        let arguments = Arguments::check(&server.tools()[1], &values).map_err(|e| e.to_string())?;
        let now = "2026-07-28T22:30:00Z".parse().unwrap();
        convert_time(now, &arguments).map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_current_time_has_the_offset_of_its_zone() {
        let server = TimeServer::new();
        let now = "2026-07-28T22:30:05.5Z".parse().unwrap();
        let values = arguments(&json!({ "timezone": "europe/berlin" }));
        let checked = Arguments::check(&server.tools()[0], &values).unwrap();
        assert_eq!(
            server.current_time(now, &checked).unwrap(),
            json!({
                "timezone": "Europe/Berlin",
                "datetime": "2026-07-29T00:30:05+02:00",
                "day_of_week": "Wednesday",
                "is_dst": true,
            })
        );
    }

    #[test]
    fn without_a_zone_it_is_the_local_time() {
        let server = TimeServer::new();
        let values = Map::new();
        let checked = Arguments::check(&server.tools()[0], &values).unwrap();
        let value = server.current_time(Timestamp::now(), &checked).unwrap();
        assert_eq!(value["timezone"], zone_name(&server.local));
    }

    #[test]
    fn times_are_of_today_in_the_source_zone() {
        let converted = convert(json!({
            "time": "9:30",
            "source_timezone": "Asia/Tokyo",
            "target_timezone": "America/New_York",
        }))
        .unwrap();
        assert_eq!(converted["source"]["datetime"], "2026-07-29T09:30:00+09:00");
        assert_eq!(converted["target"]["datetime"], "2026-07-28T20:30:00-04:00");
        assert_eq!(converted["target"]["day_of_week"], "Tuesday");
        assert_eq!(converted["time_difference"], "-13.0h");
    }

    #[test]
    fn times_of_other_days_know_their_own_offset() {
        let converted = convert(json!({
            "time": "2026-01-15T12:00",
            "source_timezone": "UTC",
            "target_timezone": "Asia/Kathmandu",
        }))
        .unwrap();
        assert_eq!(converted["target"]["datetime"], "2026-01-15T17:45:00+05:45");
        assert_eq!(converted["time_difference"], "+5.75h");
        assert_eq!(converted["target"]["is_dst"], false);
    }

    #[test]
    fn bad_times_are_refused() {
        for time in [
            "",
            "25:00",
            "noon",
            "12:00Z",
            "2026-02-30T10:00",
            "10:00 pm",
        ] {
            let failure = convert(json!({
                "time": time,
                "source_timezone": "UTC",
                "target_timezone": "UTC",
            }))
            .unwrap_err();
            assert!(failure.starts_with("`time` must be"), "{time}: {failure}");
        }
    }

    #[test]
    fn a_failure_is_a_result_that_says_so() {
        let result = call_result(Err(ToolFailure::new("no")));
        assert_eq!(result["isError"], true);
    }
}
