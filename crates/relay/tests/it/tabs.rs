//! A connection reaches its own tabs, and no others.

use crate::scenes::{connected, two_clients, with_tab};

#[test]
fn a_command_without_a_tab_of_its_own_is_refused_and_not_executed() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"forwardCDPCommand","params":{"method":"Runtime.evaluate"}}
        A< {"id":2,"error":{"code":-32003,"data":{"reason":"no_tab"}}}
        A> {"id":3,"method":"screenshot"}
        A< {"id":3,"error":{"code":-32003}}
        A> {"id":4,"method":"listExtensions"}
        E< {"id":"conn-1:4","method":"listExtensions"}
        E> {"id":"conn-1:4","result":{"count":0}}
        A< {"id":4,"result":{"count":0}}
        "#,
    );
}

#[test]
fn a_connection_does_not_reach_the_tabs_of_another() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        B> {"id":2,"method":"forwardCDPCommand","params":{"method":"Page.navigate","tabId":11}}
        B< {"id":2,"error":{"code":-32003}}
        B> {"id":3,"method":"createTab","params":{}}
        E< {"id":"conn-2:3"}
        E> {"id":"conn-2:3","result":{"tab":{"id":12}}}
        B< {"id":3,"result":{"tab":{"id":12}}}
        B> {"id":4,"method":"forwardCDPCommand","params":{"method":"Page.navigate","tabId":11}}
        B< {"id":4,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        B> {"id":5,"method":"forwardCDPCommand","params":{"method":"Page.navigate","tabId":12.0}}
        B< {"id":5,"error":{"code":-32602}}
        B> {"id":6,"method":"forwardCDPCommand","params":{"method":"Page.navigate","tabId":12}}
        E< {"id":"conn-2:6","params":{"tabId":12}}
        E> {"id":"conn-2:6","result":{}}
        B< {"id":6,"result":{}}
        B> {"id":7,"method":"forwardCDPCommand","params":{"method":"Target.closeTarget","params":{"targetId":"x"}}}
        B< {"id":7,"error":{"code":-32008}}
        "#,
    );
}

#[test]
fn tabs_that_are_named_further_down_must_be_own_ones_too() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        B> {"id":2,"method":"createTab"}
        E< {"id":"conn-2:2"}
        E> {"id":"conn-2:2","result":{"tab":{"id":12}}}
        B< {"id":2}
        B> {"id":3,"method":"screenshot","params":{"options":{"tabId":11}}}
        B< {"id":3,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        B> {"id":4,"method":"forwardCDPCommand","params":{"method":"Page.reload","target":{"tabId":"11"}}}
        B< {"id":4,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        B> {"id":5,"method":"closeTabs","params":{"tabIds":[12,11]}}
        B< {"id":5,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        B> {"id":6,"method":"closeTabs","params":{"tabIds":[12,20]}}
        B< {"id":6,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        B> {"id":7,"method":"createTab","params":{"createProperties":{"target":{"tabId":11}}}}
        B< {"id":7,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        B> {"id":8,"method":"screenshot","params":{"options":{"tabIndex":0}}}
        E< {"id":"proxy:2","method":"getTabs"}
        E> {"id":"proxy:2","result":{"tabs":[{"id":11},{"id":12}]}}
        B< {"id":8,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        B> {"id":9,"method":"screenshot","params":{"options":{"tabIndex":1}}}
        E< {"id":"proxy:3","method":"getTabs"}
        E> {"id":"proxy:3","result":{"tabs":[{"id":11},{"id":12}]}}
        E<= {"jsonrpc":"2.0","id":"conn-2:9","method":"screenshot","params":{"options":{"tabIndex":1}}}
        E> {"id":"conn-2:9","result":{}}
        B< {"id":9,"result":{}}
        B> {"id":10,"method":"closeTabs","params":{"tabIds":[12],"options":{"tabId":12}}}
        E< {"id":"conn-2:10","method":"closeTabs"}
        B> {"id":11,"method":"forwardCDPCommand","params":{"method":"Runtime.callFunctionOn","params":{"arguments":[{"value":{"tabId":11,"tabIndex":-1}}]}}}
        E< {"id":"conn-2:11","method":"forwardCDPCommand"}
        "#,
    );
}

#[test]
fn a16_tabs_of_others_are_not_reached_under_other_names() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        B> {"id":2,"method":"createTab"}
        E< {"id":"conn-2:2"}
        E> {"id":"conn-2:2","result":{"tab":{"id":12}}}
        B< {"id":2}
        B> {"id":3,"method":"screenshot","params":{"tab_id":11}}
        B< {"id":3,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        B> {"id":4,"method":"screenshot","params":{"TabId":"11"}}
        B< {"id":4,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        B> {"id":5,"method":"screenshot","params":{"tab.id":11}}
        B< {"id":5,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        B> {"id":6,"method":"closeTab","params":{"id":11}}
        B< {"id":6,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        B> {"id":7,"method":"closeTab","params":{"tab":{"id":11}}}
        B< {"id":7,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        B> {"id":8,"method":"highlight","params":{"tabs":[12,11]}}
        B< {"id":8,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        B> {"id":9,"method":"screenshot","params":{"tabId":12,"TabId":11}}
        B< {"id":9,"error":{"code":-32602}}
        B> {"id":10,"method":"getNode","params":{"id":99}}
        E< {"id":"conn-2:10","method":"getNode"}
        "#,
    );
}

#[test]
fn an_index_is_resolved_before_a_command_is_forwarded() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        B> {"id":2,"method":"selectTab","params":{"tabIndex":0}}
        E< {"id":"proxy:2","method":"getTabs"}
        B> {"id":3,"method":"selectTab","params":{"tabIndex":1}}
        E> {"id":"proxy:2","result":{"tabs":[{"id":11},{"id":20}]}}
        B< {"id":2,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        E< {"id":"proxy:3","method":"getTabs"}
        E> {"id":"proxy:3","result":{"tabs":[{"id":11},{"id":20}]}}
        E<= {"jsonrpc":"2.0","id":"conn-2:3","method":"selectTab","params":{"tabId":20,"tabIndex":1}}
        E> {"id":"conn-2:3","result":{"success":true,"tab":{"id":20}}}
        B< {"id":3,"result":{"tab":{"id":20}}}
        B> {"id":4,"method":"closeTab","params":{"index":5}}
        E< {"id":"proxy:4","method":"getTabs"}
        E> {"id":"proxy:4","result":{"tabs":[{"id":11},{"id":20}]}}
        B< {"id":4,"error":{"code":-32003,"data":{"reason":"no_such_tab"}}}
        B> {"id":5,"method":"selectTab","params":{"tabIndex":"1"}}
        B< {"id":5,"error":{"code":-32602}}
        B> {"id":6,"method":"selectTab","params":{"tabIndex":1,"tabId":11}}
        E< {"id":"proxy:5","method":"getTabs"}
        E> {"id":"proxy:5","result":{"tabs":[{"id":11},{"id":20}]}}
        B< {"id":6,"error":{"code":-32003}}
        B> {"id":7,"method":"screenshot","params":{"index":1,"tabId":20}}
        E< {"id":"proxy:6","method":"getTabs"}
        E> {"id":"proxy:6","result":{"tabs":[{"id":11},{"id":20}]}}
        E< {"id":"conn-2:7","params":{"index":1,"tabId":20}}
        "#,
    );
}

#[test]
fn a_tab_that_moved_meanwhile_is_not_taken() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        B> {"id":2,"method":"createTab","params":{}}
        E< {"id":"conn-2:2"}
        E> {"id":"conn-2:2","result":{"tab":{"id":12}}}
        B< {"id":2}
        B> {"id":3,"method":"selectTab","params":{"tabIndex":1}}
        E< {"id":"proxy:2","method":"getTabs"}
        E> {"id":"proxy:2","result":{"tabs":[{"id":11},{"id":20},{"id":30},{"id":12}]}}
        E< {"id":"conn-2:3","method":"selectTab","params":{"tabId":20,"tabIndex":1}}
        E> {"id":"conn-2:3","result":{"tab":{"id":30}}}
        B< {"id":3,"error":{"code":-32003,"data":{"reason":"tab_moved","delivered":true}}}
        B> {"id":4,"method":"screenshot"}
        B< {"id":4,"error":{"code":-32003,"data":{"reason":"no_tab"}}}
        B> {"id":5,"method":"screenshot","params":{"tabId":30}}
        B< {"id":5,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        B> {"id":6,"method":"selectTab","params":{"tabId":12}}
        E< {"id":"conn-2:6"}
        E> {"id":"conn-2:6","result":{"tab":{"id":12}}}
        B< {"id":6}
        B> {"id":7,"method":"screenshot"}
        E< {"id":"conn-2:7"}
        "#,
    );
}

#[test]
fn a_tab_that_the_extension_gives_no_id_cannot_be_named_by_its_index() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"selectTab","params":{"tabIndex":0}}
        E< {"id":"proxy:2","method":"getTabs"}
        E> {"id":"proxy:2","result":{"tabs":[{"title":"x"}]}}
        A< {"id":2,"error":{"code":-32003,"data":{"reason":"no_such_tab"}}}
        A> {"id":3,"method":"selectTab","params":{"tabIndex":0}}
        E< {"id":"proxy:3","method":"getTabs"}
        E> {"id":"proxy:3","error":{"message":"no"}}
        A< {"id":3,"error":{"code":-32003,"data":{"reason":"tab_unavailable","delivered":false}}}
        "#,
    );
}

#[test]
fn after_a_selection_with_an_unknown_outcome_the_tab_has_to_be_selected_again() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"selectTab","params":{"tabId":20}}
        E< {"id":"conn-1:3"}
        @ 31
        A< {"id":3,"error":{"code":-32005}}
        A> {"id":4,"method":"screenshot"}
        A< {"id":4,"error":{"code":-32003,"data":{"reason":"no_tab"}}}
        A> {"id":5,"method":"screenshot","params":{"tabId":11}}
        E< {"id":"conn-1:5","params":{"tabId":11}}
        "#,
    );
}

#[test]
fn a_command_waits_for_the_tab_that_is_being_opened() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"createTab","params":{}}
        A> {"id":3,"method":"screenshot"}
        E< {"id":"conn-1:2"}
        E> {"id":"conn-1:2","result":{"tab":{"id":11}}}
        A< {"id":2}
        E< {"id":"conn-1:3","method":"screenshot"}
        E> {"id":"conn-1:3","result":{}}
        A< {"id":3}
        "#,
    );
}

#[test]
fn a_closed_tab_is_nobodys() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"closeTab"}
        E< {"id":"conn-1:3","method":"closeTab"}
        E> {"id":"conn-1:3","result":{"success":true}}
        A< {"id":3}
        A> {"id":4,"method":"screenshot"}
        A< {"id":4,"error":{"code":-32003}}
        "#,
    );
}

#[test]
fn a_tab_that_a_person_closed_is_noticed_in_the_next_list() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"getTabs"}
        E< {"id":"conn-1:3"}
        E> {"id":"conn-1:3","result":{"tabs":[{"id":5}]}}
        A< {"id":3}
        A> {"id":4,"method":"screenshot"}
        A< {"id":4,"error":{"code":-32003,"data":{"reason":"no_tab"}}}
        "#,
    );
}

#[test]
fn a_disconnected_client_frees_its_tabs() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"disconnect"}
        A< {"id":3}
        E< {"method":"disconnected","params":{"connection_id":"conn-1"}}
        B> {"id":2,"method":"selectTab","params":{"tabId":11}}
        E< {"id":"conn-2:2","method":"selectTab"}
        E> {"id":"conn-2:2","result":{"tab":{"id":11}}}
        B< {"id":2,"result":{"tab":{"id":11}}}
        "#,
    );
}

#[test]
fn news_about_a_tab_reach_its_owner_only() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        E> {"method":"notifications/tab_info_update","params":{"currentTab":{"id":11}}}
        A< {"method":"notifications/tab_info_update"}
        "#,
    );
}

#[test]
fn an_old_list_of_tabs_is_not_used_for_the_next_command() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        B> {"id":2,"method":"selectTab","params":{"tabIndex":1}}
        E< {"id":"proxy:2","method":"getTabs"}
        @ 11
        B< {"id":2,"error":{"code":-32005,"data":{"delivered":false}}}
        E> {"id":"proxy:2","result":{"tabs":[{"id":11},{"id":20}]}}
        B> {"id":3,"method":"selectTab","params":{"tabIndex":1}}
        E< {"id":"proxy:3","method":"getTabs"}
        E> {"id":"proxy:3","result":{"tabs":[{"id":20},{"id":11}]}}
        B< {"id":3,"error":{"code":-32003,"data":{"reason":"foreign_tab"}}}
        "#,
    );
}

#[test]
fn a_late_selection_makes_its_connection_select_again() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"selectTab","params":{"tabId":20}}
        E< {"id":"conn-1:3"}
        @ 31
        A< {"id":3,"error":{"code":-32005}}
        A> {"id":4,"method":"selectTab","params":{"tabId":11}}
        E< {"id":"conn-1:4"}
        E> {"id":"conn-1:4","result":{"tab":{"id":11}}}
        A< {"id":4}
        E> {"id":"conn-1:3","result":{"tab":{"id":20}}}
        A> {"id":5,"method":"screenshot"}
        A< {"id":5,"error":{"code":-32003,"data":{"reason":"no_tab"}}}
        A> {"id":6,"method":"screenshot","params":{"tabId":11}}
        E< {"id":"conn-1:6"}
        "#,
    );
}

/// Published extensions go to the tab before they notice that they cannot attach to it.
#[test]
fn a_selection_that_fails_takes_the_current_tab_away() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"selectTab","params":{"tabId":12}}
        E< {"id":"conn-1:3"}
        E> {"id":"conn-1:3","error":{"code":-32000,"message":"Another debugger is already attached"}}
        A< {"id":3,"error":{"code":-32000}}
        A> {"id":4,"method":"screenshot"}
        A< {"id":4,"error":{"code":-32003,"data":{"reason":"no_tab"}}}
        A> {"id":5,"method":"screenshot","params":{"tabId":11}}
        E< {"id":"conn-1:5"}
        "#,
    );
}

/// Published extensions forget whose tab is whose when their socket ends.
#[test]
fn several_clients_select_their_tabs_again_after_their_extension_has_reconnected() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        E-
        A< {"method":"disconnected"}
        B< {"method":"disconnected"}
        F+ extension chrome
        F< {"method":"authenticated"}
        A> {"id":4,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":4,"result":{"connection_id":"conn-1"}}
        A> {"id":5,"method":"screenshot"}
        A< {"id":5,"error":{"code":-32003,"data":{"reason":"no_tab"}}}
        A> {"id":6,"method":"selectTab","params":{"tabId":11}}
        F< {"id":"conn-1:6"}
        F> {"id":"conn-1:6","result":{"tab":{"id":11}}}
        A< {"id":6}
        A> {"id":7,"method":"screenshot"}
        F< {"id":"conn-1:7"}
        "#,
    );
}

#[test]
fn a_selection_that_an_extension_ends_after_a_reconnect_takes_the_tab_away() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"createTab"}
        E< {"id":"conn-1:3"}
        E-
        A< {"id":3,"error":{"code":-32004}}
        A< {"method":"disconnected"}
        F+ extension chrome
        F< {"method":"authenticated"}
        A> {"id":4,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":4,"result":{"connection_id":"conn-1"}}
        F> {"id":"conn-1:3","result":{"tab":{"id":12}}}
        A> {"id":5,"method":"screenshot"}
        A< {"id":5,"error":{"code":-32003,"data":{"reason":"no_tab"}}}
        "#,
    );
}

#[test]
fn a_result_next_to_an_empty_error_is_a_result() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"createTab"}
        E< {"id":"conn-1:2"}
        E> {"id":"conn-1:2","result":{"tab":{"id":11}},"error":null}
        A< {"id":2,"result":{"tab":{"id":11}}}
        A> {"id":3,"method":"screenshot"}
        E< {"id":"conn-1:3"}
        "#,
    );
}
