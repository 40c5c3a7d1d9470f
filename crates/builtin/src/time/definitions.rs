//! What the tools of the `time` server say about themselves.

use serde_json::{Value, json};

use crate::tool::{ToolDefinition, ToolEffect};

pub(super) const GET_CURRENT_TIME: &str = "get_current_time";
pub(super) const CONVERT_TIME: &str = "convert_time";

pub(super) fn tools(local: &str) -> Vec<ToolDefinition> {
    vec![
        ToolDefinition {
            name: GET_CURRENT_TIME,
            title: "Current time",
            description: "Tell the current date and time in a time zone.".to_owned(),
            input: json!({
                "type": "object",
                "properties": {
                    "timezone": zone(&format!("Default: {local}, the local zone.")),
                },
                "additionalProperties": false,
            }),
            output: Some(zoned_time()),
            effect: ToolEffect::Reads,
        },
        ToolDefinition {
            name: CONVERT_TIME,
            title: "Convert time",
            description: "Convert a time from one time zone to another.".to_owned(),
            input: json!({
                "type": "object",
                "properties": {
                    "time": {
                        "type": "string",
                        "description": "The time to convert: HH:MM in 24-hour format, or YYYY-MM-DDTHH:MM if it is not today.",
                    },
                    "source_timezone": zone(&format!("Use {local} if the user names none.")),
                    "target_timezone": zone(&format!("Use {local} if the user names none.")),
                },
                "required": ["time", "source_timezone", "target_timezone"],
                "additionalProperties": false,
            }),
            output: Some(json!({
                "type": "object",
                "properties": {
                    "source": zoned_time(),
                    "target": zoned_time(),
                    "time_difference": { "type": "string", "description": "From source to target, such as +5.5h" },
                },
                "required": ["source", "target", "time_difference"],
            })),
            effect: ToolEffect::Reads,
        },
    ]
}

fn zone(default: &str) -> Value {
    json!({
        "type": "string",
        "description": format!("IANA time zone, such as Europe/London or America/New_York. {default}"),
    })
}

fn zoned_time() -> Value {
    json!({
        "type": "object",
        "properties": {
            "timezone": { "type": "string" },
            "datetime": { "type": "string", "format": "date-time" },
            "day_of_week": { "type": "string" },
            "is_dst": { "type": "boolean" },
        },
        "required": ["timezone", "datetime", "day_of_week", "is_dst"],
    })
}
