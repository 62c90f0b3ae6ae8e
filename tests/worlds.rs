//! The worlds in which the tests play elections: the simulator, a host whose time is virtual, a fleet of thousands, an
//! adversary of the layout of epochs, and shards with their members.

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
