//! The addresses that a request may reach: rows for the one function that decides. Requests go only to this machine.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use flowstone_flow::permission::NetAllow;
use flowstone_steps::guard::{Guard, GuardedResolver, Pattern, Why, Zone, allowed};
use reqwest::Url;
use reqwest::dns::{Name, Resolve as _};

use crate::net::Net;
use crate::server::{json, reply};

/// Returns a guard that lets a flow connect to every address that it does not refuse.
fn open() -> Guard {
    let net = NetAllow {
        any: true,
        ..NetAllow::default()
    };
    Guard {
        net: Arc::new(net),
        ..Guard::default()
    }
}

/// URLs, and the zone that the guard finds for each, or why it refuses it.
///
/// `public`, `private` and `here` are allowed and lie in that zone; `name` is decided when it is resolved; `refused` is
/// a link-local or metadata address; `bad` is not an address.
const ROWS: &[(&str, &str)] = &[
    // IPv4 in the usual notation.
    ("http://93.184.216.34/", "public"),
    ("http://8.8.8.8:8080/", "public"),
    ("http://127.0.0.1/", "here"),
    ("http://127.255.255.254/", "here"),
    ("http://0.0.0.0/", "here"),
    ("http://0.1.2.3/", "here"),
    ("http://10.0.0.1/", "private"),
    ("http://172.16.0.1/", "private"),
    ("http://172.31.255.255/", "private"),
    ("http://172.32.0.1/", "public"),
    ("http://192.168.1.1/", "private"),
    ("http://100.64.0.1/", "private"),
    ("http://100.127.255.255/", "private"),
    ("http://100.128.0.1/", "public"),
    ("http://192.0.0.1/", "private"),
    ("http://198.18.0.1/", "private"),
    ("http://198.20.0.1/", "public"),
    ("http://224.0.0.1/", "private"),
    ("http://240.0.0.1/", "private"),
    ("http://255.255.255.255/", "private"),
    ("http://169.254.169.254/", "refused"),
    ("http://169.254.0.1/", "refused"),
    ("http://169.255.0.1/", "public"),
    ("http://100.100.100.200/", "refused"),
    ("http://168.63.129.16/", "refused"),
    ("http://192.0.0.192/", "refused"),
    // IPv4 in decimal, octal and hexadecimal, with fewer parts, and with a dot at the end.
    ("http://2130706433/", "here"),
    ("http://0x7f000001/", "here"),
    ("http://017700000001/", "here"),
    ("http://0177.0.0.1/", "here"),
    ("http://0x7f.0.0.1/", "here"),
    ("http://127.1/", "here"),
    ("http://127.0.1/", "here"),
    ("http://127.0.0.1./", "here"),
    ("http://2852039166/", "refused"),
    ("http://0xa9fea9fe/", "refused"),
    ("http://0251.0376.0251.0376/", "refused"),
    ("http://169.254.43518/", "refused"),
    ("http://169.254.169.254./", "refused"),
    ("http://0xA9.0xFE.0xA9.0xFE/", "refused"),
    ("http://3232235777/", "private"),
    ("http://256.0.0.1/", "bad"),
    ("http://4294967296/", "bad"),
    ("http://1.2.3.4.5/", "bad"),
    // In other digits that a name may contain.
    ("http://１２７.0.0.1/", "here"),
    ("http://①②⑦.0.0.1/", "here"),
    ("http://127。0。0。1/", "here"),
    ("http://169．254．169．254/", "refused"),
    ("http://%31%32%37.0.0.1/", "here"),
    ("http://%6c%6f%63%61%6c%68%6f%73%74/", "here"),
    // IPv6.
    ("http://[2606:2800:220:1::1]/", "public"),
    ("http://[::1]/", "here"),
    ("http://[::]/", "here"),
    ("http://[0:0:0:0:0:0:0:1]/", "here"),
    ("http://[0000:0000:0000:0000:0000:0000:0000:0001]/", "here"),
    ("http://[fc00::1]/", "private"),
    ("http://[fd12:3456::1]/", "private"),
    ("http://[fec0::1]/", "private"),
    ("http://[ff02::1]/", "private"),
    ("http://[100::1]/", "private"),
    ("http://[fe80::1]/", "refused"),
    ("http://[febf::1]/", "refused"),
    ("http://[fe80::1%25eth0]/", "bad"),
    ("http://[fe80::1%eth0]/", "bad"),
    ("http://[fd00:ec2::254]/", "refused"),
    ("http://[fd20:ce::254]/", "refused"),
    // IPv4 inside IPv6: mapped, translated, compatible, NAT64, 6to4, Teredo, ISATAP.
    ("http://[::ffff:127.0.0.1]/", "here"),
    ("http://[::ffff:7f00:1]/", "here"),
    ("http://[::ffff:0:0]/", "here"),
    ("http://[::ffff:0.0.0.0]/", "here"),
    ("http://[::ffff:0.0.0.1]/", "here"),
    ("http://[::ffff:10.0.0.1]/", "private"),
    ("http://[::ffff:169.254.169.254]/", "refused"),
    ("http://[::ffff:a9fe:a9fe]/", "refused"),
    ("http://[::ffff:8.8.8.8]/", "public"),
    ("http://[::ffff:0:127.0.0.1]/", "here"),
    ("http://[::ffff:0:a9fe:a9fe]/", "refused"),
    ("http://[::127.0.0.1]/", "here"),
    ("http://[::169.254.169.254]/", "refused"),
    ("http://[64:ff9b::7f00:1]/", "here"),
    ("http://[64:ff9b::169.254.169.254]/", "refused"),
    ("http://[64:ff9b::8.8.8.8]/", "public"),
    ("http://[64:ff9b:1::10.0.0.1]/", "private"),
    ("http://[2002:7f00:1::]/", "here"),
    ("http://[2002:a9fe:a9fe::1]/", "refused"),
    ("http://[2002:808:808::1]/", "public"),
    ("http://[2001:0:1::80ff:fffe]/", "here"),
    ("http://[2001:0:1::5601:5601]/", "refused"),
    ("http://[2001:db9::5efe:127.0.0.1]/", "here"),
    ("http://[2001:db9::200:5efe:a9fe:a9fe]/", "refused"),
    // Names.
    ("http://localhost/", "here"),
    ("http://LOCALHOST./", "here"),
    ("http://a.localhost/", "here"),
    ("http://ｌｏｃａｌｈｏｓｔ/", "here"),
    ("http://example.com/", "name"),
    ("http://127.0.0.1.example.com/", "name"),
    ("http://localhost.example.com/", "name"),
    ("http://bücher.example/", "name"),
    ("http://metadata.google.internal/", "refused"),
    ("http://METADATA.google.internal./", "refused"),
    ("http://instance-data/", "refused"),
    // Users, ports and paths that look like hosts.
    ("http://example.com@127.0.0.1/", "here"),
    ("http://example.com:80@169.254.169.254/", "refused"),
    ("http://127.0.0.1:80@93.184.216.34/", "public"),
    ("http://user:pass@10.0.0.1:8080/", "private"),
    ("http://example.com\\@127.0.0.1/", "name"),
    ("http://127.0.0.1\\.example.com/", "here"),
    ("http://127.0.0.1#@example.com/", "here"),
    ("http://127.0.0.1?@example.com/", "here"),
    ("http:127.0.0.1/", "here"),
    ("http:///127.0.0.1/", "here"),
    ("http:\\\\127.0.0.1\\a", "here"),
    ("http://127.0.0.1:65536/", "bad"),
    ("http://127.0.0.1:a/", "bad"),
    ("http://[::1/", "bad"),
    ("http://[127.0.0.1]/", "bad"),
    ("http://exa mple.com/", "bad"),
    ("http://\u{ad}/", "bad"),
    ("http://127.0\u{ad}.0.1/", "here"),
    ("http:///", "bad"),
];

/// Returns the guard's decision about a URL, first with the project's default settings.
fn verdict(url: &str) -> &'static str {
    let Ok(url) = Url::parse(url) else {
        return "bad";
    };
    let usual = open();
    if let Err(refused) = usual.check_url(&url, Zone::Loopback) {
        assert_eq!(refused.why, Why::Metadata, "{url}");
        return "refused";
    }
    // The zone follows from which redirects may reach the address.
    let is_name = flowstone_steps::guard::literal(&url).is_none();
    if usual.check_url(&url, Zone::Private).is_err() {
        return "here";
    }
    if usual.check_url(&url, Zone::Public).is_err() {
        return "private";
    }
    if is_name { "name" } else { "public" }
}

#[test]
fn each_form_of_an_address_has_the_zone_of_its_target() {
    let mut wrong = Vec::new();
    for (url, expected) in ROWS {
        let found = verdict(url);
        if found != *expected {
            wrong.push(format!("{url}: {found}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ROWS.len() >= 110, "{}", ROWS.len());
}

#[test]
fn a_project_may_deny_private_addresses_and_allow_some() {
    let pattern = |text: &str| Pattern::read(text).expect(text);
    let closed = Guard {
        deny_private: true,
        allow: vec![pattern("10.0.0.0/8"), pattern("::1")].into(),
        ..open()
    };
    for (url, expected) in ROWS {
        let Ok(url) = Url::parse(url) else {
            continue;
        };
        let host = url.host_str().unwrap_or_default();
        let is_open = ["10.", "[::1]", "[::ffff:a"]
            .iter()
            .any(|it| host.starts_with(it));
        let is_outside = ["public", "name"].contains(expected);
        let found = closed.check_url(&url, Zone::Loopback);
        // Only the mapped form is the same address as in 10.0.0.0/8; in other forms, it is a different address.
        let expected = is_outside || (is_open && !host.starts_with("[::ffff:a9"));
        assert_eq!(found.is_ok(), expected, "{url}: {found:?}");
    }
}

#[test]
fn each_address_of_a_name_is_checked() {
    let address = |text: &str| SocketAddr::new(text.parse().expect(text), 0);
    let kept = |guard: &Guard, least, found: &[&str]| {
        let found = found.iter().map(|it| address(it)).collect();
        match allowed(guard, "name.example", found, least) {
            Ok(kept) => kept
                .iter()
                .map(|it| it.ip().to_string())
                .collect::<Vec<_>>()
                .join(" "),
            Err(refused) => format!("{:?}", refused.why),
        }
    };
    let usual = open();
    let closed = Guard {
        deny_private: true,
        ..open()
    };
    let rows: &[(&Guard, Zone, &[&str], &str)] = &[
        (&usual, Zone::Loopback, &["93.184.216.34"], "93.184.216.34"),
        (&usual, Zone::Loopback, &["127.0.0.1"], "127.0.0.1"),
        (&usual, Zone::Loopback, &["169.254.169.254"], "Metadata"),
        (
            &usual,
            Zone::Loopback,
            &["169.254.169.254", "93.184.216.34"],
            "93.184.216.34",
        ),
        (
            &usual,
            Zone::Loopback,
            &["::ffff:169.254.169.254"],
            "Metadata",
        ),
        (&usual, Zone::Public, &["127.0.0.1"], "Redirect"),
        (&usual, Zone::Public, &["10.0.0.1", "::1"], "Redirect"),
        (
            &usual,
            Zone::Public,
            &["10.0.0.1", "93.184.216.34"],
            "93.184.216.34",
        ),
        (
            &usual,
            Zone::Private,
            &["127.0.0.1", "10.0.0.1"],
            "10.0.0.1",
        ),
        (&closed, Zone::Loopback, &["127.0.0.1"], "Private"),
        (&closed, Zone::Loopback, &["::ffff:0.0.0.0"], "Private"),
        (&closed, Zone::Loopback, &["10.0.0.1", "fd00::1"], "Private"),
        (
            &closed,
            Zone::Loopback,
            &["10.0.0.1", "93.184.216.34"],
            "93.184.216.34",
        ),
        (&usual, Zone::Loopback, &[], ""),
    ];
    for (guard, least, found, expected) in rows {
        assert_eq!(kept(guard, *least, found), *expected, "{found:?}");
    }
}

#[test]
fn the_resolver_of_connections_uses_the_same_check() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let resolve = |deny_private, least| {
        let guard = Guard {
            deny_private,
            ..open()
        };
        let resolver = GuardedResolver { guard, least };
        let name: Name = "localhost".parse().expect("a name");
        let found = runtime.block_on(resolver.resolve(name));
        found.map(|found| found.map(|it| it.ip()).collect::<Vec<IpAddr>>())
    };
    let here = resolve(false, Zone::Loopback).expect("this machine");
    assert!(here.iter().all(IpAddr::is_loopback), "{here:?}");
    assert!(resolve(true, Zone::Loopback).is_err());
    assert!(resolve(false, Zone::Public).is_err());
}

#[test]
fn a_flow_cannot_lift_the_guard() {
    const CLOSED: &str = "{:http {:deny-private true}}";
    let closed = || Net::with(vec![json("1")], &[("flowstone.edn", CLOSED)]);
    let flow = |net: &Net, requires: &str, config: &str| {
        let text = format!(
            "{{:slug :f :requires [{requires}] :flow '(:body (flow/step :http :it {config}))}}"
        );
        net.eval(&text)
    };
    let rows = [
        (
            "{:slot :s :base-url \"URL\" :allow-hosts [\"127.0.0.0/8\"]}",
            "{:connection :s :path \"/\"}",
        ),
        (
            "{:slot :s :base-url \"URL\" :allow-hosts [\"127.0.0.1\" \"*.localhost\"] :allow-link-local true}",
            "{:connection :s}",
        ),
        ("", "{:url \"URL\" :client-opts {:proxy \"URL\"}}"),
        (
            "",
            "{:url \"http://93.184.216.34/\" :client-opts {:proxy \"URL\"} :retry {:max-attempts 1}}",
        ),
        (
            "",
            "{:url \"http://[::ffff:0:0]:1/\" :client-opts {:allow-link-local true}}",
        ),
        ("", "{:url \"URL\" :client-opts {:proxy false}}"),
    ];
    for (requires, config) in rows {
        let net = closed();
        let found = flow(&net, requires, config);
        assert!(found.starts_with("E0731 "), "{requires} {config}: {found}");
        assert_eq!(net.server.requests().len(), 0, "{requires} {config}");
    }
    let net = Net::new(vec![json("1")]);
    for (requires, config) in [
        (
            "{:slot :s :base-url \"http://169.254.169.254\" :allow-link-local true}",
            "{:connection :s}",
        ),
        (
            "{:slot :s :base-url \"http://169.254.169.254\" :allow-hosts [\"169.254.0.0/16\"]}",
            "{:connection :s}",
        ),
        (
            "",
            "{:url \"http://169.254.169.254\" :client-opts {:allow-link-local true}}",
        ),
    ] {
        let found = flow(&net, requires, config);
        assert!(found.starts_with("E0731 "), "{requires} {config}: {found}");
    }
    // A proxy that no permission names is not contacted.
    let config =
        "{:url \"http://93.184.216.34/\" :client-opts {:proxy \"http://169.254.169.254:80\"}}";
    let found = flow(&net, "", config);
    assert!(found.starts_with("E0960 "), "{found}");
    // The project's own proxy is still used.
    let net = Net::with(
        vec![json("1")],
        &[("flowstone.edn", "{:http {:proxy \"URL\"}}")],
    );
    for proxy in ["false", "\"http://127.0.0.1:1\""] {
        let config = format!("{{:url \"http://93.184.216.34/\" :client-opts {{:proxy {proxy}}}}}");
        let found = flow(&net, "", &config);
        assert!(found.starts_with("E0961 "), "{proxy}: {found}");
    }
}

#[test]
fn a_redirect_is_checked_like_a_first_request() {
    let to = |place: &str| reply("302 Found", &[&format!("location: {place}")], "");
    for place in [
        "http://169.254.169.254/",
        "http://[::ffff:169.254.169.254]/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://metadata.google.internal/",
        "//169.254.169.254/",
        "http:169.254.169.254",
    ] {
        let net = Net::new(vec![to(place), json("1")]);
        let found = net.body("{:url \"URL\" :retry {:max-attempts 1}}");
        let is_same_host = place == "http:169.254.169.254";
        let is_refused = found.starts_with("E0731 ") || (is_same_host && found == "1");
        assert!(is_refused, "{place}: {found}");
        assert_eq!(
            net.server.requests().len(),
            1 + usize::from(found == "1"),
            "{place}"
        );
    }
}

/// Paths that a model may give, and whether they stay below the base address.
const PATHS: &[(&str, bool)] = &[
    ("", true),
    ("/a", true),
    ("a/b?c=../../d", true),
    ("a/b?c=d", true),
    ("a#b", true),
    ("a/../b", true),
    ("a/./b", true),
    ("./a", true),
    ("...", true),
    ("a..b/..c", true),
    (".well-known/x", true),
    ("a;v=1/b", true),
    ("100%25", true),
    ("%E4%B8%AD", true),
    ("..", false),
    ("/..", false),
    ("../x", false),
    ("/../../admin/delete-all", false),
    ("a/../../x", false),
    ("a//../../x", false),
    ("//../x", false),
    ("%2e%2e/x", false),
    ("%2E%2e/x", false),
    (".%2e/x", false),
    ("%2e./x", false),
    ("/%2e%2e/%2e%2e/evil", false),
    ("..%2fx", false),
    ("a%2f..%2f..%2fx", false),
    ("a%2fb/../../x", false),
    ("%252e%252e/x", false),
    ("%25252e%25252e/x", false),
    ("..%255cx", false),
    ("..\\x", false),
    ("a\\..\\..\\x", false),
    ("..%5cx", false),
    ("%5c..%5cx", false),
    ("..;/x", false),
    ("..;a=b/x", false),
    ("a/..;/..;/x", false),
    ("%2e%2e;/x", false),
    ("..%3b/x", false),
    (".\t./x", false),
    (".\n./x", false),
    ("..\r/x", false),
    (".%09./x", false),
    ("..%00/x", false),
    ("..%20/x", false),
    ("%c0%ae%c0%ae/x", false),
    ("..%c0%afx", false),
    ("%c0%ae%c0%ae%c0%afx", false),
    ("%2525252525252e", false),
    ("?/../x", true),
    ("x%3f/../../y", false),
    ("x%3f/%2e%2e/%2e%2e", false),
    ("%23/%2e%2e/..", false),
];

#[test]
fn a_path_stays_below_the_base_address() {
    const SETTINGS: &str = "{:connections {:web {:base-url \"URL/page/public\" :auth {:type :bearer :secret-ref :t}}}}";
    let net = Net::with(
        vec![json("1")],
        &[("flowstone.edn", SETTINGS), (".env", "T=s3cret-token")],
    );
    for (path, stays) in PATHS {
        let before = net.server.requests().len();
        let config = format!("{{:connection :web :path {path:?}}}").replace("\\u{9}", "\\t");
        let found = net.body(&config);
        let requests = net.server.requests();
        if *stays {
            assert_eq!(found, "1", "{path:?}");
            let line = requests[before].lines().next().expect("a line").to_owned();
            assert!(line.starts_with("GET /page/public"), "{path:?}: {line}");
        } else {
            assert!(found.starts_with("E0971 "), "{path:?}: {found}");
            assert_eq!(requests.len(), before, "{path:?}");
        }
    }
    assert!(PATHS.len() >= 50);
}
