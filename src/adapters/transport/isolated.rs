//! Keeps a panic of one request away from every other.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;

use crate::ports::transport::Refused;

/// Runs the work of one request; a panic in it becomes a refusal.
///
/// The panic itself is reported to standard error by the panic hook, so the
/// client learns only that there was one.
pub(super) async fn isolated<T>(
    work: impl Future<Output = Result<T, Refused>>,
) -> Result<T, Refused> {
    // Nothing of the work is used after a panic, so nothing half-changed is seen.
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("a request ended in a panic");
        Err(Refused {
            message: "internal error: the request failed unexpectedly; the server's log has \
                      the details"
                .into(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // MCP-07 SRCH-184
    #[tokio::test]
    async fn a_panic_becomes_a_refusal() {
        let refused = isolated(async { panic!("on purpose") }).await as Result<(), Refused>;
        assert!(refused.unwrap_err().message.starts_with("internal error"));
    }

    #[tokio::test]
    async fn what_does_not_panic_passes_through() {
        assert_eq!(isolated(async { Ok(1) }).await, Ok(1));
        let refused = Refused { message: "no".into() };
        assert_eq!(isolated::<()>(async { Err(refused.clone()) }).await, Err(refused.clone()));
    }
}
