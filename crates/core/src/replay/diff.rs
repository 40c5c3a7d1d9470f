//! How two answers differ, member by member.

mod path;

use mcp_proxy_wire::Message;
use serde_json::Value;

use super::server_handles::HANDLE_PATHS;
use path::DiffPathStep;

/// Members whose values are made anew for each message.
const VOLATILE: &[&str] = &["id", "jsonrpc", "result._meta", "error.data._meta"];

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where: `$.result.content[0].text`, `$.result['a.b']`.
    pub path: String,
    /// What it was; `None`: it was not there.
    pub recorded: Option<String>,
    /// What it is; `None`: it is not there.
    pub current: Option<String>,
}

/// A path to be left out: as a difference shows it, with `*` for any member or index; what is below it is left out too.
#[derive(Clone, Debug)]
pub struct IgnoredPath(Vec<DiffPathStep>);

impl IgnoredPath {
    /// `$.result.content[*].text`, `$.result.*.time`, `$.result['a.b']`; the `$.` may be missing. Or what is wrong with it.
    pub fn parse(text: &str) -> Result<IgnoredPath, &'static str> {
        path::parse(text).map(IgnoredPath)
    }

    fn covers(&self, path: &[DiffPathStep]) -> bool {
        let fits = |(own, step): (&DiffPathStep, &DiffPathStep)| own.covers(step);
        self.0.len() <= path.len() && self.0.iter().zip(path).all(fits)
    }
}

/// What differs between two answers. Ids and `_meta` are made anew for each and do not count; nor do values that a client
/// only hands back, if both have one.
pub(super) fn diff(then: &Message, now: &Message, ignored: &[IgnoredPath]) -> Vec<Difference> {
    let volatile = VOLATILE
        .iter()
        .filter_map(|path| IgnoredPath::parse(path).ok());
    let mut walk = DiffWalk {
        path: Vec::new(),
        ignored: volatile.chain(ignored.iter().cloned()).collect(),
        found: Vec::new(),
    };
    match (read(then), read(now)) {
        (Some(then), Some(now)) => walk.compare(Some(&then), Some(&now)),
        _ if then.raw() == now.raw() => {}
        _ => {
            let text = |message: &Message| String::from_utf8_lossy(message.raw()).into_owned();
            walk.differs(Some(text(then)), Some(text(now)));
        }
    }
    walk.found
}

fn read(message: &Message) -> Option<Value> {
    serde_json::from_slice(message.raw()).ok()
}

/// Two values, walked over together.
struct DiffWalk {
    path: Vec<DiffPathStep>,
    ignored: Vec<IgnoredPath>,
    found: Vec<Difference>,
}

impl DiffWalk {
    fn compare(&mut self, then: Option<&Value>, now: Option<&Value>) {
        match (then, now) {
            (Some(Value::Object(then)), Some(Value::Object(now))) => {
                for (key, value) in then {
                    self.step(DiffPathStep::Member(key.clone()), Some(value), now.get(key));
                }
                for (key, value) in now.iter().filter(|(key, _)| !then.contains_key(*key)) {
                    self.step(DiffPathStep::Member(key.clone()), None, Some(value));
                }
            }
            (Some(Value::Array(then)), Some(Value::Array(now))) => {
                for index in 0..then.len().max(now.len()) {
                    self.step(DiffPathStep::Index(index), then.get(index), now.get(index));
                }
            }
            (then, now) if then == now => {}
            (then, now) => self.differs(then.map(Value::to_string), now.map(Value::to_string)),
        }
    }

    fn step(&mut self, step: DiffPathStep, then: Option<&Value>, now: Option<&Value>) {
        self.path.push(step);
        self.compare(then, now);
        self.path.pop();
    }

    /// Notes the difference, if it counts.
    fn differs(&mut self, then: Option<String>, now: Option<String>) {
        let path = path::shown(&self.path);
        let is_other_handle =
            then.is_some() && now.is_some() && HANDLE_PATHS.contains(&path.as_str());
        let is_ignored = self.ignored.iter().any(|ignore| ignore.covers(&self.path));
        if !is_other_handle && !is_ignored {
            self.found.push(Difference {
                path,
                recorded: then,
                current: now,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(then: &str, now: &str, ignored: &[&str]) -> Vec<String> {
        let message = |text: &str| Message::parse(text.to_owned());
        let ignored: Vec<IgnoredPath> = ignored
            .iter()
            .map(|path| IgnoredPath::parse(path).unwrap())
            .collect();
        let found = diff(&message(then), &message(now), &ignored);
        found
            .into_iter()
            .map(|difference| difference.path)
            .collect()
    }

    #[test]
    fn members_are_compared_by_value_and_place() {
        let then = r#"{"id":1,"result":{"a":1,"b":[{"t":"x"},2],"_meta":{"m":1}}}"#;
        let same = r#"{"result":{"b":[{"t":"x"},2],"a":1},"id":"other"}"#;
        assert!(paths(then, same, &[]).is_empty());
        let other = r#"{"id":1,"result":{"a":2,"b":[{"t":"y"},2,3],"c":null}}"#;
        assert_eq!(
            paths(then, other, &[]),
            [
                "$.result.a",
                "$.result.b[0].t",
                "$.result.b[2]",
                "$.result.c"
            ]
        );
        assert_eq!(
            paths(then, other, &["$.result.b[*].t", "result.c", "$.result.a"]),
            ["$.result.b[2]"]
        );
        assert!(paths(then, other, &["$.result"]).is_empty());
    }

    #[test]
    fn a_name_with_a_dot_is_one_step() {
        let then = r#"{"id":1,"result":{"a.b":1,"a":{"b":1}}}"#;
        let now = r#"{"id":1,"result":{"a.b":2,"a":{"b":2}}}"#;
        assert_eq!(paths(then, now, &["$.result['a.b']"]), ["$.result.a.b"]);
        assert_eq!(paths(then, now, &["result.a.b"]), ["$.result['a.b']"]);
        assert!(paths(then, now, &["$.result.a", r#"$["result"]["a.b"]"#]).is_empty());
    }

    #[test]
    fn values_to_be_handed_back_are_not_compared_but_must_be_there() {
        let then = r#"{"id":1,"result":{"requestState":"a","nextCursor":"1"}}"#;
        let now = r#"{"id":1,"result":{"requestState":"b"}}"#;
        assert_eq!(paths(then, now, &[]), ["$.result.nextCursor"]);
    }

    #[test]
    fn what_is_no_json_is_compared_whole() {
        assert!(paths("x", "x", &[]).is_empty());
        assert_eq!(paths("x", "y", &[]), ["$"]);
    }
}
