//! Resources as MCP lists and hands them out.

use rmcp::model::Annotations;
use rmcp::model::ErrorCode;
use rmcp::model::ErrorData;
use rmcp::model::MetaObject;
use rmcp::model::ProtocolVersion;
use rmcp::model::Resource;
use rmcp::model::ResourceContents;
use rmcp::model::ResourceTemplate;
use serde_json::json;

use crate::adapters::transport::isolated::isolated;
use crate::domain::document::DocumentPath;
use crate::domain::resource::DOCUMENT_TEMPLATE;
use crate::domain::resource::ResourceGroup;
use crate::domain::resource::ResourceName;
use crate::ports::transport::DocumentAnswer;
use crate::ports::transport::Library;
use crate::ports::transport::Refused;
use crate::ports::transport::Unopened;

const MARKDOWN: &str = "text/markdown";
const PLAIN: &str = "text/plain";

/// Why a resource has no contents.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is none of this address for a client.
    NotFound(String),
    /// The service failed.
    Internal(String),
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::Internal(refused.message)
    }
}

impl Failure {
    /// The error as a client of this revision knows it.
    pub(super) fn into_error(self, revision: Option<&ProtocolVersion>) -> ErrorData {
        match self {
            Self::Internal(message) => ErrorData::internal_error(message, None),
            Self::NotFound(message) => {
                let newest = revision.is_some_and(|revision| {
                    revision.as_str() >= ProtocolVersion::V_2026_07_28.as_str()
                });
                let code =
                    if newest { ErrorCode::INVALID_PARAMS } else { ErrorCode::RESOURCE_NOT_FOUND };
                ErrorData::new(code, message, None)
            }
        }
    }
}

/// The groups, each as one resource.
pub(super) async fn list(library: &dyn Library) -> Result<Vec<Resource>, Failure> {
    let groups = isolated(library.groups()).await?;
    // Each is as large as what is read of it, so all are written once.
    let listed = move || groups.iter().map(resource_of).collect();
    tokio::task::spawn_blocking(listed).await.map_err(|error| Failure::Internal(error.to_string()))
}

fn resource_of(group: &ResourceGroup) -> Resource {
    let resource = Resource::new(group.uri(), group.name())
        .with_description(group.description())
        .with_mime_type(MARKDOWN)
        .with_size(group.body().len() as u64);
    let mut annotations = Annotations::default();
    annotations.last_modified = group.last_indexed_at().map(str::to_owned);
    resource.with_annotations(annotations)
}

/// The one template: any document.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![ResourceTemplate::new(DOCUMENT_TEMPLATE, "Indexed document").with_title("Document").with_description(
        "One document of the index, by its path as search returns it, percent-encoded but for \
         the slashes. Text is served: Markdown as it is stored, other formats as extracted text.",
    )]
}

/// What an address names.
pub(super) async fn read(library: &dyn Library, uri: &str) -> Result<ResourceContents, Failure> {
    match ResourceName::from_uri(uri) {
        Some(ResourceName::Group(prefix)) => group(library, uri, &prefix).await,
        Some(ResourceName::Document(path)) => document(library, uri, &path).await,
        None => Err(not_ours(uri)),
    }
}

/// Says that an address is none of ours.
pub(super) fn not_ours(uri: &str) -> Failure {
    Failure::NotFound(format!(
        "there is no resource at {uri}; addresses begin with kb://doc/ or kb://topic/, and \
         `groove doctor` tells why a document is held back"
    ))
}

async fn group(
    library: &dyn Library,
    uri: &str,
    prefix: &str,
) -> Result<ResourceContents, Failure> {
    let groups = isolated(library.groups()).await?;
    let group = groups.iter().find(|group| group.prefix == prefix).ok_or_else(|| not_ours(uri))?;
    let contents = ResourceContents::text(group.body(), uri).with_mime_type(MARKDOWN);
    Ok(match group.last_indexed_at() {
        Some(at) => contents.with_meta(meta(None, Some(at))),
        None => contents,
    })
}

async fn document(
    library: &dyn Library,
    uri: &str,
    path: &DocumentPath,
) -> Result<ResourceContents, Failure> {
    let opened = isolated(async { Ok(library.open(path).await) }).await?;
    let DocumentAnswer { mut content, truncated, size_bytes, modified, .. } =
        opened.map_err(|unopened| match unopened {
            Unopened::NotFound(refused) => Failure::NotFound(refused.message),
            Unopened::Failed(refused) => Failure::Internal(refused.message),
        })?;
    if truncated {
        content.push_str("\n\n---\n\n*[The text is cut here; get_document returns the rest.]*\n");
    }
    let is_markdown = path.extension().is_some_and(|it| it.eq_ignore_ascii_case("md"));
    let mime_type = if is_markdown { MARKDOWN } else { PLAIN };
    let contents = ResourceContents::text(content, uri).with_mime_type(mime_type);
    Ok(contents.with_meta(meta(Some(size_bytes), modified.as_deref())))
}

/// What a client may want to know of the file behind a resource.
fn meta(size_bytes: Option<u64>, modified: Option<&str>) -> MetaObject {
    let mut meta = MetaObject::default();
    if let Some(size) = size_bytes {
        meta.insert("size".into(), json!(size));
    }
    if let Some(modified) = modified {
        meta.insert("lastModified".into(), json!(modified));
    }
    meta
}
