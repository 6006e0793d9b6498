//! Handing out what a knowledge base has written down as best practice.

use crate::app::error::AppError;
use crate::app::offer::TEXT_CAP;
use crate::app::read::{Reader, Unread};
use crate::domain::chunking::sections::{section_about, sections, with_contents};
use crate::domain::document::DocumentPath;
use crate::ports::transport::{BestPracticeAnswer, BestPracticeRequest};

/// What a template has in place of the target.
const TARGET: &str = "{target}";

/// Paths of documents, each with `{target}` in it, in the order in which they
/// are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Templates(pub Vec<String>);

impl Templates {
    /// The targets that documents are there for, ascending and distinct.
    ///
    /// - `paths`: of the documents that there are.
    pub fn targets<'a>(&self, paths: impl Iterator<Item = &'a DocumentPath>) -> Vec<String> {
        let mut targets: Vec<String> = paths
            .flat_map(|path| {
                self.0.iter().filter_map(|template| target_of(template, path.as_str()))
            })
            .map(str::to_owned)
            .collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// Finds the document about a target, and the part of it that was asked for.
    ///
    /// # Errors
    ///
    /// [`AppError::Invalid`] if nothing is configured, there is no such document
    /// or section, or a link stands in its place.
    pub async fn read(
        &self,
        reader: &Reader,
        request: BestPracticeRequest,
    ) -> Result<BestPracticeAnswer, AppError> {
        if self.0.is_empty() {
            return Err(AppError::Invalid(
                "best practice is not configured: name the documents in \
                 [best_practice].path_templates, such as \"best-practice/{target}.md\""
                    .to_owned(),
            ));
        }
        let text = self.text(reader, &request.target).await?;
        let content = match request.category.as_deref() {
            None => with_contents(&text),
            Some(category) => match section_about(&text, category) {
                Some(section) => section.text.to_owned(),
                None => return Err(no_section(&text, category)),
            },
        };
        Ok(BestPracticeAnswer { target: request.target, category: request.category, content })
    }

    /// The first document that there is.
    async fn text(&self, reader: &Reader, target: &str) -> Result<String, AppError> {
        for template in &self.0 {
            let path = template.replace(TARGET, target);
            let Ok(path) = DocumentPath::new(path) else { continue };
            let reader = reader.clone();
            let read = tokio::task::spawn_blocking(move || {
                let read = reader.bytes(&path, TEXT_CAP as u64).map(|(_, content)| content.bytes);
                (path, read)
            });
            let (path, read) = read
                .await
                .map_err(|_| AppError::Interrupted { what: "reading the best practice" })?;
            match read {
                Ok(bytes) => {
                    return String::from_utf8(bytes).map_err(|_| {
                        AppError::Invalid(format!("{path} is not valid UTF-8; save it as UTF-8"))
                    });
                }
                Err(Unread::Linked(reason)) => return Err(AppError::Invalid(reason)),
                Err(reason) => tracing::debug!(%path, %reason, "no best practice here"),
            }
        }
        Err(AppError::Invalid(format!(
            "there is no best practice about {target:?}; {} place(s) were looked at",
            self.0.len()
        )))
    }
}

/// What stands for the target, if a path is one that a template makes.
fn target_of<'a>(template: &str, path: &'a str) -> Option<&'a str> {
    let (before, rest) = template.split_once(TARGET)?;
    let behind = rest.rsplit(TARGET).next().unwrap_or(rest);
    let copies = template.matches(TARGET).count();
    // The target stands once or several times, each as long as the others.
    let fixed = template.len() - copies * TARGET.len();
    let length = path.len().checked_sub(fixed)? / copies;
    let target = path.strip_prefix(before)?.get(..length)?;
    let fits = path.ends_with(behind) && template.replace(TARGET, target) == path;
    (fits && !target.is_empty()).then_some(target)
}

fn no_section(text: &str, category: &str) -> AppError {
    let names: Vec<&str> = sections(text).iter().map(|section| section.heading).collect();
    let there_are = match names.as_slice() {
        [] => "there are no sections".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    AppError::Invalid(format!("no section is about {category:?}; {there_are}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::app::testing::Bench;
    use crate::ports::document_source::Refusal;

    const TEXT: &str = "# Rust\n\n## Errors\n\nUse `?`.\n\n## Naming\n\nNouns.\n";

    fn templates(paths: &[&str]) -> Templates {
        Templates(paths.iter().map(|&path| path.to_owned()).collect())
    }

    async fn ask(
        bench: &Bench,
        paths: &[&str],
        target: &str,
        category: Option<&str>,
    ) -> Result<String, String> {
        let reader = Reader {
            source: Arc::clone(&bench.source) as Arc<_>,
            registry: bench.indexer.registry.clone(),
        };
        let request =
            BestPracticeRequest { target: target.into(), category: category.map(str::to_owned) };
        let answer = templates(paths).read(&reader, request).await;
        answer.map(|answer| answer.content).map_err(|error| error.to_string())
    }

    // MCP-46
    #[tokio::test]
    async fn without_templates_the_answer_names_the_key() {
        let refused = ask(&Bench::new(&[]), &[], "rust", None).await.unwrap_err();
        assert!(refused.contains("not configured"), "{refused}");
        assert!(refused.contains("[best_practice].path_templates"), "{refused}");
    }

    // MCP-47
    #[tokio::test]
    async fn the_first_document_that_can_be_read_is_handed_out() {
        let bench = Bench::new(&[("b/rust.md", TEXT), ("c/rust.md", "other"), ("d/rust.txt", "x")]);
        bench.source.put("large/rust.md", vec![b'x'; TEXT_CAP + 1]);
        bench.source.put_failing("failing/rust.md");
        let paths = [
            "../{target}.md",
            "no/{target}.md",
            "d/{target}.txt",
            "large/{target}.md",
            "failing/{target}.md",
            "b/{target}.md",
            "c/{target}.md",
        ];
        let found = ask(&bench, &paths, "rust", None).await.unwrap();
        assert_eq!(found, with_contents(TEXT));
    }

    // MCP-47
    #[tokio::test]
    async fn a_link_ends_the_search() {
        for reason in [Refusal::SymbolicLink, Refusal::MultipleLinks] {
            let bench = Bench::new(&[("b/rust.md", TEXT)]);
            bench.source.put_refused("a/rust.md", reason);
            let paths = ["a/{target}.md", "b/{target}.md"];
            let refused = ask(&bench, &paths, "rust", None).await.unwrap_err();
            assert!(refused.contains("denied"), "{refused}");
        }
    }

    // MCP-48
    #[tokio::test]
    async fn what_is_not_there_is_told_without_the_paths() {
        let paths = ["secret/{target}.md", "b/{target}.md"];
        for target in ["rust", "../../etc/passwd", "", "a\0b"] {
            let refused = ask(&Bench::new(&[]), &paths, target, None).await.unwrap_err();
            assert!(refused.contains("2 place(s)"), "{refused}");
            assert!(!refused.contains("secret"), "{refused}");
        }
    }

    // MCP-49
    #[tokio::test]
    async fn a_section_is_handed_out_alone_and_a_missing_one_names_the_others() {
        let bench = Bench::new(&[("b/rust.md", TEXT)]);
        let paths = ["b/{target}.md"];
        let found = ask(&bench, &paths, "rust", Some("err")).await.unwrap();
        assert_eq!(found, "## Errors\n\nUse `?`.");
        let refused = ask(&bench, &paths, "rust", Some("tests")).await.unwrap_err();
        assert!(refused.contains("Errors, Naming"), "{refused}");
    }

    // MCP-B09
    #[test]
    fn targets_are_what_documents_are_there_for() {
        let paths = ["b/rust.md", "b/go/x.md", "b/.md", "b/a.txt", "x/go/go.md", "x/go/rs.md"]
            .map(|path| DocumentPath::new(path).unwrap());
        let templates = templates(&["b/{target}.md", "x/{target}/{target}.md"]);
        assert_eq!(templates.targets(paths.iter()), ["go", "go/x", "rust"]);
    }
}
