//! Files as other clients write them work unchanged.

use mcp_proxy_hub::config::{
    ConfigFault, ConfigText, ConfigWarning, HubConfig, ServerProblem, ServerTarget, UrlKind,
    parse_config,
};

use crate::config::{environment, file, read, server, spec};

pub(crate) const CLAUDE_DESKTOP: &str = r#"{
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/people/ada/Desktop"]
    },
    "github": {
      "command": "docker",
      "args": ["run", "-i", "--rm", "-e", "GITHUB_TOKEN", "ghcr.io/github/github-mcp-server"],
      "env": { "GITHUB_TOKEN": "ghp_abcdef123456" }
    }
  },
  "globalShortcut": "Ctrl+Space"
}"#;

pub(crate) const CLAUDE_CODE: &str = r#"{
  "mcpServers": {
    "local": {
      "type": "stdio",
      "command": "${NODE_HOME}/bin/node",
      "args": ["server.js", "--cache", "${CACHE_DIR:-/tmp/cache}"],
      "env": {}
    },
    "remote": {
      "type": "http",
      "url": "${API_BASE_URL:-https://api.example.com}/mcp",
      "headers": { "Authorization": "Bearer ${API_TOKEN}" }
    },
    "old": { "type": "sse", "url": "https://example.com/sse" }
  }
}"#;

pub(crate) const CURSOR: &str = r#"{
  "mcpServers": {
    "python": {
      "command": "${userHome}/.venv/bin/python",
      "args": ["mcp-server.py"],
      "env": { "API_KEY": "${env:API_TOKEN}", "PORT": 8080 },
      "envFile": ".env"
    },
    "web": { "url": "http://localhost:3000/mcp", "headers": { "X-Key": "value" } }
  }
}"#;

pub(crate) const VS_CODE: &str = r#"{
  // Asked for once, then kept by the editor.
  "inputs": [
    { "type": "promptString", "id": "key", "description": "API key", "password": true },
  ],
  "servers": {
    "perplexity": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "server-perplexity-ask"],
      "env": { "API_KEY": "${input:key}" },
    },
    /* No key needed. */
    "github": { "type": "http", "url": "https://api.githubcopilot.com/mcp/", "gallery": true },
  },
}"#;

pub(crate) const WINDSURF: &str = r#"{
  "mcpServers": {
    "figma": {
      "serverUrl": "https://mcp.example.com/s/0123456789abcdef01234567/sse",
      "disabled": false,
      "disabledTools": ["delete"]
    },
    "off": { "command": "uvx", "args": ["mcp-server-git"], "disabled": true },
    "also-off": { "command": "${NOT_SET}", "enabled": false }
  }
}"#;

fn command<'a>(config: &'a HubConfig, name: &str) -> (&'a str, Vec<&'a str>) {
    let ServerTarget::Command { program, args, .. } = &spec(config, name).target else {
        panic!("{name} is not a command");
    };
    (program, args.iter().map(|arg| arg.reveal()).collect())
}

fn url(config: &HubConfig, name: &str) -> (String, Option<UrlKind>) {
    let ServerTarget::Url { url, kind, .. } = &spec(config, name).target else {
        panic!("{name} is not a URL");
    };
    (url.uri().to_string(), *kind)
}

fn env<'a>(config: &'a HubConfig, name: &str) -> Vec<(&'a str, &'a str)> {
    let ServerTarget::Command { env, .. } = &spec(config, name).target else {
        panic!("{name} is not a command");
    };
    let pairs = env
        .iter()
        .map(|(name, value)| (name.as_str(), value.reveal()));
    pairs.collect()
}

fn unknown_keys(config: &HubConfig) -> Vec<&str> {
    match config.warnings.as_slice() {
        [ConfigWarning::UnknownKeys { keys, .. }] => {
            keys.iter().map(|key| key.path.as_str()).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn claude_desktop() {
    let config = read(CLAUDE_DESKTOP);
    let order: Vec<&str> = config
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    assert_eq!(order, ["filesystem", "github"]);
    let (program, args) = command(&config, "filesystem");
    assert_eq!((program, args.len()), ("npx", 3));
    assert_eq!(
        env(&config, "github"),
        [("GITHUB_TOKEN", "ghp_abcdef123456")]
    );
    assert_eq!(unknown_keys(&config), ["globalShortcut"]);
}

#[test]
fn claude_code() {
    let config = read(CLAUDE_CODE);
    let expected = (
        "/opt/node/bin/node",
        vec!["server.js", "--cache", "/tmp/cache"],
    );
    assert_eq!(command(&config, "local"), expected);
    assert_eq!(
        url(&config, "remote"),
        ("https://api.example.com/mcp".into(), None)
    );
    assert_eq!(url(&config, "old").1, Some(UrlKind::Sse));
    let ServerTarget::Url { headers, .. } = &spec(&config, "remote").target else {
        panic!("not a URL");
    };
    assert_eq!(headers[0].0, "authorization");
    assert_eq!(headers[0].1, "Bearer tok-en-from-env");
    assert!(headers[0].1.is_sensitive());
    assert!(config.warnings.is_empty());
}

#[test]
fn cursor() {
    let config = read(CURSOR);
    assert_eq!(command(&config, "python").0, "/people/ada/.venv/bin/python");
    assert_eq!(
        env(&config, "python"),
        [("API_KEY", "tok-en-from-env"), ("PORT", "8080")]
    );
    assert_eq!(
        url(&config, "web"),
        ("http://localhost:3000/mcp".into(), None)
    );
    assert_eq!(config.warnings, []);
}

#[test]
fn vs_code() {
    let config = read(VS_CODE);
    let Err(ServerProblem::Broken(problem)) = &server(&config, "perplexity").state else {
        panic!("not broken");
    };
    assert_eq!(
        problem.fault,
        ConfigFault::MissingVariable("input:key".into())
    );
    assert_eq!(problem.key, "servers.perplexity.env.API_KEY");
    // VS Code falls back to SSE for `http`, so the kind is left to be found out.
    assert_eq!(url(&config, "github").1, None);
    assert_eq!(unknown_keys(&config), ["servers.github.gallery"]);
}

#[test]
fn windsurf() {
    let config = read(WINDSURF);
    assert_eq!(url(&config, "figma").1, None);
    assert_eq!(config.secrets(), ["0123456789abcdef01234567"]);
    for name in ["off", "also-off"] {
        assert_eq!(server(&config, name).state, Err(ServerProblem::Disabled));
    }
    assert!(config.warnings.is_empty());
}

#[test]
fn every_word_for_a_transport_is_understood() {
    for (entry, kind) in [
        (r#""url""#, None),
        (
            r#""type": "streamable-http", "url""#,
            Some(UrlKind::StreamableHttp),
        ),
        (
            r#""type": "streamableHttp", "url""#,
            Some(UrlKind::StreamableHttp),
        ),
        (r#""transport": "sse", "url""#, Some(UrlKind::Sse)),
        (r#""httpUrl""#, Some(UrlKind::StreamableHttp)),
        (r#""cwd": null, "command": null, "url""#, None),
    ] {
        let config = read(&format!(
            r#"{{"mcpServers": {{"a": {{{entry}: "http://localhost/mcp"}}}}}}"#
        ));
        assert_eq!(url(&config, "a").1, kind, "{entry}");
    }
}

#[test]
fn byte_order_mark_and_windows_line_ends() {
    let text = format!("\u{feff}{}", CURSOR.replace('\n', "\r\n"));
    let config = read(&text);
    assert_eq!(config.servers.len(), 2);
}

#[test]
fn a_file_in_a_project_knows_its_folder() {
    let text = r#"{"mcpServers": {"a": {"command": "${workspaceFolder}/run", "args": ["${workspaceFolderBasename}"]}}}"#;
    for (folder, program) in [
        (Some("/srv/project/.cursor"), Some("/srv/project/run")),
        (Some("/srv/project/.vscode"), Some("/srv/project/run")),
        (Some("/srv/project"), Some("/srv/project/run")),
        // Files for all projects do not know which one is meant.
        (Some("/people/ada/.cursor"), None),
        (None, None),
    ] {
        let file = ConfigText {
            folder: folder.map(Into::into),
            ..file("mcp.json", text)
        };
        let config = parse_config(&[file], &environment).unwrap();
        match program {
            Some(program) => assert_eq!(command(&config, "a"), (program, vec!["project"])),
            None => assert!(server(&config, "a").state.is_err()),
        }
    }
}

#[test]
fn keys_of_others_may_appear_twice() {
    let config = read(
        r#"{"theme": 1, "theme": 2, "mcpServers": {"a": {"command": "x", "note": 1, "note": 2}}}"#,
    );
    assert!(server(&config, "a").state.is_ok());
}
