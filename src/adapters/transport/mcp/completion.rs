//! Completing what a person begins to write.

use jiff::Timestamp;
use rmcp::model::CompleteRequestParams;
use rmcp::model::CompletionInfo;
use rmcp::model::ErrorData;
use rmcp::model::Reference;

use crate::adapters::transport::isolated::isolated;
use crate::adapters::transport::mcp::prompts;
use crate::adapters::transport::mcp::prompts::Values;
use crate::adapters::transport::mcp::tools;
use crate::domain::resource::DOCUMENT_TEMPLATE;
use crate::ports::transport::Completable;
use crate::ports::transport::Library;

/// The values that begin with what was written.
///
/// # Errors
///
/// -32602 if nothing is known of the argument, and an internal error if the
/// index cannot be read.
pub(super) async fn complete(
    library: &dyn Library,
    request: &CompleteRequestParams,
    now: Timestamp,
) -> Result<CompletionInfo, ErrorData> {
    let argument = &request.argument;
    let values = match &request.r#ref {
        Reference::Resource(template) if template.uri == DOCUMENT_TEMPLATE => {
            (argument.name == "path").then_some(Values::Of(Completable::Path))
        }
        // The protocol completes no arguments of tools, so this one is asked for
        // as if it were a prompt.
        Reference::Prompt(prompt) if prompt.name == tools::GET_BEST_PRACTICE => {
            (argument.name == "target").then_some(Values::Of(Completable::Target))
        }
        Reference::Prompt(prompt) => prompts::completable(&prompt.name, &argument.name, now),
        _ => None,
    };
    let values = match values {
        Some(Values::Of(what)) => isolated(library.complete(what, &argument.value))
            .await
            .map_err(|refused| ErrorData::internal_error(refused.message, None))?,
        Some(Values::Fixed(values)) => {
            values.into_iter().filter(|value| value.starts_with(&argument.value)).collect()
        }
        None => {
            return Err(ErrorData::invalid_params(
                format!("nothing is known that could complete the argument `{}`", argument.name),
                None,
            ));
        }
    };
    Ok(page(values))
}

/// As many values as the protocol allows, and how many there are.
fn page(mut values: Vec<String>) -> CompletionInfo {
    let mut info = CompletionInfo::default();
    info.total = u32::try_from(values.len()).ok();
    info.has_more = Some(values.len() > CompletionInfo::MAX_VALUES);
    values.truncate(CompletionInfo::MAX_VALUES);
    info.values = values;
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    // MCP-B17
    #[test]
    fn a_page_holds_a_hundred_values_and_tells_of_the_others() {
        let values = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        for (count, shown, more) in [(0, 0, false), (100, 100, false), (101, 100, true)] {
            let page = page(values(count));
            assert_eq!(page.values.len(), shown);
            assert_eq!((page.total, page.has_more), (u32::try_from(count).ok(), Some(more)));
        }
    }
}
