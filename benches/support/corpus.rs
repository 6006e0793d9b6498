//! The texts that are embedded, and where models lie.
#![allow(
    dead_code,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a measurement; not every benchmark uses all of it"
)]

use std::path::{Path, PathBuf};

use grooveseek::adapters::parser::markdown::MarkdownParser;
use grooveseek::domain::document::DocumentPath;
use grooveseek::ports::parser::{ParseInput, Parser};

/// A folder of real Markdown: 301 files below `GROOVE_TEST_CORPORA`, or else
/// this project's own documentation.
pub(crate) fn folder() -> PathBuf {
    let corpora = std::env::var_os("GROOVE_TEST_CORPORA").map(PathBuf::from);
    let real = corpora.map(|corpora| corpora.join("markdown/cpp-docs-300"));
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    real.filter(|folder| folder.is_dir()).unwrap_or(own)
}

/// The chunks of each document of a folder, in file order.
///
/// - `most`: how many chunks are wanted in all.
pub(crate) fn documents(folder: &Path, most: usize) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    collect(folder, &mut paths);
    paths.sort();
    let (mut documents, mut count) = (Vec::new(), 0);
    for path in paths {
        let name = path.strip_prefix(folder).unwrap().to_str().unwrap().replace('\\', "/");
        let bytes = std::fs::read(&path).unwrap();
        let (path, parser) = (DocumentPath::new(name).unwrap(), MarkdownParser::new());
        let input = ParseInput { path: &path, bytes: &bytes, exclude_headings: &[] };
        let Ok(parsed) = parser.parse(&input) else { continue };
        let text = |chunk: &grooveseek::domain::chunk::Chunk| chunk.content.clone();
        let chunks: Vec<String> = parsed.chunks.iter().map(text).take(most - count).collect();
        count += chunks.len();
        if !chunks.is_empty() {
            documents.push(chunks);
        }
    }
    documents
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
}

/// The folder of all-MiniLM-L6-v2: named by `GROOVE_TEST_MODEL`, or
/// `models/all-minilm-l6-v2` below the target folder.
pub(crate) fn model_folder() -> Option<PathBuf> {
    let below = |target: PathBuf| target.join("models/all-minilm-l6-v2");
    let named = std::env::var_os("GROOVE_TEST_MODEL").map(PathBuf::from);
    let built = std::env::var_os("CARGO_TARGET_DIR").map(|target| below(target.into()));
    let own = below(Path::new(env!("CARGO_MANIFEST_DIR")).join("target"));
    named.or_else(|| built.into_iter().chain([own]).find(|folder| folder.is_dir()))
}

/// The model as ONNX and the library of ONNX Runtime, as `GROOVE_TEST_ONNX` and
/// `ORT_DYLIB_PATH` name them.
pub(crate) fn onnx() -> Option<(PathBuf, PathBuf)> {
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.exists());
    Some((named("GROOVE_TEST_ONNX")?, named("ORT_DYLIB_PATH")?))
}
