//! The prompts on offer. Their texts are fixed: no configuration speaks to the
//! model.

mod english;
mod japanese;

use jiff::Timestamp;
use jiff::ToSpan as _;
use jiff::tz::Offset;
use rmcp::model::ErrorData;
use rmcp::model::GetPromptRequestParams;
use rmcp::model::GetPromptResult;
use rmcp::model::Prompt;
use rmcp::model::PromptArgument;
use rmcp::model::PromptMessage;
use rmcp::model::Role;

use crate::adapters::transport::mcp::arguments::Arguments;
use crate::ports::transport::Completable;

const SUMMARIZE_TOPIC: &str = "summarize_topic";
const DEEP_DIVE: &str = "deep_dive";
const WHATS_NEW: &str = "whats_new";
const FIND_GAPS: &str = "find_gaps";

/// In the order in which they are listed.
pub(super) const NAMES: [&str; 4] = [SUMMARIZE_TOPIC, DEEP_DIVE, WHATS_NEW, FIND_GAPS];

const TOPIC: &str = "topic";
const QUESTION: &str = "question";
const SINCE: &str = "since";
const LANGUAGE: &str = "language";

/// The languages that texts come in.
pub(super) const LANGUAGES: [&str; 2] = ["en", "ja"];

/// How far back `whats_new` looks by default.
const DAYS_BACK: i64 = 30;

/// The texts in one language; what is inserted comes as it was given.
struct Texts {
    summarize_topic: fn(topic: &str) -> String,
    deep_dive: fn(question: &str) -> String,
    whats_new: fn(since: &str) -> String,
    find_gaps: fn(topic: Option<&str>) -> String,
}

/// The prompts, in the order of [`NAMES`].
pub(super) fn all() -> Vec<Prompt> {
    let argument = |name: &str, description: &str, required: bool| {
        PromptArgument::new(name).with_description(description).with_required(required)
    };
    let language = || {
        argument(LANGUAGE, "The language of the instructions: en (default) or ja.", false)
            .with_title("Language")
    };
    let prompt = |name: &str, title: &str, description: &str, first: PromptArgument| {
        Prompt::new(name, Some(description), Some(vec![first, language()])).with_title(title)
    };
    vec![
        prompt(
            SUMMARIZE_TOPIC,
            "Summarize a topic",
            "Sums up what the knowledge base says about a topic, with its sources.",
            argument(TOPIC, "The topic, as list_topics spells it.", true).with_title("Topic"),
        ),
        prompt(
            DEEP_DIVE,
            "Look into a question",
            "Answers a question from the knowledge base in depth, along what is connected.",
            argument(QUESTION, "What to find out.", true).with_title("Question"),
        ),
        prompt(
            WHATS_NEW,
            "Survey what is new",
            "Surveys what was written since a date.",
            argument(SINCE, "YYYY-MM-DD. Default: 30 days ago.", false).with_title("Since"),
        ),
        prompt(
            FIND_GAPS,
            "Find gaps",
            "Finds out which questions the knowledge base leaves open.",
            argument(TOPIC, "Only this topic, as list_topics spells it.", false)
                .with_title("Topic"),
        ),
    ]
}

/// The text of a prompt.
///
/// # Errors
///
/// -32602 if there is no such prompt, an argument is missing, or there is no
/// such language.
pub(super) fn get(
    request: GetPromptRequestParams,
    now: Timestamp,
) -> Result<GetPromptResult, ErrorData> {
    if !NAMES.contains(&request.name.as_str()) {
        return Err(ErrorData::invalid_params(
            format!("unknown prompt `{}`; there are {}", request.name, NAMES.join(", ")),
            None,
        ));
    }
    let mut given = Arguments::new(request.arguments);
    let texts = match given.text(LANGUAGE)?.as_deref().map(str::trim) {
        None | Some("" | "en") => english::TEXTS,
        Some("ja") => japanese::TEXTS,
        Some(other) => {
            return Err(ErrorData::invalid_params(
                format!("no text in the language `{other}`; there are {}", LANGUAGES.join(", ")),
                None,
            ));
        }
    };
    let text = match request.name.as_str() {
        SUMMARIZE_TOPIC => (texts.summarize_topic)(&said(&mut given, TOPIC)?),
        DEEP_DIVE => (texts.deep_dive)(&said(&mut given, QUESTION)?),
        WHATS_NEW => {
            let since = given.text(SINCE)?.filter(|since| !since.trim().is_empty());
            (texts.whats_new)(&since.unwrap_or_else(|| days_before(now)))
        }
        _ => {
            let topic = given.text(TOPIC)?.filter(|topic| !topic.trim().is_empty());
            (texts.find_gaps)(topic.as_deref())
        }
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

/// A required argument, which a blank one is not.
fn said(given: &mut Arguments, name: &str) -> Result<String, ErrorData> {
    let text = given.required_text(name)?;
    if text.trim().is_empty() {
        return Err(ErrorData::invalid_params(format!("argument `{name}` is blank"), None));
    }
    Ok(text)
}

/// The day from which on things are new, if nobody says another.
pub(super) fn days_before(now: Timestamp) -> String {
    let today = Offset::UTC.to_datetime(now).date();
    today.saturating_sub(DAYS_BACK.days()).strftime("%Y-%m-%d").to_string()
}

/// Where the values of a prompt's argument come from.
pub(super) enum Values {
    /// The index.
    Of(Completable),
    /// These.
    Fixed(Vec<String>),
}

/// What an argument of a prompt can be completed from.
pub(super) fn completable(prompt: &str, argument: &str, now: Timestamp) -> Option<Values> {
    match (prompt, argument) {
        (SUMMARIZE_TOPIC | FIND_GAPS, TOPIC) => Some(Values::Of(Completable::Topic)),
        (WHATS_NEW, SINCE) => Some(Values::Fixed(vec![days_before(now)])),
        (DEEP_DIVE, QUESTION) => Some(Values::Fixed(Vec::new())),
        (name, LANGUAGE) if NAMES.contains(&name) => {
            Some(Values::Fixed(LANGUAGES.map(str::to_owned).to_vec()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ErrorCode;
    use serde_json::Value;
    use serde_json::json;

    fn now() -> Timestamp {
        "2026-03-15T23:30:00Z".parse().unwrap()
    }

    fn text(name: &str, arguments: Value) -> Result<String, ErrorData> {
        let request = GetPromptRequestParams::new(name);
        let result = get(request.with_arguments(rmcp::model::object(arguments)), now())?;
        let [message] = result.messages.as_slice() else { panic!("one message") };
        assert_eq!(message.role, Role::User);
        Ok(message.content.as_text().unwrap().text.clone())
    }

    /// Every prompt in a language, with its arguments.
    fn texts(language: &str) -> [String; 4] {
        let text = |name: &str, argument: &str, value: &str| {
            text(name, json!({ argument: value, "language": language })).unwrap()
        };
        [
            text(SUMMARIZE_TOPIC, TOPIC, "mcp"),
            text(DEEP_DIVE, QUESTION, "Why?"),
            text(WHATS_NEW, SINCE, "2026-01-01"),
            text(FIND_GAPS, TOPIC, "mcp"),
        ]
    }

    fn assert_holds(text: &str, words: &[&str]) {
        for word in words {
            assert!(text.contains(word), "{word:?} is not in\n{text}");
        }
    }

    // MCP-08 MCP-60 MCP-61 MCP-62 MCP-63 MCP-B15
    #[test]
    fn the_prompts_have_their_arguments_and_a_language() {
        let facts: Vec<_> = all()
            .into_iter()
            .map(|prompt| {
                assert!(prompt.title.is_some() && prompt.description.is_some());
                let arguments = prompt.arguments.unwrap();
                assert_eq!(arguments[1].name, LANGUAGE);
                assert_eq!(arguments[1].required, Some(false));
                (prompt.name, arguments[0].name.clone(), arguments[0].required)
            })
            .collect();
        let fact = |name: &str, argument: &str, required| {
            (name.to_owned(), argument.to_owned(), Some(required))
        };
        assert_eq!(
            facts,
            [
                fact("summarize_topic", "topic", true),
                fact("deep_dive", "question", true),
                fact("whats_new", "since", false),
                fact("find_gaps", "topic", false),
            ]
        );
    }

    // MCP-62
    #[test]
    fn what_is_new_is_what_was_written_in_the_last_thirty_days_of_utc() {
        let since = |arguments| text(WHATS_NEW, arguments).unwrap();
        assert!(since(json!({})).contains("2026-02-13"));
        assert!(since(json!({ "since": " " })).contains("2026-02-13"));
        assert!(since(json!({ "since": "2025-12-24" })).contains("2025-12-24"));
        assert!(!since(json!({ "since": "2025-12-24" })).contains("2026-02-13"));
    }

    // MCP-64
    #[test]
    fn the_values_of_arguments_are_inserted_as_they_are() {
        let odd = "a \"b\" {c}\n`d` 日本";
        for (name, argument) in [
            (SUMMARIZE_TOPIC, TOPIC),
            (DEEP_DIVE, QUESTION),
            (WHATS_NEW, SINCE),
            (FIND_GAPS, TOPIC),
        ] {
            for language in LANGUAGES {
                let text = text(name, json!({ argument: odd, "language": language })).unwrap();
                assert!(text.contains(odd), "{name}");
            }
        }
        let without = text(FIND_GAPS, json!({})).unwrap();
        assert!(without.starts_with("Find out") && !without.contains("with the filter"));
    }

    // MCP-66
    #[test]
    fn what_cannot_be_filled_in_is_refused_with_what_there_is() {
        let refused = text("no_such", json!({})).unwrap_err();
        assert_eq!(refused.code, ErrorCode::INVALID_PARAMS);
        assert_holds(&refused.message, &NAMES);
        for (name, arguments) in [
            (SUMMARIZE_TOPIC, json!({})),
            (SUMMARIZE_TOPIC, json!({ "topic": "  " })),
            (DEEP_DIVE, json!({ "question": 7 })),
            (FIND_GAPS, json!({ "language": "fr" })),
        ] {
            assert_eq!(text(name, arguments).unwrap_err().code, ErrorCode::INVALID_PARAMS);
        }
    }

    // MCP-67 MCP-B15
    #[test]
    fn every_text_holds_the_shared_rules() {
        for text in texts("en") {
            assert_holds(
                &text,
                &[
                    "Cite the `path` of every document",
                    "none that you did not open",
                    "Open every document with get_document before you mention or dismiss it",
                    "A hit is an excerpt",
                    "`low_confidence`",
                    "coverage may be poor",
                    "is silent, say so",
                    "without marking it",
                ],
            );
        }
        for text in texts("ja") {
            assert_holds(
                &text,
                &["`path`", "get_document", "抜粋", "`low_confidence`", "開いていない", "一般知識"],
            );
        }
    }

    // MCP-68
    #[test]
    fn a_summary_confirms_the_topic_and_reads_what_weighs() {
        let [text, ..] = texts("en");
        assert_holds(
            &text,
            &[
                "list_topics",
                "near",
                "`topic`",
                "`limit` of about 15",
                "established",
                "disagree",
                "not covered",
            ],
        );
        assert_holds(&texts("ja")[0], &["list_topics", "`topic`", "15", "食い違"]);
    }

    // MCP-69
    #[test]
    fn a_deep_dive_goes_on_from_the_first_search() {
        let [_, text, ..] = texts("en");
        assert_holds(
            &text,
            &[
                "Do not answer from the first search",
                "get_connection_graph",
                "`depth: 2`",
                "one or two",
                "whole",
                "vocabulary",
            ],
        );
        assert_holds(&texts("ja")[1], &["get_connection_graph", "`depth: 2`", "最初の検索"]);
    }

    // MCP-70
    #[test]
    fn a_survey_says_what_its_dates_are_worth() {
        let [.., text, _] = texts("en");
        assert_holds(
            &text,
            &[
                "`date_from`",
                "several broad queries",
                "high `limit`",
                "`include_low_quality: true`",
                "topic and category",
                "stubs included",
                "compared as text",
                "YYYY-MM-DD",
                "prose",
                "author wrote",
                "approximation",
            ],
        );
        assert_holds(&texts("ja")[2], &["`date_from`", "`include_low_quality: true`", "近似"]);
    }

    // MCP-71
    #[test]
    fn a_gap_is_shown_by_searches_and_no_content_is_proposed() {
        let [.., text] = texts("en");
        assert_holds(
            &text,
            &[
                "list_topics",
                "not by itself a gap",
                "a reader would expect",
                "No results",
                "stays false",
                "loosely related",
                "`include_low_quality: true`",
                "stub",
                "before you call it a gap",
                "Propose no content",
                "`topic: \"mcp\"`",
            ],
        );
        assert_holds(
            &texts("ja")[3],
            &["list_topics", "`include_low_quality: true`", "提案しない"],
        );
    }
}
