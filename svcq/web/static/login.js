// The code stands behind the #, which no browser sends to anyone: it is posted, and taken out of
// the address, so that it stays in no history.
"use strict";

const said = document.getElementById("said");
const code = new URLSearchParams(location.hash.slice(1)).get("code");

async function logIn() {
  history.replaceState(null, "", location.pathname);
  const answer = await fetch("/login", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
  });
  if (answer.ok) {
    location.replace("/");
  } else {
    said.textContent = (await answer.json()).detail;
  }
}

if (code) {
  logIn().catch(() => { said.textContent = "The service does not answer."; });
}
