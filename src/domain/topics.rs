//! Topics: what the documents of an index are about, by folder and topic.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The documents that share a category and a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicGroup {
    /// The first folder.
    pub category: Option<String>,
    /// From the frontmatter, else the second folder.
    pub topic: Option<String>,
    /// How many documents there are.
    pub file_count: u64,
    /// When one of them was last indexed: RFC 3339, UTC.
    pub last_updated: Option<String>,
    /// The titles of those that have one.
    pub titles: Vec<String>,
    /// The folders beneath the second.
    pub children: Vec<TopicFolder>,
}

/// A folder beneath a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicFolder {
    /// Its name.
    pub segment: String,
    /// How many documents lie in it, at any depth.
    pub file_count: u64,
    /// The folders in it.
    pub children: Vec<Self>,
}

/// A document, by what grouping looks at. Entries are ordered by path first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicEntry<'a> {
    /// The document's key.
    pub path: &'a str,
    /// The first folder.
    pub category: Option<&'a str>,
    /// From the frontmatter, else the second folder.
    pub topic: Option<&'a str>,
    /// The title, if there is one.
    pub title: Option<&'a str>,
    /// When it was last indexed: RFC 3339, UTC.
    pub indexed_at: &'a str,
}

/// Groups documents by category and topic, and counts the folders below.
///
/// The folders come from the paths alone: without the file's name and the first
/// two segments. A topic from the frontmatter therefore moves a document to
/// another group and leaves its folders as they are.
///
/// - `documents`: in any order.
/// - Returns one group a pair of category and topic, ordered by both, those
///   without one first. Titles are in the order of the paths, folders in that
///   of their names.
///
/// ```
/// use grooveseek::domain::topics::{TopicEntry, group};
///
/// let document = TopicEntry {
///     path: "deep-dive/mcp/spec/tools.md",
///     category: Some("deep-dive"),
///     topic: Some("mcp"),
///     title: Some("Tools"),
///     indexed_at: "2026-04-30T12:00:00Z",
/// };
/// let groups = group([document].into_iter());
/// assert_eq!(groups[0].titles, ["Tools"]);
/// assert_eq!(groups[0].children[0].segment, "spec");
/// ```
pub fn group<'a>(documents: impl Iterator<Item = TopicEntry<'a>>) -> Vec<TopicGroup> {
    let mut groups: BTreeMap<(Option<&str>, Option<&str>), Vec<TopicEntry<'_>>> = BTreeMap::new();
    for document in documents {
        groups.entry((document.category, document.topic)).or_default().push(document);
    }
    groups
        .into_iter()
        .map(|((category, topic), mut documents)| {
            documents.sort_unstable();
            TopicGroup {
                category: category.map(str::to_owned),
                topic: topic.map(str::to_owned),
                file_count: documents.len() as u64,
                last_updated: documents
                    .iter()
                    .map(|document| document.indexed_at)
                    .max_by(|a, b| compare_times(a, b))
                    .map(str::to_owned),
                titles: documents
                    .iter()
                    .filter_map(|document| document.title.map(str::to_owned))
                    .collect(),
                children: folders(&documents),
            }
        })
        .collect()
}

/// Compares times of one form in UTC as text, where a fraction of a second is
/// later than none.
fn compare_times(a: &str, b: &str) -> Ordering {
    let without_zone = |time: &str| time.trim_end_matches(['Z', 'z']).to_owned();
    without_zone(a).cmp(&without_zone(b))
}

/// A folder that is being counted.
#[derive(Default)]
struct Counted<'a> {
    file_count: u64,
    children: BTreeMap<&'a str, Self>,
}

fn folders(documents: &[TopicEntry<'_>]) -> Vec<TopicFolder> {
    let mut root = Counted::default();
    for document in documents {
        let mut segments: Vec<&str> =
            document.path.split('/').filter(|segment| !segment.is_empty()).collect();
        segments.pop();
        let mut folder = &mut root;
        for segment in segments.into_iter().skip(2) {
            folder = folder.children.entry(segment).or_default();
            folder.file_count += 1;
        }
    }
    finish(root)
}

fn finish(folder: Counted<'_>) -> Vec<TopicFolder> {
    folder
        .children
        .into_iter()
        .map(|(segment, folder)| TopicFolder {
            segment: segment.to_owned(),
            file_count: folder.file_count,
            children: finish(folder),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A document whose category and topic are those of its path.
    fn entry(path: &str) -> TopicEntry<'_> {
        let folders: Vec<&str> = path.split('/').collect();
        TopicEntry {
            path,
            category: folders.first().copied().filter(|_| folders.len() > 1),
            topic: folders.get(1).copied().filter(|_| folders.len() > 2),
            title: None,
            indexed_at: "2026-01-01T00:00:00Z",
        }
    }

    fn folder(segment: &str, file_count: u64, children: Vec<TopicFolder>) -> TopicFolder {
        TopicFolder { segment: segment.to_owned(), file_count, children }
    }

    // MCP-25
    #[test]
    fn a_group_tells_count_titles_and_the_latest_time() {
        let groups = group(
            [
                TopicEntry {
                    title: Some("Second"),
                    indexed_at: "2026-02-01T00:00:00Z",
                    ..entry("a/t/2.md")
                },
                TopicEntry {
                    title: Some("First"),
                    indexed_at: "2026-02-01T00:00:00.5Z",
                    ..entry("a/t/1.md")
                },
                TopicEntry { indexed_at: "2025-12-31T23:59:59Z", ..entry("a/t/3.md") },
            ]
            .into_iter(),
        );
        assert_eq!(
            groups,
            [TopicGroup {
                category: Some("a".into()),
                topic: Some("t".into()),
                file_count: 3,
                last_updated: Some("2026-02-01T00:00:00.5Z".into()),
                titles: vec!["First".into(), "Second".into()],
                children: Vec::new(),
            }]
        );
        assert_eq!(group(std::iter::empty()), []);
    }

    // MCP-26
    #[test]
    fn groups_are_ordered_by_category_and_topic_with_none_first() {
        let without_category = TopicEntry { topic: Some("t"), ..entry("x.md") };
        let documents = ["b/a/1.md", "a/t/1.md", "a/1.md", "1.md", "a/s/1.md", "a/t/2.md"];
        let groups =
            group(documents.into_iter().map(entry).chain(std::iter::once(without_category)));
        let pairs: Vec<_> = groups
            .iter()
            .map(|group| (group.category.as_deref(), group.topic.as_deref()))
            .collect();
        assert_eq!(
            pairs,
            [
                (None, None),
                (None, Some("t")),
                (Some("a"), None),
                (Some("a"), Some("s")),
                (Some("a"), Some("t")),
                (Some("b"), Some("a")),
            ]
        );
    }

    // MCP-27 MCP-28
    #[test]
    fn a_folder_counts_what_lies_anywhere_below() {
        let documents = ["a/t/1.md", "a/t/y/2.md", "a/t/x/z/3.md", "a/t/x/z/4.md", "a/t/x/5.md"];
        let groups = group(documents.into_iter().map(entry));
        assert_eq!(
            groups[0].children,
            [folder("x", 3, vec![folder("z", 2, Vec::new())]), folder("y", 1, Vec::new())]
        );
        assert_eq!(groups[0].file_count, 5);
    }

    // MCP-28
    #[test]
    fn documents_above_the_third_folder_add_none() {
        let groups = group(["1.md", "a/2.md", "a/t/3.md"].into_iter().map(entry));
        assert_eq!(groups.len(), 3);
        assert!(groups.iter().all(|group| group.children.is_empty()));
    }

    // MCP-29
    #[test]
    fn a_topic_of_the_frontmatter_leaves_the_folders_as_they_are() {
        let moved = TopicEntry { topic: Some("other"), ..entry("a/t/x/1.md") };
        let groups = group([moved, entry("a/t/y/2.md")].into_iter());
        assert_eq!(groups[0].topic.as_deref(), Some("other"));
        assert_eq!(groups[0].children, [folder("x", 1, Vec::new())]);
        assert_eq!(groups[1].children, [folder("y", 1, Vec::new())]);
    }

    fn total(folders: &[TopicFolder]) -> u64 {
        folders.iter().map(|folder| folder.file_count).sum()
    }

    fn is_sound(folders: &[TopicFolder]) -> bool {
        folders.is_sorted_by(|a, b| a.segment < b.segment)
            && folders.iter().all(|folder| {
                folder.file_count > 0
                    && total(&folder.children) <= folder.file_count
                    && is_sound(&folder.children)
            })
    }

    proptest! {
        // MCP-26 MCP-28
        #[test]
        fn every_document_is_counted_once_a_level(
            paths in proptest::collection::btree_set("([ab]/){0,5}[0-9].md", 0..30),
            ) {
            let groups = group(paths.iter().map(|path| entry(path)));
            prop_assert_eq!(groups.iter().map(|g| g.file_count).sum::<u64>(), paths.len() as u64);
            prop_assert!(groups.iter().all(|group| is_sound(&group.children)));
            let deep = paths.iter().filter(|path| path.matches('/').count() > 2).count();
            prop_assert_eq!(groups.iter().map(|g| total(&g.children)).sum::<u64>(), deep as u64);
        }

        // MCP-26
        #[test]
        fn the_order_of_documents_does_not_matter(
            (paths, shuffled) in proptest::collection::btree_set("([ab]/){0,4}[0-9].md", 0..12)
                .prop_flat_map(|paths| {
                    let paths: Vec<String> = paths.into_iter().collect();
                    (Just(paths.clone()), Just(paths).prop_shuffle())
                }),
        ) {
            let grouped = |paths: &[String]| group(paths.iter().map(|path| {
                TopicEntry { title: Some(path), ..entry(path) }
            }));
            prop_assert_eq!(grouped(&paths), grouped(&shuffled));
        }
    }
}
