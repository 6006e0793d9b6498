//! From the machine to a checked configuration: the environment, the files,
//! the log lines.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the binary is where files and the environment come in"
)]

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use grooveseek::app::config::{ApiKey, Config};
use grooveseek::app::config_file::{
    ConfigFile, Context, Directory, DirectoryError, FileFacts, KbPathError, PathKind, Places,
    Resolution, Setting, Source, Trust, apply_trust, discover, effective, expand_home,
    knowledge_base, own_directory,
};
use grooveseek::app::grammar::{GrammarError, check_plugins};

/// The most bytes that a configuration file may have.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The configuration that a run works with.
#[derive(Debug)]
pub(crate) struct LoadedConfig {
    /// The settings.
    pub(crate) config: Config,
    /// Where they came from.
    pub(crate) source: Source,
    /// The file; none if the defaults hold.
    pub(crate) path: Option<PathBuf>,
    /// How far the file is believed.
    pub(crate) trust: Trust,
    /// What the file says, before anything in it was restricted.
    file: Option<ConfigFile>,
    environment: Environment,
}

impl LoadedConfig {
    /// The root of the knowledge base: what `--kb-path` says, else the key.
    pub(crate) fn kb_path(&self, flag: Option<&Path>) -> Result<PathBuf, KbPathError> {
        knowledge_base(flag, &self.config, &self.environment.working_dir, &RealFiles)
    }

    /// Where models that were downloaded are kept. To be asked by commands
    /// that load a model, because it can fail.
    pub(crate) fn model_cache(&self) -> Result<Directory, DirectoryError> {
        let standard = self.environment.cache_dir.as_ref().map(|dir| dir.join("fastembed"));
        own_directory(
            "downloaded models",
            ("FASTEMBED_CACHE_DIR", self.environment.model_cache.as_deref()),
            self.config.model_cache.as_deref(),
            standard.as_deref(),
        )
    }

    /// Where grammar plugins are kept. To be asked by commands that need one,
    /// because it can fail.
    pub(crate) fn grammar_dir(&self) -> Result<Directory, DirectoryError> {
        let standard = self.environment.data_dir.as_ref().map(|dir| dir.join("groove/grammars"));
        own_directory(
            "grammar plugins",
            ("GROOVE_GRAMMAR_DIR", self.environment.grammar_dir.as_deref()),
            self.config.grammar_dir.as_deref(),
            standard.as_deref(),
        )
    }

    /// Makes sure that every language that needs a grammar plugin has one.
    pub(crate) fn check_plugins(&self, kb_path: &Path) -> Result<(), GrammarError> {
        check_plugins(&self.config.plugins, || self.grammar_dir(), kb_path, &RealFiles)
    }

    /// What holds for every key.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        let context = self.environment.context(&[], &[]);
        effective(self.file.as_ref(), self.trust, &context, &self.config)
    }

    /// Where models that were placed by hand are kept.
    pub(crate) fn models_dir(&self) -> Result<Directory, DirectoryError> {
        let standard = self.environment.data_dir.as_ref().map(|dir| dir.join("groove/models"));
        own_directory(
            "models placed by hand",
            ("GROOVE_MODELS_DIR", self.environment.models_dir.as_deref()),
            None,
            standard.as_deref(),
        )
    }
}

/// Finds and reads the configuration of this process, and logs where it came
/// from and what was not believed.
///
/// - `named`: what `--config` says.
/// - `models`, `rerankers`: the names that the configuration may use.
pub(crate) fn load(
    named: Option<&Path>,
    models: &[&str],
    rerankers: &[&str],
) -> anyhow::Result<LoadedConfig> {
    let environment = Environment::of_process()?;
    let (loaded, warnings) = load_from(environment, named, models, rerankers)?;
    let path = loaded.path.as_ref().map_or_else(|| "none".to_owned(), |p| p.display().to_string());
    tracing::info!(
        target: "grooveseek::config",
        source = %loaded.source,
        path = %path,
        trust = %loaded.trust,
        "loaded config"
    );
    for warning in warnings {
        tracing::warn!(target: "grooveseek::config", "{warning}");
    }
    Ok(loaded)
}

fn load_from(
    environment: Environment,
    named: Option<&Path>,
    models: &[&str],
    rerankers: &[&str],
) -> anyhow::Result<(LoadedConfig, Vec<String>)> {
    let home = environment.home.as_deref();
    let named = named
        .map(|path| {
            expand_home(path, home)
                .with_context(|| format!("--config {}: there is no home folder", path.display()))
        })
        .transpose()?
        // Component by component, which leaves out every `.`.
        .map(|path| environment.working_dir.join(path).components().collect::<PathBuf>());
    if let Some(path) = &named {
        match RealFiles.kind(path) {
            Some(PathKind::Directory) => bail!("--config {} is a folder", path.display()),
            Some(_) => {}
            None => bail!("--config {} does not exist", path.display()),
        }
    }
    let places = Places {
        named: named.as_deref(),
        working_dir: &environment.working_dir,
        binary_dir: environment.binary_dir.as_deref(),
        config_bases: &environment.config_bases,
    };
    let found = discover(&places, &RealFiles);
    let file = found.path.as_deref().map(parse).transpose()?;
    let (config, warnings) = match &file {
        Some(file) => {
            apply_trust(file.clone(), found.trust, &environment.context(models, rerankers))?
        }
        None => (Config::default(), Vec::new()),
    };
    let warnings = warnings.iter().map(ToString::to_string).collect();
    let (source, path, trust) = (found.source, found.path, found.trust);
    Ok((LoadedConfig { config, source, path, trust, file, environment }, warnings))
}

fn parse(path: &Path) -> anyhow::Result<ConfigFile> {
    Ok(ConfigFile::parse(&read_text(path)?, path)?)
}

fn read_text(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let cannot_read = || format!("cannot read the configuration file {shown}");
    let mut bytes = Vec::new();
    let file = fs::File::open(path).with_context(cannot_read)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).with_context(cannot_read)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        bail!("the configuration file {shown} is larger than 1 MiB");
    }
    String::from_utf8(bytes).with_context(|| format!("the configuration file {shown} is not UTF-8"))
}

/// What the environment says, read once at the start.
#[derive(Debug)]
struct Environment {
    working_dir: PathBuf,
    binary_dir: Option<PathBuf>,
    home: Option<PathBuf>,
    config_bases: Vec<PathBuf>,
    cache_dir: Option<PathBuf>,
    data_dir: Option<PathBuf>,
    api_key: Option<ApiKey>,
    model_cache: Option<PathBuf>,
    models_dir: Option<PathBuf>,
    grammar_dir: Option<PathBuf>,
}

impl Environment {
    fn of_process() -> anyhow::Result<Self> {
        let working_dir = env::current_dir().context("cannot tell the working directory")?;
        let binary = env::current_exe().ok();
        Ok(Self::new(working_dir, binary.as_deref(), env::home_dir(), &|name| env::var_os(name)))
    }

    fn new(
        working_dir: PathBuf,
        binary: Option<&Path>,
        home: Option<PathBuf>,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Self {
        // An empty variable counts as unset everywhere.
        let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = home.filter(|home| home.is_absolute());
        let system = SystemDirs::new(home.as_deref(), &path);
        Self {
            working_dir,
            binary_dir: binary.and_then(Path::parent).map(Path::to_owned),
            config_bases: system.config.into_iter().chain(path("GROOVE_CONFIG_HOME")).collect(),
            cache_dir: system.cache,
            data_dir: system.data,
            api_key: variable("GROOVE_EMBEDDING_API_KEY")
                .and_then(|value| ApiKey::new(&value.to_string_lossy())),
            model_cache: path("FASTEMBED_CACHE_DIR"),
            models_dir: path("GROOVE_MODELS_DIR"),
            grammar_dir: path("GROOVE_GRAMMAR_DIR"),
            home,
        }
    }

    /// What a configuration is judged by.
    fn context<'a>(&'a self, models: &'a [&'a str], rerankers: &'a [&'a str]) -> Context<'a> {
        Context {
            models,
            rerankers,
            api_key: self.api_key.clone(),
            home: self.home.as_deref(),
            files: &RealFiles,
        }
    }
}

/// The system's usual folders for a user's files, each absolute.
struct SystemDirs {
    config: Option<PathBuf>,
    cache: Option<PathBuf>,
    data: Option<PathBuf>,
}

impl SystemDirs {
    fn new(home: Option<&Path>, path: &dyn Fn(&str) -> Option<PathBuf>) -> Self {
        let variable = |name: &str| path(name).filter(|path| path.is_absolute());
        let below = |folder: &str| home.map(|home| home.join(folder));
        if cfg!(windows) {
            let local = variable("LOCALAPPDATA").or_else(|| below("AppData/Local"));
            Self {
                config: variable("APPDATA").or_else(|| below("AppData/Roaming")),
                cache: local.clone(),
                data: local,
            }
        } else if cfg!(target_os = "macos") {
            let support = below("Library/Application Support");
            Self { config: support.clone(), cache: below("Library/Caches"), data: support }
        } else {
            Self {
                config: variable("XDG_CONFIG_HOME").or_else(|| below(".config")),
                cache: variable("XDG_CACHE_HOME").or_else(|| below(".cache")),
                data: variable("XDG_DATA_HOME").or_else(|| below(".local/share")),
            }
        }
    }
}

/// The files of this machine.
#[derive(Clone, Copy, Debug)]
struct RealFiles;

impl FileFacts for RealFiles {
    fn kind(&self, path: &Path) -> Option<PathKind> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => Some(PathKind::File),
            Ok(metadata) if metadata.is_dir() => Some(PathKind::Directory),
            Ok(_) => Some(PathKind::Other),
            Err(_) => fs::symlink_metadata(path).ok().map(|_| PathKind::Other),
        }
    }

    fn resolve(&self, path: &Path) -> Resolution {
        match fs::canonicalize(path) {
            Ok(path) => Resolution::Path(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !has_link(path) => {
                Resolution::Missing
            }
            Err(_) => Resolution::Unresolvable,
        }
    }
}

/// Whether a symbolic link is on the way to a path.
fn has_link(path: &Path) -> bool {
    path.ancestors()
        .any(|part| fs::symlink_metadata(part).is_ok_and(|metadata| metadata.is_symlink()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use grooveseek::app::config::KeySetting;
    use tempfile::TempDir;

    use super::*;

    const MODELS: [&str; 2] = ["bge-small-en-v1.5", "bge-m3"];
    const RERANKERS: [&str; 1] = ["none"];

    /// A machine with a home folder, a repository and a place for the binary.
    struct Machine {
        root: TempDir,
        variables: BTreeMap<&'static str, OsString>,
    }

    impl Machine {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            for folder in ["home", "repo/.git", "repo/sub", "bin"] {
                fs::create_dir_all(root.path().join(folder)).unwrap();
            }
            Self { root, variables: BTreeMap::new() }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().canonicalize().unwrap().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn environment(&self) -> Environment {
            Environment::new(
                self.path("repo/sub"),
                Some(&self.path("bin/groove")),
                Some(self.path("home")),
                &|name| self.variables.get(name).cloned(),
            )
        }

        fn load(&self, named: Option<&str>) -> anyhow::Result<(LoadedConfig, Vec<String>)> {
            load_from(self.environment(), named.map(Path::new), &MODELS, &RERANKERS)
        }
    }

    // CFG-11 CFG-12 CFG-13 CFG-14
    #[test]
    fn the_nearest_file_counts_and_without_any_the_defaults_hold() {
        let machine = Machine::new();
        let (loaded, _) = machine.load(None).unwrap();
        assert_eq!((loaded.source, loaded.path), (Source::NotFound, None));
        assert_eq!(loaded.config, Config::default());
        for (file, source, trust) in [
            ("bin/groove.toml", Source::AlongsideBinary, Trust::Trusted),
            ("repo/groove.toml", Source::GitRoot, Trust::Untrusted),
            ("repo/sub/groove.toml", Source::Cwd, Trust::Untrusted),
        ] {
            machine.write(file, "model = 'bge-m3'");
            let (loaded, _) = machine.load(None).unwrap();
            assert_eq!((loaded.source, loaded.trust), (source, trust));
            assert_eq!(loaded.path, Some(machine.path(file)));
            assert_eq!(loaded.config.model, "bge-m3");
        }
    }

    // CFG-10 CLI-04 CLI-14
    #[test]
    fn a_named_file_is_trusted_wherever_it_lies() {
        let machine = Machine::new();
        machine.write("home/kb.toml", "grammar_dir = '/g'");
        machine.write("repo/sub/groove.toml", "grammar_dir = '/h'");
        for named in ["~/kb.toml", "../../home/kb.toml", "./../../home/./kb.toml"] {
            let (loaded, warnings) = machine.load(Some(named)).unwrap();
            assert_eq!((loaded.source, loaded.trust), (Source::Explicit, Trust::Trusted));
            assert_eq!(loaded.config.grammar_dir, Some("/g".into()));
            assert_eq!(loaded.path.unwrap().canonicalize().unwrap(), machine.path("home/kb.toml"));
            assert!(warnings.is_empty());
        }
        let (loaded, warnings) = machine.load(None).unwrap();
        assert_eq!((loaded.config.grammar_dir, warnings.len()), (None, 1));
    }

    // CLI-04
    #[test]
    fn a_named_path_that_is_no_file_is_an_error_and_nothing_else_is_tried() {
        let machine = Machine::new();
        machine.write("repo/sub/groove.toml", "");
        for named in ["missing.toml", "~/missing.toml", "../sub"] {
            let error = machine.load(Some(named)).unwrap_err().to_string();
            let file = Path::new(named).file_name().unwrap().to_str().unwrap();
            assert!(error.contains("--config") && error.contains(file), "{error}");
        }
    }

    // CFG-16 CFG-70a
    #[test]
    fn the_groove_folder_of_a_configuration_base_is_trusted() {
        let mut machine = Machine::new();
        machine.write("repo/sub/groove.toml", "");
        let trust = |machine: &Machine| machine.load(None).unwrap().0.trust;
        machine.variables.insert("GROOVE_CONFIG_HOME", machine.path("repo").into());
        assert_eq!(trust(&machine), Trust::Untrusted);
        let mut environment = machine.environment();
        machine.write("repo/groove/team/groove.toml", "");
        environment.working_dir = machine.path("repo/groove/team");
        let (loaded, _) = load_from(environment, None, &MODELS, &RERANKERS).unwrap();
        assert_eq!((loaded.source, loaded.trust), (Source::Cwd, Trust::Trusted));
    }

    // CFG-17
    #[test]
    #[cfg(unix)]
    fn a_git_entry_that_leads_nowhere_is_a_git_root_all_the_same() {
        let machine = Machine::new();
        std::os::unix::fs::symlink("/nowhere", machine.path("repo/sub/.git")).unwrap();
        machine.write("repo/groove.toml", "");
        assert_eq!(machine.load(None).unwrap().0.source, Source::NotFound);
    }

    // CFG-21
    #[test]
    #[cfg(unix)]
    fn a_root_behind_a_link_is_judged_by_its_target() {
        let machine = Machine::new();
        let link = |name: &str, target: &Path| {
            std::os::unix::fs::symlink(target, machine.path("repo/sub").join(name)).unwrap();
        };
        link("home", &machine.path("home"));
        link("dead", Path::new("/nowhere/at/all"));
        link("bin", &machine.path("bin"));
        for (root, kept) in
            [("home", false), ("dead", false), ("dead/x", false), ("bin", true), ("absent", true)]
        {
            machine.write("repo/sub/groove.toml", &format!("kb_path = '{root}'"));
            let (loaded, warnings) = machine.load(None).unwrap();
            assert_eq!(loaded.config.kb_path.is_some(), kept, "{root}");
            assert_eq!(warnings.is_empty(), kept, "{root}");
        }
    }

    // CFG-95 CFG-70d
    #[test]
    #[cfg(target_os = "linux")]
    fn folders_come_from_variables_then_keys_then_the_system() {
        let mut machine = Machine::new();
        machine.write("home/kb.toml", "fastembed_cache_dir = '/k'");
        let (loaded, _) = machine.load(None).unwrap();
        assert_eq!(loaded.model_cache().unwrap().path, machine.path("home/.cache/fastembed"));
        let data = machine.path("home/.local/share/groove");
        assert_eq!(loaded.models_dir().unwrap().path, data.join("models"));
        machine.variables.insert("XDG_CACHE_HOME", "/c".into());
        let cache = machine.load(None).unwrap().0.model_cache().unwrap().path;
        assert_eq!(cache, Path::new("/c/fastembed"));
        let (loaded, _) = machine.load(Some("~/kb.toml")).unwrap();
        assert_eq!(loaded.model_cache().unwrap().path, Path::new("/k"));
        machine.variables.insert("FASTEMBED_CACHE_DIR", "/v".into());
        let (loaded, _) = machine.load(Some("~/kb.toml")).unwrap();
        assert_eq!(loaded.model_cache().unwrap().path, Path::new("/v"));
        machine.variables.insert("FASTEMBED_CACHE_DIR", "relative".into());
        let error = machine.load(None).unwrap().0.model_cache().unwrap_err().to_string();
        assert!(error.contains("FASTEMBED_CACHE_DIR"), "{error}");
    }

    // CLI-12 CFG-35
    #[test]
    fn the_root_of_the_knowledge_base_is_the_flag_or_the_key() {
        let machine = Machine::new();
        let required = machine.load(None).unwrap().0.kb_path(None).unwrap_err().to_string();
        assert!(required.contains("--kb-path is required"), "{required}");
        machine.write("repo/sub/groove.toml", "kb_path = 'notes'");
        fs::create_dir_all(machine.path("repo/sub/notes")).unwrap();
        let (loaded, _) = machine.load(None).unwrap();
        assert_eq!(loaded.kb_path(None), Ok(machine.path("repo/sub/notes")));
        let flag = loaded.kb_path(Some(Path::new("../sub"))).unwrap();
        assert!(flag.ends_with("../sub"));
    }

    // CFG-70c
    #[test]
    fn the_key_of_the_environment_reaches_the_endpoint() {
        let mut machine = Machine::new();
        machine.write(
            "home/kb.toml",
            "[embedding]\nprovider = 'openai-compatible'\nendpoint = 'http://h'\nmodel = 'm'\n\
             dimension = 3\napi_key = 'file'\n",
        );
        machine.variables.insert("GROOVE_EMBEDDING_API_KEY", "variable".into());
        let (loaded, _) = machine.load(Some("~/kb.toml")).unwrap();
        assert_eq!(
            loaded.config.endpoint.unwrap().api_key,
            ApiKey::new("variable").map(KeySetting::Given)
        );
    }

    #[test]
    fn a_file_that_is_not_text_or_far_too_large_is_refused() {
        let machine = Machine::new();
        fs::write(machine.path("home/a.toml"), [0xff, 0xfe]).unwrap();
        machine.write("home/b.toml", &"#".repeat(1024 * 1024 + 1));
        assert!(machine.load(Some("~/a.toml")).unwrap_err().to_string().contains("UTF-8"));
        assert!(machine.load(Some("~/b.toml")).unwrap_err().to_string().contains("1 MiB"));
    }
}
