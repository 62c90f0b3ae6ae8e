//! What each answer of each store means, what is sent to it, and what a probe makes of a store that lies.

mod dynamodb;
mod kubernetes;
mod lies;
mod probe;
mod route53;
mod s3;
pub mod told;
