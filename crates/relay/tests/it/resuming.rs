//! Peers that are lost and come back.

use crate::scenes::{connected, with_tab};
use crate::transcript::play;

#[test]
fn a_client_that_comes_back_in_time_has_its_connection_and_tabs() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A-
        @ 29
        B+ client alice
        B< {"id":0}
        B> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        B< {"id":1,"result":{"connection_id":"conn-1"}}
        B> {"id":3,"method":"screenshot"}
        E< {"id":"conn-1:3"}
        E> {"id":"conn-1:3","result":{}}
        B< {"id":3,"result":{}}
        "#,
    );
}

#[test]
fn a_client_that_stays_away_frees_its_tabs() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A-
        @ 31
        E< {"method":"disconnected","params":{"connection_id":"conn-1"}}
        B+ client alice
        B< {"id":0}
        B> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        B< {"id":1,"result":{"connection_id":"conn-2"}}
        B> {"id":3,"method":"screenshot"}
        B< {"id":3,"error":{"code":-32003}}
        "#,
    );
}

#[test]
fn a_client_without_a_client_id_frees_its_tabs_at_once() {
    play(
        r#"
        E+ extension chrome
        E< {"method":"authenticated"}
        A+ client
        A< {"id":0}
        A> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":1,"result":{"connection_id":"conn-2"}}
        A-
        E< {"method":"disconnected","params":{"connection_id":"conn-2"}}
        "#,
    );
}

#[test]
fn an_extension_that_comes_back_has_its_connections() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        E-
        A< {"method":"disconnected","params":{"connection_id":"conn-1"}}
        @ 5
        F+ extension chrome
        F< {"method":"authenticated","params":{"extension_id":"ext-chrome"}}
        A> {"id":3,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":3,"result":{"connection_id":"conn-1"}}
        A> {"id":4,"method":"screenshot"}
        F< {"id":"conn-1:4"}
        F> {"id":"conn-1:4","result":{}}
        A< {"id":4,"result":{}}
        "#,
    );
}

#[test]
fn choosing_another_browser_gives_up_what_was_suspended() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        F+ extension firefox
        F< {"method":"authenticated"}
        E-
        A< {"method":"disconnected"}
        A> {"id":3,"method":"connect","params":{"extension_id":"ext-firefox"}}
        A< {"id":3,"result":{"connection_id":"conn-2"}}
        "#,
    );
}

#[test]
fn nothing_is_left_when_everybody_has_gone() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A-
        E-
        @ 31
        @ 31
        "#,
    );
    assert!(conversation.relay.is_empty());
}
