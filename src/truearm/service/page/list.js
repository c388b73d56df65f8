import { $, fetched, notice, number, pause, readings } from "./common.js";

const DECIDED = new Set(["certified", "separated", "tolerable"]);
const SAID = { doubtful: "Nothing is certified", exhausted: "Not decided", indistinguishable: "Too close to tell apart" };
let older = null;
let all = false; // older ones are shown too: then the list no longer renews itself

function said(one) {
  if (one.best !== null) return `${one.best} is best`;
  if (one.status !== null) return SAID[one.status] ?? "No winner";
  if (one.pulls === one.out) return "No reading yet";
  return one.leader === null ? "Too early to tell" : `${one.leader} leads`;
}

function stateOf(one) {
  if (DECIDED.has(one.status)) return "decided";
  if (one.status === "doubtful") return "doubtful";
  return one.done ? "ended" : "running";
}

function card(one) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = `/s/${encodeURIComponent(one.id)}`;
  const part = (name, text, kind = "") => {
    const found = document.createElement(name);
    found.textContent = text;
    found.className = kind;
    link.append(found);
  };
  part("h2", one.title);
  part("p", said(one), "said");
  const state = stateOf(one);
  part("span", state, `chip ${state}`);
  part("p", `${readings(one.pulls - one.out)} of ${number(one.arms)} ${one.arms === 1 ? "arm" : "arms"}${one.out ? `, ${number(one.out)} being measured` : ""}`, "note");
  item.append(link);
  return item;
}

async function show(path, add) {
  const page = await fetched(path);
  const items = page.studies.map(card);
  if (add) $("studies").append(...items);
  else $("studies").replaceChildren(...items);
  $("loading").hidden = true;
  older = page.next;
  $("more").hidden = older === null;
  $("none").hidden = $("studies").children.length > 0;
}

$("more").onclick = async () => {
  all = true;
  try {
    await show(older, true);
  } catch (error) {
    notice(error.message);
  }
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
