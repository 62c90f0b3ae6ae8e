//! The worlds in which the tests play elections: the simulator, a host whose time is virtual, a fleet of thousands, an
//! adversary of the layout of epochs, and shards with their members.

use edgelect::{Credentials, DynamoDbConfig, Route53Config, S3Config};

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

/// A bucket in the path, and a key in it.
pub fn bucket_with(key: &str) -> S3Config {
    S3Config {
        endpoint: Some("https://s3.example.com".to_owned()),
        bucket: "jobs".to_owned(),
        key: key.to_owned(),
        ..S3Config::default()
    }
}

/// An item of a table.
pub fn item() -> DynamoDbConfig {
    DynamoDbConfig {
        table: "locks".to_owned(),
        shard_id: "jobs".to_owned(),
        lease_ms: 15_000,
        ..DynamoDbConfig::default()
    }
}

/// A record set of a zone.
pub fn record_set() -> Route53Config {
    Route53Config {
        hosted_zone_id: "Z1".to_owned(),
        record_prefix: "lock".to_owned(),
        domain_name: "example.com".to_owned(),
        shard_id: "jobs".to_owned(),
        lease_ms: 15_000,
        ..Route53Config::default()
    }
}
