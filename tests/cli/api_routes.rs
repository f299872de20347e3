//! The routes of the API: each answers what the command of its name prints.

use serde_json::{Value, json};

use crate::api::{Api, Reply};
use crate::program::Scratch;

const SUM: &str = r#"{:slug :sum :tags [:numbers]
  :invocations {:default {:inputs [{:name :n :type :number}]}}
  :schedules [{:id :nightly :cron "0 3 * * *" :input {:n 7}}]
  :flow '(let [n (or (:n (flow/input)) 1)]
           {:double (:v (flow/step :function :double {:input {:n n} :code '(fn [m] {:v (* 2 (:n m))})}))})}"#;
const ROWS: &str = r#"{:slug :rows
  :flow '(flow/step :function :rows {:code '(fn [_] (mapv (fn [n] {:n n}) (range 5)))
                                     :persist {:type :table :table "numbers"}})}"#;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flows/sum.edn", SUM);
    scratch.write("flows/rows.edn", ROWS);
    scratch
}

fn token(scratch: &Scratch, options: &[&str]) -> String {
    let args = [&["tokens", "create", "--name", "test"], options].concat();
    scratch.run(&args).ok().trim_end().to_owned()
}

/// Runs a flow to its end and returns its id.
fn ran(api: &Api, flow: &str, input: &Value) -> String {
    let path = format!("/api/v1/flows/{flow}/runs");
    let done = api.post(&path, &json!({"input": input, "wait": "60s"}));
    assert_eq!(done.status, 200, "{done:?}");
    let run = done.json();
    assert_eq!(run["status"], "completed", "{run}");
    run["id"].as_str().expect("an id").to_owned()
}

/// What the command prints with `--json`, without its mark of success.
#[track_caller]
fn printed(scratch: &Scratch, args: &[&str]) -> Value {
    let done = scratch.run(&[args, &["--json"]].concat());
    let mut printed: Value = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{done:?}"));
    let marked = printed
        .as_object_mut()
        .and_then(|fields| fields.remove("ok"));
    assert!(marked.is_some(), "{printed}");
    printed
}

fn as_owner(api: &Api, what: &str, headers: &[&str], body: &str) -> Reply {
    let owner = format!("authorization: Bearer {}", api.token);
    api.request(what, &[&[&*owner], headers].concat(), body)
}

#[test]
fn answers_are_what_the_commands_print() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let first = ran(&api, "sum", &json!({"n": 2}));
    let second = ran(&api, "sum", &json!({"n": 3}));
    ran(&api, "rows", &json!({}));
    let run = format!("/api/v1/runs/{first}");
    for (path, args) in [
        (format!("{run}?full"), vec!["runs", "show", &first]),
        (
            format!("{run}?step=double"),
            vec!["runs", "show", &first, "--step", "double"],
        ),
        (
            format!("{run}/diff/{second}?all"),
            vec!["runs", "diff", &first, &second, "--all"],
        ),
        ("/api/v1/schedules".to_owned(), vec!["schedules", "list"]),
        ("/api/v1/resources".to_owned(), vec!["resources", "list"]),
        (
            "/api/v1/search?q=double&targets=flows".to_owned(),
            vec!["search", "double", "--targets", "flows"],
        ),
        ("/api/v1/steps".to_owned(), vec!["steps", "list"]),
        (
            "/api/v1/steps/http".to_owned(),
            vec!["steps", "show", "http"],
        ),
        (
            "/api/v1/connections".to_owned(),
            vec!["connections", "list"],
        ),
    ] {
        assert_eq!(api.get(&path).json(), printed(&scratch, &args), "{path}");
    }
    let schema = scratch.run(&["steps", "schema", "http"]).out;
    let schema: Value = serde_json::from_str(&schema).expect("a schema");
    assert_eq!(api.get("/api/v1/steps/http/schema").json(), schema);

    let lines = scratch.run(&["runs", "events", &first, "--json"]).out;
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("an entry"))
        .collect();
    let (mut entries, mut after) = (Vec::new(), 0);
    loop {
        let page = api
            .get(&format!("{run}/journal?limit=1&after={after}"))
            .json();
        entries.extend(page["entries"].as_array().expect("entries").clone());
        match page["next"].as_i64() {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(entries, lines);
}

#[test]
fn a_run_is_forked_and_resumed_over_http() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let run = ran(&api, "sum", &json!({"n": 2}));
    let forked = api.post(
        &format!("/api/v1/runs/{run}/fork"),
        &json!({"set": {"input.n": 21}}),
    );
    assert_eq!(forked.status, 201, "{forked:?}");
    let fork = forked.json();
    let location = forked.header("location").expect("an address").to_owned();
    let fork_id = fork["id"].as_str().expect("an id");
    assert_eq!(location, format!("/api/v1/runs/{fork_id}"));
    assert_eq!(fork["origin"], *run);
    assert_eq!(scratch.run(&["runs", "watch", fork_id]).code, Some(0));
    assert_eq!(api.get(&location).json()["result"], json!({"double": 42}));

    let over = api.post(&format!("/api/v1/runs/{run}/resume"), &json!({}));
    assert_eq!(over.problem(), "409 E0505");
    let missing = api.post(&format!("/api/v1/runs/{run}/fork"), &json!({"at": "nope"}));
    assert_eq!(missing.problem(), "422 E0571");
    let runner = token(&scratch, &["--scope", "run", "--scope", "read"]);
    let version = json!({"version": "0"});
    let edited = api.post_as(&runner, &format!("/api/v1/runs/{run}/fork"), &version);
    assert_eq!(edited.problem(), "403 E1011");
    let other = api.post(&format!("/api/v1/runs/{run}/fork"), &version);
    assert_eq!(other.problem(), "409 E1023");
}

#[test]
fn versions_and_findings_of_a_flow_are_listed() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let served = |api: &Api| api.get("/api/v1/flows/sum").json()["version"].clone();
    let first = served(&api);
    ran(&api, "sum", &json!({}));
    scratch.write("flows/sum.edn", SUM.replace("* 2", "* 3"));
    let begun = std::time::Instant::now();
    while served(&api) == first {
        assert!(begun.elapsed().as_secs() < 60, "the new text is not served");
    }
    let versions = api.get("/api/v1/flows/sum/versions").json();
    let versions = versions["versions"].as_array().expect("versions");
    let seen: Vec<_> = versions
        .iter()
        .map(|it| (it["served"].clone(), it["runs"].clone()))
        .collect();
    assert_eq!(seen, [(json!(true), json!(0)), (json!(false), json!(1))]);
    let page = api.get("/api/v1/flows/sum/versions?limit=1").json();
    let next = page["next"].as_str().expect("a second page");
    let path = format!("/api/v1/flows/sum/versions?limit=1&cursor={next}");
    assert_eq!(api.get(&path).json()["versions"], json!([versions[1]]));

    let check = |body: Value| api.post("/api/v1/flows/sum/check", &body).json();
    assert_eq!(check(json!({})), json!({"findings": []}));
    let found = check(json!({"source": "{:slug :sum :flow '(let [a 1] b)}"}));
    assert_eq!(found["findings"][0]["line"], 1, "{found}");
    let reader = token(&scratch, &["--scope", "read"]);
    let refused = api.post_as(&reader, "/api/v1/flows/sum/check", &json!({}));
    assert_eq!(refused.problem(), "403 E1011");
}

#[test]
fn a_schedule_is_started_by_hand() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let begun = std::time::Instant::now();
    while api.get("/api/v1/schedules").json()["schedules"] == json!([]) {
        assert!(begun.elapsed().as_secs() < 60, "the schedule is not known");
    }
    let started = api.post("/api/v1/schedules/sum/nightly/run", &json!({}));
    assert_eq!(started.status, 201, "{started:?}");
    assert_eq!(started.json()["startedBy"], "schedule:nightly");
    let missing = api.post("/api/v1/schedules/sum/daily/run", &json!({}));
    assert_eq!(missing.status, 404, "{missing:?}");
}

#[test]
fn files_are_uploaded_read_in_parts_and_deleted() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let raw = as_owner(
        &api,
        "POST /api/v1/resources?filename=a.txt&folder=notes",
        &["content-type: text/plain"],
        "0123456789",
    );
    assert_eq!(raw.status, 201, "{raw:?}");
    let file = raw.json();
    assert_eq!(file["sizeBytes"], 10);
    let uri = file["uri"].as_str().expect("a name").to_owned();
    let form = "--X\r\ncontent-disposition: form-data; name=\"file\"; filename=\"b.csv\"\r\n\r\nn\n1\n\r\n--X--\r\n";
    let form = as_owner(
        &api,
        "POST /api/v1/resources",
        &["content-type: multipart/form-data; boundary=X"],
        form,
    );
    assert_eq!(form.status, 201, "{form:?}");
    assert_eq!(form.json()["filename"], "b.csv");
    assert_eq!(form.json()["sizeBytes"], 4);

    let taken = as_owner(
        &api,
        "POST /api/v1/resources?filename=a.txt&folder=notes",
        &[],
        "x",
    );
    assert_eq!(taken.problem(), "409 E0939");
    let path = format!("/api/v1/resources/content?uri={uri}");
    let whole = api.get(&path);
    assert_eq!((whole.status, &*whole.body), (200, "0123456789"));
    assert_eq!(whole.header("content-type"), Some("text/plain"));
    assert_eq!(whole.header("content-length"), Some("10"));
    let place = whole.header("content-disposition").expect("a name");
    assert_eq!(place, "attachment; filename*=utf-8''a.txt");
    let tag = format!("if-none-match: {}", whole.header("etag").expect("a tag"));
    let get = format!("GET {path}");
    let same = as_owner(&api, &get, &[&tag], "");
    assert_eq!((same.status, &*same.body), (304, ""));
    let part = as_owner(&api, &get, &["range: bytes=2-4"], "");
    assert_eq!((part.status, &*part.body), (206, "234"));
    assert_eq!(part.header("content-range"), Some("bytes 2-4/10"));
    let other = ["range: bytes=2-4", "if-range: \"other\""];
    assert_eq!(as_owner(&api, &get, &other, "").body, "0123456789");
    let beyond = as_owner(&api, &get, &["range: bytes=10-"], "");
    assert_eq!(beyond.status, 416, "{beyond:?}");
    assert_eq!(beyond.header("content-range"), Some("bytes */10"));
    let many = as_owner(&api, &get, &["range: bytes=0-0,2-2,4-4"], "");
    assert_eq!(many.status, 416, "{many:?}");
    let head = as_owner(&api, &format!("HEAD {path}"), &[], "");
    assert_eq!((head.status, &*head.body), (200, ""));
    assert_eq!(head.header("content-length"), Some("10"));

    let limited = token(&scratch, &["--scope", "read", "--resource", "file/other"]);
    assert_eq!(api.get_as(&limited, &path).problem(), "404 E0936");
    let listed = api.get_as(&limited, "/api/v1/resources").json();
    assert_eq!(listed["resources"], json!([]));

    let delete = format!("DELETE /api/v1/resources?uri={uri}");
    assert_eq!(as_owner(&api, &delete, &[], "").status, 204);
    assert_eq!(api.get(&path).problem(), "410 E0937");
}

#[test]
fn a_signed_link_is_good_for_its_resource_and_its_time() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let file = as_owner(&api, "POST /api/v1/resources?filename=a.txt", &[], "secret");
    let uri = file.json()["uri"].clone();
    let made = api.post("/api/v1/resources/url", &json!({"uri": uri, "ttl": 60}));
    let url = made.json()["url"].as_str().expect("a link").to_owned();
    let base = format!("http://{}", api.address);
    let path = url
        .strip_prefix(&base)
        .expect("the server's address")
        .to_owned();
    // The command makes a link to the running server, too.
    let printed = scratch
        .run(&["resources", "url", uri.as_str().expect("a name")])
        .ok();
    assert!(printed.starts_with(&base), "{printed}");
    let read = api.request(&format!("GET {path}"), &[], "");
    assert_eq!((read.status, &*read.body), (200, "secret"));

    let changed = path.replace("expires=1", "expires=2");
    for (path, expected) in [
        (changed, "403 E0940"),
        (path.replace("signature=", "signature=00"), "403 E0940"),
        (format!("{path}&download=1"), "400 E1016"),
        (format!("{path}&uri=x"), "400 E1016"),
        ("/api/resources/content?uri=x".to_owned(), "400 E1016"),
    ] {
        let refused = api.request(&format!("GET {path}"), &[], "");
        assert_eq!(refused.problem(), expected, "{path}");
    }
    for ttl in [59, 86_401] {
        let body = json!({"uri": uri, "ttl": ttl});
        assert_eq!(
            api.post("/api/v1/resources/url", &body).problem(),
            "400 E1016"
        );
    }
    let address = api.stop();
    assert_eq!(address, Some(0));
    let nowhere = scratch.run(&["resources", "url", uri.as_str().expect("a name"), "--json"]);
    assert!(nowhere.out.contains("\"E1073\""), "{nowhere:?}");
}

#[test]
fn rows_of_a_table_come_page_by_page() {
    let scratch = project();
    let api = Api::serve(&scratch);
    ran(&api, "rows", &json!({}));
    let (mut numbers, mut path) = (Vec::new(), "/api/v1/tables/numbers/rows?limit=2".to_owned());
    loop {
        let page = api.get(&path);
        assert_eq!(page.status, 200, "{page:?}");
        let page = page.json();
        let rows = page["rows"].as_array().expect("rows");
        numbers.extend(rows.iter().map(|row| row["n"].clone()));
        match page["page"]["nextCursor"].as_str() {
            Some(next) => path = format!("/api/v1/tables/numbers/rows?limit=2&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(json!(numbers), json!([0, 1, 2, 3, 4]));
    let query = json!({"where": [["n", ">", 2]], "sort": ["n"], "page": {"limit": 1}});
    let found = api.post("/api/v1/tables/numbers/query", &query);
    assert_eq!(found.json()["rows"][0]["n"], 3, "{found:?}");
    assert_eq!(api.get("/api/v1/tables/nothing/rows").status, 404);
    let limited = token(&scratch, &["--scope", "read", "--flow", "sum"]);
    let refused = api.get_as(&limited, "/api/v1/tables/numbers/rows");
    assert_eq!(refused.problem(), "404 E1014");
}
