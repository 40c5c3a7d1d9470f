//! Folders that a server may work in: a path or a `file://` URI.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A folder, as the config names it. It may be relative.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct RootFolder(PathBuf);

impl RootFolder {
    /// The folder with `~` filled in.
    pub(super) fn in_home(self, home: Option<&str>) -> RootFolder {
        match (self.0.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) if rest.as_os_str().is_empty() => RootFolder(home.into()),
            (Ok(rest), Some(home)) => RootFolder(Path::new(home).join(rest)),
            _ => self,
        }
    }

    /// Takes a path as it is.
    pub fn new(path: impl Into<PathBuf>) -> RootFolder {
        RootFolder(path.into())
    }

    /// The folder that the program was started in.
    pub(super) fn current() -> RootFolder {
        RootFolder(".".into())
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The URI for `roots/list`. A relative path starts at `base`, which is absolute.
    pub fn uri(&self, base: &Path) -> String {
        let path = base.join(&self.0);
        let mut uri = String::from("file://");
        for byte in path.to_string_lossy().bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                    uri.push(char::from(byte));
                }
                other => uri.push_str(&format!("%{other:02X}")),
            }
        }
        uri
    }
}

/// Folders with `~` filled in.
pub(super) fn in_home(roots: Vec<RootFolder>, home: Option<&str>) -> Vec<RootFolder> {
    roots.into_iter().map(|root| root.in_home(home)).collect()
}

impl TryFrom<String> for RootFolder {
    type Error = &'static str;

    fn try_from(text: String) -> Result<RootFolder, &'static str> {
        if let Some(rest) = text.strip_prefix("file://") {
            let path = rest.strip_prefix("localhost").unwrap_or(rest);
            return match path.starts_with('/') {
                true => Ok(RootFolder(percent_decode(path).into())),
                false => Err("a file URI must name a folder of this machine: file:///…"),
            };
        }
        match text.as_str() {
            "" => Err("must not be empty"),
            other if other.contains("://") => Err("expected a path or a file:// URI"),
            _ => Ok(RootFolder(text.into())),
        }
    }
}

/// Decodes `%20` and the like. What is not an escape stays as it is.
pub(super) fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        // `get` keeps within the text and its characters.
        let digits = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_paths_or_file_uris() {
        for (text, path, uri) in [
            ("/srv/data", "/srv/data", "file:///srv/data"),
            (
                "file:///srv/my%20data",
                "/srv/my data",
                "file:///srv/my%20data",
            ),
            ("file://localhost/srv", "/srv", "file:///srv"),
            ("~/notes", "/people/ada/notes", "file:///people/ada/notes"),
            ("~", "/people/ada", "file:///people/ada"),
            ("~tilde", "~tilde", "file:///base/~tilde"),
            ("src", "src", "file:///base/src"),
            ("/50%", "/50%", "file:///50%25"),
        ] {
            let root = RootFolder::try_from(text.to_owned()).unwrap();
            let root = root.in_home(Some("/people/ada"));
            assert_eq!(root.path(), Path::new(path));
            assert_eq!(root.uri(Path::new("/base")), uri);
        }
        for text in ["file://host/share", "https://example.com"] {
            assert!(RootFolder::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
