//! What the model holds against the sessions, knowing everything: the rules, and the history they need.

/// A rule of the design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// S1: at most one session has authority.
    OneAuthority,
    /// S2: tokens only grow, those handed out and those stored.
    TokensGrow,
    /// S4: every body is new.
    NewBodies,
    /// S9: a term that has lapsed never resumes.
    TermsEnd,
    /// A session waits at last.
    Waits,
    /// After the losses somebody leads again within the bound.
    SoonLed,
}

/// Which life of which session wrote something.
pub type Author = (usize, u8);

/// What happened, as far as the rules need it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Witness {
    /// The newest token that was handed out.
    token: u64,
    /// The newest term in the store, and whose.
    stored: (u64, Option<Author>),
    /// A copy of a write landed for the second time: it brought a deleted version back, and with it whatever
    /// waits for that version. What is handed out is still held against every earlier token.
    revived: bool,
    /// For how many ticks nobody has led; counted in calm variants only.
    pub leaderless_ticks: u64,
    pub broken: Option<Rule>,
}

impl Witness {
    /// Takes down the first broken rule; later ones may only be its echo.
    pub fn hold(&mut self, rule: Rule, holds: bool) {
        if !holds {
            self.broken.get_or_insert(rule);
        }
    }

    /// Whether a token was handed out.
    pub fn led(&self) -> bool {
        self.token > 0
    }

    pub fn acquired(&mut self, token: u64) {
        self.hold(Rule::TokensGrow, token > self.token);
        self.token = self.token.max(token);
    }

    /// A body was accepted. A record in its grace carries no token yet: its number may be older than a
    /// deleted one's where its creation was held up on the way.
    pub fn stored(&mut self, term: u64, author: Author, in_grace: bool, copy: bool) {
        self.revived |= copy;
        if in_grace || self.revived {
            return;
        }
        let (before, by) = self.stored;
        self.hold(Rule::TokensGrow, term > before || (term == before && by == Some(author)));
        self.stored = (term, Some(author));
    }
}
