//! Where a server may lead a sign-in to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use crate::AuthError;
use crate::server_key::{host_of, is_loopback};

/// What one server may lead to. The person named the server and the config names more hosts; everything else is the server's word.
#[derive(Debug, Clone)]
pub(crate) struct AddressPolicy {
    server: Url,
    is_local: bool,
    trusted_hosts: Vec<String>,
}

impl AddressPolicy {
    pub(crate) fn server(&self) -> &Url {
        &self.server
    }

    pub(crate) fn new(server: &Url, named_by_config: impl IntoIterator<Item = String>) -> Self {
        let own = server.host_str().map(str::to_owned);
        let trusted = named_by_config.into_iter().chain(own);
        AddressPolicy {
            server: server.clone(),
            is_local: is_loopback(server),
            trusted_hosts: trusted.map(|host| plain_host(&host)).collect(),
        }
    }

    /// Refuses URLs by their scheme and, if their host is an address, by that.
    pub(crate) fn check(&self, url: &Url) -> Result<(), AuthError> {
        let is_secure = match url.scheme() {
            "https" => url.host().is_some(),
            "http" => is_loopback(url),
            _ => false,
        };
        if !is_secure {
            let host = match url.host() {
                Some(_) => host_of(url),
                None => format!("a {}: URL", url.scheme()),
            };
            let server = host_of(&self.server);
            return Err(AuthError::InsecureUrl { server, host });
        }
        match url.host() {
            Some(Host::Ipv4(address)) => self.check_address(url, address.into()),
            Some(Host::Ipv6(address)) => self.check_address(url, address.into()),
            // `localhost` is refused even before it is resolved: a browser opens such URLs as well.
            Some(Host::Domain(_)) if is_loopback(url) => {
                self.check_address(url, Ipv4Addr::LOCALHOST.into())
            }
            Some(Host::Domain(_)) | None => Ok(()),
        }
    }

    /// Refuses an address that the host of `url` turned out to have.
    pub(crate) fn check_address(&self, url: &Url, address: IpAddr) -> Result<(), AuthError> {
        let host = plain_host(url.host_str().unwrap_or_default());
        let is_allowed = match AddressKind::of(address) {
            AddressKind::Public => true,
            AddressKind::Loopback if self.is_local => true,
            AddressKind::Loopback | AddressKind::Private => self.trusted_hosts.contains(&host),
        };
        match is_allowed {
            true => Ok(()),
            false => Err(AuthError::PrivateAddress {
                server: host_of(&self.server),
                host: host_of(url),
            }),
        }
    }
}

/// A host as it is compared: the form that `Url` gives it, without the last dot and the brackets of IPv6.
fn plain_host(host: &str) -> String {
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    host.to_ascii_lowercase()
}

#[derive(Debug, PartialEq, Eq)]
enum AddressKind {
    Public,
    Loopback,
    /// Private, link-local, shared, reserved or multicast.
    Private,
}

impl AddressKind {
    fn of(address: IpAddr) -> AddressKind {
        match address {
            IpAddr::V4(address) => AddressKind::of_v4(address),
            IpAddr::V6(address) => AddressKind::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> AddressKind {
        let [first, second, third, _] = address.octets();
        if address.is_loopback() {
            return AddressKind::Loopback;
        }
        let is_special = address.is_private()
            || address.is_link_local()
            || address.is_broadcast()
            || address.is_documentation()
            || address.is_multicast()
            || first == 0
            || first >= 240
            || (first == 100 && (64..128).contains(&second))
            || (first == 198 && (18..20).contains(&second))
            || (first, second, third) == (192, 0, 0);
        match is_special {
            true => AddressKind::Private,
            false => AddressKind::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> AddressKind {
        if address.is_loopback() {
            return AddressKind::Loopback;
        }
        let segments = address.segments();
        let v4 = |high: u16, low: u16| {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            AddressKind::of_v4(Ipv4Addr::new(a, b, c, d))
        };
        match segments {
            // Mapped, compatible, NAT64 and 6to4 addresses are those of IPv4.
            [0, 0, 0, 0, 0, 0xffff | 0, high, low] => v4(high, low),
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
            [0x2002, high, low, ..] => v4(high, low),
            // Only this eighth of the space is given out, except Teredo and documentation.
            [0x2001, 0 | 0xdb8, ..] => AddressKind::Private,
            [first, ..] if first & 0xe000 == 0x2000 => AddressKind::Public,
            _ => AddressKind::Private,
        }
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::{AddressKind, AddressPolicy};
    use crate::AuthError;

    fn check(server: &str, url: &str) -> Result<(), AuthError> {
        let policy = AddressPolicy::new(&Url::parse(server).unwrap(), ["10.1.2.3".to_owned()]);
        policy.check(&Url::parse(url).unwrap())
    }

    #[test]
    fn a_public_server_leads_neither_to_this_machine_nor_into_its_network() {
        let server = "https://mcp.example.com/mcp";
        for url in [
            "https://127.0.0.1/token",
            "https://localhost/token",
            "https://auth.localhost./token",
            "https://[::1]/token",
            "https://192.168.0.7/token",
            "https://169.254.169.254/latest",
            "https://[::ffff:10.0.0.1]/token",
            "https://[fe80::1]/token",
            "https://[fd00::1]/token",
            "https://0x7f000001/token",
        ] {
            let refused = check(server, url);
            assert!(
                matches!(refused, Err(AuthError::PrivateAddress { .. })),
                "{url}: {refused:?}"
            );
        }
        assert_eq!(check(server, "https://auth.example.net/token"), Ok(()));
        assert_eq!(check(server, "https://10.1.2.3/token"), Ok(()));
    }

    #[test]
    fn only_https_is_followed_except_on_this_machine() {
        for (server, url) in [
            ("https://mcp.example.com/mcp", "http://auth.example.com/"),
            ("http://127.0.0.1:8080/mcp", "http://auth.example.com/"),
            ("https://mcp.example.com/mcp", "file:///etc/passwd"),
            ("https://mcp.example.com/mcp", "javascript:alert(1)"),
            ("https://mcp.example.com/mcp", "ftp://mcp.example.com/"),
        ] {
            let refused = check(server, url);
            assert!(
                matches!(refused, Err(AuthError::InsecureUrl { .. })),
                "{url}: {refused:?}"
            );
        }
        assert_eq!(
            check("http://127.0.0.1:8080/mcp", "http://localhost/a"),
            Ok(())
        );
        assert_eq!(
            check("http://localhost/mcp", "http://[::1]:9/token"),
            Ok(())
        );
    }

    #[test]
    fn a_server_on_this_machine_leads_to_no_other_private_address() {
        let refused = check("http://127.0.0.1:8080/mcp", "https://192.168.0.7/token");
        assert!(matches!(refused, Err(AuthError::PrivateAddress { .. })));
    }

    #[test]
    fn what_a_name_turns_out_to_be_counts_too() {
        let check = |server: &str, url: &str, address: &str| {
            let policy = AddressPolicy::new(&Url::parse(server).unwrap(), ["sso.corp".to_owned()]);
            let url = Url::parse(url).unwrap();
            policy.check_address(&url, address.parse().unwrap()).is_ok()
        };
        let server = "https://mcp.example.com/mcp";
        for address in ["127.0.0.1", "10.0.0.9", "169.254.169.254", "::1", "fd00::1"] {
            assert!(!check(server, "https://evil.example.net/token", address));
            assert!(check(server, "https://SSO.corp./token", address));
            assert!(check(server, "https://mcp.example.com/token", address));
        }
        assert!(check(
            server,
            "https://auth.example.net/token",
            "93.184.216.34"
        ));
        let local = "http://127.0.0.1/mcp";
        assert!(check(local, "https://auth.example.net/token", "127.0.0.1"));
        assert!(!check(local, "https://auth.example.net/token", "10.0.0.9"));
    }

    #[test]
    fn the_person_named_the_server_whatever_its_address_is() {
        let server = "https://192.168.0.7/mcp";
        assert_eq!(check(server, "https://192.168.0.7:8443/token"), Ok(()));
        assert!(check(server, "https://192.168.0.8/token").is_err());
    }

    #[test]
    fn hidden_forms_of_addresses_are_known() {
        for (address, kind) in [
            ("2606:4700::1111", AddressKind::Public),
            ("64:ff9b::5db8:d822", AddressKind::Public),
            ("64:ff9b::a9fe:a9fe", AddressKind::Private),
            ("2002:7f00:1::", AddressKind::Loopback),
            ("2001:0:4136:e378::1", AddressKind::Private),
            ("::ffff:127.0.0.1", AddressKind::Loopback),
            ("::", AddressKind::Private),
            ("0.0.0.0", AddressKind::Private),
            ("100.64.0.1", AddressKind::Private),
            ("ff02::1", AddressKind::Private),
            ("93.184.216.34", AddressKind::Public),
        ] {
            assert_eq!(AddressKind::of(address.parse().unwrap()), kind, "{address}");
        }
    }
}
