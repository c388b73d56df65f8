import { $, fetched, notice, number, pause, study, typed } from "./common.js";

const path = `/studies/${encodeURIComponent(study)}`;
const KEPT = "truearm-worker";
let ticket = null;
let arm = "";
let asker = ""; // under which name it was asked for
let mine = 0;

function only(id) {
  for (const one of ["who", "card", "done"]) $(one).hidden = one !== id;
  $("rename").hidden = id !== "card";
}

function ended(text, link = "See the result", href = `/s/${encodeURIComponent(study)}`) {
  only("done");
  $("verdict").textContent = text;
  $("study").textContent = link;
  $("study").href = href;
}

// between two pulls the card accepts nothing: it would belong to neither
function hold(pull) {
  ticket = pull;
  $("value").readOnly = pull === null; // a field that is disabled would close the keyboard of a phone
  for (const button of $("card").querySelectorAll("button")) button.disabled = pull === null;
}

// nothing is lost by trying again: asking gives the open pull, telling twice counts once
async function insist(work) {
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
  const worker = localStorage.getItem(KEPT);
  const asked = await insist(() => fetched(`${path}/ask`, { worker, n: 1 }));
  if (!asked.pulls.length) {
    if (!asked.done) {
      ended("Nothing to measure just now", "See how it stands");
      await pause(5);
      return next();
    }
    const found = await insist(() => fetched(path));
    ended(found.result?.best ? `Done: ${found.result.best} is best` : "Done. Thank you.");
    return undefined;
  }
  hold(asked.pulls[0].ticket);
  arm = asked.pulls[0].arm;
  asker = worker;
  $("arm").textContent = arm;
  $("arm").classList.toggle("long", arm.length > 24);
  $("value").value = "";
  only("card");
  if (!$("tell-form").hidden) $("value").focus();
  return undefined;
}

async function tell(value) {
  if (ticket === null) return;
  const worker = localStorage.getItem(KEPT);
  const now = ticket;
  hold(null); // two taps are one reading
  try {
    const told = await insist(() => fetched(`${path}/tell`, { readings: [{ ticket: now, value, arm }], worker }));
    const refused = told.outcomes[0].outcome === "refused";
    notice(refused ? `Not counted: ${told.outcomes[0].detail}. Does someone else here use the name ${worker}?` : "");
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
  const value = typed($("value").value);
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
    const given = await insist(() => fetched(`${path}/release`, { tickets: [now], worker: asker }));
    await next();
    const { outcome, detail } = given.outcomes[0];
    if (outcome === "refused") notice(`Not given back: ${detail}.`);
  } catch (error) {
    hold(now);
    notice(error.message);
  }
};
$("rename").onclick = () => {
  $("worker").value = localStorage.getItem(KEPT);
  only("who");
  $("worker").select();
};
$("who-form").onsubmit = (event) => {
  event.preventDefault();
  const name = $("worker").value.trim();
  if (!name) return;
  localStorage.setItem(KEPT, name);
  if (ticket === null) begin();
  else only("card"); // the open pull stays; only the worker's name changes
  greet();
};
const greet = () => ($("count").textContent = `You are ${localStorage.getItem(KEPT)}.`);

async function begin() {
  if (!localStorage.getItem(KEPT)) {
    only("who");
    $("worker").focus();
    return undefined;
  }
  greet();
  try {
    const found = await insist(() => fetched(path));
    notice("");
    $("title").textContent = found.title;
    if (found.passive) {
      ended("Nobody is asked here: readings arrive on their own");
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
    notice("Check the address, or choose one of the studies.");
    ended("There is no such study", "All studies", "/");
  }
  return undefined;
}
begin();
