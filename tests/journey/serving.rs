//! The server, as clients see it.

mod with_model {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use rmcp::ServiceExt as _;
    use rmcp::model::CallToolRequestParams;
    use rmcp::transport::TokioChildProcess;
    use serde_json::{Value, json};

    use crate::groove::{Base, MODEL};

    async fn call<S: rmcp::service::Service<rmcp::RoleClient>>(
        client: &rmcp::service::RunningService<rmcp::RoleClient, S>,
        tool: &'static str,
        arguments: Value,
    ) -> (Value, bool) {
        let mut parameters = CallToolRequestParams::new(tool);
        parameters.arguments = arguments.as_object().cloned();
        let result = client.peer().call_tool(parameters).await.unwrap();
        let text = result.content[0].as_text().unwrap().text.clone();
        (serde_json::from_str(&text).unwrap(), result.is_error == Some(true))
    }

    fn server(base: &Base, arguments: &[&str]) -> tokio::process::Command {
        let mut all = vec!["--model", MODEL];
        all.extend(arguments);
        let mut command = tokio::process::Command::from(base.groove("serve", &all));
        command.kill_on_drop(true);
        command
    }

    // MCP-01 MCP-08 CLI-79 MCP-51
    #[tokio::test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    async fn an_assistant_can_build_the_index_and_search_it() {
        let base = Base::sample();
        let transport = TokioChildProcess::new(server(&base, &[])).unwrap();
        let client = ().serve(transport).await.unwrap();
        assert_eq!(client.peer_info().unwrap().server_info.as_ref().unwrap().name, "grooveseek");
        let tools = client.peer().list_all_tools().await.unwrap();
        assert_eq!(tools.len(), 8);
        let (built, failed) = call(&client, "rebuild_index", json!({})).await;
        assert!(!failed, "{built}");
        assert_eq!(built["total_documents"], 11);
        let (found, _) = call(&client, "search", json!({"query": "error 809 in the hotel"})).await;
        assert_eq!(found["results"][0]["path"], "it/network/vpn.md", "{found}");
        assert!(found.get("degraded").is_none(), "the rebuild loaded the model");
        let start = json!({"start": "it/network/vpn.md", "seed_strategy": "centroid"});
        let (graph, failed) = call(&client, "get_connection_graph", start).await;
        assert!(!failed && graph["nodes"][0]["path"] == "it/network/vpn.md", "{graph}");
        assert!(graph["nodes"].as_array().unwrap().len() > 1, "{graph}");
        let path = json!({"path": "it/network/vpn.md"});
        let (document, _) = call(&client, "get_document", path).await;
        assert!(document["content"].as_str().unwrap().contains("Split tunnelling"));
        let (refused, failed) = call(&client, "get_document", json!({"path": "../x.md"})).await;
        assert!(failed && refused["error"].is_string(), "{refused}");
        client.cancel().await.unwrap();
    }

    // SRCH-B02 HTTP-B02
    #[tokio::test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    async fn words_are_answered_before_the_model_is_there() {
        let base = Base::sample();
        base.indexed(&[]);
        // A server whose model can never be loaded still answers from the text.
        let mut command = server(&base, &[]);
        command.env("GROOVE_MODELS_DIR", base.home());
        command.env("HF_ENDPOINT", "http://127.0.0.1:9");
        let client = ().serve(TokioChildProcess::new(command).unwrap()).await.unwrap();
        let (found, failed) = call(&client, "search", json!({"query": "fuser is too hot"})).await;
        assert!(!failed, "{found}");
        assert_eq!(found["degraded"], json!(["vector"]));
        assert_eq!(found["results"][0]["path"], "it/network/printers.md");
        client.cancel().await.unwrap();
    }

    // IDX-111
    #[tokio::test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    async fn a_run_of_another_process_is_seen_without_a_restart() {
        let base = Base::sample();
        base.indexed(&[]);
        let client = ().serve(TokioChildProcess::new(server(&base, &[])).unwrap()).await.unwrap();
        let query = json!({"query": "lighthouse keeper rota"});
        let (before, _) = call(&client, "search", query.clone()).await;
        assert_ne!(before["results"][0]["path"], "people/rota.md");
        base.write(
            "people/rota.md",
            "The lighthouse keeper rota changes on the first Monday of each month.\n",
        );
        base.indexed(&[]);
        let mut seen = Value::Null;
        for _ in 0..50 {
            (seen, _) = call(&client, "search", query.clone()).await;
            if seen["results"][0]["path"] == "people/rota.md" && seen.get("degraded").is_none() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(seen["results"][0]["path"], "people/rota.md");
        assert_eq!(seen["results"][0]["matched_by"], json!(["vector", "fulltext"]));
        client.cancel().await.unwrap();
    }

    mod with_python_sdk {
        use super::*;

        // MCP-08 MCP-11 MCP-16
        #[test]
        #[ignore = "needs the Python SDK of MCP and the model; `make test` gets both"]
        fn a_client_that_is_not_ours_lists_the_tools_and_searches() {
            let base = Base::sample();
            base.indexed(&[]);
            let kb = base.kb();
            holds(&[env!("CARGO_BIN_EXE_groove"), kb.to_str().unwrap(), MODEL]);
        }

        // HTTP-60 HTTP-61 MCP-08
        #[test]
        #[ignore = "needs the Python SDK of MCP and the model; `make test` gets both"]
        fn it_does_the_same_over_http() {
            let base = Base::sample();
            base.indexed(&[]);
            let arguments = ["--model", MODEL, "--transport", "http", "--port", "0"];
            let mut command = base.groove("serve", &arguments);
            let mut server = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            let mut log = BufReader::new(server.stderr.take().unwrap());
            let mut line = String::new();
            while !line.contains("listening on ") {
                line.clear();
                assert!(log.read_line(&mut line).unwrap() > 0, "the server has ended");
            }
            let (_, rest) = line.split_once("listening on ").unwrap();
            let address = rest.split_whitespace().next().unwrap().to_owned();
            let reading = std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
            let outcome = std::panic::catch_unwind(|| holds(&[&format!("http://{address}/mcp")]));
            server.kill().unwrap();
            server.wait().unwrap();
            drop(reading.join());
            outcome.unwrap();
        }

        /// Runs the client, and holds that it saw what it should.
        fn holds(arguments: &[&str]) {
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/journey/python_sdk_client.py");
            let python = std::env::var_os("GROOVE_TEST_PYTHON").expect("GROOVE_TEST_PYTHON");
            let output = Command::new(python)
                .arg(script)
                .args(arguments)
                .env("GROOVE_MODELS_DIR", crate::groove::test_model().parent().unwrap())
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
            for fact in [
                "tools get_best_practice get_connection_graph get_document list_filters list_topics \
                 rebuild_index search verify_quote",
                "search it/accounts/password-reset.md",
                "refusal ok",
            ] {
                assert!(text.contains(fact), "{fact:?} is not in\n{text}");
            }
        }
    }

    /// Asks until the hits' paths are these.
    async fn until_found<S: rmcp::service::Service<rmcp::RoleClient>>(
        client: &rmcp::service::RunningService<rmcp::RoleClient, S>,
        query: &str,
        paths: &[&str],
    ) {
        let mut last = Value::Null;
        for _ in 0..200 {
            let (found, _) = call(client, "search", json!({"query": query})).await;
            let hits = found["results"].as_array().unwrap();
            let exact = hits.iter().filter(|hit| hit["matched_by"].to_string().contains("full"));
            let mut exact: Vec<_> = exact.filter_map(|hit| hit["path"].as_str()).collect();
            exact.sort_unstable();
            if exact == paths {
                return;
            }
            last = found;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{query}: {paths:?} never came to be: {last}");
    }

    // IDX-147 IDX-149 IDX-152a IDX-153 IDX-B22 CLI-79
    #[tokio::test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    async fn a_served_index_follows_the_files() {
        let base = Base::sample();
        base.indexed(&["--quiet"]);
        let transport = TokioChildProcess::new(server(&base, &["--debounce-ms", "50"])).unwrap();
        let client = ().serve(transport).await.unwrap();
        let kb = base.kb();
        // The watch is armed beside the handshake.
        base.write("first.md", "The quokka is a small wallaby.");
        for attempt in 0.. {
            let (found, _) = call(&client, "search", json!({"query": "\"quokka\""})).await;
            if found["results"][0]["path"] == "first.md" {
                break;
            }
            assert!(attempt < 100, "{found}");
            tokio::time::sleep(Duration::from_millis(100)).await;
            base.write("first.md", format!("The quokka is a small wallaby. {attempt}"));
        }
        base.write("birds/kea.md", "The kea is a parrot that opens rucksacks.");
        until_found(&client, "\"rucksacks\"", &["birds/kea.md"]).await;
        base.write("birds/kea.md", "The kea is a parrot that unscrews aerials.");
        until_found(&client, "\"aerials\"", &["birds/kea.md"]).await;
        until_found(&client, "\"rucksacks\"", &[]).await;
        // As editors save: a new file takes the old one's name.
        base.write("birds/.kea.md.tmp", "The kea is a parrot that collects gaskets.");
        std::fs::rename(kb.join("birds/.kea.md.tmp"), kb.join("birds/kea.md")).unwrap();
        until_found(&client, "\"gaskets\"", &["birds/kea.md"]).await;
        std::fs::rename(kb.join("birds"), kb.join("parrots")).unwrap();
        until_found(&client, "\"gaskets\"", &["parrots/kea.md"]).await;
        base.write("parrots/deep/er/kaka.md", "The kaka drinks nectar at dusk.");
        until_found(&client, "\"nectar\"", &["parrots/deep/er/kaka.md"]).await;
        std::fs::remove_dir_all(kb.join("parrots")).unwrap();
        until_found(&client, "\"nectar\"", &[]).await;
        until_found(&client, "\"gaskets\"", &[]).await;
        client.cancel().await.unwrap();
        let again = base.indexed(&["--quiet"]);
        assert!(again.contains("(0 updated, 0 renamed, 0 deleted"), "{again}");
    }
}
