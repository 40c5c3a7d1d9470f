//! What the configuration denies does not exist, whatever a client tries.

use std::sync::Arc;

use insta::assert_snapshot;
use mcp_proxy_hub::config::StartMode;
use mcp_proxy_hub::{AllowedNames, ServerNaming, ServerSettings};

use crate::dispatch::last;
use crate::transcript::{Transcript, server, settings};

/// A server that nobody has listed, with a secret resource, a secret template and a secret prompt.
fn secretive() -> ServerSettings {
    let deny = |names: &[&str]| AllowedNames {
        allow: None,
        deny: names.iter().map(|name| (*name).to_owned()).collect(),
        ..AllowedNames::default()
    };
    let settings = server("a");
    ServerSettings {
        naming: Arc::new(ServerNaming {
            resources: deny(&["data://s/secret", "data://user/{id}"]),
            prompts: deny(&["bad"]),
            ..ServerNaming::clone(&settings.naming)
        }),
        start: StartMode::Lazy,
        ..settings
    }
}

#[test]
fn what_is_denied_does_not_exist_before_its_server_is_listed() {
    let mut hub = Transcript::new(settings(), vec![secretive()]);
    hub.client();
    hub.initialize(1, "{}");
    hub.take();
    for uri in ["data://a/s/secret", "data://s/secret", "data://a/user/5"] {
        for method in ["resources/read", "resources/subscribe"] {
            hub.client_says(
                1,
                &format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"uri":"{uri}"}}}}"#
                ),
            );
        }
    }
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"a_bad"}}"#,
    );
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"proxy","arguments":{"action":"call","type":"resource","path":"data://a/s/secret"}}}"#);
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":4,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"data://a/user/{id}"},"argument":{"name":"id","value":""}}}"#);
    // Nothing has started the server so far; this does.
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"uri":"data://a/s/open"}}"#,
    );
    assert_snapshot!(hub.take());
}

#[test]
fn a_template_does_not_give_what_is_denied() {
    let mut hub = Transcript::new(settings(), vec![secretive()]);
    hub.client();
    hub.initialize(1, "{}");
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"data://a/s/open"}}"#,
    );
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{}},"serverInfo":{"name":"s","version":"1"}}}"#);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":2,"result":{"resources":[{"uri":"data://s/secret","name":"s"}]}}"#,
    );
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"resourceTemplates":[{"uriTemplate":"data://s/{x}","name":"t"}]}}"#);
    hub.take();
    for uri in ["data://a/s/secret", "data://s/secret", "data://a/s/other"] {
        hub.client_says(
            1,
            &format!(
                r#"{{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{{"uri":"{uri}"}}}}"#
            ),
        );
    }
    assert_snapshot!(hub.take());
}

#[test]
fn a8_no_spelling_of_a_denied_uri_reaches_the_server() {
    let mut secretive = secretive();
    let deny = ["file:///tmp/priv/*", "https://example.com/priv*"];
    secretive.naming = Arc::new(ServerNaming {
        resources: AllowedNames {
            allow: None,
            deny: deny.map(str::to_owned).to_vec(),
            ..AllowedNames::default()
        },
        ..ServerNaming::clone(&secretive.naming)
    });
    let mut hub = Transcript::new(settings(), vec![secretive]);
    hub.client();
    hub.initialize(1, "{}");
    let read = |uri: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"{uri}"}}}}"#
        )
    };
    hub.client_says(1, &read("x://a/open"));
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{}},"serverInfo":{"name":"s","version":"1"}}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":2,"result":{"resources":[]}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"resourceTemplates":[{"uriTemplate":"https://{+url}","name":"w"},{"uriTemplate":"file:{+path}","name":"f"}]}}"#);
    hub.take();
    for uri in [
        "file:tmp/priv/1",
        "https:example.com/priv1",
        "https://example.com./priv1",
        "https://EXAMPLE.com/priv1",
        "https://ｅxample.com/priv1",
    ] {
        hub.client_says(1, &read(uri));
        let said = hub.take();
        assert!(!said.contains("S1<"), "{said}");
        assert_eq!(last(&said, "C1")["error"]["code"], -32602, "{said}");
    }
    for uri in ["file:tmp/pub/1", "https://example.com/pub1"] {
        hub.client_says(1, &read(uri));
        assert_eq!(last(&hub.take(), "S1")["params"]["uri"], uri);
    }
}
