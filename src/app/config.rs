//! Configuration as checked values.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::domain::chunk::ContextMode;
use crate::domain::format::{EnabledFormats, PluginLanguage};
use crate::domain::fusion::RankConstant;
use crate::domain::quality;
use crate::ports::chunk_store::ColumnWeights;
use crate::ports::document_source::WatchMode;
use crate::ports::embedder::{EngineChoice, PrecisionChoice};

/// Everything that a run of the program is configured with. The default is
/// what holds without a configuration file.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The root of the knowledge base.
    pub kb_path: Option<PathBuf>,
    /// The local embedding model: a name of the catalogue, or `dir:` and the
    /// absolute path of a folder. Not used while there is an
    /// [`endpoint`](Self::endpoint).
    pub model: String,
    /// Which engine runs the local model.
    pub engine: EngineChoice,
    /// In which precision the local model embeds documents.
    pub precision: PrecisionChoice,
    /// Where embeddings come from instead of a local model.
    pub endpoint: Option<EndpointSettings>,
    /// The cross-encoder that scores candidates again, unless it is `none`.
    pub reranker: String,
    /// Whether a configured reranker works when a caller does not say.
    pub rerank_by_default: bool,
    /// Where downloaded models are kept, if the file names a place.
    pub model_cache: Option<PathBuf>,
    /// Where grammar plugins are kept, if the file names a place.
    pub grammar_dir: Option<PathBuf>,
    /// Substrings of headings whose sections are not indexed.
    pub exclude_headings: Vec<String>,
    /// Names of folders that are not entered.
    pub exclude_dirs: Vec<String>,
    /// The formats that are indexed.
    pub formats: EnabledFormats,
    /// The languages that are indexed besides, each by a plugin.
    pub plugins: Vec<PluginLanguage>,
    /// How indexing works.
    pub index: IndexSettings,
    /// How searching works.
    pub search: SearchSettings,
    /// Paths below the root, in the order in which they are tried, that may
    /// hold `{target}`.
    pub path_templates: Vec<String>,
    /// Following changes on disk.
    pub watch: WatchSettings,
    /// How the service is reached.
    pub transport: TransportSettings,
    /// Scoring the service on a judged set.
    pub evaluation: EvaluationSettings,
}

impl Config {
    /// Takes embeddings from this local model, whatever was configured.
    pub fn use_local_model(&mut self, name: &str) {
        name.clone_into(&mut self.model);
        self.endpoint = None;
        self.engine = EngineChoice::Auto;
        self.precision = PrecisionChoice::Auto;
    }
}

/// An OpenAI-compatible endpoint that embeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSettings {
    /// The URL of the embeddings call: `http` or `https`, no user-info part.
    pub url: String,
    /// The model name that is sent for documents, trimmed.
    pub document_model: String,
    /// The model name that is sent for queries, trimmed.
    pub query_model: String,
    /// How many numbers each vector has, 1 to 8192.
    pub dimension: usize,
    /// Whether a request names the dimension.
    pub request_dimensions: bool,
    /// The bearer token, or where it comes from.
    pub api_key: Option<KeySetting>,
    /// Bounds one attempt, its body included; at least one second.
    pub timeout: Duration,
    /// The most characters of a text that are sent, at least 1.
    pub max_input_chars: usize,
    /// How often a failed request is sent again, 0 to 10.
    pub max_retries: u32,
}

/// A bearer token, or where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySetting {
    /// The token.
    Given(ApiKey),
    /// A file that holds it, by its absolute path.
    File(PathBuf),
    /// A program that prints it, with its arguments; at least one word.
    Command(Vec<String>),
}

/// A bearer token, which no output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes a token; one that is blank is none.
    pub fn new(token: &str) -> Option<Self> {
        let token = token.trim();
        (!token.is_empty()).then(|| Self(token.to_owned()))
    }

    /// The token itself, for the request alone.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(not shown)")
    }
}

/// Following changes on disk, under `serve` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchSettings {
    /// Whether changes are followed.
    pub enabled: bool,
    /// How long to wait for more changes before acting.
    pub debounce: Duration,
    /// How changes are found.
    pub mode: WatchMode,
    /// How long to wait between two looks where it polls, from 0.5 s to an hour.
    pub poll_interval: Duration,
}

/// How the service is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransportSettings {
    /// What `serve` speaks when no flag says.
    pub kind: TransportKind,
    /// The HTTP transport.
    pub http: HttpSettings,
}

/// What `serve` speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransportKind {
    /// MCP over standard input and output.
    #[default]
    Stdio,
    /// MCP over HTTP.
    Http,
}

/// The HTTP transport.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
pub struct HttpSettings {
    /// Where to listen, if the file says so; see [`address`](Self::address).
    pub bind: Option<SocketAddr>,
    /// The hosts that a request may name, in place of the default.
    pub allowed_hosts: Option<Vec<String>>,
    /// The origins that a request may name, in place of the default. Checked
    /// only where the transport is used.
    pub allowed_origins: Option<Vec<String>>,
    /// Whether the health route answers any host.
    pub healthz_public: bool,
    /// The most sessions at a time; none if unlimited.
    pub max_sessions: Option<usize>,
    /// Whether to take the socket that systemd passes.
    pub systemd_socket: bool,
    /// Whether `/metrics` exists.
    pub metrics: bool,
    /// Whether the admin routes refuse what a proxy has passed on.
    pub refuse_forwarded: bool,
    /// What slow and greedy clients are held to.
    pub limits: HttpLimits,
}

/// What clients of the HTTP transport are held to. A time that is none is
/// without end, a number that is none without limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// How long a request's head may take, and a connection be kept without one.
    pub header: Option<Duration>,
    /// How long a request's body may take.
    pub body: Option<Duration>,
    /// How long a client may leave what is sent to it unread.
    pub idle: Option<Duration>,
    /// How long a call may take, index runs left out.
    pub call: Option<Duration>,
    /// How long what is in flight may take once the server is to stop.
    pub drain: Duration,
    /// The most calls in flight at a time.
    pub in_flight: Option<usize>,
    /// The most connections at a time.
    pub connections: Option<usize>,
}

impl HttpSettings {
    /// Where to listen: what the file says, else [`DEFAULT_BIND`].
    pub fn address(&self) -> SocketAddr {
        self.bind.unwrap_or(DEFAULT_BIND)
    }
}

/// Scoring the service on a judged set.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationSettings {
    /// The judged set, unless it is the one in the root.
    pub golden: Option<PathBuf>,
    /// How many runs are kept; 0 keeps none.
    pub history_size: usize,
    /// The cut-offs, ascending, each once, from 1 to 1000, at least one.
    pub k_values: Vec<usize>,
    /// How much a metric may fall before it counts as a regression; finite, at
    /// least 0.
    pub regression_threshold: f64,
}

/// How indexing works.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexSettings {
    /// Whether a run with unreadable frontmatter ends with an error.
    pub fail_on_frontmatter_error: bool,
    /// Whether files of other users are refused; on Unix alone.
    pub require_owner: bool,
    /// The most bytes of a text or code file; none if unlimited.
    pub max_text_file_size: Option<u64>,
    /// The most bytes of a binary file; none if unlimited.
    pub max_binary_file_size: Option<u64>,
    /// The most bytes that a document may unpack to; none if unlimited.
    pub max_decompressed_size: Option<u64>,
    /// Whether contexts are to be part of what is embedded.
    pub context_mode: ContextMode,
    /// The most characters, white space left out, of a chunk of source code;
    /// at least 30.
    pub max_chunk_chars: usize,
    /// What the quality of a chunk goes by.
    pub quality: quality::Rules,
    /// What a server does about the index when it starts.
    pub on_serve: OnServe,
}

/// What a server does about the index when it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnServe {
    /// Nothing: it serves what the index holds.
    #[default]
    None,
    /// It brings the index up to date, beside its answers.
    Build,
}

/// How searching works.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchSettings {
    /// The least quality of a chunk that is shown, from 0 to 1; 0 while the
    /// quality filter is off.
    pub min_quality: f32,
    /// See [`low_confidence`](crate::domain::confidence); 0 switches it off.
    pub min_confidence_ratio: f64,
    /// How long a search waits for the model to embed its query before the text
    /// alone answers it; as long as it takes if none.
    pub max_embed_wait: Option<Duration>,
    /// How long a reranker may take for one search; as long as it takes if there
    /// is no limit.
    pub rerank_timeout: Option<Duration>,
    /// Whether a leg counts for a query as far as it has something to say about
    /// it; else both always do.
    pub adaptive: bool,
    /// Fusion of the two legs.
    pub rank_constant: RankConstant,
    /// How much a match weighs, by where it is.
    pub weights: ColumnWeights,
    /// Spreading hits over different passages.
    pub mmr: MmrSettings,
    /// Widening hits to their surroundings.
    pub parent: ParentSettings,
}

/// Spreading hits over different passages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MmrSettings {
    /// Whether it is on when a caller does not say.
    pub enabled: bool,
    /// Relevance against diversity, from 0 to 1.
    pub lambda: f32,
    /// What a second chunk of one document loses, from 0 to 1.
    pub same_doc_penalty: f32,
}

/// Widening hits to their surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParentSettings {
    /// Whether it is on when a caller does not say.
    pub enabled: bool,
    /// A hit under this many tokens is widened to its whole document.
    pub whole_doc_threshold_tokens: u32,
    /// The most tokens of a widened hit.
    pub max_expanded_tokens: u32,
}

/// The size caps that hold unless a trusted file says otherwise: 50 MiB.
pub const DEFAULT_SIZE_CAP: u64 = 50 * 1024 * 1024;

/// The folders that are not entered unless a file says otherwise.
pub const DEFAULT_EXCLUDE_DIRS: [&str; 6] =
    [".obsidian", ".git", "node_modules", "target", ".vscode", ".idea"];

/// Where the HTTP transport listens unless it is told otherwise.
pub const DEFAULT_BIND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3100);

/// The largest cut-off of an evaluation; a larger one is lowered to it.
pub const MAX_EVALUATION_CUTOFF: usize = 1000;

/// The default embedding model.
pub const DEFAULT_MODEL: &str = "bge-small-en-v1.5";

impl Default for Config {
    fn default() -> Self {
        Self {
            kb_path: None,
            model: DEFAULT_MODEL.to_owned(),
            engine: EngineChoice::Auto,
            precision: PrecisionChoice::Auto,
            endpoint: None,
            reranker: "none".to_owned(),
            rerank_by_default: true,
            model_cache: None,
            grammar_dir: None,
            exclude_headings: Vec::new(),
            exclude_dirs: DEFAULT_EXCLUDE_DIRS.map(str::to_owned).to_vec(),
            formats: EnabledFormats::default(),
            plugins: Vec::new(),
            index: IndexSettings::default(),
            search: SearchSettings::default(),
            path_templates: Vec::new(),
            watch: WatchSettings::default(),
            transport: TransportSettings::default(),
            evaluation: EvaluationSettings::default(),
        }
    }
}

impl Default for WatchSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            debounce: Duration::from_millis(500),
            mode: WatchMode::Auto,
            poll_interval: Duration::from_secs(5),
        }
    }
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            bind: None,
            allowed_hosts: None,
            allowed_origins: None,
            healthz_public: true,
            max_sessions: Some(256),
            systemd_socket: false,
            metrics: false,
            refuse_forwarded: false,
            limits: HttpLimits::default(),
        }
    }
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            header: Some(Duration::from_mins(1)),
            body: Some(Duration::from_mins(1)),
            idle: Some(Duration::from_mins(1)),
            call: Some(Duration::from_mins(10)),
            drain: Duration::from_secs(30),
            in_flight: Some(256),
            connections: Some(768),
        }
    }
}

impl Default for EvaluationSettings {
    fn default() -> Self {
        Self {
            golden: None,
            history_size: 10,
            k_values: vec![1, 5, 10],
            regression_threshold: 0.05,
        }
    }
}

impl Default for IndexSettings {
    fn default() -> Self {
        Self {
            fail_on_frontmatter_error: false,
            require_owner: false,
            max_text_file_size: Some(DEFAULT_SIZE_CAP),
            max_binary_file_size: Some(DEFAULT_SIZE_CAP),
            max_decompressed_size: Some(DEFAULT_SIZE_CAP),
            context_mode: ContextMode::Off,
            max_chunk_chars: 3500,
            on_serve: OnServe::None,
            quality: quality::Rules::default(),
        }
    }
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            min_quality: 0.3,
            min_confidence_ratio: 1.5,
            max_embed_wait: None,
            rerank_timeout: None,
            adaptive: true,
            rank_constant: RankConstant::default(),
            weights: ColumnWeights::default(),
            mmr: MmrSettings { enabled: false, lambda: 0.7, same_doc_penalty: 0.0 },
            parent: ParentSettings {
                enabled: false,
                whole_doc_threshold_tokens: 100,
                max_expanded_tokens: 2000,
            },
        }
    }
}
