//! Session ids where a record is expected, and in bash also the ids of running proxies and the tools of the running hub. A
//! completion script knows only words that never change, so it asks `mcp-proxy sessions --ids` for these, which opens no
//! record, `mcp-proxy ls --ids`, and `mcp-proxy tools list`.

use clap::{Arg, Command};
use clap_complete::Shell;

/// What help texts call a record.
const RECORD: &str = "RECORD";

/// Adds the ids to a generated script.
pub(super) fn offer(shell: Shell, script: String, commands: &Command) -> String {
    let mut paths = Vec::new();
    collect_paths(commands, "", &mut paths);
    match shell {
        Shell::Bash => offer_in_bash(script, &paths),
        Shell::Zsh => offer_in_zsh(script),
        Shell::Fish => offer_in_fish(script, &paths),
        _ => script,
    }
}

/// The commands that take a record, as they are typed: `export`, `rules check`.
fn collect_paths(command: &Command, path: &str, found: &mut Vec<String>) {
    let takes_record = |arg: &Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        arg.is_positional() && names.iter().any(|name| name.as_str() == RECORD)
    };
    if command.get_arguments().any(takes_record) {
        found.push(path.to_owned());
    }
    for inner in command.get_subcommands() {
        let path = format!("{path} {}", inner.get_name());
        collect_paths(inner, path.trim_start(), found);
    }
}

/// After a command, and wherever the script itself has nothing to offer.
fn offer_in_bash(script: String, paths: &[String]) -> String {
    let patterns: Vec<String> = paths.iter().map(|path| format!("\"{path} \"*")).collect();
    let patterns = patterns.join("|");
    let function = format!(
        r#"
_mcp__proxy_with_records() {{
    _mcp__proxy "$@"
    local known=""
    case "$3 $COMP_CWORD ${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
        "--hub "*)
            COMPREPLY=( $(compgen -W "$(mcp-proxy ls --ids --hubs 2>/dev/null | cut -f1)" -- "$2") )
            return 0
            ;;
        *" 2 status "*) known="mcp-proxy ls --ids --hubs" ;;
        *" 2 attach "*|*" 2 ctl "*) known="mcp-proxy ls --ids" ;;
        *" 2 call "*|*" 3 tools info") known="mcp-proxy tools list --timeout 3s" ;;
    esac
    if [[ -n "$known" && "$2" != -* ]]; then
        # The first word of each line; what belongs to the line above is indented.
        COMPREPLY=( $(compgen -W "$($known 2>/dev/null </dev/null | sed -n 's/^\([^[:space:]]\{{1,\}}\).*/\1/p')" -- "$2") )
        return 0
    fi
    if [[ "$2" == -* || ( $COMP_CWORD -ne 2 && ${{#COMPREPLY[@]}} -gt 0 ) ]]; then
        return 0
    fi
    case "${{COMP_WORDS[*]:1}}" in
        {patterns})
            local ids
            ids="LAST $(mcp-proxy sessions --ids 2>/dev/null | cut -f1)"
            COMPREPLY+=( $(compgen -W "$ids" -- "$2") $(compgen -f -- "$2") )
            ;;
    esac
}}

"#
    );
    // The last lines say which function completes.
    let script = script.replace(
        "complete -F _mcp__proxy ",
        "complete -F _mcp__proxy_with_records ",
    );
    match script.rfind("\nif [[") {
        Some(end) => format!("{}{function}{}", &script[..end + 1], &script[end + 1..]),
        None => script,
    }
}

/// zsh knows which word is the record: only what is offered for it changes.
fn offer_in_zsh(script: String) -> String {
    const FUNCTION: &str = r#"_mcp-proxy_records() {
    local -a records
    records=(${(f)"$(mcp-proxy sessions --ids 2>/dev/null)"})
    records=(${records//:/\\:})
    records=('LAST:the newest' ${records/$'\t'/:})
    _describe -t records 'record' records
    _files
}

"#;
    let is_record =
        |line: &str| line.starts_with("':record -- ") || line.starts_with("'::record -- ");
    let offered = |line: &str| match is_record(line) {
        true => line.replace(":_default'", ":_mcp-proxy_records'"),
        false => line.to_owned(),
    };
    let script: Vec<String> = script.lines().map(offered).collect();
    let script = script.join("\n") + "\n";
    match script.rfind("if [ \"$funcstack[1]\"") {
        Some(end) => format!("{}{FUNCTION}{}", &script[..end], &script[end..]),
        None => script,
    }
}

/// fish offers files as well.
fn offer_in_fish(mut script: String, paths: &[String]) -> String {
    for path in paths {
        let condition = match path.split_once(' ') {
            None => format!("__fish_mcp_proxy_using_subcommand {path}"),
            Some((command, inner)) => format!(
                "__fish_mcp_proxy_using_subcommand {command}; and __fish_seen_subcommand_from {inner}"
            ),
        };
        script.push_str(&format!(
            "complete -c mcp-proxy -n \"{condition}\" -a \"LAST\\t'the newest'\n(mcp-proxy sessions --ids 2>/dev/null)\"\n"
        ));
    }
    script
}
