import { $, fetched, notice, number, typed } from "./common.js";

const kind = () => document.querySelector("input[name=kind]:checked").value;
const arms = () => $("arms").value.split("\n").map((line) => line.trim()).filter(Boolean);
const decimal = (id) => typed($(id).value.replace(/%\s*$/, "")) ?? NaN;
const isShare = () => kind() === "share";

const BAD = "Bad readings: a percentage from 0 to below 50.";
const FIELDS = { arms: "arms", id: "id-in", title: "title-in", contamination: "eps" };
const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 64).replace(/^-+|-+$/g, "");
let named = false; // by hand
let asking = null;
let timer = 0;
let question = ""; // what the estimate is of

function words(found, eps) {
  if (found.pulls !== null) return `About ${number(found.pulls)} readings in all would decide, if the readings turn out clean.`;
  if (!found.largest_eps) return "No number of readings would decide.";
  const most = Math.floor(1000 * found.largest_eps) / 10;
  return `No number of readings would decide with ${eps}% bad ones: such a difference can be told up to ${most}%.`;
}

function renew() {
  const now = [arms().length, $("gap").value, $("eps").value, kind()].join();
  if (now === question) return;
  question = now;
  asking?.abort();
  write("Estimating ...");
  clearTimeout(timer);
  timer = setTimeout(estimate, 300);
}

async function estimate() {
  const [k, gap, eps] = [arms().length, decimal("gap"), decimal("eps")];
  if (k < 2) return write("Enter two arms or more.");
  if (!(gap > 0)) return write("Name a difference to see how many readings it may take.");
  if (!(eps >= 0 && eps < 50)) return write(BAD);
  asking = new AbortController();
  const share = isShare() ? { share: 0.5, gap: gap / 100 } : { gap };
  try {
    const found = await fetched("/estimate", { arms: k, contamination: eps / 100, ...share }, asking.signal);
    write(words(found, eps));
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
  renew();
});
document.querySelectorAll("input[name=kind]").forEach((one) => {
  one.onchange = () => {
    $("gap").value = isShare() ? "20" : "0.5";
    renew();
  };
});
$("new-form").onsubmit = async (event) => {
  event.preventDefault();
  const eps = decimal("eps");
  if (!(eps >= 0 && eps < 50)) return wrong("eps", BAD);
  const twice = arms().find((name, i, all) => all.indexOf(name) !== i);
  if (twice) return wrong("arms", `Two arms are called "${twice}". Give each its own name.`);
  const id = $("id-in").value.trim();
  const target = isShare() ? { at_least: 1 } : { goal: kind() };
  $("begin").disabled = true; // two taps are one study
  try {
    const made = await fetched("/studies", {
      title: $("title-in").value.trim(), arms: arms(), contamination: eps / 100, ...target, ...(id && { id }),
    });
    const address = `/s/${encodeURIComponent(made.id)}`;
    if (made.created) location.href = address;
    else wrong("id-in", "This study is there already, with the same arms. Choose another address for a new one.", { href: address, textContent: "Open it" });
  } catch (error) {
    wrong(FIELDS[error.field?.replace(/[.[].*/, "")], error.message);
  }
  $("begin").disabled = false;
  return undefined;
};

function wrong(id, text, link) {
  notice(text, false, link);
  if (!id) return;
  $(id).setAttribute("aria-invalid", "true");
  $(id).focus();
}
renew();
