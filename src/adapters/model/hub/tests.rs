//! Downloads from a hub of the test's own on a loopback port.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tempfile::TempDir;

use super::*;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const WEIGHTS: &[u8] = b"weights, weights, weights";

const SOURCE: HubSource = HubSource {
    repository: "org/model",
    weights: &["onnx/model.onnx"],
    extras: &["tokenizer_config.json", "1_Pooling/config.json"],
    sha256: None,
};

/// A request as the fake hub saw it.
#[derive(Clone, Debug)]
struct Asked {
    path: String,
    headers: BTreeMap<String, String>,
}

/// What the fake hub does instead of answering well.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    OtherBytes,
    CutOffOnce,
    Silent,
    Forbidden,
    NoModel,
    NamesThatClimb,
    Slow,
}

pub(crate) struct FakeHub {
    pub(crate) settings: HubSettings,
    asked: Arc<Mutex<Vec<Asked>>>,
    pub(crate) cache: TempDir,
}

impl FakeHub {
    pub(crate) fn new(fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let log = Arc::clone(&asked);
        let cut = Arc::new(AtomicUsize::new(0));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, cut) = (Arc::clone(&log), Arc::clone(&cut));
                thread::spawn(move || serve(stream, port, fault, &log, &cut));
            }
        });
        let settings = HubSettings {
            endpoint: format!("http://127.0.0.1:{port}"),
            token: Some("secret".to_owned()),
            stall_timeout: Duration::from_millis(400),
            ..HubSettings::default()
        };
        Self { settings, asked, cache: tempfile::tempdir().unwrap() }
    }

    fn download(&self) -> Result<PathBuf, HubError> {
        download(&self.settings, &SOURCE, self.cache.path())
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    fn repository(&self) -> PathBuf {
        self.cache.path().join("models--org--model")
    }
}

fn serve(
    stream: TcpStream,
    port: u16,
    fault: Fault,
    log: &Mutex<Vec<Asked>>,
    cut: &AtomicUsize,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let from = headers
        .get("range")
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    log.lock().unwrap().push(Asked { path: path.clone(), headers });
    if fault == Fault::Silent {
        thread::sleep(Duration::from_secs(5));
    }
    let reply = reply(&path, port, fault, from, cut);
    let mut stream = stream;
    stream.write_all(&reply).ok()
}

fn reply(path: &str, port: u16, fault: Fault, from: Option<usize>, cut: &AtomicUsize) -> Vec<u8> {
    let commit = if fault == Fault::NamesThatClimb { "../../away" } else { COMMIT };
    let file = path.rsplit_once("/resolve/").and_then(|(_, rest)| rest.split_once('/'));
    match (path, file.map(|(_, file)| file)) {
        _ if fault == Fault::Forbidden => answer("401 Unauthorized", "", b"no"),
        ("/kept/weights", _) => weights(fault, from, cut),
        ("/api/small", _) => answer("200 OK", "ETag: \"small\"\r\n", b"{\"small\": 1}"),
        (_, Some("config.json")) => {
            // As the hub does for small files: an address on the same host.
            let headers = format!("X-Repo-Commit: {commit}\r\nLocation: /api/small\r\n");
            answer("307 Temporary Redirect", &headers, b"moved")
        }
        (_, Some("tokenizer.json")) => {
            let headers = format!("X-Repo-Commit: {commit}\r\nETag: W/\"tokens\"\r\n");
            answer("200 OK", &headers, b"{}")
        }
        (_, Some("onnx/model.onnx" | "model.safetensors")) if fault != Fault::NoModel => {
            if fault == Fault::Slow {
                thread::sleep(Duration::from_millis(300));
            }
            // As the hub does for large files: an address on another host.
            let headers = format!(
                "X-Repo-Commit: {commit}\r\nX-Linked-ETag: \"{}\"\r\nX-Linked-Size: {}\r\n\
                 Location: http://localhost:{port}/kept/weights\r\n",
                sha256_of(WEIGHTS),
                WEIGHTS.len(),
            );
            answer("302 Found", &headers, b"")
        }
        _ => answer("404 Not Found", "", b"none"),
    }
}

fn weights(fault: Fault, from: Option<usize>, cut: &AtomicUsize) -> Vec<u8> {
    let etag = "ETag: \"of-another-kind\"\r\n";
    match (fault, from) {
        (Fault::OtherBytes, _) => answer("200 OK", etag, &WEIGHTS.to_ascii_uppercase()),
        (Fault::CutOffOnce, None) if cut.fetch_add(1, Ordering::SeqCst) == 0 => {
            let mut reply = answer("200 OK", etag, WEIGHTS);
            reply.truncate(reply.len() - 10);
            reply
        }
        (_, Some(from)) => answer("206 Partial Content", etag, &WEIGHTS[from..]),
        _ => answer("200 OK", etag, WEIGHTS),
    }
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn sha256_of(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = Sink::open(&folder.path().join("file"), 0).unwrap();
    sink.write(bytes).unwrap();
    sink.close().unwrap().1
}

#[test]
fn the_checksum_is_the_standard_one() {
    assert_eq!(
        sha256_of(b"abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

// CFG-96
#[test]
fn a_download_has_the_layout_of_the_hub() {
    let hub = FakeHub::new(Fault::None);
    let snapshot = hub.download().unwrap();
    assert_eq!(snapshot, hub.repository().join("snapshots").join(COMMIT));
    assert_eq!(fs::read(snapshot.join("config.json")).unwrap(), b"{\"small\": 1}");
    assert_eq!(fs::read(snapshot.join("tokenizer.json")).unwrap(), b"{}");
    assert_eq!(fs::read(snapshot.join("onnx/model.onnx")).unwrap(), WEIGHTS);
    assert_eq!(fs::read_to_string(hub.repository().join("refs/main")).unwrap(), COMMIT);
    for blob in ["small", "tokens", &sha256_of(WEIGHTS)] {
        assert!(hub.repository().join("blobs").join(blob).is_file(), "{blob}");
    }
}

// CFG-97
#[test]
fn what_the_cache_holds_is_not_asked_for_again() {
    let hub = FakeHub::new(Fault::None);
    let first = hub.download().unwrap();
    let asked = hub.asked().len();
    assert_eq!(hub.download().unwrap(), first);
    assert_eq!(hub.asked().len(), asked);
}

#[test]
fn all_files_come_from_the_commit_of_the_first() {
    let hub = FakeHub::new(Fault::None);
    hub.download().unwrap();
    let asked = hub.asked();
    assert_eq!(asked[0].path, "/org/model/resolve/main/config.json");
    let others: Vec<_> = asked[1..].iter().filter(|asked| asked.path.contains("resolve")).collect();
    assert!(others.len() >= 3);
    assert!(others.iter().all(|asked| asked.path.contains(COMMIT)), "{others:?}");
}

#[test]
fn the_token_goes_to_the_endpoint_only() {
    let hub = FakeHub::new(Fault::None);
    hub.download().unwrap();
    for asked in hub.asked() {
        let expected = (asked.path != "/kept/weights").then_some("Bearer secret");
        let sent = asked.headers.get("authorization").map(String::as_str);
        assert_eq!(sent, expected, "{}", asked.path);
    }
    assert!(!format!("{:?}", hub.settings).contains("secret"));
}

#[test]
fn progress_ends_at_the_full_size_of_each_file() {
    let hub = FakeHub::new(Fault::None);
    let seen: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let log = Arc::clone(&seen);
    let sink: ProgressSink = Arc::new(move |progress| log.lock().unwrap().push(progress));
    let settings = HubSettings { progress: Some(sink), ..hub.settings.clone() };
    download(&settings, &SOURCE, hub.cache.path()).unwrap();
    let last = seen.lock().unwrap().last().unwrap().clone();
    let size = WEIGHTS.len() as u64;
    let expected =
        Progress { file: "onnx/model.onnx".to_owned(), done_bytes: size, total_bytes: Some(size) };
    assert_eq!(last, expected);
}

#[test]
fn a_missing_model_file_is_named_with_the_host() {
    let hub = FakeHub::new(Fault::NoModel);
    let error = hub.download().unwrap_err();
    assert!(matches!(&error, HubError::Refused { status: 404, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&hub.settings.host()) && text.contains("onnx/model.onnx"), "{text}");
    assert_eq!(locate::cached(hub.cache.path(), &SOURCE), None);
}

#[test]
fn a_refusal_of_an_optional_file_other_than_its_absence_is_an_error() {
    let hub = FakeHub::new(Fault::Forbidden);
    let error = hub.download().unwrap_err();
    assert!(matches!(error, HubError::Refused { status: 401, .. }), "{error:?}");
}

// IDX-B24
#[test]
fn weights_with_another_checksum_never_enter_the_cache() {
    let hub = FakeHub::new(Fault::OtherBytes);
    let error = hub.download().unwrap_err();
    assert!(matches!(&error, HubError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("SHA-256"));
    assert_eq!(locate::cached(hub.cache.path(), &SOURCE), None);
    let mut blobs = fs::read_dir(hub.repository().join("blobs")).unwrap().flatten();
    assert!(blobs.all(|blob| fs::metadata(blob.path()).unwrap().len() != WEIGHTS.len() as u64));
}

// IDX-B24
#[test]
fn a_checksum_that_the_catalogue_knows_counts_whatever_the_hub_says() {
    let hub = FakeHub::new(Fault::None);
    let known = "0000000000000000000000000000000000000000000000000000000000000000";
    let source = HubSource { sha256: Some(known), ..SOURCE };
    let error = download(&hub.settings, &source, hub.cache.path()).unwrap_err();
    assert!(error.to_string().contains(known), "{error}");
}

#[test]
fn a_download_that_broke_off_is_continued() {
    let hub = FakeHub::new(Fault::CutOffOnce);
    let error = hub.download().unwrap_err();
    assert!(matches!(error, HubError::Unreachable { .. }), "{error:?}");
    assert_eq!(locate::cached(hub.cache.path(), &SOURCE), None);
    let snapshot = hub.download().unwrap();
    assert_eq!(fs::read(snapshot.join("onnx/model.onnx")).unwrap(), WEIGHTS);
    let expected = format!("bytes={}-", WEIGHTS.len() - 10);
    let ranges: Vec<_> =
        hub.asked().iter().filter_map(|asked| asked.headers.get("range").cloned()).collect();
    assert!(ranges.contains(&expected), "{ranges:?}");
}

#[test]
fn a_port_that_refuses_fails_at_once_and_names_the_host() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings =
        HubSettings { endpoint: format!("http://127.0.0.1:{port}"), ..HubSettings::default() };
    let cache = tempfile::tempdir().unwrap();
    let started = Instant::now();
    let error = download(&settings, &SOURCE, cache.path()).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(error.to_string(), format!("no answer from 127.0.0.1:{port} for config.json"));
}

#[test]
fn a_hub_that_falls_silent_is_given_up() {
    let hub = FakeHub::new(Fault::Silent);
    let started = Instant::now();
    let error = hub.download().unwrap_err();
    assert!(matches!(error, HubError::Unreachable { .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(4));
}

// CFG-B01
#[test]
fn a_second_first_run_waits_for_the_first_and_asks_for_nothing() {
    let hub = FakeHub::new(Fault::Slow);
    let snapshots: Vec<PathBuf> = thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(|| hub.download().unwrap())).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert!(snapshots.iter().all(|snapshot| *snapshot == snapshots[0]));
    let weights = hub.asked().iter().filter(|asked| asked.path == "/kept/weights").count();
    assert_eq!(weights, 1);
}

#[test]
fn names_that_lead_out_of_the_cache_are_refused() {
    let hub = FakeHub::new(Fault::NamesThatClimb);
    let error = hub.download().unwrap_err();
    assert!(matches!(error, HubError::Damaged { .. }), "{error:?}");
    assert!(!hub.repository().exists());
}

#[cfg(unix)]
#[test]
fn a_link_without_a_target_is_repaired() {
    let hub = FakeHub::new(Fault::None);
    let model = hub.repository().join("snapshots").join(COMMIT).join("onnx/model.onnx");
    fs::create_dir_all(model.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("../../../blobs/gone", &model).unwrap();
    hub.download().unwrap();
    assert_eq!(fs::read(&model).unwrap(), WEIGHTS);
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let hub = FakeHub::new(Fault::None);
    let file = hub.cache.path().join("a file");
    fs::write(&file, "").unwrap();
    let error = download(&hub.settings, &SOURCE, &file).unwrap_err();
    assert!(matches!(error, HubError::Cache { .. }), "{error:?}");
    assert!(error.to_string().contains("a file"));
}

// CFG-97
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named_and_leaves_no_file_that_looks_whole() {
    let hub = FakeHub::new(Fault::None);
    let blobs = hub.repository().join("blobs");
    fs::create_dir_all(&blobs).unwrap();
    let blob = blobs.join(sha256_of(WEIGHTS));
    let part = with_suffix(&blob, ".incomplete");
    std::os::unix::fs::symlink("/dev/full", part).unwrap();
    match hub.download().unwrap_err() {
        HubError::Cache { path, source } => {
            assert_eq!(path, blob);
            assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        }
        other => panic!("{other}"),
    }
    assert!(!blob.exists());
}
