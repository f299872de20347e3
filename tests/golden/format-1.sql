BEGIN TRANSACTION;
CREATE TABLE inbox (
    num INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    dedup TEXT,
    payload TEXT NOT NULL,
    consumed INTEGER NOT NULL DEFAULT 0,
    at_ms INTEGER NOT NULL,
    UNIQUE (key, dedup)
);
INSERT INTO "inbox" VALUES(1,'early',NULL,'{:action :approve}',0,1795322091122);
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
INSERT INTO "journal" VALUES(4294967297,'result','put','kv','8705acf9d72a9b141ce5154be7429332','{:key "x" :operation :set :value {:n 1}}','{:success true :key "x" :created? true}',NULL,1795322091088);
INSERT INTO "journal" VALUES(4294967298,'result','long','function','d508037b52109c44a2d5372392c0ca1e','{:code (fn [_] {:text (apply str (repeat 8200 "x"))}) :input {}}',NULL,'6df5da43ac74135f1967e20e9d090f579e72a26a4b7934ec919bbf555e07df61',1795322091091);
INSERT INTO "journal" VALUES(4294967299,'error','rows','table','3ecd747cfe851a11530284b50514700d','{:on-error :skip :op :query :table "none"}','#flowstone/error {:class "clojure.lang.ExceptionInfo" :code "E0620" :message "there is no table `none`" :data {:kind :not-found :step "rows"} :cause nil :hints ["there are no tables yet; `:persist {:type :table ...}` or `:op :create` makes one"]}',NULL,1795322091092);
INSERT INTO "journal" VALUES(4294967300,'note','flow/now','flow/now','',NULL,'1795322091092',NULL,1795322091092);
INSERT INTO "journal" VALUES(4294967301,'timer','nap','sleep','c0f45980eaf9ddeffcf68c645922d404','{:millis 5}','{:kind :sleep :attempt 1 :due 1795322091097 :value {:slept-seconds 0.005}}',NULL,1795322091092);
INSERT INTO "journal" VALUES(4294967302,'result','nap','sleep','c0f45980eaf9ddeffcf68c645922d404',NULL,'{:slept-seconds 0.005}',NULL,1795322091099);
INSERT INTO "journal" VALUES(4294967303,'log','flow/log','flow/log','',NULL,'{:level "info" :message "before the wait" :data nil}',NULL,1795322091099);
INSERT INTO "journal" VALUES(4294967304,'timer','ok','wait','cec1123f6e44bc89c6f6a185adc48212','{:key "door"}','{:kind :wait :attempt 1}',NULL,1795322091099);
INSERT INTO "journal" VALUES(4294967305,'result','ok','wait','cec1123f6e44bc89c6f6a185adc48212',NULL,'{:action :go}',NULL,1795322091167);
INSERT INTO "journal" VALUES(8589934593,'result','put','kv','8705acf9d72a9b141ce5154be7429332','{:key "x" :operation :set :value {:n 1}}','{:success true :key "x" :created? false}',NULL,1795322091194);
INSERT INTO "journal" VALUES(8589934594,'result','long','function','d508037b52109c44a2d5372392c0ca1e','{:code (fn [_] {:text (apply str (repeat 8200 "x"))}) :input {}}',NULL,'6df5da43ac74135f1967e20e9d090f579e72a26a4b7934ec919bbf555e07df61',1795322091195);
INSERT INTO "journal" VALUES(8589934595,'error','rows','table','3ecd747cfe851a11530284b50514700d','{:on-error :skip :op :query :table "none"}','#flowstone/error {:class "clojure.lang.ExceptionInfo" :code "E0620" :message "there is no table `none`" :data {:kind :not-found :step "rows"} :cause nil :hints ["there are no tables yet; `:persist {:type :table ...}` or `:op :create` makes one"]}',NULL,1795322091196);
INSERT INTO "journal" VALUES(8589934596,'note','flow/now','flow/now','',NULL,'1795322091196',NULL,1795322091196);
INSERT INTO "journal" VALUES(8589934597,'timer','nap','sleep','c0f45980eaf9ddeffcf68c645922d404','{:millis 5}','{:kind :sleep :attempt 1 :due 1795322091201 :value {:slept-seconds 0.005}}',NULL,1795322091196);
INSERT INTO "journal" VALUES(8589934598,'result','nap','sleep','c0f45980eaf9ddeffcf68c645922d404',NULL,'{:slept-seconds 0.005}',NULL,1795322091202);
INSERT INTO "journal" VALUES(8589934599,'log','flow/log','flow/log','',NULL,'{:level "info" :message "before the wait" :data nil}',NULL,1795322091202);
INSERT INTO "journal" VALUES(8589934600,'timer','ok','wait','cec1123f6e44bc89c6f6a185adc48212','{:key "door"}','{:kind :wait :attempt 1}',NULL,1795322091202);
CREATE TABLE kv (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    metadata TEXT,
    expires_ms INTEGER,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "kv" VALUES('x','{:n 1}',NULL,NULL,1795322091088,1795322091194);
CREATE TABLE payload (
    hash TEXT PRIMARY KEY,
    text TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "payload" VALUES('6df5da43ac74135f1967e20e9d090f579e72a26a4b7934ec919bbf555e07df61','{:text "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}');
CREATE TABLE program (
    hash TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    engine_abi INTEGER NOT NULL,
    created_ms INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "program" VALUES('8425c1475e75e138274741efb821c166a86c3343a5f8f6b35d67e5f5bfa6dac1','{:files {"" "{:slug :first-format\n :concurrency {:type :singleton :on-new-version :coexist}\n :flow ''(let [a (flow/step :kv :put {:operation :set :key \"x\" :value {:n 1}})\n              b (flow/step :function :long {:input {} :code ''(fn [_] {:text (apply str (repeat 8200 \"x\"))})})\n              t (flow/step :table :rows {:op :query :table \"none\" :on-error :skip})\n              n (flow/now-ms)\n              s (flow/step :sleep :nap {:millis 5})\n              _ (flow/log :info \"before the wait\")\n              ok (flow/step :wait :ok {:key \"door\"})]\n          {:length (count (:text b)) :ok ok})}\n"} :name "f.edn" :stem "f"}',1,1795322091082);
CREATE TABLE resource (
    uri TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    filename TEXT,
    content_type TEXT,
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
);
INSERT INTO "run" VALUES(1,'06h0328p98gjk1zc',NULL,'8425c1475e75e138274741efb821c166a86c3343a5f8f6b35d67e5f5bfa6dac1','first-format','completed',NULL,NULL,'{}',2287790957226250379,'{:length 8200 :ok {:action :go}}',NULL,NULL,NULL,2,1795322091082,1795322091167);
INSERT INTO "run" VALUES(2,'06h0328ppak336h6',NULL,'8425c1475e75e138274741efb821c166a86c3343a5f8f6b35d67e5f5bfa6dac1','first-format','waiting','`ok` waits for an answer',1795408491202,'{}',8683474584595711292,NULL,NULL,NULL,NULL,1,1795322091186,1795322091202);
CREATE TABLE table_column (
    table_id INTEGER NOT NULL REFERENCES table_registry (id),
    idx INTEGER NOT NULL,
    name TEXT NOT NULL,
    -- Empty until the first cell that is not nil tells.
    type TEXT NOT NULL,
    inferred INTEGER NOT NULL,
    -- The position in the key, counted from 1; 0 outside of it.
    key INTEGER NOT NULL DEFAULT 0,
    indexed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (table_id, idx),
    UNIQUE (table_id, name)
) WITHOUT ROWID;
CREATE TABLE table_registry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    created_ms INTEGER NOT NULL
);
CREATE TABLE wait (
    id TEXT PRIMARY KEY,
    run INTEGER NOT NULL,
    path TEXT NOT NULL,
    key TEXT NOT NULL,
    token TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    deadline_ms INTEGER,
    details TEXT NOT NULL,
    payload TEXT,
    opened_ms INTEGER NOT NULL,
    UNIQUE (run, path)
);
INSERT INTO "wait" VALUES('w06h0328pbcxcv48d',1,'ok','door','a7d046f24a725202158fa562b8abc850','closed',1795408491099,'{:step "ok" :title "ok" :on-timeout :fail :default-value nil :validation nil :show {}}','{:action :go}',1795322091099);
INSERT INTO "wait" VALUES('w06h0328pr865s3n2',2,'ok','door','9567932a307cacc063d50c13547deade','open',1795408491202,'{:step "ok" :title "ok" :on-timeout :fail :default-value nil :validation nil :show {}}',NULL,1795322091202);
CREATE INDEX run_status ON run (status);
CREATE INDEX wait_key ON wait (key);
CREATE INDEX wait_state ON wait (state) WHERE state <> 'closed';
CREATE INDEX kv_expires ON kv (expires_ms) WHERE expires_ms IS NOT NULL;
CREATE INDEX resource_hash ON resource (hash);
DELETE FROM "sqlite_sequence";
COMMIT;