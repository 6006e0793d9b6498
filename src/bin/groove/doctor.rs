//! `groove doctor`: what is wrong with an index, and what puts it right.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use grooveseek::app::doctor::Diagnosis;
use grooveseek::app::line::on_one_line;
use grooveseek::app::quality::QualityReport;
use grooveseek::app::wiring::{json, upkeep};
use grooveseek::domain::finding::Finding;
use serde_json::{Value, json};

use crate::cli::{Format, KnowledgeBase};
use crate::config::LoadedConfig;
use crate::no_index;
use crate::print;
use crate::surroundings;

#[derive(Debug, Args)]
#[command(after_help = "Ends with 0 if nothing was found, with 1 if anything was, and with 2 if \
                        the index could not be examined. Nothing is repaired: each finding names \
                        what does that")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    kb: KnowledgeBase,
    /// json is stable; text is for people and may change
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Look further: for documents with the same bytes (duplicate-content), for
    /// names that differ only in how accents are composed (mixed-normalisation),
    /// which count as findings, and for what lowers the quality of chunks, which
    /// does not
    #[arg(long)]
    all: bool,
}

pub(crate) async fn run(arguments: DoctorArgs, loaded: LoadedConfig) -> anyhow::Result<ExitCode> {
    let kb_path = loaded.kb_path(arguments.kb.kb_path.as_deref())?;
    loaded.check_plugins(&kb_path)?;
    let working_dir = surroundings::working_dir()?;
    let (place, diagnosis) =
        upkeep::diagnose(&kb_path, &loaded.config, &working_dir, arguments.all).await?;
    let Some(diagnosis) = diagnosis else {
        print::notice(&no_index(&place));
        return Ok(ExitCode::from(2));
    };
    for run in diagnosis.runs.iter().take(1) {
        print::notice(&format!(
            "a run of process {} has been changing the index since {}; {} chunk(s) wait for their \
             vectors meanwhile",
            run.process, run.since, diagnosis.pending_chunks
        ));
    }
    let text = match arguments.format {
        Format::Json => json::pretty(&as_json(&diagnosis)) + "\n",
        Format::Text => as_text(&diagnosis),
    };
    print::result(&text).context("cannot write the result")?;
    Ok(if diagnosis.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn as_json(diagnosis: &Diagnosis) -> Value {
    let mut value = json!({
        "documents": diagnosis.documents,
        "chunks": diagnosis.chunks,
        "findings": diagnosis.findings.iter().map(finding_as_json).collect::<Vec<_>>(),
    });
    if let Some(report) = &diagnosis.quality {
        value["quality"] = quality_as_json(report);
    }
    value
}

fn finding_as_json(finding: &Finding) -> Value {
    json!({
        "check": finding.check.as_str(),
        "severity": finding.check.severity().as_str(),
        "summary": finding.summary,
        "count": finding.count,
        "samples": finding.samples,
        "remedy": finding.remedy,
    })
}

fn quality_as_json(report: &QualityReport) -> Value {
    let penalties: Vec<Value> = report
        .penalties
        .iter()
        .map(|lowered| {
            let examples = lowered.examples.iter().map(|example| {
                json!({
                    "path": example.path.as_str(),
                    "heading": example.heading,
                    "beginning": example.beginning,
                })
            });
            json!({
                "penalty": lowered.penalty.as_str(),
                "chunks": lowered.chunks,
                "examples": examples.collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "chunks": report.chunks, "lowered": report.lowered, "penalties": penalties })
}

fn as_text(diagnosis: &Diagnosis) -> String {
    let Diagnosis { documents, chunks, findings, quality, .. } = diagnosis;
    let mut lines = Vec::new();
    for Finding { check, summary, samples, remedy, .. } in findings {
        let (severity, check) = (check.severity().as_str(), check.as_str());
        lines.push(on_one_line(&format!("{severity} {check}: {summary}")).into_owned());
        lines.extend(samples.iter().map(|sample| format!("  {}", on_one_line(sample))));
        lines.push(format!("  remedy: {}", on_one_line(remedy)));
    }
    lines.push(match findings.len() {
        0 => format!("No issues found in {documents} documents, {chunks} chunks"),
        1 => format!("1 issue found in {documents} documents, {chunks} chunks"),
        more => format!("{more} issues found in {documents} documents, {chunks} chunks"),
    });
    let mut text = lines.join("\n") + "\n";
    if let Some(report) = quality {
        text.push_str(&print::quality_as_text(report));
    }
    text
}

#[cfg(test)]
mod tests {
    use grooveseek::domain::finding::Check;

    use super::*;

    // CLI-158
    #[test]
    fn a_finding_is_a_line_with_its_samples_and_remedy_below() {
        let finding = Finding {
            check: Check::DocumentWithoutChunks,
            summary: "2 document(s) have no chunk".into(),
            count: 2,
            samples: vec!["a\n\u{1b}[2J.md".into(), "b.md".into()],
            remedy: "groove index --force".into(),
        };
        let diagnosis =
            Diagnosis { documents: 3, chunks: 4, findings: vec![finding], ..Diagnosis::default() };
        let expected = "error document-without-chunks: 2 document(s) have no chunk\n  \
                        a\\n\\u{1b}[2J.md\n  b.md\n  remedy: groove index --force\n\
                        1 issue found in 3 documents, 4 chunks\n";
        assert_eq!(as_text(&diagnosis), expected);
        let clean = Diagnosis { findings: Vec::new(), ..diagnosis };
        assert_eq!(as_text(&clean), "No issues found in 3 documents, 4 chunks\n");
    }
}
