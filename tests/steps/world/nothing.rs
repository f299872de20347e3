//! The stores that a step must not use.

use super::*;

/// Stores that these steps never use.
pub struct Nothing;

impl Changesets for Nothing {
    fn overlay(&self, _: &str) -> PortFuture<'_, Option<Overlay>> {
        unused()
    }
    fn referenced(&self) -> PortFuture<'_, Referenced> {
        unused()
    }
}

impl Installations for Nothing {
    fn install(&self, _: InstallationRow) -> PortFuture<'_, bool> {
        unused()
    }
    fn installation(&self, _: &InstallationName) -> PortFuture<'_, Option<InstallationRow>> {
        unused()
    }
    fn installations(&self, _: Option<&str>) -> PortFuture<'_, Vec<InstallationRow>> {
        unused()
    }
    fn change_installation(&self, _: InstallationRow) -> PortFuture<'_, bool> {
        unused()
    }
    fn note_tokens(&self, _: &InstallationName, _: &RunId, _: i64) -> PortFuture<'_, ()> {
        unused()
    }
    fn tokens_used(&self, _: &InstallationName, _: &RunId) -> PortFuture<'_, i64> {
        unused()
    }
    fn uninstall(&self, _: &InstallationName) -> PortFuture<'_, bool> {
        unused()
    }
}

impl ScratchLayers for Nothing {
    fn open(&self, _: &Stores, _: &Path, _: u64) -> Result<Scratch, StoreError> {
        panic!("no step uses this store")
    }
}

impl Resources for Nothing {
    fn find(&self, _: &str, _: i64) -> PortFuture<'_, Option<ResourceRow>> {
        Box::pin(async { Ok(None) })
    }
    fn list(&self, _: ResourceQuery) -> PortFuture<'_, ResourcePage> {
        unused()
    }
    fn register(&self, _: BlobRow, _: i64) -> PortFuture<'_, ()> {
        unused()
    }
    fn delete(&self, _: &str, _: i64) -> PortFuture<'_, bool> {
        unused()
    }
    fn describe(&self, _: &str, _: Option<SearchEntry>) -> PortFuture<'_, bool> {
        unused()
    }
    fn needed_by(&self, _: &str) -> PortFuture<'_, Vec<RunId>> {
        unused()
    }
}

impl Tokens for Nothing {
    fn add_token(&self, _: Token, _: [u8; 32]) -> PortFuture<'_, ()> {
        unused()
    }
    fn token(&self, _: &str) -> PortFuture<'_, Option<(Token, Vec<u8>)>> {
        unused()
    }
    fn revoked_tokens(&self, _: Vec<String>) -> PortFuture<'_, Vec<String>> {
        unused()
    }
    fn tokens(&self) -> PortFuture<'_, Vec<Token>> {
        unused()
    }
    fn touch_tokens(&self, _: Vec<(String, i64)>) -> PortFuture<'_, ()> {
        unused()
    }
    fn revoke_token(&self, _: &str, _: i64) -> PortFuture<'_, bool> {
        unused()
    }
}

impl Registry for Nothing {
    fn add_version(&self, _: NewVersion) -> PortFuture<'_, RegistryAnswer<Added>> {
        unused()
    }
    fn move_live(&self, _: NewRelease) -> PortFuture<'_, RegistryAnswer<Moved>> {
        unused()
    }
    fn archive(&self, _: &FlowName, _: Option<i64>) -> PortFuture<'_, RegistryAnswer<FlowRow>> {
        unused()
    }
    fn flow(&self, _: &FlowName) -> PortFuture<'_, Option<FlowRow>> {
        unused()
    }
    fn flows(&self, _: &str) -> PortFuture<'_, Vec<FlowRow>> {
        unused()
    }
    fn version(&self, _: &FlowName, _: i64) -> PortFuture<'_, Option<VersionRow>> {
        unused()
    }
    fn revision(&self, _: &FlowName, _: &str) -> PortFuture<'_, Option<VersionRow>> {
        unused()
    }
    fn versions(&self, _: &FlowName, _: Option<i64>, _: usize) -> PortFuture<'_, Vec<VersionRow>> {
        unused()
    }
    fn as_of(&self, _: &FlowName, _: FlowTarget, _: i64) -> PortFuture<'_, Option<VersionRow>> {
        unused()
    }
    fn files(&self, _: &str) -> PortFuture<'_, Option<VersionFiles>> {
        unused()
    }
    fn releases(&self, _: &FlowName, _: usize) -> PortFuture<'_, Vec<ReleaseRow>> {
        unused()
    }
    fn version_at(&self, _: &FlowName, _: &str) -> PortFuture<'_, Option<i64>> {
        unused()
    }
    fn check_out(&self, _: &FlowName, _: &str, _: i64) -> PortFuture<'_, ()> {
        unused()
    }
}

impl Triggers for Nothing {
    fn add_trigger(&self, _: TriggerRow, _: usize) -> PortFuture<'_, bool> {
        unused()
    }
    fn trigger(&self, _: &str) -> PortFuture<'_, Option<TriggerRow>> {
        unused()
    }
    fn triggers(&self, _: &FlowName, _: TriggerKind) -> PortFuture<'_, Vec<TriggerRow>> {
        unused()
    }
    fn change_trigger(&self, _: TriggerRow, _: TriggerRow) -> PortFuture<'_, bool> {
        unused()
    }
    fn remove_trigger(&self, _: &str) -> PortFuture<'_, bool> {
        unused()
    }
    fn due_triggers(&self, _: i64) -> PortFuture<'_, Vec<TriggerRow>> {
        unused()
    }
    fn listening(&self, _: &str) -> PortFuture<'_, Vec<TriggerRow>> {
        unused()
    }
    fn next_trigger_ms(&self) -> PortFuture<'_, Option<i64>> {
        unused()
    }
    fn record_delivery(&self, _: NewDelivery) -> PortFuture<'_, bool> {
        unused()
    }
    fn retry_delivery(&self, _: EventDelivery) -> PortFuture<'_, bool> {
        unused()
    }
    fn delivery(&self, _: &str) -> PortFuture<'_, Option<EventDelivery>> {
        unused()
    }
    fn delivery_of(&self, _: &str) -> PortFuture<'_, Option<EventDelivery>> {
        unused()
    }
    fn due_deliveries(&self, _: i64) -> PortFuture<'_, Vec<EventDelivery>> {
        unused()
    }
    fn deliveries(&self, _: DeliveryQuery) -> PortFuture<'_, Vec<EventDelivery>> {
        unused()
    }
}

impl SearchIndex for Nothing {
    fn refresh(&self, _: usize) -> PortFuture<'_, Refreshed> {
        unused()
    }
    fn versions(&self, _: SearchTarget) -> PortFuture<'_, Vec<(String, String)>> {
        unused()
    }
    fn put(&self, _: SearchTarget, _: Vec<SearchDoc>, _: Vec<String>) -> PortFuture<'_, ()> {
        unused()
    }
    fn by_words(&self, _: WordQuery) -> PortFuture<'_, Vec<SearchHit>> {
        unused()
    }
    fn unembedded(
        &self,
        _: &str,
        _: &[SearchTarget],
        _: usize,
    ) -> PortFuture<'_, (Vec<Unembedded>, u64)> {
        unused()
    }
    fn embed(&self, _: &str, _: Vec<Embedded>) -> PortFuture<'_, ()> {
        unused()
    }
    fn by_vector(&self, _: VectorQuery) -> PortFuture<'_, Vec<SearchHit>> {
        unused()
    }
    fn indexed(&self, _: SearchTarget, _: &str) -> PortFuture<'_, Option<SearchDoc>> {
        unused()
    }
    fn forget(&self, _: Option<String>) -> PortFuture<'_, u64> {
        unused()
    }
}

pub fn unused<T>() -> PortFuture<'static, T> {
    Box::pin(async { Err(StoreError::Internal("not part of this test".into())) })
}

impl Queue for Nothing {
    fn admit_with(&self, _: NewRun, _: StartRules, _: Vec<Entry>) -> PortFuture<'_, Admission> {
        unused()
    }
    fn admit(&self, _: NewRun, _: StartRules) -> PortFuture<'_, Admission> {
        unused()
    }

    fn admit_all(&self, _: Delivery) -> PortFuture<'_, BulkAdmission> {
        unused()
    }

    fn deliver(&self, _: Delivery) -> PortFuture<'_, Delivered> {
        unused()
    }

    fn receipt(&self, _: &str, _: &str, _: i64) -> PortFuture<'_, Option<PastDelivery>> {
        unused()
    }

    fn promote(&self, _: i64) -> PortFuture<'_, Vec<RunId>> {
        unused()
    }

    fn place(&self, _: &RunId) -> PortFuture<'_, Option<QueuePlace>> {
        unused()
    }
}

impl Journal for Nothing {
    fn commit(&self, _: Batch) -> PortFuture<'static, Receipt> {
        unused()
    }
    fn post(&self, _: Batch) -> Result<(), StoreError> {
        Err(StoreError::Internal("not part of this test".into()))
    }
    fn load(&self, _: &RunId) -> PortFuture<'_, Vec<Entry>> {
        unused()
    }
    fn load_after(&self, _: &RunId, _: i64, _: usize) -> PortFuture<'_, Vec<(i64, Entry)>> {
        unused()
    }
}

impl Feed for Nothing {
    fn read(&self, _: &RunId, _: i64, _: usize) -> PortFuture<'_, Option<FeedPage>> {
        unused()
    }
    fn project(&self, _: i64, _: usize, _: FeedDetail) -> PortFuture<'_, ProjectFeedPage> {
        unused()
    }
    fn last_position(&self) -> PortFuture<'_, i64> {
        unused()
    }
    fn news(&self) -> Box<dyn flowstone_engine::ports::News> {
        unreachable!("steps do not ask for news")
    }
    fn watch(&self, _: &RunId) -> Box<dyn flowstone_engine::ports::News> {
        unreachable!("steps do not read feeds")
    }
}

impl Live for Nothing {
    fn add(&self, _: &RunId, _: &str, _: &str) {}
    fn clear(&self, _: &RunId, _: &str) {}
    fn clear_run(&self, _: &RunId) {}
    fn join(&self, _: &RunId) -> Box<dyn LiveText> {
        unreachable!("steps do not read feeds")
    }
}

impl Agenda for Nothing {
    fn news(&self) -> Box<dyn flowstone_engine::ports::News> {
        unreachable!("steps do not ask for news")
    }
    fn take(&self, _: i64, _: usize) -> PortFuture<'_, Vec<Taken>> {
        unused()
    }
    fn next_ms(&self) -> PortFuture<'_, Option<i64>> {
        unused()
    }
    fn sweep(&self) -> PortFuture<'_, usize> {
        unused()
    }
    fn set_aside(&self, _: &RunId, _: i64, _: Setback) -> PortFuture<'_, ()> {
        unused()
    }
    fn forget_setbacks(&self) -> PortFuture<'_, usize> {
        unused()
    }
    fn schedules(&self) -> PortFuture<'_, Vec<ScheduleRow>> {
        unused()
    }
    fn plan(&self, _: PlanChange) -> PortFuture<'_, bool> {
        unused()
    }
}

impl Runs for Nothing {
    fn create(&self, _: NewRun) -> PortFuture<'_, RunId> {
        unused()
    }
    fn find(&self, _: &RunId) -> PortFuture<'_, Option<RunRow>> {
        unused()
    }
    fn list(&self, _: RunFilter) -> PortFuture<'_, Vec<RunRow>> {
        unused()
    }
    fn summaries(&self, _: RunQuery) -> PortFuture<'_, Vec<RunSummary>> {
        unused()
    }
    fn program(&self, _: &str) -> PortFuture<'_, Option<Program>> {
        unused()
    }
    fn versions(&self, _: &str) -> PortFuture<'_, Vec<FlowVersion>> {
        unused()
    }
    fn claim(&self, _: &RunId, _: ClaimBy, _: i64) -> PortFuture<'_, Claim> {
        unused()
    }
    fn executes(&self, _: &RunId, _: bool) {}
    fn adopt(&self, _: Adoption) -> PortFuture<'_, ()> {
        unused()
    }
    fn release(&self, _: &RunId, _: i64) -> PortFuture<'_, ()> {
        unused()
    }
    fn import(&self, _: Import) -> PortFuture<'_, ()> {
        unused()
    }
    fn sealed(&self, _: Option<&RunId>, _: usize) -> PortFuture<'_, Vec<StoredInput>> {
        unused()
    }
    fn reseal(&self, _: Vec<(StoredInput, StoredInput)>) -> PortFuture<'_, ()> {
        unused()
    }
    fn request_cancel(&self, _: &RunId, _: &str, _: i64) -> PortFuture<'_, ()> {
        unused()
    }
    fn terminate(&self, _: &RunId, _: &str, _: i64) -> PortFuture<'_, Option<RunStatus>> {
        unused()
    }
}

impl Upkeep for Nothing {
    fn process(&self) -> &str {
        "nothing"
    }
    fn is_alive(&self, _: &str) -> bool {
        false
    }
    fn counts(&self) -> PortFuture<'_, Counts> {
        unused()
    }
    fn usage(&self) -> PortFuture<'_, Usage> {
        unused()
    }
    fn journal_usage(&self, _: &RunId) -> PortFuture<'_, Removed> {
        unused()
    }
    fn prune(&self, _: &RunId, _: i64) -> PortFuture<'_, Removed> {
        unused()
    }
    fn forget(&self, _: &RunId) -> PortFuture<'_, bool> {
        unused()
    }
    fn half_pruned(&self) -> PortFuture<'_, Vec<RunId>> {
        unused()
    }
    fn sweep(&self, _: Sweep, _: i64) -> PortFuture<'_, Removed> {
        unused()
    }
    fn compact(&self) -> PortFuture<'_, ()> {
        unused()
    }
    fn backup(&self, _: &Path) -> PortFuture<'_, BackedUp> {
        unused()
    }
    fn verify(&self) -> PortFuture<'_, Verified> {
        unused()
    }
}

impl Waits for Nothing {
    fn list(&self, _: WaitFilter) -> PortFuture<'_, Vec<WaitRow>> {
        unused()
    }
    fn at(&self, _: &RunId, _: &str) -> PortFuture<'_, Option<WaitRow>> {
        unused()
    }
    fn token(&self, _: &str) -> PortFuture<'_, Option<String>> {
        unused()
    }
    fn complete(&self, _: Completion) -> PortFuture<'_, WaitsAnswer> {
        unused()
    }
    fn signals(&self, _: SignalFilter) -> PortFuture<'_, Vec<SignalRow>> {
        unused()
    }
}

impl Jobs for Nothing {
    fn claim(&self, _: JobClaim) -> PortFuture<'_, Vec<JobRow>> {
        unused()
    }
    fn call(&self, _: Vec<JobCall>, _: i64) -> PortFuture<'_, Vec<JobAnswer>> {
        unused()
    }
    fn expire(&self, _: i64) -> PortFuture<'_, usize> {
        unused()
    }
    fn find(&self, _: &str) -> PortFuture<'_, Option<JobRow>> {
        unused()
    }
    fn list(&self, _: JobQuery) -> PortFuture<'_, Vec<JobRow>> {
        unused()
    }
    fn batch(&self, _: &str) -> PortFuture<'_, Option<JobBatch>> {
        unused()
    }
}

impl Kv for Nothing {
    fn get(&self, _: &str, _: i64) -> PortFuture<'_, Option<String>> {
        unused()
    }
    fn list_keys(&self, _: &str, _: usize, _: i64) -> PortFuture<'_, Vec<String>> {
        unused()
    }
}

impl Tables for Nothing {
    fn names(&self) -> PortFuture<'_, Vec<String>> {
        unused()
    }

    fn query(&self, _: TableQuery) -> PortFuture<'_, String> {
        unused()
    }

    fn apply(&self, _: TableOp, _: i64) -> PortFuture<'_, String> {
        unused()
    }

    fn stage(&self, _: StageCsv) -> PortFuture<'_, StagedCsv> {
        unused()
    }

    fn export(&self, _: ExportCsv) -> PortFuture<'_, ExportedCsv> {
        unused()
    }
}
