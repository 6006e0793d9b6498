//! The contract of the parser port.

use grooveseek::adapters::parser::guarded::Guarded;
use grooveseek::adapters::parser::markdown::MarkdownParser;
use grooveseek::domain::document::DocumentPath;
use grooveseek::domain::format::{Format, SUPPORTED};
use grooveseek::ports::parser::{ParseError, ParseInput, ParsedDocument, Parser};

macro_rules! parser_contract {
    ($($adapter:tt)+) => {
        contract! { $($adapter)+;
            reads_a_format_of_this_build,
            an_empty_file_has_no_chunks,
            every_document_gives_chunks_that_say_something,
            chunks_come_in_the_order_of_the_document,
            a_document_has_a_text_to_serve,
            the_answer_depends_on_the_input_alone,
            an_exclusion_that_matches_nothing_changes_nothing,
            the_rows_of_a_table_lie_inside_the_content,
            truncated_bytes_give_an_answer_or_a_refusal,
            damaged_bytes_give_an_answer_or_a_refusal,
            arbitrary_bytes_give_an_answer_or_a_refusal,
            one_parser_serves_many_threads,
        }
    };
}

parser_contract! { markdown = super::markdown }
parser_contract! { guarded_markdown = super::guarded_markdown }
parser_contract! { guarded_fragile = super::guarded_fragile }

/// A parser, and documents of its format in which `marker-one`, `marker-two`
/// and so on stand in this order.
struct Subject {
    parser: Box<dyn Parser>,
    documents: &'static [(&'static str, &'static [u8])],
}

type Make = fn() -> Subject;

const MARKDOWN_DOCUMENTS: &[(&str, &[u8])] = &[
    ("ops/sections.md", include_bytes!("fixtures/markdown/sections.md")),
    ("crlf.md", include_bytes!("fixtures/markdown/crlf.md")),
    ("broken.md", include_bytes!("fixtures/markdown/broken-frontmatter.md")),
];

fn markdown() -> Subject {
    Subject { parser: Box::new(MarkdownParser::new()), documents: MARKDOWN_DOCUMENTS }
}

fn guarded_markdown() -> Subject {
    let parser = Box::new(Guarded::new(MarkdownParser::new()));
    Subject { parser, documents: MARKDOWN_DOCUMENTS }
}

fn guarded_fragile() -> Subject {
    let parser = Box::new(Guarded::new(Fragile(MarkdownParser::new())));
    Subject { parser, documents: MARKDOWN_DOCUMENTS }
}

/// A parser that panics where another one refuses.
struct Fragile(MarkdownParser);

impl Parser for Fragile {
    fn format(&self) -> Format {
        self.0.format()
    }

    fn version(&self) -> u32 {
        1
    }

    fn parse(&self, input: &ParseInput<'_>) -> Result<ParsedDocument, ParseError> {
        Ok(self.0.parse(input).expect("a document that can be read"))
    }
}

const MARKERS: [&str; 5] =
    ["marker-one", "marker-two", "marker-three", "marker-four", "marker-five"];

impl Subject {
    fn parse(&self, path: &str, bytes: &[u8]) -> Result<ParsedDocument, ParseError> {
        self.parse_without(path, bytes, &[])
    }

    fn parse_without(
        &self,
        path: &str,
        bytes: &[u8],
        exclude_headings: &[String],
    ) -> Result<ParsedDocument, ParseError> {
        let path = DocumentPath::new(path).unwrap();
        self.parser.parse(&ParseInput { path: &path, bytes, exclude_headings })
    }

    /// Every document of the subject, parsed.
    fn parsed(&self) -> impl Iterator<Item = (&'static str, ParsedDocument)> + '_ {
        self.documents.iter().map(|&(path, bytes)| (path, self.parse(path, bytes).unwrap()))
    }

    /// Parses twice what may be no document: no panic, and one answer.
    fn challenge(&self, bytes: &[u8]) {
        let name = format!("challenge.{}", self.parser.format().extension);
        let answer = self.parse(&name, bytes);
        assert_eq!(answer, self.parse(&name, bytes));
        if let Err(error) = answer {
            assert!(!error.to_string().is_empty());
        }
    }
}

fn reads_a_format_of_this_build(make: Make) {
    assert!(SUPPORTED.contains(&make().parser.format()));
}

fn an_empty_file_has_no_chunks(make: Make) {
    let subject = make();
    if let Ok(document) = subject.parse("empty", b"") {
        assert_eq!(document.chunks, []);
    }
}

fn every_document_gives_chunks_that_say_something(make: Make) {
    for (path, document) in make().parsed() {
        assert!(!document.chunks.is_empty(), "{path}");
        for chunk in &document.chunks {
            let heading = chunk.heading.as_deref().unwrap_or_default();
            assert!(!chunk.content.trim().is_empty() || !heading.trim().is_empty(), "{path}");
            let context = chunk.context.as_deref().expect("a named file has a context");
            assert!(!context.trim().is_empty() && context.chars().count() <= 200, "{path}");
        }
    }
}

// FMT-GEN-13
fn chunks_come_in_the_order_of_the_document(make: Make) {
    for (path, document) in make().parsed() {
        let contents = document.chunks.iter().map(|chunk| chunk.content.as_str());
        let text = contents.collect::<Vec<_>>().join("\n");
        let places: Vec<_> = MARKERS.iter().filter_map(|marker| text.find(marker)).collect();
        assert!(!places.is_empty() && places.is_sorted(), "{path}: {places:?}");
    }
}

fn a_document_has_a_text_to_serve(make: Make) {
    for (path, document) in make().parsed() {
        assert!(document.served_text.contains(MARKERS[0]), "{path}");
    }
}

// FMT-GEN-07
fn the_answer_depends_on_the_input_alone(make: Make) {
    let (one, other) = (make(), make());
    let expected: Vec<_> = one.parsed().collect();
    assert_eq!(expected, other.parsed().collect::<Vec<_>>());
    assert_eq!(expected, one.parsed().collect::<Vec<_>>());
}

fn an_exclusion_that_matches_nothing_changes_nothing(make: Make) {
    let subject = make();
    let exclude = ["no heading holds this".to_owned()];
    for &(path, bytes) in subject.documents {
        assert_eq!(subject.parse_without(path, bytes, &exclude), subject.parse(path, bytes));
    }
}

fn the_rows_of_a_table_lie_inside_the_content(make: Make) {
    for (path, document) in make().parsed() {
        for chunk in &document.chunks {
            for row in &chunk.table_rows {
                assert!(chunk.content.get(row.start..row.end).is_some(), "{path}: {row:?}");
            }
        }
    }
}

// FMT-GEN-08
fn truncated_bytes_give_an_answer_or_a_refusal(make: Make) {
    let subject = make();
    for &(_, bytes) in subject.documents {
        let step = (bytes.len() / 300).max(1);
        for end in (0..bytes.len()).step_by(step) {
            subject.challenge(&bytes[..end]);
            subject.challenge(&bytes[end..]);
        }
    }
}

// FMT-GEN-08
fn damaged_bytes_give_an_answer_or_a_refusal(make: Make) {
    let subject = make();
    let mut random = Random(1);
    for &(_, bytes) in subject.documents {
        for _ in 0..100 {
            let mut damaged = bytes.to_vec();
            for _ in 0..=random.below(8) {
                let place = random.below(damaged.len());
                damaged[place] = random.byte();
            }
            subject.challenge(&damaged);
        }
    }
}

// FMT-GEN-08
fn arbitrary_bytes_give_an_answer_or_a_refusal(make: Make) {
    let subject = make();
    let mut random = Random(2);
    for length in 0..300 {
        let bytes: Vec<u8> = (0..length).map(|_| random.byte()).collect();
        subject.challenge(&bytes);
    }
    for byte in 0..=u8::MAX {
        subject.challenge(&[byte; 5_000]);
    }
}

fn one_parser_serves_many_threads(make: Make) {
    let subject = make();
    let expected: Vec<_> = subject.parsed().collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(subject.parsed().collect::<Vec<_>>(), expected));
        }
    });
}

/// A sequence of numbers that is the same in every run.
///
/// # Source
///
/// Marsaglia, "Xorshift RNGs", Journal of Statistical Software, 2003.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[3]
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % limit
    }
}
