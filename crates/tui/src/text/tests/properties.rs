//! What holds for every body, however hostile.

use super::*;
use mcp_proxy_wire::terminal_text::sanitize;
use proptest::prelude::*;

/// Strings in which the characters that matter are common.
fn hostile() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        "\u{1b}[2J",
        "\u{9b}",
        "\u{202e}",
        "\u{e0041}",
        "\u{200b}",
        "\0",
        "\n",
        "\r",
        "\t",
        "\u{7f}",
        "\\u001b",
        "\\ud83d\\ude00",
        "\\",
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "'",
        "!",
        "é",
        "漢",
        "1e5",
        "null",
        "\u{feff}",
    ]);
    let part = prop_oneof![3 => odd.prop_map(str::to_owned), 1 => ".{0,6}"];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

fn assert_harmless(body: &BodyLayout) -> Result<(), TestCaseError> {
    for (index, line) in body.lines().iter().enumerate() {
        prop_assert!(
            line.opens
                .is_none_or(|closing| closing > index && closing < body.lines().len())
        );
        for piece in &line.pieces {
            prop_assert_eq!(&sanitize(&piece.text), &piece.text);
            prop_assert!(!piece.text.is_empty());
        }
    }
    let mut folds = Folds::default();
    folds.fold_below(body, 1);
    prop_assert!(
        body.shown(&folds)
            .iter()
            .all(|&line| line < body.lines().len())
    );
    Ok(())
}

proptest! {
    #[test]
    fn no_piece_of_a_text_acts_on_a_terminal(text in hostile()) {
        assert_harmless(&BodyLayout::of(text.as_bytes()))?;
        assert_harmless(&BodyLayout::of_start(text.as_bytes(), 5_000))?;
        assert_harmless(&BodyLayout::of_start(format!("{{\"{text}").as_bytes(), 5_000))?;
        assert_harmless(&BodyLayout::of_start(format!("[\"\",{text}").as_bytes(), 5_000))?;
    }

    #[test]
    fn no_piece_of_any_bytes_does(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        assert_harmless(&BodyLayout::of(&bytes))?;
    }

    #[test]
    fn laid_out_json_is_the_same_json(text in hostile(), more in hostile(), number in any::<i64>()) {
        let value = serde_json::json!({ &text: [more, number, {}, [[]], { "a": null }], "b": text });
        let body = BodyLayout::of(value.to_string().as_bytes());
        assert_harmless(&body)?;
        prop_assert_eq!(body.form(), BodyFormat::Json);
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&plain(&body)).unwrap(), value);
    }

    #[test]
    fn every_line_is_compared_once(left in hostile(), right in hostile()) {
        let (left, right) = (BodyLayout::of(left.as_bytes()), BodyLayout::of(right.as_bytes()));
        let rows = compare(&left, &right, IdComparison::Compared);
        let lefts: Vec<usize> = rows.iter().filter_map(|row| row.left).collect();
        let rights: Vec<usize> = rows.iter().filter_map(|row| row.right).collect();
        prop_assert_eq!(lefts, (0..left.lines().len()).collect::<Vec<_>>());
        prop_assert_eq!(rights, (0..right.lines().len()).collect::<Vec<_>>());
    }
}
