//! The one list of methods. Dispatch, `ctl --help` and the check of `docs/control.md` are made from it.
//!
//! To add a method: a variant and its line in [`METHODS`], a request type with its result, its arm in `run_method` of the
//! core, and its section in the document.

/// Every method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `hello`
    Hello,
    /// `subscribe`
    Subscribe,
    /// `servers.list`
    ServersList,
    /// `servers.restart`
    ServersRestart,
    /// `servers.enable`
    ServersEnable,
    /// `servers.disable`
    ServersDisable,
    /// `servers.reload`
    ServersReload,
    /// `connections.list`
    ConnectionsList,
    /// `get`
    Get,
    /// `stats`
    Stats,
    /// `intercept.get`
    InterceptGet,
    /// `intercept.set`
    InterceptSet,
    /// `hold.list`
    HoldList,
    /// `hold.edit`
    HoldEdit,
    /// `hold.extend`
    HoldExtend,
    /// `hold.resolve`
    HoldResolve,
    /// `step`
    Step,
    /// `continue`
    Continue,
    /// `breakpoints.list`
    BreakpointsList,
    /// `breakpoints.add`
    BreakpointsAdd,
    /// `breakpoints.remove`
    BreakpointsRemove,
    /// `rules.list`
    RulesList,
    /// `rules.reload`
    RulesReload,
    /// `replay`
    Replay,
    /// `note`
    Note,
    /// `export`
    Export,
    /// `save`
    Save,
    /// `relay.pair`
    RelayPair,
    /// `shutdown`
    Shutdown,
}

/// A method in words.
#[derive(Clone, Copy, Debug)]
pub struct MethodInfo {
    /// Which.
    pub method: Method,
    /// Its name on the wire.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// What it takes.
    pub params: &'static [Param],
}

/// A parameter in words.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// How it is written.
    pub kind: ParamKind,
    /// What it is.
    pub about: &'static str,
}

/// How a parameter is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A string.
    Text,
    /// A number, boolean or other JSON value.
    Json,
    /// A message, which must be JSON: a word that is not JSON is a mistake and not a string.
    Message,
}

/// All methods.
pub const METHODS: &[MethodInfo] = &[
    info(
        Method::Hello,
        "hello",
        "who the proxy is: version, session, record, process, servers, connections",
        &[text(
            "name",
            "what the viewer calls itself; verdicts name it",
        )],
    ),
    info(
        Method::Subscribe,
        "subscribe",
        "notices from now on: rows, holds, lagged",
        &[],
    ),
    info(
        Method::ServersList,
        "servers.list",
        "the servers, and how those of a hub are doing",
        &[],
    ),
    info(
        Method::ServersRestart,
        "servers.restart",
        "restarts a server of a hub",
        &[text("server", "which")],
    ),
    info(
        Method::ServersEnable,
        "servers.enable",
        "lets clients of a hub use a server again",
        &[text("server", "which")],
    ),
    info(
        Method::ServersDisable,
        "servers.disable",
        "stops a server of a hub and offers nothing of it",
        &[text("server", "which")],
    ),
    info(
        Method::ServersReload,
        "servers.reload",
        "reads the config files of a hub again; a mistake in them changes nothing",
        &[],
    ),
    info(
        Method::ConnectionsList,
        "connections.list",
        "the connections, the newest first",
        &[
            text("server", "only those to this server"),
            param("limit", "at most this many (default 100, at most 1000)"),
        ],
    ),
    info(
        Method::Get,
        "get",
        "recorded messages by sequence number",
        &[
            param("from", "the first (default 1)"),
            param("to", "the last (default: the newest)"),
            param("last", "in place of both: the last N messages"),
            param("limit", "at most this many (default 100, at most 1000)"),
            param("raw", "true: with their bodies"),
        ],
    ),
    info(Method::Stats, "stats", "counts, and what is held", &[]),
    info(
        Method::InterceptGet,
        "intercept.get",
        "the mode, and which holds there are",
        &[
            param("connection", "those of this connection (1 or c1)"),
            text("server", "those of this server"),
        ],
    ),
    info(
        Method::InterceptSet,
        "intercept.set",
        "sets the mode",
        &[
            text(
                "mode",
                "passthrough or intercept; inherit: no mode of its own any more",
            ),
            param("connection", "of this connection only (1 or c1)"),
            text("server", "of this server only"),
        ],
    ),
    info(
        Method::HoldList,
        "hold.list",
        "the messages that are held",
        &[
            param("hold", "only this one"),
            param("raw", "true: with their bodies"),
        ],
    ),
    info(
        Method::HoldEdit,
        "hold.edit",
        "stops the time of a held message while this viewer has it open in an editor",
        &[
            param("hold", "which"),
            param("open", "true: opened; false: closed"),
        ],
    ),
    info(
        Method::HoldExtend,
        "hold.extend",
        "gives a held message more time",
        &[
            param("hold", "which"),
            param("seconds", "how much (default 60, at most 86400)"),
        ],
    ),
    info(
        Method::HoldResolve,
        "hold.resolve",
        "decides about a held message; the first decision counts",
        &[
            param("hold", "which"),
            text("action", "forward, modify, drop or error"),
            message("raw", "modify: the new message, as JSON"),
            text("raw_text", "modify: the same as a text"),
            text("raw_b64", "modify: the same in base64"),
            param("as_is", "modify: true sends what is not JSON"),
            param(
                "headers",
                "forward, modify: HTTP headers to set or remove, as {\"x-a\":\"1\",\"cookie\":null}",
            ),
            param("code", "error: its code"),
            text("message", "error: its text"),
        ],
    ),
    info(
        Method::Step,
        "step",
        "forwards the oldest held message and holds the next",
        &[],
    ),
    info(
        Method::Continue,
        "continue",
        "forwards everything that is held",
        &[],
    ),
    info(
        Method::BreakpointsList,
        "breakpoints.list",
        "the breakpoints",
        &[],
    ),
    info(
        Method::BreakpointsAdd,
        "breakpoints.add",
        "holds the messages that match a filter",
        &[
            text("filter", "which"),
            text("direction", "only client_to_server or server_to_client"),
            param("hits", "it is removed after this many hits; 1 is one-shot"),
            param("connection", "only messages of this connection (1 or c1)"),
            text("server", "only messages of this server"),
        ],
    ),
    info(
        Method::BreakpointsRemove,
        "breakpoints.remove",
        "removes a breakpoint",
        &[param("id", "which")],
    ),
    info(
        Method::RulesList,
        "rules.list",
        "the rules that messages go through now, and where they come from",
        &[
            param("connection", "only those for the server of this connection"),
            text("server", "only those for this server"),
        ],
    ),
    info(
        Method::RulesReload,
        "rules.reload",
        "reads the rules file again; one that is wrong changes nothing",
        &[],
    ),
    info(
        Method::Replay,
        "replay",
        "sends a client's message to the server again; the client gets no answer",
        &[
            param("sequence", "which"),
            message(
                "raw",
                "the message to send in its place: JSON, or a string of it",
            ),
            param("as_is", "true sends what is not JSON-RPC"),
            text(
                "session",
                "fresh (default): a new one; live: that of the message (see below)",
            ),
            param("timeout_ms", "how long it may take (default 30000)"),
            param(
                "connection",
                "live: its session; fresh: its server (1 or c1)",
            ),
            text("server", "fresh: this server"),
        ],
    ),
    info(
        Method::Note,
        "note",
        "writes a note into the record, or marks a message there",
        &[
            text("text", "the text"),
            param("sequence", "in place of a text: the message to mark"),
            text("mark", "with it: set or removed"),
        ],
    ),
    info(
        Method::Export,
        "export",
        "has the proxy write the record in another format",
        &[
            text("format", "as in `mcp-proxy export --output-format`"),
            text("output", "the file's absolute path"),
            param("force", "true overwrites a file that is there"),
        ],
    ),
    info(
        Method::Save,
        "save",
        "has the proxy copy the record",
        &[text(
            "output",
            "the copy's absolute path; nothing is overwritten",
        )],
    ),
    info(
        Method::RelayPair,
        "relay.pair",
        "makes a code that a browser exchanges for a token of a user, once",
        &[
            text("user", "whose token"),
            param(
                "lifetime_s",
                "how long the token is valid (default 21 days)",
            ),
            text(
                "connection_url",
                "where the browser connects to (default: where it sends the code)",
            ),
        ],
    ),
    info(
        Method::Shutdown,
        "shutdown",
        "shuts the proxy down cleanly, as a signal does",
        &[],
    ),
];

impl Method {
    /// The method with this name.
    pub fn named(name: &str) -> Option<Method> {
        let known = METHODS.iter().find(|info| info.name == name);
        known.map(|info| info.method)
    }

    /// Whether it is answered only when a server has answered or a file is written. A viewer uses a connection of its own for
    /// it, so that nothing else waits for the answer.
    pub fn is_slow(self) -> bool {
        matches!(self, Method::Replay | Method::Export | Method::Save)
    }

    /// Its line in [`METHODS`].
    pub fn info(self) -> &'static MethodInfo {
        let known = METHODS.iter().find(|info| info.method == self);
        // A test checks that every variant has its line.
        known.unwrap_or(&METHODS[0])
    }
}

const fn info(
    method: Method,
    name: &'static str,
    about: &'static str,
    params: &'static [Param],
) -> MethodInfo {
    MethodInfo {
        method,
        name,
        about,
        params,
    }
}

const fn param(name: &'static str, about: &'static str) -> Param {
    Param {
        name,
        kind: ParamKind::Json,
        about,
    }
}

const fn text(name: &'static str, about: &'static str) -> Param {
    Param {
        name,
        kind: ParamKind::Text,
        about,
    }
}

const fn message(name: &'static str, about: &'static str) -> Param {
    Param {
        name,
        kind: ParamKind::Message,
        about,
    }
}
