//! The model as the checker sees it, and what a run of the checker says.

use std::time::Instant;

use stateright::report::WriteReporter;
use stateright::{Checker, HasDiscoveries, Model, Property};

use super::bounds::Bounds;
use super::rules::Rule;
use super::world::{Act, World};

/// Somebody has authority.
pub const LED: &str = "some leader";

/// The leadership moved from one server to another.
pub const HANDED_OVER: &str = "another leader";

/// In a calm variant, somebody has led by the last tick whatever happens.
pub const ALWAYS_LED: &str = "a leader, whatever happens";

impl Bounds {
    /// Planted bugs count for one thread, and the checker has threads of its own.
    fn plant(&self) {
        edgelect::planted::plant(self.bug);
    }
}

impl Model for Bounds {
    type State = World;
    type Action = Act;

    fn init_states(&self) -> Vec<World> {
        self.plant();
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, acts: &mut Vec<Act>) {
        world.acts(self, acts);
    }

    fn next_state(&self, world: &World, act: Act) -> Option<World> {
        self.plant();
        let mut next = world.clone();
        next.act(self, act);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn keeps(world: &World, rule: Rule) -> bool {
            world.witness.broken != Some(rule)
        }
        let mut properties = vec![
            Property::always("S1 one authority", |_, world| keeps(world, Rule::OneAuthority)),
            Property::always("S2 tokens only grow", |_, world| keeps(world, Rule::TokensGrow)),
            Property::always("S4 every body is new", |_, world| keeps(world, Rule::NewBodies)),
            Property::always("S9 a term never resumes", |_, world| keeps(world, Rule::TermsEnd)),
            Property::always("a session waits at last", |_, world| keeps(world, Rule::Waits)),
            Property::sometimes(LED, |_, world: &World| world.leaders() == 1),
            Property::sometimes(HANDED_OVER, |bounds, world: &World| world.handed_over(bounds)),
        ];
        if self.calm {
            properties.push(Property::always("I5 led again soon", |_, world| {
                keeps(world, Rule::SoonLed)
            }));
            // That somebody has led stays part of the state, and no course comes back to an earlier one: so
            // what the checker does not promise for courses that meet holds here.
            properties
                .push(Property::eventually(ALWAYS_LED, |_, world: &World| world.witness.led()));
        }
        properties
    }
}

/// What a run came to.
pub struct Explored {
    pub states: usize,
    pub unique: usize,
    pub depth: usize,
    /// The rule that was broken, and the shortest course to it.
    pub broken: Option<(&'static str, Vec<Act>)>,
    /// The examples that were looked for and not found.
    pub missing: Vec<&'static str>,
}

/// Explores every course of events within the bounds, the short ones first, on one thread: so the counts are
/// the same each time, and what is found is shortest.
#[allow(clippy::disallowed_methods)] // How long the checker itself took; nothing that it checks sees this.
pub fn explore(bounds: Bounds, long: bool) -> Explored {
    let name = bounds.name;
    let from = Instant::now();
    let checker = bounds.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs();
    // Whoever waits for a long run sees that it goes on.
    let checker = match long {
        true => checker.join_and_report(&mut WriteReporter::new(&mut std::io::stderr())),
        false => checker.join(),
    };
    let mut found = checker.discoveries();
    let (mut broken, mut missing) = (None, Vec::new());
    for property in checker.model().properties() {
        match (property.expectation.discovery_is_failure(), found.remove(property.name)) {
            (true, Some(path)) => broken = Some((property.name, path.into_actions())),
            (false, None) => missing.push(property.name),
            _ => {}
        }
    }
    let (states, unique) = (checker.state_count(), checker.unique_state_count());
    let depth = checker.max_depth();
    println!(
        "model {name}: {states} states ({unique} unique), depth {depth}, {:.1} s",
        from.elapsed().as_secs_f64()
    );
    Explored { states, unique, depth, broken, missing }
}
