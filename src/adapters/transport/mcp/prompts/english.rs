//! The texts of the prompts in English.

use super::Texts;

pub(super) const TEXTS: Texts = Texts { summarize_topic, deep_dive, whats_new, find_gaps };

const RULES: &str = "\
Rules:
- Cite the `path` of every document that you use, and none that you did not open.
- Open every document with get_document before you mention or dismiss it. A hit is an excerpt.
- If an answer says `low_confidence`, say that the coverage may be poor.
- Where the knowledge base is silent, say so. Fill nothing in from general knowledge without \
marking it.";

fn summarize_topic(topic: &str) -> String {
    format!(
        "Sum up what the knowledge base says about this topic: {topic}

1. Call list_topics and confirm that the topic is there, spelled like this. If it is not, say so, \
offer the near ones, and stop.
2. Call search with `topic` set to it and a `limit` of about 15. Search again with other words if \
the first answer is one-sided.
3. Read the documents that weigh most, whole, with get_document.
4. Write: what is established; where the sources disagree; what is not covered.

{RULES}"
    )
}

fn deep_dive(question: &str) -> String {
    format!(
        "Look into this question with the knowledge base: {question}

1. Call search. Do not answer from the first search.
2. Take the strongest one or two hits as `start` of get_connection_graph with `depth: 2`, to see \
what is near them in other words.
3. Read the documents that matter whole, with get_document.
4. Call search again with the vocabulary that you found in them.
5. Answer the question: what is certain and from where, what is contradicted, what stays open.

{RULES}"
    )
}

fn whats_new(since: &str) -> String {
    format!(
        "Survey what is new in the knowledge base since {since}

1. Call search with `date_from` set to that date, with several broad queries, each with a high \
`limit`: there is no query that finds everything.
2. Repeat at least one of them with `include_low_quality: true`, since new documents are often \
short.
3. Group what you find by topic and category.
4. Open every document that you list, stubs included, and say in a sentence what is new in it.

`date_from` is compared as text: only YYYY-MM-DD works, and prose such as \"last week\" filters \
everything out. The date is what the author wrote, not when the file was changed, and documents \
without one are not found. So the survey is an approximation; present it as one.

{RULES}"
    )
}

fn find_gaps(topic: Option<&str>) -> String {
    let (about, filter) = match topic {
        Some(topic) => (
            format!(" about this topic: {topic}"),
            format!(", each with the filter `topic: \"{topic}\"`"),
        ),
        None => (String::new(), String::new()),
    };
    format!(
        "Find out what the knowledge base leaves open{about}

1. Call list_topics to see its shape. Few documents are not by itself a gap.
2. Write down the questions that a reader would expect to be answered, and call search once for \
each{filter}. Signals, the strongest first: No results (the clearest one; `low_confidence` stays \
false there); `low_confidence`; hits that are only loosely related.
3. Repeat some searches with `include_low_quality: true`, to tell a stub from nothing.
4. Open the hits before you call it a gap: the answer may be in them.
5. Report for each gap: the question, what came back, and whether there is nothing or a stub. \
Propose no content.

{RULES}"
    )
}
