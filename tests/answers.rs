//! What each answer of each store means, what is sent to it, and what a probe makes of a store that lies.

#[path = "answers/dynamodb.rs"]
mod dynamodb;
#[path = "answers/kubernetes.rs"]
mod kubernetes;
#[path = "answers/lies.rs"]
mod lies;
#[path = "answers/probe.rs"]
mod probe;
#[path = "answers/route53.rs"]
mod route53;
#[path = "answers/s3.rs"]
mod s3;
#[path = "answers/told.rs"]
mod told;
#[allow(dead_code)] // The driver needs more of it.
mod virtual_time;
