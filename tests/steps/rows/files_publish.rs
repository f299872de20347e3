//! The rows of `tests/coverage/files.tsv` on publishing: real repositories, read back with plain git.

use std::fs;
use std::path::{Path, PathBuf};

use crate::git::{bare, git, serve};
use crate::project::Project;
use crate::server::{Say, Server, reply};

const FILES: &[(&str, &str)] = &[
    ("README.md", "# Title\n"),
    ("src/main.rs", "fn main() {}\n"),
    ("old.txt", "old\n"),
];

/// Creates a project with a bare repository `app.git` beside it.
fn world() -> (Project, PathBuf) {
    let project = Project::new();
    let bare = bare(&project.path().join("remotes"), "app", FILES);
    (project, bare)
}

/// Changes a file of a repository, and publishes the change with this config.
fn publish(project: &Project, repo: &str, config: &str) -> String {
    project.eval(&format!(
        r##"(let [tree (flow/step :files :tree {{:op :resolve-source :source {{:type :git :repo "{repo}"}}}})
                  draft (flow/step :files :draft {{:op :init-changeset :source tree}})]
              (flow/step :files :write {{:op :write-file :changeset draft :path "README.md" :content "# New\n"}})
              (flow/step :files :add {{:op :write-file :changeset draft :path "docs/a \"b\".md" :content "text\n"}})
              (flow/step :files :publish (merge {{:op :publish :changeset draft :branch "bot/readme" :message "docs: a title"}} {config})))"##
    ))
}

fn url(bare: &Path) -> String {
    format!("file://{}", bare.display())
}

#[test]
fn op_publish() {
    let (project, bare) = world();
    let main = git(&bare, &["rev-parse", "main"]);
    let shown = publish(&project, &url(&bare), "{}");
    let commit = git(&bare, &["rev-parse", "bot/readme"]);
    assert_eq!(
        shown,
        format!(
            r#"{{:branch "bot/readme" :commit "{commit}" :base "{main}" :url "{}"}}"#,
            url(&bare)
        )
    );
    assert_eq!(git(&bare, &["cat-file", "-t", &commit]), "commit");
    assert_eq!(git(&bare, &["rev-parse", "bot/readme^"]), main);
    assert_eq!(git(&bare, &["show", "bot/readme:README.md"]), "# New");
    assert_eq!(
        git(
            &bare,
            &[
                "-c",
                "core.quotePath=false",
                "diff",
                "--name-status",
                "-z",
                "main",
                "bot/readme"
            ]
        ),
        "M\0README.md\0A\0docs/a \"b\".md\0"
    );
    assert_eq!(git(&bare, &["fsck", "--strict"]), "");
    assert_eq!(git(&bare, &["rev-parse", "main"]), main);
}

#[test]
fn publish_changeset() {
    let (project, bare) = world();
    let shown = project.eval(&format!(
        r##"(let [draft (flow/step :files :draft {{:op :init-changeset :source {{:type :git :repo "{}"}}}})]
              (flow/step :files :publish {{:op :publish :changeset draft :branch "empty" :message "nothing"}}))"##,
        url(&bare)
    ));
    assert!(
        shown.contains("E0791") && shown.contains("the changeset changes nothing"),
        "{shown}"
    );
    let shown = project.eval(r#"(flow/step :files :p {:op :publish :changeset "res://v1/ws/local/bundle/changeset/files/none" :branch "b" :message "m"})"#);
    assert!(shown.contains("none"), "{shown}");
}

#[test]
fn publish_branch() {
    let (project, bare) = world();
    for (branch, why) in [
        ("-f", "begins with `-`"),
        ("refs/heads/x", "without `refs/heads/`"),
        ("a..b", "git refuses"),
        ("a b", "git refuses"),
        ("x.lock", "git refuses"),
        ("/x", "git refuses"),
        ("HEAD", "the name of another reference"),
        ("a\\nb", "git refuses"),
        ("x:y", "git refuses"),
    ] {
        let shown = publish(&project, &url(&bare), &format!("{{:branch \"{branch}\"}}"));
        assert!(
            shown.contains("E0792") && shown.contains(why),
            "{branch}: {shown}"
        );
    }
    assert_eq!(
        git(&bare, &["branch", "--format=%(refname)"]),
        "refs/heads/main"
    );
    // A branch with new commits is never overwritten.
    publish(&project, &url(&bare), "{}");
    let taken = git(&bare, &["rev-parse", "bot/readme"]);
    let shown = publish(&project, &url(&bare), "{}");
    assert!(
        shown.contains("E0793") && shown.contains("has commits that this one is not based on"),
        "{shown}"
    );
    assert_eq!(git(&bare, &["rev-parse", "bot/readme"]), taken);
}

#[test]
fn publish_message() {
    let (project, bare) = world();
    publish(
        &project,
        &url(&bare),
        r#"{:message "docs: a title\n\nWhy it is so.\n\nSigned-off-by: Bob <bob@example.com>" :author "Bob B. <bob@example.com>"}"#,
    );
    let log = git(
        &bare,
        &["log", "-1", "--format=%an|%ae|%s|%b", "bot/readme"],
    );
    let (head, body) = log.split_once("|Why").expect("a body");
    assert_eq!(head, "Bob B.|bob@example.com|docs: a title");
    assert!(
        body.contains("Signed-off-by: Bob <bob@example.com>\nFlowstone-Publish: "),
        "{body}"
    );
    let trailers = git(
        &bare,
        &[
            "log",
            "-1",
            "--format=%(trailers:key=Flowstone-Publish,valueonly)",
            "bot/readme",
        ],
    );
    assert!(trailers.contains("/publish cs-"), "{trailers}");
    for message in ["", "  \\n"] {
        let shown = publish(
            &project,
            &url(&bare),
            &format!("{{:branch \"other\" :message \"{message}\"}}"),
        );
        assert!(shown.contains("`:message`"), "{shown}");
    }
    let shown = publish(
        &project,
        &url(&bare),
        r#"{:branch "other" :author "nobody"}"#,
    );
    assert!(shown.contains("`:author` takes"), "{shown}");
}

#[test]
fn publish_base() {
    let (project, bare) = world();
    publish(&project, &url(&bare), "{}");
    let first = git(&bare, &["rev-parse", "bot/readme"]);
    // On top of the existing branch, with another change.
    let shown = project.eval(&format!(
        r##"(let [draft (flow/step :files :draft {{:op :init-changeset :source {{:type :git :repo "{}"}}}})]
              (flow/step :files :add {{:op :write-file :changeset draft :path "new.txt" :content "new\n"}})
              (flow/step :files :publish {{:op :publish :changeset draft :branch "bot/readme" :base "bot/readme" :message "more"}}))"##,
        url(&bare)
    ));
    assert!(shown.contains(&format!(":base \"{first}\"")), "{shown}");
    assert_eq!(git(&bare, &["show", "bot/readme:README.md"]), "# New");
    assert_eq!(git(&bare, &["show", "bot/readme:new.txt"]), "new");
    // A file that differs from the one that was read is not overwritten.
    let work = project.path().join("remotes/app-work");
    fs::write(work.join("README.md"), "# Somebody else\n").expect("a file");
    git(&work, &["commit", "--quiet", "-am", "other"]);
    git(
        &work,
        &[
            "push",
            "--quiet",
            &bare.display().to_string(),
            "HEAD:refs/heads/other",
        ],
    );
    let shown = publish(&project, &url(&bare), r#"{:branch "third" :base "other"}"#);
    assert!(
        shown.contains("E0793") && shown.contains("`README.md` changed in"),
        "{shown}"
    );
    let shown = publish(&project, &url(&bare), r#"{:branch "third" :base "absent"}"#);
    assert!(
        shown.contains("E0792") && shown.contains("has no `absent`"),
        "{shown}"
    );
    assert_eq!(git(&bare, &["branch", "--list", "third"]), "");
}

/// Creates a project with the secret `git-token`.
fn with_token(settings: &str) -> Project {
    Project::with_secrets(settings, &[("git-token", "s3cret-token-7")])
}

#[test]
fn publish_connection() {
    let settings =
        r#"{:connections {:git {:auth {:type :basic :username "bot" :secret-ref :git-token}}}}"#;
    for (user, connection, is_let_in) in [
        (None, "", true),
        (Some(("bot", "s3cret-token-7")), ":connection :git", true),
        (Some(("bot", "another")), ":connection :git", false),
        (Some(("bot", "s3cret-token-7")), "", false),
    ] {
        let project = with_token(settings);
        let folder = project.path().join("remotes");
        let bare = bare(&folder, "app", FILES);
        let address = serve(&folder, user);
        let repo = format!("{address}/app.git");
        let shown = project.eval(&format!(
            r##"(let [tree (flow/step :files :tree {{:op :resolve-source :source {{:type :git :repo "{repo}" {connection}}}}})
                      draft (flow/step :files :draft {{:op :init-changeset :source tree}})]
                  (flow/step :files :write {{:op :write-file :changeset draft :path "README.md" :content "# Over HTTP\n"}})
                  (flow/step :files :publish {{:op :publish :changeset draft :branch "bot" :message "over http"}}))"##
        ));
        let kept = project.everything_kept();
        assert!(
            !kept.contains("s3cret") && !shown.contains("s3cret"),
            "{shown}"
        );
        if is_let_in {
            assert!(shown.contains(&format!(":url \"{repo}\"")), "{shown}");
            assert_eq!(git(&bare, &["show", "bot:README.md"]), "# Over HTTP");
        } else {
            assert!(shown.contains("E07"), "{shown}");
            assert_eq!(git(&bare, &["branch", "--list", "bot"]), "");
        }
    }
}

#[test]
fn publish_again() {
    let (project, bare) = world();
    let shown = project.eval(&format!(
        r##"(let [draft (flow/step :files :draft {{:op :init-changeset :source {{:type :git :repo "{}"}}}})
                  publish (fn [id] (flow/step :files id {{:op :publish :changeset draft :branch "bot" :message "once" :idempotency-key "the-same"}}))]
              (flow/step :files :write {{:op :write-file :changeset draft :path "README.md" :content "# New\n"}})
              (= (publish :one) (publish :two)))"##,
        url(&bare)
    ));
    assert_eq!(shown, "true");
    assert_eq!(git(&bare, &["rev-list", "--count", "main..bot"]), "1");
}

#[test]
fn publish_from_a_folder() {
    let project = Project::new();
    let work = project.path().join("work");
    fs::create_dir_all(work.join("app")).expect("a folder");
    fs::write(work.join("app/a.txt"), "a\n").expect("a file");
    fs::write(work.join("top.txt"), "top\n").expect("a file");
    let flow = |branch: &str| {
        project.eval(&format!(
            r##"(let [draft (flow/step :files :draft {{:op :init-changeset :source {{:type :dir :path "work/app"}}}})]
                  (flow/step :files :write {{:op :write-file :changeset draft :path "b.txt" :content "b\n"}})
                  (:commit (flow/step :files :publish {{:op :publish :changeset draft :branch "{branch}" :message "b"}})))"##
        ))
    };
    let shown = flow("bot");
    assert!(
        shown.contains("E0790") && shown.contains("not a git repository"),
        "{shown}"
    );
    git(&work, &["init", "--quiet"]);
    let shown = flow("bot");
    assert!(
        shown.contains("E0790") && shown.contains("no commit yet"),
        "{shown}"
    );
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "-m", "first"]);
    let shown = flow("bot");
    assert_eq!(shown, format!("{:?}", git(&work, &["rev-parse", "bot"])));
    assert_eq!(git(&work, &["show", "bot:app/b.txt"]), "b");
    assert_eq!(git(&work, &["status", "--porcelain"]), "");
    assert!(!work.join("app/b.txt").exists());
    let shown = flow("main");
    assert!(
        shown.contains("E0794") && shown.contains("checked out"),
        "{shown}"
    );
}

#[test]
fn publish_keeps_modes_links_and_other_files() {
    let (project, bare) = world();
    let work = project.path().join("remotes/app-work");
    fs::write(work.join("run.sh"), "#!/bin/sh\n").expect("a file");
    git(&work, &["add", "run.sh"]);
    git(&work, &["update-index", "--chmod=+x", "run.sh"]);
    git(
        &work,
        &[
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("160000,{},sub", "1".repeat(40)),
        ],
    );
    #[cfg(unix)]
    std::os::unix::fs::symlink("README.md", work.join("link")).expect("a link");
    git(&work, &["add", "link"]);
    git(&work, &["commit", "--quiet", "-m", "second"]);
    git(
        &work,
        &[
            "push",
            "--quiet",
            &bare.display().to_string(),
            "HEAD:refs/heads/main",
        ],
    );
    let shown = project.eval(&format!(
        r##"(let [draft (flow/step :files :draft {{:op :init-changeset :source {{:type :git :repo "{}"}}}})]
              (flow/step :files :write {{:op :write-file :changeset draft :path "run.sh" :content "#!/bin/sh\necho\n"}})
              (flow/step :files :publish {{:op :publish :changeset draft :branch "bot" :message "run"}}))"##,
        url(&bare)
    ));
    assert!(shown.contains(":commit"), "{shown}");
    let modes = git(
        &bare,
        &["ls-tree", "-r", "--format=%(objectmode) %(path)", "bot"],
    );
    assert_eq!(
        modes,
        "100644 README.md\n120000 link\n100644 old.txt\n100755 run.sh\n100644 src/main.rs\n160000 sub"
    );
}

#[test]
#[cfg(unix)]
fn publish_refused_by_a_hook() {
    use std::os::unix::fs::PermissionsExt;
    let (project, bare) = world();
    let hook = bare.join("hooks/pre-receive");
    fs::create_dir_all(bare.join("hooks")).expect("a folder");
    fs::write(&hook, "#!/bin/sh\necho 'main is for people' >&2\nexit 1\n").expect("a file");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("a mode");
    // A server runs its hooks; on this machine no hooks run.
    let address = serve(&project.path().join("remotes"), None);
    let shown = publish(&project, &format!("{address}/app.git"), "{}");
    assert!(
        shown.contains("E0794")
            && shown.contains("hook declined")
            && shown.contains("main is for people"),
        "{shown}"
    );
}

#[test]
fn publish_to_hostile_addresses() {
    let (project, _) = world();
    for (repo, why) in [
        ("--upload-pack=touch pwned", "is not an address"),
        ("ext::sh -c touch% pwned", "helper program"),
        ("fd::7", "helper program"),
        ("https://user:s3cret-word@127.0.0.1:9/x.git", "E0777"),
        ("file:///nowhere/x.git", "E0777"),
    ] {
        let shown = publish(&project, repo, "{}");
        assert!(
            shown.contains(why) && !shown.contains("s3cret-word"),
            "{repo}: {shown}"
        );
    }
    assert!(!project.path().join("pwned").exists());
}

/// Opens a change request on a fake server with these responses; returns the result and the requests.
fn ask(provider: &str, config: &str, answers: &[(&str, &str)]) -> (String, Vec<String>) {
    let answers = answers
        .iter()
        .map(|(status, body)| reply(status, &["content-type: application/json"], body))
        .collect();
    let server = started(answers);
    let settings = format!(
        r#"{{:connections {{:host {{:base-url "{}/api" :auth {{:type :bearer :secret-ref :git-token}}}}}}}}"#,
        server.url
    );
    let project = with_token(&settings);
    let shown = project.eval(&format!(
        r##"(flow/step :files :ask (merge {{:op :open-change-request :source {{:type :git :repo "https://{provider}.example.com/group/app.git"}}
                                            :connection :host :branch "bot/readme" :title "A title" :base "main"}} {config}))"##
    ));
    assert!(!project.everything_kept().contains("s3cret") && !shown.contains("s3cret"));
    (shown, server.requests())
}

/// Starts a server on its own thread.
fn started(answers: Vec<Say>) -> Server {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            tell.send(Server::start(answers)).ok();
            std::future::pending::<()>().await;
        });
    });
    told.recv().expect("a server")
}

const HUB: &str = r#"{"html_url": "https://github.example.com/group/app/pull/7", "number": 7}"#;
const LAB: &str =
    r#"{"web_url": "https://gitlab.example.com/group/app/-/merge_requests/9", "iid": 9}"#;

#[test]
fn op_open_change_request() {
    let (shown, requests) = ask("github", "{}", &[("200 OK", "[]"), ("201 Created", HUB)]);
    assert_eq!(
        shown,
        r#"{:url "https://github.example.com/group/app/pull/7" :number 7 :created? true}"#
    );
    assert!(
        requests[0].starts_with(
            "GET /api/repos/group/app/pulls?state=open&head=group%3Abot%2Freadme&base=main "
        ),
        "{}",
        requests[0]
    );
    assert!(
        requests[1].starts_with("POST /api/repos/group/app/pulls "),
        "{}",
        requests[1]
    );
    let lower = requests[1].to_ascii_lowercase();
    let header = |line: &str| lower.lines().any(|it| it == line);
    assert!(header("accept: application/vnd.github+json"));
    assert!(header("authorization: bearer s3cret-token-7"));
    assert!(header("x-github-api-version: 2022-11-28"));
    assert!(header("user-agent: flowstone"));
    // An open change request is found, and none is created.
    let (shown, requests) = ask("github", "{}", &[("200 OK", &format!("[{HUB}]"))]);
    assert_eq!(
        shown,
        r#"{:url "https://github.example.com/group/app/pull/7" :number 7 :created? false}"#
    );
    assert_eq!(requests.len(), 1);
    // Another process created it in the meantime.
    let (shown, _) = ask(
        "github",
        "{}",
        &[
            ("200 OK", "[]"),
            (
                "422 Unprocessable Entity",
                r#"{"message": "Validation Failed"}"#,
            ),
            ("200 OK", &format!("[{HUB}]")),
        ],
    );
    assert!(shown.contains(":number 7 :created? false"), "{shown}");
}

fn posted(provider: &str, config: &str, answer: &str) -> String {
    let (shown, requests) = ask(
        provider,
        config,
        &[("200 OK", "[]"), ("201 Created", answer)],
    );
    assert!(shown.contains(":created? true"), "{shown}");
    requests[1].split_once("\n\n").expect("a body").1.to_owned()
}

#[test]
fn open_change_request_branch() {
    assert!(posted("github", "{}", HUB).contains(r#""head":"bot/readme""#));
    assert!(posted("gitlab", "{}", LAB).contains(r#""source_branch":"bot/readme""#));
    let (shown, requests) = ask("github", r#"{:branch ""}"#, &[("200 OK", "[]")]);
    assert!(
        shown.contains("`:branch`") && requests.is_empty(),
        "{shown}"
    );
}

#[test]
fn open_change_request_title() {
    assert!(posted("github", "{}", HUB).contains(r#""title":"A title""#));
    let (shown, _) = ask("github", r#"{:title " "}"#, &[("200 OK", "[]")]);
    assert!(shown.contains("`:title`"), "{shown}");
}

#[test]
fn open_change_request_body() {
    assert!(
        posted("github", r#"{:body "Some \"text\""}"#, HUB).contains(r#""body":"Some \"text\"""#)
    );
    assert!(
        posted("gitlab", r#"{:body "Some text"}"#, LAB).contains(r#""description":"Some text""#)
    );
}

#[test]
fn open_change_request_base() {
    assert!(posted("github", r#"{:base "next"}"#, HUB).contains(r#""base":"next""#));
    // Without a base, the server is asked for its default branch.
    let (shown, requests) = ask(
        "gitlab",
        "{:base nil}",
        &[
            ("200 OK", r#"{"default_branch": "trunk"}"#),
            ("200 OK", "[]"),
            ("201 Created", LAB),
        ],
    );
    assert!(shown.contains(":number 9"), "{shown}");
    assert!(
        requests[0].starts_with("GET /api/projects/group%2Fapp "),
        "{}",
        requests[0]
    );
    assert!(
        requests[2].contains(r#""target_branch":"trunk""#),
        "{}",
        requests[2]
    );
}

#[test]
fn open_change_request_draft() {
    assert!(posted("github", "{:draft? true}", HUB).contains(r#""draft":true"#));
    assert!(posted("github", "{}", HUB).contains(r#""draft":false"#));
    assert!(posted("gitlab", "{:draft? true}", LAB).contains(r#""title":"Draft: A title""#));
}

#[test]
fn open_change_request_hosts() {
    let (shown, requests) = ask("gitlab", "{}", &[("200 OK", "[]"), ("201 Created", LAB)]);
    assert!(shown.contains(r#":url "https://gitlab.example.com/group/app/-/merge_requests/9" :number 9 :created? true"#), "{shown}");
    assert!(
        requests[0].starts_with("GET /api/projects/group%2Fapp/merge_requests?state=opened&source_branch=bot%2Freadme&target_branch=main "),
        "{}",
        requests[0]
    );
    for (status, body, expected) in [
        (
            "401 Unauthorized",
            r#"{"message": "Bad credentials"}"#,
            "E0797",
        ),
        ("403 Forbidden", r#"{"message": "no right"}"#, "E0797"),
        (
            "404 Not Found",
            r#"{"message": "Not Found"}"#,
            "has no repository group/app",
        ),
        (
            "422 Unprocessable Entity",
            r#"{"message": "Validation Failed", "errors": [{"message": "No commits"}]}"#,
            "Validation Failed; No commits",
        ),
        ("429 Too Many Requests", "{}", "E0799"),
        ("503 Service Unavailable", "oops", "E0799"),
    ] {
        let (shown, _) = ask(
            "github",
            "{}",
            &[("200 OK", "[]"), (status, body), (status, body)],
        );
        assert!(shown.contains(expected), "{status}: {shown}");
    }
    for repo in [
        "file:///srv/app.git",
        "/srv/app.git",
        "https://github.com/",
        "https://github.com/../x",
    ] {
        let project = Project::new();
        let shown = project.eval(&format!(
            r#"(flow/step :files :ask {{:op :open-change-request :source {{:type :git :repo "{repo}"}} :branch "b" :title "t"}})"#
        ));
        assert!(shown.contains("E0796"), "{repo}: {shown}");
    }
}

#[test]
fn open_change_request_provider() {
    let (shown, _) = ask(
        "code",
        "{:provider :gitlab}",
        &[("200 OK", &format!("[{LAB}]"))],
    );
    assert!(shown.contains(":number 9 :created? false"), "{shown}");
    let (shown, _) = ask("code", "{}", &[("200 OK", "[]")]);
    assert!(
        shown.contains("E0796") && shown.contains(":provider"),
        "{shown}"
    );
    let (shown, _) = ask("code", "{:provider :svn}", &[]);
    assert!(
        shown.contains("`:provider`") && shown.contains("`:github`"),
        "{shown}"
    );
}

#[test]
fn publish_author() {
    for author in [
        r#""Bob B. <bob@example.com>""#,
        r#"{:name "Bob B." :email "bob@example.com"}"#,
    ] {
        let (project, bare) = world();
        publish(&project, &url(&bare), &format!("{{:author {author}}}"));
        assert_eq!(
            git(&bare, &["log", "-1", "--format=%an|%ae", "bot/readme"]),
            "Bob B.|bob@example.com"
        );
    }
    let (project, bare) = world();
    for author in [r#""Bob""#, r#""Bob\nB. <bob@example.com>""#, "{:name 7}"] {
        let shown = publish(&project, &url(&bare), &format!("{{:author {author}}}"));
        assert!(shown.contains(":author"), "{author}: {shown}");
    }
    assert_eq!(git(&bare, &["branch", "--list", "bot/readme"]), "");
}

#[test]
fn since() {
    let (project, bare) = world();
    let (work, address) = (
        project.path().join("remotes/app-work"),
        bare.display().to_string(),
    );
    git(&work, &["tag", "v1"]);
    git(
        &work,
        &["commit", "--quiet", "--allow-empty", "-m", "second"],
    );
    git(
        &work,
        &["push", "--quiet", &address, "HEAD:refs/heads/main", "v1"],
    );
    let subjects = |since: &str| {
        project.eval(&format!(
            r#"(map :subject (:commits (flow/step :files :history {{:op :history :source {{:type :git :repo "{}" :ref "main"}} :since "{since}"}})))"#,
            url(&bare)
        ))
    };
    assert_eq!(subjects("v1"), r#"("second")"#);
    assert_eq!(subjects("main"), "()");
    assert!(
        subjects("v9").contains("could not find `v9`"),
        "{}",
        subjects("v9")
    );
}

#[test]
fn op_history() {
    let (project, bare) = world();
    let work = project.path().join("remotes/app-work");
    fs::write(work.join("new ä.txt"), "1\n").expect("a file");
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "-m", "second\n\nIts body."]);
    git(
        &work,
        &[
            "push",
            "--quiet",
            &bare.display().to_string(),
            "HEAD:refs/heads/main",
        ],
    );
    let source = |repo: &str| format!(r#":source {{:type :git :repo "{repo}" :ref "main"}}"#);
    let address = serve(&project.path().join("remotes"), None);
    for repo in [url(&bare), format!("{address}/app.git")] {
        let shown = project.eval(&format!(
            "(let [it (flow/step :files :history {{:op :history {}}})] [(map (juxt :subject :body :author :files) (:commits it)) (:truncated? it)])",
            source(&repo)
        ));
        assert_eq!(
            shown,
            r#"[(["second" "Its body." "Ann" ["new ä.txt"]] ["first" "" "Ann" ["README.md" "old.txt" "src/main.rs"]]) false]"#
        );
    }
    let subjects = |more: &str| {
        project.eval(&format!(
            "(let [it (flow/step :files :history {{:op :history {} {more}}})] [(map :subject (:commits it)) (:truncated? it)])",
            source(&url(&bare))
        ))
    };
    assert_eq!(subjects(":limit 1"), r#"[("second") true]"#);
    assert_eq!(subjects(r#":paths ["src"]"#), r#"[("first") false]"#);
    let first = git(&bare, &["rev-parse", "main^"]);
    assert_eq!(
        subjects(&format!(":since \"{first}\"")),
        r#"[("second") false]"#
    );
    assert!(
        subjects(r#":since "--all""#).contains("is not a branch"),
        "{}",
        subjects(r#":since "--all""#)
    );
    assert!(subjects(r#":paths ["../x"]"#).contains("would leave"));
}
