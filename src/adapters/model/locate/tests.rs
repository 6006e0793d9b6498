//! Folders of the test's own stand in for the models directory and the caches.

use std::fs::FileTimes;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::adapters::model::catalogue;

const SMALL: &str = "bge-small-en-v1.5";
const NATIVE: &[&str] = &["config.json", "tokenizer.json", "model.safetensors"];
const ONNX: &[&str] = &["config.json", "tokenizer.json", "onnx/model.onnx"];

/// A models directory, two caches and a folder for libraries, all empty.
struct Machine {
    root: TempDir,
    places: ModelPlaces,
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let places = ModelPlaces {
            models_dir: Some(at("models")),
            hub_caches: vec![at("cache"), at("other cache")],
            onnx_runtime: vec![at("lib")],
        };
        Self { root, places }
    }

    fn locate(&self, name: &str) -> Located {
        locate(catalogue::find(name).unwrap(), &self.places)
    }

    fn placed(&self, name: &str, files: &[&str]) -> PathBuf {
        let folder = self.root.path().join("models").join(name);
        fill(&folder, files);
        folder
    }

    /// A snapshot that `refs/main` names.
    fn cached(&self, cache: usize, repository: &str, files: &[&str]) -> PathBuf {
        let folder = self.snapshot(cache, repository, "aaa", files);
        self.point_main(cache, repository, "aaa");
        folder
    }

    fn snapshot(&self, cache: usize, repository: &str, revision: &str, files: &[&str]) -> PathBuf {
        let folder = repository_folder(&self.places.hub_caches[cache], repository);
        let snapshot = folder.join("snapshots").join(revision);
        fill(&snapshot, files);
        snapshot
    }

    fn point_main(&self, cache: usize, repository: &str, revision: &str) {
        let folder = repository_folder(&self.places.hub_caches[cache], repository);
        fs::create_dir_all(folder.join("refs")).unwrap();
        fs::write(folder.join("refs/main"), revision).unwrap();
    }
}

fn fill(folder: &Path, files: &[&str]) {
    for file in files {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "content").unwrap();
    }
}

fn age(folder: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 - seconds);
    let folder = fs::File::open(folder).unwrap();
    folder.set_times(FileTimes::new().set_modified(time)).unwrap();
}

fn onnx(root: &Path, model: &str) -> OnnxFolder {
    OnnxFolder { root: root.to_owned(), model: root.join(model), data: Vec::new() }
}

#[test]
fn an_empty_machine_has_nothing_and_says_where_it_looked() {
    let machine = Machine::new();
    let Located::Absent(absent) = machine.locate(SMALL) else { panic!("found") };
    let caches = &machine.places.hub_caches;
    let expected = vec![
        machine.root.path().join("models").join(SMALL),
        caches[0].join("models--BAAI--bge-small-en-v1.5"),
        caches[1].join("models--BAAI--bge-small-en-v1.5"),
        caches[0].join("models--Xenova--bge-small-en-v1.5"),
        caches[1].join("models--Xenova--bge-small-en-v1.5"),
    ];
    assert_eq!(absent, Absent { looked_at: expected });
}

#[test]
fn nowhere_to_look_is_nothing_found() {
    let places = ModelPlaces::default();
    let located = locate(catalogue::find("bge-m3").unwrap(), &places);
    assert_eq!(located, Located::Absent(Absent::default()));
}

#[test]
fn the_models_directory_comes_before_every_cache() {
    let machine = Machine::new();
    machine.cached(0, "BAAI/bge-small-en-v1.5", NATIVE);
    let onnx_folder = machine.placed(SMALL, ONNX);
    assert_eq!(machine.locate(SMALL), Located::Onnx(onnx(&onnx_folder, "onnx/model.onnx")));
    let folder = machine.placed(SMALL, NATIVE);
    assert_eq!(machine.locate(SMALL), Located::Native(folder));
}

// CFG-96
#[test]
fn a_cache_is_read_in_the_layout_of_the_hub() {
    let machine = Machine::new();
    let folder = machine.cached(0, "BAAI/bge-small-en-v1.5", NATIVE);
    assert_eq!(machine.locate(SMALL), Located::Native(folder));
}

#[test]
fn safetensors_in_any_cache_come_before_onnx_in_any() {
    let machine = Machine::new();
    machine.cached(0, "Xenova/bge-small-en-v1.5", ONNX);
    let folder = machine.cached(1, "BAAI/bge-small-en-v1.5", NATIVE);
    assert_eq!(machine.locate(SMALL), Located::Native(folder));
}

#[test]
fn the_first_cache_comes_first() {
    let machine = Machine::new();
    machine.cached(1, "BAAI/bge-small-en-v1.5", NATIVE);
    let folder = machine.cached(0, "BAAI/bge-small-en-v1.5", NATIVE);
    assert_eq!(machine.locate(SMALL), Located::Native(folder));
}

#[test]
fn the_main_reference_decides_even_against_a_newer_snapshot() {
    let machine = Machine::new();
    let repository = "BAAI/bge-small-en-v1.5";
    let main = machine.snapshot(0, repository, "old", NATIVE);
    let newer = machine.snapshot(0, repository, "new", NATIVE);
    age(&main, 100);
    age(&newer, 0);
    machine.point_main(0, repository, "old\n");
    assert_eq!(machine.locate(SMALL), Located::Native(main));
}

#[test]
fn without_a_usable_main_reference_the_newest_whole_snapshot_serves() {
    let repository = "BAAI/bge-small-en-v1.5";
    for main in [None, Some("gone"), Some("part"), Some("../snapshots/old"), Some("")] {
        let machine = Machine::new();
        let old = machine.snapshot(0, repository, "old", NATIVE);
        let new = machine.snapshot(0, repository, "new", NATIVE);
        let part = machine.snapshot(0, repository, "part", &NATIVE[..2]);
        for (folder, seconds) in [(&old, 200), (&new, 100), (&part, 0)] {
            age(folder, seconds);
        }
        if let Some(main) = main {
            machine.point_main(0, repository, main);
        }
        assert_eq!(machine.locate(SMALL), Located::Native(new), "{main:?}");
    }
}

#[test]
fn snapshots_of_one_age_are_taken_by_name() {
    let machine = Machine::new();
    let first = machine.snapshot(0, "BAAI/bge-small-en-v1.5", "a", NATIVE);
    let second = machine.snapshot(0, "BAAI/bge-small-en-v1.5", "b", NATIVE);
    age(&first, 0);
    age(&second, 0);
    assert_eq!(machine.locate(SMALL), Located::Native(first));
}

#[test]
fn a_folder_without_one_of_its_files_does_not_count() {
    for missing in NATIVE {
        let machine = Machine::new();
        let folder = machine.placed(SMALL, NATIVE);
        fs::remove_file(folder.join(missing)).unwrap();
        assert!(matches!(machine.locate(SMALL), Located::Absent(_)), "{missing}");
    }
}

#[test]
fn an_empty_file_does_not_count() {
    let machine = Machine::new();
    let folder = machine.cached(0, "BAAI/bge-small-en-v1.5", NATIVE);
    fs::write(folder.join("model.safetensors"), "").unwrap();
    assert!(matches!(machine.locate(SMALL), Located::Absent(_)));
}

#[cfg(unix)]
#[test]
fn links_into_the_blobs_count_while_their_target_is_there() {
    let machine = Machine::new();
    let folder = machine.cached(0, "BAAI/bge-small-en-v1.5", &NATIVE[..2]);
    std::os::unix::fs::symlink("../../blobs/abc", folder.join("model.safetensors")).unwrap();
    assert!(matches!(machine.locate(SMALL), Located::Absent(_)));
    fill(&folder.join("../../blobs"), &["abc"]);
    assert_eq!(machine.locate(SMALL), Located::Native(folder));
}

// CFG-96 IDX-161
#[test]
fn a_cache_that_holds_only_onnx_serves() {
    let machine = Machine::new();
    let folder = machine.cached(1, "Xenova/bge-small-en-v1.5", ONNX);
    assert_eq!(machine.locate(SMALL), Located::Onnx(onnx(&folder, "onnx/model.onnx")));
}

#[test]
fn a_large_model_needs_its_data_file() {
    let machine = Machine::new();
    let folder = machine.cached(0, "BAAI/bge-m3", ONNX);
    assert!(matches!(machine.locate("bge-m3"), Located::Absent(_)));
    fill(&folder, &["onnx/model.onnx_data"]);
    let Located::Onnx(found) = machine.locate("bge-m3") else { panic!("not found") };
    assert_eq!(found.data, [folder.join("onnx/model.onnx_data")]);
    fill(&folder, &["onnx/Constant_7_attr__value"]);
    let Located::Onnx(found) = machine.locate("bge-m3") else { panic!("not found") };
    assert_eq!(found.data.len(), 2);
}

#[test]
fn a_placed_onnx_model_may_lie_beside_its_tokenizer() {
    let machine = Machine::new();
    let folder = machine.placed(SMALL, &["config.json", "tokenizer.json", "model.onnx"]);
    assert_eq!(machine.locate(SMALL), Located::Onnx(onnx(&folder, "model.onnx")));
}

#[test]
fn a_model_without_safetensors_on_the_hub_may_be_placed_as_such() {
    let machine = Machine::new();
    let folder = machine.placed("bge-m3", NATIVE);
    assert_eq!(machine.locate("bge-m3"), Located::Native(folder));
}

#[test]
fn libraries_are_listed_in_the_order_of_the_places() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("lib");
    fill(
        &folder,
        &[
            "libonnxruntime.so.1.24.0",
            "libonnxruntime.so",
            "libonnxruntime.1.24.0.dylib",
            "onnxruntime.dll",
            "libonnxruntime_providers_shared.so",
            "libonnxruntime.so.d/readme",
            "onnxruntime.lib",
        ],
    );
    fill(root.path(), &["named by hand"]);
    let places = [root.path().join("gone"), root.path().join("named by hand"), folder.clone()];
    let expected = [
        root.path().join("named by hand"),
        folder.join("libonnxruntime.1.24.0.dylib"),
        folder.join("libonnxruntime.so"),
        folder.join("libonnxruntime.so.1.24.0"),
        folder.join("onnxruntime.dll"),
    ];
    assert_eq!(runtime_libraries(&places), expected);
}
