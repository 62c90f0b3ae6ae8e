//! Members of edgelect and of shardcoordinator over one table, in virtual time, watched at every step.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use edgelect::clock::Now;
use edgelect::election::{Election, Event, Input, LostReason};
use edgelect::request::{Request, Response};
use edgelect::store::dynamodb::DynamoDbConfig;
use edgelect::{Config, Credentials, DynamoDbStore, Handle, Host, Settings, run};
use futures::executor::LocalPool;
use futures::task::LocalSpawnExt;

use crate::foreign::Foreign;
use crate::table::Table;
use crate::virtual_time::Virtual;

/// How often the fleet is looked at.
const LOOK_MS: u64 = 20;

/// One way of a request, or of its answer.
const WAY_MS: u64 = 7;

/// How the way of one member to the table is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Way {
    #[default]
    Open,
    /// Nothing arrives.
    Cut,
    /// The next write takes effect, and its answer is lost.
    LosesAnswer,
    /// The service does nothing and answers with this code.
    Says(&'static str),
}

/// The host of one member: virtual time, and the table over HTTP.
#[derive(Clone)]
struct Wire {
    host: Virtual,
    table: Table,
    way: Rc<Cell<Way>>,
}

impl Host for Wire {
    fn now(&self) -> Now {
        self.host.now()
    }

    async fn sleep(&self, ms: u64) {
        self.host.sleep(ms).await;
    }

    fn random(&self) -> Result<[u8; 16], String> {
        self.host.random()
    }

    async fn fetch(&self, request: Request, _limit: usize) -> Result<Response, String> {
        self.host.sleep(WAY_MS).await;
        let writes = request.headers.iter().any(|(_, value)| value.ends_with(".PutItem"));
        match self.way.get() {
            Way::Cut => return std::future::pending().await,
            Way::Says(code) => {
                self.host.sleep(WAY_MS).await;
                return Ok(self.table.error(code));
            }
            Way::LosesAnswer if writes => {
                self.table.answer(&request);
                self.way.set(Way::Open);
                return Err("the connection was reset".to_owned());
            }
            _ => {}
        }
        let answer = self.table.answer(&request);
        self.host.sleep(WAY_MS).await;
        Ok(answer)
    }
}

/// A member of edgelect.
#[derive(Clone)]
pub struct Member {
    pub handle: Handle,
    pub way: Rc<Cell<Way>>,
    pub told: Rc<RefCell<Vec<Event>>>,
}

impl Member {
    pub fn lost(&self) -> Vec<LostReason> {
        let reason = |event: &Event| match event {
            Event::Lost { reason, .. } => Some(*reason),
            _ => None,
        };
        self.told.borrow().iter().filter_map(reason).collect()
    }
}

pub struct Fleet {
    pub host: Virtual,
    pub table: Table,
    pub members: Vec<Member>,
    pub foreign: Vec<Foreign>,
    /// The fencing tokens in the order of their terms.
    pub tokens: Rc<RefCell<Vec<u64>>>,
    pub expires: bool,
    /// Whether members of the other make act by `IsLeader()` alone; then it is counted how long they did beside ours.
    pub by_state: bool,
    pub beside_ms: u64,
    pool: LocalPool,
    sessions: u64,
}

impl Fleet {
    pub fn new() -> Self {
        let host = Virtual::default();
        Self {
            table: Table::new(&host),
            host,
            members: Vec::new(),
            foreign: Vec::new(),
            tokens: Rc::default(),
            expires: false,
            by_state: false,
            beside_ms: 0,
            pool: LocalPool::new(),
            sessions: 0,
        }
    }

    /// A new session of a server, over an item whose foreign members may hold leases up to `max_lease_ms`.
    pub fn join(&mut self, server_id: &str, settings: &Settings) -> Member {
        let config = Config::new(&Settings {
            lockfile_path: Some("jobs".to_owned()),
            server_id: Some(server_id.to_owned()),
            ..settings.clone()
        });
        let config = config.expect("fine settings");
        self.sessions += 1;
        let wire = Wire { host: self.host.clone(), table: self.table.clone(), way: Rc::default() };
        let dynamo = DynamoDbConfig {
            table: "locks".to_owned(),
            shard_id: "jobs".to_owned(),
            lease_ms: config.leader_timeout_ms,
            ..DynamoDbConfig::default()
        };
        let store = DynamoDbStore::new(dynamo, credentials(), wire.clone()).expect("a fine item");
        let session = format!("session-{}", self.sessions);
        let handle = Handle::new(Election::new(config, session, self.sessions));
        let member = Member { handle, way: Rc::clone(&wire.way), told: Rc::default() };
        let (driven, tokens) = (member.clone(), Rc::clone(&self.tokens));
        let task = async move {
            run(&driven.handle, &store, &wire, |event| {
                match &event {
                    Event::Lost { term, .. } => {
                        driven.handle.tell(Input::WorkEnded { term: *term });
                    }
                    Event::Acquired { term } => tokens.borrow_mut().push(*term),
                    _ => {}
                }
                driven.told.borrow_mut().push(event);
            })
            .await;
        };
        self.pool.spawner().spawn_local(task).expect("the pool is alive");
        self.members.push(member.clone());
        member
    }

    pub fn join_foreign(&mut self, foreign: Foreign) -> Foreign {
        let ticking = foreign.clone().run(self.host.clone());
        self.pool.spawner().spawn_local(ticking).expect("the pool is alive");
        self.foreign.push(foreign.clone());
        foreign
    }

    fn acts(&self, foreign: &Foreign) -> bool {
        if self.by_state { foreign.is_leader() } else { foreign.leads() }
    }

    /// Who leads now.
    pub fn leaders(&self) -> Vec<String> {
        let ours = self.members.iter().filter(|m| m.handle.authority(self.host.now()).is_some());
        let ours = ours.map(|member| member.handle.with(|election| election.session().to_owned()));
        let theirs = self.foreign.iter().filter(|foreign| self.acts(foreign));
        ours.chain(theirs.map(|foreign| foreign.id.clone())).collect()
    }

    /// Lets time pass and looks all the while: nobody leads beside one of ours, and tokens grow.
    pub fn pass(&mut self, ms: u64) {
        self.pass_until(ms, |_| false);
    }

    /// The same until something holds; true if it did.
    pub fn pass_until(&mut self, ms: u64, mut holds: impl FnMut(&Self) -> bool) -> bool {
        let end_ms = self.host.now_ms.get() + ms;
        while self.host.now_ms.get() < end_ms {
            self.host.pass(&mut self.pool, LOOK_MS.min(end_ms - self.host.now_ms.get()));
            if self.expires {
                self.table.expire();
            }
            let leaders = self.leaders();
            let at_ms = self.host.now_ms.get();
            // What members of the other make do to one another, with clocks apart, is theirs.
            let theirs = self.foreign.iter().filter(|foreign| self.acts(foreign)).count();
            let ours = leaders.len() - theirs;
            let (item, beside) = (&self.table.item, ours > 0 && theirs > 0);
            assert!(ours < 2 && (!beside || self.by_state), "{leaders:?} at {at_ms} ms: {item:?}");
            if beside {
                self.beside_ms += LOOK_MS;
            }
            let tokens = self.tokens.borrow();
            assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
            drop(tokens);
            if holds(self) {
                return true;
            }
        }
        false
    }
}

fn credentials() -> Credentials {
    Credentials {
        access_key_id: "AKIAEXAMPLE".to_owned(),
        secret_access_key: "the-secret".to_owned(),
        session_token: None,
    }
}
