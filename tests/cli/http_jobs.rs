//! Jobs over HTTP: workers claim, report and complete; and what tokens reach.

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::Scratch;

const WORK: &str = r#"{:slug :work :tags [:pictures]
  :flow '(let [job (flow/step :job :order {:op :submit :job-type :image :payload {:n 1} :max-attempts 2})]
           (flow/step :job :made {:op :await :job-id (:job-id job)}))}"#;
const OTHER: &str = r#"{:slug :other
  :flow '(flow/step :job :all {:op :submit-batch :job-type :image :jobs [{:payload 1} {:payload 2} {:payload 3}]})}"#;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flows/work.edn", WORK);
    scratch.write("flows/other.edn", OTHER);
    scratch
}

fn token(scratch: &Scratch, options: &[&str]) -> String {
    let args = [&["tokens", "create", "--name", "test"], options].concat();
    scratch.run(&args).ok().trim_end().to_owned()
}

/// Starts a run and returns its id once it waits or has ended.
fn started(api: &Api, flow: &str) -> String {
    let path = format!("/api/v1/flows/{flow}/runs");
    let run = api.post(&path, &json!({"wait": "60s"})).json();
    run["id"].as_str().expect("an id").to_owned()
}

/// Claims one job and returns its id, its lease and all of it.
fn claimed(api: &Api, token: &str) -> (String, String, Value) {
    let claim = json!({"types": ["image"], "worker": "w-1", "wait": "30s"});
    let answer = api.post_as(token, "/api/v1/jobs/claim", &claim);
    assert_eq!(answer.status, 200, "{answer:?}");
    let job = answer.json()["jobs"][0].clone();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    (text(&job["id"]), text(&job["lease"]["token"]), job)
}

#[test]
fn a_worker_claims_reports_and_completes_over_http() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let run = started(&api, "work");
    let worker = token(&scratch, &["--scope", "work"]);
    let (id, lease, job) = claimed(&api, &worker);
    assert_eq!(
        (&job["payload"], &job["attempt"]),
        (&json!({"n": 1}), &json!(1))
    );
    assert_eq!(job["idempotencyKey"], json!(format!("{run}/order")));
    let path = format!("/api/v1/jobs/{id}");
    let progress = json!({"lease": lease, "progress": {"done": 0.5}, "extend": "10m"});
    let told = api.post_as(&worker, &format!("{path}/progress"), &progress);
    assert_eq!(told.json()["cancelRequested"], false, "{told:?}");
    let shown = api.get(&path).json();
    assert_eq!(shown["progress"], json!({"done": 0.5}));
    assert_eq!(shown["leaseUntil"], told.json()["until"]);
    assert!(!shown.to_string().contains(&lease), "{shown}");

    let late = json!({"lease": "0", "result": 1});
    let refused = api.post_as(&worker, &format!("{path}/complete"), &late);
    assert_eq!(refused.problem(), "409 E0537");
    let end = json!({"lease": lease, "result": {"uri": "small.jpg"}});
    let done = api.post_as(&worker, &format!("{path}/complete"), &end);
    assert_eq!(
        (done.status, &done.json()["status"]),
        (200, &json!("succeeded"))
    );
    let again = api.post_as(&worker, &format!("{path}/complete"), &end);
    assert_eq!((again.status, again.json()), (200, done.json()));

    assert_eq!(scratch.run(&["runs", "watch", &run]).code, Some(0));
    let shown = api.get(&format!("/api/v1/runs/{run}")).json();
    assert_eq!(shown["result"]["result"], json!({"uri": "small.jpg"}));
    let events = api.follow(&format!("/api/v1/runs/{run}/events"), None);
    let events: Vec<_> = events.filter(|it| it.name.starts_with("job.")).collect();
    let names: Vec<&str> = events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["job.claimed", "job.progress"]);
    for event in &events {
        let data = &event.data;
        assert_eq!(
            (&data["job"], &data["path"], &data["attempt"]),
            (&json!(id), &json!("order"), &json!(1))
        );
        assert!(!data.to_string().contains(&lease), "{data}");
    }
    assert_eq!(events[0].data["worker"], "w-1");
    assert_eq!(events[1].data["progress"], json!({"done": 0.5}));
}

#[test]
fn a_failed_job_is_queued_again_over_http() {
    let scratch = project();
    let api = Api::serve(&scratch);
    started(&api, "work");
    let (id, lease, _) = claimed(&api, &api.token);
    let path = format!("/api/v1/jobs/{id}/fail");
    let failed = api.post(
        &path,
        &json!({"lease": lease, "error": {"message": "no ink"}}),
    );
    assert_eq!(failed.json()["status"], "queued", "{failed:?}");
    let (_, lease, job) = claimed(&api, &api.token);
    assert_eq!(job["attempt"], 2);
    let error = json!({"message": "no ink", "kind": "broken", "data": {"part": 7}});
    let end = json!({"lease": lease, "error": error, "retry": false});
    let failed = api.post(&path, &end).json();
    assert_eq!(
        (&failed["status"], &failed["error"]),
        (&json!("failed"), &error)
    );
    for (body, expected) in [
        (json!({"lease": lease}), "400 E1016"),
        (json!({"error": {"message": "x"}}), "400 E1016"),
        (
            json!({"lease": "0", "error": {"message": "x", "why": 1}}),
            "400 E1016",
        ),
    ] {
        assert_eq!(api.post(&path, &body).problem(), expected, "{body}");
    }
}

#[test]
fn several_jobs_are_completed_in_one_call() {
    let scratch = project();
    let api = Api::serve(&scratch);
    started(&api, "other");
    let claim = json!({"types": ["image", "sound"], "worker": "w", "max": 100});
    let jobs = api.post("/api/v1/jobs/claim", &claim).json();
    let jobs = jobs["jobs"].as_array().expect("jobs");
    assert_eq!(jobs.len(), 3);
    let end = |job: &Value| json!({"id": job["id"], "lease": job["lease"]["token"], "result": 1});
    let ends = json!({"jobs": [
        end(&jobs[0]),
        {"id": "j0", "lease": "0"},
        {"id": jobs[1]["id"], "lease": "0"},
        {"id": jobs[2]["id"], "lease": jobs[2]["lease"]["token"], "status": "no_changes"},
    ]});
    let ended = api.post("/api/v1/jobs/complete", &ends);
    assert_eq!(ended.status, 200, "{ended:?}");
    let ended = ended.json();
    let codes: Vec<_> = ended["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| job["status"].as_str().or(job["error"]["code"].as_str()))
        .collect();
    let expected = ["succeeded", "E0536", "E0537", "no_changes"];
    assert_eq!(codes, expected.map(Some));
    let many: Vec<Value> = (0..101).map(|_| end(&jobs[0])).collect();
    let refused = api.post("/api/v1/jobs/complete", &json!({ "jobs": many }));
    assert_eq!(refused.problem(), "422 E0538");

    let (mut seen, mut path) = (Vec::new(), "/api/v1/jobs?type=image&limit=2".to_owned());
    loop {
        let page = api.get(&path).json();
        let jobs = page["jobs"].as_array().expect("jobs");
        seen.extend(jobs.iter().map(|job| job["payload"].clone()));
        match page["next"].as_str() {
            Some(next) => path = format!("/api/v1/jobs?type=image&limit=2&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(json!(seen), json!([3, 2, 1]));
    let claimed = api.get("/api/v1/jobs?status=claimed").json();
    assert_eq!(claimed["jobs"].as_array().map(Vec::len), Some(1));
    assert_eq!(api.get("/api/v1/jobs?status=done").problem(), "400 E1016");
}

#[test]
fn a_token_reaches_its_own_jobs_only() {
    let scratch = project();
    let api = Api::serve(&scratch);
    started(&api, "work");
    started(&api, "other");
    let work = |options: &[&str]| token(&scratch, &[&["--scope", "work"], options].concat());
    let claim = json!({"types": ["image"], "worker": "w", "max": 100});
    let claims = |token: &str| api.post_as(token, "/api/v1/jobs/claim", &claim);
    let sounds = work(&["--job-type", "sound"]);
    assert_eq!(claims(&sounds).problem(), "404 E1014");
    let reader = token(&scratch, &["--scope", "read"]);
    assert_eq!(claims(&reader).problem(), "403 E1011");

    let of_one = work(&["--flow", "work"]);
    let labelled = work(&["--label", "pictures", "--scope", "read"]);
    let jobs = claims(&of_one).json();
    let jobs = jobs["jobs"].as_array().expect("jobs");
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert_eq!(claims(&labelled).json()["jobs"], json!([]));
    let listed = api.get_as(&labelled, "/api/v1/jobs").json();
    assert_eq!(listed["jobs"][0]["flow"], "work", "{listed}");
    assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(1));

    let (id, lease, _) = claimed(&api, &api.token);
    let path = format!("/api/v1/jobs/{id}");
    assert_eq!(api.get_as(&labelled, &path).problem(), "404 E0536");
    let end = json!({"lease": lease});
    let refused = api.post_as(&of_one, &format!("{path}/complete"), &end);
    assert_eq!(refused.problem(), "404 E0536");
    assert_eq!(api.get(&path).json()["status"], "claimed");
}

#[test]
fn claims_out_of_range_are_refused() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let claim = |change: Value| {
        let mut body = json!({"types": ["image"], "worker": "w"});
        let fields = body.as_object_mut().expect("an object");
        fields.extend(change.as_object().expect("an object").clone());
        api.post("/api/v1/jobs/claim", &body).problem()
    };
    for (change, expected) in [
        (json!({"types": []}), "422 E0538"),
        (json!({"worker": ""}), "422 E0538"),
        (json!({"max": 101}), "422 E0538"),
        (json!({"max": -1}), "422 E0538"),
        (json!({"lease": "1s"}), "422 E0538"),
        (json!({"wait": "31s"}), "422 E0538"),
        (json!({"wait": 30}), "400 E1016"),
        (json!({"types": "image"}), "400 E1016"),
        (json!({"kinds": ["image"]}), "400 E1016"),
    ] {
        assert_eq!(claim(change.clone()), expected, "{change}");
    }
    assert_eq!(api.get("/api/v1/jobs/j1").problem(), "404 E0536");
    assert_eq!(api.get("/api/v1/jobs/claim").problem(), "405 E1015");
}

#[test]
fn a_waiting_claim_ends_with_its_connection_and_with_the_server() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let body = r#"{"types": ["image"], "worker": "gone", "wait": "30s"}"#;
    let head = format!(
        "POST /api/v1/jobs/claim HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        api.address,
        api.token,
        body.len()
    );
    let mut gone = std::net::TcpStream::connect(&api.address).expect("the server accepts");
    std::io::Write::write_all(&mut gone, head.as_bytes()).expect("the server reads");
    // The claim is under way once the server has answered a later request of another connection.
    assert_eq!(api.get("/api/v1/jobs").json()["jobs"], json!([]));
    std::thread::sleep(std::time::Duration::from_millis(300));
    drop(gone);
    std::thread::sleep(std::time::Duration::from_millis(300));
    started(&api, "work");
    let (_, _, job) = claimed(&api, &api.token);
    assert_eq!(job["attempt"], 1, "{job}");

    let waiting = std::thread::scope(|scope| {
        let claim = json!({"types": ["none"], "worker": "w", "wait": "30s"});
        let waiting = scope.spawn({
            let (address, token) = (api.address.clone(), api.token.clone());
            move || crate::api::post_to(&address, &token, "/api/v1/jobs/claim", &claim)
        });
        std::thread::sleep(std::time::Duration::from_millis(500));
        let begun = std::time::Instant::now();
        assert_eq!(api.stop(), Some(0));
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
        waiting.join().expect("an answer")
    });
    assert_eq!((waiting.status, waiting.json()), (200, json!({"jobs": []})));
}

#[test]
fn people_claim_no_jobs() {
    let scratch = project();
    let api = Api::serve(&scratch);
    started(&api, "work");
    let claim = json!({"types": ["image"], "worker": "w"});
    for kind in ["user", "anon"] {
        let options = ["--kind", kind, "--subject", "eve", "--scope", "work"];
        let person = token(&scratch, &options);
        let refused = api.post_as(&person, "/api/v1/jobs/claim", &claim);
        assert_eq!(refused.problem(), "403 E1011", "{kind}");
    }
}

#[test]
fn a_token_that_is_revoked_while_its_claim_waits_gets_no_job() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let worker = token(&scratch, &["--scope", "work"]);
    let claim = json!({"types": ["image"], "worker": "w", "wait": "20s"});
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| api.post_as(&worker, "/api/v1/jobs/claim", &claim));
        std::thread::sleep(std::time::Duration::from_millis(50));
        let listed = scratch.run(&["tokens", "list", "--json"]).json();
        let tokens = listed["tokens"].as_array().expect("a list");
        let id = tokens.iter().find(|it| it["name"] == "test");
        let id = id.expect("the token")["id"].as_str().expect("an id");
        scratch.run(&["tokens", "revoke", id]).ok();
        started(&api, "work");
        waiting.join().expect("an answer")
    });
    assert_eq!(answer.status, 401, "{answer:?}");
    let job = api.get("/api/v1/jobs").json()["jobs"][0].clone();
    assert_eq!(job["status"], "queued", "{job}");
}
