//! `ctl`: one request to a running proxy, JSON in, JSON out.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use mcp_proxy_control::{Fault, HelloRequest, METHODS, Method, MethodInfo, ParamKind};
use mcp_proxy_transport::control::{ControlClient, ControlClientError, running_proxies};
use mcp_proxy_wire::json_string;
use serde_json::json;
use serde_json::value::RawValue;

use super::{choose, choose_hub, is_hub};
use crate::cli::control::CtlArgs;
use crate::printer;
use crate::run::sessions::ignore_broken_pipe;
use crate::run::sessions::inspect::write_json;
use crate::run::{UsageError, runtime};
use mcp_proxy_wire::terminal_text::sanitize;

/// What was typed.
#[derive(Debug)]
struct CtlRequest<'a> {
    id: Option<&'a str>,
    method: &'static MethodInfo,
    params: CtlParams,
}

#[derive(Debug, PartialEq, Eq)]
enum CtlParams {
    Given(String),
    OnStdin,
}

/// Asks.
pub fn run(args: &CtlArgs) -> Result<ExitCode> {
    let request = parse(&args.words).map_err(UsageError)?;
    let params = match request.params {
        CtlParams::Given(params) => params,
        CtlParams::OnStdin => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("cannot read the parameters from stdin")?;
            object(&text).map_err(UsageError)?
        }
    };
    let running = match (request.method.method, args.hub.as_deref(), request.id) {
        (_, Some(_), Some(_)) => bail!(UsageError("the proxy is named twice".to_owned())),
        (_, Some(hub), None) => choose_hub(Some(hub))?,
        (
            Method::ServersRestart
            | Method::ServersEnable
            | Method::ServersDisable
            | Method::ServersReload,
            None,
            None,
        ) => choose_hub(None)?,
        // A hub is meant if there is one, but every proxy lists its servers.
        (Method::ServersList, None, None) if running_proxies().iter().any(is_hub) => {
            choose_hub(None)?
        }
        (_, None, id) => choose(id)?,
    };
    ignore_broken_pipe(runtime().context("cannot start")?.block_on(async {
        let mut client = ControlClient::connect(&running.socket).await?;
        let hello = HelloRequest {
            name: Some("ctl".to_owned()),
        };
        client.call(&hello).await?;
        match client.ask(request.method.method, &params).await {
            Ok(result) => print(&result)?,
            Err(ControlClientError::Refused { code, text, data }) => {
                let error = Fault { code, text, data };
                print(json!({"error": error}).to_string().as_bytes())?;
                return Ok(ExitCode::FAILURE);
            }
            Err(error) => return Err(error.into()),
        }
        if request.method.method == Method::Subscribe {
            follow(&mut client).await?;
        }
        Ok(ExitCode::SUCCESS)
    }))
}

/// Notices, one a line, until the proxy ends.
async fn follow(client: &mut ControlClient) -> Result<()> {
    loop {
        match client.notice().await {
            Ok(told) => print(&told.line)?,
            Err(ControlClientError::Gone) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn print(line: &[u8]) -> Result<()> {
    let mut out = printer::stdout_writer();
    write_json(&mut out, line)?;
    Ok(out.flush()?)
}

/// `[ID] VERB [PARAMS]`: what is a verb cannot be an id, and ids are made of letters that no verb is made of.
fn parse(words: &[String]) -> Result<CtlRequest<'_>, String> {
    let named = |word: &String| METHODS.iter().find(|info| info.name == word.as_str());
    let (id, method, rest) = match words {
        [verb, rest @ ..] if named(verb).is_some() => (None, named(verb), rest),
        [id, verb, rest @ ..] => (Some(id.as_str()), named(verb), rest),
        [verb] => (None, named(verb), &[][..]),
        [] => (None, None, &[][..]),
    };
    let Some(method) = method else {
        let typed = id.and(words.get(1)).or(words.first());
        let typed = sanitize(typed.map_or("", String::as_str));
        return Err(format!("`{typed}` is not a verb; see mcp-proxy ctl --help"));
    };
    Ok(CtlRequest {
        id,
        method,
        params: params(method, rest)?,
    })
}

fn params(method: &MethodInfo, words: &[String]) -> Result<CtlParams, String> {
    match words {
        [only] if only == "-" => return Ok(CtlParams::OnStdin),
        [only] if only.trim_start().starts_with('{') => {
            return object(only).map(CtlParams::Given);
        }
        _ => {}
    }
    let members: Vec<String> = words
        .iter()
        .map(|word| member(method, words, word))
        .collect::<Result<_, _>>()?;
    Ok(CtlParams::Given(format!("{{{}}}", members.join(","))))
}

/// `name=value` as a member of an object. A value that is JSON stays as it was typed, to the byte.
fn member(method: &MethodInfo, all: &[String], word: &str) -> Result<String, String> {
    let Some((name, value)) = word.split_once('=') else {
        return Err(format!(
            "`{}`: write the parameters of {} as NAME=VALUE words, or as one JSON object",
            sanitize(word),
            method.name
        ));
    };
    let Some(param) = method.params.iter().find(|param| param.name == name) else {
        let known: Vec<_> = method.params.iter().map(|param| param.name).collect();
        let known = match known.as_slice() {
            [] => "no parameters".to_owned(),
            names => names.join(", "),
        };
        return Err(format!(
            "{} has no parameter `{}`, but {known}",
            method.name,
            sanitize(name)
        ));
    };
    let value = match (param.kind, read(value)) {
        (ParamKind::Json | ParamKind::Message, Ok(())) => value.to_owned(),
        (ParamKind::Message, Err(error)) => quote_invalid_json(method, all, value)
            .map_err(|way| format!("{name}: not JSON: {error}; {way} sends it anyway"))?,
        (ParamKind::Json, Err(_)) | (ParamKind::Text, _) => json_string(value),
    };
    Ok(format!("{}:{value}", json_string(name)))
}

/// Whether a text is JSON. It is only checked, so that numbers reach the proxy as they were typed.
fn read(text: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<&RawValue>(text).map(drop)
}

/// Quotes a message that is not JSON, if the method takes text and the user said `as_is=true`; otherwise says what to type.
fn quote_invalid_json(
    method: &MethodInfo,
    all: &[String],
    value: &str,
) -> Result<String, &'static str> {
    if method.params.iter().any(|param| param.name == "raw_text") {
        return Err("raw_text=… as_is=true");
    }
    match all.iter().any(|word| word == "as_is=true") {
        true => Ok(json_string(value)),
        false => Err("as_is=true"),
    }
}

/// A JSON object on one line.
fn object(text: &str) -> Result<String, String> {
    let text = text.trim();
    match read(text) {
        Ok(()) if text.starts_with('{') => {
            let message = mcp_proxy_wire::Message::parse(text.to_owned());
            let flat = mcp_proxy_wire::flatten(&message);
            let raw = flat.as_ref().unwrap_or(&message).raw();
            Ok(String::from_utf8_lossy(raw).into_owned())
        }
        Ok(()) => Err("the parameters must be a JSON object".to_owned()),
        Err(error) => Err(format!("the parameters are not valid JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Option<String>, &'static str, String), String> {
        let words: Vec<String> = shlex::split(line).unwrap();
        let request = parse(&words)?;
        let params = match request.params {
            CtlParams::Given(params) => params,
            CtlParams::OnStdin => "-".to_owned(),
        };
        Ok((request.id.map(str::to_owned), request.method.name, params))
    }

    #[test]
    fn words_become_a_request() {
        let is = |line: &str, id: Option<&str>, method: &'static str, params: &str| {
            let expected = (id.map(str::to_owned), method, params.to_owned());
            assert_eq!(parsed(line), Ok(expected), "{line}");
        };
        is("stats", None, "stats", "{}");
        is("5e55 stats", Some("5e55"), "stats", "{}");
        is(
            "get last=5 raw=true",
            None,
            "get",
            r#"{"last":5,"raw":true}"#,
        );
        is("note text=5", None, "note", r#"{"text":"5"}"#);
        is(
            "note text='a \"b\" c=d'",
            None,
            "note",
            r#"{"text":"a \"b\" c=d"}"#,
        );
        is(
            "hold.resolve hold=1 action=modify 'raw={\"b\":1.0,  \"a\":2}'",
            None,
            "hold.resolve",
            r#"{"hold":1,"action":"modify","raw":{"b":1.0,  "a":2}}"#,
        );
        is(
            "x get '{\n\"from\": 2}'",
            Some("x"),
            "get",
            "{ \"from\": 2}",
        );
        is("get -", None, "get", "-");
        is(
            "replay sequence=4 'raw={\"a\",}' as_is=true",
            None,
            "replay",
            r#"{"sequence":4,"raw":"{\"a\",}","as_is":true}"#,
        );
        // Neither too large a number nor a name twice is a reason to touch what was typed.
        let odd = r#"{"n":1E400,"n":1.00000000000000000001,"u":"\ud800","z":-0}"#;
        let expected = format!(r#"{{"sequence":4,"raw":{odd}}}"#);
        is(
            &format!("replay sequence=4 'raw={odd}'"),
            None,
            "replay",
            &expected,
        );
        is(&format!("replay '{expected}'"), None, "replay", &expected);
    }

    #[test]
    fn mistakes_are_named() {
        let mut told = String::new();
        // What was typed, and what of it the text must name.
        for (line, named) in [
            ("", ""),
            ("explode", "`explode`"),
            ("5e55 explode", "`explode`"),
            ("get 5", "NAME=VALUE"),
            ("get form=5", "`form`"),
            ("stats x=1", "stats"),
            ("get '{'", "column 1"),
            ("get '[]'", "NAME=VALUE"),
            (
                r#"hold.resolve hold=1 action=modify 'raw={"id":1,}'"#,
                "column 9; raw_text=… as_is=true",
            ),
            ("hold.resolve hold=1 raw=ping", "raw: "),
            ("replay sequence=4 'raw=[1'", "; as_is=true"),
        ] {
            let said = parsed(line).unwrap_err();
            assert!(said.contains(named), "{line}: {said}");
            told.push_str(&format!("$ mcp-proxy ctl {line}\n{said}\n\n"));
        }
        insta::assert_snapshot!("ctl_errors", told);
    }
}
