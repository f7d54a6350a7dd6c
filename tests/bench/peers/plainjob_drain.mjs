// Queue jobs with plainjob, drain them, print the jobs a second.
import Database from "better-sqlite3";
import { better, defineQueue } from "plainjob";

const [file, n] = process.argv.slice(2);
const silent = { error() {}, warn() {}, info() {}, debug() {} };
const queue = defineQueue({ connection: better(new Database(file)), logger: silent });
queue.addMany("work", Array.from({ length: Number(n) }, (_, i) => ({ to: "someone@example.org", subject: "hello", n: i })));
let done = 0;
let job;
const start = performance.now();
while ((job = queue.getAndMarkJobAsProcessing("work")) !== undefined) {
  queue.getJobById(job.id);
  queue.markJobAsDone(job.id);
  done += 1;
}
console.log((done / (performance.now() - start)) * 1000);
queue.close();
