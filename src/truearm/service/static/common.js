// Shared by all pages: the user's token, requests, and error messages.
const TOKEN_KEY = "truearm-token";

// a link may have a token after #, which browsers do not send; it is removed from the address right away
const given = new URLSearchParams(location.hash.slice(1)).get("token")?.trim();
if (given) {
  sessionStorage.setItem(TOKEN_KEY, given);
  history.replaceState(null, "", location.pathname + location.search);
}

// mark the current page, also for screen readers
for (const link of document.querySelectorAll("nav a:not(.brand)")) {
  if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not a valid address
  }
}

export const $ = (id) => document.getElementById(id);
export const study = decode(location.pathname.split("/")[2] ?? "");
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

const NO_TOKEN = "This is not a token: it contains characters that tokens do not have. Copy it again.";
const isToken = (text) => /^[!-~]*$/.test(text); // HTTP headers cannot hold other characters
let newToken = null; // all requests that need another token wait for the same one
let hasContent = false; // after the first request that succeeded

// a refused request waits for another token; form fields keep their values
function waitForToken(why) {
  $("token-why").textContent = why;
  newToken ??= new Promise((resolve) => {
    const form = $("token-form");
    form.hidden = false;
    $("main").hidden = !hasContent;
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
      sessionStorage.setItem(TOKEN_KEY, token);
      form.hidden = true;
      $("main").hidden = false;
      newToken = null;
      resolve();
    };
  });
  return newToken;
}

function describeRefusal(status, detail, token) {
  if (status === 401 && !token) return "This server needs a token.";
  return detail ? `${detail[0].toUpperCase()}${detail.slice(1)}.` : "This action needs another token.";
}

export async function request(path, body, signal, other = {}) {
  const more = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const kind = body === undefined ? {} : { "Content-Type": "application/json" };
  for (;;) {
    const token = sessionStorage.getItem(TOKEN_KEY) ?? "";
    if (!isToken(token)) {
      await waitForToken(NO_TOKEN);
      continue;
    }
    const auth = token ? { Authorization: `Bearer ${token}` } : {};
    let answer;
    try {
      answer = await fetch(path, { ...more, headers: { ...auth, ...kind, ...other }, signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem(0, "No connection to the server. Nothing is lost; this page will try again.");
    }
    if (answer.ok) {
      hasContent = true;
      return answer;
    }
    const problem = await answer.json().catch(() => ({}));
    if (answer.status !== 401 && answer.status !== 403)
      throw new Problem(answer.status, problem.detail ?? `The server returned status ${answer.status}.`, problem.field);
    await waitForToken(describeRefusal(answer.status, problem.detail, token));
  }
}

// a comma may be a decimal point, but 1,234 is ambiguous and refused
export function parseNumber(text) {
  const plain = text.trim().replace(/^([-+]?\d*),(\d{1,2}|\d{4,})$/, "$1.$2");
  return /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(plain) ? Number(plain) : null;
}

export const fetchJson = async (path, body, signal) => (await request(path, body, signal)).json();
export const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

// make a link download a file that needs the token
export function downloadOnClick(link, path, name, other) {
  link.href = path;
  link.onclick = async (event) => {
    event.preventDefault();
    try {
      const blob = await (await request(path, undefined, undefined, other)).blob();
      const anchor = document.createElement("a");
      anchor.href = URL.createObjectURL(blob);
      anchor.download = name;
      anchor.click();
      setTimeout(() => URL.revokeObjectURL(anchor.href), 60_000);
    } catch (error) {
      notice(error.message);
    }
  };
}
