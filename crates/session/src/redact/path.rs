//! A small JSONPath: `$`, `.name`, `['name']`, `[3]`, `*`, and `..` for any depth. No filters and no slices.
//!
//! Paths are followed while a message is walked over: what is remembered at each open container is which steps of which
//! paths lead to it, so all paths together cost one look at each key.

use super::RedactionError;

/// Steps that fit into the states of one path.
const MOST_STEPS: usize = 63;

/// Paths to values that are hidden.
#[derive(Debug, Default)]
pub(super) struct RedactionPaths(Vec<Vec<PathStep>>);

#[derive(Debug, PartialEq, Eq)]
struct PathStep {
    /// The step may be taken any number of containers further down.
    anywhere: bool,
    to: PathStepTarget,
}

#[derive(Debug, PartialEq, Eq)]
enum PathStepTarget {
    Key(String),
    Index(usize),
    Any,
}

/// For each path the steps that are to be taken next, one bit each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PathMatchState(Vec<u64>);

/// The way from a container to a value in it.
#[derive(Debug, Clone, Copy)]
pub(super) enum PathElement<'a> {
    Key(&'a [u8]),
    Index(usize),
}

impl RedactionPaths {
    pub(super) fn new(paths: &[String]) -> Result<RedactionPaths, RedactionError> {
        let parsed = paths.iter().map(|path| {
            parse(path).map_err(|why| RedactionError::Path {
                path: path.clone(),
                why,
            })
        });
        parsed.collect::<Result<_, _>>().map(RedactionPaths)
    }

    /// Where every path begins: at the message.
    pub(super) fn start(&self) -> PathMatchState {
        PathMatchState(vec![1; self.0.len()])
    }

    /// The trail after one more step, and whether a path ends there.
    pub(super) fn follow(
        &self,
        trail: &PathMatchState,
        way: PathElement<'_>,
    ) -> (PathMatchState, bool) {
        let mut arrived = false;
        let next = self.0.iter().zip(&trail.0).map(|(steps, states)| {
            let mut next = 0;
            for (index, step) in steps.iter().enumerate() {
                if states & (1 << index) == 0 {
                    continue;
                }
                if step.anywhere {
                    next |= 1 << index;
                }
                if step.to.leads(way) {
                    next |= 1 << (index + 1);
                }
            }
            arrived |= next & (1 << steps.len()) != 0;
            next
        });
        let next = PathMatchState(next.collect());
        (next, arrived)
    }
}

impl PathStepTarget {
    fn leads(&self, way: PathElement<'_>) -> bool {
        match (self, way) {
            (PathStepTarget::Any, _) => true,
            (PathStepTarget::Key(name), PathElement::Key(key)) => name.as_bytes() == key,
            (PathStepTarget::Index(wanted), PathElement::Index(index)) => *wanted == index,
            _ => false,
        }
    }
}

fn parse(path: &str) -> Result<Vec<PathStep>, &'static str> {
    let mut rest = path.strip_prefix('$').ok_or("it does not begin with $")?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let anywhere = rest.starts_with("..");
        if anywhere {
            rest = &rest[2..];
        }
        let to;
        (to, rest) = if let Some(inside) = rest.strip_prefix('[') {
            bracket(inside)?
        } else if anywhere {
            name(rest)?
        } else {
            name(rest.strip_prefix('.').ok_or("a step begins with . or [")?)?
        };
        steps.push(PathStep { anywhere, to });
    }
    match steps.len() {
        0 => Err("it is the whole message"),
        1..=MOST_STEPS => Ok(steps),
        _ => Err("it is too long"),
    }
}

fn name(rest: &str) -> Result<(PathStepTarget, &str), &'static str> {
    let (name, rest) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
    match name {
        "" => Err("a name is missing"),
        "*" => Ok((PathStepTarget::Any, rest)),
        name => Ok((PathStepTarget::Key(name.to_owned()), rest)),
    }
}

fn bracket(inside: &str) -> Result<(PathStepTarget, &str), &'static str> {
    for quote in ['\'', '"'] {
        if let Some(quoted) = inside.strip_prefix(quote) {
            let (name, rest) = quoted.split_once(quote).ok_or("a quote is left open")?;
            let rest = rest.strip_prefix(']').ok_or("a ] is missing")?;
            return Ok((PathStepTarget::Key(name.to_owned()), rest));
        }
    }
    let (inside, rest) = inside.split_once(']').ok_or("a ] is missing")?;
    match inside {
        "*" => Ok((PathStepTarget::Any, rest)),
        number => Ok((
            PathStepTarget::Index(
                number
                    .parse()
                    .map_err(|_| "between [ and ] there must be a number, * or a quoted name")?,
            ),
            rest,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_path_is_told() {
        let long = |steps: usize| format!("${}", ".a".repeat(steps));
        assert!(parse(&long(MOST_STEPS)).is_ok());
        let wrong = [
            "params.x", "$", "$params", "$.", "$..", "$.a[", "$.a['b]", "$.a['b'", "$.a[-1]",
        ];
        let mut told: Vec<String> = wrong
            .iter()
            .map(|path| format!("{path}  {}", parse(path).unwrap_err()))
            .collect();
        told.push(format!(
            "long  {}",
            parse(&long(MOST_STEPS + 1)).unwrap_err()
        ));
        insta::assert_snapshot!("path_errors", told.join("\n"));
    }

    #[test]
    fn paths_lead_where_they_say() {
        let arrives = |path: &str, ways: &[PathElement<'_>]| {
            let paths = RedactionPaths::new(&[path.to_owned()]).unwrap();
            let mut trail = paths.start();
            let mut arrived = false;
            for way in ways {
                (trail, arrived) = paths.follow(&trail, *way);
            }
            arrived
        };
        let (a, b, c) = (
            PathElement::Key(b"a"),
            PathElement::Key(b"b"),
            PathElement::Key(b"c.d"),
        );
        let third = PathElement::Index(2);
        for (path, ways, there) in [
            ("$.a", &[a][..], true),
            ("$.a", &[b], false),
            ("$.a", &[a, a], false),
            ("$.a.b", &[a, b], true),
            ("$['a']['c.d']", &[a, c], true),
            ("$.a[2]", &[a, third], true),
            ("$.a[*].b", &[a, third, b], true),
            ("$.*.b", &[a, b], true),
            ("$..b", &[b], true),
            ("$..b", &[a, third, b], true),
            ("$..b", &[b, a], false),
            ("$..a.b", &[a, a, b], true),
            ("$.a..b[2]", &[a, third, b, third], true),
            ("$.a[0]", &[a, PathElement::Key(b"0")], false),
        ] {
            assert_eq!(arrives(path, ways), there, "{path} {ways:?}");
        }
    }
}
