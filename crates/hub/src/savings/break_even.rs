//! When one tool for everything costs less than all tools listed directly.

use super::{ExposureReport, LookupAnswer};
use crate::config::ExposeMode;

/// One of our own tools compared with all tools listed directly. Everything is in estimated tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakEven {
    /// The exposure with the tool.
    pub mode: ExposeMode,
    /// What the tool costs.
    pub own: u64,
    /// What all tools cost, listed directly.
    pub direct: u64,
    /// With tools of this average size, the least number of them that costs more than the tool does. `None` if there is no
    /// tool to take an average of.
    pub pays_from_tools: Option<u64>,
    /// How many answers of each kind cost no more than what the list saves.
    pub lookups: Vec<(LookupAnswer, u64)>,
}

impl BreakEven {
    /// What the list costs less than direct exposure. `None` if it does not.
    pub fn saved(&self) -> Option<u64> {
        self.direct.checked_sub(self.own).filter(|saved| *saved > 0)
    }
}

impl ExposureReport {
    /// How each of our own tools compares.
    pub fn break_evens(&self) -> Vec<BreakEven> {
        let modes = [ExposeMode::Proxy, ExposeMode::Dispatch];
        modes.map(|mode| self.break_even(mode)).into()
    }

    fn break_even(&self, mode: ExposeMode) -> BreakEven {
        let own = self.cost_of(mode).tokens();
        let direct = self.cost_of(ExposeMode::All).tokens();
        let saved = direct.saturating_sub(own);
        let lookups = self
            .lookups
            .iter()
            .filter(|cost| cost.answer.mode() == mode);
        BreakEven {
            mode,
            own,
            direct,
            // n tools cost direct × n / tools.
            pays_from_tools: (own * self.tools as u64)
                .checked_div(direct)
                .filter(|_| self.tools > 0)
                .map(|tools| tools + 1),
            lookups: lookups
                .map(|cost| {
                    let each = cost.size.tokens().max(1);
                    (cost.answer, saved / each)
                })
                .collect(),
        }
    }
}
