//! The server behind a running `mcp-proxy URL` on this machine. Its clients know only the proxy's URL, but a sign-in belongs to the
//! server.

use mcp_proxy_session::REDACTED_CREDENTIAL;
use mcp_proxy_transport::control::running_proxies;
use url::{Host, Url};

use crate::run::control::{greet, is_hub};

/// The URL of the server behind the proxy that listens at this URL, if one does and its server has a URL that may be told.
pub async fn server_behind(proxy: &Url) -> Option<Url> {
    if !is_of_this_machine(proxy) {
        return None;
    }
    let running = running_proxies();
    for running in running.iter().filter(|running| !is_hub(running)) {
        let Ok(hello) = greet(running).await else {
            continue;
        };
        let listens = hello.listens.and_then(|url| Url::parse(&url).ok());
        let is_it = listens.is_some_and(|url| {
            is_of_this_machine(&url) && url.port_or_known_default() == proxy.port_or_known_default()
        });
        if is_it && !hello.target.contains(REDACTED_CREDENTIAL) {
            let target = Url::parse(&hello.target).ok();
            return target.filter(|url| matches!(url.scheme(), "http" | "https"));
        }
    }
    None
}

fn is_of_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
