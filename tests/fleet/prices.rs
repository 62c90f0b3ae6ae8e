//! What requests cost. The only table of prices is that of docs/operations.md.

const PAGE: &str = include_str!("../../docs/operations.md");

/// The stores of that table whose limits are known, and the name that a page of figures gives them.
pub const STORES: [&str; 2] = ["S3", "R2"];

/// US dollars for a million requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    pub write: f64,
    pub read: f64,
}

impl Price {
    /// That of a store by its name in the table's first column.
    pub fn of(store: &str) -> Self {
        let [prices, ..] = row(store)[..] else { panic!("the row of {store} has no prices") };
        let prices: Vec<f64> = prices.split(',').map(number).collect();
        let [write, read] = prices[..] else {
            panic!("{store} has a price for writes and one for reads")
        };
        Self { write, read }
    }

    /// US dollars for so many requests.
    pub fn dollars(&self, writes: f64, reads: f64) -> f64 {
        (writes * self.write + reads * self.read) / 1e6
    }
}

/// The cells of a store's row after its name.
pub fn row(store: &str) -> Vec<&'static str> {
    let cells = |line: &'static str| line.split('|').map(str::trim).filter(|cell| !cell.is_empty());
    let mut rows = PAGE.lines().map(|line| cells(line).collect::<Vec<_>>());
    let row = rows.find(|cells| cells.first() == Some(&store) && cells.len() > 2);
    row.unwrap_or_else(|| panic!("docs/operations.md has no prices of {store}"))[1..].to_vec()
}

/// The day on which the prices were looked up, as the page says it.
pub fn day() -> &'static str {
    let after = PAGE.split_once("US dollars (US East, ").expect("the prices have a date").1;
    after.split_once(')').expect("the date ends").0
}

/// The number at the beginning of a cell.
pub fn number(cell: &str) -> f64 {
    let cell = cell.trim();
    let end = cell.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(cell.len());
    cell[..end].parse().unwrap_or_else(|_| panic!("{cell:?} is no number"))
}
