//! Bugs that the simulator must find. `planted!(Name)` asks whether one is planted; without feature `planted` it
//! is the constant `false`, so that none of this ships.

#[cfg(feature = "planted")]
mod bugs;

#[cfg(feature = "planted")]
pub use bugs::{Bug, Depth, is, plant};

/// Whether this bug is planted in this thread.
macro_rules! planted {
    ($bug:ident) => {{
        #[cfg(feature = "planted")]
        {
            $crate::planted::is($crate::planted::Bug::$bug)
        }
        #[cfg(not(feature = "planted"))]
        {
            false
        }
    }};
}
pub(crate) use planted;
