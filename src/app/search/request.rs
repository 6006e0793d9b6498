//! A request whose every part is checked, before anything is asked of the
//! model or the index.

use crate::app::config::SearchSettings;
use crate::app::error::AppError;
use crate::domain::confidence::ConfidenceRatio;
use crate::domain::diversity::Balance;
use crate::domain::embedding::Embedding;
use crate::domain::filter::Filter;
use crate::domain::query::{CompiledQuery, Phrase};
use crate::domain::search::{FilterEcho, Hit, SearchAnswer, SearchRequest};

/// The most hits of an answer.
const MAX_LIMIT: u32 = 1000;
const DEFAULT_LIMIT: u32 = 5;

/// What is thought of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Judgement {
    pub(super) low_confidence: bool,
    pub(super) confidence: Option<f32>,
}

/// A checked request.
pub(super) struct Checked {
    pub(super) query: CompiledQuery,
    pub(super) filter: Filter,
    pub(super) limit: usize,
    pub(super) rerank: Option<bool>,
    pub(super) mmr: Option<Balance>,
    pub(super) parent: bool,
    pub(super) confidence_ratio: ConfidenceRatio,
    echo: FilterEcho,
    warnings: Vec<String>,
    /// A balance was given while nothing is diversified.
    ignores_balance: bool,
}

impl Checked {
    /// Checks in the order that decides which of several faults is told.
    pub(super) fn new(
        request: &SearchRequest,
        settings: &SearchSettings,
    ) -> Result<Self, AppError> {
        let lambda = unit("mmr_lambda", request.mmr_lambda)?;
        let penalty = unit("mmr_same_doc_penalty", request.mmr_same_doc_penalty)?;
        let query = CompiledQuery::compile(&request.query).map_err(invalid)?;
        let checked = Filter::check(request, settings.min_quality).map_err(invalid)?;

        let mut warnings = checked.warnings;
        warnings.extend(remarks(&request.query, &query));
        let mmr_on = request.mmr.unwrap_or(settings.mmr.enabled);
        let mmr = mmr_on.then(|| Balance {
            lambda: lambda.unwrap_or(settings.mmr.lambda),
            same_document_penalty: penalty.unwrap_or(settings.mmr.same_doc_penalty),
        });
        let mut echo = checked.echo;
        echo.excluded_terms =
            query.exclude().iter().map(Phrase::as_str).map(str::to_owned).collect();
        Ok(Self {
            filter: checked.filter,
            limit: request.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT) as usize,
            rerank: request.rerank,
            mmr,
            parent: request.parent_retriever.unwrap_or(settings.parent.enabled),
            confidence_ratio: confidence_ratio(request, settings),
            query,
            echo,
            warnings,
            ignores_balance: !mmr_on && (lambda.is_some() || penalty.is_some()),
        })
    }

    /// Whether the answer depends on which frontmatter fields are held.
    pub(super) fn filters_fields(&self) -> bool {
        !self.echo.fields.is_empty() || !self.echo.fields_not.is_empty()
    }

    /// Tells the log what the caller is told about the request.
    pub(super) fn log(&self) {
        for remark in &self.warnings {
            tracing::warn!("{remark}");
        }
        if self.ignores_balance {
            tracing::warn!("mmr_lambda and mmr_same_doc_penalty have no effect while mmr is off");
        }
    }

    /// The answer to this request.
    pub(super) fn answer(
        self,
        hits: Vec<Hit>,
        degraded: Vec<&'static str>,
        judgement: Judgement,
    ) -> SearchAnswer {
        let Self { echo, warnings, filter, .. } = self;
        SearchAnswer {
            hits,
            low_confidence: judgement.low_confidence,
            confidence: judgement.confidence,
            min_quality: filter.min_quality(),
            filter: echo,
            degraded,
            warnings,
            ..SearchAnswer::default()
        }
    }
}

/// What a diversified answer says of candidates that could not be compared.
///
/// - `vectors`: those of all candidates.
pub(super) fn remark_on_mmr(vectors: &[Option<Embedding>]) -> Option<String> {
    let missing = vectors.iter().filter(|vector| vector.is_none()).count();
    if missing == 0 {
        None
    } else if missing == vectors.len() {
        Some("no passage found has a vector yet, so mmr could not spread the results".to_owned())
    } else {
        Some(format!("mmr left {missing} passage(s) out that have no vector yet"))
    }
}

fn invalid(error: impl std::error::Error) -> AppError {
    AppError::Invalid(error.to_string())
}

fn confidence_ratio(request: &SearchRequest, settings: &SearchSettings) -> ConfidenceRatio {
    let given = request.min_confidence_ratio.and_then(ConfidenceRatio::lenient);
    given.or_else(|| ConfidenceRatio::lenient(settings.min_confidence_ratio)).unwrap_or_default()
}

fn unit(name: &str, value: Option<f64>) -> Result<Option<f32>, AppError> {
    match value {
        Some(value) if !(0.0..=1.0).contains(&value) => {
            Err(AppError::Invalid(format!("{name} is {value}; it must lie between 0 and 1")))
        }
        #[expect(clippy::cast_possible_truncation, reason = "the value lies between 0 and 1")]
        value => Ok(value.map(|value| value as f32)),
    }
}

/// What the caller should know about how the query was read.
fn remarks(raw: &str, query: &CompiledQuery) -> Vec<String> {
    let mut remarks = Vec::new();
    if raw.trim().is_empty() {
        remarks.push("the query is blank".to_owned());
    }
    let quoted = |texts: &[String]| {
        texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ")
    };
    // What is not quoted is looked for by its words, however short they are.
    let is_quoted = |part: &&String| !query.plain_text().contains(part.as_str());
    let short: Vec<String> = query.unsearchable().iter().filter(is_quoted).cloned().collect();
    if !short.is_empty() {
        remarks.push(format!(
            "too short to be found as it stands (three characters at least): {}",
            quoted(&short)
        ));
    }
    if !query.unexcludable().is_empty() {
        remarks.push(format!(
            "too short to be excluded (three characters at least): {}",
            quoted(query.unexcludable())
        ));
    }
    if !query.widened_exclusions().is_empty() {
        let terms: Vec<String> =
            query.widened_exclusions().iter().map(|term| term.as_str().to_owned()).collect();
        remarks.push(format!(
            "excluded as well, as part of a longer term: {}; quote the term to exclude it alone",
            quoted(&terms)
        ));
    }
    if query.include_over_budget() > 0 {
        let dropped = query.include_over_budget();
        remarks.push(format!("{dropped} phrase(s) over the limit of 32 were not looked for"));
    }
    if query.exclude_over_budget() > 0 {
        let dropped = query.exclude_over_budget();
        remarks.push(format!("{dropped} exclusion(s) over the limit of 32 were not applied"));
    }
    remarks
}
