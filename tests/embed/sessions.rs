//! Independence of sessions, on one thread and on several.

use flowstone_embed::{Embed, Function, Session};

use super::shown;

#[test]
fn sessions_do_not_see_one_another() {
    let (one, other) = (Session::new(), Session::new());
    one.evaluate("(ns app) (def x 1) (defmulti m identity) (defprotocol P (p [_]))")
        .expect("defines");
    one.evaluate("(alter-var-root #'clojure.core/inc (fn [_] (constantly :mine)))")
        .expect("redefines");
    one.add(Function::new("app/f", || 1_i64));
    let evaluate = |text| shown(&other, other.evaluate(text));
    assert_eq!(evaluate("(find-ns 'app)"), "nil");
    assert_eq!(evaluate("(str *ns*)"), "\"user\"");
    assert_eq!(evaluate("(resolve 'app/x)"), "nil");
    assert_eq!(evaluate("(inc 1)"), "2");
    assert_eq!(evaluate("(ns app) (def x 2) x"), "2");
    assert_eq!(shown(&one, one.evaluate("[x (inc 1)]")), "[1 :mine]");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a session a thread is the point")]
fn each_thread_has_its_own_sessions() {
    let threads: Vec<_> = (0..8)
        .map(|number: i64| {
            std::thread::spawn(move || {
                let sessions: Vec<Session> = (0..4).map(|_| Session::new()).collect();
                for (idx, session) in sessions.iter().enumerate() {
                    let text = format!("(def me [{number} {idx}])");
                    session.evaluate(&text).expect("defines");
                }
                let shown = |session: &Session| {
                    let text =
                        "(pr-str me (keyword (str \"k\" (first me))) (reduce + (range 100)))";
                    shown(session, session.evaluate(text))
                };
                sessions.iter().map(shown).collect::<Vec<_>>()
            })
        })
        .collect();
    for (number, thread) in threads.into_iter().enumerate() {
        let results = thread.join().expect("no panic");
        for (idx, result) in results.iter().enumerate() {
            assert_eq!(*result, format!("\"[{number} {idx}] :k{number} 4950\""));
        }
    }
}
