use super::*;
use crate::adapters::store::memory::MemoryStore;
use crate::domain::chunk::{Chunk, LineRange};
use crate::domain::document::ContentHash;
use crate::domain::embedding::Embedding;
use crate::domain::format::{Format, MARKDOWN};
use crate::ports::chunk_store::{Change, NewChunk};
use crate::ports::parser::{ParseError, ParseInput, ParsedDocument, Parser};

const RUST: Format = Format { id: "rs", extension: "rs", class: Class::Code };
const PDF: Format = Format { id: "pdf", extension: "pdf", class: Class::Binary };

/// A parser that nobody asks to parse.
struct Named(Format);

impl Parser for Named {
    fn format(&self) -> Format {
        self.0
    }

    fn version(&self) -> u32 {
        2
    }

    fn parse(&self, _: &ParseInput<'_>) -> Result<ParsedDocument, ParseError> {
        Ok(ParsedDocument::default())
    }
}

fn document(path: &str) -> Document {
    Document {
        path: DocumentPath::new(path).unwrap(),
        title: None,
        topic: None,
        category: None,
        depth: None,
        tags: Vec::new(),
        date: None,
        fields: std::collections::BTreeMap::new(),
        hash: ContentHash::from_text(path),
        recipe: Some("rs/2 chars=3500".to_owned()),
        size_bytes: Some(10),
        indexed_at: String::new(),
    }
}

fn chunk(content: &str, lines: bool) -> NewChunk {
    let lines = lines.then_some(LineRange { start: 1, end: 2 });
    let chunk = Chunk { content: content.to_owned(), lines, ..Chunk::default() };
    NewChunk { chunk, quality: 1.0, embedding: Some(Embedding::from_stored(vec![1.0, 0.0])) }
}

fn put(document: Document, chunks: Vec<NewChunk>) -> Change {
    Change::Put { document, chunks }
}

/// An index that a run has completed, with these changes on top.
async fn store(changes: Vec<Change>) -> MemoryStore {
    let store = MemoryStore::new();
    let done = Change::Declare(Some(BTreeSet::new()));
    store.apply([vec![done], changes].concat()).await.unwrap();
    store
}

struct Asked {
    settings: IndexSettings,
    declared: BTreeSet<String>,
    all: bool,
}

impl Asked {
    fn usual() -> Self {
        Self { settings: IndexSettings::default(), declared: BTreeSet::new(), all: false }
    }

    async fn diagnosis(&self, store: &MemoryStore) -> Diagnosis {
        let formats = EnabledFormats::of(&[MARKDOWN, RUST, PDF]);
        let parsers = [MARKDOWN, RUST, PDF].map(|format| Arc::new(Named(format)) as _);
        let registry = Registry::new(parsers, &formats);
        let (settings, declared) = (&self.settings, &self.declared);
        let terms =
            Terms { formats: &formats, registry: &registry, settings, declared, all: self.all };
        examine(store, terms).await.unwrap()
    }

    async fn findings(&self, changes: Vec<Change>) -> Vec<Finding> {
        self.diagnosis(&store(changes).await).await.findings
    }
}

/// The one finding of an index.
async fn only(changes: Vec<Change>) -> Finding {
    let mut findings = Asked::usual().findings(changes).await;
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

fn ids(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.check.as_str()).collect()
}

fn strings<const N: usize>(of: [&str; N]) -> BTreeSet<String> {
    of.map(str::to_owned).into()
}

// CLI-155 CLI-156
#[tokio::test]
async fn a_sound_index_has_no_findings() {
    let store = store(vec![put(document("a.md"), vec![chunk("x", false), chunk("y", false)])]);
    let diagnosis = Asked::usual().diagnosis(&store.await).await;
    let expected = Diagnosis { documents: 1, chunks: 2, ..Diagnosis::default() };
    assert_eq!(diagnosis, expected);
}

// OPS-60
#[tokio::test]
async fn vectors_that_are_still_to_come_are_reported_unless_a_run_makes_them() {
    let pending = |path| {
        let chunk = NewChunk { embedding: None, ..chunk("x", false) };
        put(document(path), vec![chunk.clone(), chunk])
    };
    let names = ["f.md", "e.md", "d.md", "c.md", "b.md", "a.md"];
    let store = store(names.map(pending).to_vec()).await;
    let findings = Asked::usual().diagnosis(&store).await.findings;
    assert_eq!(ids(&findings), ["missing-embedding"]);
    assert_eq!(findings[0].count, 12);
    assert_eq!(findings[0].samples, ["a.md", "b.md", "c.md", "d.md", "e.md"]);
    assert!(findings[0].summary.contains("yet"), "{}", findings[0].summary);
    assert!(findings[0].remedy.starts_with("groove index ("), "{}", findings[0].remedy);

    let run = store.announce("2026-04-16T10:00:00Z").await.unwrap();
    let during = Asked::usual().diagnosis(&store).await;
    assert_eq!((during.findings.len(), during.runs.len(), during.pending_chunks), (0, 1, 12));
    drop(run);
    assert_eq!(Asked::usual().diagnosis(&store).await.findings, findings);
}

// OPS-62c
#[tokio::test]
async fn a_document_without_chunks_is_reported() {
    let finding = only(vec![put(document("a.md"), Vec::new())]).await;
    assert_eq!((finding.check, finding.count), (Check::DocumentWithoutChunks, 1));
    assert_eq!(finding.samples, ["a.md"]);
    assert!(finding.remedy.contains("groove index --force"));
}

// OPS-63 OPS-68
#[tokio::test]
async fn documents_that_no_parser_reads_any_more_are_reported() {
    let names = ["a.doc", "b.doc", "c.doc", "d.doc", "e.doc", "f.doc"];
    let finding =
        only(names.map(|name| put(document(name), vec![chunk("x", false)])).to_vec()).await;
    assert_eq!((finding.check, finding.count), (Check::ExtensionNotRegistered, 6));
    assert_eq!(finding.samples, names[..5]);
    assert!(finding.remedy.contains("[parsers].enabled"), "{}", finding.remedy);
}

// OPS-66 OPS-68
#[tokio::test]
async fn documents_larger_than_a_read_are_reported() {
    let sized = |path: &str, size_bytes| {
        let document = Document { size_bytes: Some(size_bytes), ..document(path) };
        put(document, vec![chunk("x", false)])
    };
    let (text, binary) = (1 << 20, 50 << 20);
    let finding = only(vec![
        sized("a.md", text + 1),
        sized("b.md", text),
        sized("c.pdf", binary + 1),
        sized("d.pdf", binary),
        sized("e.rs", text + 1),
    ])
    .await;
    assert_eq!((finding.check, finding.count), (Check::LargerThanARead, 3));
    assert_eq!(finding.samples, ["a.md", "c.pdf", "e.rs"]);
    for part in ["1 MiB", "50 MiB"] {
        assert!(finding.summary.contains(part), "{}", finding.summary);
    }
}

// OPS-67 OPS-68
#[tokio::test]
async fn binary_documents_are_reported_while_they_may_unpack_to_too_much() {
    let changes = || {
        vec![
            put(document("a.pdf"), vec![chunk("x", false)]),
            put(document("a.md"), vec![chunk("x", false)]),
        ]
    };
    for (max, expected) in [(None, 1), (Some((50 << 20) + 1), 1), (Some(50 << 20), 0)] {
        let mut asked = Asked::usual();
        asked.settings.max_decompressed_size = max;
        let findings = asked.findings(changes()).await;
        assert_eq!(findings.len(), expected, "{max:?}");
        for finding in findings {
            assert_eq!(finding.check, Check::BinaryUrisWithheld);
            assert_eq!(finding.samples, ["a.pdf"]);
            assert!(finding.remedy.contains("max_decompressed_size"));
        }
    }
}

// OPS-64
#[tokio::test]
async fn sizes_that_are_not_recorded_are_counted() {
    let document = Document { size_bytes: None, ..document("a.md") };
    let finding = only(vec![put(document, vec![chunk("x", false)])]).await;
    assert_eq!((finding.check, finding.count), (Check::SizeNotRecorded, 1));
    assert_eq!((finding.samples.len(), finding.remedy.as_str()), (0, "groove index"));
}

fn with_fields() -> Change {
    let mut document = document("a.md");
    document.fields.insert("owner".into(), vec!["x".into(), "y".into()]);
    put(document, vec![chunk("x", false)])
}

// OPS-69
#[tokio::test]
async fn an_index_that_no_run_has_completed_says_so_even_if_it_is_empty() {
    let finding = only(vec![Change::Declare(None)]).await;
    assert_eq!((finding.check, finding.count), (Check::DeclaredFieldsPending, 0));
    let finding = only(vec![with_fields(), Change::Declare(None)]).await;
    assert_eq!((finding.count, finding.samples.len()), (2, 0));
    assert_eq!(finding.remedy, "groove index");
}

// OPS-70
#[tokio::test]
async fn other_fields_than_the_schema_declares_are_stale() {
    let recorded = |fields| vec![with_fields(), Change::Declare(Some(fields))];
    let asked = Asked { declared: strings(["owner", "status"]), ..Asked::usual() };
    assert_eq!(asked.findings(recorded(strings(["owner", "status"]))).await, []);
    let findings = asked.findings(recorded(strings(["owner", "team"]))).await;
    assert_eq!(ids(&findings), ["declared-fields-stale"]);
    assert_eq!((findings[0].count, findings[0].samples.len()), (2, 0));
    let summary = &findings[0].summary;
    assert!(summary.contains("newly declared: status"), "{summary}");
    assert!(summary.contains("no longer declared: team"), "{summary}");
}

// OPS-72
#[tokio::test]
async fn source_code_that_was_cut_by_unknown_rules_is_counted() {
    let cut = |path: &str, recipe: Option<&str>| {
        let recipe = recipe.map(str::to_owned);
        put(Document { recipe, ..document(path) }, vec![chunk("x", true)])
    };
    let finding = only(vec![
        cut("a.rs", None),
        cut("b.rs", Some("rs/1 chars=3500")),
        cut("c.rs", Some("rs/2 chars=100")),
        cut("d.md", None),
    ])
    .await;
    assert_eq!((finding.check, finding.count), (Check::ChunkPolicyNotRecorded, 2));
    assert!(finding.samples.is_empty());
    assert!(finding.remedy.contains("groove index --force"));
}

// OPS-71
#[tokio::test]
async fn source_code_without_definitions_is_told_from_a_note_with_the_tag() {
    let tagged = |path: &str, tag: &str, lines| {
        let tags = vec!["x".to_owned(), tag.to_owned()];
        put(Document { tags, ..document(path) }, vec![chunk("x", lines)])
    };
    let finding = only(vec![
        tagged("a.rs", "parse:too-deep", true),
        tagged("b.rs", "parse:too-many-chunks", true),
        tagged("c.md", "parse:too-deep", false),
        tagged("d.rs", "parse:deep", true),
    ])
    .await;
    assert_eq!((finding.check, finding.count), (Check::ChunkedWithoutDefinitions, 2));
    assert_eq!(finding.samples, ["a.rs", "b.rs"]);
}

// OPS-73
#[tokio::test]
async fn blank_chunks_of_source_code_are_reported() {
    let chunks = vec![chunk(" \n\u{3000}\t", true), chunk("", true), chunk("x", true)];
    let finding =
        only(vec![put(document("a.rs"), chunks), put(document("b.md"), vec![chunk(" ", false)])])
            .await;
    assert_eq!((finding.check, finding.count), (Check::BlankCodeChunks, 2));
    assert_eq!(finding.samples, ["a.rs"]);
}

// OPS-B02 QUA-B06
#[tokio::test]
async fn further_questions_are_asked_on_request_only() {
    let same = |path: &str, digit: char| {
        let hash = ContentHash::from_text(digit.to_string().repeat(64));
        put(Document { hash, ..document(path) }, vec![chunk("x", false)])
    };
    let changes = || {
        let mut changes: Vec<Change> =
            (0..5).map(|number| same(&format!("{number}.md"), '1')).collect();
        changes.extend([same("b.md", '2'), same("a.md", '2'), same("c.md", '3')]);
        changes.extend([same("caf\u{e9}.md", '4'), same("cafe\u{301}.md", '5')]);
        changes
    };
    assert_eq!(Asked::usual().findings(changes()).await, []);
    let asked = Asked { all: true, ..Asked::usual() };
    let Diagnosis { findings, quality, .. } = asked.diagnosis(&store(changes()).await).await;
    assert_eq!(ids(&findings), ["duplicate-content", "mixed-normalisation"]);
    assert_eq!((findings[0].count, findings[1].count), (7, 2));
    assert_eq!(findings[0].samples, ["0.md = 1.md = 2.md = 2 more", "a.md = b.md"]);
    assert_eq!(findings[1].samples, ["cafe\u{301}.md = caf\u{e9}.md"]);
    let quality = quality.unwrap();
    assert_eq!((quality.chunks, quality.lowered), (10, 10));
}

// OPS-B02
#[tokio::test]
async fn hashes_that_are_not_known_are_no_duplicates() {
    let unknown = |path: &str, hash: &str| {
        let hash = ContentHash::from_text(hash);
        put(Document { hash, ..document(path) }, vec![chunk("x", false)])
    };
    let asked = Asked { all: true, ..Asked::usual() };
    let changes = ["a.md", "b.md"].map(|path| unknown(path, "awaiting-reparse")).to_vec();
    assert_eq!(asked.findings(changes).await, []);
    let changes = ["a.md", "b.md"].map(|path| unknown(path, "")).to_vec();
    assert_eq!(asked.findings(changes).await, []);
}

// CLI-157
#[tokio::test]
async fn findings_come_in_the_order_of_the_checks() {
    let odd = Document { size_bytes: None, recipe: None, ..document("b.rs") };
    let findings = Asked { all: true, ..Asked::usual() }
        .findings(vec![
            put(document("a.doc"), vec![chunk("x", false)]),
            put(odd, vec![NewChunk { embedding: None, ..chunk(" ", true) }]),
            put(document("c.md"), Vec::new()),
            Change::Declare(None),
        ])
        .await;
    let expected = [
        "missing-embedding",
        "document-without-chunks",
        "extension-not-registered",
        "size-not-recorded",
        "declared-fields-pending",
        "chunk-policy-not-recorded",
        "blank-code-chunks",
    ];
    assert_eq!(ids(&findings), expected);
    assert!(findings.is_sorted_by_key(|finding| finding.check));
}
