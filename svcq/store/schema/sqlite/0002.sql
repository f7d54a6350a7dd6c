-- A running command can be paused, and a run says what it used. Programs of schema 1 write their
-- rows without these columns, and never look at them.

ALTER TABLE jobs ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN cpu_ms INTEGER;
ALTER TABLE runs ADD COLUMN peak_bytes INTEGER;
