//! What the policy of a user allows.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_proxy_relay::{PolicyList, RelayPolicy, RelaySettings};

use crate::scenes::{CONNECTED, WITH_TAB, connected, with_tab};
use crate::transcript::play_with;

fn settings_for(user: &str, policy: RelayPolicy) -> RelaySettings {
    let policies = BTreeMap::from([(user.to_owned(), Arc::new(policy))]);
    RelaySettings {
        user_policies: Arc::new(policies),
        ..RelaySettings::default()
    }
}

#[test]
fn cdp_methods_that_are_denied_reach_no_extension_in_any_wrapping() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"forwardCDPCommand","params":{"method":"Network.getCookies"}}
        A< {"id":3,"error":{"code":-32008,"data":{"reason":"denied"}}}
        A> {"id":4,"method":"Network.getCookies"}
        A< {"id":4,"error":{"code":-32008}}
        A> {"id":5,"method":"sendCommand","params":{"method":"Storage.getCookies"}}
        A< {"id":5,"error":{"code":-32008}}
        A> {"id":6,"method":"chrome.debugger.sendCommand","params":{"args":[{"tabId":11},"DOM.setFileInputFiles"]}}
        A< {"id":6,"error":{"code":-32008}}
        A> {"id":7,"method":"sendCommand","params":{"method":"Page.reload"}}
        E< {"id":"conn-1:7"}
        "#,
    );
    assert_eq!(conversation.relay.counters().denied, 4);
}

#[test]
fn a_policy_for_reading_does_not_bring_tabs_to_the_front() {
    let policy = RelayPolicy::standard().read_only(true);
    let mut conversation = play_with(settings_for("ada", policy), CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"selectTab","params":{"tabId":11,"activate":true}}
        A< {"id":2,"error":{"code":-32008,"data":{"reason":"denied"}}}
        A> {"id":3,"method":"selectTab","params":{"tabId":11,"activate":1}}
        A< {"id":3,"error":{"code":-32008}}
        A> {"id":4,"method":"activateTab","params":{"tabId":11}}
        A< {"id":4,"error":{"code":-32008}}
        A> {"id":5,"method":"selectTab","params":{"tabId":11,"activate":false}}
        E< {"id":"conn-1:5"}
        A> {"id":6,"method":"selectTab","params":{"tabId":11,"activate":null}}
        E< {"id":"conn-1:6"}
        A> {"id":7,"method":"selectTab","params":{"tabId":11}}
        E< {"id":"conn-1:7"}
        "#,
    );
    // Without such a policy it does.
    connected().continue_with(
        r#"
        A> {"id":2,"method":"selectTab","params":{"tabId":11,"activate":true}}
        E< {"id":"conn-1:2","params":{"tabId":11,"activate":true}}
        "#,
    );
}

#[test]
fn a_user_has_a_policy_of_their_own() {
    let denied = ["https://bank.test/*".to_owned()];
    let policy = RelayPolicy::standard()
        .with(PolicyList::Urls, None, Some(&denied))
        .unwrap()
        .read_only(true);
    let mut ada = play_with(settings_for("ada", policy.clone()), CONNECTED);
    ada.continue_with(
        r#"
        A> {"id":2,"method":"createTab","params":{}}
        A< {"id":2,"error":{"code":-32008}}
        A> {"id":3,"method":"getTabs"}
        E< {"id":"conn-1:3"}
        "#,
    );
    // The conversation is Ada's, so Bob's policy means nothing.
    let mut ada = play_with(settings_for("bob", policy), CONNECTED);
    ada.continue_with(WITH_TAB);
}
