//! The settings file, `.env`, and the places where secrets are found.

use expect_test::{Expect, expect};
use flowstone_engine::codec;
use flowstone_engine::ports::Secrets;
use flowstone_steps::secrets::{ProjectSecrets, variable};
use flowstone_steps::settings;

use crate::world::World;

#[track_caller]
fn check(text: &str, expected: Expect) {
    let world = World::new().file("flowstone.edn", text);
    let loaded = settings::load(world.path());
    let shown = match loaded.and_then(|it| ProjectSecrets::load(world.path(), &it).map(|_| it)) {
        Ok(settings) => codec::encode(settings.get("connections").unwrap()).unwrap(),
        Err(error) => {
            let hint = error.hint().map(|hint| format!("\n  hint: {hint}"));
            format!("{} {error}{}", error.code(), hint.unwrap_or_default())
        }
    };
    expected.assert_eq(&shown.replace(&world.path().display().to_string(), "ROOT"));
}

#[test]
fn settings_are_one_map_with_known_keys() {
    check(
        "{:connections {:ai {:backend :openai}}}",
        expect!["{:ai {:backend :openai}}"],
    );
    check(
        "{:conections {}}",
        expect![[r#"
            E0751 flowstone.edn: there is no key `:conections`; did you mean `:connections`?
              hint: it takes `:agent`, `:allow`, `:bindings`, `:connections`, `:deps`, `:durability`, `:flows`, `:http`, `:limits`, `:llm-providers`, `:paths`, `:prices`, `:profiles`, `:resources`, `:retention`, `:search`, `:secrets`, `:server`, `:setup` and `:waits`"#]],
    );
    check(
        "[1]",
        expect!["E0751 flowstone.edn: it takes a map, not a vector"],
    );
    check(
        "{:connections [1]}",
        expect!["E0751 flowstone.edn: `:connections` takes a map, not a vector"],
    );
    check(
        "{:connections {}",
        expect![[r#"
            E0751 ROOT/flowstone.edn cannot be read: `{` is never closed (line 1, column 1)
              hint: the file holds one EDN map, such as {:connections {...}}"#]],
    );
    check(
        "{:secrets {:a \"s3cret\"}}",
        expect![[
            r#"E0751 flowstone.edn: the secret `:a` must be `{:env "VARIABLE"}`, `{:file "path"}` or `{:keyring "service/name"}`; the file must not contain the secret itself"#
        ]],
    );
}

#[test]
fn secrets_are_found_by_their_setting_or_their_name() {
    let world = World::new()
        .file("flowstone.edn", "{:secrets {:crm {:env \"FLOWSTONE_TEST_CRM\"} :key {:file \"key.txt\"} :gone {:file \"gone.txt\"}}}")
        .file("key.txt", "from-file\n")
        .file(".env", "FLOWSTONE_TEST_CRM=one\nWEB_HOOK_SECRET='two words'\nexport EMPTY=\nPATH=not-this\nFLOWSTONE_TEST_MODEL=x\nOLLAMA_MODEL=small\n");
    let settings = settings::load(world.path()).unwrap();
    assert_eq!(
        settings
            .get("environment")
            .unwrap()
            .get("OLLAMA_MODEL")
            .unwrap()
            .as_str(),
        Some("small")
    );
    let secrets = ProjectSecrets::load(world.path(), &settings).unwrap();
    let find = |name: &str| secrets.find(name).map(|secret| secret.reveal().to_string());
    assert_eq!(find("crm").as_deref(), Some("one"));
    assert_eq!(find("key").as_deref(), Some("from-file"));
    assert_eq!(find("web-hook-secret").as_deref(), Some("two words"));
    assert_eq!(find("gone"), None);
    assert_eq!(find("empty"), None);
    // The environment wins over the file.
    assert_ne!(find("PATH").as_deref(), Some("not-this"));
    assert_eq!(variable("web-hook.secret"), "WEB_HOOK_SECRET");
}

#[test]
fn an_invalid_dotenv_line_is_reported_without_its_text() {
    let world = World::new().file(".env", "OK=1\nKEY=\"s3cret\n");
    let error = ProjectSecrets::load(world.path(), &codec::decode("{}").unwrap())
        .err()
        .unwrap();
    assert!(!error.to_string().contains("s3cret"), "{error}");
    assert!(
        error.to_string().contains(".env is not well formed"),
        "{error}"
    );
}
