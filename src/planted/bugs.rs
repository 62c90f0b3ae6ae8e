//! The list: every bug with the rule that it breaks and the depth at which it can be seen. The first line of a
//! bug's comment says what goes wrong; the lines after it, why no simulation finds it.

use std::cell::Cell;

/// How much of the product a simulation has to run to see a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The state machine over a modelled store.
    Core,
    /// The real S3 store code between them, down to HTTP requests and answers.
    Store,
    /// The real code of the epoch layout, over a modelled store without `If-Match`.
    Epochs,
    /// Whole members that share shards out, over a store in memory.
    Shards,
}

impl Depth {
    /// The word for it on pages and in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Store => "store",
            Self::Epochs => "epochs",
            Self::Shards => "shards",
        }
    }
}

macro_rules! bugs {
    ($(
        #[doc = $what:literal]
        $(#[doc = $survives:literal])*
        $name:ident: $rule:literal, $depth:ident;
    )+) => {
        /// A way in which elections over object storage have gone wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $(#[doc = $what] $(#[doc = $survives])* $name,)+
        }

        impl Bug {
            /// Every bug.
            pub const ALL: &'static [Bug] = &[$(Bug::$name),+];

            /// What goes wrong, in a sentence.
            pub fn what(self) -> &'static str {
                match self {
                    $(Bug::$name => $what.trim_ascii(),)+
                }
            }

            /// Why a simulation that finds the others does not find this one; empty for those others.
            pub fn survives(self) -> &'static str {
                match self {
                    $(Bug::$name => concat!($($survives),*).trim_ascii(),)+
                }
            }

            /// The safety rule, or the scenario, that it breaks.
            pub fn rule(self) -> &'static str {
                match self {
                    $(Bug::$name => $rule,)+
                }
            }

            /// Where it can be seen.
            pub fn depth(self) -> Depth {
                match self {
                    $(Bug::$name => Depth::$depth,)+
                }
            }
        }
    };
}

bugs! {
    /// The lease counts from the answer, not from before the request.
    AnchorAfterAnswer: "S5", Core;
    /// The lease counts to its very end, without the margin.
    NoMargin: "S5", Core;
    /// A write that landed grants the lease of the settings that came after it left.
    AnchorOfNewSettings: "S5", Core;
    /// A renewal in doubt with a shorter lease leaves the older, longer fence standing.
    ShortenedLeaseKeepsFence: "S5", Core;
    /// The answer to a claim grants a term although it is processed after the claim's own fence.
    ClaimAnsweredLate: "S5", Core;
    /// Authority is a flag that somebody has to take down.
    AuthorityIsAFlag: "S5", Core;
    /// A lease that is parked keeps its authority until the store has answered.
    ParkUnderAuthority: "S5", Core;
    /// A renewal that is known to have landed after the lapse resumes the term.
    LapsedRenewalAdopted: "S9", Core;

    /// Authority that was seen to have ended between two polls comes back when the wall clock is put right.
    LapseForgotten: "S9", Core;

    /// The token of a new term is one more than the record's, and one after a deletion.
    TermRestarts: "S2", Core;
    /// The highest term that the session ever saw is not remembered.
    HighestTermForgotten: "S2", Core;
    /// The term of a record that is damaged elsewhere is not looked at.
    DamagedTermForgotten: "S2", Core;
    /// The tombstone is conditional on a version read anew.
    ReleaseRereadVersion: "S3", Core;
    /// A refused renewal is sent again over whatever version is there by then.
    RenewalOverAnything: "S3", Core;
    /// Every renewal is conditional on the ETag that the claim was answered with.
    ConstantEtag: "S3", Core;
    /// Bodies carry no growing sequence.
    NoSequence: "S4", Core;
    /// A retry goes out with the sequence of the attempt before it.
    RetryRepeatsSequence: "S4", Core;

    /// The age of another's lease counts from the sending of the read.
    AgeFromSending: "S6", Core;
    /// Another's `lastUpdated` is compared with the own wall clock.
    WallClocksCompared: "S1", Core;
    /// The candidate waits out its own lease, not the record's.
    CandidateLease: "S6", Core;
    /// The observation of one version goes on over the next.
    ObservationOverVersions: "S6", Core;
    /// `Date` and `Last-Modified` prove an age in spite of `Via` or `Age`.
    RelayBelieved: "S6", Core;
    /// `Date` and `Last-Modified` prove an age although `Date` and the own clock moved apart.
    DriftBelieved: "S6", Core;
    /// `Date` and `Last-Modified` are compared without rounding and `storeSkew`.
    AgeWithoutSkew: "S6", Core;
    /// A parked lease is claimed at once whomever it is parked for.
    ParkedForAnybody: "S6", Core;
    /// A lease that its holder announced to park by now is claimed as if it were parked.
    AnnouncedIsParked: "S6", Core;
    /// A 403 to a write is believed: its fence and its sequence are forgotten.
    RejectedForgotten: "S5, S8", Core;
    /// Where the store names no `Last-Modified`, a record without a term counts as changed now, however old it is.
    ForeignTermFromNow: "S2", Core;
    /// Behind a cache with old `Date`s, the time of the record's last change is not counted as storage time.
    ModifiedIsNoStorageTime: "S2", Core;
    /// A cache's old `Date` moves storage time back, and the tokens with it.
    CachedDateMovesTokens: "S2", Core;
    /// Behind a cache with old `Date`s, own time moves no token.
    CachedTimeStops: "S2", Core;
    /// Behind a cache with old `Date`s, own time moves the tokens in full, however fast it runs.
    CachedTimeInFull: "S2", Core;
    /// A single clock's step forward moves the tokens ahead of storage time.
    StepMovesTokens: "S2", Core;
    /// A single clock's wait counts from a cache's old `Date`.
    CachedDateWaits: "S11", Core;
    /// A single clock's wait that began with one `Date` that was far too late lasts until then.
    LateDateBelieved: "I5", Core;
    /// The own `serverId` in a record is taken for the own session.
    OwnNameIsOwnSession: "S6, scenario 46", Core;
    /// A peer that does not answer counts as a dead leader.
    SilentPeerIsDead: "S6, peers", Core;
    /// A peer that repeats an old answer is believed.
    PeerReplayBelieved: "peers", Core;
    /// A peer is believed for ever without a read of the store.
    PeerBelievedForEver: "peers", Core;
    /// A peer's answer starts the watch of the record again, as if the lease had been renewed.
    PeerExtendsLease: "peers", Core;
    /// A leader answers its peers from its record, also without authority.
    ZombieAnswersPeers: "scenario 67", Core;
    /// Where there is a secret, an answer is believed that proves nothing.
    UnprovenPeerBelieved: "peers", Core;
    /// A member repeats what its leader has told, long after it has heard of it.
    RelayForEver: "peers", Core;
    /// A member holds as many questions as there come.
    QuestionsWithoutEnd: "peers", Core;

    /// A record created from absence grants authority at once.
    ClaimAbsenceWithoutGrace: "S7", Core;
    /// The grace is the own lease, whatever `maxLease` says and whatever leases were seen.
    GraceIsOwnLease: "S7", Core;
    /// The grace counts from the sending of the creation.
    GraceFromSending: "S7", Core;
    /// A creation that is known only by its read-back has no grace.
    LateCreationHasNoGrace: "S7", Core;
    /// A creation that a held-up copy of its request brings back after a deletion goes on with its grace.
    RevivalUnseen: "S7, S4", Core;
    /// A creation is claimed itself, which a held-up copy of its request may have brought back.
    CreationClaimed: "S7, S4", Core;
    /// A record created from absence is renewed in its grace.
    CreateRenewedInGrace: "S7", Core;
    /// A record created from absence is released or parked in its grace.
    ReleaseInGrace: "S7", Core;
    /// A leader whose record was deleted creates it again and goes on.
    DeletedIsRecreated: "S7, scenario 33", Core;
    /// An unreadable record is overwritten at once.
    GarbageHealedAtOnce: "S7", Core;
    /// A reservation is waited for briefly, however long ago the read was that showed the bytes below it.
    LateReservationIsTimely: "S7", Core;
    /// An unreadable record is healed in one write, which may land on the next that is equal to it.
    GarbageHealedInOneWrite: "S2, S4", Core;
    /// A version that was read once counts as unreadable when its body is cut short on the way.
    DamageOnTheWayCounts: "S7", Core;
    /// The lease of a record that is damaged elsewhere is not looked at.
    DamagedLeaseForgotten: "S7", Core;
    /// A `Last-Modified` that moves with each answer begins the grace anew for ever.
    MovingTimeBelieved: "S7", Core;
    /// A record of a newer format is healed like an unreadable one.
    NewerFormatClaimed: "S7", Core;

    /// One answer that says "set up wrongly" ends an elector whose writes the store has taken.
    OneAnswerIsFinal: "S8", Core;
    /// A status without the store's error document counts as the store's word.
    GatewayIsTheStore: "S8", Store;
    /// A refused write is read back by a conditional read, which something between answers as unchanged.
    RefusedReadConditional: "S8", Core;
    /// A 412 is taken for a loss without reading back.
    RefusedIsLost: "S8", Core;
    /// A success that names the version it was to replace counts as one.
    EchoBelieved: "S8", Core;
    /// A 412 counts as success.
    RefusedIsSuccess: "S8", Core;
    /// A timeout counts as "did not land".
    TimeoutDidNotLand: "S8", Core;
    /// Only the newest attempt is remembered, so that an earlier one that landed is somebody else's.
    UnresolvedForgotten: "S8", Core;
    /// A record under the own `serverId` is read back as the own write if the sequence fits.
    OwnNameIsOwnWrite: "S8, scenario 35", Core;

    /// `onAcquireLeadership` is called when the claim leaves.
    AcquiredBeforeWrite: "S10", Core;
    /// A claim that lands after a stop or a resignation begins a term all the same.
    StopForgetsClaim: "S10, S12", Core;
    /// Whoever resigns or stops while a claim is in flight is told that all is over.
    ResignForgetsClaim: "S10, S12", Core;
    /// A claim that is known to have landed only after a resignation was over begins its term all the same.
    ResignedClaimBegins: "S12", Core;
    /// What was under way when the leadership was given up is tried again afterwards.
    RoundAfterGivenUp: "S12", Core;
    /// The tombstone leaves while the work is still stopping.
    ReleaseBeforeWorkEnded: "S12", Core;
    /// A session whose lost term's work goes on competes for the next term.
    CompetesUnderOldWork: "S10", Core;

    /// A held lease counts by the monotonic clock alone, which a suspend stops.
    SuspendUnseen: "S11", Core;
    /// A single clock that is held at a timer's due time is believed.
    HeldClockTrusted: "S11", Core;
    /// A single clock that stepped back goes on counting the lease that it holds.
    StepBackKeepsTerm: "S11", Core;
    /// A single clock that stepped back goes on counting the observation.
    StepBackKeepsAge: "S11", Core;
    /// A step forward of a single clock counts as waiting, whatever the store's `Date` says.
    ForwardStepWaits: "S11", Core;
    /// A `Date` that moved on by more than the own single clock ends nothing.
    DateAheadIgnored: "S11", Core;

    /// An update goes out with `x-amz-copy-source-if-match`, a condition on the source of a copy, for `If-Match`.
    CopySourceCondition: "S3", Store;
    /// A renewal goes out without `If-Match`, and so does every other update.
    UpdateUnconditional: "S3", Store;
    /// A tombstone goes out without `If-Match`.
    TombstoneUnconditional: "S3", Store;
    /// The request that follows a redirect has lost its condition.
    RedirectDropsCondition: "S3, scenario 20", Store;
    /// Where a read has no ETag, the next write has no condition.
    NoEtagNoCondition: "S3, scenario 21", Store;
    /// Any ETag serves as a condition, also `*` and a list.
    EtagUnvalidated: "S3, scenario 21", Store;
    /// A weak ETag serves as a condition.
    WeakEtagAccepted: "S3, scenario 21", Store;
    /// `Via` and `Age` are not looked for, so that a cache's `Date` proves an age.
    ViaIgnored: "S6, scenario 43", Store;
    /// A missing bucket, or the 404 of something on the way, means that there is no record.
    AnyNotFoundIsAbsent: "S7, scenario 25", Store;
    /// An error document under status 200 is a record, and an unreadable one.
    ErrorDocumentIsRecord: "S7", Store;
    /// A 5xx, a 409, a 429 to a write means that it did not land.
    FailureDidNotLand: "S8", Store;
    /// A slot that was claimed before is claimed once more.
    SlotClaimedTwice: "scenario 54", Core;
    /// A record without a slot lets every slot run.
    SlotlessIsFree: "scenario 56", Core;
    /// A slot that died is run again although it may run once at most.
    DeadSlotRerun: "scenario 56", Core;
    /// A slot that died is not run again although it must run.
    DeadSlotForgotten: "scenario 56", Core;
    /// A slot is claimed however far ahead of storage time it is.
    SlotAheadClaimed: "docs/crons.md", Core;
    /// A record without a slot counts what came before its last change as claimed, without `storeSkew`.
    SlotlessWithoutSkew: "scenario 56", Core;
    /// A record created from absence counts no slot between its author's look and its landing as claimed.
    CreationCoversNothing: "scenario 56", Core;
    /// The trigger's own slot is claimed before the rerun of an earlier one.
    LaterSlotFirst: "scenario 56", Core;
    /// A slot that failed in this call is run again at once.
    RerunAtOnce: "docs/crons.md", Core;
    /// A slot is run again however often its job has failed.
    SpentSlotRerun: "docs/crons.md", Core;
    /// A rerun begins with no failures counted.
    FailuresForgotten: "docs/crons.md", Core;
    /// The newest of many missed slots is run first, and the older ones never.
    MissedNewestFirst: "docs/crons.md", Core;
    /// A claim of its own whose answer came too late is taken for a slot that was run.
    LateClaimIsRun: "scenario 56, S5", Core;
    /// A slot that died is told as one that ended well.
    DeadSlotToldOk: "history", Core;
    /// A full history loses its newest entry, not its oldest.
    HistoryLosesNewest: "history", Core;
    /// A slot counts as begun when its claim leaves.
    BegunBeforeClaim: "scenario 56, S10", Core;
    /// The claim of a slot keeps what the record said of the slot before it.
    SlotDoneKept: "scenario 56", Core;
    /// The closing write says done, although the job has failed.
    FailedIsDone: "docs/crons.md", Core;
    /// The record is released while the job that was told to stop goes on.
    ClosedUnderJob: "S12", Core;
    /// The closing write counts as recorded when it has left.
    RecordedUnheard: "S8", Core;
    /// A read-back of a renewal that nobody can read ends the term at once, although it may be that very renewal.
    UnreadableIsLost: "S8", Core;
    /// A slot whose claim may have landed is reported as taken.
    UnknownIsTaken: "S8", Core;
    /// A record names the newest `Date`, however long ago that was.
    StampOfDate: "docs/s3lect.md", Core;
    /// A 403 or a 412 to a slot's claim is believed, and nothing is said of it.
    RefusedClaimSkipped: "S8", Core;
    /// A body that was damaged on the way counts as a record without a slot.
    DamagedSlotIsTaken: "S7", Core;
    /// A slot is refused as ahead of its time by a cache's old `Date`.
    CachedDateAhead: "S11, scenario 43", Core;
    /// A trigger waits for somebody else's lease for as long as that lasts.
    BudgetForgotten: "docs/crons.md", Core;
    /// Where nothing says when a record was made, a creation that may have come back is believed to name the newest slot.
    ReturnedCreationFreesSlot: "scenario 56", Core;
    /// The tombstone that counts slots as claimed does not say which.
    CoverWithoutSlot: "scenario 56", Core;
    /// A trigger whose tombstone that counts slots as claimed may have landed says nothing of it.
    UnheardCoverSkipped: "S8", Core;

    /// A member claims the lease of a group that an operator has paused.
    PauseIgnored: "operator", Core;
    /// The tombstone that answers a pause drops it, so that others claim.
    PauseReleased: "operator", Core;
    /// A holder that was shown a step-down renews.
    StepDownIgnored: "operator", Core;
    /// A request over a write of unknown end is dropped when that write is found to have landed.
    RequestOverUnknownLost: "S8, operator", Core;
    /// A holder that takes a request counts its authority from there.
    RequestExtends: "S1, S5, operator", Core;
    /// A request counts the sequence on, so that the holder takes its own record for another's.
    RequestCountsAsWrite: "S8, operator", Core;

    /// With epochs, a body that was written again counts as unchanged.
    EpochTouchUnseen: "S6, epochs", Epochs;
    /// With epochs, two changes within one second of `Last-Modified` count as one.
    EpochSameSecond: "S6, epochs", Epochs;
    /// The cleaning deletes the newest epoch.
    EpochNewestCleaned: "S3, epochs", Epochs;
    /// An epoch is overwritten by somebody who did not create it.
    EpochOverwritten: "S3, epochs", Epochs;
    /// With epochs, an age is proven by answers that a cache gave.
    EpochCacheBelieved: "S6, epochs", Epochs;
    /// An epoch counts as its own creator's once the creation has left, by number, session and term.
    EpochCreationUnconfirmed: "S3, epochs", Epochs;
    /// With epochs, an age goes on after the read left that showed the version last.
    EpochAgeGoesOn: "S6, epochs", Epochs;
    /// With epochs, an age is proven by the `Date` that came with the body.
    /// Since followers claim in turns, none of 11,500 schedules showed it. The test
    /// `s6_an_age_is_proven_by_the_date_of_before_the_body_was_asked_for` does.
    EpochDateOfBody: "S6, epochs", Epochs;
    /// With epochs, new settings change the lease within a term.
    EpochLeaseVaries: "S5, epochs", Epochs;

    /// A member gives a shard back as soon as its view says that it has too many.
    ShardsGiveAtOnce: "shards", Shards;
    /// A member gives a shard to one that has one less.
    ShardsEvenByOne: "shards", Shards;
    /// A member claims every free shard that it sees.
    ShardsClaimAll: "shards", Shards;
    /// What a member was told to leave alone it claims all the same.
    CompetesUntold: "shards", Shards;
    /// A member does not go on to claim a lease that it has made: nobody ever leads.
    MadeIsLeft: "shards", Shards;
    /// A claim that rests on the store's clock alone grants at once, whatever that clock is worth.
    StoreClockAlone: "I1", Core;
    /// A claimed slot that lies ahead counts as damage also where a member's fast clock, or a wrong `Date`, has put it there.
    OwnSlotIsDamage: "docs/crons.md", Core;
    /// A member whose work on a shard ends takes no other shard for a while, as one that has lost it: some are never led.
    OwnEndWavers: "shards", Shards;
    /// The age of a lease counts on between two looks, so that a leader's seems free in between: a newcomer gets no share.
    HolderByOldAge: "shards", Shards;
}

impl Bug {
    /// The bug of this name.
    pub fn named(name: &str) -> Option<Bug> {
        Self::ALL.iter().copied().find(|bug| format!("{bug:?}") == name)
    }
}

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Plants one bug in this thread, or none.
pub fn plant(bug: Option<Bug>) {
    PLANTED.with(|planted| planted.set(bug));
}

/// Whether this bug is planted in this thread.
pub fn is(bug: Bug) -> bool {
    PLANTED.with(|planted| planted.get() == Some(bug))
}
