//! Requests of a test to the project's own server: they say that they come from a test, so that the kit's tools refuse to
//! change anything for them.

use flowstone_flow::step::StepContext;
use flowstone_model::server_file;
use reqwest::Url;

/// The header that says of what kind the run is that sends a request.
pub(crate) const RUN_KIND: &str = "X-Flowstone-Run-Kind";

/// The same for a program that a test starts.
pub(crate) const RUN_KIND_VARIABLE: &str = "FLOWSTONE_RUN_KIND";

/// Returns the header for a request of a test to the project's own server; `None` for any other.
pub(crate) fn run_kind(cx: &StepContext, url: &Url) -> Option<(String, String)> {
    let services = &cx.scope().services;
    services.test?;
    let configured = server_file::base(&services.settings, &services.home);
    let bases = [configured, server_file::running(&services.home)];
    let mut bases = bases.into_iter().flatten();
    let is_own = bases.any(|base| Url::parse(&base).is_ok_and(|base| is_same(&base, url)));
    is_own.then(|| (RUN_KIND.to_owned(), "test".to_owned()))
}

/// Tells whether a URL may lead to a server. Other names of the machine have the same port, and the header harms nowhere.
fn is_same(base: &Url, url: &Url) -> bool {
    let has_own_port = base.port().is_some() && base.port() == url.port_or_known_default();
    has_own_port
        || (base.host() == url.host()
            && base.port_or_known_default() == url.port_or_known_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_name_of_the_machine_is_the_same_server() {
        let same = |base: &str, url: &str| {
            let parse = |text: &str| Url::parse(text).expect("a URL");
            is_same(&parse(base), &parse(url))
        };
        assert!(same(
            "http://127.0.0.1:7373",
            "http://localhost:7373/api/tools/test_run"
        ));
        assert!(same(
            "https://flows.example.com",
            "https://flows.example.com/api/tools/x"
        ));
        assert!(!same(
            "https://flows.example.com",
            "https://other.example.com/"
        ));
        assert!(!same("http://127.0.0.1:7373", "http://127.0.0.1:80/"));
    }
}
