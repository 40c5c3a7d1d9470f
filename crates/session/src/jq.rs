//! jq programs that always come to an end.
//!
//! The language is that of `jaq`; what is added here is the bound. A program is written by a person and runs on what a
//! peer sent, in the middle of the traffic, so no program may run for ever, fill the memory or overflow the stack. `jaq`
//! has no limit to set, so the program itself is changed before it is compiled (`bound.rs`): everything that can produce
//! many values or large ones pays for them from an [`Account`], and a program that cannot pay is stopped in a way that no
//! `try` catches. Definitions that call themselves, the one way to overflow the stack, are refused.
//!
//! Not here: what a program is asked. See [`crate::filter`] and [`crate::Change`].

mod account;
mod dates;
mod error_text;
mod formats;
mod limits;
mod metering;
mod natives;
mod needed_fields;
mod search;
mod value;

use std::sync::Mutex;

use jaq_core::data::HasLut;
use jaq_core::load::{Arena, File, Lexer, Loader, Parser, parse::Def, parse::Term, span};
use jaq_core::{Compiler, Ctx, DataT, Lut, Vars};
use jaq_json::Val;

use crate::budget::Budget;
use crate::filter::FilterError;
use error_text::explained;
use natives::CompiledPatterns;

pub(crate) use account::Account;
pub(crate) use needed_fields::NeededFields;
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
    account: &'a Account,
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
    /// It was stopped: it computed for longer than this, or made too much.
    #[error("it takes more than {} ms or {} steps", .0.time.as_millis(), account::STEPS)]
    TooSlow(Budget),
    /// It was too slow several times in a row and is not tried for a while.
    #[error("it was too slow several times in a row and is not tried for a while")]
    GivenUp,
    /// It failed on this message.
    #[error("{0}")]
    Failed(String),
}

/// The name under which a program is compiled; no program can use it.
const MAIN: &str = "main'";

impl JqProgram {
    /// Compiles `text`. Fields in `known` are those that its input has; none means any.
    pub(crate) fn compile(text: &str, known: &[&'static str]) -> Result<JqProgram, FilterError> {
        limits::check_text(text).map_err(|(at, why)| FilterError::new(text, Some(at), why))?;
        // Lexer and parser go down one call for each level of the program, and how deep it is, they find out.
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(limits::STACK);
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
        let tokens = Lexer::new(text)
            .lex()
            .map_err(|errors| match errors.first() {
                Some((expected, at)) => wrong(at, format!("{} expected", expected.as_str())),
                None => wrong("", "no jq".to_owned()),
            })?;
        let term =
            Parser::new(&tokens)
                .parse(|parser| parser.term())
                .map_err(|errors| match errors.first() {
                    Some((expected, Some(found))) => {
                        wrong(found.0, format!("{} expected", expected.as_str()))
                    }
                    Some((expected, None)) => wrong(
                        &text[text.len()..],
                        format!("it ends where {} is expected", expected.as_str()),
                    ),
                    None => wrong("", "no jq".to_owned()),
                })?;
        limits::check_program(&term).map_err(|why| FilterError::new(text, None, why))?;
        if let Some(name) = metering::recursive(&term) {
            let why = format!(
                "`{name}` calls itself, which could run forever: use recurse, while, until or walk"
            );
            return Err(wrong(name, why));
        }
        let needs = NeededFields::of(&term, known).map_err(|(at, why)| wrong(at, why))?;
        let library = metering::library(&term);
        let program = term.clone();
        let main = Def {
            name: MAIN,
            args: Vec::new(),
            body: metering::meter(term),
        };
        let arena = Arena::default();
        let filter = link(&arena, library, main).map_err(|(name, why)| {
            match (within(text, name), metering::user_of(&program, name)) {
                (true, _) => wrong(name, why),
                (false, Some(user)) => wrong(user, format!("`{user}` cannot be used here")),
                (false, None) => FilterError::new(text, None, why),
            }
        })?;
        Ok(JqProgram {
            filter,
            needs,
            patterns: Mutex::new(CompiledPatterns::default()),
        })
    }

    /// What of its input it looks at.
    pub(crate) fn needs(&self) -> NeededFields {
        self.needs
    }

    /// Whether any output is neither `null` nor `false`.
    pub(crate) fn any_true(&self, input: Val, account: &Account) -> Result<bool, JqError> {
        self.run(input, account, |output| {
            (!matches!(output, Val::Null | Val::Bool(false))).then_some(())
        })
        .map(|found| found.is_some())
    }

    /// Its first two outputs, as far as it has any.
    pub(crate) fn first_two(&self, input: Val, account: &Account) -> Result<Vec<Val>, JqError> {
        let mut outputs = Vec::new();
        self.run(input, account, |output| {
            outputs.push(output);
            (outputs.len() > 1).then_some(())
        })?;
        Ok(outputs)
    }

    /// Takes outputs until `take` has what it wants.
    pub(crate) fn run<T>(
        &self,
        input: Val,
        account: &Account,
        mut take: impl FnMut(Val) -> Option<T>,
    ) -> Result<Option<T>, JqError> {
        // Reading the input may have taken all the time.
        if account.is_spent() || account.look() {
            return Err(JqError::TooSlow(account.budget()));
        }
        let data = JqData {
            lut: &self.filter.lut,
            account,
            patterns: &self.patterns,
        };
        let context = Ctx::<JqEngine>::new(data, Vars::new([]));
        for output in self.filter.id.run((context, input)) {
            let output = output.map_err(|stop| match stop.get_err() {
                Ok(error) if !account.is_spent() => JqError::Failed(explained(error)),
                Err(_) if !account.is_spent() => JqError::Failed("the program halts".to_owned()),
                _ => JqError::TooSlow(account.budget()),
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
        f.debug_struct("Program")
            .field("needs", &self.needs)
            .finish()
    }
}

/// Compiles the parts of the library that are needed, and the program after them.
fn link<'s>(
    arena: &'s Arena,
    library: Vec<Def<&'s str>>,
    main: Def<&'s str>,
) -> Result<jaq_core::Filter<JqEngine>, (&'s str, String)> {
    // The program is the last definition of the library: that way it is compiled as it was changed, not as it was typed.
    let name = Def {
        name: "main",
        args: Vec::new(),
        body: Term::Call(MAIN, Vec::new()),
    };
    let loader = Loader::new(library.into_iter().chain([main, name]));
    let code = File {
        code: "main",
        path: (),
    };
    let modules = loader
        .load(arena, code)
        .map_err(|_| ("", "no jq".to_owned()))?;
    Compiler::default()
        .with_funs(natives::all())
        .compile(modules)
        .map_err(|errors| {
            let first = errors.into_iter().flat_map(|(_, errors)| errors).next();
            match first {
                Some((name, undefined)) => {
                    (name, format!("unknown {} `{name}`", undefined.as_str()))
                }
                None => ("", "no jq".to_owned()),
            }
        })
}

/// Whether `part` is a piece of `text`, not of the library.
fn within(text: &str, part: &str) -> bool {
    let range = text.as_bytes().as_ptr_range();
    !part.is_empty() && range.contains(&part.as_ptr()) && span(text, part).end <= text.len()
}
