//! The tables of the specification, and spellings that nobody has thought of.

use std::net::SocketAddr;

use proptest::prelude::*;

use crate::domain::gate::{
    Authority, Caller, Gate, GateSettings, Guard, HostList, Listening, OriginFlaw, OriginList,
    RefusalKind, advice,
};

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn settings(listening: Listening) -> GateSettings<'static> {
    GateSettings { allowed_hosts: None, allowed_origins: None, healthz_public: false, listening }
}

fn bound(text: &str) -> GateSettings<'static> {
    settings(Listening::Bound(address(text)))
}

fn local() -> GateSettings<'static> {
    bound("127.0.0.1:3177")
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// 200, 400 or 403.
fn verdict(gate: &Gate, guard: Guard, caller: &Caller<'_>) -> u16 {
    match gate.check(guard, caller) {
        Ok(()) => 200,
        Err(refusal) => match refusal.kind {
            RefusalKind::Malformed => {
                assert!(refusal.message.starts_with("Bad Request: "));
                400
            }
            RefusalKind::Forbidden => {
                assert!(refusal.message.starts_with("Forbidden: "));
                403
            }
        },
    }
}

fn host(gate: &Gate, guard: Guard, host: &str) -> u16 {
    let caller = Caller { hosts: vec![host.as_bytes()], ..Caller::default() };
    verdict(gate, guard, &caller)
}

fn origin(gate: &Gate, origin: &str) -> u16 {
    let caller =
        Caller { hosts: vec![b"localhost"], origins: vec![origin.as_bytes()], ..Caller::default() };
    let verdicts = [Guard::Protocol, Guard::Admin].map(|guard| verdict(gate, guard, &caller));
    assert_eq!(verdicts[0], verdicts[1], "{origin}");
    assert_eq!(verdict(gate, Guard::Health, &caller), 200, "{origin}");
    verdicts[0]
}

// HTTP-30 HTTP-35 HTTP-36 HTTP-37 HTTP-39 HTTP-39b
#[test]
fn the_table_of_hosts_holds_on_every_route() {
    let gate = Gate::new(&local()).unwrap();
    let table: &[(&[&str], &[u16])] = &[
        (
            &[
                "127.0.0.1:3177",
                "127.0.0.1",
                "localhost:3177",
                "LOCALHOST:3177",
                "[::1]:3177",
                "127.0.0.1:03177",
                "localhost:",
                "[::1]:",
                "localhost:0",
                "localhost:65535",
            ],
            &[200],
        ),
        (
            &[
                "user:pw@127.0.0.1:3177",
                "@127.0.0.1:3177",
                "127.0.0.1@localhost",
                "127.0.0.1:65536",
                "localhost:abc",
                "[]:80",
                "[::1]evil.example",
                "[::1",
                "[::1]x",
                "",
                ":3177",
                "localhost:-1",
                "localhost:+1",
                "localhost: 1",
                " localhost",
                "local host",
                "localhost\\",
                "localhost\t",
                "[localhost]",
                "ｌocalhost",
                "localhost:99999999999999999999",
            ],
            &[400],
        ),
        (
            &[
                "kb.example.lan",
                "0.0.0.0:3177",
                "localhost.",
                "127.1",
                "2130706433",
                "[::ffff:127.0.0.1]:3177",
                "evil.example:3177",
                "127.0.0.1.evil.example",
                "localhost.evil.example",
                "[0:0:0:0:0:0:0:1]",
            ],
            &[403],
        ),
        (
            &[
                "::ffff:127.0.0.1",
                "localhost:3177:3177",
                "localhost#frag",
                "localhost/",
                "127.0.0.1%00",
                "localhost?",
                "localhost,evil.example",
            ],
            &[400, 403],
        ),
    ];
    for (hosts, expected) in table {
        for name in *hosts {
            let seen = host(&gate, Guard::Protocol, name);
            assert!(expected.contains(&seen), "{name:?} is answered {seen}");
            for guard in [Guard::Health, Guard::Admin] {
                assert_eq!(host(&gate, guard, name), seen, "{name:?} at {guard:?}");
            }
        }
    }
}

// HTTP-35
#[test]
fn the_name_is_the_header_else_the_target_and_never_two_of_them() {
    let gate = Gate::new(&local()).unwrap();
    let ask = |hosts: &[&'static str], authority| {
        let hosts = hosts.iter().map(|host| host.as_bytes()).collect();
        verdict(&gate, Guard::Protocol, &Caller { hosts, authority, ..Caller::default() })
    };
    assert_eq!(ask(&[], None), 400);
    assert_eq!(ask(&[], Some("localhost:3177")), 200);
    assert_eq!(ask(&[], Some("evil.example")), 403);
    assert_eq!(ask(&["localhost"], Some("LOCALHOST")), 200);
    assert_eq!(ask(&["localhost"], Some("evil.example")), 400);
    assert_eq!(ask(&["evil.example"], Some("localhost")), 400);
    assert_eq!(ask(&["localhost", "localhost"], None), 400);
    assert_eq!(ask(&["localhost", "evil.example"], None), 400);
    let caller = Caller { hosts: vec![b"local\xffhost"], ..Caller::default() };
    assert_eq!(verdict(&gate, Guard::Protocol, &caller), 400);
}

// HTTP-30 HTTP-07 HTTP-32
#[test]
fn the_address_that_was_bound_is_a_name_in_every_spelling() {
    let gate = |text| Gate::new(&bound(text)).unwrap();
    let mapped = gate("[::ffff:127.0.0.1]:3177");
    for name in
        ["[::ffff:127.0.0.1]:3177", "[::FFFF:7f00:1]", "127.0.0.1", "[0:0:0:0:0:ffff:7f00:1]"]
    {
        assert_eq!(host(&mapped, Guard::Protocol, name), 200, "{name}");
    }
    assert_eq!(host(&gate("127.0.0.9:1"), Guard::Protocol, "127.0.0.9:1"), 200);
    assert_eq!(host(&gate("127.0.0.9:1"), Guard::Protocol, "127.0.0.8"), 403);
    assert_eq!(host(&gate("[::1]:1"), Guard::Protocol, "[0:0:0:0:0:0:0:1]:1"), 200);
    // An address that others reach is no default name, except of the admin routes.
    let lan = gate("10.1.2.3:3177");
    assert_eq!(host(&lan, Guard::Protocol, "10.1.2.3:3177"), 403);
    assert_eq!(host(&lan, Guard::Protocol, "localhost"), 200);
    assert_eq!(host(&lan, Guard::Admin, "10.1.2.3:3177"), 200);
    assert_eq!(host(&gate("0.0.0.0:1"), Guard::Admin, "0.0.0.0:1"), 403);
    // One that was inherited is not added for the admin routes either.
    let inherited = Gate::new(&settings(Listening::Inherited(address("10.1.2.3:1")))).unwrap();
    assert_eq!(host(&inherited, Guard::Admin, "10.1.2.3:1"), 403);
    let inherited = Gate::new(&settings(Listening::Inherited(address("127.0.0.9:1")))).unwrap();
    assert_eq!(host(&inherited, Guard::Protocol, "127.0.0.9:1"), 200);
    assert_eq!(host(&inherited, Guard::Admin, "127.0.0.9:1"), 403);
}

// HTTP-30 HTTP-34 HTTP-36 HTTP-37 HTTP-38
#[test]
fn a_list_replaces_the_default_and_an_empty_one_takes_what_is_well_formed() {
    let with = |entries: &[&str]| {
        let entries = words(entries);
        Gate::new(&GateSettings { allowed_hosts: Some(&entries), ..local() }).unwrap()
    };
    let one = with(&["127.0.0.1"]);
    assert_eq!(host(&one, Guard::Protocol, "127.0.0.1:9"), 200);
    assert_eq!(host(&one, Guard::Protocol, "localhost"), 403);
    // The admin list is not configured by it.
    assert_eq!(host(&one, Guard::Admin, "localhost"), 200);
    let list = with(&["  KB.example.LAN:8443 ", "::1", "", "wiki"]);
    assert_eq!(host(&list, Guard::Protocol, "kb.EXAMPLE.lan:8443"), 200);
    assert_eq!(host(&list, Guard::Protocol, "kb.example.lan"), 403);
    assert_eq!(host(&list, Guard::Protocol, "kb.example.lan:80"), 403);
    assert_eq!(host(&list, Guard::Protocol, "[::1]:5"), 200);
    assert_eq!(host(&list, Guard::Protocol, "wiki:1"), 200);
    let nothing = with(&[" "]);
    assert_eq!(host(&nothing, Guard::Protocol, "localhost"), 403);
    let any = with(&[]);
    assert_eq!(host(&any, Guard::Protocol, "evil.example"), 200);
    assert_eq!(host(&any, Guard::Protocol, "user@evil.example"), 400);
    assert_eq!(host(&any, Guard::Admin, "evil.example"), 403);
}

// HTTP-26
#[test]
fn a_public_health_route_asks_for_no_name() {
    let gate = Gate::new(&GateSettings { healthz_public: true, ..local() }).unwrap();
    for name in ["evil.example", "user@x", ""] {
        assert_eq!(host(&gate, Guard::Health, name), 200);
    }
    assert_eq!(verdict(&gate, Guard::Health, &Caller::default()), 200);
}

// HTTP-27 HTTP-28 HTTP-92
#[test]
fn admin_routes_look_at_the_peer_first() {
    let entries = words(&[]);
    let open = GateSettings { allowed_hosts: Some(&entries), ..bound("0.0.0.0:3177") };
    let gate = Gate::new(&open).unwrap();
    let from = |peer: Option<&str>, host: &'static str| {
        let peer = peer.map(|peer| peer.parse().unwrap());
        let caller = Caller { peer, hosts: vec![host.as_bytes()], ..Caller::default() };
        let refusal = gate.check(Guard::Admin, &caller).err();
        (verdict(&gate, Guard::Admin, &caller), refusal.map(|refusal| refusal.message))
    };
    assert_eq!(from(Some("127.0.0.1"), "localhost").0, 200);
    assert_eq!(from(Some("::ffff:127.0.0.1"), "localhost").0, 200);
    assert_eq!(from(None, "localhost").0, 200);
    for peer in ["10.0.0.5", "::ffff:10.0.0.5", "::127.0.0.1"] {
        let (status, message) = from(Some(peer), "user@localhost");
        assert_eq!(status, 403, "{peer}");
        assert!(message.unwrap().contains("loopback"));
    }
}

// HTTP-31 HTTP-40 HTTP-41 HTTP-42
#[test]
fn pages_of_this_server_may_ask_and_others_may_not() {
    let gate = Gate::new(&local()).unwrap();
    for page in [
        "http://localhost:3177",
        "HTTP://LOCALHOST:3177",
        "http://127.0.0.1:3177",
        "http://[::1]:3177",
        " http://localhost:3177/whatever?x#y ",
    ] {
        assert_eq!(origin(&gate, page), 200, "{page}");
    }
    for page in [
        "http://localhost:3178",
        "http://localhost",
        "https://localhost:3177",
        "http://evil.example:3177",
        "http://localhost.:3177",
        "null",
        "http://127.1:3177",
    ] {
        assert_eq!(origin(&gate, page), 403, "{page}");
    }
    for page in [
        "",
        "localhost:3177",
        "http://",
        "http:///x",
        "http://a@localhost:3177",
        "http://[::1",
        "é",
    ] {
        assert_eq!(origin(&gate, page), 400, "{page}");
    }
    let two = Caller {
        hosts: vec![b"localhost"],
        origins: vec![b"http://localhost:3177", b"http://localhost:3177"],
        ..Caller::default()
    };
    assert_eq!(verdict(&gate, Guard::Protocol, &two), 400);
}

// HTTP-31 HTTP-33 HTTP-34 HTTP-42
#[test]
fn the_origins_follow_the_address_or_the_list() {
    let gate = |text| Gate::new(&bound(text)).unwrap();
    let eighty = gate("127.0.0.1:80");
    assert_eq!(origin(&eighty, "http://localhost"), 200);
    assert_eq!(origin(&eighty, "http://localhost:80"), 200);
    assert_eq!(origin(&gate("127.0.0.9:5"), "http://127.0.0.9:5"), 200);
    assert_eq!(origin(&gate("10.0.0.1:5"), "http://10.0.0.1:5"), 403);
    let unix = Gate::new(&settings(Listening::Unix)).unwrap();
    for page in ["http://localhost", "http://127.0.0.1", "http://[::1]"] {
        assert_eq!(origin(&unix, page), 200, "{page}");
    }
    assert_eq!(host(&unix, Guard::Protocol, "localhost"), 200);
    assert_eq!(host(&unix, Guard::Protocol, "kb.example"), 403);
    let entries = words(&[" https://KB.example ", "null", "http://a:1"]);
    let listed = Gate::new(&GateSettings { allowed_origins: Some(&entries), ..local() }).unwrap();
    for page in ["https://kb.example", "https://kb.example:9", "null", "http://a:1"] {
        assert_eq!(origin(&listed, page), 200, "{page}");
        assert!(listed.lists_origin(page.as_bytes()));
    }
    for page in ["http://localhost:3177", "http://a", "http://a:2", "http://kb.example"] {
        assert_eq!(origin(&listed, page), 403, "{page}");
    }
    let entries = words(&[]);
    let any = Gate::new(&GateSettings { allowed_origins: Some(&entries), ..local() }).unwrap();
    assert_eq!(origin(&any, "http://evil.example"), 200);
    assert!(!any.lists_origin(b"http://evil.example"), "what is not listed reads no answers");
}

// HTTP-43
#[test]
fn an_entry_that_is_no_origin_is_named_with_the_rule_it_breaks() {
    let flaws = [
        ("", OriginFlaw::Empty),
        ("  ", OriginFlaw::Empty),
        ("127.0.0.1:3100", OriginFlaw::NoScheme),
        ("://x", OriginFlaw::NoScheme),
        ("http://", OriginFlaw::NoHost),
        ("http://:80", OriginFlaw::NoHost),
        ("http://a:b", OriginFlaw::Unparsable),
        ("http://u@h", OriginFlaw::Unparsable),
        ("http://hé", OriginFlaw::Unparsable),
    ];
    for (entry, flaw) in flaws {
        let error = OriginList::of(&words(&["http://ok", entry])).unwrap_err();
        assert_eq!(error.flaw, flaw, "{entry}");
        assert!(error.to_string().is_ascii(), "{error}");
    }
    assert!(OriginList::of(&words(&["  http://ok:1  ", "NULL"])).is_ok());
}

// HTTP-50 HTTP-51 HTTP-52 HTTP-53 HTTP-54 HTTP-55 HTTP-56 HTTP-57
#[test]
fn whoever_starts_it_is_told_what_is_unusual() {
    let told = |address: &str, hosts: Option<&[&str]>, origins: Option<&[&str]>| {
        let (hosts, origins) = (hosts.map(words), origins.map(words));
        let settings = GateSettings {
            allowed_hosts: hosts.as_deref(),
            allowed_origins: origins.as_deref(),
            ..bound(address)
        };
        advice(&settings)
    };
    let says = |told: &[String], what: &[&str]| {
        assert_eq!(told.len(), what.len(), "{told:?}");
        for (line, words) in told.iter().zip(what) {
            assert!(words.split('|').all(|word| line.contains(word)), "{line} lacks {words}");
        }
    };
    says(&told("127.0.0.1:1", None, None), &[]);
    says(&told("0.0.0.0:1", None, None), &["no authentication|refuses requests from outside"]);
    says(&told("10.0.0.1:1", Some(&[]), None), &["no authentication|Host check is off|/mcp"]);
    let named = told("10.0.0.1:1", Some(&["kb.example", "localhost"]), None);
    says(&named, &["no authentication"]);
    assert!(!named[0].contains("allowed_hosts"));
    says(&told("127.0.0.1:1", None, Some(&[])), &["Origin check is off"]);
    says(&told("127.0.0.1:1", None, Some(&["https://kb.example"])), &["allowed_origins|/ui"]);
    says(&told("127.0.0.1:1", None, Some(&["http://127.9.9.9:4"])), &[]);
    says(&told("127.0.0.1:80", None, None), &["every local port"]);
    says(&told("127.0.0.1:80", None, Some(&["http://localhost"])), &[]);
    says(&told("127.0.0.1:1", Some(&["kb.example"]), None), &["allowed_hosts|/ui"]);
    says(&told("127.0.0.1:1", Some(&["kb.example", "[::1]"]), None), &[]);
    says(
        &told("10.0.0.1:1", Some(&["kb.example"]), Some(&["https://kb.example"])),
        &["no authentication", "allowed_origins", "allowed_hosts"],
    );
    assert_eq!(advice(&settings(Listening::Unix)).len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    // HTTP-39b
    #[test]
    fn only_the_listed_names_pass_however_they_are_dressed_up(
        start in "[a-z@\\[\\]:/#%. ]{0,3}",
        name in "(localhost|127\\.0\\.0\\.1|\\[::1\\]|evil\\.example|LocalHost)",
        end in "[a-z0-9@\\[\\]:/#?%. ]{0,4}",
    ) {
        let spelling = format!("{start}{name}{end}");
        let gate = Gate::new(&local()).unwrap();
        let seen = host(&gate, Guard::Protocol, &spelling);
        prop_assert_eq!(host(&gate, Guard::Health, &spelling), seen);
        prop_assert_eq!(host(&gate, Guard::Admin, &spelling), seen);
        let lower = spelling.to_ascii_lowercase();
        let rest = ["localhost", "127.0.0.1", "[::1]"]
            .iter()
            .find_map(|name| lower.strip_prefix(name));
        let passes = rest.is_some_and(|rest| {
            rest.is_empty()
                || rest.strip_prefix(':').is_some_and(|port| {
                    port.is_empty()
                        || (port.bytes().all(|byte| byte.is_ascii_digit())
                            && port.parse::<u32>().is_ok_and(|port| port <= 65_535))
                })
        });
        prop_assert_eq!(seen == 200, passes, "{}", spelling);
    }

    // HTTP-36 HTTP-44
    #[test]
    fn nothing_makes_the_gate_stumble(
        host in prop::collection::vec(any::<u8>(), 0..24),
        origin in prop::collection::vec(any::<u8>(), 0..24),
    ) {
        let entries = words(&[]);
        let settings = GateSettings { allowed_hosts: Some(&entries), ..local() };
        let gate = Gate::new(&settings).unwrap();
        let caller =
            Caller { hosts: vec![&host], origins: vec![&origin], ..Caller::default() };
        let well_formed =
            std::str::from_utf8(&host).ok().and_then(Authority::parse).is_some();
        if let Err(refusal) = gate.check(Guard::Protocol, &caller) {
            let about_host = refusal.message.contains("Host");
            prop_assert_eq!(about_host, !well_formed);
        } else {
            prop_assert!(well_formed);
        }
    }
}

#[test]
fn a_list_may_be_asked_by_itself() {
    let named = Authority::parse("kb.example:1").unwrap();
    assert!(HostList::any().admits(&named));
    assert!(!HostList::of(&words(&["kb.example:2"])).admits(&named));
}
