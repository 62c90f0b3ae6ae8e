//! Two leaders where members of another make share the record: real elections beside stand-ins that follow those members'
//! documents, in virtual time.

pub mod bucket;
mod coordinator;
mod dynamodb;
mod epochs;
mod kubernetes;
mod route53;
mod s3lect;
mod s3lect_promises;
pub mod world;
