//! URI templates (RFC 6570): does a URI come from this template?
//!
//! Only matching, for routing: what the variables stand for is the server's business. A value may hold more characters
//! than an exact expansion would leave in it, because clients do not encode everything that they should.

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UriTemplate {
    parts: Vec<TemplatePart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Literal(Box<str>),
    /// `{x}`: anything within one segment.
    Segment,
    /// `{+x}`: anything.
    Reserved,
    /// `{/x}`, `{.x}` and `{#x}`: this character and what may follow it, or nothing.
    Introduced {
        first: u8,
        values: IntroducedValues,
    },
    /// `{?a,b}`, `{&a}` and `{;a}`: named values, or nothing.
    Pairs {
        first: u8,
        between: u8,
        names: PairNames,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IntroducedValues {
    One,
    Several,
    Anything,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PairNames {
    Any,
    Known(Box<[Box<str>]>),
}

impl UriTemplate {
    /// Reads a template. `None` if its braces do not fit or an expression has an operator that RFC 6570 does not
    /// define.
    pub(crate) fn parse(template: &str) -> Option<UriTemplate> {
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some((literal, after)) = rest.split_once('{') {
            push_literal(&mut parts, literal)?;
            let (expression, after) = after.split_once('}')?;
            parts.push(read_expression(expression)?);
            rest = after;
        }
        push_literal(&mut parts, rest)?;
        Some(UriTemplate { parts })
    }

    /// Whether the template can expand to `uri`.
    ///
    /// All places that a part may end at are followed at once, so the time is bounded by parts times bytes.
    pub(crate) fn matches(&self, uri: &str) -> bool {
        // Nearly always the beginning tells templates apart.
        let (uri, parts) = match self.parts.split_first() {
            Some((TemplatePart::Literal(literal), rest)) => match uri.strip_prefix(&**literal) {
                Some(uri) => (uri.as_bytes(), rest),
                None => return false,
            },
            _ => (uri.as_bytes(), &self.parts[..]),
        };
        let mut reached = vec![false; uri.len() + 1];
        reached[0] = true;
        for part in parts {
            reached = part.advance(uri, &reached);
        }
        reached[uri.len()]
    }
}

impl TemplatePart {
    /// The places after this part, for the places in front of it.
    fn advance(&self, uri: &[u8], from: &[bool]) -> Vec<bool> {
        let mut to = vec![false; from.len()];
        match self {
            TemplatePart::Literal(literal) => {
                for at in places(from) {
                    if uri[at..].starts_with(literal.as_bytes()) {
                        to[at + literal.len()] = true;
                    }
                }
            }
            TemplatePart::Segment => {
                to.copy_from_slice(from);
                spread(uri, &mut to, in_segment);
            }
            TemplatePart::Reserved => {
                to.copy_from_slice(from);
                spread(uri, &mut to, |_| true);
            }
            TemplatePart::Introduced { first, values } => {
                for at in places(from).filter(|at| uri.get(*at) == Some(first)) {
                    to[at + 1] = true;
                }
                spread(uri, &mut to, |byte| match values {
                    IntroducedValues::One => in_segment(byte),
                    IntroducedValues::Several => in_segment(byte) || byte == *first,
                    IntroducedValues::Anything => true,
                });
                merge(&mut to, from);
            }
            TemplatePart::Pairs {
                first,
                between,
                names,
            } => {
                for at in places(from).filter(|at| uri.get(*at) == Some(first)) {
                    mark_pairs(uri, at + 1, *between, names, &mut to);
                }
                merge(&mut to, from);
            }
        }
        to
    }
}

impl PairNames {
    fn contains(&self, name: &[u8]) -> bool {
        match self {
            PairNames::Any => true,
            PairNames::Known(names) => names.iter().any(|known| known.as_bytes() == name),
        }
    }
}

fn push_literal(parts: &mut Vec<TemplatePart>, literal: &str) -> Option<()> {
    if literal.contains('}') {
        return None;
    }
    if !literal.is_empty() {
        parts.push(TemplatePart::Literal(literal.into()));
    }
    Some(())
}

fn read_expression(expression: &str) -> Option<TemplatePart> {
    let first = *expression.as_bytes().first()?;
    let variables = expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
    if variables.len() + 1 < expression.len() {
        return None;
    }
    let several = variables.contains([',', '*']);
    let values = if several {
        IntroducedValues::Several
    } else {
        IntroducedValues::One
    };
    Some(match first {
        b'+' => TemplatePart::Reserved,
        b'#' => TemplatePart::Introduced {
            first,
            values: IntroducedValues::Anything,
        },
        b'.' | b'/' => TemplatePart::Introduced { first, values },
        b';' => pairs(first, b';', variables),
        b'?' | b'&' => pairs(first, b'&', variables),
        b'=' | b',' | b'!' | b'@' | b'|' => return None,
        // FastMCP reads `{x*}` as a path of several segments.
        _ if variables.contains('*') => TemplatePart::Reserved,
        _ => TemplatePart::Segment,
    })
}

fn pairs(first: u8, between: u8, variables: &str) -> TemplatePart {
    let names = if variables.contains('*') {
        PairNames::Any
    } else {
        let name = |variable: &str| variable.split(':').next().unwrap_or_default().into();
        PairNames::Known(variables.split(',').map(name).collect())
    };
    TemplatePart::Pairs {
        first,
        between,
        names,
    }
}

/// Marks the end of each pair in a row of them that begins at `at`.
fn mark_pairs(uri: &[u8], mut at: usize, between: u8, names: &PairNames, to: &mut [bool]) {
    loop {
        let rest = &uri[at..];
        let ends = |byte: &u8| *byte == between || *byte == b'#';
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        let pair = &rest[..length];
        let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
        if !names.contains(name) {
            return;
        }
        at += length;
        to[at] = true;
        if uri.get(at) != Some(&between) {
            return;
        }
        at += 1;
    }
}

fn places(reached: &[bool]) -> impl Iterator<Item = usize> {
    let places = reached.iter().enumerate();
    places.filter_map(|(at, reached)| reached.then_some(at))
}

/// Goes on from each place over all bytes that `allowed` takes.
fn spread(uri: &[u8], reached: &mut [bool], allowed: impl Fn(u8) -> bool) {
    for (at, byte) in uri.iter().enumerate() {
        if reached[at] && allowed(*byte) {
            reached[at + 1] = true;
        }
    }
}

fn merge(to: &mut [bool], from: &[bool]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to |= from;
    }
}

fn in_segment(byte: u8) -> bool {
    !matches!(byte, b'/' | b'?' | b'#' | b'&')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(template: &str, uri: &str) -> bool {
        UriTemplate::parse(template).unwrap().matches(uri)
    }

    #[test]
    fn templates_match_their_expansions() {
        for (template, uri) in [
            ("demo://items/{id}", "demo://items/42"),
            ("demo://{a}/{b}.txt", "demo://x/y.z.txt"),
            ("demo://{a,b}", "demo://1,2"),
            ("demo://{id:3}", "demo://abc"),
            ("file:///{+path}", "file:///a/b?c"),
            ("x://y{#part}", "x://y#a/b"),
            ("x://y{#part}", "x://y"),
            ("x://y{.ext}", "x://y.json"),
            ("x://y{/segment}", "x://y/a"),
            ("x://y{/segments*}/end", "x://y/a/b/end"),
            ("x://y{/segments*}", "x://y"),
            ("x://y{;size,color}", "x://y;size=1;color=red"),
            ("x://y{?a,b}", "x://y?a=1&b=2"),
            ("x://y{?a,b}", "x://y?b=2"),
            ("x://y{?a,b}", "x://y"),
            ("x://y{?any*}", "x://y?k=v&l=w"),
            ("x://y?fixed=1{&a}", "x://y?fixed=1&a=2"),
            ("x://{path*}", "x://a/b/c"),
            ("x://{é}", "x://世"),
            ("plain://no/variables", "plain://no/variables"),
        ] {
            assert!(matches(template, uri), "{template} {uri}");
        }
    }

    #[test]
    fn templates_do_not_match_other_uris() {
        for (template, uri) in [
            ("demo://items/{id}", "demo://items/4/2"),
            ("demo://items/{id}", "demo://item/42"),
            ("demo://items/{id}", "demo://items/4?x=1"),
            ("x://y{/segment}", "x://y/a/b"),
            ("x://y{?a,b}", "x://y?c=1"),
            ("x://y{?a}", "x://y?a=1#part"),
            ("x://y{.ext}", "x://y/json"),
            ("plain://no/variables", "plain://no/variable"),
        ] {
            assert!(!matches(template, uri), "{template} {uri}");
        }
    }

    #[test]
    fn broken_templates_are_refused() {
        for template in ["x://{", "x://}", "x://{}", "x://{a}}", "x://{=a}", "{?&a}"] {
            assert_eq!(UriTemplate::parse(template), None, "{template}");
        }
    }

    #[test]
    fn many_expressions_take_linear_time() {
        let template = format!("x://{}!", "{+a}".repeat(200));
        assert!(!matches(&template, &format!("x://{}", "a".repeat(2000))));
    }
}
