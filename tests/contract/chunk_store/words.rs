//! What the lexical leg finds by words.

use super::*;

fn asked(text: &str) -> LexicalQuery {
    let phrases = text.split_whitespace().filter_map(Phrase::new).collect();
    LexicalQuery { text: text.to_owned(), phrases, ..LexicalQuery::default() }
}

impl Subject {
    /// The contents of what a text finds, best first.
    async fn found_by_words(&self, text: &str) -> Vec<String> {
        let snapshot = self.snapshot().await;
        let found = snapshot.matching(&asked(text), 100, &free()).await.unwrap().candidates;
        assert!(found.is_sorted_by(|a, b| a.score >= b.score), "{found:?}");
        let ids: Vec<ChunkId> = found.iter().map(|candidate| candidate.chunk).collect();
        let chunks = snapshot.chunks(&ids).await.unwrap();
        chunks.into_iter().map(|chunk| chunk.chunk.content).collect()
    }
}

pub(super) fn a_word_is_found_in_all_its_forms(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let english = "The servers were searching through every index that they had.";
        let german = "Die Häuser in dieser Straße wurden im vergangenen Jahr neu gestrichen.";
        store.apply(vec![put("a.md", vec![text(english)]), put("b.md", vec![text(german)])]).await;
        for word in ["search", "searches", "Searched", "indexes", "SERVER"] {
            assert_eq!(store.found_by_words(word).await, [english], "{word}");
        }
        for word in ["Haus", "haus", "strasse Häusern"] {
            assert_eq!(store.found_by_words(word).await, [german], "{word}");
        }
        assert!(store.found_by_words("cathedral").await.is_empty());
    });
}

pub(super) fn words_of_two_characters_are_found(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let contents = ["AI for all", "全文検索の仕組み", "Go and C++", "plain C", "검색 엔진"];
        let chunks = contents.iter().map(|content| text(content)).collect();
        store.apply(vec![put("x.md", chunks)]).await;
        for (query, content) in
            [("AI", 0), ("ai", 0), ("検索", 1), ("全文", 1), ("Go", 2), ("검색", 4)]
        {
            assert_eq!(store.found_by_words(query).await, [contents[content]], "{query}");
        }
        assert_eq!(store.found_by_words("C++").await[0], contents[2]);
    });
}

pub(super) fn identifiers_are_found_whole_and_in_parts(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let contents = ["fn parse_config_file()", "let parser: HTTPServer", "config of a parser"];
        let chunks = contents.iter().map(|content| text(content)).collect();
        store.apply(vec![put("x.md", chunks)]).await;
        assert_eq!(store.found_by_words("parse_config_file").await[0], contents[0]);
        assert_eq!(store.found_by_words("config file").await[0], contents[0]);
        assert_eq!(store.found_by_words("server").await, [contents[1]]);
        assert_eq!(store.found_by_words("httpserver").await[0], contents[1]);
    });
}

pub(super) fn what_stands_inside_of_a_word_comes_after_words(
    subject: impl Future<Output = Subject>,
) {
    case(subject, async |store| {
        let contents = ["reconfigured at night", "config", "nothing of it"];
        let chunks = contents.iter().map(|content| text(content)).collect();
        store.apply(vec![put("x.md", chunks)]).await;
        assert_eq!(store.found_by_words("config").await, [contents[1], contents[0]]);
        // A word that no text has may be a part of one.
        assert_eq!(store.found_by_words("onfig").await.len(), 2);
        assert_eq!(store.found_by_words("night onfigur").await, [contents[0]]);
        // A filter that drops what words found leaves room for it, too.
        let hidden = NewChunk { quality: 0.1, ..text("config again") };
        store.apply(vec![put("y.md", vec![hidden])]).await;
        let request = SearchRequest::default();
        let filter = Filter::check(&request, 0.3).unwrap().filter;
        let restriction = Restriction { filter, ..free() };
        let snapshot = store.snapshot().await;
        let found = snapshot.matching(&asked("config"), 2, &restriction).await.unwrap();
        assert_eq!(found.candidates.len(), 2, "{found:?}");
    });
}

// SRCH-41 SRCH-54
pub(super) fn what_is_quoted_is_found_as_it_stands_only(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let contents = ["Foundry Local runs here", "a local foundry", "locally found"];
        let chunks = contents.iter().map(|content| text(content)).collect();
        store.apply(vec![put("x.md", chunks)]).await;
        assert_eq!(store.found(&["foundry local"]).await, [contents[0]]);
        // However long it is, all of it has to stand there.
        let long = format!("{}end", "x".repeat(200));
        store.apply(vec![put("y.md", vec![text(&long), text(&"x".repeat(300))])]).await;
        assert_eq!(store.found(&[&long.to_uppercase()]).await, std::slice::from_ref(&long));
        assert_eq!(store.found(&[&"x".repeat(200)]).await.len(), 2);
        let query = LexicalQuery { text: "found".to_owned(), ..query(&["foundry local"]) };
        let snapshot = store.snapshot().await;
        let found = snapshot.matching(&query, 9, &free()).await.unwrap().candidates;
        assert_eq!(found.len(), 2, "{found:?}");
    });
}

pub(super) fn a_document_is_found_by_what_it_is_called(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let titled =
            |key: &str, title: &str| Document { title: Some(title.to_owned()), ..document(key) };
        let chunks = || vec![text("first part"), text("second part")];
        let put = |document| Change::Put { document, chunks: chunks() };
        store.apply(vec![put(titled("it/vpn-setup.md", "Remote access"))]).await;
        store.apply(vec![put(titled("it/other.md", "Printers"))]).await;
        for query in ["remote", "access", "vpn", "setup"] {
            assert_eq!(store.found_by_words(query).await.len(), 2, "{query}");
        }
        assert!(store.found_by_words("md").await.is_empty());

        // It is, too, once it is called otherwise.
        let change = Change::Describe(titled("it/vpn-setup.md", "Working elsewhere"));
        store.apply(vec![change]).await;
        let rename = Change::Rename { from: path("it/vpn-setup.md"), to: path("it/tunnels.md") };
        store.apply(vec![rename]).await;
        for query in ["elsewhere", "tunnel"] {
            assert_eq!(store.found_by_words(query).await.len(), 2, "{query}");
        }
        for query in ["remote", "vpn"] {
            assert!(store.found_by_words(query).await.is_empty(), "{query}");
        }
    });
}

pub(super) fn a_heading_at_the_beginning_is_a_title(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let chunks = || vec![text("# Remote access\n\nFirst part."), text("Second part.")];
        let untitled = Document { title: None, ..document("it/a.md") };
        let titled = Document { title: Some("Other".to_owned()), ..document("it/b.md") };
        for document in [untitled, titled] {
            store.apply(vec![Change::Put { document, chunks: chunks() }]).await;
        }
        assert_eq!(store.found_by_words("remote").await.len(), 3);
        store.apply(vec![Change::Remove(path("it/a.md"))]).await;
        assert_eq!(store.found_by_words("remote").await.len(), 1);
    });
}

// SRCH-B09
pub(super) fn matches_tell_how_far_the_best_stands_out(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let mut chunks: Vec<NewChunk> = (0..40).map(|_| text("the same words")).collect();
        chunks.push(headed("needle", "", "the same words about it"));
        store.apply(vec![put("x.md", chunks)]).await;
        let snapshot = store.snapshot().await;
        let ask = async |text| snapshot.matching(&asked(text), 9, &free()).await.unwrap();
        let rare = ask("needle").await;
        let spread = rare.spread.unwrap();
        assert!(spread.standing(rare.candidates[0].score) > 6.0, "{rare:?}");
        assert!((rare.named - 1.0).abs() < 1e-6, "{rare:?}");
        let common = ask("same words").await;
        let spread = common.spread.unwrap();
        assert!(spread.standing(common.candidates[0].score) < 1.0, "{common:?}");
        assert!(common.named.abs() < 1e-6, "{common:?}");
        let nothing = ask("absent").await;
        assert_eq!(nothing, Matches::default());
    });
}

pub(super) fn cosines_tell_how_they_are_spread(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let snapshot = store.snapshot().await;
        assert_eq!(snapshot.cosine_spread(&towards(&[1.0, 0.0])).await.unwrap(), None);
        let chunks = (0..300_u16)
            .map(|n| near("x", &[f32::from(n % 7) - 3.0, f32::from(n % 5) + 1.0]))
            .chain([text("without a vector")])
            .collect();
        store.apply(vec![put("x.md", chunks)]).await;
        let snapshot = store.snapshot().await;
        let spread = snapshot.cosine_spread(&towards(&[1.0, 0.0])).await.unwrap().unwrap();
        let all = snapshot.nearest(&towards(&[1.0, 0.0]), 400, &free()).await.unwrap();
        let mean = all.iter().map(|candidate| candidate.score).sum::<f32>() / 300.0;
        assert_eq!(all.len(), 300);
        assert!((spread.mean - mean).abs() < 1e-4, "{spread:?} {mean}");
        assert!(spread.deviation > 0.1, "{spread:?}");
        let between = snapshot.cosines_between().await.unwrap().unwrap();
        assert!((0.0..1.0).contains(&between.mean) && between.deviation > 0.1, "{between:?}");
    });
}
