//! The bearer token: where it comes from, and how it is kept out of sight.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use zeroize::Zeroizing;

/// The most bytes of a token.
const MOST_BYTES: u64 = 16 * 1024;

/// A token, which no output shows and whose memory is wiped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a token; blank space around it is no part of it.
    pub fn new(token: &str) -> Self {
        Self(Zeroizing::new(token.trim().to_owned()))
    }

    /// The token itself, for the request alone.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(not shown)")
    }
}

/// Where a token comes from.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// It is here.
    Given(Secret),
    /// A file holds it and nothing else; read for every request, so that it may
    /// be changed.
    File(PathBuf),
    /// A command prints it: a program and its arguments. Run for every request.
    Command(Vec<String>),
}

impl KeySource {
    /// Gets the token. Reads files and runs programs, so it belongs on a thread
    /// that may block.
    ///
    /// # Errors
    ///
    /// What went wrong, without a word of what was read.
    pub(super) fn get(&self) -> Result<Secret, String> {
        let mut token = Zeroizing::new(String::new());
        match self {
            Self::Given(secret) => return Ok(secret.clone()),
            Self::File(path) => {
                let read = File::open(path)
                    .and_then(|file| file.take(MOST_BYTES).read_to_string(&mut token));
                read.map_err(|error| {
                    format!("the API key cannot be read from {}: {}", path.display(), error.kind())
                })?;
            }
            Self::Command(words) => {
                let Some((program, arguments)) = words.split_first() else {
                    return Err("[embedding].api_key_command names no program".to_owned());
                };
                let failed = |why: &str| format!("[embedding].api_key_command {program:?} {why}");
                let output = Command::new(program)
                    .args(arguments)
                    .stdin(Stdio::null())
                    .stderr(Stdio::null())
                    .output()
                    .map_err(|error| failed(&format!("cannot be run: {}", error.kind())))?;
                let bytes = Zeroizing::new(output.stdout);
                if !output.status.success() {
                    return Err(failed(&format!("ended with {}", output.status)));
                }
                token.push_str(
                    str::from_utf8(&bytes)
                        .map_err(|_| failed("printed something else than text"))?,
                );
            }
        }
        let secret = Secret::new(&token);
        let usable = !secret.reveal().is_empty()
            && secret.reveal().bytes().all(|byte| byte.is_ascii_graphic());
        if usable { Ok(secret) } else { Err(format!("{self} holds no usable API key")) }
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(_) => formatter.write_str("[embedding].api_key"),
            Self::File(path) => write!(formatter, "{}", path.display()),
            Self::Command(_) => formatter.write_str("the output of [embedding].api_key_command"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    // IDX-172
    #[test]
    fn a_token_is_never_shown() {
        let source = KeySource::Given(Secret::new(" s3cret\n"));
        assert_eq!(source.get().unwrap().reveal(), "s3cret");
        assert!(!format!("{source:?} {source}").contains("s3cret"));
    }

    // IDX-B25
    #[test]
    fn a_token_may_come_from_a_file_or_a_command() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "from-file\n").unwrap();
        assert_eq!(KeySource::File(path.clone()).get().unwrap().reveal(), "from-file");
        fs::write(&path, " \n").unwrap();
        let error = KeySource::File(path).get().unwrap_err();
        assert!(error.contains("no usable API key"), "{error}");
        let error = KeySource::File(folder.path().join("none")).get().unwrap_err();
        assert!(error.contains("cannot be read"), "{error}");
    }

    // IDX-B25
    #[cfg(unix)]
    #[test]
    fn a_command_that_fails_is_named_without_its_output() {
        let command = |words: &[&str]| {
            KeySource::Command(words.iter().map(|&word| word.to_owned()).collect()).get()
        };
        assert_eq!(command(&["echo", "printed"]).unwrap().reveal(), "printed");
        for (words, said) in [
            (&["sh", "-c", "echo s3cret; exit 3"][..], "exit status: 3"),
            (&["/no/such/program"], "cannot be run"),
            (&["true"], "no usable API key"),
            (&["echo", "two s3cret words"], "no usable API key"),
            (&[], "names no program"),
        ] {
            let error = command(words).unwrap_err();
            assert!(error.contains(said) && !error.contains("s3cret"), "{error}");
        }
    }
}
