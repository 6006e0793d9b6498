//! Telling where the passages of an answer stand in their files now.

use std::collections::BTreeMap;

use crate::app::error::AppError;
use crate::app::offer::TEXT_CAP;
use crate::app::read::Reader;
use crate::domain::chunk::LineRange;
use crate::domain::document::DocumentPath;
use crate::domain::format::Class;
use crate::domain::location::{cite, lines_of};
use crate::domain::search::Hit;

/// The most files that are read for one answer.
const MOST_FILES: usize = 64;

/// A passage that is looked for.
struct Passage {
    /// The hit's place in the answer.
    hit: usize,
    heading: Option<String>,
    content: String,
}

/// Gives each hit its location, as far as that is known, and its citation.
///
/// A passage whose lines the index does not know is looked for in its file, so
/// what is told holds for the file as it is now; a passage that is no longer in
/// it has no location.
///
/// # Errors
///
/// [`AppError::Interrupted`] if the work was ended from outside.
pub async fn locate(reader: &Reader, hits: &mut [Hit]) -> Result<(), AppError> {
    let mut wanted: BTreeMap<DocumentPath, Vec<Passage>> = BTreeMap::new();
    for (place, hit) in hits.iter_mut().enumerate() {
        hit.location = hit.lines;
        let Ok(path) = DocumentPath::new(hit.path.as_str()) else { continue };
        let is_text = reader
            .registry
            .parser_of(&path)
            .is_some_and(|parser| parser.format().class != Class::Binary);
        let is_new = !wanted.contains_key(&path);
        if hit.lines.is_none() && is_text && !(is_new && wanted.len() == MOST_FILES) {
            wanted.entry(path).or_default().push(Passage {
                hit: place,
                heading: hit.heading.clone(),
                content: hit.content.clone(),
            });
        }
    }
    if !wanted.is_empty() {
        let reader = reader.clone();
        let found = tokio::task::spawn_blocking(move || find(&reader, &wanted))
            .await
            .map_err(|_| AppError::Interrupted { what: "locating the passages" })?;
        for (place, lines) in found {
            hits[place].location = Some(lines);
        }
    }
    for hit in hits {
        let cite = cite(hit.title.as_deref(), hit.heading.as_deref(), &hit.path, hit.location);
        hit.cite = Some(cite);
    }
    Ok(())
}

fn find(reader: &Reader, wanted: &BTreeMap<DocumentPath, Vec<Passage>>) -> Vec<(usize, LineRange)> {
    let mut found = Vec::new();
    for (path, passages) in wanted {
        let Ok((_, content)) = reader.bytes(path, TEXT_CAP as u64) else { continue };
        let Ok(text) = std::str::from_utf8(&content.bytes) else { continue };
        for Passage { hit, heading, content } in passages {
            if let Some(lines) = lines_of(content, heading.as_deref(), text) {
                found.push((*hit, lines));
            }
        }
    }
    found
}
