//! The yardstick: BM25 over names and descriptions, without anything that this crate adds.

use std::collections::HashMap;

use super::EvaluationTool;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// BM25 over the lower-case words of names and descriptions.
#[derive(Debug)]
pub struct PlainBm25 {
    tools: Vec<String>,
    /// The number of times that each document has each word.
    counts: Vec<HashMap<String, f64>>,
    lengths: Vec<f64>,
    documents_with: HashMap<String, f64>,
}

impl PlainBm25 {
    /// Indexes the tools of all servers.
    pub fn new(servers: &[Vec<EvaluationTool>]) -> PlainBm25 {
        let mut plain = PlainBm25 {
            tools: Vec::new(),
            counts: Vec::new(),
            lengths: Vec::new(),
            documents_with: HashMap::new(),
        };
        for tool in servers.iter().flatten() {
            let text = format!("{} {}", tool.name, tool.description);
            let mut counts = HashMap::new();
            for word in words(&text) {
                *counts.entry(word).or_insert(0.0) += 1.0;
            }
            for word in counts.keys() {
                *plain.documents_with.entry(word.clone()).or_insert(0.0) += 1.0;
            }
            plain.lengths.push(counts.values().sum());
            plain.tools.push(tool.full_name());
            plain.counts.push(counts);
        }
        plain
    }

    /// The best ten tools, as `server/name`.
    pub fn best_tools(&self, text: &str) -> Vec<String> {
        let total = self.tools.len() as f64;
        let average = self.lengths.iter().sum::<f64>() / total;
        let mut scores = vec![0.0; self.tools.len()];
        for word in words(text) {
            let with = self.documents_with.get(&word).copied().unwrap_or(0.0);
            let rarity = (1.0 + (total - with + 0.5) / (with + 0.5)).ln();
            for (document, counts) in self.counts.iter().enumerate() {
                if let Some(count) = counts.get(&word) {
                    let length = 1.0 - B + B * self.lengths[document] / average;
                    scores[document] += rarity * count * (K1 + 1.0) / (count + K1 * length);
                }
            }
        }
        let mut order: Vec<usize> = (0..scores.len()).filter(|at| scores[*at] > 0.0).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        order.truncate(10);
        order.into_iter().map(|at| self.tools[at].clone()).collect()
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}
