//! The directories that the server is confined to, and which of them a path means.

use std::path::{Component, Path, PathBuf};

use super::access_error::AccessError;
use super::confined::ConfinedDirectory;
use crate::error::BuiltinError;
use crate::tool::{ToolFailure, clip};

/// The longest path that the system takes.
const PATH_LIMIT: usize = 4096;
/// As much of a path as an error repeats.
const SHOWN_LIMIT: usize = 200;

/// A directory whose files are served. It is opened once: renaming it later changes nothing.
pub struct Root {
    name: String,
    /// As configured, made absolute.
    configured: PathBuf,
    /// Without symbolic links.
    canonical: PathBuf,
    directory: ConfinedDirectory,
}

/// At least one root, and no name twice.
pub(super) struct RootSet(Vec<Root>);

/// A path below a root.
#[derive(Clone)]
pub(super) struct RootedPath<'a> {
    root: &'a Root,
    /// Without `.` and `..`; empty for the root itself.
    relative: PathBuf,
    /// As answers show it.
    shown: String,
}

/// What a path means.
pub(super) enum Location<'a> {
    /// The place above several roots.
    AllRoots,
    /// A file or directory below a root.
    Below(RootedPath<'a>),
}

impl Root {
    /// Opens a root named like the last part of its path.
    pub fn open(path: impl AsRef<Path>) -> Result<Root, BuiltinError> {
        let path = path.as_ref();
        let canonical = canonicalize(path)?;
        let name = canonical
            .file_name()
            .map_or("root".into(), |name| name.to_string_lossy().into_owned());
        Root::open_named(name, path)
    }

    /// Opens a root with a name of its own.
    pub fn open_named(
        name: impl Into<String>,
        path: impl AsRef<Path>,
    ) -> Result<Root, BuiltinError> {
        let name = name.into();
        let is_plain = matches!(
            Path::new(&name).components().collect::<Vec<_>>().as_slice(),
            [Component::Normal(part)] if *part == name.as_str()
        );
        if !is_plain {
            return Err(BuiltinError::RootName { name });
        }
        let path = path.as_ref();
        let canonical = canonicalize(path)?;
        let directory = ConfinedDirectory::open(&canonical)
            .map_err(|error| cannot_open(path, std::io::Error::other(error)))?;
        let configured = std::path::absolute(path).map_err(|error| cannot_open(path, error))?;
        Ok(Root {
            name,
            configured,
            canonical,
            directory,
        })
    }

    /// Its name, the first part of paths when there are several roots.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.canonical
    }

    /// What an absolute path is called below this root.
    fn strip<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.canonical)
            .or_else(|_| path.strip_prefix(&self.configured))
            .ok()
    }
}

impl RootSet {
    pub(super) fn new(roots: Vec<Root>) -> Result<RootSet, BuiltinError> {
        if roots.is_empty() {
            return Err(BuiltinError::NoRoots);
        }
        for (index, root) in roots.iter().enumerate() {
            if roots[..index].iter().any(|other| other.name == root.name) {
                let name = root.name.clone();
                return Err(BuiltinError::DuplicateRoot { name });
            }
        }
        Ok(RootSet(roots))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Root> {
        self.0.iter()
    }

    /// The only root, if there is only one.
    pub(super) fn only(&self) -> Option<&Root> {
        match self.0.as_slice() {
            [root] => Some(root),
            _ => None,
        }
    }

    /// What the argument `path` means.
    pub(super) fn locate(&self, path: &str) -> Result<Location<'_>, ToolFailure> {
        if path.len() > PATH_LIMIT {
            return Err(ToolFailure::new(format!(
                "`path` is longer than {PATH_LIMIT} bytes"
            )));
        }
        let refuse = |reason: String| {
            let path = clip(path, SHOWN_LIMIT);
            Err(ToolFailure::new(format!("`path` {reason}: {path:?}")))
        };
        if path.contains('\0') {
            return refuse("contains a null character".to_owned());
        }
        let whole = Path::new(path);
        if whole.components().any(|part| part == Component::ParentDir) {
            return refuse("must not contain `..`".to_owned());
        }
        if whole.is_absolute() {
            let below = self
                .0
                .iter()
                .filter_map(|root| Some((root, root.strip(whole)?)));
            // Of nested roots, the innermost.
            return match below.min_by_key(|(_, relative)| relative.as_os_str().len()) {
                Some((root, relative)) => Ok(Location::Below(self.below(root, relative))),
                None => refuse(format!("is outside of {}", self.describe())),
            };
        }
        if let Some(root) = self.only() {
            return Ok(Location::Below(self.below(root, whole)));
        }
        let mut parts = whole.components();
        let first = parts.find(|part| *part != Component::CurDir);
        let Some(first) = first else {
            return Ok(Location::AllRoots);
        };
        let root = self
            .0
            .iter()
            .find(|root| first.as_os_str() == root.name.as_str());
        match root {
            Some(root) => Ok(Location::Below(self.below(root, parts.as_path()))),
            None => refuse(format!("must start with {}", self.describe())),
        }
    }

    /// What the argument `path` means, if it must be below one root.
    pub(super) fn locate_below(&self, path: &str) -> Result<RootedPath<'_>, ToolFailure> {
        match self.locate(path)? {
            Location::Below(below) => Ok(below),
            Location::AllRoots => Err(ToolFailure::new(format!(
                "`path` must start with {}",
                self.describe()
            ))),
        }
    }

    /// The roots themselves, as paths.
    pub(super) fn tops(&self) -> Vec<RootedPath<'_>> {
        let top = |root| self.below(root, Path::new(""));
        self.0.iter().map(top).collect()
    }

    /// The roots, for people and models.
    pub(super) fn describe(&self) -> String {
        match self.only() {
            Some(root) => format!("the root {}", root.canonical.display()),
            None => {
                let name = |root: &Root| format!("{} ({})", root.name, root.canonical.display());
                let names: Vec<String> = self.0.iter().map(name).collect();
                format!("one of the roots {}", names.join(", "))
            }
        }
    }

    fn below<'a>(&'a self, root: &'a Root, relative: &Path) -> RootedPath<'a> {
        let is_named = |part: &Component<'_>| matches!(part, Component::Normal(_));
        let relative: PathBuf = relative.components().filter(is_named).collect();
        let shown = match self.only() {
            Some(_) => relative.clone(),
            None => Path::new(&root.name).join(&relative),
        };
        let shown = match shown.to_string_lossy() {
            shown if shown.is_empty() => ".".to_owned(),
            shown => shown.trim_end_matches('/').to_owned(),
        };
        RootedPath {
            root,
            relative,
            shown,
        }
    }
}

impl<'a> RootedPath<'a> {
    pub(super) fn directory(&self) -> &'a ConfinedDirectory {
        &self.root.directory
    }

    pub(super) fn relative(&self) -> &Path {
        &self.relative
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// The absolute path.
    pub(super) fn absolute(&self) -> PathBuf {
        self.root.canonical.join(&self.relative)
    }

    /// The path of an entry of this directory.
    pub(super) fn join(&self, name: &Path) -> RootedPath<'a> {
        let name_shown = name.to_string_lossy();
        RootedPath {
            root: self.root,
            relative: self.relative.join(name),
            shown: match self.shown.as_str() {
                "." => name_shown.into_owned(),
                shown => format!("{shown}/{name_shown}"),
            },
        }
    }

    /// The failure that tells why this path cannot be used.
    pub(super) fn failure(&self, error: AccessError) -> ToolFailure {
        ToolFailure::new(format!("{} {error}", clip(&self.shown, SHOWN_LIMIT)))
    }
}

fn canonicalize(path: &Path) -> Result<PathBuf, BuiltinError> {
    path.canonicalize()
        .map_err(|error| cannot_open(path, error))
}

fn cannot_open(path: &Path, source: std::io::Error) -> BuiltinError {
    BuiltinError::OpenRoot {
        path: path.to_owned(),
        source,
    }
}
