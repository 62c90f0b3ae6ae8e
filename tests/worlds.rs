//! The worlds in which the tests play elections: the simulator, a host whose time is virtual, a fleet of thousands, an
//! adversary of the layout of epochs, and shards with their members.

use edgelect::Credentials;

#[path = "epochs/adversary.rs"]
pub mod adversary;
#[path = "epochs/bucket.rs"]
pub mod bucket;
pub mod fleet;
#[path = "shards/play.rs"]
pub mod play;
pub mod sim;
#[path = "planted/table.rs"]
pub mod table;
pub mod virtual_time;

/// Of nobody.
pub fn credentials() -> Credentials {
    Credentials {
        access_key_id: "AKIAEXAMPLE".to_owned(),
        secret_access_key: "the-secret".to_owned(),
        session_token: None,
    }
}
