//! The names of tensors, whatever wraps the model in a file.

/// What the names of an encoder's tensors start with, once the names of the
/// modules around it are off.
const ROOTS: [&str; 4] = ["embeddings.", "encoder.layer.", "pooler.dense.", "classifier."];

/// Takes off a name what a file puts in front of it: `bert.`, `roberta.`,
/// `model.`, `0.auto_model.`; and names the parts of a normalisation as is
/// usual today.
///
/// - Returns nothing if it is not the name of an encoder's tensor.
pub(super) fn plain(name: &str) -> Option<String> {
    let starts = std::iter::once(0).chain(name.match_indices('.').map(|(dot, _)| dot + 1));
    let tail = starts
        .filter_map(|start| name.get(start..))
        .find(|tail| ROOTS.iter().any(|root| tail.starts_with(root)))?;
    Some(match tail.rsplit_once('.') {
        Some((module, "gamma")) if module.ends_with("LayerNorm") => format!("{module}.weight"),
        Some((module, "beta")) if module.ends_with("LayerNorm") => format!("{module}.bias"),
        _ => tail.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wraps_a_model_is_taken_off_its_names() {
        let word = "embeddings.word_embeddings.weight";
        for prefix in ["", "bert.", "roberta.", "model.", "0.auto_model.", "model.roberta."] {
            assert_eq!(plain(&format!("{prefix}{word}")).as_deref(), Some(word));
        }
        assert_eq!(
            plain("bert.encoder.layer.3.attention.output.LayerNorm.gamma").as_deref(),
            Some("encoder.layer.3.attention.output.LayerNorm.weight")
        );
        assert_eq!(plain("classifier.dense.bias").as_deref(), Some("classifier.dense.bias"));
    }

    #[test]
    fn other_names_are_left_alone() {
        for name in ["", ".", "onnx::MatMul_1234", "cls.predictions.bias", "myembeddings.weight"] {
            assert_eq!(plain(name), None, "{name}");
        }
    }
}
