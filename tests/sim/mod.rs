//! A deterministic simulator of elections: the real state machine over a modelled store, network
//! and clocks, held against the rules of the design by an observer who sees the true time. In its
//! deeper depth the real S3 store code stands between, down to HTTP requests and answers.

/// An enum and the list of all that it has.
macro_rules! listed {
    ($(#[$about:meta])* $name:ident { $($each:ident),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($each),+
        }

        impl $name {
            pub const ALL: [$name; [$($name::$each),+].len()] = [$($name::$each),+];
        }
    };
}

/// Like `assert!`, but the schedule goes on: the oracle takes down which check failed, and how.
macro_rules! require {
    ($oracle:expr, $holds:expr, $check:expr; $($told:tt)+) => {
        if !$holds {
            let told = format!($($told)+);
            $oracle.broke($check, told);
        }
    };
}

pub mod between;
pub mod chance;
pub mod chaos;
pub mod clocks;
pub mod foreign;
pub mod go;
pub mod justified;
pub mod liveness;
pub mod member;
pub mod network;
pub mod operator;
pub mod oracle;
pub mod outside;
pub mod past;
pub mod peers;
pub mod port;
pub mod queue;
pub mod report;
pub mod requests;
pub mod resource;
pub mod run;
pub mod schedule;
pub mod shrink;
pub mod slot_oracle;
pub mod slots;
pub mod stage;
pub mod store;
pub mod told;
pub mod wire;
pub mod world;
