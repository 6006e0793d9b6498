//! Downloads models into a cache in the hub's layout.

use std::fmt::Write as _;
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use ureq::Agent;
use ureq::http::{Response, StatusCode, Uri};
use ureq::tls::{RootCerts, TlsConfig};

use crate::adapters::model::catalogue::HubSource;
use crate::adapters::model::locate;
use crate::ports::Cause;

/// The hub that is asked unless a person names another.
pub const DEFAULT_ENDPOINT: &str = "https://huggingface.co";

/// How to reach the hub.
#[derive(Clone)]
pub struct HubSettings {
    /// Scheme, host and path prefix, as in [`DEFAULT_ENDPOINT`].
    pub endpoint: String,
    /// A token for repositories that ask for one; sent to the endpoint only.
    pub token: Option<String>,
    /// The longest wait for a name to resolve, and for a connection.
    pub connect_timeout: Duration,
    /// The longest silence on an open connection.
    pub stall_timeout: Duration,
    /// Who wants to know how far a download is.
    pub progress: Option<ProgressSink>,
}

/// How far the download of one file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The file's path inside its repository.
    pub file: String,
    /// How much of it is here.
    pub done_bytes: u64,
    /// How much it is in all, if the hub says so.
    pub total_bytes: Option<u64>,
}

/// Takes reports while a download is on: at the start, after each read, at the
/// end of every file.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// Why a model could not be downloaded.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The hub could not be reached, or fell silent.
    #[error("no answer from {host} for {file}")]
    Unreachable {
        /// Host and port of the address that was asked.
        host: String,
        /// The file that was asked for.
        file: String,
        /// The failure as the connection reported it.
        source: Cause,
    },
    /// The hub answered, but not with the file.
    #[error("{host} answered {status} for {file} of {repository}")]
    Refused {
        /// Host and port of the address that was asked.
        host: String,
        /// The HTTP status.
        status: u16,
        /// The file that was asked for.
        file: String,
        /// The repository.
        repository: String,
    },
    /// What arrived is not what was announced.
    #[error("{file} from {host} is damaged: {reason}")]
    Damaged {
        /// Host and port of the address that was asked.
        host: String,
        /// The file.
        file: String,
        /// What does not fit.
        reason: String,
    },
    /// The cache could not be written or read.
    #[error("cannot use the model cache at {}", path.display())]
    Cache {
        /// The file or folder of the cache.
        path: PathBuf,
        /// The failure as the operating system reported it.
        source: io::Error,
    },
}

/// How often a lock that another process holds is tried again.
const LOCK_INTERVAL: Duration = Duration::from_millis(200);
/// The most addresses that one file is sent on to.
const MAX_REDIRECTS: usize = 8;
/// Files from this size on are worth lines in the log.
const NOTABLE_BYTES: u64 = 1024 * 1024;
const BUFFER_BYTES: usize = 128 * 1024;

impl Default for HubSettings {
    fn default() -> Self {
        Self {
            endpoint: DEFAULT_ENDPOINT.to_owned(),
            token: None,
            connect_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(30),
            progress: None,
        }
    }
}

impl std::fmt::Debug for HubSettings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("HubSettings")
            .field("endpoint", &self.endpoint)
            .field("token", &self.token.as_ref().map(|_| "(hidden)"))
            .field("connect_timeout", &self.connect_timeout)
            .field("stall_timeout", &self.stall_timeout)
            .finish_non_exhaustive()
    }
}

impl HubSettings {
    /// The endpoint's host, for a person to read.
    pub fn host(&self) -> String {
        host_of(&self.endpoint)
    }
}

/// Downloads what a cache lacks of a source, and returns the snapshot's folder.
///
/// Blocks; call it where blocking is allowed. A download that another process
/// has begun is waited for, not repeated. A file shows up in the cache only
/// when all of it is there and its checksum fits; what a broken connection
/// left is continued by the next attempt.
///
/// # Errors
///
/// [`HubError`]; the cache is then as before, but for finished files.
pub fn download(
    settings: &HubSettings,
    source: &HubSource,
    cache: &Path,
) -> Result<PathBuf, HubError> {
    let _lock = lock(cache, source.repository)?;
    if let Some(snapshot) = locate::cached(cache, source) {
        return Ok(snapshot);
    }
    let repository = locate::repository_folder(cache, source.repository);
    let mut fetch = Fetch::new(settings, source, &repository);
    for file in ["config.json", "tokenizer.json"] {
        fetch.required(file)?;
    }
    for file in source.extras {
        fetch.optional(file)?;
    }
    for file in source.weights {
        fetch.required(file)?;
    }
    fetch.finish()
}

/// Downloads on a thread of its own: the end of the program does not wait for
/// it, as it would for a blocking thread of the runtime.
///
/// # Errors
///
/// As [`download`], and whatever keeps the thread from starting.
pub async fn download_aside(
    settings: &HubSettings,
    source: HubSource,
    cache: PathBuf,
) -> Result<PathBuf, Cause> {
    let settings = settings.clone();
    let (sender, receiver) = oneshot::channel();
    thread::Builder::new().name("model download".to_owned()).spawn(move || {
        // Nobody listens any more if the caller was cancelled.
        drop(sender.send(download(&settings, &source, &cache)));
    })?;
    Ok(receiver.await??)
}

/// Waits for the right to write a repository of the cache; dropping the file
/// gives it back.
fn lock(cache: &Path, repository: &str) -> Result<File, HubError> {
    let folder = cache.join(".locks");
    let path = folder.join(format!("groove--{}.lock", repository.replace('/', "--")));
    let failed = |source| HubError::Cache { path: path.clone(), source };
    fs::create_dir_all(&folder).map_err(failed)?;
    let file =
        File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    let mut noted = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                if !noted {
                    tracing::info!(repository, "waiting for another process to download the model");
                    noted = true;
                }
                thread::sleep(LOCK_INTERVAL);
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
}

/// One download: all files come from one commit.
struct Fetch<'a> {
    settings: &'a HubSettings,
    source: &'a HubSource,
    repository: &'a Path,
    agent: Agent,
    commit: Option<String>,
}

/// What the hub says of a file before it hands it out.
struct Announced {
    commit: String,
    etag: String,
    size_bytes: Option<u64>,
}

/// An answer with a file in its body, and where it came from.
struct Answer {
    response: Response<ureq::Body>,
    host: String,
    announced: Announced,
}

impl<'a> Fetch<'a> {
    fn new(settings: &'a HubSettings, source: &'a HubSource, repository: &'a Path) -> Self {
        // The certificates that this machine trusts, which is what a company's
        // own proxy needs. The proxy itself comes from the environment.
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .accept_encoding("identity")
            .user_agent(concat!("groove/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(settings.connect_timeout))
            .timeout_connect(Some(settings.connect_timeout))
            .timeout_recv_response(Some(settings.stall_timeout))
            .timeout_per_read(Some(settings.stall_timeout))
            .timeout_per_write(Some(settings.stall_timeout))
            .build()
            .new_agent();
        Self { settings, source, repository, agent, commit: None }
    }

    fn optional(&mut self, file: &str) -> Result<(), HubError> {
        match self.required(file) {
            Err(HubError::Refused { status: 404, .. }) => Ok(()),
            other => other,
        }
    }

    fn required(&mut self, file: &str) -> Result<(), HubError> {
        let answer = self.ask(file, 0)?;
        let commit = self.commit.get_or_insert_with(|| answer.announced.commit.clone());
        let pointer = self.repository.join("snapshots").join(commit).join(file);
        let blob = self.repository.join("blobs").join(&answer.announced.etag);
        let whole = |metadata: Metadata| {
            answer.announced.size_bytes.is_none_or(|size| size == metadata.len())
        };
        if !fs::metadata(&blob).is_ok_and(whole) {
            self.store(file, answer, &blob)?;
        }
        point(&pointer, &blob)
    }

    /// Names the commit as the newest one and returns its folder.
    fn finish(self) -> Result<PathBuf, HubError> {
        let Some(commit) = self.commit else {
            return Err(self.damaged("config.json", "no commit was announced"));
        };
        let reference = self.repository.join("refs").join("main");
        replace(&reference, |path| fs::write(path, &commit))
            .map_err(|source| HubError::Cache { path: reference.clone(), source })?;
        Ok(self.repository.join("snapshots").join(commit))
    }

    /// Asks for a file from a byte on, following the hub to where it is kept.
    fn ask(&self, file: &str, from: u64) -> Result<Answer, HubError> {
        let revision = self.commit.as_deref().unwrap_or("main");
        let endpoint = self.settings.endpoint.trim_end_matches('/');
        let mut url = format!("{endpoint}/{}/resolve/{revision}/{file}", self.source.repository);
        let mut headers = Headers::default();
        for _ in 0..MAX_REDIRECTS {
            let host = host_of(&url);
            let mut request = self.agent.get(&url);
            // A token that followed the file to another host would be given away.
            if let Some(token) = &self.settings.token
                && origin_of(&url) == origin_of(endpoint)
            {
                request = request.header("Authorization", format!("Bearer {token}"));
            }
            if from > 0 {
                request = request.header("Range", format!("bytes={from}-"));
            }
            let response = request.call().map_err(|error| HubError::Unreachable {
                host: host.clone(),
                file: file.to_owned(),
                source: error.into(),
            })?;
            headers.note(&response);
            let status = response.status();
            if status.is_redirection() {
                url = self.next(file, &url, &response)?;
            } else if status.is_success() {
                let announced = self.announced(file, headers)?;
                return Ok(Answer { response, host, announced });
            } else {
                return Err(HubError::Refused {
                    host,
                    status: status.as_u16(),
                    file: file.to_owned(),
                    repository: self.source.repository.to_owned(),
                });
            }
        }
        Err(self.damaged(file, "it is redirected without end"))
    }

    fn next(
        &self,
        file: &str,
        url: &str,
        response: &Response<ureq::Body>,
    ) -> Result<String, HubError> {
        let location = header(response, "location");
        let wrong = || self.damaged(file, "it is redirected to no address");
        let location = location.ok_or_else(wrong)?;
        if location.starts_with("https://") || location.starts_with("http://") {
            return Ok(location);
        }
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        match (uri.scheme_str(), uri.authority()) {
            (Some(scheme), Some(authority)) if location.starts_with('/') => {
                Ok(format!("{scheme}://{authority}{location}"))
            }
            _ => Err(wrong()),
        }
    }

    fn announced(&self, file: &str, headers: Headers) -> Result<Announced, HubError> {
        let safe = |name: Option<String>, what: &str| {
            name.filter(|name| is_safe_name(name))
                .ok_or_else(|| self.damaged(file, &format!("the answer has no usable {what}")))
        };
        Ok(Announced {
            commit: match &self.commit {
                Some(commit) => commit.clone(),
                None => safe(headers.commit, "commit")?,
            },
            etag: safe(headers.linked_etag.or(headers.etag), "ETag")?,
            size_bytes: headers.linked_size.or(headers.size),
        })
    }

    /// Receives a file beside its place, checks it, and moves it there.
    fn store(&self, file: &str, mut answer: Answer, blob: &Path) -> Result<(), HubError> {
        let failed = |source| HubError::Cache { path: blob.to_owned(), source };
        let part = with_suffix(blob, ".incomplete");
        fs::create_dir_all(self.repository.join("blobs")).map_err(failed)?;
        let mut have = fs::metadata(&part).map_or(0, |metadata| metadata.len());
        if have > 0 {
            let etag = answer.announced.etag.clone();
            match self.ask(file, have) {
                Ok(rest)
                    if rest.response.status() == StatusCode::PARTIAL_CONTENT
                        && rest.announced.etag == etag =>
                {
                    answer.response = rest.response;
                    answer.host = rest.host;
                }
                // No continuing: the answer at hand starts at the first byte.
                _ => have = 0,
            }
        }
        let mut sink = Sink::open(&part, have).map_err(failed)?;
        let most = answer.announced.size_bytes.unwrap_or(u64::MAX);
        let mut reporter = Reporter::new(self.settings, file, answer.announced.size_bytes);
        reporter.report(have);
        let mut body = answer.response.into_body().into_reader();
        let mut buffer = vec![0; BUFFER_BYTES];
        // One byte too many is enough to see that it is the wrong file.
        while sink.size_bytes <= most {
            let read = body.read(&mut buffer).map_err(|error| HubError::Unreachable {
                host: answer.host.clone(),
                file: file.to_owned(),
                source: error.into(),
            })?;
            if read == 0 {
                break;
            }
            sink.write(&buffer[..read]).map_err(failed)?;
            reporter.report(sink.size_bytes);
        }
        let (size_bytes, sha256) = sink.close().map_err(failed)?;
        if let Err(reason) = self.check(file, &answer.announced, size_bytes, &sha256) {
            fs::remove_file(&part).map_err(failed)?;
            return Err(HubError::Damaged { host: answer.host, file: file.to_owned(), reason });
        }
        fs::rename(&part, blob).map_err(failed)
    }

    /// A large file's `ETag` is its SHA-256; a small one's is not, and its size
    /// has to do.
    fn check(
        &self,
        file: &str,
        announced: &Announced,
        size_bytes: u64,
        sha256: &str,
    ) -> Result<(), String> {
        if let Some(expected) = announced.size_bytes
            && size_bytes != expected
        {
            return Err(format!("it has {size_bytes} bytes instead of {expected}"));
        }
        let etag = Some(announced.etag.as_str()).filter(|etag| is_sha256(etag));
        let known = self.source.sha256.filter(|_| self.source.weights.first() == Some(&file));
        match etag.into_iter().chain(known).find(|expected| *expected != sha256) {
            Some(expected) => Err(format!("its SHA-256 is {sha256} instead of {expected}")),
            None => Ok(()),
        }
    }

    fn damaged(&self, file: &str, reason: &str) -> HubError {
        HubError::Damaged {
            host: self.settings.host(),
            file: file.to_owned(),
            reason: reason.to_owned(),
        }
    }
}

/// What the headers of all answers on the way to a file say of it; the first
/// to say something is the one that knows the repository.
#[derive(Default)]
struct Headers {
    commit: Option<String>,
    linked_etag: Option<String>,
    linked_size: Option<u64>,
    etag: Option<String>,
    size: Option<u64>,
}

impl Headers {
    fn note(&mut self, response: &Response<ureq::Body>) {
        let number = |name| header(response, name).and_then(|value| value.parse().ok());
        self.commit = self.commit.take().or_else(|| header(response, "x-repo-commit"));
        self.linked_etag = self.linked_etag.take().or_else(|| etag(response, "x-linked-etag"));
        self.linked_size = self.linked_size.or_else(|| number("x-linked-size"));
        if response.status().is_success() {
            self.etag = etag(response, "etag");
        }
        // A redirect and a part of a file have lengths of their own.
        if response.status() == StatusCode::OK {
            self.size = number("content-length");
        }
    }
}

/// Tells of the progress of one file: everything to who asked for it, a large
/// file's start, quarters and end to the log.
struct Reporter<'a> {
    sink: Option<&'a ProgressSink>,
    file: &'a str,
    total_bytes: Option<u64>,
    next_note: u64,
}

impl<'a> Reporter<'a> {
    fn new(settings: &'a HubSettings, file: &'a str, total_bytes: Option<u64>) -> Self {
        Self { sink: settings.progress.as_ref(), file, total_bytes, next_note: 0 }
    }

    fn report(&mut self, done_bytes: u64) {
        let Self { file, total_bytes, .. } = *self;
        if let Some(total) = total_bytes.filter(|total| *total >= NOTABLE_BYTES)
            && done_bytes >= self.next_note
        {
            tracing::info!(file, done_bytes, total_bytes = total, "downloading");
            let quarter = total / 4;
            self.next_note = (done_bytes / quarter + 1).saturating_mul(quarter).min(total);
            if done_bytes >= total {
                self.next_note = u64::MAX;
            }
        }
        if let Some(sink) = self.sink {
            sink(Progress { file: file.to_owned(), done_bytes, total_bytes });
        }
    }
}

/// A file that is being received, and its checksum so far.
struct Sink {
    file: File,
    sha256: Sha256,
    size_bytes: u64,
}

impl Sink {
    /// Opens a file to go on after its first `keep` bytes.
    fn open(path: &Path, keep: u64) -> io::Result<Self> {
        let mut file =
            File::options().create(true).truncate(false).read(true).write(true).open(path)?;
        if file.metadata()?.len() != keep {
            file.set_len(keep)?;
        }
        let mut sha256 = Sha256::new();
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut kept = Read::by_ref(&mut file).take(keep);
        loop {
            // Reading to the end also leaves the file where writing goes on.
            let read = kept.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            sha256.update(&buffer[..read]);
        }
        Ok(Self { file, sha256, size_bytes: keep })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.sha256.update(bytes);
        self.size_bytes += bytes.len() as u64;
        Ok(())
    }

    fn close(self) -> io::Result<(u64, String)> {
        self.file.sync_all()?;
        let mut hexadecimal = String::with_capacity(64);
        for byte in self.sha256.finalize() {
            // Writing to a string cannot fail.
            let _ = write!(hexadecimal, "{byte:02x}");
        }
        Ok((self.size_bytes, hexadecimal))
    }
}

/// Makes a file of a snapshot out of a blob.
///
/// A hard link rather than a symbolic one: it cannot be left without a target,
/// needs no privilege on Windows, and ONNX Runtime refuses to follow a symbolic
/// link out of a model's folder.
fn point(pointer: &Path, blob: &Path) -> Result<(), HubError> {
    let failed = |source| HubError::Cache { path: pointer.to_owned(), source };
    let size = |path: &Path| fs::metadata(path).map(|metadata| metadata.len()).ok();
    if size(pointer).is_some() && size(pointer) == size(blob) {
        return Ok(());
    }
    replace(pointer, |path| fs::hard_link(blob, path).or_else(|_| fs::copy(blob, path).map(drop)))
        .map_err(failed)
}

/// Puts a file in a place at once, whatever was there: a link without a target,
/// too.
fn replace(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let new = with_suffix(path, ".new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    make(&new)?;
    fs::rename(&new, path)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn header(response: &Response<ureq::Body>, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

fn etag(response: &Response<ureq::Body>, name: &str) -> Option<String> {
    let value = header(response, name)?;
    Some(value.trim_start_matches("W/").trim_matches('"').to_owned())
}

/// A name from the hub becomes a file name, so it must not lead elsewhere.
fn is_safe_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn is_sha256(etag: &str) -> bool {
    etag.len() == 64 && etag.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Scheme, host and port.
fn origin_of(url: &str) -> Option<(String, String)> {
    let uri = url.parse::<Uri>().ok()?;
    Some((uri.scheme_str()?.to_owned(), uri.authority()?.as_str().to_ascii_lowercase()))
}

fn host_of(url: &str) -> String {
    let authority = url.parse::<Uri>().ok().and_then(|uri| uri.authority().cloned());
    authority.map_or_else(
        || url.to_owned(),
        |authority| {
            let host = authority.host();
            authority.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
        },
    )
}

#[cfg(test)]
pub(crate) mod tests;
