//! Whether a server's program is there. The guard finds that out too, but only when it is started.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::ServerCommand;

/// Why a program cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramProblem {
    /// There is no such file.
    #[error("cannot start the server: {program:?} was not found{place}")]
    NotFound {
        /// The program as it was given.
        program: String,
        /// ` in PATH`, if it was looked up there.
        place: &'static str,
    },
    /// It may not be executed.
    #[error("cannot start the server: {0:?} is not executable")]
    NotExecutable(String),
}

impl ServerCommand {
    /// What keeps the program from being started, as far as can be seen from its file.
    pub fn program_problem(&self) -> Option<ProgramProblem> {
        let program = self.program.to_string_lossy().into_owned();
        let is_path = program.contains('/');
        let places = match is_path {
            true => vec![self.in_folder(Path::new(&self.program))],
            false => self.search_path()?,
        };
        if places.iter().any(|place| is_executable(place)) {
            return None;
        }
        Some(match places.iter().any(|place| place.is_file()) {
            true => ProgramProblem::NotExecutable(program),
            false => ProgramProblem::NotFound {
                program,
                place: if is_path { "" } else { " in PATH" },
            },
        })
    }

    /// Where the program may be, by the server's own `PATH`. `None`: there is none, and the system decides.
    fn search_path(&self) -> Option<Vec<PathBuf>> {
        let mut configured = self.env.iter().rev();
        let configured = configured.find(|(name, _)| name == OsStr::new("PATH"));
        let path = match configured {
            Some((_, value)) => value.clone(),
            None => std::env::var_os("PATH")?,
        };
        let folders = std::env::split_paths(&path);
        Some(
            folders
                .map(|folder| self.in_folder(&folder.join(&self.program)))
                .collect(),
        )
    }

    fn in_folder(&self, path: &Path) -> PathBuf {
        match &self.cwd {
            Some(folder) => folder.join(path),
            None => path.to_owned(),
        }
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(program: &str, folder: Option<&Path>) -> ServerCommand {
        ServerCommand {
            program: program.into(),
            cwd: folder.map(Path::to_owned),
            ..ServerCommand::default()
        }
    }

    #[test]
    fn a_program_is_looked_up_as_the_system_does() {
        let folder = tempfile::tempdir().unwrap();
        let tool = folder.path().join("tool");
        std::fs::write(&tool, "#!/bin/sh\n").unwrap();
        let here = |program| command(program, Some(folder.path())).program_problem();
        let not_executable = |program: &str| ProgramProblem::NotExecutable(program.to_owned());
        assert_eq!(here("./tool"), Some(not_executable("./tool")));
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(here("./tool"), None);
        assert!(matches!(
            here("./none"),
            Some(ProgramProblem::NotFound { .. })
        ));
        assert_eq!(command("sh", None).program_problem(), None);
        assert!(matches!(
            here("tool"),
            Some(ProgramProblem::NotFound { .. })
        ));
        let mut configured = command("tool", None);
        configured.env = vec![("PATH".into(), folder.path().into())];
        assert_eq!(configured.program_problem(), None);
    }
}
