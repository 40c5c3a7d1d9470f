//! Changes a program so that it pays for what it does.
//!
//! Values come from few places. Those that make many (`.[]`, `..`, and definitions of the library that call themselves)
//! get a toll behind or before them, those that make large ones (`[…]`, `{…}`, `"…\(…)"`, `+`, `*` and assignments) pay
//! for what they made. The rest of a program only hands on what came from there, so its cost is bounded with theirs.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::ops::Math;
use jaq_core::path::{Part, Path};

/// Hands its input on and pays one step; may stand in paths and on the left of assignments.
pub(super) const CHARGE: &str = "toll'";
/// Hands its input on and pays for its size.
pub(super) const CHARGE_SIZE: &str = "weigh'";
/// `+` and `*`, paid for.
pub(super) const ADD: &str = "add'";
/// See [`ADD`].
pub(super) const MULTIPLY: &str = "multiply'";

/// Holds the right side of an assignment. No program can name it.
const RIGHT: &str = "$right'";

/// The program with its tolls.
pub(super) fn meter(term: Term<&str>) -> Term<&str> {
    match term {
        Term::Id | Term::Num(_) | Term::Break(_) | Term::Var(_) | Term::Arr(None) => term,
        Term::Recurse => then(term, CHARGE),
        Term::Str(format, parts) => {
            let plain = parts.iter().all(|part| !matches!(part, StrPart::Term(_)));
            let parts = parts.into_iter().map(|part| match part {
                StrPart::Term(term) => StrPart::Term(meter(term)),
                other => other,
            });
            let text = Term::Str(format, parts.collect());
            if plain { text } else { then(text, CHARGE_SIZE) }
        }
        Term::Arr(Some(term)) => then(Term::Arr(Some(boxed(*term))), CHARGE_SIZE),
        Term::Obj(members) if members.is_empty() => Term::Obj(members),
        Term::Obj(members) => {
            let members = members.into_iter().map(|(k, v)| (meter(k), v.map(meter)));
            then(Term::Obj(members.collect()), CHARGE_SIZE)
        }
        Term::Neg(term) => Term::Neg(boxed(*term)),
        Term::BinOp(left, op, right) => operation(*left, op, *right),
        Term::Label(name, term) => Term::Label(name, boxed(*term)),
        Term::Fold(name, values, pattern, args) => Term::Fold(
            name,
            boxed(*values),
            meter_pattern(pattern),
            args.into_iter().map(meter).collect(),
        ),
        Term::TryCatch(tried, caught) => {
            Term::TryCatch(boxed(*tried), caught.map(|term| boxed(*term)))
        }
        Term::IfThenElse(cases, otherwise) => Term::IfThenElse(
            cases
                .into_iter()
                .map(|(i, t)| (meter(i), meter(t)))
                .collect(),
            otherwise.map(|term| boxed(*term)),
        ),
        Term::Def(defs, term) => Term::Def(
            defs.into_iter().map(meter_definition).collect(),
            boxed(*term),
        ),
        Term::Call(name, args) => Term::Call(name, args.into_iter().map(meter).collect()),
        Term::Path(term, path) => {
            let many = path.0.iter().any(|(part, _)| match part {
                Part::Range(None, None) => true,
                Part::Index(index) => !matches!(index, Term::Num(_) | Term::Str(..)),
                Part::Range(..) => false,
            });
            let parts = path
                .0
                .into_iter()
                .map(|(part, opt)| (meter_part(part), opt));
            let path = Term::Path(boxed(*term), Path(parts.collect()));
            if many { then(path, CHARGE) } else { path }
        }
    }
}

/// The definitions of the library that `program` uses, directly or not, with their tolls.
pub(super) fn library<'s>(program: &Term<&'s str>) -> Vec<Def<&'s str>> {
    let mut wanted = Vec::new();
    visit(program, &mut |term| wanted.extend(called(term)));
    let all: Vec<_> = definitions().collect();
    let mut used = Vec::new();
    // A definition sees those before it only.
    for def in all.into_iter().rev() {
        if wanted.contains(&(def.name, def.args.len())) {
            visit(&def.body, &mut |term| wanted.extend(called(term)));
            used.push(meter_definition(def));
        }
    }
    used.reverse();
    used
}

/// The library: that of jaq, and what it lacks.
fn definitions() -> impl Iterator<Item = Def<&'static str>> {
    let ours = parse(include_str!("defs.jq"), |parser| parser.defs());
    jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs())
        .chain(ours.unwrap_or_default())
}

/// What in `program` uses a function of the library that there is not here.
pub(super) fn user_of<'s>(program: &Term<&'s str>, missing: &str) -> Option<&'s str> {
    let mut found = None;
    visit(program, &mut |term| {
        let Some((name, arity)) = called(term).filter(|_| found.is_none()) else {
            return;
        };
        let call = Term::Call(name, vec![Term::Id; arity]);
        let needs = |def: &Def<&str>| {
            let mut is_called = false;
            visit(&def.body, &mut |term| {
                is_called |= called(term).is_some_and(|(called, _)| called == missing);
            });
            is_called
        };
        if library(&call).iter().any(needs) {
            found = Some(name);
        }
    });
    found
}

/// The first definition in `program` that calls itself.
pub(super) fn recursive<'s>(program: &Term<&'s str>) -> Option<&'s str> {
    let mut found = None;
    visit(program, &mut |term| {
        if let Term::Def(defs, _) = term {
            found = found.or(defs
                .iter()
                .find(|def| calls_itself(def))
                .map(|def| def.name));
        }
    });
    found
}

fn operation<'s>(
    left: Term<&'s str>,
    op: BinaryOp<&'s str>,
    right: Term<&'s str>,
) -> Term<&'s str> {
    let (left, right) = (meter(left), meter(right));
    let held = || Box::new(Term::Var(RIGHT));
    match op {
        BinaryOp::Pipe(pattern) => {
            let pattern = pattern.map(meter_pattern);
            Term::BinOp(Box::new(left), BinaryOp::Pipe(pattern), Box::new(right))
        }
        BinaryOp::Math(Math::Add) => Term::Call(ADD, vec![left, right]),
        BinaryOp::Math(Math::Mul) => Term::Call(MULTIPLY, vec![left, right]),
        BinaryOp::Update => update(left, then(right, CHARGE_SIZE)),
        // `p = f` is `f as $right | p |= $right`: what is put in is paid at every place it is put.
        BinaryOp::Assign => with_right(right, update(left, then(*held(), CHARGE_SIZE))),
        BinaryOp::UpdateMath(op) => {
            let changed = operation(Term::Id, BinaryOp::Math(op), *held());
            with_right(right, update(left, changed))
        }
        BinaryOp::UpdateAlt => {
            let changed = Term::BinOp(Box::new(Term::Id), BinaryOp::Alt, held());
            with_right(right, update(left, then(changed, CHARGE_SIZE)))
        }
        other => Term::BinOp(Box::new(left), other, Box::new(right)),
    }
}

fn with_right<'s>(right: Term<&'s str>, body: Term<&'s str>) -> Term<&'s str> {
    let bind = BinaryOp::Pipe(Some(Pattern::Var(RIGHT)));
    Term::BinOp(Box::new(right), bind, Box::new(body))
}

fn update<'s>(places: Term<&'s str>, change: Term<&'s str>) -> Term<&'s str> {
    Term::BinOp(Box::new(places), BinaryOp::Update, Box::new(change))
}

fn meter_definition(def: Def<&str>) -> Def<&str> {
    let endless = calls_itself(&def);
    let body = meter(def.body);
    let body = if endless {
        let toll = Term::Call(CHARGE, Vec::new());
        Term::BinOp(Box::new(toll), BinaryOp::Pipe(None), Box::new(body))
    } else {
        body
    };
    Def { body, ..def }
}

fn meter_pattern(pattern: Pattern<&str>) -> Pattern<&str> {
    match pattern {
        Pattern::Var(name) => Pattern::Var(name),
        Pattern::Arr(elements) => Pattern::Arr(elements.into_iter().map(meter_pattern).collect()),
        Pattern::Obj(members) => Pattern::Obj(
            members
                .into_iter()
                .map(|(key, pattern)| (meter(key), meter_pattern(pattern)))
                .collect(),
        ),
    }
}

fn meter_part(part: Part<Term<&str>>) -> Part<Term<&str>> {
    match part {
        Part::Index(index) => Part::Index(meter(index)),
        Part::Range(from, to) => Part::Range(from.map(meter), to.map(meter)),
    }
}

fn boxed(term: Term<&str>) -> Box<Term<&str>> {
    Box::new(meter(term))
}

fn then<'s>(term: Term<&'s str>, toll: &'static str) -> Term<&'s str> {
    let toll = Term::Call(toll, Vec::new());
    Term::BinOp(Box::new(term), BinaryOp::Pipe(None), Box::new(toll))
}

fn calls_itself(def: &Def<&str>) -> bool {
    let mut found = false;
    visit(&def.body, &mut |term| {
        found |= called(term) == Some((def.name, def.args.len()));
    });
    found
}

/// The definition that this very term calls: its name and number of arguments.
fn called<'s>(term: &Term<&'s str>) -> Option<(&'s str, usize)> {
    match term {
        Term::Call(name, args) => Some((name, args.len())),
        Term::Str(Some(format), _) => Some((format, 0)),
        _ => None,
    }
}

/// Shows `seen` the term and everything in it.
pub(super) fn visit<'t, 's>(term: &'t Term<&'s str>, seen: &mut impl FnMut(&'t Term<&'s str>)) {
    seen(term);
    children(term, &mut |child| visit_dyn(child, seen));
}

// A closure that is handed down by `&mut` keeps one type however deep the program is.
fn visit_dyn<'t, 's>(term: &'t Term<&'s str>, seen: &mut dyn FnMut(&'t Term<&'s str>)) {
    seen(term);
    children(term, &mut |child| visit_dyn(child, seen));
}

/// The terms directly in `term`.
pub(super) fn children<'t, 's>(term: &'t Term<&'s str>, each: &mut dyn FnMut(&'t Term<&'s str>)) {
    match term {
        Term::Id | Term::Recurse | Term::Num(_) | Term::Break(_) | Term::Var(_) => {}
        Term::Str(_, parts) => parts.iter().for_each(|part| {
            if let StrPart::Term(term) = part {
                each(term);
            }
        }),
        Term::Arr(term) => term.iter().for_each(|term| each(term)),
        Term::Obj(members) => members.iter().for_each(|(key, value)| {
            each(key);
            value.iter().for_each(&mut *each);
        }),
        Term::Neg(term) | Term::Label(_, term) => each(term),
        Term::BinOp(left, op, right) => {
            each(left);
            if let BinaryOp::Pipe(Some(pattern)) = op {
                in_pattern(pattern, each);
            }
            each(right);
        }
        Term::Fold(_, values, pattern, args) => {
            each(values);
            in_pattern(pattern, each);
            args.iter().for_each(each);
        }
        Term::TryCatch(tried, caught) => {
            each(tried);
            caught.iter().for_each(|term| each(term));
        }
        Term::IfThenElse(cases, otherwise) => {
            cases.iter().for_each(|(when, then)| {
                each(when);
                each(then);
            });
            otherwise.iter().for_each(|term| each(term));
        }
        Term::Def(defs, term) => {
            defs.iter().for_each(|def| each(&def.body));
            each(term);
        }
        Term::Call(_, args) => args.iter().for_each(each),
        Term::Path(term, path) => {
            each(term);
            path.0.iter().for_each(|(part, _)| match part {
                Part::Index(index) => each(index),
                Part::Range(from, to) => from.iter().chain(to).for_each(&mut *each),
            });
        }
    }
}

fn in_pattern<'t, 's>(pattern: &'t Pattern<&'s str>, each: &mut dyn FnMut(&'t Term<&'s str>)) {
    match pattern {
        Pattern::Var(_) => {}
        Pattern::Arr(elements) => elements.iter().for_each(|inner| in_pattern(inner, each)),
        Pattern::Obj(members) => members.iter().for_each(|(key, inner)| {
            each(key);
            in_pattern(inner, each);
        }),
    }
}
