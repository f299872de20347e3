//! Jobs over the stores: leases, attempts, order, cancellations, batches, and processes that end at any commit.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use flowstone_engine::ids::RunId;
use flowstone_engine::jobs::{ClaimOptions, JobEnd, JobFailure};
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::{
    JobAnswer, JobBatch, JobCall, JobClaim, JobQuery, JobRow, JobStatus, Jobs, PortFuture,
    SimulatedClock, StoreError, Stores, WaitFilter,
};
use flowstone_engine::{Engine, EngineError, ExecuteOptions, codec};

use super::STORE;
use crate::bench::{Bench, block_on, execute, outcome, outcome_text};
use crate::crash;

/// Submits a job and waits for it.
const ONE: &str =
    "(let [job (flow/step :job :work {:op :submit :job-type \"image\" :payload {:n 1}})]
  (select-keys (flow/step :job :done {:op :await :job-id (:job-id job) :timeout \"2h\"})
               [:status :result :error :attempt]))";

fn claim_as(engine: &Engine, types: &[&str], max: usize, lease: u64) -> Vec<JobRow> {
    let options = ClaimOptions {
        types: types.iter().map(ToString::to_string).collect(),
        reach: None,
        worker: "w".to_owned(),
        max,
        lease: Duration::from_secs(lease),
        wait: Duration::ZERO,
        token: None,
    };
    let claimed = block_on(engine.claim_jobs(&options)).expect("claimed");
    claimed.into_iter().map(|job| job.row).collect()
}

/// Claims the only queued image job, for 30 seconds.
fn claim(engine: &Engine) -> JobRow {
    let mut jobs = claim_as(engine, &["image"], 10, 30);
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    jobs.remove(0)
}

fn token(job: &JobRow) -> String {
    job.lease.as_ref().expect("a lease").token.clone()
}

fn end(job: &JobRow, result: &str) -> JobEnd {
    JobEnd {
        lease: token(job),
        no_changes: false,
        result: Some(codec::decode(result).expect("EDN")),
    }
}

fn complete(engine: &Engine, job: &JobRow) -> Result<JobRow, EngineError> {
    block_on(engine.complete_job(&job.id, &end(job, "{:ok true}")))
}

fn fail(engine: &Engine, job: &JobRow, retry: bool) -> Result<JobRow, EngineError> {
    let failure = JobFailure {
        lease: token(job),
        message: "no ink".to_owned(),
        kind: Some("empty".to_owned()),
        data: None,
        retry,
    };
    block_on(engine.fail_job(&job.id, &failure))
}

fn code(answer: Result<JobRow, EngineError>) -> &'static str {
    match answer {
        Ok(job) => job.status.name(),
        Err(error) => error.code(),
    }
}

fn jobs(engine: &Engine) -> Vec<JobRow> {
    let page = block_on(engine.list_jobs(JobQuery::default())).expect("jobs");
    page.jobs.into_iter().rev().collect()
}

fn statuses(engine: &Engine) -> String {
    let names: Vec<&str> = jobs(engine).iter().map(|job| job.status.name()).collect();
    names.join(" ")
}

/// Executes every run that can continue, as a worker does, and returns their number.
fn resume(engine: &Engine) -> usize {
    let driven = block_on(engine.resume_all(Rc::new(NoObserver), ExecuteOptions::default()));
    driven.expect("listed").len()
}

#[test]
fn a_run_is_suspended_until_a_worker_completes_its_job() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, ONE);
    let waiting = outcome(&engine, &run);
    let job = claim(&engine);
    assert_eq!(
        waiting,
        format!("waiting: `done` waits for the job {}", job.id)
    );
    assert_eq!(
        (&*job.payload, job.attempt, job.max_attempts),
        ("{:n 1}", 1, 3)
    );
    assert_eq!(job.idempotency_key, format!("{run}/work"));
    assert_eq!((&*job.path, &*job.flow, &job.run), ("work", "flow", &run));
    assert_eq!(resume(&engine), 0, "nothing has happened yet");
    assert_eq!(code(complete(&engine, &job)), "succeeded");
    assert_eq!(resume(&engine), 1);
    assert_eq!(
        outcome(&engine, &run),
        "{:status :succeeded :result {:ok true} :attempt 1}"
    );
    assert!(claim_as(&engine, &["image"], 10, 30).is_empty());
}

#[test]
fn expired_leases_use_up_the_attempts_and_the_run_is_notified() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, ONE);
    outcome(&engine, &run);
    for attempt in 1..=3 {
        let job = claim(&engine);
        assert_eq!(job.attempt, attempt);
        bench.clock.advance(29_999);
        assert!(
            claim_as(&engine, &["image"], 10, 30).is_empty(),
            "{attempt}"
        );
        bench.clock.advance(1);
    }
    // No worker claims jobs any more: the worker that executes runs detects that the job is due.
    let due_ms = block_on(engine.stores().agenda.next_ms()).expect("read");
    assert_eq!(due_ms, Some(bench.clock_ms()));
    assert_eq!(resume(&engine), 1);
    let expected = "{:status :failed :error {:message \"the worker `w` did not report in time\" \
                    :kind :lease-expired} :attempt 3}";
    assert_eq!(outcome(&engine, &run), expected);
}

#[test]
fn a_worker_that_takes_runs_updates_due_jobs_too() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(let [job (flow/step :job :work {:op :submit :job-type \"image\" :timeout \"1m\"})]
           (:status (flow/step :job :done {:op :await :job-id (:job-id job)})))",
    );
    outcome(&engine, &run);
    let agenda = &engine.stores().agenda;
    assert!(
        block_on(agenda.take(bench.clock_ms() + 59_999, 9))
            .expect("taken")
            .is_empty()
    );
    let taken = block_on(agenda.take(bench.clock_ms() + 60_000, 9)).expect("taken");
    assert_eq!(taken.len(), 1);
    block_on(engine.stores().runs.release(&run, taken[0].epoch)).expect("released");
    assert_eq!(outcome(&engine, &run), ":timed_out");
}

#[test]
fn progress_keeps_a_lease_and_a_late_worker_has_lost_it() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, ONE);
    outcome(&engine, &run);
    let first = claim(&engine);
    let progress = |job: &JobRow, extend: Option<u64>| {
        let half = codec::decode("{:done 0.5}").expect("EDN");
        let extend = extend.map(Duration::from_secs);
        block_on(engine.job_progress(&job.id, &token(job), Some(&half), extend))
    };
    bench.clock.advance(20_000);
    let extended = progress(&first, None).expect("extended");
    assert_eq!(extended.until_ms, bench.clock_ms() + 30_000);
    assert!(!extended.is_cancel_requested);
    bench.clock.advance(20_000);
    let extended = progress(&first, Some(3600)).expect("extended");
    assert_eq!(extended.until_ms, bench.clock_ms() + 3_600_000);
    assert_eq!(jobs(&engine)[0].progress.as_deref(), Some("{:done 0.5}"));
    for wrong in [4, 3601] {
        let error = progress(&first, Some(wrong)).expect_err("refused");
        assert_eq!(error.code(), "E0538", "{error}");
    }
    bench.clock.advance(3_600_000);
    assert_eq!(progress(&first, None).expect_err("late").code(), "E0537");
    let second = claim(&engine);
    assert_ne!(token(&first), token(&second));
    assert_eq!(second.progress, None);
    assert_eq!(code(complete(&engine, &first)), "E0537");
    assert_eq!(code(fail(&engine, &first, true)), "E0537");
    assert_eq!(code(complete(&engine, &second)), "succeeded");
    let nobody = block_on(engine.complete_job("nothing", &end(&second, "1")));
    assert_eq!(code(nobody), "E0536");
}

#[test]
fn a_repeated_completion_gets_the_same_answer() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, ONE);
    outcome(&engine, &run);
    let job = claim(&engine);
    let first = complete(&engine, &job).expect("completed");
    bench.clock.advance(90_000);
    assert_eq!(complete(&engine, &job).expect("again"), first);
    let other = block_on(engine.complete_job(&job.id, &end(&job, "{:ok false}")));
    assert_eq!(code(other), "E0537");
    assert_eq!(resume(&engine), 1);
    assert_eq!(complete(&engine, &job).expect("again"), first);
}

#[test]
fn a_failed_attempt_is_queued_again_and_a_final_failure_ends_at_once() {
    for (retry, count, status) in [(true, 3, "failed"), (false, 1, "failed")] {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let run = bench.start(&engine, ONE);
        outcome(&engine, &run);
        for attempt in 1..=count {
            let job = claim(&engine);
            let left = match attempt == count {
                true => status,
                false => "queued",
            };
            assert_eq!(code(fail(&engine, &job, retry)), left, "{attempt}");
        }
        let expected = format!(
            "{{:status :failed :error {{:message \"no ink\" :kind :empty}} :attempt {count}}}"
        );
        assert_eq!(outcome(&engine, &run), expected);
    }
}

#[test]
fn jobs_are_claimed_by_priority_then_age_and_by_type() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(doseq [[n kind priority] [[1 :image 0] [2 :video 0] [3 :image 7] [4 :text 9] [5 :image 0]]]
           (flow/step :job :work {:op :submit :job-type kind :payload n :priority priority}))",
    );
    assert_eq!(outcome(&engine, &run), "nil");
    let payloads = |jobs: Vec<JobRow>| {
        let payloads: Vec<String> = jobs.into_iter().map(|job| job.payload).collect();
        payloads.join(" ")
    };
    let claimed = claim_as(&engine, &["video", "image"], 3, 30);
    assert_eq!(payloads(claimed), "3 1 2");
    assert_eq!(payloads(claim_as(&engine, &["image", "image"], 9, 30)), "5");
    assert_eq!(payloads(claim_as(&engine, &["image"], 9, 30)), "");
    assert_eq!(payloads(claim_as(&engine, &["text"], 100, 30)), "4");
    let claim = |types: &[&str], max, lease, wait| {
        let options = ClaimOptions {
            types: types.iter().map(ToString::to_string).collect(),
            reach: None,
            worker: "w".to_owned(),
            max,
            lease: Duration::from_secs(lease),
            wait: Duration::from_secs(wait),
            token: None,
        };
        block_on(engine.claim_jobs(&options))
            .expect_err("refused")
            .code()
    };
    assert_eq!(claim(&[], 1, 30, 0), "E0538");
    assert_eq!(claim(&["image"], 0, 30, 0), "E0538");
    assert_eq!(claim(&["image"], 101, 30, 0), "E0538");
    assert_eq!(claim(&["image"], 1, 4, 0), "E0538");
    assert_eq!(claim(&["image"], 1, 3601, 0), "E0538");
    assert_eq!(claim(&["image"], 1, 30, 31), "E0538");
}

fn patient() -> ClaimOptions {
    ClaimOptions {
        types: vec!["image".to_owned()],
        reach: None,
        worker: "w".to_owned(),
        max: 1,
        lease: Duration::from_secs(20),
        wait: Duration::from_secs(30),
        token: None,
    }
}

#[test]
fn a_claim_ends_with_its_time_or_with_a_lease() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let began_ms = bench.clock_ms();
    let none = block_on(engine.claim_jobs(&patient())).expect("claimed");
    assert!(none.is_empty());
    assert_eq!(bench.clock_ms(), began_ms + 30_000);
    let run = bench.start(&engine, ONE);
    outcome(&engine, &run);
    let first = block_on(engine.claim_jobs(&patient())).expect("claimed");
    assert_eq!((first.len(), first[0].attempt), (1, 1));
    let now_ms = bench.clock_ms();
    let again = block_on(engine.claim_jobs(&patient())).expect("claimed");
    assert_eq!((again.len(), again[0].attempt), (1, 2));
    assert_eq!(bench.clock_ms(), now_ms + 20_000);
}

#[test]
fn a_claim_gets_a_job_that_is_submitted_while_it_waits() {
    let mut bench = Bench::over(STORE);
    bench.clock = Arc::new(SimulatedClock::standing_at(1_000_000));
    let engine = bench.engine();
    let run = bench.start(&engine, ONE);
    let other = bench.engine();
    let options = patient();
    let (claimed, _) = block_on(async {
        tokio::join!(
            other.claim_jobs(&options),
            engine.execute(&run, Rc::new(NoObserver), ExecuteOptions::default()),
        )
    });
    assert_eq!(claimed.expect("claimed").len(), 1);
}

#[test]
fn a_cancelled_run_cancels_its_jobs() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text =
        "(let [[a b] (mapv #(flow/step :job :work {:op :submit :job-type %}) [\"image\" \"text\"])]
      (try (flow/step :job :done {:op :await :job-id (:job-id a)})
           (finally (flow/step :job :tidy {:op :submit :job-type \"tidy\"}))))";
    let run = bench.start(&engine, text);
    outcome(&engine, &run);
    let job = claim(&engine);
    bench.clock.advance(10_000);
    block_on(engine.cancel(&run, "enough", Rc::new(NoObserver))).expect("cancelled");
    assert!(execute(&engine, &run).is_ok());
    assert_eq!(statuses(&engine), "claimed cancelled cancelled");
    let asked_ms = bench.clock_ms();
    bench.clock.advance(10_000);
    let long = Some(Duration::from_secs(3600));
    let updated =
        block_on(engine.job_progress(&job.id, &token(&job), None, long)).expect("updated");
    assert!(updated.is_cancel_requested);
    assert_eq!(updated.until_ms, asked_ms + 30_000);
    bench.clock.advance(20_000);
    let late = block_on(engine.job_progress(&job.id, &token(&job), None, None));
    assert_eq!(late.expect_err("void").code(), "E0537");
    assert_eq!(statuses(&engine), "cancelled cancelled cancelled");
}

#[test]
fn jobs_submitted_during_a_cancellation_are_done() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = "(let [a (flow/step :job :work {:op :submit :job-type \"image\"})]
      (try (flow/step :job :done {:op :await :job-id (:job-id a)})
           (finally (let [b (flow/step :job :tidy {:op :submit :job-type \"tidy\"})]
                      (flow/step :job :tidied {:op :await :job-id (:job-id b)})))))";
    let run = bench.start(&engine, text);
    outcome(&engine, &run);
    block_on(engine.cancel(&run, "enough", Rc::new(NoObserver))).expect("cancelled");
    assert_eq!(statuses(&engine), "cancelled queued");
    // A second request changes nothing.
    block_on(
        engine
            .stores()
            .runs
            .request_cancel(&run, "now", bench.clock_ms()),
    )
    .expect("asked");
    assert_eq!(statuses(&engine), "cancelled queued");
    let job = claim_as(&engine, &["tidy"], 1, 30).remove(0);
    complete(&engine, &job).expect("completed");
    assert_eq!(resume(&engine), 1);
    assert_eq!(outcome_text(&execute(&engine, &run)), "cancelled: enough");
}

#[test]
fn a_run_that_fails_cancels_its_jobs_and_one_that_completes_leaves_them() {
    for (text, status) in [
        (
            "(do (flow/step :job :a {:op :submit :job-type \"image\"}) (throw (ex-info \"no\" {})))",
            "cancelled",
        ),
        (
            "(do (flow/step :job :a {:op :submit :job-type \"image\"}) 1)",
            "queued",
        ),
    ] {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let run = bench.start(&engine, text);
        outcome(&engine, &run);
        assert_eq!(statuses(&engine), status);
    }
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, ONE);
    outcome(&engine, &run);
    block_on(engine.terminate(&run, "now", Rc::new(NoObserver))).expect("terminated");
    assert_eq!(statuses(&engine), "cancelled");
}

#[test]
fn a_job_that_its_branch_gives_up_is_cancelled() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = "(let [submit (fn [kind] (:job-id (flow/step :job :work {:op :submit :job-type kind})))
          wait (fn [kind] (let [id (submit kind)] (:job-type (flow/step :job :done {:op :await :job-id id}))))]
      [(flow/race {:left #(wait \"image\") :right #(wait \"text\")}) (flow/step :hold :door {})])";
    let run = bench.start(&engine, text);
    outcome(&engine, &run);
    assert_eq!(statuses(&engine), "queued queued");
    let job = claim(&engine);
    complete(&engine, &job).expect("completed");
    resume(&engine);
    assert_eq!(
        outcome_text(&execute(&engine, &run)),
        "waiting: `door` waits for an answer"
    );
    assert_eq!(statuses(&engine), "succeeded cancelled");
}

#[test]
fn a_batch_ends_with_its_last_job() {
    for (last_fails, status) in [(false, ":completed"), (true, ":failed")] {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let text = "(let [batch (flow/step :job :all {:op :submit-batch :job-type \"image\" :max-attempts 1
                                                :jobs [{:payload 1} {:payload 2 :metadata {:big true}}]})
                  id (:batch-id batch)
                  before (flow/step :job :look {:op :get-batch :batch-id id})
                  end (flow/step :job :end {:op :await-batch :batch-id id})
                  jobs (:jobs (flow/step :job :jobs {:op :get-batch :batch-id id :include-jobs? true :limit 10}))]
              [(count (:jobs batch)) (dissoc before :batch-id) (:status end) (map :payload jobs) (:status (first jobs))])";
        let run = bench.start(&engine, text);
        let waiting = outcome(&engine, &run);
        assert!(
            waiting.contains("waits for the jobs of the batch b"),
            "{waiting}"
        );
        let claimed = claim_as(&engine, &["image"], 10, 30);
        let keys: Vec<&str> = claimed.iter().map(|job| &*job.idempotency_key).collect();
        assert_eq!(keys, [format!("{run}/all/0"), format!("{run}/all/1")]);
        assert_eq!(claimed[1].metadata.as_deref(), Some("{:big true}"));
        let first = JobEnd {
            no_changes: true,
            ..end(&claimed[0], "nil")
        };
        let lost = JobEnd {
            lease: "other".to_owned(),
            ..first.clone()
        };
        let named = |idx: usize, end: &JobEnd| (claimed[idx].id.clone(), end.clone());
        let answers = block_on(engine.complete_jobs(&[named(1, &lost), named(0, &first)]));
        let answers = answers.expect("answered").into_iter().map(code);
        assert_eq!(answers.collect::<Vec<_>>(), ["E0537", "no_changes"]);
        assert_eq!(resume(&engine), 0, "one is left");
        match last_fails {
            true => fail(&engine, &claimed[1], true).map(drop),
            false => complete(&engine, &claimed[1]).map(drop),
        }
        .expect("ended");
        assert_eq!(resume(&engine), 1);
        let expected = format!(
            "[2 {{:status :running :total 2 :counts {{:queued 2}}}} {status} (1 2) :no_changes]"
        );
        assert_eq!(outcome(&engine, &run), expected);
    }
    let many = vec![
        (
            "j".to_owned(),
            JobEnd {
                lease: "t".to_owned(),
                no_changes: false,
                result: None
            }
        );
        101
    ];
    let bench = Bench::over(STORE);
    let refused = block_on(bench.engine().complete_jobs(&many)).expect_err("too many");
    assert_eq!(refused.code(), "E0538");
}

#[test]
fn a_job_may_be_awaited_late_and_more_than_once() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = "(let [id (:job-id (flow/step :job :work {:op :submit :job-type \"image\"}))
          wait (fn [opts] (try (:status (flow/step :job :done (merge {:op :await :job-id id} opts)))
                               (catch Exception e [(:kind (ex-data e)) (:code (ex-data e))])))]
      [(wait {:timeout \"1m\"})
       (wait {:max-attempts 4 :interval \"1s\" :backoff {:type :exponential :factor 2}})
       (do (flow/step :hold :door {}) (wait {:timeout \"1m\"}))
       (wait {:max-attempts 1})
       (:status (flow/step :job :look {:op :get :job-id id}))])";
    let run = bench.start(&engine, text);
    outcome(&engine, &run);
    bench.clock.advance(60_000);
    let began_ms = bench.clock_ms();
    outcome(&engine, &run);
    let due_ms = block_on(engine.find_run(run.as_str()))
        .expect("a run")
        .due_ms;
    assert_eq!(due_ms, Some(began_ms + 7_000), "1 s, 2 s and 4 s");
    bench.clock.advance(7_000);
    outcome(&engine, &run);
    let job = claim(&engine);
    complete(&engine, &job).expect("completed");
    let go = codec::decode("{:action :go}").expect("EDN");
    block_on(engine.complete_wait("door", &go, false)).expect("answered");
    assert_eq!(
        outcome(&engine, &run),
        "[[:timeout \"E0539\"] [:timeout \"E0539\"] :succeeded :succeeded :succeeded]"
    );
    let missing = bench.start(&engine, "(flow/step :job :a {:op :await :job-id \"j0\"})");
    assert_eq!(
        outcome(&engine, &missing),
        "failed E0749 there is no job `j0`"
    );
}

#[test]
fn only_the_engine_answers_the_wait_for_a_job() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, ONE);
    outcome(&engine, &run);
    assert!(
        block_on(engine.list_waits(WaitFilter::default()))
            .expect("waits")
            .is_empty()
    );
    let filter = WaitFilter {
        run: Some(run.clone()),
        ..WaitFilter::default()
    };
    let wait = block_on(engine.stores().waits.list(filter))
        .expect("waits")
        .remove(0);
    let token = block_on(engine.stores().waits.token(&wait.id))
        .expect("read")
        .expect("a token");
    let payload = codec::decode("{:status :succeeded}").expect("EDN");
    for target in [&wait.id, &wait.key, &token] {
        for keep in [false, true] {
            let refused = block_on(engine.complete_wait(target, &payload, keep));
            assert_eq!(refused.expect_err("refused").code(), "E0514", "{target}");
        }
    }
    assert!(outcome(&engine, &run).starts_with("waiting"));
}

#[test]
fn wrong_configs_are_rejected() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    for (config, expected) in [
        ("{:op :submit}", "E0748"),
        ("{:op :submit :job-type \"\"}", "E0748"),
        ("{:op :submit :job-type :a :max-attempts 101}", "E0725"),
        ("{:op :submit :job-type :a :job-id \"j\"}", "E0748"),
        ("{:op :submit-batch :job-type :a :jobs []}", "E0748"),
        ("{:op :submit-batch :jobs [{:payload 1}]}", "E0748"),
        (
            "{:op :submit-batch :job-type :a :jobs [{:paylaod 1}]}",
            "E0710",
        ),
        ("{:op :get-batch :batch-id :b}", "E0749"),
        ("{:op :stop}", "E0748"),
    ] {
        let run = bench.start(&engine, &format!("(flow/step :job :a {config})"));
        let found = outcome(&engine, &run);
        assert!(
            found.starts_with(&format!("failed {expected}")),
            "{config}: {found}"
        );
    }
    assert!(jobs(&engine).is_empty());
}

#[test]
fn a_page_ends_where_the_next_one_begins() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(flow/step :job :all {:op :submit-batch :job-type \"image\" :jobs (mapv #(hash-map :payload %) (range 5))})",
    );
    outcome(&engine, &run);
    let mut query = JobQuery {
        kind: Some("image".to_owned()),
        status: Some(JobStatus::Queued),
        run: Some(run.clone()),
        limit: 2,
        ..JobQuery::default()
    };
    let mut pages = Vec::new();
    loop {
        let page = block_on(engine.list_jobs(query.clone())).expect("a page");
        pages.push(
            page.jobs
                .iter()
                .map(|job| job.payload.clone())
                .collect::<Vec<_>>(),
        );
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    assert_eq!(pages, [vec!["4", "3"], vec!["2", "1"], vec!["0"]]);
    query.after = Some("j0".to_owned());
    let error = block_on(engine.list_jobs(query)).expect_err("no such job");
    assert_eq!(error.code(), "E0536");
    let all = jobs(&engine);
    let found = block_on(engine.find_job(&all[0].id)).expect("a job");
    assert_eq!(found, all[0]);
    let several = block_on(engine.find_job("j")).expect_err("several");
    assert!(
        several.to_string().contains("beginning of several"),
        "{several}"
    );
}

/// Allows a number of changes of jobs, and refuses all later ones: the worker is dead.
struct Dying {
    inner: Arc<dyn Jobs>,
    left: AtomicI64,
    /// The last change takes effect, but its caller gets no answer.
    silently: bool,
}

impl Dying {
    fn over(stores: Stores, left: i64, silently: bool) -> Stores {
        Stores {
            jobs: Arc::new(Dying {
                inner: stores.jobs.clone(),
                left: AtomicI64::new(left),
                silently,
            }),
            ..stores
        }
    }

    fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce() -> PortFuture<'static, T>,
    ) -> PortFuture<'static, T> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        if left > 0 {
            return change();
        }
        let last = (left == 0 && self.silently).then(change);
        Box::pin(async move {
            if let Some(last) = last {
                last.await?;
            }
            Err(StoreError::Internal("the process is dead".to_owned()))
        })
    }
}

impl Jobs for Dying {
    fn claim(&self, claim: JobClaim) -> PortFuture<'_, Vec<JobRow>> {
        let inner = self.inner.clone();
        self.change(move || Box::pin(async move { inner.claim(claim).await }))
    }

    fn call(&self, calls: Vec<JobCall>, now_ms: i64) -> PortFuture<'_, Vec<JobAnswer>> {
        let inner = self.inner.clone();
        self.change(move || Box::pin(async move { inner.call(calls, now_ms).await }))
    }

    fn expire(&self, now_ms: i64) -> PortFuture<'_, usize> {
        self.inner.expire(now_ms)
    }

    fn find(&self, id: &str) -> PortFuture<'_, Option<JobRow>> {
        self.inner.find(id)
    }

    fn list(&self, query: JobQuery) -> PortFuture<'_, Vec<JobRow>> {
        self.inner.list(query)
    }

    fn batch(&self, id: &str) -> PortFuture<'_, Option<JobBatch>> {
        self.inner.batch(id)
    }
}

/// Claims and completes all queued jobs as a worker does. Tells whether the worker survived.
fn work(engine: &Engine) -> bool {
    loop {
        let options = ClaimOptions {
            types: vec!["image".to_owned()],
            reach: None,
            worker: "w".to_owned(),
            max: 1,
            lease: Duration::from_secs(30),
            wait: Duration::ZERO,
            token: None,
        };
        let Ok(mut claimed) = block_on(engine.claim_jobs(&options)) else {
            return false;
        };
        let Some(job) = claimed.pop() else {
            return true;
        };
        let job = job.row;
        let progress = block_on(engine.job_progress(&job.id, &token(&job), None, None));
        if progress.is_err() || complete(engine, &job).is_err() {
            return false;
        }
    }
}

const TWO: &str = "(let [all (mapv #(flow/step :job :work {:op :submit :job-type \"image\" :payload %}) [1 2])]
  (mapv #(let [job (flow/step :job :done {:op :await :job-id (:job-id %)})] [(:payload job) (:status job)]) all))";

/// Executes a run and a worker to the end, and returns the outcome.
fn finish(bench: &Bench, engine: &Engine, run: &RunId) -> String {
    for _ in 0..8 {
        let found = outcome_text(&execute(engine, run));
        if !found.starts_with("waiting") {
            return found;
        }
        assert!(work(engine));
        // The lease of a worker that died expires.
        bench.clock.advance(30_000);
    }
    panic!("the run does not end");
}

#[test]
fn a_crash_at_any_commit_loses_nothing() {
    for silently in [false, true] {
        for left in 0.. {
            let bench = Bench::over(STORE);
            let engine = bench.engine_over(crash::stores(&bench, left, silently));
            let run = bench.start(&engine, TWO);
            let mut first = outcome(&engine, &run);
            for _ in 0..2 {
                if first.starts_with("waiting") {
                    work(&engine);
                    first = outcome(&engine, &run);
                }
            }
            let has_died = first.contains("the process is dead");
            drop(engine);
            let engine = bench.engine();
            let last = finish(&bench, &engine, &run);
            assert_eq!(last, "[[1 :succeeded] [2 :succeeded]]", "left {left}");
            assert_eq!(statuses(&engine), "succeeded succeeded", "left {left}");
            if !has_died {
                break;
            }
        }
    }
}

#[test]
fn jobs_survive_a_crash_of_their_worker_at_every_call() {
    for silently in [false, true] {
        for left in 0.. {
            let bench = Bench::over(STORE);
            let engine = bench.engine();
            let run = bench.start(&engine, TWO);
            outcome(&engine, &run);
            let worker = bench.engine_over(Dying::over(bench.stores(), left, silently));
            let has_lived = work(&worker);
            drop(worker);
            bench.clock.advance(30_000);
            let last = finish(&bench, &engine, &run);
            assert_eq!(last, "[[1 :succeeded] [2 :succeeded]]", "left {left}");
            let attempts: u32 = jobs(&engine).iter().map(|job| job.attempt).sum();
            assert!((2..=3).contains(&attempts), "left {left}: {attempts}");
            if has_lived {
                break;
            }
        }
    }
}
