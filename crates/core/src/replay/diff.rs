//! How two answers differ, member by member.

use mcp_proxy_wire::Message;
use serde_json::Value;

use super::handles::GIVEN;

/// Members whose values are made anew for each message.
const VOLATILE: &[&str] = &["id", "jsonrpc", "result._meta", "error.data._meta"];

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where: `$.result.content[0].text`.
    pub path: String,
    /// What it was; `None`: it was not there.
    pub then: Option<String>,
    /// What it is; `None`: it is not there.
    pub now: Option<String>,
}

/// A path to be left out: as a difference shows it, with `*` for any member or index; what is below it is left out too.
#[derive(Clone, Debug)]
pub struct Ignore(Vec<String>);

impl Ignore {
    /// `$.result.content[*].text`, `$.result.*.time`; the `$.` may be missing. Or what is wrong with it.
    pub fn parse(text: &str) -> Result<Ignore, &'static str> {
        if text.is_empty() {
            return Err("it is empty");
        }
        let text = text.strip_prefix('$').unwrap_or(text);
        let path = text.strip_prefix('.').unwrap_or(text);
        if path.is_empty() && text.starts_with('.') {
            return Err("a name is missing after a dot");
        }
        let names = path.split('.').filter(|_| !path.is_empty());
        for (place, step) in names.enumerate() {
            let (name, mut indexes) = match step.find('[') {
                Some(at) => step.split_at(at),
                None => (step, ""),
            };
            // An index may stand at the very beginning: `[0].id`.
            if name.is_empty() && (place > 0 || indexes.is_empty() || text.starts_with('.')) {
                return Err("a name is missing after a dot");
            }
            if name.contains(']') {
                return Err("a ] has no [");
            }
            while !indexes.is_empty() {
                let inside = indexes
                    .strip_prefix('[')
                    .and_then(|rest| rest.split_once(']'));
                let (index, rest) = inside.ok_or("a [ is not closed")?;
                let is_number =
                    !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
                if index != "*" && !is_number {
                    return Err("between [ and ] stands a number or *");
                }
                indexes = rest;
            }
        }
        Ok(Ignore(steps(path)))
    }

    fn covers(&self, path: &str) -> bool {
        let path = steps(path.trim_start_matches('$').trim_start_matches('.'));
        let fits = |(own, step): (&String, &String)| own == "*" || own == step;
        self.0.len() <= path.len() && self.0.iter().zip(&path).all(fits)
    }
}

fn steps(path: &str) -> Vec<String> {
    path.split(['.', '['])
        .filter(|step| !step.is_empty())
        .map(|step| step.trim_end_matches(']').to_owned())
        .collect()
}

/// What differs between two answers. Ids and `_meta` are made anew for each and do not count; nor do values that a client
/// only hands back, if both have one.
pub fn diff(then: &Message, now: &Message, ignored: &[Ignore]) -> Vec<Difference> {
    let mut found = Vec::new();
    match (read(then), read(now)) {
        (Some(then), Some(now)) => compare("$", Some(&then), Some(&now), &mut found),
        _ if then.raw() == now.raw() => {}
        _ => found.push(Difference {
            path: "$".to_owned(),
            then: Some(String::from_utf8_lossy(then.raw()).into_owned()),
            now: Some(String::from_utf8_lossy(now.raw()).into_owned()),
        }),
    }
    let volatile: Vec<Ignore> = VOLATILE.iter().map(|path| Ignore(steps(path))).collect();
    found.retain(|difference| {
        let mut all = volatile.iter().chain(ignored);
        let is_handle = GIVEN.contains(&difference.path.as_str());
        let is_other_handle = is_handle && difference.then.is_some() && difference.now.is_some();
        !is_other_handle && !all.any(|ignore| ignore.covers(&difference.path))
    });
    found
}

fn read(message: &Message) -> Option<Value> {
    serde_json::from_slice(message.raw()).ok()
}

fn compare(path: &str, then: Option<&Value>, now: Option<&Value>, found: &mut Vec<Difference>) {
    match (then, now) {
        (Some(Value::Object(then)), Some(Value::Object(now))) => {
            for (key, value) in then {
                compare(&format!("{path}.{key}"), Some(value), now.get(key), found);
            }
            for (key, value) in now.iter().filter(|(key, _)| !then.contains_key(*key)) {
                compare(&format!("{path}.{key}"), None, Some(value), found);
            }
        }
        (Some(Value::Array(then)), Some(Value::Array(now))) => {
            for index in 0..then.len().max(now.len()) {
                let (then, now) = (then.get(index), now.get(index));
                compare(&format!("{path}[{index}]"), then, now, found);
            }
        }
        (then, now) if then == now => {}
        (then, now) => found.push(Difference {
            path: path.to_owned(),
            then: then.map(Value::to_string),
            now: now.map(Value::to_string),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_path_is_told() {
        for right in ["$", "$.a", "a.*[0][*].b", "[0].id", "$[1]", "_meta.io/x"] {
            assert!(Ignore::parse(right).is_ok(), "{right}");
        }
        for (wrong, why) in [
            ("", "empty"),
            ("bad[", "not closed"),
            ("a[0]b", "not closed"),
            ("a]", "no ["),
            ("a[x]", "a number or *"),
            ("a[]", "a number or *"),
            ("$..a", "a name is missing"),
            ("a.", "a name is missing"),
            ("$.", "a name is missing"),
        ] {
            let told = Ignore::parse(wrong).unwrap_err();
            assert!(told.contains(why), "{wrong}: {told}");
        }
    }

    fn paths(then: &str, now: &str, ignored: &[&str]) -> Vec<String> {
        let message = |text: &str| Message::parse(text.to_owned());
        let ignored: Vec<Ignore> = ignored
            .iter()
            .map(|path| Ignore::parse(path).unwrap())
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
