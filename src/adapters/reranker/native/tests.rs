//! Small random cross-encoders against the definition.

use super::*;
use crate::adapters::model::encoder::onnx_testing::{self, Style};
use crate::adapters::model::encoder::testing::{Kind, POSITIONS, Toy};

const PAIRS: [(&str, &str); 6] =
    [("a", "b"), ("a b", "c d"), ("", "a"), ("a", ""), ("", ""), ("e d", "unknown a b")];

async fn assert_agrees(toy: &Toy, folder: &ModelFolder) {
    for isa in Isa::all() {
        for (formats, most) in
            [(Formats::F32, 1e-4), (Formats::all(grooveseek_kernels::Format::I16), 0.05)]
        {
            let reranker = NativeReranker::open_on("toy", folder, isa, formats).unwrap();
            for (query, passage) in PAIRS {
                let (tokens, types) = toy.kind.pair(query, passage);
                let expected = toy.score(&tokens, &types);
                let scores = reranker.score(query, &[passage.to_owned()]).await.unwrap();
                let distance = (f64::from(scores[0]) - expected).abs();
                assert!(
                    distance < most,
                    "{} {formats:?} {query:?} {passage:?}: {distance}",
                    isa.name()
                );
            }
        }
    }
}

// SRCH-119
#[tokio::test]
async fn the_score_is_the_models_own_as_the_definition_gives_it() {
    for kind in [Kind::Bert, Kind::XlmRoberta] {
        let toy = Toy::cross_encoder(kind);
        let folder = toy.write();
        assert_agrees(&toy, &ModelFolder::new(folder.path())).await;
    }
}

#[tokio::test]
async fn the_weights_may_be_those_of_an_onnx_file() {
    for kind in [Kind::Bert, Kind::XlmRoberta] {
        let toy = Toy::cross_encoder(kind);
        let folder = toy.write_settings();
        onnx_testing::write(&toy, Style::USUAL, folder.path());
        let path = onnx_testing::path(folder.path());
        assert_agrees(&toy, &ModelFolder::new(folder.path()).with_onnx(path)).await;
    }
}

fn open(toy: &Toy) -> Result<NativeReranker, RerankError> {
    let folder = toy.write();
    NativeReranker::open("toy", &ModelFolder::new(folder.path()), Precision::F32)
}

// IDX-178
#[tokio::test]
async fn what_is_beyond_the_window_is_taken_off_the_longer_text() {
    let long = ["a b c d e a b c d e a b c d e", "b"];
    for (kind, special) in [(Kind::Bert, 3), (Kind::XlmRoberta, 4)] {
        let reranker = open(&Toy::cross_encoder(kind)).unwrap();
        let room = POSITIONS - special;
        let first = |count: usize| long[0].split(' ').take(count).collect::<Vec<_>>().join(" ");
        for (query, passage, cut_query, cut_passage) in [
            (long[1], long[0], long[1].to_owned(), first(room - 1)),
            (long[0], long[1], first(room - 1), long[1].to_owned()),
            (long[0], long[0], first(room / 2), first(room.div_ceil(2))),
        ] {
            let cut = reranker.score(&cut_query, &[cut_passage]).await.unwrap();
            assert_eq!(reranker.score(query, &[passage.to_owned()]).await.unwrap(), cut);
        }
    }
}

#[test]
fn the_window_has_512_tokens_however_many_the_model_has() {
    let mut toy = Toy::cross_encoder(Kind::XlmRoberta);
    toy.files.get_mut("config.json").unwrap()["max_position_embeddings"] = 8194.into();
    let positions = "embeddings.position_embeddings.weight";
    let width = toy.tensors[positions].0[1];
    toy.tensors.insert(positions.to_owned(), (vec![8194, width], vec![0.1; 8194 * width]));
    assert_eq!(open(&toy).unwrap().model.loaded.shape.window_tokens, 512);
}

fn refusal(toy: &Toy) -> String {
    let error = open(toy).unwrap_err();
    format!("{error}: {}", std::error::Error::source(&error).unwrap())
}

#[test]
fn a_model_that_gives_no_score_or_several_is_refused() {
    assert!(refusal(&Toy::new()).contains("architectures"));
    let mut several = Toy::cross_encoder(Kind::Bert);
    several.files.get_mut("config.json").unwrap()["id2label"] =
        serde_json::json!({"0": "no", "1": "yes"});
    assert!(refusal(&several).contains("2 numbers"));
    let mut headless = Toy::cross_encoder(Kind::XlmRoberta);
    headless.tensors.remove("classifier.out_proj.weight");
    assert!(refusal(&headless).contains("classifier.out_proj.weight"));
}

#[tokio::test]
async fn a_score_that_is_no_number_is_an_error() {
    let mut toy = Toy::cross_encoder(Kind::Bert);
    toy.tensors.get_mut("classifier.bias").unwrap().1[0] = f32::NAN;
    let error = open(&toy).unwrap().score("a", &["b".to_owned()]).await.unwrap_err();
    assert!(matches!(error, RerankError::Unavailable { .. }));
}
