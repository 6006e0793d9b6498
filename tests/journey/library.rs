//! The knowledge base as a library of prompts and resources, for a client that
//! is not ours.

mod with_python_sdk {
    use std::process::Command;

    use crate::groove::{Base, MODEL, test_model};

    // MCP-60 MCP-72 MCP-73 MCP-74 MCP-77 MCP-78 MCP-79 MCP-B15 MCP-B16 MCP-B17
    #[test]
    #[ignore = "needs the Python SDK of MCP and the model; `make test` gets both"]
    fn it_reads_prompts_and_resources_and_hears_of_changes() {
        let base = Base::sample();
        base.indexed(&[]);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/journey/python_sdk_library.py");
        let python = std::env::var_os("GROOVE_TEST_PYTHON").expect("GROOVE_TEST_PYTHON");
        let output = Command::new(python)
            .args([script, env!("CARGO_BIN_EXE_groove")])
            .arg(base.kb())
            .arg(MODEL)
            .env("GROOVE_MODELS_DIR", test_model().parent().unwrap())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        for fact in ["prompts 4", "outside ok", "verify_quote exact moved", "news ok"] {
            assert!(text.contains(fact), "{fact:?} is not in\n{text}");
        }
    }
}
