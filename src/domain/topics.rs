//! Topics: what the documents of an index are about, by folder and topic.

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
    pub children: Vec<TopicFolder>,
}
