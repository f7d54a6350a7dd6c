-- Schedules: jobs that come again at times of their own, and what became of each time. Programs of
-- schema 2 never look at these tables. A schedule keeps its environment in its own row: those
-- programs remove the environments that no job has.

CREATE TABLE schedules (
    name       TEXT PRIMARY KEY,
    cron       TEXT,                       -- one of cron, every_ms and at
    zone       TEXT,                       -- of cron
    every_ms   INTEGER,
    at         INTEGER,
    start_at   INTEGER,
    end_at     INTEGER,
    anchor     INTEGER NOT NULL,           -- where an interval counts from
    jitter_ms  INTEGER NOT NULL DEFAULT 0,
    missed     TEXT    NOT NULL,           -- once, skip, all
    overlap    TEXT    NOT NULL,           -- skip, queue, replace
    paused     INTEGER NOT NULL DEFAULT 0,
    fired_by   TEXT    NOT NULL,           -- svcq, or the system's scheduler it was handed to
    task       TEXT    NOT NULL,           -- empty for a command
    command    TEXT,
    args       TEXT,
    options    TEXT    NOT NULL,           -- the caller's words, JSON
    owner      TEXT,
    created_at INTEGER NOT NULL,
    revision   INTEGER NOT NULL DEFAULT 0, -- counts the changes of this row: who reads, then writes, compares
    set_at     INTEGER NOT NULL,           -- when next_at was worked out
    next_at    INTEGER,                    -- the next time it fires for; none when it is over
    due_at     INTEGER,                    -- when our clock fires it: next_at and its share of jitter
    last_at    INTEGER,                    -- the last time it had a job for
    last_job   INTEGER,
    firings    INTEGER NOT NULL DEFAULT 0, -- the number of the last row in firings
    env        TEXT                        -- JSON; last, so that no listing has to read past it
) STRICT;
CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at IS NOT NULL;

-- What became of the times of a schedule.
CREATE TABLE firings (
    schedule TEXT    NOT NULL,
    number   INTEGER NOT NULL,
    nominal  INTEGER,                      -- the time it was for; none where a person asked for it
    at       INTEGER NOT NULL,             -- when that was
    how      TEXT    NOT NULL,             -- fired, caught_up, missed, skipped, failed, asked
    job      INTEGER,
    missed   INTEGER NOT NULL DEFAULT 0,   -- how many times had passed by then
    ran      INTEGER NOT NULL DEFAULT 0,   -- how many of them were made up for
    note     TEXT,
    PRIMARY KEY (schedule, number)
) STRICT, WITHOUT ROWID;
-- No time has two jobs, however many clocks there are.
CREATE UNIQUE INDEX firings_once ON firings (schedule, nominal) WHERE nominal IS NOT NULL;
CREATE INDEX firings_at ON firings (at);
CREATE INDEX firings_job ON firings (job) WHERE job IS NOT NULL;

-- What tasks say of themselves, as the workers that imported them have told: for jobs queued by a
-- task's name alone, and for those that end while nobody who knows the task is there. Programs of
-- schema 2 never look at it.

CREATE TABLE tasks (
    name    TEXT PRIMARY KEY,
    options TEXT NOT NULL,    -- the words of its declaration, JSON
    policy  TEXT NOT NULL     -- those that hold for a run, as specs.options has them
) STRICT, WITHOUT ROWID;

-- Requests to add jobs that may come twice, since the answer was lost: by the caller's own key.
CREATE TABLE requests (
    caller TEXT    NOT NULL,
    key    TEXT    NOT NULL,
    digest TEXT    NOT NULL,                -- of what was asked for
    added  TEXT    NOT NULL,                -- JSON: the id of each job, and whether it was new
    at     INTEGER NOT NULL,
    PRIMARY KEY (caller, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX requests_at ON requests (at);

-- The first job of a keyed lane, beside its rank: lanes whose first jobs have the same rank go by it.
-- Programs of schema 2 leave it as it was, and find their way by the new index as by the old.
ALTER TABLE lanes ADD COLUMN head_job INTEGER;
UPDATE lanes SET head_job = (
    SELECT id FROM jobs WHERE lane = lanes.id AND rank = lanes.head ORDER BY id LIMIT 1)
WHERE head IS NOT NULL;
DROP INDEX lanes_open;
CREATE INDEX lanes_open ON lanes (queue, kind, host, condition, head, head_job)
WHERE head IS NOT NULL;
