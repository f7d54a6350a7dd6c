-- Every statement of the store. See engine.py for how this file is read.
-- Lists of ids arrive as one JSON array, so that a statement has one text whatever their number.
-- What is true or false is 1 or 0, since SQLite has no other; what a statement changes carries the
-- name of its table where ON CONFLICT reads it, since PostgreSQL would not know which is meant.

-- fragment: in_ids [sqlite]
-- Being one of the numbers in a list.
IN (SELECT value FROM json_each(:ids))

-- fragment: in_ids [postgres]
-- Being one of the numbers in a list. An array, since a plan for a list of unknown length reads the
-- whole table where that is small, and is kept when it has grown.
= ANY (translate(:ids, '[]', '{}')::bigint[])

-- fragment: states [sqlite]
-- The words in a list.
SELECT value FROM json_each(:states)

-- fragment: states [postgres]
-- The words in a list.
SELECT value FROM json_array_elements_text(:states::json)

-- fragment: names [sqlite]
-- The words in a list.
SELECT value FROM json_each(:names)

-- fragment: names [postgres]
-- The words in a list.
SELECT value FROM json_array_elements_text(:names::json)

-- fragment: lock_jobs [sqlite]
-- Whoever writes is alone.

-- fragment: lock_jobs [postgres]
-- What is read to decide on a change stays as it is until that is made.
FOR UPDATE OF jobs

-- fragment: lock_free_jobs [sqlite]
-- Whoever writes is alone.

-- fragment: lock_free_jobs [postgres]
-- What another claim is at, or a person, is not waited for.
FOR UPDATE OF jobs SKIP LOCKED

-- fragment: when [sqlite]
-- The condition of a whole queue.
json_extract(options, '$.when')

-- fragment: when [postgres]
-- The condition of a whole queue.
(options::json ->> 'when')

---------------------------------------------------------------------------------------- enqueue

-- name: take_ids [sqlite]
-- Ids come from a counter of ours: never reused, known before the insert, one write for any number.
UPDATE meta SET value = value + :n WHERE key = 'last_job' RETURNING value;

-- name: take_ids [postgres]
-- As there: the last of so many numbers in a row. A function of the schema, since a sequence gives
-- one at a time, and two that add jobs at once must not get each other's.
SELECT take_ids(:n);

-- name: next_in_lane [sqlite]
-- What one plain job must know, in one look: its id, and its lane if that is there. The write lock
-- is held, so nobody takes the id in between; an UPDATE that returns as much costs twice as much.
SELECT meta.value + 1, lanes.id, queues.aging_ms, queues.options
FROM meta CROSS JOIN lanes CROSS JOIN queues
WHERE meta.key = 'last_job' AND queues.name = :queue
  AND lanes.key = '' AND lanes.queue = :queue AND lanes.kind = :kind
  AND lanes.host = :host AND lanes.condition = :condition;

-- name: keep_id [sqlite]
-- The id of next_in_lane is used up.
UPDATE meta SET value = :id WHERE key = 'last_job';

-- name: next_in_lane [postgres]
-- As there; an id that is then not used is a gap.
SELECT take_ids(1), lanes.id, queues.aging_ms, queues.options
FROM lanes JOIN queues ON queues.name = lanes.queue
WHERE lanes.key = '' AND lanes.queue = :queue AND lanes.kind = :kind
  AND lanes.host = :host AND lanes.condition = :condition;

-- name: add_one_call [postgres]
-- All that add_plain writes for a usual call, in one message, which is a transaction of its own: no
-- row where its lane is not there. The rank is that of rank_of.
WITH new AS MATERIALIZED (
    SELECT take_ids(1) AS id, lanes.id AS lane, queues.aging_ms, queues.options,
           coalesce(:now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now
    FROM lanes JOIN queues ON queues.name = lanes.queue
    WHERE lanes.key = '' AND lanes.queue = :queue AND lanes.kind = 'task'
      AND lanes.host = :host AND lanes.condition = :condition
), job AS (
    INSERT INTO jobs (id, lane, state, priority, ready_at, rank)
    SELECT id, lane, 'pending', :priority, now, now - :priority * aging_ms FROM new
), spec AS (
    INSERT INTO specs (id, queue, task, args, options, created_at, owner)
    SELECT id, :queue, :task, :args, :policy, now, :owner FROM new
), change AS (
    INSERT INTO changes (job, kind, at) SELECT id, 'pending', now FROM new
), count AS (
    INSERT INTO counts (slot, queue, state, task, n)
    SELECT slot(), :queue, 'pending', :task, 1 FROM new
    ON CONFLICT (queue, state, task, slot) DO UPDATE SET n = counts.n + 1
), minute AS (
    INSERT INTO minutes (slot, minute, queue, kind, bucket, n, total_ms)
    SELECT slot(), now / 60000, :queue, 'added', 0, 1, 0 FROM new
    ON CONFLICT (minute, queue, kind, bucket, slot) DO UPDATE SET n = minutes.n + 1
)
SELECT id, now, options FROM new;

-- name: keep_id [postgres]
-- It is used up already.

-- name: find_lane
-- The lane of a new job, with what its rank depends on and what its queue says of its jobs.
SELECT lanes.id, queues.aging_ms, queues.options
FROM lanes JOIN queues ON queues.name = lanes.queue
WHERE lanes.key = :key AND lanes.queue = :queue AND lanes.kind = :kind
  AND lanes.host = :host AND lanes.condition = :condition;

-- name: make_queue
-- A queue exists from its first use on.
INSERT INTO queues (name, aging_ms) VALUES (:name, :aging_ms) ON CONFLICT DO NOTHING;

-- name: make_lane
-- A keyed lane is found through the plain one of the same queue, kind, host and condition.
INSERT INTO lanes (key, queue, kind, host, condition)
VALUES (:key, :queue, :kind, :host, :condition) ON CONFLICT DO NOTHING;

-- name: add_jobs
-- The part of a job that changes while it lives.
INSERT INTO jobs (id, lane, state, priority, ties, waits_on, ready_at, run_at, rank, due_at, expires_at)
VALUES (:id, :lane, :state, :priority, :ties, :waits_on, :ready_at, :run_at, :rank, :due_at, :expires_at);

-- name: add_specs
-- The part of a job that was said once.
INSERT INTO specs (id, queue, task, command, args, options, created_at, name, tags, owner, cwd, env,
                   host, condition, key, unique_key, orphaned, copy_of)
VALUES (:id, :queue, :task, :command, :args, :options, :created_at, :name, :tags, :owner, :cwd, :env,
        :host, :condition, :key, :unique_key, :orphaned, :copy_of);

-- name: add_call
-- As add_jobs, for calls that may run at once and have nothing beside: Python takes as long to hand
-- over a handful of NULLs as SQLite to write the row.
INSERT INTO jobs (id, lane, state, priority, ready_at, rank)
VALUES (:id, :lane, 'pending', :priority, :ready_at, :rank);

-- name: add_call_spec
-- As add_specs, for the same calls.
INSERT INTO specs (id, queue, task, args, options, created_at, owner)
VALUES (:id, :queue, :task, :args, :options, :created_at, :owner);

-- name: add_tags
-- Beside the list in the spec, so that a tag finds its jobs.
INSERT INTO tags (tag, job) VALUES (:tag, :job) ON CONFLICT DO NOTHING;

-- name: drop_tags
-- An edit replaces them all.
DELETE FROM tags WHERE tag = :tag AND job = :job;

-- name: find_environment [sqlite]
-- An environment is stored once, however many jobs have it.
SELECT id FROM environments WHERE digest = :digest;

-- name: find_environment [postgres]
-- As there. A clean-up may not take it away between this look and the job's commit.
SELECT id FROM environments WHERE digest = :digest FOR KEY SHARE;

-- name: add_environment
-- The digest is of the text, so equal environments meet; someone may have been faster.
INSERT INTO environments (digest, vars) VALUES (:digest, :vars)
ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest RETURNING id;

-- name: environment
-- What a command runs with.
SELECT vars FROM environments WHERE id = :id;

------------------------------------------------------------------------------------ unique keys

-- name: unique_holder
-- A key is taken while its job is unfinished and, with a window, until that has passed.
SELECT unique_keys.job, jobs.state
FROM unique_keys LEFT JOIN jobs ON jobs.id = unique_keys.job
WHERE scope = :scope AND key = :key
  AND ((jobs.id IS NOT NULL AND jobs.finished_at IS NULL) OR until > :now);

-- name: take_unique
-- Overwrites a row whose job has ended and whose window has passed; the caller has looked.
INSERT INTO unique_keys (scope, key, job, until) VALUES (:scope, :key, :job, :until)
ON CONFLICT (scope, key) DO UPDATE SET job = excluded.job, until = excluded.until;

-- name: free_unique
-- At the end of its job, unless a window still holds it.
DELETE FROM unique_keys
WHERE scope = :scope AND key = :key AND job = :job AND (until IS NULL OR until <= :now);

-- name: free_stale_windows
-- Windows that have passed, of jobs that have ended: nobody else would remove them.
DELETE FROM unique_keys
WHERE until <= :now
  AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = unique_keys.job AND finished_at IS NULL);

----------------------------------------------------------------------------------- dependencies

-- name: states_of
-- What a removal needs to know of what it removes, and whoever looks for output of nobody's.
SELECT id, state FROM jobs WHERE id {in_ids};

-- name: lock_parents
-- What a new child needs to know of its parents: one that ends at this moment has ended, or will
-- find its child.
SELECT jobs.id, jobs.state FROM jobs WHERE jobs.id {in_ids} ORDER BY jobs.id {lock_jobs};

-- name: add_parents
-- One row for each parent a job comes after.
INSERT INTO parents (parent, child, needs, met) VALUES (:parent, :child, :needs, :met)
ON CONFLICT (parent, child) DO UPDATE SET needs = excluded.needs, met = excluded.met;

-- name: drop_parents
-- An edit replaces them all.
DELETE FROM parents WHERE child = :child;

-- name: mark_parents
-- A parent knows that someone waits, so that the end of other jobs costs nothing.
UPDATE jobs SET ties = ties | :tie WHERE id {in_ids};

-- name: children
-- Who is waiting for this job, or was cancelled because of it.
SELECT parents.child, parents.needs, parents.met, jobs.state, jobs.reason, specs.orphaned
FROM parents
JOIN jobs ON jobs.id = parents.child
JOIN specs ON specs.id = parents.child
WHERE parents.parent = :parent
ORDER BY parents.child;

-- name: set_met
-- Whether this parent no longer stands in the child's way.
UPDATE parents SET met = :met WHERE parent = :parent AND child = :child;

-- name: count_unmet
-- Counted anew at each change, so that it cannot drift.
UPDATE jobs SET waits_on = (SELECT count(*) FROM parents WHERE child = jobs.id AND met = 0)
WHERE id = :id RETURNING waits_on;

-- name: ancestors_among
-- A cycle: is any of the given jobs already a descendant of this one?
WITH RECURSIVE descendants (id) AS (
    SELECT :id
    UNION
    SELECT parents.child FROM parents JOIN descendants ON parents.parent = descendants.id
)
SELECT id FROM descendants WHERE id {in_ids} LIMIT 1;

----------------------------------------------------------------------------------------- claim

-- name: candidates
-- Plain lanes of open queues with the best rank in each and in its keyed lanes: one seek each,
-- so that what is paused, saturated, elsewhere or conditional costs nothing however long it is.
SELECT l.id, l.queue, l.kind, l.host, l.condition,
       q.weight, q.concurrency, q.rate_count, q.rate_ms, q.rate_next, q.options,
       (SELECT rank FROM jobs WHERE lane = l.id AND rank IS NOT NULL ORDER BY rank LIMIT 1) AS head,
       (SELECT head FROM lanes AS k
        WHERE k.queue = l.queue AND k.kind = l.kind AND k.host = l.host
          AND k.condition = l.condition AND k.head IS NOT NULL
        ORDER BY k.head LIMIT 1) AS keyed
FROM lanes AS l JOIN queues AS q ON q.name = l.queue
WHERE l.key = '' AND l.host IN ('', :host) AND q.paused = 0 ORDER BY l.id;

-- name: running_in
-- For a limit across all machines: from the counters, never by counting jobs.
SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM counts
WHERE queue = :queue AND state = 'processing';

-- name: open_lanes
-- The keyed lanes beside a plain one, best rank first and ties by id, as within a lane; those that
-- are closed are not in the index.
SELECT lanes.id, lanes.head, lanes.key, keys.concurrency - keys.running
FROM lanes JOIN keys ON keys.key = lanes.key
WHERE lanes.queue = :queue AND lanes.kind = :kind AND lanes.host = :host
  AND lanes.condition = :condition AND lanes.head IS NOT NULL
ORDER BY lanes.head, lanes.head_job LIMIT :n;

-- name: first_in_lane
-- The next jobs of a lane with all that a worker needs to run them.
SELECT jobs.rank, jobs.id, jobs.run + 1, specs.task, specs.command, specs.args, specs.options,
       specs.name, specs.cwd, specs.env, jobs.failures, jobs.ready_at,
       jobs.failures + jobs.losses + jobs.interruptions + jobs.snoozes
FROM jobs JOIN specs ON specs.id = jobs.id
WHERE jobs.lane = :lane AND jobs.rank IS NOT NULL
ORDER BY jobs.rank, jobs.id LIMIT :n {lock_free_jobs};

-- name: start_runs
-- Guarded by the state it leaves: a job that is no longer pending is not touched.
UPDATE jobs
SET state = 'processing', rank = NULL, expires_at = NULL, run = run + 1, worker = :worker,
    started_at = :now, reason = NULL, paused = 0, progress = NULL, progress_note = NULL
WHERE id {in_ids} AND state = 'pending';

-- name: take_rate [sqlite]
-- GCRA: the row holds when the next start is due, and each start moves it on. In microseconds:
-- whole milliseconds would round a rate of 700 a second up to 1000.
UPDATE queues SET rate_next = max(rate_next, :now * 1000) + :taken * rate_ms * 1000 / rate_count
WHERE name = :queue;

-- name: take_rate [postgres]
-- As there.
UPDATE queues
SET rate_next = greatest(rate_next, :now * 1000) + :taken * rate_ms * 1000 / rate_count
WHERE name = :queue;

-- name: use_key
-- A run more, or less, under this key.
UPDATE keys SET running = running + :n WHERE key = :key;

-- name: set_key
-- The newest stated limit holds; one run at a time where none was stated.
INSERT INTO keys (key, concurrency) VALUES (:key, coalesce(:concurrency, 1))
ON CONFLICT (key) DO UPDATE SET concurrency = coalesce(:concurrency, keys.concurrency);

-- name: refresh_lanes
-- A keyed lane is in the index of open lanes while it has jobs and its key has room. The key comes
-- first in the join: without room, no job is looked at, however many wait.
UPDATE lanes
SET (head, head_job) = (
    SELECT jobs.rank, jobs.id FROM keys CROSS JOIN jobs
    WHERE keys.key = lanes.key AND keys.running < keys.concurrency
      AND jobs.lane = lanes.id AND jobs.rank IS NOT NULL
    ORDER BY jobs.rank, jobs.id LIMIT 1)
WHERE key = :key;

-- name: count_live
-- Unfinished jobs of a keyed lane: when there are none, the lane goes.
UPDATE lanes SET live = live + :n WHERE id = :lane;

-- name: drop_empty_lanes
-- Keys are often as many as users or files: what nobody waits for is not kept.
DELETE FROM lanes WHERE key = :key AND live = 0;

-- name: drop_idle_key
-- The last lane took its key along.
DELETE FROM keys
WHERE key = :key AND running = 0 AND NOT EXISTS (SELECT 1 FROM lanes WHERE lanes.key = :key);

-- name: conditions
-- What jobs wait for that could be claimed otherwise, each by itself or with all of its queue.
SELECT l.condition FROM lanes AS l
WHERE l.key = '' AND l.condition <> ''
  AND (EXISTS (SELECT 1 FROM jobs WHERE lane = l.id AND rank IS NOT NULL)
       OR EXISTS (SELECT 1 FROM lanes AS k
                  WHERE k.queue = l.queue AND k.kind = l.kind AND k.host = l.host
                    AND k.condition = l.condition AND k.head IS NOT NULL))
UNION
SELECT {when} FROM queues
WHERE {when} IS NOT NULL
  AND (SELECT sum(n) FROM counts WHERE queue = name AND state = 'pending') > 0;

-- name: next_due
-- Until when a worker may sleep: the next job to be due, to expire, or to be let in by a rate.
SELECT min(at) FROM (
    SELECT min(due_at) AS at FROM jobs WHERE due_at IS NOT NULL
    UNION ALL
    SELECT min(expires_at) FROM jobs WHERE expires_at IS NOT NULL
    UNION ALL
    SELECT min(rate_next / 1000 - rate_ms + rate_ms / rate_count) FROM queues
    WHERE rate_count IS NOT NULL AND paused = 0
      AND rate_next / 1000 - rate_ms + rate_ms / rate_count > :now
      AND (SELECT sum(n) FROM counts WHERE queue = name AND state = 'pending') > 0
) AS next;

----------------------------------------------------------------------------------------- finish

-- name: held_runs
-- What decides the end of a run. A report that no longer fits is told apart by worker and run.
SELECT jobs.id, jobs.lane, jobs.state, jobs.run, jobs.worker, jobs.ties, jobs.cancel_requested,
       jobs.failures, jobs.losses, jobs.interruptions, jobs.snoozes,
       jobs.started_at, jobs.priority, jobs.ready_at, jobs.waits_on, specs.queue, specs.task
FROM jobs JOIN specs ON specs.id = jobs.id
WHERE jobs.id {in_ids} AND jobs.state = 'processing' ORDER BY jobs.id {lock_jobs};

-- name: policy_layers
-- Read only for a run that did not simply succeed. What its queue, its task and the job itself say.
SELECT queues.aging_ms, queues.options, coalesce(tasks.policy, '{}'), specs.options
FROM specs JOIN queues ON queues.name = specs.queue
LEFT JOIN tasks ON tasks.name = specs.task WHERE specs.id = :id;

-- name: complete_runs
-- Most runs end well, and then nothing but the end is to be written; most are of one worker and
-- the same run number, and one statement for all costs half as much as one for each.
UPDATE jobs SET state = 'completed', finished_at = :now, cancel_requested = 0
WHERE id {in_ids}
  AND state = 'processing' AND worker = :worker AND run = :run
RETURNING id, ties;

-- name: settle_run
-- Fenced: only the worker and the run that hold the job may move it.
UPDATE jobs
SET state = :state, rank = :rank, due_at = :due_at, run_at = :run_at, finished_at = :finished_at,
    reason = :reason, failures = :failures, losses = :losses, interruptions = :interruptions,
    snoozes = :snoozes, cancel_requested = 0
WHERE id = :id AND state = 'processing' AND worker = :worker AND run = :run;

-- name: add_runs
-- History: every run that failed, and every one that left something to show.
INSERT INTO runs (job, run, worker, started_at, ended_at, how, exit_code, error, tail, result,
                  cpu_ms, peak_bytes)
VALUES (:job, :run, :worker, :started_at, :ended_at, :how, :exit_code, :error, :tail, :result,
        :cpu_ms, :peak_bytes);

-- name: set_progress
-- Only the run that holds the job speaks for it.
UPDATE jobs SET progress = :progress, progress_note = :note
WHERE id = :id AND state = 'processing' AND worker = :worker AND run = :run;

-- name: ties_of
-- What must be seen to when a job with ties ends or comes back.
SELECT specs.queue, specs.name, specs.unique_key, specs.key, jobs.lane
FROM specs JOIN jobs ON jobs.id = specs.id WHERE specs.id = :id;

-- name: dead_letter_of
-- The copy that a queue's dead letter queue gets; a copy is not copied again.
SELECT queues.dead_letter, specs.task, specs.args, specs.command, specs.options, specs.owner,
       specs.cwd, environments.vars, jobs.priority
FROM specs
JOIN jobs ON jobs.id = specs.id
LEFT JOIN queues ON queues.name = specs.queue
LEFT JOIN environments ON environments.id = specs.env
WHERE specs.id = :id AND queues.dead_letter IS NOT NULL AND specs.copy_of IS NULL;

------------------------------------------------------------------------------------------ moves

-- name: standing
-- A job as the verbs of people need it: where it stands and what its rank depends on.
SELECT jobs.id, jobs.state, jobs.lane, jobs.priority, jobs.ties, jobs.waits_on, jobs.run,
       jobs.ready_at, jobs.run_at, specs.queue, specs.task, specs.key, queues.aging_ms
FROM jobs JOIN specs ON specs.id = jobs.id JOIN queues ON queues.name = specs.queue
WHERE jobs.id = :id {lock_jobs};

-- name: place_job
-- Guarded by the state it leaves.
UPDATE jobs
SET state = :state, rank = :rank, due_at = :due_at, run_at = :run_at, ready_at = :ready_at,
    finished_at = :finished_at, reason = :reason,
    expires_at = CASE WHEN :finished_at IS NULL THEN expires_at END
WHERE id = :id AND state = :old;

-- name: start_over
-- A retry by a person: attempts count from the beginning, `run` goes on. The lane may be a new one,
-- since keyed lanes go with their last unfinished job.
UPDATE jobs
SET lane = :lane, ready_at = NULL, run_at = NULL, failures = 0, losses = 0, interruptions = 0, snoozes = 0, progress = NULL, progress_note = NULL,
    cancel_requested = 0
WHERE id = :id;

-- name: request_cancel
-- The state moves when the process tree is dead and its worker says so.
UPDATE jobs SET cancel_requested = 1 WHERE id = :id AND state = 'processing' AND cancel_requested = 0;

-- name: suspend
-- What runs stands still, or goes on; its worker sees to it.
UPDATE jobs SET paused = :paused WHERE id = :id AND state = 'processing' AND paused <> :paused;

-- name: paused_runs
-- What a worker is to let stand still.
SELECT id FROM jobs
WHERE state = 'processing' AND worker = :worker AND paused <> 0
  AND rank IS NULL AND due_at IS NULL AND finished_at IS NULL;

-- name: cancel_requests
-- What a worker that was away must still stop.
SELECT id, run FROM jobs
WHERE state = 'processing' AND worker = :worker AND cancel_requested <> 0
  AND rank IS NULL AND due_at IS NULL AND finished_at IS NULL;

-- name: edge_rank
-- In front of, or behind, everything that is pending in the queue: one seek a lane.
SELECT min((SELECT rank FROM jobs WHERE lane = lanes.id AND rank IS NOT NULL ORDER BY rank LIMIT 1)),
       max((SELECT rank FROM jobs WHERE lane = lanes.id AND rank IS NOT NULL ORDER BY rank DESC LIMIT 1))
FROM lanes WHERE queue = :queue;

-- name: set_rank
-- Only what is pending has a rank.
UPDATE jobs SET rank = :rank WHERE id = :id AND state = 'pending';

-- name: edit_job
-- Guarded by the state in which it was read; the columns of the state follow with place_job.
UPDATE jobs
SET lane = :lane, priority = :priority, ties = :ties, run_at = :run_at, expires_at = :expires_at
WHERE id = :id AND state = :old;

-- name: edit_spec
-- All at once: an edit has the whole new text.
UPDATE specs
SET queue = :queue, task = :task, command = :command, args = :args, options = :options,
    name = :name, tags = :tags, cwd = :cwd, env = :env, host = :host, condition = :condition,
    key = :key, unique_key = :unique_key, orphaned = :orphaned
WHERE id = :id;

-- name: spec
-- What was said of a job, for an edit or a copy.
SELECT specs.queue, specs.task, specs.command, specs.args, specs.options,
       specs.name, specs.tags, specs.owner, specs.cwd, specs.env, specs.host, specs.condition,
       specs.key, specs.unique_key, specs.orphaned, environments.vars, jobs.expires_at
FROM specs JOIN jobs ON jobs.id = specs.id LEFT JOIN environments ON environments.id = specs.env
WHERE specs.id = :id;

-- name: pending_in
-- A queue's aging changed: who must be ranked anew.
SELECT jobs.id FROM lanes JOIN jobs ON jobs.lane = lanes.id
WHERE lanes.queue = :queue AND jobs.rank IS NOT NULL;

-- name: rank_inputs
-- What a rank is made of, for those of a batch that are still pending.
SELECT id, priority, ready_at FROM jobs
WHERE id {in_ids} AND rank IS NOT NULL;

-- name: set_ranks
-- As set_rank, in bulk.
UPDATE jobs SET rank = :rank WHERE id = :id AND rank IS NOT NULL;

-- name: keys_in_queue
-- The keyed lanes of a queue that is paused, re-ranked or deleted.
SELECT DISTINCT key FROM lanes WHERE queue = :queue AND key <> '';

--------------------------------------------------------------------------------- due and expired

-- name: due
-- Jobs whose time has come, oldest first.
SELECT id FROM jobs WHERE due_at <= :now ORDER BY due_at, id LIMIT :n;

-- name: expired
-- Jobs that were to start before now and did not.
SELECT id FROM jobs WHERE expires_at <= :now ORDER BY expires_at, id LIMIT :n;

----------------------------------------------------------------------------------------- workers

-- name: add_worker
-- Who claims, where, and how to tell that it is gone.
INSERT INTO workers (host, pid, boot, born, program, version, slots, state, started_at, lease_until)
VALUES (:host, :pid, :boot, :born, :program, :version, :slots, 'running', :now, :lease_until)
RETURNING id;

-- name: beat
-- A sign of life; a worker written by hand also extends its lease.
UPDATE workers SET beat = beat + 1, lease_until = :lease_until WHERE id = :id AND state <> 'ended';

-- name: pulse [sqlite]
-- As beat, of those whose silence others measure.
UPDATE workers SET beat = beat + 1 WHERE id = :id AND state <> 'ended';

-- name: pulse [postgres]
-- The same, with what people are told.
UPDATE workers SET beat = beat + 1, silence_ms = :silence_ms,
                   heard_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint
WHERE id = :id AND state <> 'ended';

-- name: set_worker_state
-- Running to draining; an ended worker stays ended.
UPDATE workers SET state = :state WHERE id = :id AND state <> 'ended';

-- name: worker_state
-- What a worker is to do: go on, drain, or stop; one that was given up as lost is ended. One whose
-- program is older than the store drains, so that a newer one can take its place.
SELECT CASE WHEN state = 'running' AND program < (
           SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'version')
            THEN 'draining' ELSE state END
FROM workers WHERE id = :id;

-- name: worker_asked
-- What a worker was asked for, in the transaction of its claim: once it is to end, it gets no more.
SELECT state FROM workers WHERE id = :id;

-- name: end_worker
-- It will not report again; what it held has been taken back.
UPDATE workers SET state = 'ended', ended_at = :now WHERE id = :id AND state <> 'ended';

-- name: give_up_worker
-- Only if it has not been heard of since: a sign of life that comes between waits for us, or we for it.
UPDATE workers SET state = 'ended', ended_at = :now
WHERE id = :id AND beat = :beat AND state <> 'ended';

-- name: stranded
-- Ended workers that still hold jobs: a claim of theirs was written just when they were given up.
SELECT DISTINCT workers.id, workers.beat FROM jobs JOIN workers ON workers.id = jobs.worker
WHERE jobs.state = 'processing' AND jobs.rank IS NULL AND jobs.due_at IS NULL
  AND jobs.finished_at IS NULL AND workers.state = 'ended';

-- fragment: heard [sqlite]
-- Here a worker's lock tells whether it lives.
NULL, NULL

-- fragment: heard [postgres]
-- By the server's clock; and for how long it may be silent.
heard_at, silence_ms

-- name: workers
-- All that live, or all.
SELECT id, host, pid, boot, born, program, version, slots, state, started_at, beat, lease_until,
       {heard},
       (SELECT count(*) FROM jobs WHERE jobs.state = 'processing' AND jobs.worker = workers.id
        AND rank IS NULL AND due_at IS NULL AND finished_at IS NULL)
FROM workers WHERE state <> 'ended' OR :ended = 1 ORDER BY id;

-- name: runs_of_worker
-- What goes back when a worker is lost.
SELECT id, run FROM jobs
WHERE state = 'processing' AND worker = :worker
  AND rank IS NULL AND due_at IS NULL AND finished_at IS NULL ORDER BY id;

-- name: lapsed_leases
-- Workers written by hand that have not been heard of in time.
SELECT id FROM workers WHERE state <> 'ended' AND lease_until < :now;

-- name: forget_workers
-- Ended long ago, and no job names them any more as its last holder within retention.
DELETE FROM workers WHERE state = 'ended' AND ended_at < :before;

-- name: note_service [postgres]
-- That a service lives, by the clock of the store.
INSERT INTO services (host, home, pid, heard_at)
VALUES (:host, :home, :pid, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
ON CONFLICT (host, home) DO UPDATE SET pid = excluded.pid, heard_at = excluded.heard_at;

-- name: offer_output [postgres]
-- How other machines get the output that is kept there.
INSERT INTO services (host, home, address, port, site, certificate, token)
VALUES (:host, :home, :address, :port, :site, :certificate, :secret)
ON CONFLICT (host, home) DO UPDATE
SET address = excluded.address, port = excluded.port, site = excluded.site,
    certificate = excluded.certificate, token = excluded.token;

-- name: forget_service [postgres]
-- It ends; another one of the same home may have come meanwhile.
DELETE FROM services WHERE host = :host AND home = :home AND pid = :pid;

-- name: service_token [postgres]
-- Apart from the rest, which a role may see that may not have this.
SELECT token FROM services WHERE host = :host AND home = :home;

-- name: services [postgres]
-- Those that were heard of lately.
SELECT host, home, pid, heard_at, address, port, site, certificate FROM services
WHERE heard_at > :since ORDER BY host, home;

------------------------------------------------------------------------------------------ queues

-- name: queue
-- One queue's settings.
SELECT name, paused, weight, concurrency, rate_count, rate_ms, aging_ms, dead_letter, options
FROM queues WHERE name = :name;

-- name: queues
-- All queues' settings.
SELECT name, paused, weight, concurrency, rate_count, rate_ms, aging_ms, dead_letter, options
FROM queues ORDER BY name;

-- name: save_queue
-- All settings at once; the rate's token row starts anew only when the rate changes.
UPDATE queues
SET paused = :paused, weight = :weight, concurrency = :concurrency,
    rate_next = CASE WHEN coalesce(rate_count, 0) = coalesce(:rate_count, 0)
                      AND coalesce(rate_ms, 0) = coalesce(:rate_ms, 0) THEN rate_next ELSE 0 END,
    rate_count = :rate_count, rate_ms = :rate_ms, aging_ms = :aging_ms,
    dead_letter = :dead_letter, options = :options
WHERE name = :name;

-- name: pause_queue
-- Paused or not; everything else stays.
UPDATE queues SET paused = :paused WHERE name = :name;

-- name: delete_queue
-- Only when no job is left in it; the caller has looked.
DELETE FROM queues WHERE name = :name;

-- name: delete_queue_lanes
-- With their queue.
DELETE FROM lanes WHERE queue = :name;

-- name: delete_queue_counts
-- All zero by then.
DELETE FROM counts WHERE queue = :name;

------------------------------------------------------------------------------------------ tasks

-- name: declared_tasks
-- What tasks say of themselves, for a job that is queued by its task's name alone.
SELECT name, options, policy FROM tasks WHERE name IN ({names});

-- name: declare_task
-- The newest declaration holds: whoever imported the task last has told it.
INSERT INTO tasks (name, options, policy) VALUES (:name, :options, :policy)
ON CONFLICT (name) DO UPDATE SET options = excluded.options, policy = excluded.policy;

-- name: forget_task
-- It no longer says anything.
DELETE FROM tasks WHERE name = :name;

------------------------------------------------------------------------------------------- tidy

-- name: finished_before
-- What retention may let go, oldest first; queues differ in how long they keep, so the caller picks.
-- A parent that an unfinished job still waits for stays.
SELECT jobs.finished_at, jobs.id, specs.queue FROM jobs JOIN specs ON specs.id = jobs.id
WHERE jobs.finished_at IS NOT NULL AND jobs.state = :state AND jobs.finished_at <= :before
  AND (jobs.finished_at, jobs.id) > (:after, :after_id)
  AND NOT ((jobs.ties & :parent_tie) <> 0 AND EXISTS (
      SELECT 1 FROM parents JOIN jobs AS child ON child.id = parents.child
      WHERE parents.parent = jobs.id AND parents.met = 0 AND child.state IN ('blocked', 'held')))
ORDER BY jobs.finished_at, jobs.id LIMIT :n;

-- name: in_state
-- What a purge takes next; never what a worker holds.
SELECT jobs.id FROM jobs JOIN specs ON specs.id = jobs.id
WHERE jobs.state = :state AND jobs.state <> 'processing' AND jobs.id > :after
  AND (:queue IS NULL OR specs.queue = :queue)
ORDER BY jobs.id LIMIT :n;

-- name: waited_for
-- A purge must not leave a job waiting for one that is no longer there.
SELECT DISTINCT parents.parent FROM parents JOIN jobs ON jobs.id = parents.child
WHERE parents.parent {in_ids} AND parents.met = 0
  AND jobs.state IN ('blocked', 'held');

-- name: standing_of
-- As standing, for many: what the counters must forget.
SELECT jobs.state, specs.queue, specs.task FROM jobs JOIN specs ON specs.id = jobs.id
WHERE jobs.id {in_ids};

-- name: delete_jobs
-- With everything that hangs on them, in the statements that follow.
DELETE FROM jobs WHERE id {in_ids};

-- name: delete_specs
-- With their jobs.
DELETE FROM specs WHERE id {in_ids};

-- name: delete_runs
-- With their jobs.
DELETE FROM runs WHERE job {in_ids};

-- name: delete_tags [sqlite]
-- With their jobs; the spec still knows which tags there are.
DELETE FROM tags WHERE (tag, job) IN (
    SELECT tag.value, specs.id FROM specs, json_each(specs.tags) AS tag
    WHERE specs.id {in_ids} AND specs.tags IS NOT NULL);

-- name: delete_tags [postgres]
-- As there.
DELETE FROM tags WHERE (tag, job) IN (
    SELECT json_array_elements_text(specs.tags::json), specs.id FROM specs
    WHERE specs.id {in_ids} AND specs.tags IS NOT NULL);

-- name: delete_parents
-- Of a job that goes, both ways.
DELETE FROM parents
WHERE parent {in_ids} OR child {in_ids};

-- name: unused_environments [sqlite]
-- Those whose last job is gone.
SELECT id FROM environments WHERE NOT EXISTS (SELECT 1 FROM specs WHERE specs.env = environments.id);

-- name: unused_environments [postgres]
-- As there, but for those that someone has just found; whoever looks now waits.
SELECT id FROM environments WHERE NOT EXISTS (SELECT 1 FROM specs WHERE specs.env = environments.id)
FOR UPDATE SKIP LOCKED;

-- name: delete_environments
-- Of the unused ones, those that still are: a job may have come between the two looks.
DELETE FROM environments
WHERE id {in_ids} AND NOT EXISTS (SELECT 1 FROM specs WHERE specs.env = environments.id);

-- name: forget_changes
-- Of the oldest n, so that it costs the same however many are kept; times far ahead are of a clock
-- that was wrong. The newest row always stays: the numbers go on from it.
DELETE FROM changes
WHERE seq IN (SELECT seq FROM (SELECT seq, at FROM changes ORDER BY seq LIMIT :n) AS oldest
              WHERE at NOT BETWEEN :since AND :until)
  AND seq < (SELECT max(seq) FROM changes);

-- name: forget_minutes
-- Older than the activity that is kept.
DELETE FROM minutes WHERE minute < :before;

----------------------------------------------------------------------------------------- ledger

-- name: add_changes
-- What the page, the tray and notifications follow.
INSERT INTO changes (job, kind, at) VALUES (:job, :kind, :at);

-- name: add_counts [sqlite]
-- Counters by queue, state and task: counting a million rows is never done.
INSERT INTO counts (queue, state, task, n) VALUES (:queue, :state, :task, :n)
ON CONFLICT (queue, state, task) DO UPDATE SET n = n + excluded.n;

-- name: add_counts [postgres]
-- As there, each of those that write at once in a row of its own: they would wait for each other's
-- commit.
INSERT INTO counts (slot, queue, state, task, n) VALUES (slot(), :queue, :state, :task, :n)
ON CONFLICT (queue, state, task, slot) DO UPDATE SET n = counts.n + excluded.n;

-- name: add_minutes [sqlite]
-- Activity, waiting times and run times of the minute.
INSERT INTO minutes (minute, queue, kind, bucket, n, total_ms)
VALUES (:minute, :queue, :kind, :bucket, :n, :total_ms)
ON CONFLICT (minute, queue, kind, bucket)
DO UPDATE SET n = n + excluded.n, total_ms = total_ms + excluded.total_ms;

-- name: add_minutes [postgres]
-- As there, with rows of their own for those that write at once.
INSERT INTO minutes (slot, minute, queue, kind, bucket, n, total_ms)
VALUES (slot(), :minute, :queue, :kind, :bucket, :n, :total_ms)
ON CONFLICT (minute, queue, kind, bucket, slot)
DO UPDATE SET n = minutes.n + excluded.n, total_ms = minutes.total_ms + excluded.total_ms;

-------------------------------------------------------------------------------------------- read

-- fragment: parents_of [sqlite]
-- Whom a job comes after.
(SELECT json_group_array(parent) FROM parents WHERE child = jobs.id)

-- fragment: parents_of [postgres]
-- Whom a job comes after.
(SELECT json_agg(parent ORDER BY parent)::text FROM parents WHERE child = jobs.id)

-- fragment: is_found [sqlite]
-- A job by a part of what it says.
instr(lower(coalesce(specs.name, '') || char(10) || coalesce(specs.command, specs.task)
            || char(10) || coalesce(specs.args, '')), lower(:grep)) > 0

-- fragment: is_found [postgres]
-- A job by a part of what it says.
strpos(lower(coalesce(specs.name, '') || chr(10) || coalesce(specs.command, specs.task)
             || chr(10) || coalesce(specs.args, '')), lower(:grep)) > 0

-- fragment: job_view
-- A job as people see it; the last run that left something to show has its result and error.
SELECT jobs.id, specs.queue, jobs.state, specs.name, jobs.reason, jobs.priority, jobs.run,
       jobs.failures, jobs.losses, jobs.interruptions, jobs.snoozes, specs.created_at,
       jobs.run_at, jobs.expires_at, jobs.started_at, jobs.finished_at,
       runs.exit_code, runs.error, jobs.progress, jobs.progress_note, jobs.cancel_requested, jobs.paused,
       runs.result, specs.tags, specs.owner, jobs.worker, specs.command, specs.task, specs.args,
       specs.options, queues.options, coalesce(tasks.policy, '{}'), specs.cwd, specs.host,
       specs.condition, specs.key, specs.unique_key,
       {parents_of}, specs.copy_of
FROM jobs
JOIN specs ON specs.id = jobs.id
JOIN queues ON queues.name = specs.queue
LEFT JOIN tasks ON tasks.name = specs.task
LEFT JOIN runs ON runs.job = jobs.id
     AND runs.run = (SELECT max(run) FROM runs AS last WHERE last.job = jobs.id)

-- fragment: job_filters
-- Each filter is off where its value is NULL.
(:queue IS NULL OR specs.queue = :queue)
AND (:task IS NULL OR specs.task = :task)
AND (:owner IS NULL OR specs.owner = :owner)
AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tags WHERE tags.tag = :tag AND tags.job = jobs.id))
AND (:since IS NULL OR specs.created_at >= :since)
AND (:grep IS NULL OR {is_found})

-- name: job
-- One job.
{job_view} WHERE jobs.id = :id;

-- name: jobs_named
-- A name resolves to the newest job that has it.
SELECT max(id) FROM specs WHERE name = :name;

-- name: list_jobs
-- Newest first, in any of the given states.
{job_view}
WHERE jobs.id < :before AND jobs.state IN ({states}) AND {job_filters}
ORDER BY jobs.id DESC LIMIT :n;

-- name: list_finished
-- One finished state through its index, so that a rare one costs no scan.
{job_view}
WHERE (jobs.finished_at, jobs.id) < (:at, :before) AND jobs.finished_at IS NOT NULL
  AND jobs.state = :state AND {job_filters}
ORDER BY jobs.finished_at DESC, jobs.id DESC LIMIT :n;

-- name: time_in_list
-- Where a page by time ended: its last job and that job's time.
SELECT coalesce(finished_at, due_at) FROM jobs WHERE id = :id AND state = :state;

-- name: list_standing
-- Held, blocked or processing, through their index.
{job_view}
WHERE jobs.id < :before AND jobs.rank IS NULL AND jobs.due_at IS NULL AND jobs.finished_at IS NULL
  AND jobs.state = :state AND {job_filters}
ORDER BY jobs.id DESC LIMIT :n;

-- name: list_due
-- Scheduled or retrying, through their index, soonest first.
{job_view}
WHERE (jobs.due_at, jobs.id) > (:at, :before) AND jobs.due_at IS NOT NULL
  AND jobs.state = :state AND {job_filters}
ORDER BY jobs.due_at, jobs.id LIMIT :n;

-- name: state_of
-- The cheap look of a wait.
SELECT state FROM jobs WHERE id = :id;

-- name: runs
-- The history of one job.
SELECT runs.job, runs.run, runs.worker, workers.host, runs.started_at, runs.ended_at, runs.how,
       runs.exit_code, runs.error, runs.tail, runs.result, runs.cpu_ms, runs.peak_bytes
FROM runs LEFT JOIN workers ON workers.id = runs.worker
WHERE runs.job = :job ORDER BY runs.run;

-- name: changes_after
-- A cursor is the last number seen.
SELECT seq, job, kind, at FROM changes WHERE seq > :after AND seq <= :until ORDER BY seq LIMIT :n;

-- name: writers [sqlite]
-- Who may still commit numbers of changes that were taken before: nobody, where one writes at a time.
SELECT '' WHERE 0;

-- name: writers [postgres]
-- Whoever takes such numbers holds this lock until the end of its transaction.
SELECT virtualtransaction FROM pg_locks
WHERE locktype = 'advisory' AND granted AND classid = 1937138545 AND objid = 2 AND objsubid = 2
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- name: last_change
-- Where a new follower begins.
SELECT coalesce((SELECT max(seq) FROM changes), 0), coalesce((SELECT min(seq) FROM changes), 0);

-- name: counts
-- By queue, state and task.
SELECT queue, state, task, CAST(sum(n) AS BIGINT) FROM counts
WHERE :queue IS NULL OR queue = :queue
GROUP BY queue, state, task HAVING sum(n) > 0;

-- name: oldest_in_line
-- Of the first hundred in each lane, who has waited longest: near the front, not by a full count.
SELECT lanes.queue, min((SELECT min(ready_at) FROM (
           SELECT ready_at FROM jobs WHERE lane = lanes.id AND rank IS NOT NULL
           ORDER BY rank LIMIT 100) AS first))
FROM lanes WHERE :queue IS NULL OR lanes.queue = :queue
GROUP BY lanes.queue;

-- name: minutes_since
-- Sums for charts and percentiles.
SELECT minute, queue, kind, bucket, CAST(sum(n) AS BIGINT), CAST(sum(total_ms) AS BIGINT)
FROM minutes WHERE minute >= :since AND (:queue IS NULL OR queue = :queue)
GROUP BY minute, queue, kind, bucket ORDER BY minute;

-- name: newest_change [postgres]
-- The cheapest look at whether someone has written.
SELECT coalesce(max(seq), 0) FROM changes;

------------------------------------------------------------------------------------------- why

-- name: place_in_line
-- What decides when a pending job starts, apart from who is there to start it.
SELECT jobs.rank, jobs.ready_at, queues.rate_next, keys.concurrency, keys.running
FROM jobs
JOIN specs ON specs.id = jobs.id
JOIN queues ON queues.name = specs.queue
LEFT JOIN keys ON keys.key = specs.key
WHERE jobs.id = :id;

-- name: in_front
-- Who runs before a job, counted up to a bound: those of the plain lanes, and of the keyed lanes
-- that have room. A keyed lane is looked into only when its best rank is in front.
SELECT count(*) FROM (
    SELECT 1 FROM lanes JOIN jobs ON jobs.lane = lanes.id
    WHERE lanes.key = '' AND lanes.queue = :queue
      AND lanes.host IN ('', :host) AND lanes.condition IN ('', :condition)
      AND jobs.rank IS NOT NULL AND (jobs.rank, jobs.id) < (:rank, :id)
    UNION ALL
    SELECT 1 FROM lanes AS plain
    JOIN lanes AS keyed ON keyed.queue = plain.queue AND keyed.kind = plain.kind
         AND keyed.host = plain.host AND keyed.condition = plain.condition
         AND keyed.head IS NOT NULL AND keyed.head <= :rank
    JOIN jobs ON jobs.lane = keyed.id
    WHERE plain.key = '' AND plain.queue = :queue
      AND plain.host IN ('', :host) AND plain.condition IN ('', :condition)
      AND jobs.rank IS NOT NULL AND (jobs.rank, jobs.id) < (:rank, :id)
    LIMIT :most) AS in_line;

-- name: running_jobs
-- Who uses up a limit, oldest first; what runs is never more than there are slots.
SELECT jobs.id, jobs.started_at, jobs.progress
FROM jobs JOIN specs ON specs.id = jobs.id
WHERE jobs.state = 'processing'
  AND jobs.rank IS NULL AND jobs.due_at IS NULL AND jobs.finished_at IS NULL
  AND (:queue IS NULL OR specs.queue = :queue) AND (:key IS NULL OR specs.key = :key)
ORDER BY jobs.started_at, jobs.id LIMIT :n;

-- name: unmet_parents
-- Whom a blocked job waits for.
SELECT parents.parent, jobs.state, parents.needs
FROM parents JOIN jobs ON jobs.id = parents.parent
WHERE parents.child = :child AND parents.met = 0 ORDER BY parents.parent;

-- name: first_in_line
-- The next pending jobs, for a screen: the first of each plain lane, of the keyed lanes with room,
-- and of some without. Whatever waits behind them is not looked at.
WITH waiting (lane) AS (
    SELECT id FROM lanes WHERE key = ''
    UNION
    SELECT keyed.id FROM lanes AS plain JOIN lanes AS keyed ON keyed.id IN (
        SELECT k.id FROM lanes AS k
        WHERE k.queue = plain.queue AND k.kind = plain.kind AND k.host = plain.host
          AND k.condition = plain.condition AND k.head IS NOT NULL
        ORDER BY k.head LIMIT :n)
    WHERE plain.key = ''
    UNION
    SELECT id FROM (SELECT id FROM lanes WHERE key > '' LIMIT :n) AS keyed_lanes
), line (id) AS (
    SELECT jobs.id FROM waiting JOIN jobs ON jobs.id IN (
        SELECT ahead.id FROM jobs AS ahead
        WHERE ahead.lane = waiting.lane AND ahead.rank IS NOT NULL
        ORDER BY ahead.rank, ahead.id LIMIT :n)
    ORDER BY jobs.rank, jobs.id LIMIT :n
)
{job_view} WHERE jobs.id IN (SELECT id FROM line) ORDER BY jobs.rank, jobs.id;

-------------------------------------------------------------------------------------- versions

-- name: meta
-- One fact about the store.
SELECT value FROM meta WHERE key = :key;

-- name: set_meta
-- One fact about the store.
INSERT INTO meta (key, value) VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: schema_state [postgres]
-- Whether there is a store, and how many tables there are in its place.
SELECT to_regclass(:schema || '.meta') IS NOT NULL AND to_regclass(:schema || '.job_ids') IS NOT NULL,
       (SELECT count(*) FROM pg_tables WHERE schemaname = :schema);

-- name: schema_size [postgres]
-- What all of it takes on the disk.
SELECT CAST(sum(pg_total_relation_size(pg_class.oid)) AS BIGINT)
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = :schema AND relkind IN ('r', 'S');

-- name: gather_counts [postgres]
-- Rows of sessions that were a transaction's alone: nobody would write to them again.
WITH gone AS (DELETE FROM counts WHERE slot < 0 RETURNING queue, state, task, n)
INSERT INTO counts (slot, queue, state, task, n)
SELECT 64, queue, state, task, sum(n) FROM gone GROUP BY queue, state, task
ON CONFLICT (queue, state, task, slot) DO UPDATE SET n = counts.n + excluded.n;

-- name: gather_minutes [postgres]
-- As gather_counts.
WITH gone AS (DELETE FROM minutes WHERE slot < 0 RETURNING minute, queue, kind, bucket, n, total_ms)
INSERT INTO minutes (slot, minute, queue, kind, bucket, n, total_ms)
SELECT 64, minute, queue, kind, bucket, sum(n), sum(total_ms) FROM gone
GROUP BY minute, queue, kind, bucket
ON CONFLICT (minute, queue, kind, bucket, slot)
DO UPDATE SET n = minutes.n + excluded.n, total_ms = minutes.total_ms + excluded.total_ms;

-- name: older_workers
-- While one of these lives, a migration may only add.
SELECT count(*) FROM workers WHERE state <> 'ended' AND program < :program;

-------------------------------------------------------------------------------------- schedules

-- fragment: schedule_view
-- A schedule as people see it, with what became of its last time; never its environment.
SELECT s.name, s.cron, s.zone, s.every_ms, s.at, s.start_at, s.end_at, s.anchor, s.jitter_ms,
       s.missed, s.overlap, s.paused, s.fired_by, s.task, s.command, s.args, s.options, s.owner,
       s.created_at, s.revision, s.set_at, s.next_at, s.due_at, s.last_at, s.last_job, s.firings,
       f.how, f.missed, f.ran, f.note
FROM schedules AS s LEFT JOIN firings AS f ON f.schedule = s.name AND f.number = s.firings

-- name: add_schedule
-- Whether the name is free is for the caller to say in a sentence: no row comes back where it is not.
INSERT INTO schedules (name, cron, zone, every_ms, at, start_at, end_at, anchor, jitter_ms, missed,
                       overlap, paused, fired_by, task, command, args, options, owner, created_at,
                       set_at, next_at, due_at, env)
VALUES (:name, :cron, :zone, :every_ms, :at, :start_at, :end_at, :anchor, :jitter_ms, :missed,
        :overlap, :paused, :fired_by, :task, :command, :args, :options, :owner, :now,
        :now, :next_at, :due_at, :env)
ON CONFLICT (name) DO NOTHING RETURNING name;

-- name: save_schedule
-- All that was said of it at once; where it stands comes with it. Guarded by what was read.
UPDATE schedules
SET cron = :cron, zone = :zone, every_ms = :every_ms, at = :at, start_at = :start_at,
    end_at = :end_at, anchor = :anchor, jitter_ms = :jitter_ms, missed = :missed,
    overlap = :overlap, task = :task, command = :command, args = :args, options = :options,
    owner = :owner, env = :env, set_at = :now, next_at = :next_at, due_at = :due_at,
    revision = revision + 1
WHERE name = :name AND revision = :revision;

-- name: place_schedule
-- Paused, resumed, handed to another scheduler or taken back: when it fires next, and by whom.
UPDATE schedules
SET paused = :paused, fired_by = :fired_by, set_at = :now, next_at = :next_at, due_at = :due_at,
    revision = revision + 1
WHERE name = :name AND revision = :revision;

-- name: schedule
-- One, by its name.
{schedule_view} WHERE s.name = :name;

-- name: schedules
-- By name, from a name on; each filter is off where its value is NULL.
{schedule_view}
WHERE s.name > :after_name AND (:paused IS NULL OR s.paused = :paused)
  AND (:task IS NULL OR s.task = :task) AND (:fired_by IS NULL OR s.fired_by = :fired_by)
ORDER BY s.name LIMIT :n;

-- name: schedule_environment
-- What its commands run with.
SELECT env FROM schedules WHERE name = :name;

-- name: delete_schedule
-- With its history, in the statement that follows; its jobs stay.
DELETE FROM schedules WHERE name = :name;

-- name: delete_firings
-- With their schedule.
DELETE FROM firings WHERE schedule = :name;

-- name: due_schedules
-- What a clock fires now, the longest due first.
{schedule_view} WHERE s.due_at <= :now ORDER BY s.due_at LIMIT :n;

-- name: next_schedule
-- Until when a clock may sleep, and for what.
SELECT due_at, name, next_at FROM schedules WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1;

-- name: count_schedules
-- How many there are, and how many of them a clock of ours fires.
SELECT count(*), count(due_at), coalesce(sum(paused), 0) FROM schedules;

-- name: failing_schedule
-- For a doctor's look: the first whose last time could not be queued.
{schedule_view} WHERE f.how = 'failed' ORDER BY s.name LIMIT 1;

-- name: advance_schedule
-- Guarded by what was read: of two clocks, the second finds no row, and fires nothing. What another
-- scheduler fires is never due for ours.
UPDATE schedules
SET set_at = :now, next_at = :next_at, due_at = CASE fired_by WHEN 'svcq' THEN :due_at END,
    firings = firings + :rows, revision = revision + 1
WHERE name = :name AND revision = :revision
RETURNING env;

-- name: number_firing
-- As advance_schedule for a firing beside its times, which stay as they are.
UPDATE schedules SET firings = firings + 1, revision = revision + 1 WHERE name = :name
RETURNING firings, env;

-- name: set_last_job
-- The newest job, and the time it is for; a firing that was asked for leaves that time alone.
UPDATE schedules SET last_job = :job, last_at = coalesce(:nominal, last_at) WHERE name = :name;

-- name: unfinished_of
-- Whether a job of the schedule is still there. The newest is the last to end, but a person may have
-- cancelled it while one before runs, so that a few are looked at.
SELECT jobs.id, jobs.state FROM (
    SELECT job FROM firings WHERE schedule = :name AND job IS NOT NULL
    ORDER BY number DESC LIMIT 10) AS newest
JOIN jobs ON jobs.id = newest.job
WHERE jobs.finished_at IS NULL ORDER BY jobs.id DESC;

-- name: pause_schedule
-- Nobody asked for it: its times can no longer be told.
UPDATE schedules SET paused = 1 WHERE name = :name;

-- name: fired_for
-- Whether a time has had its turn.
SELECT 1 FROM firings WHERE schedule = :schedule AND nominal = :nominal;

-- name: set_later_than
-- Next times that were worked out by a clock that was ahead of this one.
{schedule_view}
WHERE s.set_at > :at AND s.fired_by = 'svcq' AND s.paused = 0 ORDER BY s.name;

-- name: set_back_schedule
-- Its times count from now again.
UPDATE schedules
SET anchor = :anchor, set_at = :now, next_at = :next_at, due_at = :due_at, revision = revision + 1
WHERE name = :name AND revision = :revision;

-- name: void_firings
-- Those times are to come (again), so that they no longer stand for them.
UPDATE firings SET nominal = NULL, note = coalesce(note, :note)
WHERE schedule = :schedule AND nominal > :now;

-- name: add_firings
-- What became of each time; the index over their nominal times refuses to have one twice.
INSERT INTO firings (schedule, number, nominal, at, how, job, missed, ran, note)
VALUES (:schedule, :number, :nominal, :at, :how, :job, :missed, :ran, :note);

-- name: firings
-- The history of one schedule, newest first.
SELECT schedule, number, nominal, at, how, job, missed, ran, note FROM firings
WHERE schedule = :schedule AND number < :before ORDER BY number DESC LIMIT :n;

-- name: all_firings
-- The history of all schedules, newest first.
SELECT schedule, number, nominal, at, how, job, missed, ran, note FROM firings
ORDER BY at DESC LIMIT :n;

-- name: firing_of
-- Which schedule a job comes from.
SELECT schedule, number, nominal, at, how, job, missed, ran, note FROM firings WHERE job = :job;

-- name: forget_firings
-- Older than is kept; the last of each schedule stays, to tell how it went.
DELETE FROM firings WHERE (schedule, number) IN (
    SELECT f.schedule, f.number FROM firings AS f JOIN schedules AS s ON s.name = f.schedule
    WHERE f.at < :before AND f.number < s.firings ORDER BY f.at LIMIT :n);

-- name: forget_surplus_firings
-- Of a schedule that fires often: more than anyone will read.
DELETE FROM firings WHERE (schedule, number) IN (
    SELECT f.schedule, f.number FROM schedules AS s
    JOIN firings AS f ON f.schedule = s.name AND f.number <= s.firings - :most LIMIT :n);

-------------------------------------------------------------------------------------- transfer

-- name: export_jobs
-- Everything about a job but who holds it; tags, parents and runs come beside it. Where it was
-- moved to is told as the distance from its place by rank, which holds in another queue, too.
SELECT jobs.id, jobs.state, jobs.priority, jobs.run, jobs.failures, jobs.losses,
       jobs.interruptions, jobs.snoozes, jobs.ready_at, jobs.run_at, jobs.due_at, jobs.expires_at,
       jobs.started_at, jobs.finished_at, jobs.reason, jobs.progress, jobs.progress_note,
       specs.queue, specs.task, specs.command, specs.args, specs.options, specs.created_at,
       specs.name, specs.tags, specs.owner, specs.cwd, environments.vars, specs.host,
       specs.condition, specs.key, keys.concurrency, specs.unique_key, unique_keys.until,
       specs.orphaned, specs.copy_of,
       jobs.rank - (jobs.ready_at - jobs.priority * queues.aging_ms)
FROM jobs
JOIN specs ON specs.id = jobs.id
JOIN queues ON queues.name = specs.queue
LEFT JOIN environments ON environments.id = specs.env
LEFT JOIN keys ON keys.key = specs.key
LEFT JOIN unique_keys ON unique_keys.scope = specs.queue AND unique_keys.key = specs.unique_key
     AND unique_keys.job = jobs.id
WHERE jobs.id > :after ORDER BY jobs.id LIMIT :n;

-- name: export_parents
-- Of a batch of jobs.
SELECT child, parent, needs, met FROM parents
WHERE child {in_ids} ORDER BY child, parent;

-- name: export_runs
-- Of a batch of jobs.
SELECT job, run, started_at, ended_at, how, exit_code, error, tail, result, cpu_ms, peak_bytes
FROM runs
WHERE job {in_ids} ORDER BY job, run;

-- name: export_schedules
-- Everything about schedules; their histories come beside them.
SELECT name, cron, zone, every_ms, at, start_at, end_at, anchor, jitter_ms, missed, overlap, paused,
       fired_by, task, command, args, options, owner, created_at, set_at, next_at, last_at, last_job, firings,
       env
FROM schedules WHERE name > :after_name ORDER BY name LIMIT :n;

-- name: import_schedule
-- As add_schedule, for one that has a past.
INSERT INTO schedules (name, cron, zone, every_ms, at, start_at, end_at, anchor, jitter_ms, missed,
                       overlap, paused, fired_by, task, command, args, options, owner, created_at,
                       set_at, next_at, due_at, last_at, last_job, firings, env)
VALUES (:name, :cron, :zone, :every_ms, :at, :start_at, :end_at, :anchor, :jitter_ms, :missed,
        :overlap, :paused, :fired_by, :task, :command, :args, :options, :owner, :created_at,
        :set_at, :next_at, :due_at, :last_at, :last_job, :firings, :env);

-- name: import_jobs
-- As add_jobs, for jobs that have a past.
INSERT INTO jobs (id, lane, state, priority, ties, waits_on, run, failures, losses, interruptions,
                  snoozes, ready_at, run_at, rank, due_at, expires_at, started_at, finished_at,
                  reason, progress, progress_note)
VALUES (:id, :lane, :state, :priority, :ties, :waits_on, :run, :failures, :losses, :interruptions,
        :snoozes, :ready_at, :run_at, :rank, :due_at, :expires_at, :started_at, :finished_at,
        :reason, :progress, :progress_note);

-- name: last_id [sqlite]
-- Whether there ever was a job: into a new store an import keeps its ids.
SELECT value FROM meta WHERE key = 'last_job';

-- name: ids_from [sqlite]
-- An import that kept its ids: new ones come after them.
UPDATE meta SET value = max(value, :last) WHERE key = 'last_job' RETURNING value;

-- name: last_id [postgres]
-- As there.
SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM job_ids;

-- name: ids_from [postgres]
-- As there.
SELECT setval('job_ids', greatest(last_value, :last)) FROM job_ids;

-- name: request
-- Whether it was made before; one index seek.
SELECT digest, added FROM requests WHERE caller = :caller AND key = :key;

-- name: add_request
-- In the transaction of the jobs it adds, so that both are there or neither is.
INSERT INTO requests (caller, key, digest, added, at)
VALUES (:caller, :key, :digest, :added, :now);

-- name: forget_requests
-- Nobody repeats a request after a day.
DELETE FROM requests WHERE at < :before;

----------------------------------------------------------------------------------- moving a store

-- name: whole_meta
-- Facts about the store: what is of this database alone stays.
SELECT key, value FROM meta;

-- name: whole_queues
-- All of it, to be moved.
SELECT name, paused, weight, concurrency, rate_count, rate_ms, rate_next, aging_ms, dead_letter,
       options
FROM queues;

-- name: whole_lanes
-- All of it, to be moved.
SELECT id, key, queue, kind, host, condition, head, head_job, live FROM lanes;

-- name: whole_keys
-- All of it, to be moved.
SELECT key, concurrency, running FROM keys;

-- name: whole_jobs
-- All of it, to be moved.
SELECT id, lane, worker, ready_at, run_at, rank, due_at, expires_at, started_at, finished_at,
       progress, priority, ties, waits_on, run, failures, losses, interruptions, snoozes,
       cancel_requested, paused, state, reason, progress_note
FROM jobs;

-- name: whole_specs
-- All of it, to be moved.
SELECT id, created_at, env, copy_of, queue, task, command, args, options, name, tags, owner, cwd,
       host, condition, key, unique_key, orphaned
FROM specs;

-- name: whole_tags
-- All of it, to be moved.
SELECT tag, job FROM tags;

-- name: whole_unique_keys
-- All of it, to be moved.
SELECT scope, key, job, until FROM unique_keys;

-- name: whole_parents
-- All of it, to be moved.
SELECT parent, child, needs, met FROM parents;

-- name: whole_runs
-- All of it, to be moved.
SELECT job, run, worker, started_at, ended_at, how, exit_code, error, tail, result, cpu_ms,
       peak_bytes
FROM runs;

-- name: whole_environments
-- All of it, to be moved.
SELECT id, digest, vars FROM environments;

-- name: whole_workers
-- All of it, to be moved.
SELECT id, host, pid, boot, born, program, version, slots, state, started_at, beat, lease_until,
       ended_at
FROM workers;

-- name: whole_changes
-- All of it, to be moved.
SELECT seq, job, at, kind FROM changes;

-- name: whole_schedules
-- All of it, to be moved.
SELECT name, cron, zone, every_ms, at, start_at, end_at, anchor, jitter_ms, missed, overlap, paused,
       fired_by, task, command, args, options, owner, created_at, revision, set_at, next_at, due_at,
       last_at, last_job, firings, env
FROM schedules;

-- name: whole_firings
-- All of it, to be moved.
SELECT schedule, number, nominal, at, how, job, missed, ran, note FROM firings;

-- name: whole_tasks
-- All of it, to be moved.
SELECT name, options, policy FROM tasks;

-- name: whole_requests
-- All of it, to be moved.
SELECT caller, key, digest, added, at FROM requests;

-- name: beyond_ids [postgres]
-- What gives ids goes on after the highest there is.
SELECT setval(pg_get_serial_sequence('lanes', 'id'), max(id)) FROM lanes HAVING max(id) > 0
UNION ALL SELECT setval(pg_get_serial_sequence('environments', 'id'), max(id)) FROM environments
HAVING max(id) > 0
UNION ALL SELECT setval(pg_get_serial_sequence('workers', 'id'), max(id)) FROM workers
HAVING max(id) > 0
UNION ALL SELECT setval(pg_get_serial_sequence('changes', 'seq'), max(seq)) FROM changes
HAVING max(seq) > 0;

----------------------------------------------------------------------------------------- doctor

-- name: server [postgres]
-- What decides whether what was told survives, and whether the store stays quick.
SELECT current_setting('server_version'), pg_is_in_recovery(),
       current_setting('fsync'), current_setting('full_page_writes'), current_setting('autovacuum'),
       reset_val
FROM pg_settings WHERE name = 'synchronous_commit';

-- name: rights [postgres]
-- What the user may do here: make a store, look, add, work, steer; and who owns the store.
SELECT current_user, has_database_privilege(current_database(), 'CREATE'),
       to_regclass(:schema || '.meta') IS NOT NULL,
       coalesce(has_table_privilege(to_regclass(:schema || '.jobs'), 'SELECT'), false),
       coalesce(has_table_privilege(to_regclass(:schema || '.jobs'), 'INSERT'), false),
       coalesce(has_table_privilege(to_regclass(:schema || '.runs'), 'INSERT'), false),
       coalesce(has_table_privilege(to_regclass(:schema || '.queues'), 'DELETE'), false),
       (SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = :schema);

-- name: connections_left [postgres]
-- Those for everyone; a few more are kept for superusers.
SELECT current_setting('max_connections')::integer
       - current_setting('superuser_reserved_connections')::integer - count(*),
       count(*) FILTER (WHERE application_name = 'svcq' AND datname = current_database())
FROM pg_stat_activity WHERE backend_type = 'client backend';

-- name: vacuumed [postgres]
-- The table of ours that has the most to clean up, and when that was last done.
SELECT relname, n_dead_tup, n_live_tup,
       (extract(epoch FROM clock_timestamp() - greatest(last_autovacuum, last_vacuum)) * 1000)::bigint
FROM pg_stat_user_tables WHERE schemaname = :schema ORDER BY n_dead_tup DESC LIMIT 1;

-- name: oldest_transaction [postgres]
-- Nothing that it might still see can be cleaned up, in whichever database of the server.
SELECT pid, coalesce(nullif(application_name, ''), 'a program without a name'), datname,
       (extract(epoch FROM clock_timestamp() - xact_start) * 1000)::bigint
FROM pg_stat_activity
WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend'
ORDER BY xact_start LIMIT 1;
