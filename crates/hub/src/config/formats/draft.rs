//! An entry of a client while it becomes the common form.
//!
//! A key with another name is renamed, a value in another form is rewritten, and what the hub has an option for goes under our
//! own key, unless the entry has that option already. A value of the wrong type stays as it is: then its key is reported as
//! unknown.

use super::super::error::ConfigFault;
use super::super::keys::OWN_KEY;
use super::super::reader::ConfigReader;
use super::super::tree::{Member, Tree, join};
use super::ServerEntry;

/// What happens to an entry.
pub(super) enum EntryUse {
    /// It is a server.
    Server,
    /// Only its client can run it. People are told why.
    Skipped(&'static str),
    /// It is turned off and could not run anyway.
    Ignored,
}

/// The members of an entry that is rewritten.
pub(super) struct EntryDraft<'a> {
    pub(super) name: &'a str,
    reader: ConfigReader<'a>,
    path: &'a str,
    pub(super) members: &'a mut Vec<Member>,
    problem: &'a mut Option<super::ConfigError>,
}

impl<'a> EntryDraft<'a> {
    /// Nothing if the entry is not an object.
    pub(super) fn of(reader: ConfigReader<'a>, entry: &'a mut ServerEntry) -> Option<Self> {
        let Tree::Table(members) = &mut entry.tree else {
            return None;
        };
        Some(EntryDraft {
            name: &entry.name,
            reader,
            path: &entry.path,
            members,
            problem: &mut entry.problem,
        })
    }

    pub(super) fn rewrite_texts(&mut self, rewrite: fn(&str) -> String) {
        for member in self.members.iter_mut() {
            member.value.rewrite_texts(rewrite);
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Tree> {
        let found = self.members.iter().find(|member| member.key == key)?;
        Some(&found.value)
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Tree> {
        let found = self.members.iter_mut().find(|member| member.key == key)?;
        Some(&mut found.value)
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_text()
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Tree> {
        let at = self.members.iter().position(|member| member.key == key)?;
        Some(self.members.remove(at).value)
    }

    /// Keys that mean something to their client alone.
    pub(super) fn forget(&mut self, keys: &[&str]) {
        self.members
            .retain(|member| !keys.contains(&member.key.as_str()));
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) {
        let mut members = self.members.iter_mut();
        if let Some(member) = members.find(|member| member.key == from) {
            to.clone_into(&mut member.key);
        }
    }

    /// `type: local` and the like.
    pub(super) fn rename_type(&mut self, from: &str, to: &str) {
        if let Some(Tree::Text(word)) = self.get_mut("type")
            && word == from
        {
            to.clone_into(word);
        }
    }

    /// Puts the members of an inner table next to it.
    pub(super) fn unfold(&mut self, key: &str) {
        if matches!(self.get(key), Some(Tree::Table(_)))
            && let Some(Tree::Table(inner)) = self.take(key)
        {
            let inner = inner.into_iter().map(|member| Member {
                written: format!("{key}.{}", member.written),
                ..member
            });
            self.members.extend(inner);
        }
    }

    /// Adds a member to a table of the entry, unless it is there and not null. The table is made if it is missing or null.
    pub(super) fn add_to(&mut self, table: &str, added: Member) {
        if self.get(table).is_none_or(Tree::is_null) {
            self.forget(&[table]);
            let mut made = Member::new(table, Tree::Table(Vec::new()));
            if table == OWN_KEY {
                made.written.clear();
            }
            self.members.push(made);
        }
        if let Some(Tree::Table(members)) = self.get_mut(table) {
            members.retain(|member| member.key != added.key || !member.value.is_null());
            if members.iter().all(|member| member.key != added.key) {
                members.push(added);
            }
        }
    }

    /// Moves a key to an option of ours, if `convert` accepts the value.
    pub(super) fn set_option(
        &mut self,
        key: &str,
        option: &str,
        convert: fn(&Tree) -> Option<Tree>,
    ) {
        let Some(value) = self.get(key).and_then(convert) else {
            return;
        };
        self.forget(&[key]);
        self.add_to(
            OWN_KEY,
            Member {
                key: option.to_owned(),
                written: key.to_owned(),
                value,
            },
        );
    }

    /// Adds a list of tools to those that the entry denies already: all of them are meant.
    pub(super) fn deny(&mut self, key: &str) {
        if let Some(Tree::List(added)) = self.get(key).and_then(names)
            && let Some(Tree::Table(options)) = self.get_mut(OWN_KEY)
            && let Some(denied) = options.iter_mut().find(|option| option.key == "deny")
            && let Tree::List(denied) = &mut denied.value
        {
            denied.extend(added);
            self.forget(&[key]);
        }
        self.set_option(key, "deny", names);
    }

    /// Adds tools to `excludeTools`.
    pub(super) fn exclude_tools(&mut self, tools: &[&str]) {
        let added = tools.iter().map(|tool| Tree::Text((*tool).to_owned()));
        match self.get_mut("excludeTools") {
            Some(Tree::List(known)) => known.extend(added),
            None if !tools.is_empty() => {
                let list = Tree::List(added.collect());
                self.members.push(Member::new("excludeTools", list));
            }
            _ => {}
        }
    }

    /// Makes the header `Authorization` from a token.
    pub(super) fn set_bearer(&mut self, key: &str) {
        if let Some(token) = self.text(key) {
            let value = Tree::Text(format!("Bearer {token}"));
            self.forget(&[key]);
            self.add_to(
                "headers",
                Member {
                    key: "Authorization".to_owned(),
                    written: key.to_owned(),
                    value,
                },
            );
        }
    }

    /// A reference to an environment variable that the value of a key names. It has to be set.
    pub(super) fn variable(&mut self, keys: &[&str], name: &str) -> String {
        if (self.reader.environment)(name).is_none() {
            let fault = ConfigFault::MissingNamedVariable(name.to_owned());
            let path = keys
                .iter()
                .fold(self.path.to_owned(), |path, key| join(&path, key));
            let problem = self.reader.error(path, fault);
            self.problem.get_or_insert(problem);
        }
        format!("${{env:{name}}}")
    }

    /// `["npx", "-y", "server"]` becomes a command and its arguments.
    pub(super) fn split_command(&mut self) {
        let Some(Tree::List(words)) = self.get("command") else {
            return;
        };
        let Some((program, args)) = words.split_first() else {
            return;
        };
        let (program, mut args) = (program.clone(), args.to_vec());
        if let Some(Tree::List(more)) = self.take("args") {
            args.extend(more);
        }
        self.forget(&["command"]);
        self.members.push(Member::new("command", program));
        self.members.push(Member {
            key: "args".to_owned(),
            written: "command".to_owned(),
            value: Tree::List(args),
        });
    }
}

/// A list of names.
pub(super) fn names(value: &Tree) -> Option<Tree> {
    let is_name = |item: &Tree| item.as_text().is_some_and(|text| !text.is_empty());
    let items = value.items()?;
    items.iter().all(is_name).then(|| value.clone())
}
