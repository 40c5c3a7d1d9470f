//! Conversations with a hub as plain text.
//!
//! A test says what clients and servers send; the transcript shows that and everything that the hub does about it:
//! `C1>` a client sends, `C1<` a client receives, `S1<` a server receives, `S1>` a server sends, `!` anything else.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_proxy_hub::config::{EraOffer, RestartPolicy, SharingScope, StartMode};
use mcp_proxy_hub::dispatch_tool::DispatchToolOptions;
use mcp_proxy_hub::proxy_tool::ProxyToolOptions;
use mcp_proxy_hub::{
    CatalogBuild, ClientId, Hub, HubAction, HubSettings, KnownEras, LinkClosed, LinkId, NewServer,
    OwnTool, OwnToolUse, ProfileSettings, ServerChange, ServerNaming, ServerSettings, SignInChange,
    SignInId, SpillSettings, ToolExposure, ViewFilter, WrittenUpTo, default_prefix,
};
use mcp_proxy_wire::{Message, Origin};
use serde_json::Value;

/// The listing of a server with one tool.
pub(crate) const ECHO: &str = r#"[{"name":"echo","inputSchema":{"type":"object"}}]"#;

/// A hub, and what was said so far.
pub(crate) struct Transcript {
    hub: Hub,
    now: Instant,
    clients: Vec<ClientId>,
    /// The newest link of each server.
    links: BTreeMap<usize, LinkId>,
    servers: BTreeMap<LinkId, usize>,
    /// Builds of the catalog that take long.
    builds: Option<Vec<CatalogBuild>>,
    /// How often a listing was kept for the next start.
    saved: usize,
    /// The sign-in that was begun last.
    sign_in: Option<SignInId>,
    text: String,
}

/// A call of a tool.
pub(crate) fn call(id: u32, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"x":1}}}}}}"#
    )
}

/// A server with the settings that tests start from.
pub(crate) fn server(name: &str) -> ServerSettings {
    let mut naming = ServerNaming::new(name, format!("{name}-alias"));
    naming.prefix = Some(default_prefix(name));
    ServerSettings {
        naming: Arc::new(naming),
        disabled: None,
        is_turned_off: false,
        is_remote: false,
        start: StartMode::Eager,
        eras: KnownEras::None,
        scope: SharingScope::Auto,
        start_timeout: Duration::from_secs(10),
        list_timeout: Duration::from_secs(10),
        call_timeout: Some(Duration::from_secs(60)),
        idle_stop: None,
        restart: RestartPolicy::Always,
        restart_limit: None,
        cache_ttl: None,
        roots: None,
        last_listing: None,
    }
}

/// A hub that lists all tools and the `proxy` tool.
pub(crate) fn settings() -> HubSettings {
    let proxy_tool = ProxyToolOptions::default();
    HubSettings {
        profiles: vec![ProfileSettings {
            name: String::new(),
            filter: ViewFilter {
                tools: ToolExposure::All,
                ..ViewFilter::default()
            },
            proxy_tool: OwnToolUse::Offered,
            dispatch_tool: OwnToolUse::Offered,
            read_tool: OwnToolUse::Absent,
        }],
        proxy_tool,
        dispatch_tool: DispatchToolOptions::default(),
        spill: SpillSettings::default(),
        server_info: r#"{"name":"hub","version":"1"}"#.into(),
        client_info: r#"{"name":"hub","version":"1"}"#.into(),
        settle: Duration::from_millis(900),
        first_list: Duration::from_secs(10),
        era: EraOffer::Auto,
        start_patience: Duration::from_secs(15),
    }
}

/// The same, with the definition of the `proxy` tool in the list.
pub(crate) fn settings_with_proxy_tool() -> HubSettings {
    let mut settings = settings();
    settings.profiles[0].filter.own_tools = vec![OwnTool::Proxy(settings.proxy_tool.clone())];
    settings.profiles[0].filter.tools = ToolExposure::None;
    settings
}

impl Transcript {
    pub(crate) fn new(settings: HubSettings, servers: Vec<ServerSettings>) -> Transcript {
        let now = Instant::now();
        let mut transcript = Transcript {
            hub: Hub::new(settings, servers, now),
            now,
            clients: Vec::new(),
            links: BTreeMap::new(),
            servers: BTreeMap::new(),
            builds: None,
            saved: 0,
            sign_in: None,
            text: String::new(),
        };
        transcript.act();
        transcript
    }

    /// One server, named `a`, with these tools, and one client; both have said hello.
    pub(crate) fn ready(tools: &str) -> Transcript {
        let mut transcript = Transcript::new(settings(), vec![server("a")]);
        transcript.start_server(1, tools);
        transcript.client();
        transcript.initialize(1, "{}");
        transcript.text.clear();
        transcript
    }

    /// Connects a client. They are counted from 1.
    pub(crate) fn client(&mut self) {
        let client = self.hub.client_opened("", None).unwrap();
        self.clients.push(client);
        self.act();
    }

    pub(crate) fn initialize(&mut self, client: usize, capabilities: &str) {
        self.client_says(client, &format!(
            r#"{{"jsonrpc":"2.0","id":"init","method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"client{client}","version":"1"}}}}}}"#
        ));
    }

    pub(crate) fn client_leaves(&mut self, client: usize) {
        self.line(&format!("! C{client} leaves"));
        self.hub.client_closed(self.clients[client - 1], self.now);
        self.act();
    }

    pub(crate) fn client_says(&mut self, client: usize, message: &str) {
        self.line(&format!("C{client}> {message}"));
        let id = self.clients[client - 1];
        let message = Message::parse(message.to_owned());
        self.hub.client_message(id, &message, None, self.now);
        self.act();
    }

    /// The link that was dialled last is open.
    pub(crate) fn server_opens(&mut self, server: usize) {
        self.line(&format!("! S{server} is open"));
        self.hub.link_opened(self.links[&server]);
        self.act();
    }

    pub(crate) fn server_says(&mut self, server: usize, message: &str) {
        self.line(&format!("S{server}> {message}"));
        self.says(server, message, Origin::Server);
    }

    /// The link to a server answers in its place.
    pub(crate) fn link_says(&mut self, server: usize, message: &str) {
        self.line(&format!("! the link of S{server}> {message}"));
        self.says(server, message, Origin::Proxy);
    }

    fn says(&mut self, server: usize, message: &str, origin: Origin) {
        let message = Message::parse(message.to_owned());
        let link = self.links[&server];
        self.hub.link_message(link, &message, origin, self.now);
        self.act();
    }

    pub(crate) fn server_ends(&mut self, server: usize, reason: &str) {
        self.line(&format!("! S{server} ends: {reason}"));
        let closed = LinkClosed {
            reason: reason.to_owned(),
            is_orderly: false,
            sign_in: None,
        };
        let link = self.links[&server];
        self.hub.link_closed(link, &closed, self.now);
        self.act();
    }

    /// The process of a server exits with status 0.
    pub(crate) fn server_exits(&mut self, server: usize) {
        self.line(&format!("! S{server} exits"));
        let closed = LinkClosed {
            reason: "it exited".to_owned(),
            is_orderly: true,
            sign_in: None,
        };
        let link = self.links[&server];
        self.hub.link_closed(link, &closed, self.now);
        self.act();
    }

    /// The proxy answers the calls of a server that has gone, and then reports its end, by which time there may be a new link.
    pub(crate) fn server_crashes_with_calls_open(&mut self, server: usize, reason: &str) {
        let link = self.links[&server];
        self.server_says(
            server,
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-31002,"message":"the server has gone"}}"#,
        );
        self.line(&format!("! the old link of S{server} ends: {reason}"));
        let closed = LinkClosed {
            reason: reason.to_owned(),
            is_orderly: false,
            sign_in: None,
        };
        self.hub.link_closed(link, &closed, self.now);
        self.act();
    }

    /// The server `a` prints a line on stderr.
    pub(crate) fn prints(&mut self, line: &str) {
        self.line(&format!("! a prints: {line}"));
        let is_news = self.hub.server_printed("a", line);
        self.text += match is_news {
            true => "",
            false => "! a line that was shown before\n",
        };
        self.act();
    }

    /// From now on a new catalog is not there at once.
    pub(crate) fn slow_builds(&mut self) {
        self.builds = Some(Vec::new());
    }

    /// The catalogs that were begun are finished.
    pub(crate) fn builds_finish(&mut self) {
        for build in std::mem::take(self.builds.as_mut().unwrap()) {
            self.line("! a catalog is made");
            self.hub.catalog_built(build.run(), self.now);
            self.act();
        }
    }

    /// The transport of a server fails: requests up to this number may have reached it.
    pub(crate) fn server_has_read_up_to(&mut self, server: usize, number: u64) {
        self.line(&format!("! S{server} has been written to up to {number}"));
        let link = self.links[&server];
        self.hub.link_written(link, WrittenUpTo(number));
    }

    /// A new configuration. Servers are numbered anew.
    pub(crate) fn reconfigure(&mut self, settings: HubSettings, servers: Vec<NewServer>) {
        self.line("! a new configuration");
        let new = self.hub.prepare(settings, servers);
        self.hub.reconfigure(new.run(), self.now);
        self.act();
    }

    /// The same, with a catalog that takes long: something happens while it is made.
    pub(crate) fn reconfigure_slowly(
        &mut self,
        settings: HubSettings,
        servers: Vec<NewServer>,
        meanwhile: impl FnOnce(&mut Transcript),
    ) {
        self.line("! a new configuration is prepared");
        let new = self.hub.prepare(settings, servers);
        meanwhile(self);
        self.line("! it is taken on");
        self.hub.reconfigure(new.run(), self.now);
        self.act();
    }

    /// The hub stops, and has no time for open requests.
    pub(crate) fn stops_at_once(&mut self) {
        self.line("! the hub stops");
        self.hub.stop_taking_requests();
        self.act();
        assert!(!self.hub.is_drained());
        self.hub.fail_open_requests(self.now);
        self.act();
        assert!(self.hub.is_drained());
    }

    /// Changes the server `a`.
    pub(crate) fn change(&mut self, change: ServerChange) {
        self.line(&format!("! {change:?}"));
        if let Err(error) = self.hub.change_server("a", change, self.now) {
            self.line(&format!("! refused: {error}"));
        }
        self.act();
    }

    /// The user's sign-in to the server `a` has changed.
    pub(crate) fn sign_in_changed(&mut self, change: SignInChange) {
        self.line(&format!("! sign-in: {change:?}"));
        self.hub.sign_in_changed("a", change, self.now);
        self.act();
    }

    /// The page of the last sign-in that was begun is known.
    pub(crate) fn sign_in_begun(&mut self, url: &str) {
        self.line("! the page is known");
        self.hub.sign_in_begun(self.sign_in.unwrap(), url, self.now);
        self.act();
    }

    /// The last sign-in that was begun is over.
    pub(crate) fn sign_in_ended(&mut self, outcome: Result<(), String>) {
        self.line(&format!("! sign-in: {outcome:?}"));
        self.hub
            .sign_in_ended(self.sign_in.unwrap(), outcome, self.now);
        self.act();
    }

    /// Plays a legacy server with these tools until its lists are read.
    pub(crate) fn start_server(&mut self, server: usize, tools: &str) {
        self.server_opens(server);
        self.server_says(
            server,
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#,
        );
        self.server_says(
            server,
            &format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"tools":{tools}}}}}"#),
        );
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.line(&format!("! {time:?} pass"));
        self.now += time;
        if self
            .hub
            .next_deadline()
            .is_some_and(|deadline| deadline <= self.now)
        {
            self.hub.wake(self.now);
        }
        self.act();
    }

    /// What was said since the last call.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    pub(crate) fn status(&self) -> Vec<String> {
        let servers = self.hub.status().into_iter();
        servers
            .map(|server| {
                format!(
                    "{} {:?} {:?} stale={}",
                    server.name, server.state, server.counts, server.stale
                )
            })
            .collect()
    }

    /// What `status` says is wrong with the lists of all servers.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let servers = self.hub.status().into_iter();
        servers.flat_map(|server| server.warnings).collect()
    }

    pub(crate) fn saved(&self) -> usize {
        self.saved
    }

    /// How often the first server was started again.
    pub(crate) fn restarts(&self) -> u32 {
        self.hub.status().swap_remove(0).restarts
    }

    /// What went wrong last with the first server.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.hub.status().swap_remove(0).last_error
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn act(&mut self) {
        let mut actions = VecDeque::from(self.hub.take_actions());
        while let Some(action) = actions.pop_front() {
            let line = match action {
                HubAction::Dial { link, server } => {
                    let number = usize::from(server.0) + 1;
                    self.links.insert(number, link);
                    self.servers.insert(link, number);
                    format!("! dial S{number}")
                }
                HubAction::Close(link) => format!("! close S{}", self.servers[&link]),
                HubAction::ToServer { link, message, .. } => {
                    format!("S{}< {}", self.servers[&link], shown(&message))
                }
                HubAction::ToClient(client, message) => {
                    let number = self.clients.iter().position(|id| *id == client).unwrap() + 1;
                    format!("C{number}< {}", shown(&message))
                }
                HubAction::BeginSignIn { sign_in, server } => {
                    self.sign_in = Some(sign_in);
                    format!("! begin sign-in S{}", usize::from(server.0) + 1)
                }
                HubAction::EndSignIn(_) => "! end sign-in".to_owned(),
                HubAction::CloseClient(client) => format!("! disconnect {client:?}"),
                HubAction::BuildCatalog(build) if self.builds.is_some() => {
                    self.builds.as_mut().unwrap().push(build);
                    "! a catalog is being made".to_owned()
                }
                HubAction::BuildCatalog(build) => {
                    self.hub.catalog_built(build.run(), self.now);
                    actions.extend(self.hub.take_actions());
                    continue;
                }
                HubAction::Render(rendering) => {
                    self.hub.answer_rendered(rendering.run(), self.now);
                    actions.extend(self.hub.take_actions());
                    continue;
                }
                HubAction::Work(work) => {
                    self.hub.work_finished(work.run(self.now), self.now);
                    actions.extend(self.hub.take_actions());
                    continue;
                }
                HubAction::SaveListing { .. } => {
                    self.saved += 1;
                    continue;
                }
                HubAction::ForgetFiles(_) => continue,
                HubAction::Log(text) => format!("! log: {text}"),
                HubAction::Audit(record) => {
                    format!(
                        "! audit: {} {} {:?}",
                        record.server.as_deref().unwrap_or("-"),
                        record.what,
                        record.outcome
                    )
                }
            };
            self.line(&line);
        }
    }
}

/// Only what is JSON may leave the hub.
fn shown(message: &Message) -> String {
    let text = String::from_utf8(message.raw().to_vec()).unwrap();
    serde_json::from_str::<Value>(&text).unwrap();
    text
}
