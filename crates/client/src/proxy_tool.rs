//! The `proxy` tool for any rmcp server.

/// The `proxy` tool of a server.
#[derive(Debug)]
pub struct ProxyTool<S> {
    /// The server.
    server: S,
}

impl<S> ProxyTool<S> {
    /// Adds the tool to `server`.
    pub fn new(server: S) -> ProxyTool<S> {
        ProxyTool { server }
    }

    /// The server.
    pub fn server(&self) -> &S {
        &self.server
    }
}
