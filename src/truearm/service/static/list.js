import { $, ago, fetchJson, notice, number, pause, readings, stateOf } from "./common.js";

const STATUS_TEXT = { doubtful: "Nothing is certified", exhausted: "Not decided", indistinguishable: "Too close to tell apart" };
let older = null;
let all = false; // older studies are shown too, and the list is no longer refreshed
let drawn = ""; // the content of the list

function headline(one) {
  if (one.problem) return "Cannot be read";
  if (one.best !== null) return `${one.best} is best`;
  if (one.status !== null) return STATUS_TEXT[one.status] ?? "No winner";
  if (one.pulls === one.out) return "No reading yet";
  return one.leader === null ? "Too early to tell" : `${one.leader} leads`;
}

function card(one) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  const state = stateOf(one);
  link.href = `/s/${encodeURIComponent(one.id)}`;
  item.className = state;
  const part = (name, text, kind) => {
    const found = document.createElement(name);
    found.textContent = text;
    found.className = kind;
    link.append(found);
  };
  part("h2", one.title, "kicker");
  part("span", state, `chip ${state}`);
  part("p", headline(one), "headline");
  if (one.problem) part("p", one.problem, "note");
  const out = one.out && !one.done ? `, ${number(one.out)} being measured` : "";
  part("p", `${readings(one.pulls - one.out)} of ${number(one.arms)} ${one.arms === 1 ? "arm" : "arms"}${out}`, "note");
  part("p", `started ${ago(one.began)}`, "note");
  item.append(link);
  return item;
}

async function show(path, add) {
  const page = await fetchJson(path);
  const now = JSON.stringify(page);
  if (!add && (all || now === drawn)) return; // older studies were added, or nothing changed
  const focus = document.activeElement?.getAttribute("href");
  if (add) $("studies").append(...page.studies.map(card));
  else $("studies").replaceChildren(...page.studies.map(card));
  drawn = now;
  if (focus) document.querySelector(`#studies a[href="${CSS.escape(focus)}"]`)?.focus();
  $("loading").hidden = true;
  older = page.next;
  $("more").hidden = older === null;
  $("none").hidden = $("studies").children.length > 0;
}

$("more").onclick = async () => {
  all = true;
  $("more").disabled = true; // a double tap is one page
  try {
    await show(older, true);
  } catch (error) {
    notice(error.message);
  }
  $("more").disabled = false;
};

while (!all) {
  try {
    await show("/studies", false);
    notice("");
  } catch (error) {
    notice(error.message);
  }
  await pause(3);
}
