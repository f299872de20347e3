//! `flowstone docs` and `flowstone explain`.

use serde_json::json;

use crate::program::Scratch;
use crate::tidy::tree::text;

#[test]
fn a_page_is_shown_as_it_is() {
    let scratch = Scratch::new();
    let page = text("docs/guide/agents.md");
    for name in ["guide/agents", "agents", "docs/guide/agents.md"] {
        let shown = scratch.run(&["docs", "show", name]).ok();
        assert_eq!(shown.trim_end(), page.trim_end(), "{name}");
    }
    let shown = scratch.run(&["docs", "show", "agents", "--json"]).json();
    assert_eq!(shown["content"], json!(page));
    assert_eq!(shown["page"], "guide/agents");
}

#[test]
fn a_section_is_found_by_words_and_shown_by_its_heading() {
    let scratch = Scratch::new();
    let found = scratch
        .run(&["docs", "find", "retry", "backoff", "--json"])
        .json();
    let first = found["results"][0].clone();
    let (page, section) = (first["page"].as_str(), first["section"].as_str());
    let shown = scratch
        .run(&[
            "docs",
            "show",
            page.unwrap_or_default(),
            "--section",
            section.unwrap_or_default(),
        ])
        .ok();
    assert!(shown.contains("backoff"), "{shown}");
    let listed = scratch.run(&["docs", "find", "retry", "backoff"]).ok();
    assert!(listed.contains(page.unwrap_or("?")), "{listed}");
}

#[test]
fn the_list_names_guides_and_no_error_codes() {
    let listed = Scratch::new().run(&["docs", "list"]).ok();
    assert!(listed.contains("guide/agents"), "{listed}");
    assert!(!listed.contains("errors/E0501"), "{listed}");
}

#[test]
fn a_code_is_explained_in_every_form_that_people_type() {
    let scratch = Scratch::new();
    let page = text("docs/errors/E0501.md");
    for code in ["E0501", "e0501", "501", "error[E0501]"] {
        let shown = scratch.run(&["explain", code]).ok();
        assert_eq!(shown.trim_end(), page.trim_end(), "{code}");
    }
    let shown = scratch.run(&["explain", "E0501", "--json"]).json();
    assert_eq!(shown["code"], "E0501");
}

#[test]
fn an_unknown_page_or_code_has_a_hint() {
    let scratch = Scratch::new();
    let missing = scratch.run(&["docs", "show", "guide/agent"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.err.contains("E0956"), "{missing:?}");
    assert!(missing.err.contains("`guide/agents`"), "{missing:?}");
    let missing = scratch.run(&["explain", "E9999"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.err.contains("E0956"), "{missing:?}");
}
