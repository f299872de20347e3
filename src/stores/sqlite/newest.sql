CREATE TABLE program (
    hash TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    engine_abi INTEGER NOT NULL,
    created_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE run (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    external_id TEXT UNIQUE,
    program TEXT NOT NULL,
    flow TEXT NOT NULL,
    status TEXT NOT NULL,
    wait_reason TEXT,
    due_ms INTEGER,
    input TEXT NOT NULL,
    seed INTEGER NOT NULL,
    result TEXT,
    error TEXT,
    cancel TEXT,
    lease_owner TEXT,
    lease_epoch INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
, invocation TEXT, key TEXT, priority INTEGER NOT NULL DEFAULT 0, started_by TEXT NOT NULL DEFAULT 'manual', origin TEXT, parent TEXT, root TEXT, depth INTEGER NOT NULL DEFAULT 0, parent_close TEXT, pass INTEGER NOT NULL DEFAULT 0, force INTEGER NOT NULL DEFAULT 0, ended_ms INTEGER, deadline_ms INTEGER, held INTEGER NOT NULL DEFAULT 0, pruned_ms INTEGER, slot TEXT, apart INTEGER NOT NULL DEFAULT 0, is_next INTEGER NOT NULL DEFAULT 0, limit_name TEXT, limit_runs INTEGER, rate_max INTEGER, rate_ms INTEGER, admitted_ms INTEGER, setback TEXT, again_ms INTEGER, bindings TEXT, first_input TEXT, crashes INTEGER NOT NULL DEFAULT 0, crash_mark INTEGER, quarantine TEXT, trace TEXT, unwinding INTEGER NOT NULL DEFAULT 0, version INTEGER, target TEXT, trace_id TEXT);
CREATE TABLE journal (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    path TEXT NOT NULL,
    what TEXT NOT NULL,
    digest TEXT NOT NULL,
    request TEXT,
    payload TEXT,
    blob TEXT,
    at_ms INTEGER NOT NULL
);
CREATE TABLE payload (
    hash TEXT PRIMARY KEY,
    text TEXT NOT NULL
, parts BLOB) WITHOUT ROWID;
CREATE TABLE kv (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    metadata TEXT,
    expires_ms INTEGER,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX kv_expires ON kv (expires_ms) WHERE expires_ms IS NOT NULL;
CREATE TABLE table_registry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    created_ms INTEGER NOT NULL
, partitioned INTEGER NOT NULL DEFAULT 0);
CREATE TABLE table_column (
    table_id INTEGER NOT NULL REFERENCES table_registry (id),
    idx INTEGER NOT NULL,
    name TEXT NOT NULL,
    -- Empty until the first cell that is not nil tells.
    type TEXT NOT NULL,
    inferred INTEGER NOT NULL,
    -- The position in the key, counted from 1; 0 outside of it.
    key INTEGER NOT NULL DEFAULT 0,
    indexed INTEGER NOT NULL DEFAULT 0, definition TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (table_id, idx),
    UNIQUE (table_id, name)
) WITHOUT ROWID;
CREATE TABLE resource (
    uri TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    filename TEXT,
    content_type TEXT,
    created_ms INTEGER NOT NULL
, kind TEXT NOT NULL DEFAULT 'blob', tier TEXT NOT NULL DEFAULT 'retained', expires_ms INTEGER, run TEXT, path TEXT, bucket TEXT, folder TEXT, search TEXT, gone TEXT, gone_ms INTEGER) WITHOUT ROWID;
CREATE INDEX resource_hash ON resource (hash);
CREATE INDEX run_due ON run (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;
CREATE INDEX run_created ON run (created_ms);
CREATE INDEX run_status ON run (status, created_ms);
CREATE INDEX run_flow ON run (flow, status, created_ms);
CREATE TABLE wait (
    id TEXT PRIMARY KEY,
    run INTEGER NOT NULL,
    path TEXT NOT NULL,
    key TEXT NOT NULL,
    token TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    deadline_ms INTEGER,
    details TEXT NOT NULL,
    digest TEXT NOT NULL DEFAULT '',
    payload TEXT,
    opened_ms INTEGER NOT NULL,
    ending TEXT,
    decided_by TEXT,
    decided_ms INTEGER,
    event TEXT,
    event_key TEXT,
    event_path TEXT,
    webhook TEXT
);
CREATE UNIQUE INDEX wait_place ON wait (run, path) WHERE state <> 'closed';
CREATE INDEX wait_run ON wait (run, path);
CREATE INDEX wait_key ON wait (key, state, opened_ms);
CREATE INDEX wait_state ON wait (state) WHERE state <> 'closed';
CREATE INDEX wait_answered ON wait (run) WHERE state = 'completed';
CREATE INDEX wait_deadline ON wait (deadline_ms) WHERE state = 'open';
CREATE INDEX wait_event ON wait (event, event_key) WHERE state = 'open' AND event IS NOT NULL;
CREATE INDEX wait_event_path ON wait (event, event_path) WHERE state = 'open' AND event_path IS NOT NULL;
CREATE INDEX wait_webhook ON wait (webhook) WHERE webhook IS NOT NULL;
CREATE INDEX run_queue ON run (slot, program, priority DESC, num) WHERE status = 'queued' AND slot IS NOT NULL;
CREATE INDEX run_slot_next ON run (slot, program) WHERE status = 'queued' AND is_next = 1 AND slot IS NOT NULL;
CREATE INDEX run_limit_next ON run (limit_name, priority DESC, num) WHERE status = 'queued' AND is_next = 1;
CREATE INDEX run_limit_due ON run (limit_name, due_ms) WHERE status = 'queued' AND due_ms IS NOT NULL;
CREATE INDEX run_slot_live ON run (slot, program) WHERE slot IS NOT NULL AND status <> 'queued' AND ended_ms IS NULL;
CREATE INDEX run_limit_live ON run (limit_name)
    WHERE limit_name IS NOT NULL AND status <> 'queued' AND ended_ms IS NULL;
CREATE INDEX run_rate ON run (limit_name, admitted_ms DESC) WHERE limit_name IS NOT NULL AND admitted_ms IS NOT NULL;
CREATE INDEX run_free ON run (priority DESC, num) WHERE status = 'running' AND lease_owner IS NULL;
CREATE INDEX run_lease ON run (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX run_setback ON run (again_ms) WHERE setback IS NOT NULL;
CREATE TABLE schedule (
    flow TEXT NOT NULL,
    id TEXT NOT NULL,
    timing TEXT NOT NULL,
    program TEXT NOT NULL,
    file TEXT NOT NULL,
    next_ms INTEGER,
    last_ms INTEGER,
    last_run TEXT,
    note TEXT,
    updated_ms INTEGER NOT NULL,
    PRIMARY KEY (flow, id)
) WITHOUT ROWID;
CREATE INDEX journal_blob ON journal (blob) WHERE blob IS NOT NULL;
CREATE INDEX run_program ON run (program);
CREATE TABLE piece (
    hash BLOB PRIMARY KEY,
    bytes BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE table_partition (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    table_id INTEGER NOT NULL REFERENCES table_registry (id),
    key TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    UNIQUE (table_id, key)
);
CREATE TABLE table_option (
    table_id INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    position INTEGER NOT NULL,
    -- As the cells of the column are kept.
    id TEXT NOT NULL,
    name TEXT,
    -- A JSON array.
    aliases TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (table_id, idx, position)
) WITHOUT ROWID;
CREATE TABLE table_cell_format (
    table_id INTEGER NOT NULL,
    row_id INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    format TEXT NOT NULL,
    PRIMARY KEY (table_id, row_id, idx)
) WITHOUT ROWID;
CREATE TABLE table_operation (
    op_id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    answer TEXT NOT NULL,
    made_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX resource_run ON resource (run) WHERE run IS NOT NULL;
CREATE INDEX resource_expires ON resource (expires_ms) WHERE expires_ms IS NOT NULL;
CREATE INDEX resource_created ON resource (created_ms);
CREATE TABLE changeset (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    -- The hash of the manifest of its source tree.
    base TEXT NOT NULL,
    source TEXT NOT NULL,
    revision INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
);
CREATE INDEX changeset_base ON changeset (base);
CREATE TABLE changeset_entry (
    changeset INTEGER NOT NULL REFERENCES changeset (num),
    path TEXT NOT NULL,
    -- In which it was written last.
    revision INTEGER NOT NULL,
    -- NULL where nothing is at the path any more.
    kind TEXT,
    hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    executable INTEGER NOT NULL,
    target TEXT,
    moved_from TEXT,
    PRIMARY KEY (changeset, path)
) WITHOUT ROWID;
CREATE INDEX changeset_entry_hash ON changeset_entry (hash);
CREATE TABLE search_doc (
    num INTEGER PRIMARY KEY,
    target TEXT NOT NULL,
    id TEXT NOT NULL,
    version TEXT NOT NULL,
    is_open INTEGER NOT NULL DEFAULT 0,
    title TEXT NOT NULL,
    tags TEXT NOT NULL,
    body TEXT NOT NULL,
    facts TEXT NOT NULL,
    hash TEXT NOT NULL,
    embedded INTEGER
);
CREATE UNIQUE INDEX search_doc_id ON search_doc (target, id);
CREATE INDEX search_doc_open ON search_doc (num) WHERE is_open = 1;
CREATE INDEX search_doc_bare ON search_doc (target, num) WHERE embedded IS NULL AND is_open = 0;
CREATE INDEX search_doc_embedded ON search_doc (embedded, target, num);
CREATE VIRTUAL TABLE search_resources USING fts5(title, tags, body, content = 'search_doc', content_rowid = 'num',
                         tokenize = 'unicode61 remove_diacritics 2');
CREATE TRIGGER search_doc_put_resources AFTER INSERT ON search_doc WHEN NEW.target = 'resources' BEGIN INSERT INTO search_resources (rowid, title, tags, body) VALUES (NEW.num, NEW.title, NEW.tags, NEW.body); END;
CREATE TRIGGER search_doc_gone_resources AFTER DELETE ON search_doc WHEN OLD.target = 'resources' BEGIN INSERT INTO search_resources (search_resources, rowid, title, tags, body) VALUES ('delete', OLD.num, OLD.title, OLD.tags, OLD.body); END;
CREATE VIRTUAL TABLE search_flows USING fts5(title, tags, body, content = 'search_doc', content_rowid = 'num',
                         tokenize = 'unicode61 remove_diacritics 2');
CREATE TRIGGER search_doc_put_flows AFTER INSERT ON search_doc WHEN NEW.target = 'flows' BEGIN INSERT INTO search_flows (rowid, title, tags, body) VALUES (NEW.num, NEW.title, NEW.tags, NEW.body); END;
CREATE TRIGGER search_doc_gone_flows AFTER DELETE ON search_doc WHEN OLD.target = 'flows' BEGIN INSERT INTO search_flows (search_flows, rowid, title, tags, body) VALUES ('delete', OLD.num, OLD.title, OLD.tags, OLD.body); END;
CREATE VIRTUAL TABLE search_runs USING fts5(title, tags, body, content = 'search_doc', content_rowid = 'num',
                         tokenize = 'unicode61 remove_diacritics 2');
CREATE TRIGGER search_doc_put_runs AFTER INSERT ON search_doc WHEN NEW.target = 'runs' BEGIN INSERT INTO search_runs (rowid, title, tags, body) VALUES (NEW.num, NEW.title, NEW.tags, NEW.body); END;
CREATE TRIGGER search_doc_gone_runs AFTER DELETE ON search_doc WHEN OLD.target = 'runs' BEGIN INSERT INTO search_runs (search_runs, rowid, title, tags, body) VALUES ('delete', OLD.num, OLD.title, OLD.tags, OLD.body); END;
CREATE VIRTUAL TABLE search_connections USING fts5(title, tags, body, content = 'search_doc', content_rowid = 'num',
                         tokenize = 'unicode61 remove_diacritics 2');
CREATE TRIGGER search_doc_put_connections AFTER INSERT ON search_doc WHEN NEW.target = 'connections' BEGIN INSERT INTO search_connections (rowid, title, tags, body) VALUES (NEW.num, NEW.title, NEW.tags, NEW.body); END;
CREATE TRIGGER search_doc_gone_connections AFTER DELETE ON search_doc WHEN OLD.target = 'connections' BEGIN INSERT INTO search_connections (search_connections, rowid, title, tags, body) VALUES ('delete', OLD.num, OLD.title, OLD.tags, OLD.body); END;
CREATE TABLE search_todo (uri TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TRIGGER search_resource_new AFTER INSERT ON resource BEGIN
    INSERT INTO search_todo SELECT NEW.uri WHERE NOT EXISTS (SELECT 1 FROM search_todo WHERE uri = NEW.uri);
END;
CREATE TRIGGER search_resource_changed AFTER UPDATE ON resource BEGIN
    INSERT INTO search_todo SELECT NEW.uri WHERE NOT EXISTS (SELECT 1 FROM search_todo WHERE uri = NEW.uri);
END;
CREATE TRIGGER search_resource_gone AFTER DELETE ON resource BEGIN
    DELETE FROM search_todo WHERE uri = OLD.uri;
    DELETE FROM search_doc WHERE target = 'resources' AND id = OLD.uri;
END;
CREATE TABLE search_mark (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
INSERT INTO search_mark VALUES ('model', '');
INSERT INTO search_mark VALUES ('runs', 0);
CREATE TRIGGER search_run_gone AFTER DELETE ON run BEGIN
    DELETE FROM search_doc WHERE target = 'runs' AND id = OLD.id;
    UPDATE search_mark SET value = OLD.num - 1
    WHERE name = 'runs' AND value >= OLD.num AND NOT EXISTS (SELECT 1 FROM run WHERE num > OLD.num);
END;
CREATE TABLE search_embedding (
    num INTEGER PRIMARY KEY,
    hash TEXT NOT NULL,
    model TEXT NOT NULL,
    UNIQUE (hash, model)
);
CREATE TABLE search_vector (
    num INTEGER PRIMARY KEY,
    embedding INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    vector BLOB NOT NULL
);
CREATE INDEX search_vector_embedding ON search_vector (embedding);
CREATE TABLE token (
    id TEXT PRIMARY KEY,
    digest BLOB NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    scopes TEXT NOT NULL,
    flows TEXT NOT NULL,
    labels TEXT NOT NULL,
    resources TEXT NOT NULL,
    job_types TEXT NOT NULL,
    roles TEXT NOT NULL,
    subject TEXT,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    used_ms INTEGER,
    revoked_ms INTEGER
, workspace TEXT) WITHOUT ROWID;
CREATE TABLE feed_span (
    pos INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,
    is_event INTEGER NOT NULL
);
CREATE TABLE job (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    batch TEXT,
    run INTEGER NOT NULL,
    path TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT NOT NULL,
    payload TEXT NOT NULL,
    metadata TEXT,
    priority INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    idempotency_key TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    deadline_ms INTEGER,
    due_ms INTEGER,
    token TEXT,
    lease_until_ms INTEGER,
    lease_ms INTEGER,
    worker TEXT,
    progress TEXT,
    result TEXT,
    error TEXT,
    cancel_ms INTEGER,
    last_call TEXT
);
CREATE INDEX job_queue ON job (type, priority DESC, num) WHERE status = 'queued';
CREATE INDEX job_due ON job (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX job_run ON job (run);
CREATE INDEX job_run_open ON job (run) WHERE ended_ms IS NULL;
CREATE INDEX job_batch ON job (batch, status) WHERE batch IS NOT NULL;
CREATE INDEX job_batch_open ON job (batch) WHERE batch IS NOT NULL AND ended_ms IS NULL;
CREATE INDEX job_status ON job (status, num);
CREATE TABLE receipt (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    runs TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX receipt_until ON receipt (until_ms);
CREATE INDEX run_cancel ON run (num) WHERE cancel IS NOT NULL AND unwinding = 0 AND ended_ms IS NULL;
CREATE VIRTUAL TABLE search_knowledge USING fts5(title, tags, body, content = 'search_doc', content_rowid = 'num',
                         tokenize = 'unicode61 remove_diacritics 2');
CREATE TRIGGER search_doc_put_knowledge AFTER INSERT ON search_doc WHEN NEW.target = 'knowledge' BEGIN INSERT INTO search_knowledge (rowid, title, tags, body) VALUES (NEW.num, NEW.title, NEW.tags, NEW.body); END;
CREATE TRIGGER search_doc_gone_knowledge AFTER DELETE ON search_doc WHEN OLD.target = 'knowledge' BEGIN INSERT INTO search_knowledge (search_knowledge, rowid, title, tags, body) VALUES ('delete', OLD.num, OLD.title, OLD.tags, OLD.body); END;
CREATE TABLE flow_registered (
    workspace TEXT NOT NULL,
    slug TEXT NOT NULL,
    head INTEGER NOT NULL,
    live INTEGER,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    archived_ms INTEGER,
    PRIMARY KEY (workspace, slug)
) WITHOUT ROWID;
CREATE TABLE flow_version (
    workspace TEXT NOT NULL,
    slug TEXT NOT NULL,
    number INTEGER NOT NULL,
    revision TEXT NOT NULL,
    content TEXT NOT NULL,
    parent INTEGER,
    author TEXT NOT NULL,
    message TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (workspace, slug, number)
) WITHOUT ROWID;
CREATE TABLE flow_release (
    workspace TEXT NOT NULL,
    slug TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    before INTEGER,
    author TEXT NOT NULL,
    note TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (workspace, slug, seq)
) WITHOUT ROWID;
CREATE TABLE flow_checkout (
    workspace TEXT NOT NULL,
    slug TEXT NOT NULL,
    place TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (workspace, slug, place)
) WITHOUT ROWID;
CREATE TABLE flow_object (
    num INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    base INTEGER,
    depth INTEGER NOT NULL,
    bytes BLOB NOT NULL
);
CREATE TABLE flow_trigger (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    workspace TEXT NOT NULL,
    slug TEXT NOT NULL,
    name TEXT,
    description TEXT,
    event_key TEXT NOT NULL,
    schedule TEXT,
    start_ms INTEGER,
    end_ms INTEGER,
    connection TEXT,
    trigger_config TEXT,
    inputs_fields TEXT,
    version INTEGER NOT NULL,
    revision TEXT NOT NULL,
    is_active INTEGER NOT NULL,
    next_ms INTEGER,
    last_ms INTEGER,
    position INTEGER,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX flow_trigger_flow ON flow_trigger (workspace, slug, kind, created_ms, id);
CREATE INDEX flow_trigger_next ON flow_trigger (next_ms) WHERE next_ms IS NOT NULL;
CREATE INDEX flow_trigger_connection ON flow_trigger (connection) WHERE connection IS NOT NULL;
CREATE TABLE event_delivery (
    id TEXT PRIMARY KEY,
    trigger_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    workspace TEXT NOT NULL,
    slug TEXT NOT NULL,
    event_id TEXT NOT NULL,
    event_key TEXT NOT NULL,
    code INTEGER NOT NULL,
    message TEXT NOT NULL,
    inputs TEXT,
    run TEXT,
    error TEXT,
    context TEXT NOT NULL,
    depth INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    retry_ms INTEGER,
    created_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX event_delivery_flow ON event_delivery (workspace, slug, created_ms, id);
CREATE INDEX event_delivery_trigger ON event_delivery (trigger_id, created_ms, id);
CREATE INDEX event_delivery_run ON event_delivery (run) WHERE run IS NOT NULL;
CREATE INDEX event_delivery_retry ON event_delivery (retry_ms) WHERE retry_ms IS NOT NULL;
CREATE INDEX run_trace ON run (trace_id, num);
CREATE TABLE installation (
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    author TEXT NOT NULL,
    slug TEXT NOT NULL,
    version INTEGER NOT NULL,
    content TEXT NOT NULL,
    auto_upgrade INTEGER NOT NULL,
    readable INTEGER NOT NULL,
    configured INTEGER NOT NULL,
    bound TEXT NOT NULL,
    setup TEXT NOT NULL,
    accepted TEXT NOT NULL,
    max_tokens INTEGER,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    changes INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) WITHOUT ROWID;
CREATE TABLE installation_tokens (
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    run TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (workspace, name, run)
) WITHOUT ROWID;
CREATE TABLE inbox (
    num INTEGER PRIMARY KEY,
    workspace TEXT NOT NULL DEFAULT 'default',
    event TEXT NOT NULL DEFAULT '',
    key TEXT NOT NULL,
    dedup TEXT,
    payload TEXT NOT NULL,
    by TEXT,
    roles TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL,
    wait TEXT,
    refusal TEXT,
    at_ms INTEGER NOT NULL,
    unattended INTEGER NOT NULL DEFAULT 0,
    UNIQUE (workspace, event, key, dedup)
);
CREATE INDEX inbox_kept ON inbox (event, key) WHERE state = 'kept';
CREATE INDEX inbox_wait ON inbox (wait) WHERE state = 'refused';
