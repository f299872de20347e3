//! Evidence for `docs/decisions.md`, measured again with each build: what the crates that are not used would do.
//! Should one of these fail after an update, the decision wants another look.

use std::process::{Command, Stdio};

use edn_rs::Edn;
use flowstone_lang::reader::{NoContext, ReadOptions, Reader};
use flowstone_lang::value::{PrintOptions, Sources, Unforced, print_value};

const DEEP: usize = 200_000;
/// Set in the process that is expected to die.
const CHILD: &str = "FLOWSTONE_TEST_READS_DEEPLY";

fn with_edn_rs(text: &str) -> Result<String, String> {
    text.parse::<Edn>()
        .map(|edn| edn.to_string())
        .map_err(|error| error.to_string())
}

fn with_ours(text: &str) -> Result<String, String> {
    let mut sources = Sources::default();
    let source = sources.add("test", text);
    let value = Reader::new(text, ReadOptions::data(source))
        .next(&mut NoContext::default())
        .map_err(|error| error.to_string())?
        .ok_or("nothing")?;
    let mut out = String::new();
    print_value(&mut out, &mut Unforced, &value, PrintOptions::READABLE)
        .map_err(|signal| format!("{signal:?}"))?;
    Ok(out)
}

#[test]
fn edn_rs_refuses_numbers_that_clojure_prints() {
    for text in ["1N", "2.5M"] {
        assert!(with_edn_rs(text).is_err(), "{text}");
        assert_eq!(with_ours(text).as_deref(), Ok(text));
    }
}

#[test]
fn edn_rs_accepts_maps_that_are_none() {
    assert_eq!(with_edn_rs("{:a}").as_deref(), Ok("{}"));
    assert!(with_edn_rs("{:a 1 :a 2}").is_ok());
    for text in ["{:a}", "{:a 1 :a 2}"] {
        assert!(with_ours(text).is_err(), "{text}");
    }
}

#[test]
fn edn_rs_loses_the_types_of_keys() {
    let read: Edn = "{1 :int \"1\" :text}".parse().expect("edn-rs reads it");
    let Edn::Map(map) = read else {
        panic!("not a map: {read:?}");
    };
    assert!(map.to_string().matches("1").count() < 3, "{map:?}");
    assert_eq!(
        with_ours("{1 :int \"1\" :text}").as_deref(),
        Ok("{1 :int, \"1\" :text}")
    );
}

#[test]
fn edn_rs_says_no_place_of_an_error() {
    let error = with_edn_rs("[1\n 2\n {:a #}]").err().unwrap_or_default();
    assert!(!error.contains('3'), "{error}");
}

#[test]
fn deep_nesting_ends_the_process_in_edn_rs_and_is_an_error_in_ours() {
    let text = "[".repeat(DEEP) + &"]".repeat(DEEP);
    if std::env::var_os(CHILD).is_some() {
        let _ = with_edn_rs(&text);
        return;
    }
    let this = std::env::current_exe().expect("this program");
    let name = "deep_nesting_ends_the_process_in_edn_rs_and_is_an_error_in_ours";
    let status = Command::new(this)
        .args(["--exact", &format!("decisions::{name}"), "--test-threads=1"])
        .env(CHILD, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("it starts");
    assert!(!status.success(), "edn-rs reads deep nesting now");
    assert!(with_ours(&text).is_err());
}
