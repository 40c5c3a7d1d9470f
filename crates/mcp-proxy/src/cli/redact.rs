//! The flags that say what must not be stored, exported or shown: the same on `proxy`, `export` and `inspect`.

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use mcp_proxy_session::redact::{RedactionError, RedactionPreset};
use mcp_proxy_session::{Redaction, RedactionRules};

/// What to hide in message bodies and other text.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RedactArgs {
    /// Hide the values of this key at any depth; case-insensitive; `*` matches any characters (repeatable)
    #[arg(long, value_name = "KEY", help_heading = "Redaction")]
    pub redact_key: Vec<String>,

    /// Hide what this pattern finds in strings and numbers, or its first group (repeatable)
    #[arg(long, value_name = "REGEX", help_heading = "Redaction")]
    pub redact_value: Vec<String>,

    /// Hide the values at this path: `$.params.arguments.x`, `$..x`, `$.result.content[*].text` (repeatable)
    #[arg(long, value_name = "PATH", help_heading = "Redaction")]
    pub redact_path: Vec<String>,

    /// Hide values that look like credentials (tokens), values whose key is named like one (keys), or both (all) (repeatable)
    #[arg(long, value_name = "PRESET", help_heading = "Redaction",
          value_parser = PossibleValuesParser::new(RedactionPreset::NAMES))]
    pub redact_preset: Vec<String>,

    /// Presets that the command has without being asked.
    #[arg(skip)]
    pub own_presets: Vec<RedactionPreset>,
}

impl RedactArgs {
    /// The rules, ready for use; `None` if there are none.
    pub fn compile(&self) -> Result<Option<Redaction>> {
        let asked = self.redact_preset.iter();
        let asked = asked.map(|word| word.parse::<RedactionPreset>());
        let presets = asked.chain(self.own_presets.iter().copied().map(Ok));
        let rules = RedactionRules {
            keys: self.redact_key.clone(),
            values: self.redact_value.clone(),
            paths: self.redact_path.clone(),
            presets: presets
                .collect::<Result<_, _>>()
                .map_err(anyhow::Error::msg)?,
        };
        Redaction::new(&rules).map_err(|error| {
            let flag = match error {
                RedactionError::EmptyKey => "--redact-key",
                RedactionError::Value { .. } => "--redact-value",
                RedactionError::Path { .. } => "--redact-path",
                RedactionError::TooLarge(_) => "--redact-key, --redact-value",
            };
            anyhow::Error::new(error).context(flag)
        })
    }
}
