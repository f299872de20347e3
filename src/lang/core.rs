//! The library's natives, by area. Each area lists its functions in `FNS`; what needs no native is in
//! `stdlib/`.

use crate::session::Session;

/// The areas: namespace and functions. Sorted by file.
const AREAS: &[(&str, &[crate::value::Native])] = &[];

/// Defines every native in its namespace.
pub(crate) fn install(session: &Session) {
    for (namespace, natives) in AREAS {
        session.register(namespace, natives);
    }
}
