//! jq: the language and the library of `jaq`, with regular expressions of the crate `regex`.
//!
//! `jaq` cannot be interrupted, so its caller has to bound it from outside: [`crate::program_thread`] for programs of the
//! proxy's owner, a process with limits for those of clients. What repeats without end looks itself whether its caller still waits.
//!
//! Not here: what a program is asked. See [`crate::filter`] and [`crate::Change`].

mod error_text;
mod functions;
mod source;
mod value;

use std::sync::Mutex;

use jaq_core::data::HasLut;
use jaq_core::load::parse::Def;
use jaq_core::load::{Arena, Error, File, Lexer, Loader, parse};
use jaq_core::{Compiler, Ctx, DataT, Lut, Vars};
use jaq_json::Val;

use crate::filter::FilterError;
use crate::program_thread::{STACK, WaitingCaller};
use error_text::explained;
use functions::CompiledPatterns;

pub(crate) use source::NeededFields;
pub(crate) use value::{json, time, whole};

/// The values and the data that our programs work on.
pub(crate) struct JqEngine;

impl DataT for JqEngine {
    type V<'a> = Val;
    type Data<'a> = JqData<'a>;
}

/// What a running program can reach.
#[derive(Clone, Copy)]
pub(crate) struct JqData<'a> {
    lut: &'a Lut<JqEngine>,
    caller: &'a WaitingCaller,
    patterns: &'a Mutex<CompiledPatterns>,
}

impl<'a> HasLut<'a, JqEngine> for JqData<'a> {
    fn lut(&self) -> &'a Lut<JqEngine> {
        self.lut
    }
}

/// A compiled program.
pub(crate) struct JqProgram {
    filter: jaq_core::Filter<JqEngine>,
    needs: NeededFields,
    /// Compiled once, however many messages they are tried on.
    patterns: Mutex<CompiledPatterns>,
}

/// Why a filter did not decide, or a program gave no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JqError {
    /// It missed its deadline just now, and is switched off.
    #[error("it takes too long, and is switched off")]
    TooSlow,
    /// It missed its deadline before.
    #[error("it took too long before, and is switched off")]
    SwitchedOff,
    /// It failed on this message.
    #[error("{0}")]
    Failed(String),
}

/// Definitions of the library that a program cannot use: they write to the terminal, or end the process in jq.
const LEFT_OUT: [&str; 4] = ["debug", "stderr", "halt", "halt_error"];

impl JqProgram {
    /// Compiles `text`. Fields in `known` are those that its input has; none means any.
    pub(crate) fn compile(text: &str, known: &[&'static str]) -> Result<JqProgram, FilterError> {
        source::check_length(text).map_err(|(at, why)| FilterError::new(text, Some(at), why))?;
        // Lexer, parser and compiler go down one call for each level of the program.
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK);
            let compiling = thread.spawn_scoped(scope, || JqProgram::read(text, known));
            let failed = || FilterError::new(text, None, "it cannot be compiled".to_owned());
            compiling
                .map_err(|_| failed())?
                .join()
                .map_err(|_| failed())?
        })
    }

    fn read(text: &str, known: &[&'static str]) -> Result<JqProgram, FilterError> {
        let wrong = |at: &str, why: String| FilterError::new(text, Some(at), why);
        let arena = Arena::default();
        let code = File {
            code: text,
            path: (),
        };
        let modules = Loader::new(library())
            .load(&arena, code)
            .map_err(|errors| match errors.into_iter().next() {
                Some((_, error)) => load_error(text, error),
                None => wrong(text, "not jq".to_owned()),
            })?;
        let tokens = Lexer::new(text)
            .lex()
            .map_err(|_| wrong(text, "not jq".to_owned()))?;
        if let Some(name) = source::self_calling(&tokens) {
            let why = format!(
                "`{name}` calls itself, which could run forever: use recurse, while, until or walk"
            );
            return Err(wrong(name, why));
        }
        let needs = NeededFields::of(&tokens, known).map_err(|(at, why)| wrong(at, why))?;
        let filter = Compiler::default()
            .with_funs(functions::all())
            .compile(modules)
            .map_err(|errors| {
                let mut all = errors.into_iter().flat_map(|(_, errors)| errors);
                match all.next() {
                    Some((name, undefined)) => {
                        wrong(name, format!("unknown {} `{name}`", undefined.as_str()))
                    }
                    None => wrong(text, "not jq".to_owned()),
                }
            })?;
        Ok(JqProgram {
            filter,
            needs,
            patterns: Mutex::default(),
        })
    }

    /// What of its input it looks at.
    pub(crate) fn needs(&self) -> NeededFields {
        self.needs
    }

    /// Whether any output is neither `null` nor `false`.
    pub(crate) fn any_true(&self, input: Val, caller: &WaitingCaller) -> Result<bool, JqError> {
        self.run(input, caller, |output| {
            (!matches!(output, Val::Null | Val::Bool(false))).then_some(())
        })
        .map(|found| found.is_some())
    }

    /// Its first two outputs, as far as it has any.
    pub(crate) fn first_two(
        &self,
        input: Val,
        caller: &WaitingCaller,
    ) -> Result<Vec<Val>, JqError> {
        let mut outputs = Vec::new();
        self.run(input, caller, |output| {
            outputs.push(output);
            (outputs.len() > 1).then_some(())
        })?;
        Ok(outputs)
    }

    /// Takes outputs until `take` has what it wants.
    pub(crate) fn run<T>(
        &self,
        input: Val,
        caller: &WaitingCaller,
        mut take: impl FnMut(Val) -> Option<T>,
    ) -> Result<Option<T>, JqError> {
        let data = JqData {
            lut: &self.filter.lut,
            caller,
            patterns: &self.patterns,
        };
        let context = Ctx::<JqEngine>::new(data, Vars::new([]));
        for output in self.filter.id.run((context, input)) {
            let output = output.map_err(|stop| match stop.get_err() {
                Ok(error) => JqError::Failed(explained(error)),
                Err(_) => JqError::Failed("the program halts".to_owned()),
            })?;
            if let Some(taken) = take(output) {
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }
}

impl std::fmt::Debug for JqProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JqProgram")
            .field("needs", &self.needs)
            .finish()
    }
}

/// The library: that of jaq, and what it lacks.
fn library() -> impl Iterator<Item = Def<&'static str>> {
    let ours = parse(include_str!("jq/defs.jq"), |parser| parser.defs());
    jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs())
        .filter(|def| !LEFT_OUT.contains(&def.name))
        .chain(ours.unwrap_or_default())
}

/// Why a text is not jq.
fn load_error(text: &str, error: Error<&str>) -> FilterError {
    let wrong = |at: &str, why: String| FilterError::new(text, Some(at), why);
    match error {
        Error::Io(errors) => match errors.first() {
            Some((module, _)) => wrong(module, "modules cannot be used here".to_owned()),
            None => wrong(text, "not jq".to_owned()),
        },
        Error::Lex(errors) => match errors.first() {
            Some((expected, at)) => wrong(at, format!("{} expected", expected.as_str())),
            None => wrong(text, "not jq".to_owned()),
        },
        Error::Parse(errors) => match errors.first() {
            Some((expected, "")) => wrong(
                &text[text.len()..],
                format!("it ends where {} is expected", expected.as_str()),
            ),
            Some((expected, at)) => wrong(at, format!("{} expected", expected.as_str())),
            None => wrong(text, "not jq".to_owned()),
        },
    }
}
