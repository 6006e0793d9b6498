//! How much of an answer a caller wants to see.

use rmcp::model::ErrorData;

use crate::adapters::json;
use crate::adapters::transport::mcp::arguments::Arguments;
use crate::domain::excerpt::Detail;
use crate::domain::excerpt::fit;
use crate::domain::excerpt::show;
use crate::domain::excerpt::tokens;
use crate::domain::search::SearchAnswer;
use crate::ports::transport::DocumentAnswer;
use crate::ports::transport::Refused;

/// With fewer tokens there is no answer that says anything.
const LEAST_TOKENS: usize = 200;

/// How much of an answer is shown.
#[derive(Debug, Default)]
pub(super) struct Shown {
    detail: Detail,
    max_tokens: Option<usize>,
}

impl Shown {
    /// Reads the arguments that say so.
    ///
    /// - Returns a refusal in place of what makes no sense.
    ///
    /// # Errors
    ///
    /// -32602 if an argument is of another type than its schema says.
    pub(super) fn read(given: &mut Arguments) -> Result<Result<Self, Refused>, ErrorData> {
        let detail = match given.text("detail")? {
            None => Detail::default(),
            Some(name) => match Detail::from_name(&name) {
                Some(detail) => detail,
                None => return Ok(Err(no_such_detail(&name))),
            },
        };
        Ok(Self::within(given)?.map(|shown| Self { detail, ..shown }))
    }

    /// Reads the argument that bounds the size, alone.
    ///
    /// # Errors
    ///
    /// -32602 if the argument is of another type than its schema says.
    pub(super) fn within(given: &mut Arguments) -> Result<Result<Self, Refused>, ErrorData> {
        let max_tokens = given.count("max_tokens")?.and_then(|most| usize::try_from(most).ok());
        Ok(match max_tokens {
            Some(most) if most < LEAST_TOKENS => Err(Refused {
                message: format!("max_tokens is {most}; give at least {LEAST_TOKENS}"),
            }),
            _ => Ok(Self { max_tokens, ..Self::default() }),
        })
    }

    /// Whether the size of the answer is bounded.
    pub(super) fn is_bounded(&self) -> bool {
        self.max_tokens.is_some()
    }

    /// Shows an answer of a search.
    ///
    /// # Errors
    ///
    /// [`Refused`] if not even an answer without results fits.
    pub(super) fn search(&self, mut answer: SearchAnswer) -> Result<SearchAnswer, Refused> {
        show(&mut answer, self.detail);
        let cost = |answer: &SearchAnswer| tokens(&json::pretty(&json::search_answer(answer)));
        match self.max_tokens {
            Some(most) if !fit(&mut answer, most, cost) && cost(&answer) > most => {
                Err(does_not_fit(most))
            }
            _ => Ok(answer),
        }
    }

    /// Shows a document: as much of its text from the beginning as fits.
    ///
    /// # Errors
    ///
    /// [`Refused`] if nothing of it fits.
    pub(super) fn document(&self, mut answer: DocumentAnswer) -> Result<DocumentAnswer, Refused> {
        let Some(most) = self.max_tokens else { return Ok(answer) };
        let cost = |answer: &DocumentAnswer| tokens(&json::pretty(&json::document(answer)));
        if cost(&answer) <= most {
            return Ok(answer);
        }
        let text = std::mem::take(&mut answer.content);
        let begin = answer.offset.unwrap_or_default();
        let cut = |answer: &mut DocumentAnswer, length: usize| {
            text[..length].clone_into(&mut answer.content);
            answer.truncated = true;
            answer.offset = Some(begin);
            answer.next_offset = Some(begin + length as u64);
        };
        // The longest beginning that fits lies between these.
        let (mut fits, mut exceeds) = (0, text.len());
        while exceeds - fits > 1 {
            let middle = text.floor_char_boundary(fits.midpoint(exceeds));
            let middle = if middle > fits { middle } else { text.ceil_char_boundary(fits + 1) };
            if middle >= exceeds {
                break;
            }
            cut(&mut answer, middle);
            if cost(&answer) <= most { fits = middle } else { exceeds = middle }
        }
        cut(&mut answer, fits);
        if fits == 0 { Err(does_not_fit(most)) } else { Ok(answer) }
    }
}

fn no_such_detail(name: &str) -> Refused {
    let names = Detail::NAMES.join(", ");
    Refused { message: format!("detail {name:?} is not known; use one of {names}") }
}

fn does_not_fit(most: usize) -> Refused {
    Refused { message: format!("no answer fits into max_tokens {most}; give more") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::object;
    use serde_json::json;

    fn within(max_tokens: u32) -> Shown {
        let mut given = Arguments::new(Some(object(json!({ "max_tokens": max_tokens }))));
        Shown::read(&mut given).unwrap().unwrap()
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_would() {
        for (arguments, said) in [
            (json!({ "detail": "all" }), "ids, snippets, passages"),
            (json!({ "max_tokens": 199 }), "at least 200"),
        ] {
            let mut given = Arguments::new(Some(object(arguments)));
            let refused = Shown::read(&mut given).unwrap().unwrap_err();
            assert!(refused.message.contains(said), "{refused}");
        }
        let mut given = Arguments::new(Some(object(json!({ "max_tokens": "many" }))));
        assert!(Shown::read(&mut given).is_err());
    }

    // MCP-B06
    #[test]
    fn a_document_is_cut_to_its_budget_and_goes_on_from_there() {
        for text in ["tide and ebb, ".repeat(1000), "潮の満ち引き\"".repeat(500)] {
            let (mut read, mut offset) = (String::new(), 0_u64);
            loop {
                let start = usize::try_from(offset).unwrap();
                let answer = DocumentAnswer {
                    content: text[start..].to_owned(),
                    offset: Some(offset),
                    ..DocumentAnswer::default()
                };
                let shown = within(600).document(answer).unwrap();
                let size = tokens(&json::pretty(&json::document(&shown)));
                assert!(size <= 600, "{size}");
                assert!(!shown.truncated || size > 590, "{size}");
                read.push_str(&shown.content);
                assert_eq!(shown.truncated, shown.next_offset.is_some());
                let Some(next) = shown.next_offset else { break };
                offset = next;
            }
            assert_eq!(read, text);
        }
    }

    #[test]
    fn a_document_whose_tags_alone_exceed_the_budget_is_refused() {
        let mut answer = DocumentAnswer { content: "text".into(), ..DocumentAnswer::default() };
        answer.metadata.tags = vec!["tag".repeat(100); 100];
        assert!(within(200).document(answer).is_err());
    }
}
