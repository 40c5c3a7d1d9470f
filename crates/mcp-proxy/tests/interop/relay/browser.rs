//! Chromium with the extension of `fixtures/extension`, and the pages that its tabs show.

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::chromium::Chromium;
use crate::fixtures;
use crate::page_server::PageServer;

/// A browser whose extension connects to a relay.
pub struct Browser {
    _chromium: Chromium,
    /// Its copy of the extension.
    _folder: TempDir,
    admissions: Receiver<Value>,
    origin: String,
}

impl Browser {
    pub fn start(relay_url: &str, token: &str, more: &[&str]) -> Browser {
        let server = PageServer::new();
        let origin = server.origin.clone();
        let (sender, admissions) = channel();
        server.serve(move |path, body| match path {
            "/report" => {
                let report = serde_json::from_slice(body).expect("the extension reports JSON");
                let _ = sender.send(report);
                Some(String::new())
            }
            "/favicon.ico" => None,
            _ => Some(page(path)),
        });
        let folder = tempfile::tempdir().unwrap();
        let config = json!({"url": format!("{relay_url}/extension"), "token": token,
            "name": "Chromium of a test", "report": format!("{origin}/report")});
        copy_extension(folder.path(), &config);
        let copy = folder.path().display();
        let only = format!("--disable-extensions-except={copy}");
        let load = format!("--load-extension={copy}");
        let flags = [&[&*only, &load][..], more, &["about:blank"]].concat();
        Browser {
            _chromium: Chromium::start(&flags),
            _folder: folder,
            admissions,
            origin,
        }
    }

    /// Waits until a relay has let the extension in, and returns the id that it gave it.
    pub fn extension_id(&self) -> String {
        self.extension_id_of("ada")
    }

    /// The same, of the extension of this user.
    pub fn extension_id_of(&self, user: &str) -> String {
        let admission = self.admissions.recv_timeout(Duration::from_secs(60));
        let admission = admission.expect("the extension was let in");
        assert_eq!(admission["user_id"], user);
        admission["extension_id"].as_str().unwrap().to_owned()
    }

    /// The URL of a page whose title is `/name`.
    pub fn page(&self, name: &str) -> String {
        format!("{}/{name}", self.origin)
    }
}

fn copy_extension(to: &Path, config: &Value) {
    for name in ["manifest.json", "worker.js"] {
        std::fs::copy(fixtures::extension(name), to.join(name)).unwrap();
    }
    std::fs::write(to.join("config.json"), config.to_string()).unwrap();
}

/// Its button is in the upper left corner and changes the title.
fn page(path: &str) -> String {
    format!(
        r#"<!doctype html><title>{path}</title><body style="background:gold">
<button style="position:absolute;left:0;top:0;width:300px;height:100px" onclick="document.title='clicked'">{path}</button>"#
    )
}
