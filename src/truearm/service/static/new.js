import { $, fetchJson, notice, number, parseNumber } from "./common.js";

const kind = () => document.querySelector("input[name=kind]:checked").value;
const arms = () => $("arms").value.split("\n").map((line) => line.trim()).filter(Boolean);
const decimal = (id) => parseNumber($(id).value.replace(/%\s*$/, "")) ?? NaN;
const isShare = () => kind() === "share";

const BAD = "Bad readings: a percentage from 0 to below 50.";
const FIELDS = { arms: "arms", id: "id-in", title: "title-in", contamination: "eps" };
const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 64).replace(/^-+|-+$/g, "");
let named = false; // the user typed an address
let controller = null;
let timer = 0;
let question = ""; // the inputs of the estimate shown

function describe(found, eps) {
  if (found.pulls !== null) return `About ${number(found.pulls)} readings in total would decide, if none is bad.`;
  if (!found.largest_eps) return "No number of readings would be enough.";
  const most = Math.floor(1000 * found.largest_eps) / 10;
  return `With ${eps}% bad readings, no number would be enough: this difference can be found with up to ${most}%.`;
}

function scheduleEstimate() {
  const now = [arms().length, $("gap").value, $("eps").value, kind()].join();
  if (now === question) return;
  question = now;
  controller?.abort();
  write("Estimating ...");
  clearTimeout(timer);
  timer = setTimeout(estimate, 300);
}

async function estimate() {
  const [k, gap, eps] = [arms().length, decimal("gap"), decimal("eps")];
  if (k < 2) return write("Enter at least two arms.");
  if (!(gap > 0)) return write("Enter a difference to see how many readings it may take.");
  if (!(eps >= 0 && eps < 50)) return write(BAD);
  controller = new AbortController();
  const share = isShare() ? { share: 0.5, gap: gap / 100 } : { gap };
  try {
    const found = await fetchJson("/estimate", { arms: k, contamination: eps / 100, ...share }, controller.signal);
    write(describe(found, eps));
  } catch (error) {
    if (error.name === "AbortError") return undefined;
    write(error.message);
    question = ""; // the next change requests an estimate again
  }
  return undefined;
}

function write(text) {
  $("estimate").textContent = text;
}

$("id-in").oninput = () => (named = $("id-in").value !== "");
$("title-in").oninput = () => {
  if (!named) $("id-in").value = slug($("title-in").value);
};
$("new-form").addEventListener("input", (event) => {
  event.target.removeAttribute("aria-invalid");
  $("gap-label").textContent = isShare()
    ? "A difference worth finding, in points of 100"
    : "A difference worth finding, in standard deviations of the readings";
  scheduleEstimate();
});
document.querySelectorAll("input[name=kind]").forEach((one) => {
  one.onchange = () => {
    $("gap").value = isShare() ? "20" : "0.5";
    scheduleEstimate();
  };
});
$("new-form").onsubmit = async (event) => {
  event.preventDefault();
  const eps = decimal("eps");
  if (!(eps >= 0 && eps < 50)) return showError("eps", BAD);
  const duplicate = arms().find((name, i, all) => all.indexOf(name) !== i);
  if (duplicate) return showError("arms", `Two arms are named "${duplicate}". Give them different names.`);
  const id = $("id-in").value.trim();
  const target = isShare() ? { at_least: 1 } : { goal: kind() };
  $("begin").disabled = true; // a double tap is one study
  try {
    const made = await fetchJson("/studies", {
      title: $("title-in").value.trim(), arms: arms(), contamination: eps / 100, ...target, ...(id && { id }),
    });
    const address = `/s/${encodeURIComponent(made.id)}`;
    if (made.created) location.href = address;
    else showError("id-in", "This study already exists, with the same arms. Choose another address for a new one.", { href: address, textContent: "Open it" });
  } catch (error) {
    showError(FIELDS[error.field?.replace(/[.[].*/, "")], error.message);
  }
  $("begin").disabled = false;
  return undefined;
};

function showError(id, text, link) {
  notice(text, false, link);
  if (!id) return;
  $(id).setAttribute("aria-invalid", "true");
  $(id).focus();
}
scheduleEstimate();
