//! The ONNX Runtime of this process, found and loaded at run time.

use std::path::{Path, PathBuf};

use crate::adapters::model::locate;
use crate::ports::Cause;

/// No library of ONNX Runtime could be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no usable ONNX Runtime: set ORT_DYLIB_PATH to the library of version 1.24 or later{}",
    details(.tried)
)]
pub struct NoRuntime {
    /// What was tried, and why each was of no use.
    pub tried: Vec<String>,
}

impl NoRuntime {
    /// Says of each place why it is of no use before any library is tried.
    pub fn among(places: &[PathBuf]) -> Self {
        Self { tried: places.iter().filter_map(|place| why_not(place)).collect() }
    }
}

/// What is wrong with a place that no library can be taken from.
fn why_not(place: &Path) -> Option<String> {
    if !place.exists() {
        return Some(format!("{} does not exist", place.display()));
    }
    let library = format!("libonnxruntime{}", std::env::consts::DLL_SUFFIX);
    locate::runtime_libraries(std::slice::from_ref(&place.to_owned()))
        .is_empty()
        .then(|| format!("{} holds no {library}", place.display()))
}

/// Why nothing can be run as ONNX here, with what was tried and what to do.
pub fn no_runtime(places: &[PathBuf]) -> Cause {
    if cfg!(feature = "onnx") {
        NoRuntime::among(places).into()
    } else {
        "this program was built without the feature \"onnx\"".into()
    }
}

fn details(tried: &[String]) -> String {
    if tried.is_empty() { String::new() } else { format!("; tried: {}", tried.join(", ")) }
}

/// The ONNX Runtime of this process: at the first call that succeeds, the first
/// library that works.
///
/// # Errors
///
/// [`NoRuntime`] if there is none.
#[cfg(feature = "onnx")]
pub fn environment(places: &[PathBuf]) -> Result<ort::environment::Environment, NoRuntime> {
    use std::sync::{Mutex, PoisonError};

    static LOADED: Mutex<Option<ort::environment::Environment>> = Mutex::new(None);
    let NoRuntime { mut tried } = NoRuntime::among(places);
    let libraries = locate::runtime_libraries(places);
    if libraries.is_empty() {
        return Err(NoRuntime { tried });
    }
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(environment) = loaded.as_ref() {
        return Ok(environment.clone());
    }
    for library in libraries {
        // Asking for a library by its path is the one way that cannot panic.
        let builder = match ort::init_from(&library) {
            Ok(builder) => builder,
            Err(error) => {
                tried.push(error.to_string());
                continue;
            }
        };
        match builder.with_name("groove").with_telemetry(false).build() {
            Ok(environment) => {
                tracing::info!(library = %library.display(), "ONNX Runtime loaded");
                *loaded = Some(environment.clone());
                return Ok(environment);
            }
            Err(error) => tried.push(format!("{}: {error}", library.display())),
        }
    }
    Err(NoRuntime { tried })
}
