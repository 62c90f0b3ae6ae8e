//! What `std`'s prelude has and `core`'s has not; every module that allocates imports it.

pub use alloc::borrow::ToOwned;
pub use alloc::boxed::Box;
pub use alloc::string::{String, ToString};
pub use alloc::vec::Vec;
