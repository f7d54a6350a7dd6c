// The code stands behind the #, which no browser sends to anyone: it is posted, and taken out of
// the address, so that it stays in no history.
"use strict";

const said = document.getElementById("said");
const given = new URLSearchParams(location.hash.slice(1));
const code = given.get("code");
// Where to go then: a job, and nothing else that an address could name.
const job = /^[0-9]{1,18}$/.test(given.get("job") ?? "") ? `/jobs/${given.get("job")}` : "/";

async function logIn() {
  history.replaceState(null, "", location.pathname);
  const answer = await fetch("/login", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
  });
  if (answer.ok) {
    location.replace(job);
  } else {
    said.textContent = (await answer.json()).detail;
  }
}

if (code) {
  logIn().catch(() => { said.textContent = "The service does not answer."; });
}
