//! Which of a server's tools is the proxy tool, and which the dispatch tool.
//!
//! By name first, then by what the tool says about itself (section 6.1 of the specification of the proxy tool). A
//! tool of the right name must also take the right parameters: `proxy` is a common word. If a schema leaves that open,
//! a transparent client tries the tool.

use mcp_proxy_tool::{CapabilityType, ProxyAction};
use rmcp::model::Tool;
use serde_json::{Map, Value};

use crate::call_options::CallOptions;
use crate::client::ProxyClient;
use crate::operation::operation_arguments;
use crate::transform::{extract_embedded_data, single_resource};

/// The usual names of the proxy tool.
pub(crate) const PROXY_TOOL_NAMES: [&str; 2] = ["proxy", "mcp:proxy"];

/// The usual name of the dispatch tool.
pub(crate) const DISPATCH_TOOL_NAME: &str = "proxy-dispatch";

/// The words by which a tool of another name is known. "Approximate" has none of them.
const PROXY_WORDS: [&str; 3] = ["proxy", "proxies", "proxied"];

/// The parameters that every proxy tool has.
const PROXY_PARAMETERS: [&str; 4] = ["action", "type", "path", "args"];

/// The parameters that every dispatch tool has.
const DISPATCH_PARAMETERS: [&str; 3] = ["action", "tool", "arguments"];

impl ProxyClient {
    /// The first tool that may be the proxy tool, by its name or description, and answers like one (section 6.1 of the
    /// specification of the tool).
    pub(crate) async fn try_proxy_tools(&self, tools: &[Tool]) -> Option<Tool> {
        let arguments = operation_arguments(CapabilityType::Tool, ProxyAction::List, None, None);
        for tool in possible_proxy_tools(tools) {
            let options = CallOptions::default();
            let answer = self.call_native_tool(&tool.name, Some(arguments.clone()), &options);
            let is_list = answer.await.is_ok_and(|result| {
                let data = single_resource(&result, "the list").and_then(extract_embedded_data);
                result.is_error != Some(true) && data.is_ok_and(|data| data.json.is_array())
            });
            if is_list {
                return Some(tool.clone());
            }
        }
        None
    }
}

/// The proxy tool: the one called `name`, or one that looks like it.
pub(crate) fn find_proxy_tool<'a>(tools: &'a [Tool], name: Option<&str>) -> Option<&'a Tool> {
    if let Some(name) = name {
        return tools.iter().find(|tool| tool.name == name);
    }
    let of_form = |tool: &&Tool| has_parameters(tool, &PROXY_PARAMETERS);
    let of_name = |name: &str| tools.iter().filter(of_form).find(|tool| tool.name == name);
    PROXY_TOOL_NAMES.into_iter().find_map(of_name).or_else(|| {
        tools
            .iter()
            .filter(of_form)
            .find(|tool| mentions_proxy(tool))
    })
}

/// The tools that may be the proxy tool, though their schemas do not say so: those of a usual name first, and then those
/// that mention a proxy. A schema that names other parameters rules a tool out.
fn possible_proxy_tools(tools: &[Tool]) -> Vec<&Tool> {
    let may_be = |tool: &&Tool| {
        properties(tool).is_none_or(|properties| properties.as_object().is_none_or(Map::is_empty))
            || has_parameters(tool, &["action", "type"])
    };
    let has_name = |tool: &&Tool| PROXY_TOOL_NAMES.contains(&&*tool.name);
    let possible = tools.iter().filter(may_be);
    let (named, others): (Vec<&Tool>, Vec<&Tool>) = possible.partition(has_name);
    let others = others.into_iter().filter(|tool| mentions_proxy(tool));
    named.into_iter().chain(others).collect()
}

/// The dispatch tool: the one called `name`, or the one of the usual name.
pub(crate) fn find_dispatch_tool<'a>(tools: &'a [Tool], name: Option<&str>) -> Option<&'a Tool> {
    match name {
        Some(name) => tools.iter().find(|tool| tool.name == name),
        None => tools
            .iter()
            .filter(|tool| has_parameters(tool, &DISPATCH_PARAMETERS))
            .find(|tool| tool.name == DISPATCH_TOOL_NAME),
    }
}

/// Whether `tool` knows this word as an action.
pub(crate) fn knows_action(tool: &Tool, action: &str) -> bool {
    let actions = properties(tool).and_then(|properties| properties.get("action")?.get("enum"));
    matches!(actions, Some(Value::Array(actions)) if actions.iter().any(|known| known == action))
}

/// Whether `tool` takes this parameter, as far as its schema says.
pub(crate) fn takes_parameter(tool: &Tool, name: &str) -> bool {
    properties(tool).is_none_or(|properties| properties.get(name).is_some())
}

fn has_parameters(tool: &Tool, names: &[&str]) -> bool {
    properties(tool)
        .is_some_and(|properties| names.iter().all(|name| properties.get(name).is_some()))
}

fn properties(tool: &Tool) -> Option<&Value> {
    tool.input_schema.get("properties")
}

fn mentions_proxy(tool: &Tool) -> bool {
    let texts = [
        Some(&*tool.name),
        tool.title.as_deref(),
        tool.description.as_deref(),
    ];
    texts
        .into_iter()
        .flatten()
        .map(str::to_lowercase)
        .any(|text| PROXY_WORDS.iter().any(|word| text.contains(word)))
}

#[cfg(test)]
mod tests {
    use rmcp::model::JsonObject;
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str, parameters: &[&str]) -> Tool {
        let properties: JsonObject = parameters
            .iter()
            .map(|parameter| ((*parameter).to_owned(), json!({})))
            .collect();
        let schema = json!({"type": "object", "properties": properties});
        Tool::new(
            name.to_owned(),
            description.to_owned(),
            schema.as_object().cloned().unwrap(),
        )
    }

    fn found(tools: &[Tool], name: Option<&str>) -> Option<String> {
        find_proxy_tool(tools, name).map(|tool| tool.name.to_string())
    }

    #[test]
    fn the_proxy_tool_is_found_by_name_and_then_by_description() {
        let by_name = tool("proxy", "", &PROXY_PARAMETERS);
        let other_name = tool("mcp:proxy", "", &PROXY_PARAMETERS);
        let by_description = tool("gateway", "Proxies all servers", &PROXY_PARAMETERS);
        let network_proxy = tool("proxy", "Sets the HTTP proxy", &["host", "port"]);
        let tools = [by_description.clone(), other_name.clone(), by_name];
        assert_eq!(found(&tools, None).as_deref(), Some("proxy"));
        assert_eq!(found(&tools[..2], None).as_deref(), Some("mcp:proxy"));
        let tools = [network_proxy.clone(), by_description];
        assert_eq!(found(&tools, None).as_deref(), Some("gateway"));
        assert_eq!(found(std::slice::from_ref(&network_proxy), None), None);
        assert_eq!(
            found(&[network_proxy], Some("proxy")).as_deref(),
            Some("proxy")
        );
        assert_eq!(found(&[other_name], Some("proxy")), None);
        let other_word = tool("search", "Approximate matches", &PROXY_PARAMETERS);
        assert_eq!(found(&[other_word], None), None);
    }

    #[test]
    fn an_action_is_known_if_the_schema_names_it() {
        let schema = json!({"properties": {"action": {"enum": ["list", "batch"]}}});
        let tool = Tool::new("proxy", "", schema.as_object().cloned().unwrap());
        assert!(knows_action(&tool, "batch"));
        assert!(!knows_action(&tool, "info"));
    }
}
