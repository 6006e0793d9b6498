//! What an endpoint answers, checked.

use serde::Deserialize;

use crate::domain::embedding::Embedding;

/// The most bytes of an answer that holds embeddings.
///
/// A number takes up to 64 bytes, what is around a vector up to 512.
pub(super) fn most_bytes(inputs: usize, dimension: usize) -> u64 {
    let each = dimension.saturating_mul(64).saturating_add(512);
    (inputs as u64).saturating_mul(each as u64).saturating_add(64 * 1024)
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    index: u64,
    embedding: Vec<f64>,
}

/// Reads the embeddings out of an answer, in the order of the inputs.
///
/// # Errors
///
/// What is wrong with the answer, without any of it.
pub(super) fn embeddings(
    bytes: &[u8],
    inputs: usize,
    dimension: usize,
) -> Result<Vec<Embedding>, String> {
    let answer: Answer = serde_json::from_slice(bytes).map_err(|error| {
        // The error's own text may quote the answer.
        let kind = match error.classify() {
            serde_json::error::Category::Eof => "ends early",
            serde_json::error::Category::Syntax => "is not valid JSON",
            _ => "is not of the form {\"data\": [{\"index\", \"embedding\"}]}",
        };
        format!("{kind} (line {}, column {})", error.line(), error.column())
    })?;
    if answer.data.len() != inputs {
        return Err(format!("holds {} embeddings for {inputs} inputs", answer.data.len()));
    }
    let mut places: Vec<Option<Embedding>> = vec![None; inputs];
    for Entry { index, embedding } in answer.data {
        let place = usize::try_from(index).ok().and_then(|index| places.get_mut(index));
        let place = place.ok_or_else(|| format!("holds the index {index} for {inputs} inputs"))?;
        if place.is_some() {
            return Err(format!("holds the index {index} twice"));
        }
        if embedding.len() != dimension {
            return Err(format!(
                "holds a vector of {} numbers, and [embedding].dimension is {dimension}",
                embedding.len()
            ));
        }
        *place = Some(unit(&embedding).ok_or_else(|| {
            format!("holds a vector that is no direction (index {index}): all zero, or not finite")
        })?);
    }
    places
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| format!("lacks some of {inputs} indexes"))
}

/// Scales a vector to length 1. Done in 64 bits, so that neither very small nor
/// very large numbers are lost on the way.
fn unit(values: &[f64]) -> Option<Embedding> {
    let greatest = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    if !values.iter().all(|value| value.is_finite()) || greatest == 0.0 {
        return None;
    }
    let scaled: Vec<f64> = values.iter().map(|value| value / greatest).collect();
    let length = scaled.iter().map(|value| value * value).sum::<f64>().sqrt();
    #[expect(clippy::cast_possible_truncation, reason = "an index holds numbers of 32 bits")]
    let values = scaled.iter().map(|value| (value / length) as f32).collect();
    Embedding::normalised(values).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, inputs: usize) -> Result<Vec<Embedding>, String> {
        embeddings(text.as_bytes(), inputs, 2)
    }

    // IDX-167
    #[test]
    fn entries_are_put_in_the_order_of_the_inputs_and_scaled() {
        let text = r#"{"object": "list", "data": [
            {"index": 1, "embedding": [0, 2], "object": "embedding"},
            {"index": 0, "embedding": [3.0, 4e0]}], "usage": {}}"#;
        let found = read(text, 2).unwrap();
        assert_eq!(found[0].as_slice(), [0.6, 0.8]);
        assert_eq!(found[1].as_slice(), [0.0, 1.0]);
        let tiny = r#"{"data": [{"index": 0, "embedding": [3e-300, 4e-300]}]}"#;
        assert_eq!(read(tiny, 1).unwrap()[0].as_slice(), [0.6, 0.8]);
    }

    // IDX-167
    #[test]
    fn what_is_not_one_vector_an_input_is_refused() {
        let entry = |index: &str, vector: &str| {
            format!("{{\"data\": [{{\"index\": {index}, \"embedding\": {vector}}}]}}")
        };
        for (text, said) in [
            (String::new(), "ends early"),
            ("{\"data\": [{\"index\": 0, \"embed".to_owned(), "ends early"),
            ("<html>secret</html>".to_owned(), "not valid JSON"),
            ("{\"error\": \"secret\"}".to_owned(), "not of the form"),
            ("{\"data\": []}".to_owned(), "0 embeddings for 1"),
            (entry("1", "[1, 0]"), "index 1 for 1"),
            (entry("-1", "[1, 0]"), "not of the form"),
            (entry("0", "[1]"), "1 numbers"),
            (entry("0", "[1, 0, 0]"), "3 numbers"),
            (entry("0", "[0, -0.0]"), "no direction"),
            (entry("0", "[1, NaN]"), "not valid JSON"),
            (entry("0", "[1, null]"), "not of the form"),
            (entry("0", "[1, 1e999]"), "not valid JSON"),
            (entry("0", "\"AAAA\""), "not of the form"),
            ("{\"data\": [{\"embedding\": [1, 0]}]}".to_owned(), "not of the form"),
        ] {
            let error = read(&text, 1).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let twice =
            r#"{"data": [{"index": 0, "embedding": [1, 0]}, {"index": 0, "embedding": [1, 0]}]}"#;
        assert!(read(twice, 2).unwrap_err().contains("index 0 twice"));
    }

    // IDX-166
    #[test]
    fn the_bound_grows_with_inputs_and_dimension() {
        assert_eq!(most_bytes(64, 384), 64 * (384 * 64 + 512) + 65_536);
        assert_eq!(most_bytes(0, 384), 65_536);
        assert_eq!(most_bytes(usize::MAX, usize::MAX), u64::MAX);
    }
}
