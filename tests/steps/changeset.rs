//! Changesets of `:files`, in real flows over the real store.

use std::fs;

use crate::project::Project;

/// A project with some files.
pub fn project(files: &[(&str, &str)]) -> Project {
    let project = Project::new();
    for (path, content) in files {
        let path = project.path().join("tree").join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }
    project
}

/// Runs steps on a changeset over the folder `tree`, and returns what the body comes to.
pub fn with_draft(project: &Project, body: &str) -> String {
    project.eval(&format!(
        "(let [files (fn [id op config] (flow/step :files id (assoc config :op op)))
               draft (flow/step :files :draft {{:op :init-changeset :source {{:type :dir :path \"tree\"}}}})]
           {body})"
    ))
}

#[test]
fn what_is_written_is_listed_read_and_searched() {
    let project = project(&[("a.txt", "one\n"), ("dir/b.txt", "two\n")]);
    let shown = with_draft(
        &project,
        r#"(let [one (flow/step :files :one {:op :write-file :changeset draft :path "dir/new.txt" :content "three\n"})
                 two (flow/step :files :two {:op :write-file :changeset (:changeset one) :path "a.txt" :content "ONE\n"})
                 list (flow/step :files :list {:op :list :changeset draft})
                 read (flow/step :files :read {:op :read :source (:uri draft) :paths ["a.txt" "dir/new.txt"]})
                 found (flow/step :files :search {:op :search :changeset (:uri draft) :query "e" :prefix "dir/"})
                 base (flow/step :files :base {:op :read :source (:source draft) :path "a.txt"})]
             [(dissoc one :changeset) (dissoc two :changeset) (= (:changeset one) (:uri draft))
              (map (juxt :path :size :kind :lines) (:entries list))
              (map :content (:files read))
              (map (juxt :path :line) (:matches found))
              (map :content (:files base))])"#,
    );
    assert_eq!(
        shown,
        r#"[{:path "dir/new.txt" :size 6 :created? true} {:path "a.txt" :size 4 :created? false} true (["a.txt" 4 :file 1] ["dir/b.txt" 4 :file 1] ["dir/new.txt" 6 :file 1]) ("ONE\n" "three\n") (["dir/new.txt" 1]) ("one\n")]"#
    );
    assert_eq!(
        fs::read_to_string(project.path().join("tree/a.txt")).expect("a file"),
        "one\n"
    );
}
