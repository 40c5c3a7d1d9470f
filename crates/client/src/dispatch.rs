//! The `proxy-dispatch` tool: search, and results that the server keeps in files.

use mcp_proxy_tool::{CapabilityType, DISPATCH_META_KEY, ToolWord};
use rmcp::model::{CallToolResult, JsonObject};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call_options::CallOptions;
use crate::client::ProxyClient;
use crate::error::ClientError;

/// What to search for, besides the words.
///
/// ```
/// use mcp_proxy_client::{CapabilityType, SearchOptions};
///
/// let options = SearchOptions::new().limit(5).kind(CapabilityType::Prompt);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchOptions {
    /// The most matches to return.
    pub limit: Option<u32>,
    /// What is searched: tools, if nothing else is said.
    pub kind: Option<CapabilityType>,
    /// Only this server, by its name or alias.
    pub connection: Option<String>,
    /// Whether each match has its whole input schema.
    pub include_input_schema: bool,
}

/// The matches of a search, the best first.
///
/// ```no_run
/// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
/// use mcp_proxy_client::SearchOptions;
///
/// let answer = client.search("read a file", SearchOptions::new()).await?;
/// println!("{} of {}", answer.results.len(), answer.total_matches);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SearchAnswer {
    /// How many there are.
    pub total_matches: u64,
    /// Those that were returned.
    pub results: Vec<SearchMatch>,
    /// Servers that have not said what they offer, as the server describes them.
    #[serde(default)]
    pub missing: Vec<Value>,
}

/// Something that a search found.
///
/// ```no_run
/// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
/// use mcp_proxy_client::{CallOptions, SearchOptions};
///
/// let answer = client.search("current time", SearchOptions::new().limit(1)).await?;
/// if let Some(found) = answer.results.first() {
///     let name = found.public.as_deref().unwrap_or(&found.name);
///     println!("{name}: {}", found.signature.as_deref().unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SearchMatch {
    /// The server's alias.
    pub alias: String,
    /// Its name on that server. Empty for a resource that has only a URI.
    #[serde(default)]
    pub name: String,
    /// The URI of a resource, or the template of URIs.
    #[serde(default, alias = "uriTemplate")]
    pub uri: Option<String>,
    /// The name to call it by, if several servers have one of the same name.
    #[serde(default)]
    pub public: Option<String>,
    /// What it does.
    #[serde(default)]
    pub description: Option<String>,
    /// How it is called: `add(a: number, b?: number)`.
    #[serde(default)]
    pub signature: Option<String>,
    /// Everything else that the server says about it.
    #[serde(flatten)]
    pub other: JsonObject,
}

/// Which part of a kept result to read.
///
/// ```
/// use mcp_proxy_client::KeptResultPart;
///
/// let part = KeptResultPart::Grep { pattern: "error".to_owned(), context: 2 };
/// assert_ne!(part, KeptResultPart::Stat);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeptResultPart {
    /// Only how large it is.
    Stat,
    /// The beginning, up to this many bytes; the server's default if it is not given.
    Read {
        /// The most bytes.
        max_bytes: Option<u64>,
    },
    /// The first lines.
    Head {
        /// How many.
        lines: u64,
    },
    /// The last lines.
    Tail {
        /// How many.
        lines: u64,
    },
    /// Lines from one to another, counted from 1.
    Slice {
        /// The first.
        from_line: u64,
        /// The last.
        to_line: u64,
    },
    /// The lines that match a regular expression.
    Grep {
        /// The expression.
        pattern: String,
        /// How many lines before and after each match.
        context: u64,
    },
    /// The output of a jq filter.
    Jq {
        /// The filter.
        filter: String,
    },
}

/// A part of a kept result.
///
/// ```no_run
/// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
/// use mcp_proxy_client::KeptResultPart;
///
/// let head = client.read_result("spill:754gg28xfyk10dc31e4tvhjxv3.json", KeptResultPart::Head { lines: 10 }).await?;
/// println!("{} ({} bytes in all)", head.text, head.facts["byteSize"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResultText {
    /// The text.
    pub text: String,
    /// What the server says about it, such as `byteSize` and `totalLines`.
    pub facts: JsonObject,
}

impl SearchOptions {
    /// Tools of all servers, as many as the server returns by default.
    ///
    /// ```
    /// use mcp_proxy_client::SearchOptions;
    ///
    /// assert_eq!(SearchOptions::new().limit, None);
    /// ```
    pub fn new() -> SearchOptions {
        SearchOptions::default()
    }

    /// Returns at most this many matches.
    ///
    /// ```
    /// use mcp_proxy_client::SearchOptions;
    ///
    /// assert_eq!(SearchOptions::new().limit(5).limit, Some(5));
    /// ```
    pub fn limit(mut self, limit: u32) -> SearchOptions {
        self.limit = Some(limit);
        self
    }

    /// Searches things of this type.
    ///
    /// ```
    /// use mcp_proxy_client::{CapabilityType, SearchOptions};
    ///
    /// let options = SearchOptions::new().kind(CapabilityType::Prompt);
    /// assert_eq!(options.kind, Some(CapabilityType::Prompt));
    /// ```
    pub fn kind(mut self, kind: CapabilityType) -> SearchOptions {
        self.kind = Some(kind);
        self
    }

    /// Searches only this server.
    ///
    /// ```
    /// use mcp_proxy_client::SearchOptions;
    ///
    /// assert_eq!(SearchOptions::new().connection("git").connection.as_deref(), Some("git"));
    /// ```
    pub fn connection(mut self, connection: impl Into<String>) -> SearchOptions {
        self.connection = Some(connection.into());
        self
    }

    /// Returns each match with its input schema.
    ///
    /// ```
    /// use mcp_proxy_client::SearchOptions;
    ///
    /// assert!(SearchOptions::new().include_input_schema().include_input_schema);
    /// ```
    pub fn include_input_schema(mut self) -> SearchOptions {
        self.include_input_schema = true;
        self
    }
}

impl ProxyClient {
    /// Searches for tools, resources or prompts by what they do.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// use mcp_proxy_client::SearchOptions;
    ///
    /// for found in client.search("read a file", SearchOptions::new().limit(3)).await?.results {
    ///     println!("{} {}", found.name, found.signature.unwrap_or_default());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn search(
        &self,
        query: &str,
        options: SearchOptions,
    ) -> Result<SearchAnswer, ClientError> {
        let mut arguments =
            object(json!({"action": "search", "query": query, "format": "compact"}));
        if let Some(limit) = options.limit {
            arguments.insert("limit".to_owned(), limit.into());
        }
        if let Some(kind) = options.kind {
            arguments.insert("type".to_owned(), kind.as_str().into());
        }
        if let Some(connection) = options.connection {
            arguments.insert("connection".to_owned(), connection.into());
        }
        if options.include_input_schema {
            arguments.insert("includeInputSchema".to_owned(), true.into());
        }
        let result = self.dispatch(arguments, CallOptions::default()).await?;
        let text = text_of(result)?.text;
        serde_json::from_str(&text).map_err(|error| ClientError::decode("the matches", error))
    }

    /// Reads a part of a result that the server keeps in a file.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// use mcp_proxy_client::KeptResultPart;
    ///
    /// let part = KeptResultPart::Jq { filter: ".orders | length".to_owned() };
    /// println!("{}", client.read_result("spill:754gg28xfyk10dc31e4tvhjxv3.json", part).await?.text);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_result(
        &self,
        result_file: &str,
        part: KeptResultPart,
    ) -> Result<ResultText, ClientError> {
        let mut arguments = object(match part {
            KeptResultPart::Stat => json!({"op": "stat"}),
            KeptResultPart::Read { max_bytes: None } => json!({"op": "read"}),
            KeptResultPart::Read { max_bytes } => json!({"op": "read", "maxBytes": max_bytes}),
            KeptResultPart::Head { lines } => json!({"op": "head", "lines": lines}),
            KeptResultPart::Tail { lines } => json!({"op": "tail", "lines": lines}),
            KeptResultPart::Slice { from_line, to_line } => {
                json!({"op": "slice", "fromLine": from_line, "toLine": to_line})
            }
            KeptResultPart::Grep { pattern, context } => {
                json!({"op": "grep", "pattern": pattern, "context": context})
            }
            KeptResultPart::Jq { filter } => json!({"op": "jq", "filter": filter}),
        });
        arguments.insert("action".to_owned(), "readresult".into());
        arguments.insert("resultFile".to_owned(), result_file.into());
        text_of(self.dispatch(arguments, CallOptions::default()).await?)
    }

    /// Calls the `proxy-dispatch` tool with any arguments and returns its result as it is. An error of the tool itself
    /// is [`ClientError::ToolFailed`] with its code.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_proxy_client::ProxyClient) -> Result<(), mcp_proxy_client::ClientError> {
    /// use mcp_proxy_client::CallOptions;
    ///
    /// let arguments = serde_json::json!({"action": "status"}).as_object().cloned().unwrap_or_default();
    /// let result = client.dispatch(arguments, CallOptions::new()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn dispatch(
        &self,
        arguments: JsonObject,
        options: CallOptions,
    ) -> Result<CallToolResult, ClientError> {
        let tool = self.dispatch_tool().ok_or(ClientError::NoDispatchTool)?;
        let result = self
            .call_native_tool(&tool.name, Some(arguments), &options)
            .await?;
        let facts = facts_of(&result).filter(|_| result.is_error == Some(true));
        let code = facts.and_then(|facts| Some(facts.get("code")?.as_str()?.to_owned()));
        let server_code = facts.and_then(|facts| facts.get("serverCode")?.as_i64());
        let Some(code) = code else {
            return Ok(result);
        };
        let error = ClientError::from_failed_result(result);
        Err(match (error, server_code) {
            (ClientError::ToolFailed { text, .. }, Some(code)) => ClientError::Protocol {
                code,
                message: text,
                data: None,
            },
            (ClientError::ToolFailed { text, result, .. }, None) => ClientError::ToolFailed {
                code: Some(code),
                text,
                result,
            },
            (error, _) => error,
        })
    }
}

pub(crate) fn text_of(result: CallToolResult) -> Result<ResultText, ClientError> {
    if result.is_error == Some(true) {
        return Err(ClientError::from_failed_result(result));
    }
    let text = result.content.first().and_then(|item| item.as_text());
    let text = text.ok_or_else(|| ClientError::decode("the answer", "it has no text"))?;
    Ok(ResultText {
        text: text.text.clone(),
        facts: facts_of(&result).cloned().unwrap_or_default(),
    })
}

/// What the tool says about a call in `_meta`, or in `structuredContent`, where other implementations and earlier
/// versions put it.
fn facts_of(result: &CallToolResult) -> Option<&JsonObject> {
    let meta = result.meta.as_ref();
    let facts = meta.and_then(|meta| meta.0.get(DISPATCH_META_KEY));
    facts.or(result.structured_content.as_ref())?.as_object()
}

pub(crate) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_may_have_a_uri_and_no_name() {
        let answer = json!({"totalMatches": 2, "results": [
            {"alias": "c1", "kind": "resource", "uri": "a://b"},
            {"alias": "c1", "kind": "resource template", "uriTemplate": "a://{b}", "name": "any"}]});
        let answer: SearchAnswer = serde_json::from_value(answer).unwrap();
        let found: Vec<_> = answer
            .results
            .iter()
            .map(|found| (found.name.as_str(), found.uri.as_deref()))
            .collect();
        assert_eq!(found, [("", Some("a://b")), ("any", Some("a://{b}"))]);
    }
}
