use std::fmt::Write as _;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::*;

#[path = "../../../../tests/support/endpoint.rs"]
mod endpoint;

use endpoint::{Act, DIMENSION, FakeEndpoint};

fn at(url: String) -> Endpoint {
    Endpoint {
        url,
        document_model: "documents".to_owned(),
        query_model: "queries".to_owned(),
        dimension: DIMENSION,
        request_dimensions: false,
        key: None,
        timeout: Duration::from_secs(20),
        max_input_chars: 8000,
        max_retries: 0,
        proxies: Proxies::default(),
    }
}

fn of(fake: &FakeEndpoint) -> Endpoint {
    at(fake.url())
}

fn embedder(endpoint: Endpoint) -> OpenAiEmbedder {
    OpenAiEmbedder::new(endpoint).unwrap()
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("text number {number}")).collect()
}

fn status(status: u16) -> Act {
    Act::Answer(status, "", "{\"error\": \"s3cret ü\\n\"}".to_owned())
}

async fn failure(embedder: &OpenAiEmbedder) -> EmbedError {
    embedder.embed_documents(&texts(1)).await.unwrap_err()
}

// IDX-165
#[tokio::test]
async fn a_request_names_model_and_inputs_and_bears_the_key() {
    let fake = FakeEndpoint::new(&[]);
    let key = Some(KeySource::Given(Secret::new("k3y")));
    let endpoint = Endpoint { key, request_dimensions: true, ..of(&fake) };
    let embedder = embedder(endpoint);
    embedder.embed_documents(&texts(2)).await.unwrap();
    embedder.embed_query("what?").await.unwrap();
    let received = fake.take();
    assert_eq!(received[0].target, "/v1/embeddings");
    let expected = json!({
        "model": "documents", "input": ["text number 0", "text number 1"], "dimensions": DIMENSION
    });
    assert_eq!(received[0].body, expected);
    let expected = json!({ "model": "queries", "input": ["what?"], "dimensions": DIMENSION });
    assert_eq!(received[1].body, expected);
    let headers: Vec<String> =
        received[0].headers.iter().map(|line| line.to_ascii_lowercase()).collect();
    assert!(headers.contains(&"authorization: bearer k3y".to_owned()), "{headers:?}");
    assert!(headers.contains(&"content-type: application/json".to_owned()), "{headers:?}");
}

// IDX-165 CFG-55
#[tokio::test]
async fn without_a_key_and_a_wish_a_request_has_neither() {
    let fake = FakeEndpoint::new(&[]);
    embedder(of(&fake)).embed_documents(&texts(1)).await.unwrap();
    let received = &fake.take()[0];
    assert!(received.body.get("dimensions").is_none());
    assert!(!received.headers.iter().any(|line| line.to_lowercase().starts_with("authorization")));
}

// IDX-165 IDX-B26
#[tokio::test]
async fn many_texts_go_in_batches_some_at_a_time_and_come_back_in_order() {
    let fake = FakeEndpoint::new(&[]);
    fake.always(Some(Act::EmbedAfter(Duration::from_millis(100))));
    let embedder = embedder(of(&fake));
    let texts = texts(64 * 6 + 1);
    let all = embedder.embed_documents(&texts).await.unwrap().embeddings;
    let sizes: Vec<usize> =
        fake.take().iter().map(|one| one.body["input"].as_array().unwrap().len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), texts.len());
    assert!(sizes.iter().all(|size| *size <= 64), "{sizes:?}");
    assert!((2..=IN_FLIGHT).contains(&fake.most_at_once()), "{}", fake.most_at_once());
    for place in [0, 63, 64, 200, 384] {
        let alone = embedder.embed_documents(&texts[place..=place]).await.unwrap().embeddings;
        assert_eq!(alone[0], all[place]);
    }
    assert!(embedder.embed_documents(&[]).await.unwrap().embeddings.is_empty());
}

// IDX-167
#[tokio::test]
async fn the_order_of_entries_does_not_matter() {
    let fake = FakeEndpoint::new(&[Act::Embed, Act::EmbedBackwards]);
    let embedder = embedder(of(&fake));
    let forwards = embedder.embed_documents(&texts(5)).await.unwrap().embeddings;
    assert_eq!(embedder.embed_documents(&texts(5)).await.unwrap().embeddings, forwards);
}

// CFG-58
#[tokio::test]
async fn a_text_is_cut_by_characters_before_it_is_sent() {
    let fake = FakeEndpoint::new(&[]);
    let embedder = embedder(Endpoint { max_input_chars: 3, ..of(&fake) });
    let texts = ["日本語です", "abc", "ab"].map(str::to_owned);
    embedder.embed_documents(&texts).await.unwrap();
    embedder.embed_query("äöüß").await.unwrap();
    let received = fake.take();
    assert_eq!(received[0].body["input"], json!(["日本語", "abc", "ab"]));
    assert_eq!(received[1].body["input"], json!(["äöü"]));
}

// IDX-168
#[tokio::test]
async fn an_input_that_is_refused_is_not_tried_again() {
    for code in [400, 413, 422] {
        let fake = FakeEndpoint::new(&[status(code)]);
        let embedder = embedder(Endpoint { max_retries: 3, ..of(&fake) });
        let error = failure(&embedder).await;
        let EmbedError::Refused { reason, accepted_others: false } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(*reason, format!("HTTP {code}"));
        assert_eq!(fake.take().len(), 1);
    }
}

// IDX-170
#[tokio::test]
async fn a_refusal_tells_whether_other_batches_were_taken() {
    let fake = FakeEndpoint::new(&[]);
    fake.refuse("number 70", 413);
    let error = embedder(of(&fake)).embed_documents(&texts(100)).await.unwrap_err();
    assert!(matches!(error, EmbedError::Refused { accepted_others: true, .. }), "{error:?}");
}

// IDX-168
#[tokio::test]
async fn a_status_that_nothing_helps_stops_at_once() {
    for code in [301, 302, 307, 401, 403, 404, 408, 418] {
        let fake = FakeEndpoint::new(&[status(code)]);
        let embedder = embedder(Endpoint { max_retries: 3, ..of(&fake) });
        let error = failure(&embedder).await;
        assert!(error.to_string().contains(&format!("answered HTTP {code}")), "{error}");
        assert!(matches!(error, EmbedError::Remote { .. }), "{error:?}");
        assert_eq!(fake.take().len(), 1, "{code}");
    }
}

// IDX-165
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = FakeEndpoint::new(&[]);
    let header: &'static str = Box::leak(format!("location: {}\r\n", other.url()).into_boxed_str());
    let fake = FakeEndpoint::new(&[Act::Answer(307, header, String::new())]);
    failure(&embedder(of(&fake))).await;
    assert!(other.take().is_empty());
}

// IDX-168 IDX-169
#[tokio::test]
async fn what_may_pass_is_tried_again_and_then_succeeds() {
    let now = "retry-after: 0\r\n";
    let busy = |code| Act::Answer(code, now, String::new());
    let fake = FakeEndpoint::new(&[busy(429), busy(500), busy(599)]);
    let embedder = embedder(Endpoint { max_retries: 3, ..of(&fake) });
    assert_eq!(embedder.embed_documents(&texts(1)).await.unwrap().embeddings.len(), 1);
    assert_eq!(fake.take().len(), 4);
}

// IDX-168 IDX-169
#[tokio::test]
async fn a_connection_that_is_dropped_before_an_answer_is_tried_again() {
    let fake = FakeEndpoint::new(&[Act::Drop]);
    let embedder = embedder(Endpoint { max_retries: 1, ..of(&fake) });
    let start = Instant::now();
    assert_eq!(embedder.embed_documents(&texts(1)).await.unwrap().embeddings.len(), 1);
    assert!(start.elapsed() >= Duration::from_secs(1), "a wait comes first");
    assert_eq!(fake.take().len(), 2);
}

// IDX-168 IDX-169
#[tokio::test]
async fn who_gives_up_says_how_often_it_tried_and_why() {
    let fake = FakeEndpoint::new(&[]);
    let busy = Act::Answer(503, "retry-after: 0\r\n", String::new());
    fake.always(Some(busy.clone()));
    let error = failure(&embedder(Endpoint { max_retries: 2, ..of(&fake) })).await.to_string();
    assert!(error.contains("answered HTTP 503"), "{error}");
    assert!(error.contains("gave up after 3 attempt(s)"), "{error}");
    assert_eq!(fake.take().len(), 3);
    // Who is not to try again reports the first failure as it is.
    let error = failure(&embedder(of(&fake))).await.to_string();
    assert!(error.contains("answered HTTP 503") && !error.contains("gave up"), "{error}");
    assert_eq!(fake.take().len(), 1);
}

// IDX-169
#[tokio::test]
async fn who_asks_for_a_long_wait_is_not_waited_for() {
    let fake = FakeEndpoint::new(&[]);
    fake.always(Some(Act::Answer(429, "retry-after: 61\r\n", "s3cret".to_owned())));
    let start = Instant::now();
    let error = failure(&embedder(Endpoint { max_retries: 5, ..of(&fake) })).await;
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(error.to_string().contains("HTTP 429"), "{error}");
    assert!(matches!(error, EmbedError::Remote { answer: None, .. }), "{error:?}");
    assert_eq!(fake.take().len(), 1);
}

// IDX-168
#[tokio::test]
async fn silence_is_a_failure_that_may_pass_and_nobody_listening_too() {
    let fake = FakeEndpoint::new(&[Act::Silence]);
    let timeout = Duration::from_millis(300);
    let patient = embedder(Endpoint { timeout, max_retries: 1, ..of(&fake) });
    assert_eq!(patient.embed_documents(&texts(1)).await.unwrap().embeddings.len(), 1);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody = at(format!("http://127.0.0.1:{port}/v1"));
    let error = failure(&embedder(Endpoint { max_retries: 1, ..nobody })).await.to_string();
    assert!(error.contains("after 2 attempt(s)"), "{error}");
}

// IDX-168
#[tokio::test]
async fn a_body_that_stalls_or_breaks_off_does_not_change_what_the_status_says() {
    for stay in [true, false] {
        let begin = |status| Act::Begin { status, stay };
        let timeout = Duration::from_millis(400);
        let fake = FakeEndpoint::new(&[begin(200), begin(413), begin(401), begin(503)]);
        let one = embedder(Endpoint { timeout, max_retries: 1, ..of(&fake) });
        let error = failure(&one).await;
        assert!(error.to_string().contains("broke off its answer"), "{error}");
        assert_eq!(fake.take().len(), 1, "a body is not asked for twice");
        assert!(matches!(failure(&one).await, EmbedError::Refused { .. }));
        let error = failure(&one).await;
        assert!(error.to_string().contains("HTTP 401"), "{error}");
        assert_eq!(one.embed_documents(&texts(1)).await.unwrap().embeddings.len(), 1);
        assert_eq!(fake.take().len(), 4);
    }
}

// IDX-166
#[tokio::test]
async fn an_answer_without_end_is_not_read_to_it() {
    let fake = FakeEndpoint::new(&[Act::Flood]);
    let error = failure(&embedder(Endpoint { max_retries: 3, ..of(&fake) })).await.to_string();
    assert!(error.contains("sent more than the"), "{error}");
    assert_eq!(fake.take().len(), 1);
}

// IDX-167 IDX-168
#[tokio::test]
async fn an_answer_in_the_wrong_shape_stops() {
    let zeros = json!({ "data": [{ "index": 0, "embedding": vec![0; DIMENSION] }] }).to_string();
    for (body, said) in [
        ("{\"data\": [", "ends early"),
        ("{\"data\": [{\"index\": 0, \"embedding\": [1, 2]}]}", "a vector of 2 numbers"),
        (&*zeros, "no direction"),
        ("{\"data\": [{\"index\": 0, \"embedding\": [NaN]}]}", "not valid JSON"),
        ("{\"s3cret\": 1}", "not of the form"),
    ] {
        let fake = FakeEndpoint::new(&[Act::Answer(200, "", body.to_owned())]);
        let error = failure(&embedder(Endpoint { max_retries: 3, ..of(&fake) })).await.to_string();
        assert!(error.contains(said) && !error.contains("s3cret"), "{error}");
        assert_eq!(fake.take().len(), 1);
    }
    let fake = FakeEndpoint::new(&[Act::Babble]);
    let error = failure(&embedder(Endpoint { max_retries: 3, ..of(&fake) })).await.to_string();
    assert!(error.contains("does not speak HTTP"), "{error}");
    assert_eq!(fake.take().len(), 1);
}

// IDX-172
#[tokio::test]
async fn what_the_endpoint_said_is_for_the_operator_alone() {
    let long = "é".repeat(600);
    for (body, shown) in [
        (
            "{\"error\": \"no such model ü\n\"}".to_owned(),
            "{\"error\": \"no such model \\u{fc}\\u{a}\"}",
        ),
        (long, &*"\\u{e9}".repeat(256)),
    ] {
        let fake = FakeEndpoint::new(&[Act::Answer(404, "", body)]);
        let error = failure(&embedder(of(&fake))).await;
        assert!(!error.to_string().contains("no such") && !error.to_string().contains('é'));
        let EmbedError::Remote { answer: Some(answer), .. } = error else { panic!("{error:?}") };
        assert_eq!(answer, shown);
    }
}

// IDX-172
#[tokio::test]
async fn a_key_that_the_endpoint_quotes_is_not_shown_either() {
    let fake = FakeEndpoint::new(&[Act::Answer(401, "", "bad key Bearer s3cretkey!".to_owned())]);
    let key = Some(KeySource::Given(Secret::new("s3cretkey")));
    let error = failure(&embedder(Endpoint { key, ..of(&fake) })).await;
    let EmbedError::Remote { answer: Some(answer), .. } = error else { panic!("{error:?}") };
    assert_eq!(answer, "bad key Bearer (the API key)!");
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// IDX-172
#[tokio::test]
async fn neither_key_nor_query_of_the_url_is_ever_shown() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _logged = tracing::subscriber::set_default(subscriber);
    let mut shown = String::new();
    for act in [status(503), status(401), status(413), Act::Drop, Act::Babble, Act::Silence] {
        let fake = FakeEndpoint::new(&[]);
        fake.always(Some(act));
        let key = Some(KeySource::Given(Secret::new("s3cretkey")));
        let url = format!("{}?token=s3crettoken", fake.url());
        let timeout = Duration::from_millis(200);
        let endpoint = Endpoint { key, max_retries: 1, timeout, ..at(url) };
        write!(shown, "{endpoint:?}").unwrap();
        let embedder = embedder(endpoint);
        let error = failure(&embedder).await;
        let query = embedder.embed_query("q").await.unwrap_err();
        write!(shown, "{embedder:?} {error} {error:?} {query}").unwrap();
    }
    shown.push_str(&String::from_utf8_lossy(&log.0.lock().unwrap()));
    assert!(shown.contains("/v1/embeddings"), "{shown}");
    assert!(!shown.contains("s3cretkey") && !shown.contains("s3crettoken"), "{shown}");
}

// IDX-B26 IDX-174
#[tokio::test]
async fn a_query_does_not_wait_for_documents_that_are_tried_again() {
    let fake = FakeEndpoint::new(&[Act::Answer(503, "retry-after: 30\r\n", String::new())]);
    let embedder = Arc::new(embedder(Endpoint { max_retries: 1, ..of(&fake) }));
    let documents = Arc::clone(&embedder);
    let waiting = tokio::spawn(async move { documents.embed_documents(&texts(1)).await });
    while fake.take().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let start = Instant::now();
    embedder.embed_query("q").await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(!waiting.is_finished());
    waiting.abort();
}

// IDX-173
#[tokio::test]
async fn nothing_is_sent_before_a_text_is_to_be_embedded() {
    let fake = FakeEndpoint::new(&[]);
    let embedder = embedder(of(&fake));
    assert_eq!(embedder.identity().dimension, DIMENSION);
    assert_eq!(embedder.engine().name, "endpoint");
    assert!(fake.take().is_empty());
}

// CFG-64
#[tokio::test]
async fn another_machine_is_reached_through_the_proxy_and_this_one_is_not() {
    let proxy = FakeEndpoint::new(&[]);
    let address = proxy.url().trim_end_matches("/v1/embeddings").to_owned();
    let proxies = Proxies { http: Some(address), ..Proxies::default() };
    let elsewhere = at("http://embeddings.invalid/v1/embeddings".to_owned());
    let there = embedder(Endpoint { proxies: proxies.clone(), ..elsewhere });
    assert_eq!(there.embed_documents(&texts(1)).await.unwrap().embeddings.len(), 1);
    let asked: Vec<String> = proxy.take().into_iter().map(|one| one.target).collect();
    assert_eq!(asked, ["embeddings.invalid:80", "/v1/embeddings"]);
    let fake = FakeEndpoint::new(&[]);
    embedder(Endpoint { proxies, ..of(&fake) }).embed_query("q").await.unwrap();
    assert_eq!((fake.take().len(), proxy.take().len()), (1, 0));
}

// IDX-B25
#[tokio::test]
async fn a_key_that_cannot_be_had_is_named_and_nothing_is_sent() {
    let fake = FakeEndpoint::new(&[]);
    let key = Some(KeySource::File("/no/such/key".into()));
    let error = failure(&embedder(Endpoint { key, ..of(&fake) })).await.to_string();
    assert!(error.contains("/no/such/key"), "{error}");
    assert!(fake.take().is_empty());
}

/// An endpoint over TLS whose certificate nobody vouches for; its URL.
fn self_signed() -> String {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/v1", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            while connection.complete_io(&mut stream).is_ok_and(|(read, _)| read > 0) {}
        }
    });
    url
}

// IDX-168
#[tokio::test]
async fn a_certificate_of_an_unknown_authority_stops_at_once() {
    let embedder = embedder(Endpoint { max_retries: 3, ..at(self_signed()) });
    let error = failure(&embedder).await.to_string();
    assert!(error.contains("certificate"), "{error}");
    assert!(!error.contains("gave up"), "{error}");
}
