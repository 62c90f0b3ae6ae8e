//! Two leaders where members of another make share the record: real elections beside stand-ins that follow those members'
//! documents, in virtual time.

#[allow(dead_code)] // The election over epochs needs more of it.
#[path = "mixed/alone.rs"]
mod alone;
#[path = "mixed/bucket.rs"]
mod bucket;
#[allow(dead_code)] // The simulator needs more of it.
#[path = "sim/chance.rs"]
mod chance;
#[path = "mixed/dynamodb.rs"]
mod dynamodb;
#[path = "mixed/kubernetes.rs"]
mod kubernetes;
#[path = "mixed/route53.rs"]
mod route53;
#[path = "mixed/s3lect.rs"]
mod s3lect;
#[path = "mixed/s3lect_promises.rs"]
mod s3lect_promises;
#[allow(dead_code)] // The driver needs more of it.
mod virtual_time;
#[path = "mixed/world.rs"]
mod world;
