//! Direct mode: one user, no tokens, and ids as the seed has them there.

use mcp_proxy_relay::{
    AuthenticationStep, CommandIdMode, Credentials, RelayAccess, RelaySettings,
    SocketAuthentication, SocketPath, SocketRole,
};
use mcp_proxy_wire::Message;

use crate::scenes::{BOB, CONNECTED};
use crate::transcript::{Conversation, play_with};

fn direct() -> RelaySettings {
    RelaySettings {
        access: RelayAccess::Direct,
        ..RelaySettings::default()
    }
}

fn play(transcript: &str) -> Conversation {
    play_with(direct(), transcript)
}

fn opening(path: SocketPath) -> SocketAuthentication {
    SocketAuthentication::new(path, RelayAccess::Direct)
}

fn say(opening: &mut SocketAuthentication, text: &str) -> AuthenticationStep {
    opening.message(&Message::parse(text.to_owned()))
}

fn checked(step: AuthenticationStep) -> Credentials {
    match step {
        AuthenticationStep::Check(shown) => shown,
        other => panic!("{other:?}"),
    }
}

fn is_quiet(step: &AuthenticationStep) -> bool {
    matches!(step, AuthenticationStep::Wait(output) if output.is_empty())
}

#[test]
fn a_published_extension_introduces_itself_and_has_no_token_to_show() {
    for path in [SocketPath::Extension, SocketPath::Any] {
        let mut opening = opening(path);
        let hello = r#"{"type":"handshake","browser":"Chrome","version":"1.9.22"}"#;
        assert!(is_quiet(&say(&mut opening, hello)));
        let failed = r#"{"jsonrpc":"2.0","id":"proxy:1","error":{"message":"No tokens"}}"#;
        let shown = checked(say(&mut opening, failed));
        assert_eq!(shown.role, SocketRole::Extension);
        assert_eq!(
            (shown.name.as_deref(), shown.client_id),
            (Some("Chrome"), None)
        );
    }
}

#[test]
fn an_older_extension_answers_without_a_token() {
    let answer =
        r#"{"jsonrpc":"2.0","id":"proxy:1","result":{"name":"Chrome","client_id":"chrome-5f3e"}}"#;
    let shown = checked(say(&mut opening(SocketPath::Extension), answer));
    assert_eq!(
        (shown.role, shown.client_id.as_deref()),
        (SocketRole::Extension, Some("chrome-5f3e"))
    );
}

#[test]
fn a_silent_socket_is_what_its_path_says() {
    let role = |path| opening(path).silent_peer().map(|peer| peer.role);
    assert_eq!(role(SocketPath::Extension), Some(SocketRole::Extension));
    assert_eq!(role(SocketPath::Client), Some(SocketRole::Client));
    assert_eq!(role(SocketPath::Any), None);
    let mut introduced = opening(SocketPath::Any);
    say(&mut introduced, r#"{"type":"handshake","browser":"Opera"}"#);
    let peer = introduced.silent_peer().unwrap();
    assert_eq!(peer.name.as_deref(), Some("Opera"));
    let tokens = SocketAuthentication::new(SocketPath::Any, RelayAccess::Tokens);
    assert_eq!(tokens.silent_peer(), None);
}

#[test]
fn a_client_may_send_a_handshake_or_leave_it_out() {
    for path in [SocketPath::Client, SocketPath::Any] {
        for params in ["{}", r#"{"accessToken":"t"}"#, r#"{"accessToken":null}"#] {
            let handshake = format!(r#"{{"id":1,"method":"mcp_handshake","params":{params}}}"#);
            let shown = checked(say(&mut opening(path), &handshake));
            assert_eq!(shown.role, SocketRole::Client, "{params}");
            assert!(shown.request.is_some());
        }
        let command = r#"{"id":1,"method":"list_extensions"}"#;
        let AuthenticationStep::Begin(shown) = say(&mut opening(path), command) else {
            panic!("a command is not a handshake");
        };
        assert_eq!(shown.role, SocketRole::Client);
    }
    // An extension's path never makes a client.
    let command = r#"{"id":1,"method":"createTab"}"#;
    assert!(is_quiet(&say(&mut opening(SocketPath::Extension), command)));
}

#[test]
fn ids_are_the_clients_own_without_a_colon() {
    play(CONNECTED).continue_with(
        r#"
        A> {"id":7,"method":"getTabs"}
        E< {"id":7,"method":"getTabs"}
        E> {"id":7,"result":{"tabs":[]}}
        A< {"id":7,"result":{"tabs":[]}}
        A> {"id":"550e8400-e29b-41d4-a716-446655440000","method":"getTabs"}
        E< {"id":"550e8400-e29b-41d4-a716-446655440000","method":"getTabs"}
        E> {"id":"550e8400-e29b-41d4-a716-446655440000","result":{}}
        A< {"id":"550e8400-e29b-41d4-a716-446655440000","result":{}}
    "#,
    );
}

#[test]
fn ids_that_an_extension_would_lose_or_has_seen_become_numbers() {
    play(CONNECTED).continue_with(
        r#"
        A> {"id":0,"method":"getTabs"}
        E< {"id":1,"method":"getTabs"}
        A> {"id":"a:b","method":"getTabs"}
        E< {"id":2,"method":"getTabs"}
        A> {"id":12345678901234567890,"method":"getTabs"}
        E< {"id":3,"method":"getTabs"}
        A> {"id":"","method":"getTabs"}
        E< {"id":4,"method":"getTabs"}
        A> {"id":1,"method":"getTabs"}
        E< {"id":5,"method":"getTabs"}
        E> {"id":5,"result":{"n":5}}
        A< {"id":1,"result":{"n":5}}
        E> {"id":1,"result":{"n":1}}
        A< {"id":0,"result":{"n":1}}
        E> {"id":3,"result":{"n":3}}
        A< {"id":12345678901234567890,"result":{"n":3}}
        E> {"id":2,"result":{"n":2}}
        A< {"id":"a:b","result":{"n":2}}
        E> {"id":4,"result":{"n":4}}
        A< {"id":"","result":{"n":4}}
    "#,
    );
}

#[test]
fn a_second_client_is_told_apart_and_the_next_is_direct_again() {
    let mut conversation = play(CONNECTED);
    conversation.continue_with(BOB);
    conversation.continue_with(
        r#"
        B> {"id":7,"method":"getTabs"}
        E< {"id":"conn-2:7","method":"getTabs"}
        A> {"id":7,"method":"getTabs"}
        E< {"id":"conn-1:7","method":"getTabs"}
        E> {"id":"conn-2:7","result":{"whose":"b"}}
        B< {"id":7,"result":{"whose":"b"}}
        A> {"id":8,"method":"disconnect"}
        A< {"id":7,"error":{"code":-32004}}
        A< {"id":8,"result":{"disconnected":true}}
        E< {"method":"disconnected","params":{"connection_id":"conn-1"}}
        B> {"id":8,"method":"disconnect"}
        B< {"id":8,"result":{"disconnected":true}}
        E< {"method":"disconnected","params":{"connection_id":"conn-2"}}
        A> {"id":9,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":9,"result":{"connection_id":"conn-3"}}
        A> {"id":7,"method":"getTabs"}
        E< {"id":7,"method":"getTabs"}
        E> {"id":"conn-1:7","result":{"late":true}}
        E> {"id":7,"result":{"late":false}}
        A< {"id":7,"result":{"late":false}}
    "#,
    );
}

/// Published extensions have one tab for all commands without a prefix, which is the other client's after that has selected one.
#[test]
fn a_client_that_is_not_alone_any_more_selects_its_tab_again() {
    let mut conversation = play(CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"createTab"}
        E< {"id":2,"method":"createTab"}
        E> {"id":2,"result":{"tab":{"id":11}}}
        A< {"id":2,"result":{"tab":{"id":11}}}
        "#,
    );
    conversation.continue_with(BOB);
    conversation.continue_with(
        r#"
        B> {"id":2,"method":"createTab"}
        E< {"id":"conn-2:2"}
        E> {"id":"conn-2:2","result":{"tab":{"id":12}}}
        B< {"id":2}
        A> {"id":3,"method":"screenshot"}
        A< {"id":3,"error":{"code":-32003,"data":{"reason":"no_tab"}}}
        A> {"id":4,"method":"selectTab","params":{"tabId":11}}
        E< {"id":"conn-1:4","method":"selectTab"}
        E> {"id":"conn-1:4","result":{"tab":{"id":11}}}
        A< {"id":4}
        A> {"id":5,"method":"screenshot"}
        E< {"id":"conn-1:5","method":"screenshot"}
        "#,
    );
}

#[test]
fn mapped_ids_can_be_asked_for() {
    let settings = RelaySettings {
        id_mode: CommandIdMode::Map,
        ..direct()
    };
    let mut conversation = play_with(settings, CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"getTabs"}
        E< {"id":"conn-1:2","method":"getTabs"}
        "#,
    );
}

#[test]
fn a_command_needs_no_connect_while_there_is_one_browser() {
    play(
        r#"
        A+ client
        A< {"id":0,"result":{"authenticated":true}}
        A> {"id":1,"method":"getTabs"}
        A< {"id":1,"error":{"code":-32003}}
        E+ extension chrome
        E< {"method":"authenticated"}
        A> {"id":2,"method":"getTabs"}
        E< {"id":2,"method":"getTabs"}
        E> {"id":2,"result":{}}
        A< {"id":2,"result":{}}
        F+ extension firefox
        F< {"method":"authenticated"}
        A> {"id":3,"method":"getTabs"}
        E< {"id":3,"method":"getTabs"}
        E> {"id":3,"result":{}}
        A< {"id":3,"result":{}}
        B+ client
        B< {"id":0,"result":{"authenticated":true}}
        B> {"id":4,"method":"getTabs"}
        B< {"id":4,"error":{"code":-32003}}
    "#,
    );
}

#[test]
fn browsers_without_an_id_of_their_own_are_named_after_themselves() {
    play(
        r#"
        E+ extension
        E< {"method":"authenticated","params":{"extension_id":"ext-chrome141"}}
        F+ extension
        F< {"method":"authenticated","params":{"extension_id":"ext-chrome141-2"}}
        E-
        G+ extension
        G< {"method":"authenticated","params":{"extension_id":"ext-chrome141"}}
    "#,
    );
}

#[test]
fn an_extension_can_introduce_itself_late_until_somebody_uses_it() {
    let mut conversation = play(
        r#"
        A+ client
        A< {"id":0}
        E+ silent
        E< {"method":"authenticated","params":{"extension_id":"ext-browser"}}
        E> {"id":"proxy:1","error":{"message":"No tokens"}}
        E> {"id":"proxy:1","result":{"name":"Chrome","client_id":"chrome-5f3e"}}
        E< {"method":"authenticated","params":{"extension_id":"ext-chrome-5f3e"}}
        A> {"id":1,"method":"list_extensions"}
        A< {"id":1,"result":{"extensions":[{"id":"ext-chrome-5f3e","name":"Chrome"}]}}
        E> {"id":"proxy:1","result":{"name":"Chrome","client_id":"another"}}
        F+ silent
        F< {"method":"authenticated","params":{"extension_id":"ext-browser"}}
        F> {"type":"handshake","browser":"Opera","version":"1.9.22"}
        F< {"method":"authenticated","params":{"extension_id":"ext-opera"}}
        G+ silent
        G< {"method":"authenticated","params":{"extension_id":"ext-browser"}}
        A> {"id":2,"method":"connect","params":{"extension_id":"ext-browser"}}
        A< {"id":2,"result":{"extension_id":"ext-browser"}}
        G> {"type":"handshake","browser":"Edge"}
        A> {"id":3,"method":"getTabs"}
        G< {"id":3,"method":"getTabs"}
        "#,
    );
    assert_eq!(conversation.relay.peer_counts(), (1, 3));
    // The older socket of the same extension is replaced.
    conversation.continue_with(
        r#"
        H+ silent
        H< {"method":"authenticated","params":{"extension_id":"ext-browser-2"}}
        H> {"id":"proxy:1","result":{"client_id":"chrome-5f3e"}}
        E<! 4409
        H< {"method":"authenticated","params":{"extension_id":"ext-chrome-5f3e"}}
        "#,
    );
}

#[test]
fn what_was_written_before_a_late_introduction_counts() {
    play(
        r#"
        E+ silent
        E< {"method":"authenticated"}
        E> {"type":"handshake","browser":"Opera"}
        E< {"method":"authenticated","params":{"extension_id":"ext-opera"}}
        A+ client
        A< {"id":0}
        A> {"id":1,"method":"connect","params":{"extension_id":"ext-opera"}}
        A< {"id":1}
        E| 1
        A> {"id":2,"method":"getTabs"}
        E< {"id":2}
        A> {"id":3,"method":"getTabs"}
        E-
        A< {"id":2,"error":{"code":-32004,"data":{"delivered":"unknown"}}}
        A< {"id":3,"error":{"code":-32004,"data":{"delivered":false}}}
        A< {"method":"disconnected"}
        "#,
    );
}

#[test]
fn with_tokens_nobody_is_taken_in_without_a_word() {
    crate::transcript::play(
        r#"
        E+ silent chrome
        E< {"method":"authenticated","params":{"extension_id":"ext-chrome"}}
        E> {"id":"proxy:1","result":{"name":"Chrome","client_id":"another"}}
        "#,
    );
}

#[test]
fn a_client_can_say_its_name_late_until_it_connects() {
    play(CONNECTED).continue_with(
        r#"
        B+ client
        B< {"id":0,"result":{"mcp_client_id":"mcp-2"}}
        B> {"id":1,"method":"mcp_handshake","params":{"accessToken":"token-ada","client_id":"bob"}}
        B< {"id":1,"result":{"mcp_client_id":"mcp-bob"}}
        B> {"id":2,"method":"connect","params":{"extension_id":"ext-chrome"}}
        B< {"id":2,"result":{"connection_id":"conn-3"}}
        B-
        C+ client
        C< {"id":0,"result":{"mcp_client_id":"mcp-4"}}
        C> {"id":1,"method":"mcp_handshake","params":{"accessToken":"token-ada","client_id":"bob"}}
        C< {"id":1,"result":{"mcp_client_id":"mcp-bob"}}
        C> {"id":2,"method":"connect","params":{"extension_id":"ext-chrome"}}
        C< {"id":2,"result":{"connection_id":"conn-3"}}
        C> {"id":3,"method":"mcp_handshake","params":{"accessToken":"token-ada","client_id":"eve"}}
        C< {"id":3,"result":{"mcp_client_id":"mcp-bob"}}
        D+ client
        D< {"id":0,"result":{"mcp_client_id":"mcp-5"}}
        D> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        D< {"id":1,"result":{"connection_id":"conn-6"}}
        D> {"id":2,"method":"mcp_handshake","params":{"accessToken":"token-ada","client_id":"bob"}}
        D< {"id":2,"result":{"mcp_client_id":"mcp-5"}}
        F+ client
        F< {"id":0,"result":{"mcp_client_id":"mcp-7"}}
        F> {"id":1,"method":"mcp_handshake","params":{"accessToken":"token-ada","client_id":"bob"}}
        C<! 4409
        F< {"id":1,"result":{"mcp_client_id":"mcp-bob"}}
        "#,
    );
}

#[test]
fn a_mapped_client_that_resumes_stays_mapped() {
    let mut conversation = play(CONNECTED);
    conversation.continue_with(BOB);
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"disconnect"}
        A< {"id":2,"result":{"disconnected":true}}
        E< {"method":"disconnected"}
        B-
        C+ client bob
        C< {"id":0,"result":{"authenticated":true}}
        C> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        C< {"id":1,"result":{"connection_id":"conn-2"}}
        C> {"id":3,"method":"getTabs"}
        E< {"id":"conn-2:3","method":"getTabs"}
        E> {"id":"conn-2:3","result":{}}
        C< {"id":3,"result":{}}
    "#,
    );
}
