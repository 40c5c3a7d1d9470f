//! A server with roots in a temporary directory, and a client for it.

use std::fs;
use std::path::{Path, PathBuf};

use mcp_proxy_builtin::{BuiltinServer, FilesOptions, FilesServer, Root, WriteAccess};
use mcp_proxy_wire::Message;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A files server whose root is the directory `inside` of a temporary directory.
pub(crate) struct Testbed {
    folder: TempDir,
    server: BuiltinServer,
}

/// What a call returned.
pub(crate) struct Called(pub(crate) Value);

impl Testbed {
    pub(crate) fn new(write: WriteAccess) -> Testbed {
        let folder = TempDir::new().unwrap();
        let inside = folder.path().join("inside");
        fs::create_dir(&inside).unwrap();
        let roots = vec![Root::open(&inside).unwrap()];
        let server = FilesServer::new(FilesOptions { roots, write }).unwrap();
        Testbed {
            folder,
            server: BuiltinServer::Files(server),
        }
    }

    pub(crate) fn read_only() -> Testbed {
        Testbed::new(WriteAccess::ReadOnly)
    }

    pub(crate) fn server(&self) -> &BuiltinServer {
        &self.server
    }

    /// A path below the root.
    pub(crate) fn inside(&self, path: &str) -> PathBuf {
        self.folder.path().join("inside").join(path)
    }

    /// A path next to the root.
    pub(crate) fn outside(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file below the root, and the directories above it.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.inside(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Called {
        call(&self.server, tool, arguments)
    }

    /// `text` without what differs from run to run.
    pub(crate) fn stable(&self, text: &str) -> String {
        let root = fs::canonicalize(self.inside("")).unwrap();
        let root = root.to_str().unwrap().trim_end_matches('/');
        text.replace(root, "/srv/project")
            .replace(env!("CARGO_PKG_VERSION"), "VERSION")
    }
}

impl Called {
    pub(crate) fn is_error(&self) -> bool {
        self.0["isError"] == true
    }

    /// The text of a content block.
    pub(crate) fn block(&self, index: usize) -> &str {
        self.0["content"][index]["text"].as_str().unwrap()
    }

    /// The text of a call that worked.
    pub(crate) fn text(&self) -> &str {
        assert!(!self.is_error(), "{}", self.0);
        self.block(0)
    }

    /// The text of a call that failed.
    pub(crate) fn failure(&self) -> &str {
        assert!(self.is_error(), "{}", self.0);
        self.block(0)
    }

    /// The structured value of a call that worked, which its text repeats.
    pub(crate) fn value(&self) -> &Value {
        let value = &self.0["structuredContent"];
        let text: Value = serde_json::from_str(self.text()).unwrap();
        assert_eq!(text, *value);
        value
    }
}

pub(crate) fn call(server: &BuiltinServer, tool: &str, arguments: Value) -> Called {
    let params = json!({ "name": tool, "arguments": arguments });
    let answer = ask(
        server,
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }),
    );
    Called(answer.unwrap()["result"].clone())
}

pub(crate) fn ask(server: &BuiltinServer, message: &Value) -> Option<Value> {
    let answer = server.answer(&Message::parse(message.to_string()))?;
    assert!(answer.fits_in_json_line());
    Some(serde_json::from_slice(answer.raw()).unwrap())
}

/// A server of several directories of `folder`, which are created.
pub(crate) fn server_of(folder: &Path, roots: &[&str]) -> BuiltinServer {
    let open = |name: &&str| {
        fs::create_dir_all(folder.join(name)).unwrap();
        Root::open(folder.join(name)).unwrap()
    };
    let options = FilesOptions {
        roots: roots.iter().map(open).collect(),
        write: WriteAccess::ReadOnly,
    };
    BuiltinServer::Files(FilesServer::new(options).unwrap())
}
