//! What is decided about each need: rows of `:allow`, a need, and whether it is granted.

use std::net::IpAddr;
use std::path::PathBuf;

use flowstone_engine::codec;
use flowstone_flow::permission::{
    Access, Allow, Decision, Host, Known, Missing, Need, NetRow, Permissions, Reach, add_flag,
    decide, derived, read, shown,
};
use flowstone_lang::value::Value;

/// The project that the rows below are about.
const ROOT: &str = "/srv/shop";

fn edn(text: &str) -> Value {
    codec::decode(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn resolve(path: &str) -> PathBuf {
    let path = PathBuf::from(ROOT).join(path);
    match path.file_name() {
        Some(name) if name == "." => path.parent().expect("a folder").to_owned(),
        _ => path.components().collect(),
    }
}

/// What flows of a project may touch, by the text of its `:allow`.
fn project(allow: &str) -> Permissions {
    let allow = read(":allow", &edn(allow), &resolve).unwrap_or_else(|it| panic!("{allow}: {it}"));
    let mut defaults = Allow {
        read: vec![ROOT.into()],
        write: vec![ROOT.into()],
        home: format!("{ROOT}/.flowstone").into(),
        programs: vec!["git".to_owned()],
        ..Allow::default()
    };
    add_flag(&mut defaults, Access::Net, ":public", &resolve).expect("a row");
    Permissions {
        defaults,
        project: allow,
        ..Permissions::default()
    }
}

/// Reads a need: `read PATH`, `net HOST:PORT [ADDRESS]`, `secret NAME HOST:PORT` and so on.
fn need(text: &str) -> Need {
    let words: Vec<&str> = text.split(' ').collect();
    let host = |text: &str| {
        let (name, port) = text.rsplit_once(':').expect("host:port");
        Host::new(name, port.parse().expect("a port"))
    };
    match words[..] {
        ["read", path] => Need::Read(path.into()),
        ["write", path] => Need::Write(path.into()),
        ["net", it] => {
            let host = host(it);
            let address: Option<IpAddr> = host.name.parse().ok();
            Need::Net {
                reach: reach(address),
                address,
                host,
            }
        }
        ["net", it, address] => {
            let address = Some(address.parse().expect("an address"));
            Need::Net {
                host: host(it),
                address,
                reach: reach(address),
            }
        }
        ["proxy", it] => Need::Proxy(host(it)),
        ["secret", name, it] => Need::Secret {
            name: name.to_owned(),
            host: host(it),
        },
        ["run", program] => Need::Program(program.to_owned()),
        ["env", name] => Need::Env(name.to_owned()),
        _ => panic!("{text}"),
    }
}

/// The addresses of these tests: networks of documentation stand for public ones.
fn reach(address: Option<IpAddr>) -> Reach {
    match address {
        Some(IpAddr::V4(it)) if it.is_loopback() || it.is_private() => Reach::Private,
        Some(IpAddr::V6(it)) if it.is_loopback() || it.is_unique_local() => Reach::Private,
        _ => Reach::Public,
    }
}

/// Each row: `:allow`, a need, and `yes` or `no`.
const ROWS: &[(&str, &str, bool)] = &[
    // Without any row: the project's folder.
    ("{}", "read /srv/shop", true),
    ("{}", "read /srv/shop/flows/a.edn", true),
    ("{}", "read /srv/shop/deep/er/still.txt", true),
    ("{}", "write /srv/shop/out.md", true),
    ("{}", "write /srv/shop/flows", true),
    ("{}", "read /srv/shop/.gitignore", true),
    ("{}", "read /srv/shop/.environment", true),
    ("{}", "read /srv/shop/.env.example", true),
    ("{}", "read /srv", false),
    ("{}", "read /srv/shopping", false),
    ("{}", "read /srv/other", false),
    ("{}", "read /", false),
    ("{}", "read /etc/passwd", false),
    ("{}", "read /proc/self/environ", false),
    ("{}", "read /srv/shop/.env", false),
    ("{}", "read /srv/shop/.ENV", false),
    ("{}", "read /srv/shop/sub/.env", false),
    ("{}", "read /srv/shop/.git", false),
    ("{}", "read /srv/shop/.git/config", false),
    ("{}", "read /srv/shop/sub/.git/config", false),
    ("{}", "read /srv/shop/.flowstone", false),
    ("{}", "read /srv/shop/.flowstone/links.key", false),
    ("{}", "read /srv/shop/.flowstone/flowstone.db", false),
    ("{}", "write /srv/shop/.env", false),
    ("{}", "write /srv/shop/.git/hooks/pre-commit", false),
    ("{}", "write /srv/shop/.flowstone/flowstone.db", false),
    ("{}", "write /srv", false),
    ("{}", "write /srv/out", false),
    ("{}", "write /tmp/x", false),
    // Rows for paths.
    ("{:read [\"/etc\"]}", "read /etc/passwd", true),
    ("{:read [\"/etc\"]}", "read /etc", true),
    ("{:read [\"/etc\"]}", "read /etcetera", false),
    ("{:read [\"/etc\"]}", "write /etc/passwd", false),
    ("{:read [\"/etc/hosts\"]}", "read /etc/hosts", true),
    ("{:read [\"/etc/hosts\"]}", "read /etc/passwd", false),
    ("{:read [\".env\"]}", "read /srv/shop/.env", true),
    ("{:read [\".env\"]}", "write /srv/shop/.env", false),
    ("{}", "read /srv/shop/.env.local", false),
    ("{}", "read /srv/shop/sub/.ENV.production", false),
    ("{}", "read /srv/shop/.env.example", true),
    ("{}", "read /srv/shop/flowstone.edn", true),
    ("{}", "write /srv/shop/flowstone.edn", false),
    ("{}", "write /srv/shop/sub/FLOWSTONE.EDN", false),
    (
        "{:write [\"flowstone.edn\"]}",
        "write /srv/shop/flowstone.edn",
        true,
    ),
    ("{:read [\".git\"]}", "read /srv/shop/.git/config", true),
    (
        "{:read [\".git\"]}",
        "read /srv/shop/sub/.git/config",
        false,
    ),
    (
        "{:read [\".flowstone\"]}",
        "read /srv/shop/.flowstone/links.key",
        true,
    ),
    (
        "{:read [\".flowstone/blobs\"]}",
        "read /srv/shop/.flowstone/links.key",
        false,
    ),
    ("{:read [\"/\"]}", "read /etc/passwd", true),
    ("{:read [\"/\"]}", "read /srv/shop/.env", false),
    (
        "{:read [\"/srv/a\"]}",
        "read /srv/a/repo/.git/config",
        false,
    ),
    (
        "{:read [\"/srv/a/repo/.git\"]}",
        "read /srv/a/repo/.git/config",
        true,
    ),
    ("{:write [\"/srv/out\"]}", "write /srv/out/a/b.txt", true),
    ("{:write [\"/srv/out\"]}", "read /srv/out/a/b.txt", false),
    ("{:write [\"/srv/out\"]}", "write /srv/output", false),
    ("{:read #{\"/a\" \"/b\"}}", "read /b/c", true),
    ("{:defaults false}", "read /srv/shop/a.txt", false),
    ("{:defaults false}", "write /srv/shop/a.txt", false),
    (
        "{:defaults false :read [\"data\"]}",
        "read /srv/shop/data/a.csv",
        true,
    ),
    (
        "{:defaults false :read [\"data\"]}",
        "read /srv/shop/other/a.csv",
        false,
    ),
    (
        "{:defaults false :read [\"data\"]}",
        "write /srv/shop/data/a.csv",
        false,
    ),
    // Servers, without any row: public addresses.
    ("{}", "net example.com:443 192.0.2.1", true),
    ("{}", "net example.com:8443 192.0.2.1", true),
    ("{}", "net 192.0.2.1:80", true),
    ("{}", "net [2001:db8::1]:80", true),
    ("{}", "net 127.0.0.1:80", false),
    ("{}", "net 127.1.2.3:80", false),
    ("{}", "net localhost:8080 127.0.0.1", false),
    ("{}", "net [::1]:80", false),
    ("{}", "net 10.0.0.1:80", false),
    ("{}", "net 192.168.1.1:443", false),
    ("{}", "net 172.16.0.1:443", false),
    ("{}", "net [fd00::1]:443", false),
    ("{}", "net inside.example.com:443 10.1.1.1", false),
    ("{:defaults false}", "net example.com:443 192.0.2.1", false),
    (
        "{:defaults false :net [:public]}",
        "net example.com:443 192.0.2.1",
        true,
    ),
    (
        "{:defaults false :net [:public]}",
        "net 10.0.0.1:443",
        false,
    ),
    // Rows for servers.
    ("{:net [\"127.0.0.1\"]}", "net 127.0.0.1:80", true),
    ("{:net [\"127.0.0.1\"]}", "net 127.0.0.1:65000", true),
    ("{:net [\"127.0.0.1\"]}", "net 127.0.0.2:80", false),
    ("{:net [\"127.0.0.1\"]}", "net localhost:80 127.0.0.1", true),
    ("{:net [\"127.0.0.1\"]}", "net [::1]:80", false),
    ("{:net [\"127.0.0.1:8080\"]}", "net 127.0.0.1:8080", true),
    ("{:net [\"127.0.0.1:8080\"]}", "net 127.0.0.1:8081", false),
    ("{:net [\"localhost\"]}", "net localhost:80 127.0.0.1", true),
    ("{:net [\"localhost\"]}", "net 127.0.0.1:80", true),
    ("{:net [\"localhost\"]}", "net [::1]:80", true),
    ("{:net [\"localhost\"]}", "net 127.0.0.2:80", false),
    ("{:net [\"localhost:80\"]}", "net [::1]:81", false),
    ("{:net [\"127.0.0.0/8\"]}", "net 127.9.9.9:1", true),
    ("{:net [\"[::1]:80\"]}", "net [::1]:80", true),
    ("{:net [\"[::1]:80\"]}", "net [::1]:8080", false),
    ("{:net [\"::1\"]}", "net [::1]:8080", true),
    ("{:net [\"::ffff:127.0.0.1\"]}", "net 127.0.0.1:80", true),
    ("{:net [\"127.0.0.1\"]}", "net [::ffff:127.0.0.1]:80", true),
    ("{:net [\"10.0.0.0/8\"]}", "net 10.9.8.7:443", true),
    ("{:net [\"10.0.0.0/8\"]}", "net 11.0.0.1:443 10.0.0.1", true),
    ("{:net [\"10.0.0.0/8\"]}", "net 192.168.0.1:443", false),
    ("{:net [\"10.0.0.0/8:5432\"]}", "net 10.9.8.7:5432", true),
    ("{:net [\"10.0.0.0/8:5432\"]}", "net 10.9.8.7:5433", false),
    (
        "{:net [\"db.internal\"]}",
        "net db.internal:5432 10.0.0.9",
        true,
    ),
    (
        "{:net [\"db.internal\"]}",
        "net DB.Internal.:5432 10.0.0.9",
        true,
    ),
    (
        "{:net [\"db.internal\"]}",
        "net other.internal:5432 10.0.0.9",
        false,
    ),
    (
        "{:net [\"*.internal\"]}",
        "net db.internal:5432 10.0.0.9",
        true,
    ),
    (
        "{:net [\"*.internal\"]}",
        "net internal:5432 10.0.0.9",
        false,
    ),
    (
        "{:net [\"*.internal\"]}",
        "net evilinternal:5432 10.0.0.9",
        false,
    ),
    (
        "{:net [\"*.internal:443\"]}",
        "net a.b.internal:443 10.0.0.9",
        true,
    ),
    ("{:net [\"*\"]}", "net 10.0.0.9:1", true),
    (
        "{:defaults false :net [\"api.example.com\"]}",
        "net api.example.com:443 192.0.2.1",
        true,
    ),
    (
        "{:defaults false :net [\"api.example.com\"]}",
        "net www.example.com:443 192.0.2.1",
        false,
    ),
    (
        "{:defaults false :net [\"api.example.com:443\"]}",
        "net api.example.com:80 192.0.2.1",
        false,
    ),
    // A proxy is named, even where it is public.
    ("{}", "proxy proxy.example.com:3128", false),
    (
        "{:net [\"proxy.example.com\"]}",
        "proxy proxy.example.com:3128",
        true,
    ),
    (
        "{:net [\"proxy.example.com:3128\"]}",
        "proxy proxy.example.com:3129",
        false,
    ),
    ("{:net [\"*\"]}", "proxy proxy.example.com:3128", false),
    ("{:net [:public]}", "proxy proxy.example.com:3128", false),
    // Secrets go to the hosts that are named for them.
    ("{}", "secret crm-token crm.example.com:443", false),
    (
        "{:secrets {:crm-token [\"crm.example.com\"]}}",
        "secret crm-token crm.example.com:443",
        true,
    ),
    (
        "{:secrets {:crm-token [\"crm.example.com\"]}}",
        "secret CRM_TOKEN crm.example.com:443",
        true,
    ),
    (
        "{:secrets {\"CRM_TOKEN\" [\"crm.example.com\"]}}",
        "secret crm-token crm.example.com:443",
        true,
    ),
    (
        "{:secrets {:crm-token [\"crm.example.com\"]}}",
        "secret crm-token evil.example.com:443",
        false,
    ),
    (
        "{:secrets {:crm-token [\"crm.example.com\"]}}",
        "secret crm-token crm.example.com.evil.com:443",
        false,
    ),
    (
        "{:secrets {:crm-token [\"crm.example.com\"]}}",
        "secret other-token crm.example.com:443",
        false,
    ),
    (
        "{:secrets {:crm-token [\"crm.example.com\"]}}",
        "secret HOME crm.example.com:443",
        false,
    ),
    (
        "{:secrets {:crm-token [\"crm.example.com:443\"]}}",
        "secret crm-token crm.example.com:8443",
        false,
    ),
    (
        "{:secrets {:crm-token [\"*.example.com\"]}}",
        "secret crm-token crm.example.com:443",
        true,
    ),
    (
        "{:secrets {:crm-token []}}",
        "secret crm-token crm.example.com:443",
        false,
    ),
    (
        "{:net [\"*\"]}",
        "secret crm-token crm.example.com:443",
        false,
    ),
    // Programs and variables.
    ("{}", "run git", true),
    ("{}", "run node", false),
    ("{:programs [\"node\"]}", "run node", true),
    ("{:programs [\"node\"]}", "run node18", false),
    ("{:programs [\"node\"]}", "run /tmp/node", false),
    ("{:programs [\"*\"]}", "run anything", true),
    ("{:defaults false}", "run git", false),
    ("{}", "env HOME", false),
    ("{:env [\"HOME\"]}", "env HOME", true),
    ("{:env [\"HOME\"]}", "env home", false),
    ("{:env [\"HOME\"]}", "env HOMEPATH", false),
    ("{:env [\"*\"]}", "env PATH", true),
    (
        "{:read [\"/\"] :write [\"/\"] :net [\"*\"] :programs [\"*\"]}",
        "env PATH",
        false,
    ),
];

#[test]
fn every_need_is_decided_by_the_rows() {
    let wrong: Vec<String> = ROWS
        .iter()
        .filter_map(|(allow, text, granted)| {
            let decided = decide(&project(allow).of_flow("any"), &need(text));
            let is_granted = decided == Decision::Granted;
            (is_granted != *granted).then(|| format!("{allow}  {text}: {is_granted}"))
        })
        .collect();
    assert!(ROWS.len() >= 120, "{}", ROWS.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whatever is refused names a row; with that row it is granted, and nothing else is needed.
#[test]
fn what_is_missing_is_the_row_that_grants_it() {
    for (allow, text, _) in ROWS.iter().filter(|(_, _, granted)| !granted) {
        let need = need(text);
        let Decision::Missing(missing) = decide(&project(allow).of_flow("any"), &need) else {
            panic!("{allow}  {text} is granted");
        };
        let added = project(&missing.edn()).of_flow("any");
        // `*` never stands for a proxy.
        assert_eq!(
            decide(&added, &need),
            Decision::Granted,
            "{} {text}",
            missing.edn()
        );
        let mut flags = Allow::default();
        let flag = missing.flag();
        let (name, item) = flag.split_once(' ').expect("an option and a value");
        assert_eq!(name, missing.access.flag());
        let item = item.trim_matches('\'');
        add_flag(&mut flags, missing.access, item, &resolve).expect(item);
        assert_eq!(decide(&flags, &need), Decision::Granted, "{flag}");
    }
}

#[test]
fn a_flow_has_the_rows_of_the_project_and_its_own() {
    let mut permissions = project("{:net [\"10.0.0.1\"]}");
    let own = |text: &str| read(":allow", &edn(text), &resolve).expect(text);
    permissions
        .flows
        .insert("wide".into(), own("{:net [\"10.0.0.2\"]}"));
    permissions
        .flows
        .insert("narrow".into(), own("{:defaults false :read [\"data\"]}"));
    let may = |slug: &str, text: &str| {
        decide(&permissions.of_flow(slug), &need(text)) == Decision::Granted
    };
    assert!(may("other", "net 10.0.0.1:80") && !may("other", "net 10.0.0.2:80"));
    assert!(may("wide", "net 10.0.0.1:80") && may("wide", "net 10.0.0.2:80"));
    assert!(may("wide", "read /srv/shop/a"));
    assert!(may("narrow", "read /srv/shop/data/a") && !may("narrow", "read /srv/shop/a"));
    assert!(!may("narrow", "net 10.0.0.1:80") && !may("narrow", "net example.com:443"));
}

#[test]
fn a_flow_from_elsewhere_starts_with_nothing() {
    let mut permissions = project("{:net [\"10.0.0.1\"] :secrets {:a [\"a.example.com\"]}}");
    let granted = |permissions: &Permissions| {
        ROWS.iter()
            .filter(|(_, text, _)| {
                decide(&permissions.of_outside_flow("any", None), &need(text)) == Decision::Granted
            })
            .count()
    };
    assert_eq!(granted(&permissions), 0);
    permissions.command.net = project("{:net [\"10.9.8.7\"]}").project.allow.net;
    assert_ne!(granted(&permissions), 0);
}

#[test]
fn allow_is_checked_with_the_nearest_name() {
    let refused = |text: &str| {
        let error = read(":allow", &edn(text), &resolve).expect_err(text);
        error.message
    };
    let cases = [
        ("[]", "`:allow` takes a map, not a vector"),
        (
            "{:raed [\"a\"]}",
            "`:allow` has no key `:raed`; did you mean `:read`?",
        ),
        ("{:zzz 1}", "`:allow` has no key `:zzz`"),
        (
            "{:read \"a\"}",
            "`:allow :read` takes a vector of strings, not a string",
        ),
        (
            "{:read [7]}",
            "`:allow :read` contains an integer; it takes paths",
        ),
        (
            "{:read [\"\"]}",
            "`:allow :read` contains an empty string; it takes paths",
        ),
        (
            "{:read [:public]}",
            "`:allow :read` contains a keyword; it takes paths such as",
        ),
        (
            "{:secrets [\"a\"]}",
            "`:allow :secrets` takes a map of names and hosts",
        ),
        (
            "{:defaults 1}",
            "`:allow :defaults` takes true or false, not an integer",
        ),
        (
            "{:net [\"http://a\"]}",
            "`:allow :net` contains \"http://a\", which is not a host",
        ),
        (
            "{:net [\"a:b:c:d\"]}",
            "`:allow :net` contains \"a:b:c:d\", which is not a host",
        ),
        (
            "{:net [\"10.0.0.0/99\"]}",
            "`:allow :net` contains \"10.0.0.0/99\", which is not a host",
        ),
        (
            "{:secrets {:a [\"*x\"]}}",
            "`:allow :secrets :a` contains \"*x\", which is not a host",
        ),
    ];
    for (text, message) in cases {
        let found = refused(text);
        assert!(found.starts_with(message), "{text}: {found}");
    }
}

/// What connections of project files allow: their hosts, the secrets that they name, their programs.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn connections_of_the_project_allow_what_they_name() {
    let known = [Known {
        id: "openai".into(),
        hosts: vec!["api.openai.com:443".into()],
        keys: vec!["OPENAI_API_KEY".into()],
        variables: vec!["OPENAI_BASE_URL".into()],
    }];
    let rows = [
        ("{}", "secret OPENAI_API_KEY api.openai.com:443", true),
        ("{}", "secret OPENAI_API_KEY evil.example.com:443", false),
        ("{}", "net 127.0.0.1:9000", false),
        (
            "{:environment {:OPENAI_BASE_URL \"http://127.0.0.1:9000/v1\"}}",
            "net 127.0.0.1:9000",
            true,
        ),
        (
            "{:environment {:OPENAI_BASE_URL \"http://127.0.0.1:9000/v1\"}}",
            "net 127.0.0.1:9001",
            false,
        ),
        (
            "{:environment {:OPENAI_BASE_URL \"http://127.0.0.1:9000/v1\"}}",
            "secret OPENAI_API_KEY 127.0.0.1:9000",
            true,
        ),
        (
            "{:connections {:crm {:base-url \"http://10.0.0.5/api\"}}}",
            "net 10.0.0.5:80",
            true,
        ),
        (
            "{:connections {:crm {:base-url \"http://10.0.0.5/api\"}}}",
            "net 10.0.0.5:8080",
            false,
        ),
        (
            "{:connections {:crm {:base-url \"http://u:p@10.0.0.5:81/api\"}}}",
            "net 10.0.0.5:81",
            true,
        ),
        (
            "{:connections {:crm {:base-url \"http://0.0.0.0:81\"}}}",
            "net 127.0.0.1:81",
            true,
        ),
        (
            "{:connections {:crm {:base-url \"http://*\"}}}",
            "net 10.0.0.5:80",
            false,
        ),
        (
            "{:connections {:crm {:base-url \"https://crm.example.com\" :auth {:type :bearer :secret-ref :t}}}}",
            "secret t crm.example.com:443",
            true,
        ),
        (
            "{:connections {:crm {:base-url \"https://crm.example.com\" :auth {:type :bearer :secret-ref :t}}}}",
            "secret t crm.example.com:80",
            false,
        ),
        (
            "{:connections {:crm {:base-url \"https://crm.example.com\" :auth {:type :bearer}}}}",
            "secret crm-token crm.example.com:443",
            true,
        ),
        (
            "{:connections {:crm {:base-url \"https://crm.example.com\" :auth {:type :bearer}}}}",
            "secret other-token crm.example.com:443",
            false,
        ),
        (
            "{:connections {:crm {:auth {:type :bearer :secret-ref :t}}}}",
            "secret t crm.example.com:443",
            false,
        ),
        (
            "{:connections {:ai {:backend :openai}}}",
            "secret ai-api-key api.openai.com:443",
            true,
        ),
        (
            "{:connections {:ai {:backend :openai :base-url \"http://127.0.0.1:1\"}}}",
            "secret OPENAI_API_KEY 127.0.0.1:1",
            true,
        ),
        (
            "{:profiles {:dev {:connections {:crm {:base-url \"http://127.0.0.1:7\"}}}}}",
            "net 127.0.0.1:7",
            true,
        ),
        (
            "{:bindings {:crm {:base-url \"http://127.0.0.1:7\"}}}",
            "net 127.0.0.1:7",
            true,
        ),
        (
            "{:llm-providers [{:id :own :base-url \"http://127.0.0.1:7/v1\"}]}",
            "net 127.0.0.1:7",
            true,
        ),
        (
            "{:http {:allow-hosts [\"10.0.0.0/8\"]}}",
            "net 10.1.1.1:80",
            true,
        ),
        (
            "{:http {:proxy \"http://proxy.internal:3128\"}}",
            "proxy proxy.internal:3128",
            true,
        ),
        (
            "{:connections {:notes {:backend :mcp :command [\"node\" \"server.js\"]}}}",
            "run node",
            true,
        ),
        (
            "{:connections {:notes {:backend :mcp :command [\"node\" \"server.js\"]}}}",
            "run server.js",
            false,
        ),
        ("{:secrets {:t {:env \"T_VALUE\"}}}", "env T_VALUE", true),
    ];
    for (settings, text, granted) in rows {
        let permissions = Permissions {
            derived: derived(&edn(settings), &known),
            ..project("{}")
        };
        let decided = decide(&permissions.of_flow("any"), &need(text));
        assert_eq!(decided == Decision::Granted, granted, "{settings}  {text}");
    }
}

/// Text of a flow is shown so that a terminal does not act on it.
#[test]
fn what_is_missing_is_shown_without_controls() {
    let path = "/tmp/\u{1b}[8mhidden\u{202e}\n/x";
    let missing = Missing::of(&Need::Read(path.into()));
    for text in [
        missing.action(),
        missing.line(),
        missing.flag(),
        shown(path),
    ] {
        assert!(
            !text.chars().any(|it| it.is_control() || it == '\u{202e}'),
            "{text:?}"
        );
    }
    assert_eq!(missing.action(), r"read /tmp/\x1b[8mhidden\u{202e}\x0a/x");
    let line = edn(&format!("{{{}}}", missing.line()));
    let row = line
        .get("allow")
        .and_then(|it| it.get("read"))
        .expect("a row");
    assert_eq!(row, &Value::vector([Value::from(path)]));
}

#[test]
fn rows_of_hosts_read_as_they_are_written() {
    for text in [
        "a.internal",
        "*.internal:8443",
        "10.0.0.0/8",
        "127.0.0.1:80",
        "[::1]:80",
        "::1",
        "*",
    ] {
        assert_eq!(NetRow::read(text).expect(text).to_string(), text);
    }
    for text in [
        "", ":80", "a:b", "a:99999", "*a", "a*", "[::1", "[a]:1", "a/8", "a b", "http://a",
    ] {
        assert_eq!(NetRow::read(text), None, "{text}");
    }
}
