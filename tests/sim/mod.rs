//! A deterministic simulator of elections: the real state machine over a modelled store, network
//! and clocks, held against the rules of the design by an observer who sees the true time.

// Each test binary uses a part of it.
#![allow(dead_code)]

pub mod chance;
pub mod chaos;
pub mod clocks;
pub mod evidence;
pub mod member;
pub mod network;
pub mod oracle;
pub mod report;
pub mod requests;
pub mod run;
pub mod schedule;
pub mod stage;
pub mod store;
pub mod world;
