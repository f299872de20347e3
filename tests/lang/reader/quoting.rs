//! Syntax-quote: the code that builds the template.

use super::read_code;
use super::show::show_all;

fn check(text: &str, expected: &str) {
    let forms = read_code(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let shown = show_all(&forms)
        .replace("clojure.core/", "")
        .replace("(quote ", "(q ");
    assert_eq!(shown, expected, "{text}");
}

#[test]
fn atoms_and_symbols() {
    check("`1 `:a `\"s\" `\\a `1.5", "1 :a \"s\" 'a' 1.5f");
    check("`nil `true", "(q nil) (q true)");
    check(
        "`a `inc `a/b `if `.m `C. `&",
        "(q user/a) (q inc) (q a/b) (q if) (q .m) (q C.) (q &)",
    );
    check("`~a", "a");
    check("``~~a", "a");
}

#[test]
fn collections() {
    check("`()", "(list)");
    check("`(a)", "(seq (concat (list (q user/a))))");
    check("`(a ~b ~@c)", "(seq (concat (list (q user/a)) (list b) c))");
    check(
        "`[a ~b]",
        "(apply vector (seq (concat (list (q user/a)) (list b))))",
    );
    check(
        "`{:a ~b}",
        "(apply hash-map (seq (concat (list :a) (list b))))",
    );
    check("`#{~@a}", "(apply hash-set (seq (concat a)))");
    check("`[]", "(apply vector (seq (concat)))");
    check(
        "`(1 (2))",
        "(seq (concat (list 1) (list (seq (concat (list 2))))))",
    );
}

#[test]
fn hidden_names() {
    check(
        "`(x# x# y#)",
        "(seq (concat (list (q x__1__auto__)) (list (q x__1__auto__)) (list (q y__2__auto__))))",
    );
    check("[`x# `x#]", "[(q x__1__auto__) (q x__2__auto__)]");
}

#[test]
fn metadata_of_templates() {
    check(
        "`^:k a",
        "(with-meta (q user/a) (apply hash-map (seq (concat (list :k) (list (q true))))))",
    );
    check(
        "`^{:a ~b} []",
        "(with-meta (apply vector (seq (concat))) (apply hash-map (seq (concat (list :a) (list b)))))",
    );
}

#[test]
fn nested() {
    check("``a", "(seq (concat (list (q quote)) (list (q user/a))))");
    check(
        "`(a `(b ~~c))",
        "(seq (concat (list (q user/a)) (list (seq (concat (list (q seq)) (list (seq (concat (list (q concat)) (list (seq (concat (list (q list)) (list (seq (concat (list (q quote)) (list (q user/b)))))))) (list (seq (concat (list (q list)) (list c))))))))))))",
    );
}

#[test]
fn deep_templates_do_not_use_the_stack() {
    let text = format!("`{}{}", "(".repeat(4000), ")".repeat(4000));
    let forms = read_code(&text).unwrap();
    std::mem::forget(forms);
}
