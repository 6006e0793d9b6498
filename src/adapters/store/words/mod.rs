//! The words of texts: what the lexical leg counts, beside the runs of three
//! characters that it matches.
//!
//! A text is cut into words, which are folded and stemmed by the rules of their
//! language; scripts that put no space between words into pairs of characters;
//! and identifiers into their parts, the whole kept beside them. The words of a
//! document's title and name count for all of its chunks.

mod analysis;
mod language;
mod query;
mod ranking;

pub(super) use analysis::{Analyser, Counts, Group, count};
pub(super) use language::Language;
pub(super) use query::{Sought, below};
pub(super) use ranking::{
    Collection, Occurrences, Posting, Scored, named_share, score_all, spread, sum,
};

/// What a document is called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    title: Option<&'a str>,
    path: &'a str,
}

impl<'a> Names<'a> {
    /// - `title`: the title that is recorded.
    /// - `beginning`: the document's first chunk, whose heading of the first level
    ///   is the title if none is recorded.
    /// - `path`: the path, of which the file's name counts.
    pub(super) fn new(title: Option<&'a str>, beginning: Option<&'a str>, path: &'a str) -> Self {
        let heading = |text: &'a str| text.trim_start().strip_prefix("# ")?.lines().next();
        Self { title: title.or_else(|| beginning.and_then(heading)), path }
    }
}

/// The texts of a chunk's three columns. What its document is called stands
/// beside its context: whoever looks for a document by its name means all of it.
///
/// - `text`: the chunk's content.
pub(super) fn columns(
    heading: Option<&str>,
    context: Option<&str>,
    text: &str,
    names: Names<'_>,
) -> [String; 3] {
    let file = names.path.rsplit('/').next().unwrap_or_default();
    let name = file.rsplit_once('.').map_or(file, |(name, _)| name);
    let context = [context, names.title, Some(name)].map(Option::unwrap_or_default).join("\n");
    [heading.unwrap_or_default().to_owned(), context, text.to_owned()]
}

/// Names everything that decides which words a text has. An index that was made
/// by other rules counts its words anew.
pub(super) const RULES: &str = "words/1";
