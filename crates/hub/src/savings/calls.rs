//! What a call costs a model with each exposure: what it writes to make the call, and what it reads.

use bytes::Bytes;
use mcp_proxy_wire::json_string;

use super::TextSize;
use crate::config::ExposeMode;
use crate::dispatch_tool::{self, DispatchArguments, DispatchToolOptions, DispatchedCall};
use crate::names::ServerNaming;
use crate::proxy_tool::{self, ProxyToolOptions};
use crate::read_tool::READ_TOOL_NAME;

/// A call that a server answered, as it crossed the wire.
#[derive(Clone, Debug)]
pub struct MeasuredCall<'a> {
    /// The server.
    pub server: &'a ServerNaming,
    /// The server's name for the tool.
    pub tool: &'a str,
    /// The JSON of the arguments.
    pub arguments: &'a [u8],
    /// The JSON of the result.
    pub result: Bytes,
}

impl MeasuredCall<'_> {
    /// The parameters of the request and the result, as they would be with this exposure.
    pub fn size(&self, mode: ExposeMode) -> TextSize {
        let arguments = String::from_utf8_lossy(self.arguments);
        let public = self.public_name();
        let (own, asked, result) = match mode {
            ExposeMode::All => (public, arguments.into_owned(), self.result.clone()),
            ExposeMode::Proxy | ExposeMode::Read => (
                match mode {
                    ExposeMode::Read => READ_TOOL_NAME.to_owned(),
                    _ => ProxyToolOptions::default().name,
                },
                format!(
                    r#"{{"action":"call","type":"tool","path":{},"args":{arguments}}}"#,
                    json_string(&public)
                ),
                proxy_tool::render_tool_result(&self.result, &public),
            ),
            ExposeMode::Dispatch => (
                DispatchToolOptions::default().name,
                format!(
                    r#"{{"action":"call","tool":{},"arguments":{arguments}}}"#,
                    json_string(self.tool)
                ),
                self.dispatched(),
            ),
        };
        let request = format!(r#"{{"name":{},"arguments":{asked}}}"#, json_string(&own));
        [TextSize::of(request.as_bytes()), TextSize::of(&result)]
            .into_iter()
            .sum()
    }

    fn dispatched(&self) -> Bytes {
        let arguments = DispatchArguments::Inline(Bytes::copy_from_slice(self.arguments));
        dispatch_tool::render_call(
            &self.result,
            &DispatchedCall {
                alias: &self.server.alias,
                connection: &self.server.name,
                tool: self.tool,
                arguments: &arguments,
                not_stored: None,
            },
        )
    }

    fn public_name(&self) -> String {
        let prefix = self.server.prefix.as_deref();
        self.server.natural_name(prefix, self.tool).wanted
    }
}
