//! The address of a running server: the file `server.json` in the home folder, which the server writes and removes.

use std::fs;
use std::path::Path;

use flowstone_lang::value::Value;

/// The name of the file in the home folder.
pub const NAME: &str = "server.json";

/// Returns the address at which others reach the server of a project: the one in the settings, otherwise the one of the
/// running server.
pub fn base(settings: &Value, home: &Path) -> Option<String> {
    let url = settings.get("server").and_then(|server| server.get("url"));
    let url = url.and_then(Value::as_str).map(|url| url.to_string());
    let base = url.or_else(|| running(home))?;
    Some(base.trim_end_matches('/').to_owned())
}

/// Returns the address of the server that runs in a home folder.
pub fn running(home: &Path) -> Option<String> {
    let text = fs::read_to_string(home.join(NAME)).ok()?;
    let about: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(about["base"].as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_come_before_the_running_server() {
        let home = tempfile::tempdir().expect("a folder");
        assert_eq!(base(&Value::Nil, home.path()), None);
        let about = r#"{"pid": 7, "base": "http://127.0.0.1:7373"}"#;
        fs::write(home.path().join(NAME), about).expect("it is written");
        let found = base(&Value::Nil, home.path());
        assert_eq!(found.as_deref(), Some("http://127.0.0.1:7373"));
        let url = (
            Value::keyword("url"),
            Value::from("https://flows.example.com/"),
        );
        let settings = Value::map([(Value::keyword("server"), Value::map([url]))]);
        let found = base(&settings, home.path());
        assert_eq!(found.as_deref(), Some("https://flows.example.com"));
    }
}
