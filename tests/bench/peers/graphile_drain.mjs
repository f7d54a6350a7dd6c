// Queue empty jobs with graphile-worker, run them with its worker; print the jobs a second, of both.
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const [address, n] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: address, max: 20 });
const logger = new Logger(() => () => {});
const utils = await makeWorkerUtils({ pgPool: pool, logger });
await utils.migrate();
let start = performance.now();
const jobs = Array.from({ length: Number(n) }, (_, i) => ({ identifier: "work", payload: { n: i } }));
await utils.addJobs(jobs);
const added = (n / (performance.now() - start)) * 1000;

let left = Number(n);
let ended;
const all = new Promise((resolve) => { ended = resolve; });
start = performance.now();
const runner = await run({
  pgPool: pool, logger, concurrency: 10, noHandleSignals: true,
  taskList: { work: async () => { left -= 1; if (left === 0) ended(); } },
});
await all;
await runner.stop();
console.log(added, (n / (performance.now() - start)) * 1000);
await utils.release();
await pool.end();
