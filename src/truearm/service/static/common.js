// Shared by all pages: the reader's token, requests, and error messages.
const KEPT = "truearm-token";

// a link may carry a token behind #, which no server sees; it is taken out of the address at once
const given = new URLSearchParams(location.hash.slice(1)).get("token")?.trim();
if (given) {
  sessionStorage.setItem(KEPT, given);
  history.replaceState(null, "", location.pathname + location.search);
}

// mark the current page, also for screen readers
for (const link of document.querySelectorAll("nav a:not(.brand)")) {
  if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not the address of a study
  }
}

export const $ = (id) => document.getElementById(id);
export const study = decoded(location.pathname.split("/")[2] ?? "");
export const number = (n) => n.toLocaleString("en-US");
export const readings = (n) => `${number(n)} ${n === 1 ? "reading" : "readings"}`;

const UNITS = [["day", 86_400], ["hour", 3600], ["minute", 60]];
export function ago(seconds) {
  const past = Date.now() / 1000 - seconds;
  const [unit, size] = UNITS.find(([, length]) => past >= length) ?? [];
  return unit ? new Intl.RelativeTimeFormat("en-US").format(-Math.floor(past / size), unit) : "just now";
}

const DECIDED = new Set(["certified", "separated", "tolerable"]);
export function stateOf({ status, done }) {
  if (DECIDED.has(status)) return "decided";
  if (status === "doubtful" || status === "broken") return status;
  return done ? "ended" : "running";
}

export class Problem extends Error {
  constructor(status, text, field) {
    super(text);
    this.status = status;
    this.field = field;
  }
}

export function notice(text, fine = false, link = null) {
  const box = $("notice");
  box.hidden = !text;
  box.classList.toggle("fine", fine);
  const more = link ? [" ", Object.assign(document.createElement("a"), link)] : [];
  if (box.textContent !== text || link) box.replaceChildren(text, ...more);
}

const NO_TOKEN = "That is not a token: it has characters that no token has. Copy it again.";
const isToken = (text) => /^[!-~]*$/.test(text); // others cannot be sent
let wanted = null; // all requests that need another token wait for the same one
let seen = false; // whether a request has succeeded, so that the page has content

// a refused request waits here for another token; what was typed on the page stays
function tokenFor(why) {
  $("token-why").textContent = why;
  wanted ??= new Promise((given) => {
    const form = $("token-form");
    form.hidden = false;
    $("main").hidden = !seen;
    notice("");
    $("token").value = "";
    $("token").focus();
    form.scrollIntoView({ block: "nearest" });
    form.onsubmit = (event) => {
      event.preventDefault();
      const token = $("token").value.trim();
      if (!isToken(token)) {
        $("token-why").textContent = NO_TOKEN;
        return;
      }
      sessionStorage.setItem(KEPT, token);
      form.hidden = true;
      $("main").hidden = false;
      wanted = null;
      given();
    };
  });
  return wanted;
}

function whyNot(status, detail, token) {
  if (status === 401 && !token) return "This server needs a token.";
  return detail ? `${detail[0].toUpperCase()}${detail.slice(1)}.` : "This needs another token.";
}

export async function request(path, body, signal, other = {}) {
  const more = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const kind = body === undefined ? {} : { "Content-Type": "application/json" };
  for (;;) {
    const token = sessionStorage.getItem(KEPT) ?? "";
    if (!isToken(token)) {
      await tokenFor(NO_TOKEN);
      continue;
    }
    const who = token ? { Authorization: `Bearer ${token}` } : {};
    let answer;
    try {
      answer = await fetch(path, { ...more, headers: { ...who, ...kind, ...other }, signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem(0, "No connection to the server. Nothing is lost; this page tries again.");
    }
    if (answer.ok) {
      seen = true;
      return answer;
    }
    const told = await answer.json().catch(() => ({}));
    if (answer.status !== 401 && answer.status !== 403)
      throw new Problem(answer.status, told.detail ?? `The server answered ${answer.status}.`, told.field);
    await tokenFor(whyNot(answer.status, told.detail, token));
  }
}

// what people type: a comma may stand for the point, but 1,234 may be two things
export function typed(text) {
  const plain = text.trim().replace(/^([-+]?\d*),(\d{1,2}|\d{4,})$/, "$1.$2");
  return /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(plain) ? Number(plain) : null;
}

export const fetched = async (path, body, signal) => (await request(path, body, signal)).json();
export const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

// a link to a file that needs the token: it is fetched with it and then saved
export function saving(link, path, name, other) {
  link.href = path;
  link.onclick = async (event) => {
    event.preventDefault();
    try {
      const blob = await (await request(path, undefined, undefined, other)).blob();
      const made = document.createElement("a");
      made.href = URL.createObjectURL(blob);
      made.download = name;
      made.click();
      setTimeout(() => URL.revokeObjectURL(made.href), 60_000);
    } catch (error) {
      notice(error.message);
    }
  };
}
