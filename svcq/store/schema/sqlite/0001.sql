-- What changes while a job lives is a narrow row (jobs); what was said once stands beside it (specs).
-- A state is also a column that is set in that state alone: rank (pending), due_at (scheduled,
-- retrying), finished_at (completed, dead, cancelled). The partial indexes test those columns,
-- which costs less than testing the state.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

CREATE TABLE queues (
    name        TEXT PRIMARY KEY,
    paused      INTEGER NOT NULL DEFAULT 0,
    weight      INTEGER NOT NULL DEFAULT 1,
    concurrency INTEGER,
    rate_count  INTEGER,                      -- at most this many starts
    rate_ms     INTEGER,                      -- in this time
    rate_next   INTEGER NOT NULL DEFAULT 0,   -- the token row (GCRA): when the next start is due, in microseconds
    aging_ms    INTEGER NOT NULL,
    dead_letter TEXT,
    options     TEXT NOT NULL DEFAULT '{}'    -- job policies and retention, JSON
) STRICT, WITHOUT ROWID;

-- Jobs that share a fate for claiming. A lane with a key has head (the best rank in it, while
-- its key has room) and live (its unfinished jobs); a lane without is never updated.
CREATE TABLE lanes (
    id        INTEGER PRIMARY KEY,
    key       TEXT NOT NULL,
    queue     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    host      TEXT NOT NULL,
    condition TEXT NOT NULL,
    head      INTEGER,
    live      INTEGER NOT NULL DEFAULT 0,
    UNIQUE (key, queue, kind, host, condition)
) STRICT;
CREATE INDEX lanes_open ON lanes (queue, kind, host, condition, head) WHERE head IS NOT NULL;

-- Concurrency keys, shared by all queues.
CREATE TABLE keys (
    key         TEXT PRIMARY KEY,
    concurrency INTEGER NOT NULL,
    running     INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
    id               INTEGER PRIMARY KEY,
    lane             INTEGER NOT NULL,
    state            TEXT    NOT NULL,
    priority         INTEGER NOT NULL DEFAULT 0,
    ties             INTEGER NOT NULL DEFAULT 0,  -- what must be seen to when it ends, as bits
    waits_on         INTEGER NOT NULL DEFAULT 0,  -- parents it still waits for
    run              INTEGER NOT NULL DEFAULT 0,
    failures         INTEGER NOT NULL DEFAULT 0,
    losses           INTEGER NOT NULL DEFAULT 0,
    interruptions    INTEGER NOT NULL DEFAULT 0,
    snoozes          INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    ready_at         INTEGER,                     -- the first time it could run
    run_at           INTEGER,                     -- not before
    rank             INTEGER,
    due_at           INTEGER,
    expires_at       INTEGER,                     -- cleared by the first claim
    started_at       INTEGER,
    finished_at      INTEGER,
    worker           INTEGER,                     -- who holds it, or held it last
    reason           TEXT,
    progress         REAL,
    progress_note    TEXT
) STRICT;
CREATE INDEX jobs_pending  ON jobs (lane, rank) WHERE rank IS NOT NULL;
CREATE INDEX jobs_due      ON jobs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX jobs_finished ON jobs (state, finished_at) WHERE finished_at IS NOT NULL;
-- The states without a column of their own: held, blocked, processing (by worker).
CREATE INDEX jobs_standing ON jobs (state, worker)
    WHERE rank IS NULL AND due_at IS NULL AND finished_at IS NULL;

CREATE TABLE specs (
    id         INTEGER PRIMARY KEY,
    queue      TEXT    NOT NULL,
    task       TEXT    NOT NULL,    -- empty for a command
    command    TEXT,
    args       TEXT,
    options    TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    name       TEXT,
    tags       TEXT,
    owner      TEXT,
    cwd        TEXT,
    env        INTEGER,
    host       TEXT    NOT NULL DEFAULT '',
    condition  TEXT    NOT NULL DEFAULT '',
    key        TEXT    NOT NULL DEFAULT '',
    unique_key TEXT,
    orphaned   TEXT,                -- what to do when a parent fails: cancel (the default) or wait
    copy_of    INTEGER
) STRICT;
CREATE INDEX specs_name ON specs (name) WHERE name IS NOT NULL;
CREATE INDEX specs_env ON specs (env) WHERE env IS NOT NULL;

CREATE TABLE tags (
    tag TEXT NOT NULL,
    job INTEGER NOT NULL,
    PRIMARY KEY (tag, job)
) STRICT, WITHOUT ROWID;

-- Unique keys (scope: the queue) and names (scope: empty) of jobs.
CREATE TABLE unique_keys (
    scope TEXT NOT NULL,
    key   TEXT NOT NULL,
    job   INTEGER NOT NULL,
    until INTEGER,                  -- taken until then even when the job has ended
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX unique_keys_until ON unique_keys (until) WHERE until IS NOT NULL;

CREATE TABLE parents (
    parent INTEGER NOT NULL,
    child  INTEGER NOT NULL,
    needs  TEXT    NOT NULL,        -- success, or end
    met    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX parents_child ON parents (child);

CREATE TABLE runs (
    job        INTEGER NOT NULL,
    run        INTEGER NOT NULL,
    worker     INTEGER,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL,
    how        TEXT    NOT NULL,
    exit_code  INTEGER,
    error      TEXT,
    tail       TEXT,
    result     TEXT,
    PRIMARY KEY (job, run)
) STRICT, WITHOUT ROWID;

CREATE TABLE environments (
    id     INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    vars   TEXT NOT NULL
) STRICT;

CREATE TABLE workers (
    id          INTEGER PRIMARY KEY,
    host        TEXT    NOT NULL,
    pid         INTEGER NOT NULL,
    boot        TEXT,
    born        TEXT,               -- the process's own start time, against reused pids
    program     INTEGER NOT NULL,   -- the schema version its program was made for
    version     TEXT    NOT NULL,
    slots       INTEGER NOT NULL,
    state       TEXT    NOT NULL,   -- running, draining, stopping, ended
    started_at  INTEGER NOT NULL,
    beat        INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER,            -- of workers written by hand
    ended_at    INTEGER
) STRICT;

CREATE TABLE changes (
    seq  INTEGER PRIMARY KEY,
    job  INTEGER NOT NULL,
    kind TEXT    NOT NULL,
    at   INTEGER NOT NULL
) STRICT;

CREATE TABLE counts (
    queue TEXT NOT NULL,
    state TEXT NOT NULL,
    task  TEXT NOT NULL,
    n     INTEGER NOT NULL,
    PRIMARY KEY (queue, state, task)
) STRICT, WITHOUT ROWID;

-- What happened in each minute: kind is added, started, or how a run ended; bucket is the
-- logarithm of the time it waited (started) or ran, for percentiles.
CREATE TABLE minutes (
    minute   INTEGER NOT NULL,
    queue    TEXT    NOT NULL,
    kind     TEXT    NOT NULL,
    bucket   INTEGER NOT NULL,
    n        INTEGER NOT NULL,
    total_ms INTEGER NOT NULL,
    PRIMARY KEY (minute, queue, kind, bucket)
) STRICT, WITHOUT ROWID;

INSERT INTO meta (key, value) VALUES ('last_job', 0);
