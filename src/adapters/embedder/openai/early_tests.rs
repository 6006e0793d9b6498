//! Answers that arrive before the request is sent, or break off in their
//! headers. The server is as raw as it takes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::adapters::embedder::openai::{Endpoint, OpenAiEmbedder, Proxies};
use crate::ports::embedder::{EmbedError, Embedder as _};

/// Answers every connection with these bytes and nothing else, having read so
/// much of the request.
///
/// - `stay`: whether the connection is kept open afterwards.
/// - Returns the URL, and how many connections there were.
fn server(bytes: &'static str, reads: usize, stay: bool) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/embeddings", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&count);
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            counting.fetch_add(1, Ordering::Relaxed);
            let mut request = vec![0; reads];
            stream.read_exact(&mut request).unwrap();
            stream.write_all(bytes.as_bytes()).unwrap();
            if stay {
                kept.push(stream);
            } else {
                stream.shutdown(Shutdown::Write).unwrap();
            }
        }
    });
    (url, count)
}

async fn failure(url: String, texts: &[String]) -> EmbedError {
    let endpoint = Endpoint {
        url,
        document_model: "m".to_owned(),
        query_model: "m".to_owned(),
        dimension: 4,
        request_dimensions: false,
        key: None,
        timeout: Duration::from_secs(1),
        max_input_chars: 1_000_000,
        max_retries: 1,
        proxies: Proxies::default(),
    };
    OpenAiEmbedder::new(endpoint).unwrap().embed_documents(texts).await.unwrap_err()
}

// IDX-168
#[tokio::test]
async fn a_refusal_that_comes_while_the_request_is_sent_is_a_refusal() {
    let (url, connections) =
        server("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", 512, false);
    let texts = vec!["x".repeat(1_000_000); 32];
    let error = failure(url, &texts).await;
    assert!(
        matches!(&error, EmbedError::Refused { reason, .. } if reason == "HTTP 413"),
        "{error}"
    );
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

// IDX-168
#[tokio::test]
async fn the_status_line_decides_though_its_headers_never_end() {
    for stay in [true, false] {
        let texts = ["a text".to_owned()];
        let (url, connections) = server("HTTP/1.1 422 No\r\nContent-Ty", 64, stay);
        let error = failure(url, &texts).await;
        assert!(matches!(error, EmbedError::Refused { .. }), "{error}");
        assert_eq!(connections.load(Ordering::Relaxed), 1);

        let (url, connections) = server("HTTP/1.1 200 OK\r\nContent-Ty", 64, stay);
        let error = failure(url, &texts).await.to_string();
        assert!(error.contains("broke off its answer of HTTP 200"), "{error}");
        assert_eq!(connections.load(Ordering::Relaxed), 1);

        let (url, connections) = server("HTTP/1.1 404 No\r\n", 64, stay);
        let error = failure(url, &texts).await.to_string();
        assert!(error.contains("answered HTTP 404"), "{error}");
        assert_eq!(connections.load(Ordering::Relaxed), 1);

        let (url, connections) = server("HTTP/1.1 503 Later\r\n", 64, stay);
        let error = failure(url, &texts).await.to_string();
        assert!(error.contains("HTTP 503") && error.contains("2 attempt"), "{error}");
        assert_eq!(connections.load(Ordering::Relaxed), 2);
    }
}
