//! Whole numbers as people type them, with a largest value.

use std::num::NonZeroU64;

/// Reads a number from one to `largest`.
pub fn from_one_to<T: TryFrom<NonZeroU64>>(
    largest: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok();
        let number = number.filter(|number: &NonZeroU64| number.get() <= largest);
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| format!("use a whole number from 1 to {largest}"))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn numbers_outside_of_the_range_are_refused() {
        let parse = from_one_to::<NonZeroU32>(20);
        assert_eq!(parse("1"), Ok(NonZeroU32::MIN));
        assert_eq!(parse("20").map(NonZeroU32::get), Ok(20));
        for wrong in ["", "0", "21", "-1", "1.5", "x", "99999999999999999999"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
