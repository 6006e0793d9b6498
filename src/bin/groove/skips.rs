//! Why files were left out of a run, most frequent reason first.

use std::collections::BTreeMap;

/// The most reasons that are named.
const NAMED: usize = 3;

/// Counts reasons. Those that differ only in numbers, such as sizes, are one.
#[derive(Debug, Default)]
pub(crate) struct Skips(BTreeMap<String, Reason>);

#[derive(Debug)]
struct Reason {
    files: usize,
    /// As it was first told; the numbers are those of the first file.
    words: String,
}

impl Skips {
    /// Counts a file that was left out.
    pub(crate) fn count(&mut self, reason: &str) {
        let kind = reason.chars().filter(|character| !character.is_ascii_digit()).collect();
        let words = || Reason { files: 0, words: reason.to_owned() };
        self.0.entry(kind).or_insert_with(words).files += 1;
    }

    /// The most frequent reasons as one line; nothing if no file was left out.
    pub(crate) fn summary(&self) -> Option<String> {
        let mut reasons: Vec<&Reason> = self.0.values().collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.files));
        let named = reasons
            .iter()
            .take(NAMED)
            .map(|Reason { files, words }| format!("{files} because {words}"));
        let mut parts: Vec<String> = named.collect();
        let others: usize = reasons.iter().skip(NAMED).map(|reason| reason.files).sum();
        if others > 0 {
            parts.push(format!("{others} for other reasons"));
        }
        (!parts.is_empty()).then(|| format!("Skipped: {}", parts.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // CLI-B01
    #[test]
    fn the_three_most_frequent_reasons_are_named_with_their_counts() {
        let mut skips = Skips::default();
        assert_eq!(skips.summary(), None);
        for size in [70, 80, 900] {
            skips.count(&format!("{size} bytes exceed the limit of 60 bytes"));
        }
        for _ in 0..4 {
            skips.count("it is a symbolic link");
        }
        for reason in ["it is not valid UTF-8", "it is not valid UTF-8", "it has vanished"] {
            skips.count(reason);
        }
        assert_eq!(
            skips.summary().unwrap(),
            "Skipped: 4 because it is a symbolic link; 3 because 70 bytes exceed the limit of 60 \
             bytes; 2 because it is not valid UTF-8; 1 for other reasons"
        );
    }
}
