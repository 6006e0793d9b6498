//! The tokens of the beginning of a text are the beginning of its tokens.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokenizers::TruncationParams;

use super::*;
use crate::adapters::model::catalogue::Pooling;
use crate::adapters::model::encoder::beginning::MOST_BYTES;
use crate::adapters::model::encoder::parts::MOST_PARTS;
use crate::adapters::model::encoder::testing::overwrite;

/// Letters of scripts with and without spaces, with marks, and beyond the first
/// 65,536 characters.
const LETTERS: [&str; 12] = [
    "abcdefgh",
    "äöéñ",
    "жщюя",
    "αβγδ",
    "אבגד",
    "ابتث",
    "日本語漢",
    "かなカナ",
    "한국어",
    "กขคเ",
    "नमसते",
    "🦀😀👩\u{200d}",
];

fn letters() -> impl Iterator<Item = char> {
    LETTERS.iter().flat_map(|letters| letters.chars())
}

fn added(id: usize, content: &str) -> Value {
    json!({"id": id, "content": content, "special": true, "single_word": false,
        "lstrip": false, "rstrip": false, "normalized": false})
}

/// A tokenizer of the BERT family: letters, and some pairs of them.
fn word_pieces() -> Value {
    let mut pieces: Vec<String> = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].map(str::to_owned).to_vec();
    let mut rest = BTreeSet::new();
    for letter in letters().chain("äöéñ?!.aon".chars()) {
        rest.insert(letter.to_string());
        rest.insert(format!("##{letter}"));
    }
    for pair in ["ab", "##bc", "##fg", "##gh", "жщ", "##юя", "##กข", "##नम"] {
        rest.insert(pair.to_owned());
    }
    pieces.extend(rest);
    let vocabulary: serde_json::Map<String, Value> =
        pieces.into_iter().enumerate().map(|(id, piece)| (piece, id.into())).collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "decoder": null,
        "added_tokens": [added(0, "[PAD]"), added(1, "[UNK]"), added(2, "[CLS]"), added(3, "[SEP]")],
        "normalizer": {"type": "BertNormalizer", "clean_text": true,
            "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
}

/// A tokenizer of the XLM-RoBERTa family.
fn sentence_pieces() -> Value {
    let mut vocabulary = vec![
        json!(["<s>", 0.0]),
        json!(["<pad>", 0.0]),
        json!(["</s>", 0.0]),
        json!(["<unk>", 0.0]),
        json!(["▁", -4.0]),
    ];
    let mut known = BTreeSet::new();
    for letter in letters() {
        if known.insert(letter) {
            vocabulary.push(json!([letter.to_string(), -6.0]));
        }
    }
    for (piece, score) in
        [("▁ab", -5.0), ("bc", -7.0), ("abc", -7.5), ("日本", -6.5), ("本語", -6.4), ("กข", -6.0)]
    {
        vocabulary.push(json!([piece, score]));
    }
    json!({
        "version": "1.0", "truncation": null, "padding": null, "decoder": null,
        "added_tokens": [added(0, "<s>"), added(1, "<pad>"), added(2, "</s>"), added(3, "<unk>")],
        "normalizer": {"type": "NFKC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"},
            {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}]},
        "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0],
            "trim_offsets": true, "add_prefix_space": false},
        "model": {"type": "Unigram", "unk_id": 3, "vocab": vocabulary, "byte_fallback": false},
    })
}

fn read(tokenizer: &Value, family: Family, window: usize) -> Tokens {
    let folder = tempfile::tempdir().unwrap();
    overwrite(folder.path(), FILE, tokenizer.to_string().as_bytes());
    let shape = Shape {
        family,
        hidden: 1,
        layers: 1,
        heads: 1,
        inner: 1,
        vocabulary: 1000,
        positions: window + 2,
        types: 2,
        epsilon: 0.1,
        window_tokens: window,
        pooling: Pooling::Mean,
    };
    Tokens::read(folder.path(), &shape).unwrap()
}

fn both(window: usize) -> [Tokens; 2] {
    [
        read(&word_pieces(), Family::Bert, window),
        read(&sentence_pieces(), Family::Roberta { padding: 1 }, window),
    ]
}

/// The tokens of the window out of those of the whole text.
fn whole(tokens: &Tokens, text: &str) -> Vec<u32> {
    let mut tokenizer = tokens.tokenizer.clone();
    let truncation = TruncationParams { max_length: tokens.window, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation)).unwrap();
    tokenizer.encode(text, true).unwrap().get_ids().to_vec()
}

fn whole_pair(tokens: &Tokens, one: &str, other: &str) -> Vec<u32> {
    let mut tokenizer = tokens.tokenizer.clone();
    let truncation = TruncationParams { max_length: tokens.window, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation)).unwrap();
    tokenizer.encode((one, other), true).unwrap().get_ids().to_vec()
}

/// Words of one script, and what is between them; at times there is nothing.
fn text() -> impl Strategy<Value = String> {
    let word = prop::sample::select(LETTERS.to_vec()).prop_flat_map(|letters| {
        let letters: Vec<char> = letters.chars().collect();
        prop::collection::vec(prop::sample::select(letters), 1..30)
    });
    let between = prop::sample::select(vec![
        " ", " ", " ", "\n", "  ", "\t", "\r\n", "", "", "、", ". ", "?", "\u{3000}", "\u{a0}",
        "\u{85}", "\u{301}", "[SEP]", "<pad>", "\u{0}", "\u{feff}",
    ]);
    prop::collection::vec((word, between), 0..60).prop_map(|parts| {
        let part = |(word, between): (Vec<char>, &str)| {
            format!("{}{between}", word.into_iter().collect::<String>())
        };
        parts.into_iter().map(part).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_long_text_has_the_tokens_of_the_whole(text in text(), window in 6_usize..20) {
        for tokens in both(window) {
            prop_assert_eq!(tokens.of(&text).unwrap().tokens, whole(&tokens, &text));
        }
    }

    #[test]
    fn a_long_pair_has_the_tokens_of_the_whole(one in text(), other in text(), half in 4_usize..10) {
        // With an odd number of tokens, who gets the last depends on the rest.
        for (tokens, special) in both(2 * half + 3).into_iter().zip([3, 4]) {
            let tokens = Tokens { window: 2 * half + special, ..tokens };
            let pair = tokens.of_pair(&one, &other).unwrap();
            prop_assert_eq!(pair.tokens, whole_pair(&tokens, &one, &other));
        }
    }
}

proptest! {
    // IDX-B23
    #[test]
    fn the_parts_of_a_long_text_make_up_the_text(text in text(), room in 4_usize..20) {
        for tokens in both(room + 2) {
            let splitter = Splitter { tokenizer: &tokens.tokenizer, room, lead: "" };
            let parts = splitter.split(&text).unwrap();
            prop_assert_eq!(parts.len() > 1, splitter.exceeds(&text).unwrap());
            if parts.len() < MOST_PARTS {
                let whole: String = parts.iter().map(|part| part.text.as_str()).collect();
                let rest = text.strip_prefix(&whole[..]);
                prop_assert!(rest.is_some(), "{text:?} has the parts {parts:?}");
                let all = tokens.tokenizer.encode(&text[..], false).unwrap().len();
                let sum: usize = parts.iter().map(|part| part.tokens).sum();
                prop_assert_eq!(sum, all, "{:?}", parts);
            }
        }
    }
}

#[test]
fn an_endless_word_has_the_tokens_of_the_whole() {
    for length in [300, 5_000, 60_000] {
        for letter in ["a", "日", "ก", "🦀"] {
            let text = letter.repeat(length / letter.len());
            for tokens in both(8) {
                assert_eq!(tokens.of(&text).unwrap().tokens, whole(&tokens, &text));
            }
        }
    }
}

#[test]
fn of_a_huge_word_no_more_is_looked_at_than_its_beginning() {
    let text = "日".repeat(2 * MOST_BYTES);
    for tokens in both(8) {
        assert_eq!(tokens.first_tokens(&text, 6).unwrap().len().max(MOST_BYTES), MOST_BYTES);
        assert_eq!(tokens.of(&text).unwrap().tokens.len(), 8);
    }
}

#[test]
fn the_second_text_of_a_pair_has_a_type_of_its_own_in_a_bert_model() {
    let [bert, roberta] = both(20);
    let pair = bert.of_pair("a b", "d").unwrap();
    assert_eq!(pair.types, [0, 0, 0, 0, 1, 1]);
    assert_eq!(roberta.of_pair("a b", "d").unwrap().types.iter().max(), Some(&0));
}
