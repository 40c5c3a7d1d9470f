//! Entries that clients accept and the hub cannot run as they are: the rest of the file works, and a text says what is wrong.

use mcp_proxy_hub::config::{ConfigWarning, HubConfig, parse_config};

use crate::config::{environment, file, server};

fn parse(name: &str, text: &str) -> HubConfig {
    parse_config(&[file(name, text)], &environment).unwrap()
}

fn names(config: &HubConfig) -> Vec<&str> {
    let servers = config.servers.iter();
    servers.map(|server| server.name.as_str()).collect()
}

#[test]
fn g2_an_entry_of_a_list_without_a_name_stops_nothing_else() {
    let text = "mcpServers:\n  - uses: anthropic/foo-mcp\n  - {command: x}\n  - {name: time, command: uvx}\n  - word\n";
    let config = parse("config.yaml", text);
    assert_eq!(names(&config), ["time"]);
    assert!(server(&config, "time").state.is_ok());
    let skipped = config.warnings.iter().map(|warning| match warning {
        ConfigWarning::Skipped { server, .. } => server.as_str(),
        other => panic!("{other}"),
    });
    assert_eq!(
        skipped.collect::<Vec<_>>(),
        ["anthropic/foo-mcp", "mcpServers[1]", "mcpServers[3]"]
    );
}
