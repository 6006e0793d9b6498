//! The guard around every parser: a panic inside becomes a refusal.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::domain::format::Format;
use crate::ports::parser::{ParseError, ParseInput, ParsedDocument, Parser};

/// A parser whose panics are errors.
///
/// A panic inside is answered with [`ParseError::Panicked`] and is not printed;
/// panics of other threads are reported as ever. What aborts the process, such
/// as a stack overflow, cannot be caught here.
pub struct Guarded {
    inner: Box<dyn Parser>,
}

impl Guarded {
    /// Puts a guard around a parser.
    pub fn new(inner: impl Parser + 'static) -> Self {
        Self { inner: Box::new(inner) }
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Guarded").field("format", &self.inner.format()).finish()
    }
}

impl Parser for Guarded {
    fn format(&self) -> Format {
        self.inner.format()
    }

    fn version(&self) -> u32 {
        self.inner.version()
    }

    fn parse(&self, input: &ParseInput<'_>) -> Result<ParsedDocument, ParseError> {
        install_hook();
        let silence = Silence::begin();
        // Whatever a panic leaves half done is dropped with the answer.
        let answer = panic::catch_unwind(AssertUnwindSafe(|| self.inner.parse(input)));
        drop(silence);
        answer.unwrap_or_else(|payload| {
            Err(ParseError::Panicked {
                parser: self.inner.format().id,
                message: message(payload.as_ref()),
            })
        })
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "it gave no reason".to_owned()
    }
}

thread_local! {
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

/// Keeps panics of this thread from being printed, until it is dropped.
struct Silence {
    outer: bool,
}

impl Silence {
    fn begin() -> Self {
        Self { outer: SILENT.replace(true) }
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        SILENT.set(self.outer);
    }
}

/// Puts a filter before the panic hook of the process, once.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // A thread that is ending has no cell any more, and parses nothing.
            if !SILENT.try_with(Cell::get).unwrap_or(false) {
                report(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;

    use super::*;
    use crate::domain::document::DocumentPath;
    use crate::domain::format::MARKDOWN;

    struct Fails(fn());

    impl Parser for Fails {
        fn format(&self) -> Format {
            MARKDOWN
        }

        fn version(&self) -> u32 {
            1
        }

        fn parse(&self, _input: &ParseInput<'_>) -> Result<ParsedDocument, ParseError> {
            (self.0)();
            Ok(ParsedDocument::default())
        }
    }

    fn parse(fails: fn()) -> Result<ParsedDocument, ParseError> {
        let path = DocumentPath::new("a.md").unwrap();
        let input = ParseInput { path: &path, bytes: b"", exclude_headings: &[] };
        Guarded::new(Fails(fails)).parse(&input)
    }

    fn panicked(message: &str) -> Result<ParsedDocument, ParseError> {
        Err(ParseError::Panicked { parser: "md", message: message.into() })
    }

    // FMT-GEN-08
    #[test]
    fn a_panic_becomes_an_error_with_its_message() {
        assert_eq!(parse(|| panic!("a fixed reason")), panicked("a fixed reason"));
        assert_eq!(parse(|| panic!("reason {}", 7)), panicked("reason 7"));
        assert_eq!(parse(|| panic::panic_any(7)), panicked("it gave no reason"));
        assert_eq!(parse(|| {}), Ok(ParsedDocument::default()));
    }

    // FMT-GEN-08
    #[test]
    fn the_state_outside_is_restored() {
        assert!(!SILENT.get());
        let nested = || {
            assert_eq!(parse(|| panic!("inner")), panicked("inner"));
            assert!(SILENT.get(), "the outer parse is still on");
            panic!("outer");
        };
        assert_eq!(parse(nested), panicked("outer"));
        assert!(!SILENT.get());
    }

    const CHILD: &str = "GROOVESEEK_TEST_GUARDED_CHILD";

    /// Runs itself in a process of its own, whose panic hook and standard error
    /// no other test shares.
    // FMT-GEN-08
    #[test]
    fn only_panics_of_guarded_parses_are_silent() {
        if std::env::var_os(CHILD).is_some() {
            assert_eq!(parse(|| panic!("silent-one")), panicked("silent-one"));
            let nested = || {
                let other = thread::spawn(|| panic!("loud-other-thread"));
                assert!(other.join().is_err());
                assert_eq!(parse(|| panic!("silent-inner")), panicked("silent-inner"));
                panic!("silent-outer");
            };
            assert_eq!(parse(nested), panicked("silent-outer"));
            assert!(panic::catch_unwind(|| panic!("loud-after")).is_err());
            return;
        }
        let name = thread::current().name().unwrap_or_default().to_owned();
        let output = Command::new(std::env::current_exe().unwrap())
            .args([name.as_str(), "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .env("RUST_BACKTRACE", "1")
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}");
        assert!(
            printed.contains("loud-other-thread") && printed.contains("loud-after"),
            "{printed}"
        );
        assert!(!printed.contains("silent-"), "{printed}");
    }
}
