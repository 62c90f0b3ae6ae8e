//! The page for people at `/`: one answer without data and without outside assets, whose script asks for `status.json`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The path at which a member shows it.
pub const PATH: &str = "/";

/// The page.
pub const HTML: &str = include_str!("page.html");

/// The headers of its answer. The policy lets nothing run but the page's own script, so that no name and no error can.
pub fn headers() -> [(&'static str, String); 5] {
    let (script, style) = (hash("script"), hash("style"));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types"
    );
    [
        ("content-type", "text/html; charset=utf-8".to_owned()),
        ("content-security-policy", policy),
        ("referrer-policy", "no-referrer".to_owned()),
        ("x-content-type-options", "nosniff".to_owned()),
        ("cache-control", "no-cache".to_owned()),
    ]
}

/// The hash by which a policy names the one element of this kind in the page.
fn hash(element: &str) -> String {
    let (begin, end) = (format!("<{element}>"), format!("</{element}>"));
    let inner = HTML.split_once(&begin).and_then(|(_, rest)| rest.split_once(&end));
    let (inner, _) = inner.expect("the page has one");
    STANDARD.encode(Sha256::digest(inner))
}
