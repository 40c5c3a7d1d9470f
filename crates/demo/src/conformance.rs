//! What the official conformance suite calls by name.
//!
//! `@modelcontextprotocol/conformance` drives a server over the wire and expects certain tools, resources and
//! prompts to be there, each behaving as its scenario describes. They are kept apart from the demo content:
//! nobody should have to read them to understand the server, and the demo does not show them.
//!
//! | module | fixtures for |
//! |---|---|
//! | `content` | the kinds of content a tool can return |
//! | `session` | logging, progress, sampling, elicitation, change notices, hanging up |
//! | `input_required` | 2026-07-28: answers that ask for more input |
//! | `tasks` | 2026-07-28: the tasks extension |
//! | `resources`, `prompts` | what they say |

mod content;
mod input_required;
pub(crate) mod prompts;
pub(crate) mod resources;
mod session;
mod tasks;

use rmcp::handler::server::router::tool::ToolRouter;

use crate::server::DemoServer;

/// All fixture tools.
pub(crate) fn tools() -> ToolRouter<DemoServer> {
    DemoServer::content_tools()
        + DemoServer::session_tools()
        + DemoServer::input_required_tools()
        + DemoServer::task_tools()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixtures_and_demo_tools_share_no_name() {
        let demo = DemoServer::demo_tools().list_all();
        let fixtures = tools();
        for tool in demo {
            assert!(!fixtures.has_route(&tool.name), "{}", tool.name);
        }
    }
}
