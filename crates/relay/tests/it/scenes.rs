//! How most conversations begin.

use mcp_proxy_relay::RelaySettings;

use crate::transcript::{Conversation, play_with};

/// A client with a connection to an extension.
pub const CONNECTED: &str = r#"
    E+ extension chrome
    E< {"method":"authenticated"}
    A+ client alice
    A< {"id":0,"result":{"authenticated":true}}
    A> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
    A< {"id":1,"result":{"connection_id":"conn-1"}}
"#;

/// Another client of the same extension.
pub const BOB: &str = r#"
    B+ client bob
    B< {"id":0}
    B> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
    B< {"id":1,"result":{"connection_id":"conn-2"}}
"#;

/// A tab for the first client.
pub const WITH_TAB: &str = r#"
    A> {"id":2,"method":"createTab","params":{"url":"https://a.test"}}
    E< {"id":"conn-1:2","method":"createTab"}
    E> {"id":"conn-1:2","result":{"success":true,"tab":{"id":11,"title":"a"}}}
    A< {"id":2,"result":{"tab":{"id":11}}}
"#;

/// A client with a connection to an extension.
pub fn connected() -> Conversation {
    play_with(RelaySettings::default(), CONNECTED)
}

/// A client with a tab.
pub fn with_tab() -> Conversation {
    let mut conversation = connected();
    conversation.continue_with(WITH_TAB);
    conversation
}

/// A client with a tab, and a second client of the same extension.
pub fn two_clients() -> Conversation {
    two_clients_with(RelaySettings::default())
}

pub fn two_clients_with(settings: RelaySettings) -> Conversation {
    let mut conversation = play_with(settings, CONNECTED);
    conversation.continue_with(WITH_TAB);
    conversation.continue_with(BOB);
    conversation
}
