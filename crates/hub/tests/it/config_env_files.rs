//! `envFile`: variables of a server in a file of their own.

use std::path::{Path, PathBuf};

use mcp_proxy_hub::config::{ConfigText, ConfigWarning, HubConfig, ServerTarget, parse_config};

use crate::config::{environment, server};

/// The servers of `.vscode/mcp.json` in a project, with the files that are read.
fn read(text: &str, content: &dyn Fn(&Path) -> Result<String, String>) -> HubConfig {
    let file = ConfigText {
        name: "mcp.json".to_owned(),
        text: text.to_owned(),
        folder: Some("/srv/project/.vscode".into()),
        current_folder: None,
    };
    let mut config = parse_config(&[file], &environment).unwrap();
    config.read_env_files(content);
    config
}

fn env_of(config: &HubConfig, name: &str) -> Vec<(String, String)> {
    let spec = server(config, name).state.as_ref().unwrap();
    let ServerTarget::Command { env, .. } = &spec.target else {
        panic!("not a command: {spec:?}");
    };
    let pairs = env.iter();
    pairs
        .map(|(name, value)| (name.clone(), value.reveal().to_owned()))
        .collect()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn variables_of_an_env_file_are_added_and_those_of_env_win() {
    let text = r#"{"servers": {"a": {"command": "x", "env": {"B": "mine"}, "envFile": ".env"}}}"#;
    let config = read(text, &|_| Ok("A=secret-of-a\nB=other\n".to_owned()));
    assert_eq!(
        env_of(&config, "a"),
        [pair("A", "secret-of-a"), pair("B", "mine")]
    );
    assert_eq!(config.warnings, []);
    assert_eq!(config.secrets(), ["secret-of-a", "mine"]);
}

#[test]
fn the_path_of_an_env_file_starts_at_the_project() {
    for (path, found) in [
        (".env", "/srv/project/.env"),
        ("${workspaceFolder}/a/.env", "/srv/project/a/.env"),
        ("/etc/env", "/etc/env"),
        ("~/.env", "/people/ada/.env"),
        ("${userHome}/.env", "/people/ada/.env"),
    ] {
        let text = format!(r#"{{"servers": {{"a": {{"command": "x", "envFile": "{path}"}}}}}}"#);
        let expected = PathBuf::from(found);
        let config = read(&text, &|path| match path == expected {
            true => Ok("A=1".to_owned()),
            false => Err(path.display().to_string()),
        });
        assert_eq!(config.warnings, [], "{path}");
        assert_eq!(env_of(&config, "a"), [pair("A", "1")], "{path}");
    }
}

#[test]
fn an_env_file_that_cannot_be_read_is_a_warning() {
    let text = r#"{"servers": {
        "a": {"command": "x", "envFile": ".env"},
        "off": {"command": "x", "envFile": ".env", "disabled": true},
        "null": {"command": "x", "envFile": null}
    }}"#;
    let config = read(text, &|_| Err("no such file".to_owned()));
    let [ConfigWarning::EnvFile { key, why, .. }] = &config.warnings[..] else {
        panic!("{:?}", config.warnings);
    };
    assert_eq!(
        (key.as_str(), why.as_str()),
        ("servers.a.envFile", "no such file")
    );
    assert_eq!(env_of(&config, "a"), []);
}
