//! The section `[embedding]`: a local model or an endpoint.

use std::path::Path;
use std::time::Duration;

use crate::app::config::{ApiKey, Config, EndpointSettings, KeySetting};
use crate::app::config_file::error::ConfigError;
use crate::app::config_file::keys::shown;
use crate::app::config_file::read::Reader;
use crate::ports::embedder::{EngineChoice, PrecisionChoice};

/// The keys that mean something only with an endpoint.
const ENDPOINT_ONLY: [&str; 11] = [
    "embedding.endpoint",
    "embedding.query_model",
    "embedding.document_model",
    "embedding.dimension",
    "embedding.request_dimensions",
    "embedding.api_key",
    "embedding.api_key_file",
    "embedding.api_key_command",
    "embedding.timeout_seconds",
    "embedding.max_input_chars",
    "embedding.max_retries",
];

/// The keys that mean something only with a local model.
const LOCAL_ONLY: [&str; 2] = ["embedding.engine", "embedding.precision"];

/// What stands in front of a folder that holds a model.
pub(super) const FOLDER: &str = "dir:";

const LOCAL: &str = "fastembed";
const ENDPOINT: &str = "openai-compatible";

/// Reads where embeddings come from.
pub(super) fn read(
    reader: &Reader<'_>,
    models: &[&str],
    api_key: Option<&ApiKey>,
    config: &mut Config,
) -> Result<(), ConfigError> {
    let top_level = local_model(reader, "model", models)?;
    if reader.choice("embedding.provider", &[LOCAL, ENDPOINT])? == Some(ENDPOINT) {
        if top_level.is_some() {
            return Err(reader.conflict(
                "model",
                "model names a local model, but [embedding].provider = \"openai-compatible\" takes \
                 embeddings from an endpoint; remove model, and name the endpoint's model in \
                 [embedding].model",
            ));
        }
        if let Some(key) = LOCAL_ONLY.iter().find(|key| reader.has(key)) {
            let reason = format!(
                "{} says how a local model runs; remove it, or take the provider \"{LOCAL}\"",
                shown(key)
            );
            return Err(reader.conflict(key, &reason));
        }
        config.endpoint = Some(endpoint(reader, api_key)?);
        return Ok(());
    }
    if let Some(key) = ENDPOINT_ONLY.iter().find(|key| reader.has(key)) {
        return Err(reader.conflict(
            key,
            &format!(
                "{} needs [embedding].provider = \"openai-compatible\"; the provider is \"{LOCAL}\"",
                shown(key)
            ),
        ));
    }
    let own = local_model(reader, "embedding.model", models)?;
    if own.is_some() && top_level.is_some() {
        return Err(reader.conflict(
            "embedding.model",
            "model and [embedding].model both name the local model; keep one of the two",
        ));
    }
    if let Some(name) = own.or(top_level) {
        config.use_local_model(name);
    }
    config.engine = match reader.choice("embedding.engine", &["auto", "native", "onnx"])? {
        Some("native") => EngineChoice::Native,
        Some("onnx") => EngineChoice::Onnx,
        _ => EngineChoice::Auto,
    };
    config.precision = match reader.choice("embedding.precision", &["auto", "f32", "int8"])? {
        Some("f32") => PrecisionChoice::F32,
        Some("int8") => PrecisionChoice::Int8,
        _ => PrecisionChoice::Auto,
    };
    Ok(())
}

/// A name of the catalogue, or `dir:` and an absolute path.
pub(super) fn local_model<'a>(
    reader: &'a Reader<'_>,
    key: &str,
    models: &[&str],
) -> Result<Option<&'a str>, ConfigError> {
    match reader.text(key).and_then(|text| Some((text, text.strip_prefix(FOLDER)?))) {
        Some((text, folder)) if Path::new(folder).is_absolute() => Ok(Some(text)),
        Some(_) => Err(reader.refused(
            key,
            "the name of a known model, or \"dir:\" and an absolute path such as \
             \"dir:/srv/models/mine\"",
        )),
        None => reader.choice(key, models),
    }
}

fn endpoint(
    reader: &Reader<'_>,
    api_key: Option<&ApiKey>,
) -> Result<EndpointSettings, ConfigError> {
    let missing = |key: &str| {
        reader.missing(key, "[embedding].provider = \"openai-compatible\" calls for it")
    };
    let url = reader.text("embedding.endpoint").ok_or_else(|| missing("embedding.endpoint"))?;
    if !is_endpoint_url(url) {
        return Err(reader.refused(
            "embedding.endpoint",
            "an absolute http or https URL without a user name or password",
        ));
    }
    let model = reader.name("embedding.model")?;
    let alias = |key: &str| {
        reader.name(key)?.or(model).map(str::to_owned).ok_or_else(|| {
            reader.missing(
                key,
                "without [embedding].model both [embedding].document_model and \
                 [embedding].query_model are called for",
            )
        })
    };
    let seconds = reader.integer("embedding.timeout_seconds", 1..=i64::MAX)?.unwrap_or(60);
    Ok(EndpointSettings {
        url: url.to_owned(),
        document_model: alias("embedding.document_model")?,
        query_model: alias("embedding.query_model")?,
        dimension: reader
            .integer("embedding.dimension", 1..=8192)?
            .ok_or_else(|| missing("embedding.dimension"))?,
        request_dimensions: reader.flag("embedding.request_dimensions").unwrap_or(false),
        api_key: key(reader, api_key)?,
        timeout: Duration::from_secs(seconds),
        max_input_chars: reader.integer("embedding.max_input_chars", 1..=i64::MAX)?.unwrap_or(8000),
        max_retries: reader.integer("embedding.max_retries", 0..=10)?.unwrap_or(3),
    })
}

/// Where the bearer token comes from: the environment, else one of three keys.
fn key(
    reader: &Reader<'_>,
    from_environment: Option<&ApiKey>,
) -> Result<Option<KeySetting>, ConfigError> {
    let named = ["embedding.api_key", "embedding.api_key_file", "embedding.api_key_command"]
        .into_iter()
        .filter(|key| reader.has(key))
        .collect::<Vec<_>>();
    if let [_, second, ..] = named[..] {
        let keys: Vec<String> = named.iter().map(|key| shown(key)).collect();
        let reason = format!("{} all name the API key; keep one of them", keys.join(", "));
        return Err(reader.conflict(second, &reason));
    }
    let file = reader.absolute_path("embedding.api_key_file")?;
    let command = reader.texts("embedding.api_key_command");
    if command.as_ref().is_some_and(|words| words.first().is_none_or(String::is_empty)) {
        return Err(reader.refused(
            "embedding.api_key_command",
            "a program and its arguments, as a list of strings",
        ));
    }
    let given = from_environment
        .cloned()
        .or_else(|| reader.text("embedding.api_key").and_then(ApiKey::new));
    Ok(given
        .map(KeySetting::Given)
        .or(file.map(KeySetting::File))
        .or(command.map(KeySetting::Command)))
}

/// Tells whether a text is an absolute `http` or `https` URL without user
/// information. Stricter than a browser: nothing is repaired, so that no two
/// readers see different hosts in it.
fn is_endpoint_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
        && !text.contains(odd)
        && !authority.contains('@')
        && has_host_and_port(authority)
}

fn has_host_and_port(authority: &str) -> bool {
    let (host, rest) = if let Some(inner) = authority.strip_prefix('[') {
        let Some((address, rest)) = inner.split_once(']') else {
            return false;
        };
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return false;
        }
        (address, rest)
    } else {
        authority.split_at(authority.find(':').unwrap_or(authority.len()))
    };
    let port_is_fine = rest.is_empty()
        || rest.strip_prefix(':').is_some_and(|port| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
        });
    !host.is_empty() && port_is_fine
}

/// A URL in quotes as messages show it: without user information, query and
/// fragment, any of which may be secret.
pub(super) fn shown_url(url: &str) -> String {
    let public = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = match public.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), public),
    };
    let visible = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("\"{scheme}{visible}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::config::ApiKey;
    use crate::app::config_file::testing::{read, read_with_key, refusal};

    const MINIMAL: &str = "[embedding]\nprovider = 'openai-compatible'\n\
        endpoint = 'https://host.example/v1/embeddings'\nmodel = 'm'\ndimension = 256\n";

    fn with(line: &str) -> String {
        format!("{MINIMAL}{line}\n")
    }

    // CFG-50 CFG-51 CFG-53 CFG-54 CFG-55 CFG-57 CFG-58 CFG-59
    #[test]
    fn an_endpoint_needs_url_model_and_dimension_and_has_defaults_for_the_rest() {
        assert_eq!(
            read(MINIMAL).endpoint,
            Some(EndpointSettings {
                url: "https://host.example/v1/embeddings".to_owned(),
                document_model: "m".to_owned(),
                query_model: "m".to_owned(),
                dimension: 256,
                request_dimensions: false,
                api_key: None,
                timeout: Duration::from_mins(1),
                max_input_chars: 8000,
                max_retries: 3,
            })
        );
        for (key, line) in [
            ("endpoint", "endpoint = 'https://host.example/v1/embeddings'\n"),
            ("model", "model = 'm'\n"),
            ("dimension", "dimension = 256\n"),
        ] {
            let message = refusal(&MINIMAL.replace(line, ""));
            assert!(message.contains(key) && message.contains("missing"), "{message}");
        }
    }

    // CFG-52
    #[test]
    fn an_alias_wins_for_its_role_and_without_a_model_both_are_needed() {
        let endpoint = read(&with("query_model = ' q '")).endpoint.unwrap();
        assert_eq!((endpoint.query_model.as_str(), endpoint.document_model.as_str()), ("q", "m"));
        let both = with("query_model = 'q'\ndocument_model = 'd'").replace("model = 'm'\n", "");
        let endpoint = read(&both).endpoint.unwrap();
        assert_eq!((endpoint.query_model.as_str(), endpoint.document_model.as_str()), ("q", "d"));
        let one = with("query_model = 'q'").replace("model = 'm'\n", "");
        assert!(refusal(&one).contains("[embedding].document_model"));
        assert!(refusal(&with("query_model = '  '")).contains("[embedding].query_model"));
    }

    // CFG-54 CFG-57 CFG-58 CFG-59
    #[test]
    fn numbers_of_an_endpoint_keep_to_their_ranges() {
        for dimension in [1, 8192] {
            let text = MINIMAL.replace("256", &dimension.to_string());
            assert_eq!(read(&text).endpoint.unwrap().dimension, dimension);
        }
        for dimension in ["0", "8193", "-1"] {
            let message = refusal(&MINIMAL.replace("256", dimension));
            assert!(message.contains("[embedding].dimension") && message.contains("1 to 8192"));
        }
        for line in
            ["timeout_seconds = 0", "max_input_chars = 0", "max_retries = 11", "max_retries = -1"]
        {
            let key = line.split(' ').next().unwrap();
            assert!(refusal(&with(line)).contains(key), "{line}");
        }
        assert_eq!(read(&with("max_retries = 0")).endpoint.unwrap().max_retries, 0);
    }

    // CFG-53
    #[test]
    fn an_endpoint_is_an_absolute_web_address_without_user_information() {
        for url in
            ["http://localhost:11434/v1", "HTTPS://h", "http://[::1]:8080/e?x=1", "http://h:1/a@b"]
        {
            assert!(is_endpoint_url(url), "{url}");
        }
        for url in [
            "",
            "/v1/embeddings",
            "host/v1",
            "ftp://host/v1",
            "http://",
            "http:///v1",
            "http://:80/",
            "http://h:port/",
            "http://h:99999/",
            "http://u@h/",
            "http://u:p@h/",
            "http://h\\@evil/",
            "http://h /",
            "http://[::1/",
            "http://[]/",
        ] {
            assert!(!is_endpoint_url(url), "{url}");
        }
        let message = refusal(&MINIMAL.replace("host.example", "user:s3cret@host.example"));
        assert!(message.contains("[embedding].endpoint") && !message.contains("s3cret"));
    }

    // CFG-56 CFG-70c
    #[test]
    fn the_key_of_the_environment_wins_and_a_blank_one_is_none() {
        let token = |text: &str, variable: &str| {
            let endpoint = read_with_key(text, ApiKey::new(variable)).endpoint.unwrap();
            endpoint.api_key.map(|key| match key {
                KeySetting::Given(key) => key.reveal().to_owned(),
                other => format!("{other:?}"),
            })
        };
        let file = with("api_key = 'from file'");
        assert_eq!(token(&file, "from variable").as_deref(), Some("from variable"));
        assert_eq!(token(&file, "").as_deref(), Some("from file"));
        assert_eq!(token(&with("api_key = ' '"), ""), None);
        let file = with("api_key_file = '/run/secrets/key'");
        assert_eq!(token(&file, "from variable").as_deref(), Some("from variable"));
    }

    // IDX-B25
    #[test]
    fn the_key_may_come_from_a_file_or_a_command_but_from_one_place_only() {
        let key = |line: &str| read(&with(line)).endpoint.unwrap().api_key;
        let file = KeySetting::File("/run/secrets/key".into());
        assert_eq!(key("api_key_file = '/run/secrets/key'"), Some(file));
        let command = KeySetting::Command(vec!["pass".to_owned(), "embeddings".to_owned()]);
        assert_eq!(key("api_key_command = ['pass', 'embeddings']"), Some(command));
        for (line, said) in [
            ("api_key_file = 'key'", "an absolute path"),
            ("api_key_command = []", "a program and its arguments"),
            ("api_key_command = ['']", "a program and its arguments"),
            ("api_key_command = 'pass s3cret'", "a list of strings"),
            ("api_key = 's3cret'\napi_key_file = '/k'", "keep one of them"),
            ("api_key_file = '/k'\napi_key_command = ['p', 's3cret']", "keep one of them"),
        ] {
            let message = refusal(&with(line));
            assert!(message.contains(said) && !message.contains("s3cret"), "{line}: {message}");
        }
    }

    // IDX-172
    #[test]
    fn a_configuration_can_be_printed_without_its_key() {
        let config = read(&with("api_key = 's3cret'"));
        assert!(!format!("{config:?}").contains("s3cret"));
    }

    // CFG-60
    #[test]
    fn a_local_provider_refuses_every_key_of_an_endpoint() {
        for key in ENDPOINT_ONLY {
            let name = key.split_once('.').unwrap().1;
            let value = match name {
                "dimension" | "timeout_seconds" | "max_input_chars" | "max_retries" => "1",
                "api_key_command" => "['a']",
                "request_dimensions" => "false",
                _ => "'https://h'",
            };
            for provider in ["", "provider = 'fastembed'\n"] {
                let message = refusal(&format!("[embedding]\n{provider}{name} = {value}"));
                assert!(message.contains(&shown(key)), "{message}");
                assert!(message.contains("openai-compatible"), "{message}");
            }
        }
    }

    // CFG-51
    #[test]
    fn a_local_provider_takes_its_model_from_its_section() {
        assert_eq!(read("[embedding]\nmodel = 'bge-m3'").model, "bge-m3");
        assert!(refusal("[embedding]\nmodel = 'gpt'").contains("bge-small-en-v1.5"));
    }

    // CFG-61
    #[test]
    fn a_model_at_the_top_goes_with_no_other_choice_of_a_model() {
        for text in [
            format!("model = 'bge-m3'\n{MINIMAL}"),
            "model = 'bge-m3'\nembedding.model = 'bge-m3'".into(),
        ] {
            let message = refusal(&text);
            assert!(message.contains("[embedding]") && message.contains("model"), "{message}");
        }
        let message = refusal(&format!("model = 'bge-m3'\n{MINIMAL}"));
        assert!(message.contains("provider"), "{message}");
    }

    // CFG-50
    #[test]
    fn another_provider_is_refused() {
        let message = refusal("[embedding]\nprovider = 'openai'");
        assert!(
            message.contains("fastembed") && message.contains("openai-compatible"),
            "{message}"
        );
    }
}
