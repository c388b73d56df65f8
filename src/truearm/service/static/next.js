import { $, fetchJson, notice, number, parseNumber, pause, study } from "./common.js";

const path = `/studies/${encodeURIComponent(study)}`;
const WORKER_KEY = "truearm-worker";
let ticket = null;
let arm = "";
let asker = ""; // the worker who asked for the pull
let mine = 0;

function showOnly(id) {
  for (const one of ["who", "card", "done"]) $(one).hidden = one !== id;
  $("rename").hidden = id !== "card";
}

function showEnd(text, link = "See the result", href = `/s/${encodeURIComponent(study)}`) {
  showOnly("done");
  $("verdict").textContent = text;
  $("study").textContent = link;
  $("study").href = href;
}

// between two pulls the form accepts nothing
function hold(pull) {
  ticket = pull;
  $("value").readOnly = pull === null; // disabling the field would close the keyboard of a phone
  for (const button of $("card").querySelectorAll("button")) button.disabled = pull === null;
}

// requests can be repeated: ask returns the open pull, and a second tell is ignored
async function retry(work) {
  for (let wait = 1; ; wait = Math.min(2 * wait, 10)) {
    try {
      const found = await work();
      if (wait > 1) notice("");
      return found;
    } catch (error) {
      notice(error.message);
      if (error.status && error.status < 500 && error.status !== 429) throw error;
      await pause(wait);
    }
  }
}

async function next() {
  hold(null);
  const worker = localStorage.getItem(WORKER_KEY);
  const batch = await retry(() => fetchJson(`${path}/ask`, { worker, n: 1 }));
  if (!batch.pulls.length) {
    if (!batch.done) {
      showEnd("Nothing to measure right now", "See the current state");
      await pause(5);
      return next();
    }
    const found = await retry(() => fetchJson(path));
    showEnd(found.result?.best ? `Done: ${found.result.best} is best` : "Done. Thank you.");
    return undefined;
  }
  hold(batch.pulls[0].ticket);
  arm = batch.pulls[0].arm;
  asker = worker;
  $("arm").textContent = arm;
  $("arm").classList.toggle("long", arm.length > 24);
  $("value").value = "";
  showOnly("card");
  if (!$("tell-form").hidden) $("value").focus();
  return undefined;
}

async function tell(value) {
  if (ticket === null) return;
  const worker = localStorage.getItem(WORKER_KEY);
  const now = ticket;
  hold(null); // a double tap is one reading
  try {
    const found = await retry(() => fetchJson(`${path}/tell`, { readings: [{ ticket: now, value, arm }], worker }));
    const refused = found.outcomes[0].outcome === "refused";
    notice(refused ? `Not counted: ${found.outcomes[0].detail}. Is someone else using the name ${worker}?` : "");
    if (!refused) mine += 1;
    $("count").textContent = `${number(mine)} measured by you, ${worker}`;
    await next();
  } catch (error) {
    hold(now);
    notice(error.message);
  }
}

$("tell-form").onsubmit = (event) => {
  event.preventDefault();
  const value = parseNumber($("value").value);
  if (value === null || !Number.isFinite(value)) {
    notice(`A reading is a number such as 12.5 or 1250, not "${$("value").value}".`);
    $("value").select();
    return;
  }
  tell(value);
};
for (const button of $("yes-no").children) button.onclick = () => tell(Number(button.dataset.value));
$("missing").onclick = () => tell(null);
$("release").onclick = async () => {
  if (ticket === null) return;
  const now = ticket;
  hold(null);
  try {
    const released = await retry(() => fetchJson(`${path}/release`, { tickets: [now], worker: asker }));
    await next();
    const { outcome, detail } = released.outcomes[0];
    if (outcome === "refused") notice(`Not released: ${detail}.`);
  } catch (error) {
    hold(now);
    notice(error.message);
  }
};
$("rename").onclick = () => {
  $("worker").value = localStorage.getItem(WORKER_KEY);
  showOnly("who");
  $("worker").select();
};
$("who-form").onsubmit = (event) => {
  event.preventDefault();
  const name = $("worker").value.trim();
  if (!name) return;
  localStorage.setItem(WORKER_KEY, name);
  if (ticket === null) begin();
  else showOnly("card"); // the open pull stays; only the worker's name changes
  greet();
};
const greet = () => ($("count").textContent = `You are ${localStorage.getItem(WORKER_KEY)}.`);

async function begin() {
  if (!localStorage.getItem(WORKER_KEY)) {
    showOnly("who");
    $("worker").focus();
    return undefined;
  }
  greet();
  try {
    const found = await retry(() => fetchJson(path));
    notice("");
    $("title").textContent = found.title;
    if (found.passive) {
      showEnd("Nothing to measure here: programs send the readings");
      return undefined;
    }
    const { at_least: least, at_most: most } = found.definition.problem ?? found.definition;
    const yes = least === 1 || least === 0.5;
    $("yes-no").hidden = !yes;
    $("tell-form").hidden = yes;
    if (!yes && (least ?? null) !== null) $("hint").textContent = `A success is ${least} or more.`;
    if ((most ?? null) !== null) $("hint").textContent = `A success is ${most} or less.`;
    await next();
  } catch (error) {
    if (error.status !== 404) return notice(error.message);
    notice("Check the address, or choose a study from the list.");
    showEnd("No such study", "All studies", "/");
  }
  return undefined;
}
begin();
