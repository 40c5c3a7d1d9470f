//! What a run of a program may cost: it pays from an account until that is empty, or the time of its budget is over.

use std::cell::Cell;
use std::time::{Duration, Instant};

use jaq_core::Exn;
use jaq_json::{Num, Val};

use crate::budget::{Budget, Stopwatch};

/// Steps that any run has; a message adds as many as it has bytes.
pub(super) const STEPS: u64 = 1_000_000;
/// After this part of its time the computing time is measured; most runs end before, and never ask for it.
const UNMEASURED: u32 = 4;
/// How often the clock is looked at, in payments.
const LOOK_EVERY: u32 = 32;
/// And before anything that costs this many steps at once.
const LARGE: usize = 4_096;
/// A value nested deeper would make the stack overflow when it is compared or dropped.
const DEEPEST: usize = 512;
/// Letters for one step.
const LETTERS: usize = 16;

/// What is left. Every value that a program makes is paid from it.
pub(crate) struct Account {
    budget: Budget,
    left: Cell<u64>,
    payments: Cell<u32>,
    begun: Instant,
    /// Since the unmeasured part was over.
    measured: Cell<Option<Stopwatch>>,
    /// Time that other threads have worked for it.
    elsewhere: Cell<Duration>,
    spent: Cell<bool>,
}

impl Account {
    /// For a message of `size` bytes. The time runs from now.
    pub(crate) fn new(budget: Budget, size: usize) -> Account {
        Account {
            budget,
            left: Cell::new(STEPS + size as u64),
            payments: Cell::new(0),
            begun: Instant::now(),
            measured: Cell::new(None),
            elsewhere: Cell::new(Duration::ZERO),
            spent: Cell::new(false),
        }
    }

    /// What the account was opened with.
    pub(super) fn budget(&self) -> Budget {
        self.budget
    }

    /// The time that is left, as far as it was measured.
    pub(super) fn time_left(&self) -> Duration {
        let used = match self.measured.get() {
            Some(watch) => watch.elapsed() + self.budget.time / UNMEASURED,
            None => Duration::ZERO,
        };
        self.budget
            .time
            .saturating_sub(used)
            .saturating_sub(self.elsewhere.get())
    }

    /// Steps that are left.
    pub(super) fn steps_left(&self) -> u64 {
        self.left.get()
    }

    /// Charges the time that another thread has worked for it.
    pub(super) fn charge_time(&self, time: Duration) {
        self.elsewhere.set(self.elsewhere.get() + time);
    }

    /// Whether a payment failed, or the time was over when somebody looked.
    pub(crate) fn is_spent(&self) -> bool {
        self.spent.get()
    }

    /// Whether the time is over; for work that costs no steps, as reading the message does.
    pub(super) fn is_over(&self) -> bool {
        let payments = self.payments.get().wrapping_add(1);
        self.payments.set(payments);
        self.spent.get() || (payments.is_multiple_of(LOOK_EVERY) && self.look())
    }

    /// The same, asked now and not from time to time.
    pub(super) fn look(&self) -> bool {
        let late = self.is_late();
        if late {
            self.spent.set(true);
        }
        late
    }

    fn is_late(&self) -> bool {
        let time = self.budget.time;
        if self.elsewhere.get() > time {
            return true;
        }
        let unmeasured = time / UNMEASURED;
        let passed = self.begun.elapsed();
        if passed <= unmeasured {
            return false;
        }
        match self.measured.get() {
            Some(watch) => passed > time && watch.elapsed() > time - unmeasured,
            None => {
                self.measured.set(Some(Stopwatch::start()));
                false
            }
        }
    }

    /// Pays `steps`. The error stops the whole program: `try` catches errors of jq only.
    pub(super) fn pay<'a>(&self, steps: usize) -> Result<(), Exn<'a, Val>> {
        let payments = self.payments.get().wrapping_add(1);
        self.payments.set(payments);
        let left = self.left.get().checked_sub(steps as u64);
        let look = payments.is_multiple_of(LOOK_EVERY) || steps >= LARGE;
        let late = self.spent.get() || (look && self.is_late());
        match left {
            Some(left) if !late => {
                self.left.set(left);
                Ok(())
            }
            _ => Err(self.stop()),
        }
    }

    /// Stops the program.
    pub(super) fn stop<'a>(&self) -> Exn<'a, Val> {
        self.left.set(0);
        self.spent.set(true);
        Exn::halt(1)
    }

    /// Pays for making a text of `length` bytes.
    pub(super) fn pay_text<'a>(&self, length: usize) -> Result<(), Exn<'a, Val>> {
        self.pay(1 + length / LETTERS)
    }

    /// Pays for a value with all that is in it, as often as it is in it: parts may be shared in memory, but a caller that writes
    /// or compares the value goes through each.
    pub(super) fn pay_value<'a>(&self, value: &Val) -> Result<(), Exn<'a, Val>> {
        self.pay_nested(value, 0)
    }

    fn pay_nested<'a>(&self, value: &Val, depth: usize) -> Result<(), Exn<'a, Val>> {
        if depth > DEEPEST {
            return self.pay(usize::MAX);
        }
        match value {
            Val::Null | Val::Bool(_) => self.pay(1),
            Val::Num(number) => self.pay_text(digits(number)),
            Val::BStr(text) | Val::TStr(text) => self.pay_text(text.len()),
            Val::Arr(elements) => {
                self.pay(1)?;
                elements
                    .iter()
                    .try_for_each(|element| self.pay_nested(element, depth + 1))
            }
            Val::Obj(members) => {
                self.pay(1)?;
                members.iter().try_for_each(|(key, value)| {
                    self.pay_nested(key, depth + 1)?;
                    self.pay_nested(value, depth + 1)
                })
            }
        }
    }
}

/// About how long a number is.
pub(super) fn digits(number: &Num) -> usize {
    match number {
        Num::Int(_) | Num::Float(_) => 0,
        Num::BigInt(number) => usize::try_from(number.bits() / 3).unwrap_or(usize::MAX),
        Num::Dec(text) => text.len(),
    }
}
