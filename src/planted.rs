//! Bugs that the simulator must find. `planted!(Name)` asks whether one is planted; without `--cfg planted` it is
//! the constant `false`, so that none of this ships.

#[cfg(planted)]
mod bugs;

#[cfg(planted)]
pub use bugs::{Bug, Depth, is, plant};

/// Whether this bug is planted in this thread.
macro_rules! planted {
    ($bug:ident) => {{
        #[cfg(planted)]
        {
            $crate::planted::is($crate::planted::Bug::$bug)
        }
        #[cfg(not(planted))]
        {
            false
        }
    }};
}
pub(crate) use planted;
