//! What holds for any text.

use std::sync::Arc;

use mcp_proxy_search::{SearchDocument, SearchIndex, SearchQuery, SearchSegment};
use proptest::prelude::*;

/// Any characters, with more of those that identifiers and words are made of.
const TEXT: &str = "(\\PC{0,12}|[a-zA-Z0-9_' -]{0,20}|[\\x00-\\x1f地ßİ']{0,4}){0,3}";

fn index_of(texts: &[(String, String)]) -> SearchIndex {
    let document = |(name, description): &'_ (String, String)| {
        Arc::new(SearchSegment::new(
            [SearchDocument {
                name,
                server: description,
                description,
                parameters: vec![(name, description)],
                ..SearchDocument::default()
            }]
            .into_iter(),
        ))
    };
    SearchIndex::new(texts.iter().map(document).collect())
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(
        texts in prop::collection::vec((TEXT, TEXT), 0..4),
        text in TEXT,
        limit in 0usize..5,
    ) {
        let results = index_of(&texts).search(&SearchQuery { text: &text, limit }, &|_, _| true);
        prop_assert!(results.total <= texts.len());
        prop_assert_eq!(results.hits.len(), results.total.min(limit));
        prop_assert!(results.hits.is_sorted_by(|a, b| a.score >= b.score));
        prop_assert!(results.hits.iter().all(|hit| hit.score.is_finite() && !hit.matched.is_empty()));
    }

    #[test]
    fn a_name_finds_itself_first(name in "[a-z]{1,8}(_[a-z]{1,8}){0,3}", other in "[a-z]{1,8}(_[a-z]{1,8}){0,3}") {
        prop_assume!(name.replace('_', "") != other.replace('_', ""));
        let texts = [(other, "a description".to_owned()), (name.clone(), String::new())];
        let results = index_of(&texts).search(&SearchQuery { text: &name, limit: 1 }, &|_, _| true);
        prop_assert_eq!(results.hits[0].segment, 1);
    }
}
