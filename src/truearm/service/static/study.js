import { $, downloadOnClick, fetchJson, notice, number, pause, readings, request, stateOf, study } from "./common.js";

const path = `/studies/${encodeURIComponent(study)}`;
let position = 0;
let lost = false;

// redrawing keeps the position of the slider
function sliderState() {
  const slider = $("eps");
  const adversary = document.querySelector("input[name=adversary]:checked");
  return slider && { at: slider.value, of: slider.max, adversary: adversary?.value };
}

function restore(kept) {
  const slider = $("eps");
  if (!kept || !slider || slider.max !== kept.of) return;
  slider.value = kept.at;
  const radio = document.querySelector(`input[name=adversary][value="${CSS.escape(kept.adversary ?? "")}"]`);
  if (radio) radio.checked = true;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
}

function write(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

function draw(live) {
  document.querySelector(".actions").hidden = false;
  document.title = `${live.answer} - ${live.title}`;
  write("title", live.title);
  write("answer", live.answer);
  $("answer").classList.toggle("long", live.answer.length > 120);
  const state = stateOf({ status: live.status, done: live.done && !live.passive });
  write("chip", state);
  $("chip").className = `chip ${state}`;
  $("chip").hidden = false;
  write("summary", live.summary);
  write("pulls", readings(live.pulls - live.out.length));
  const pending = live.done ? [] : live.out;
  const people = [...new Set(pending.map((one) => one.worker).filter(Boolean))];
  write("out", pending.length ? `${number(pending.length)} being measured${people.length ? ` by ${people.join(", ")}` : ""}` : "");
  $("next").hidden = live.done || live.passive;
  $("how").hidden = live.done || live.pulls > live.out.length;
  for (const one of document.querySelectorAll("#how [data-passive]")) one.hidden = one.dataset.passive !== String(live.passive);
  const kept = sliderState();
  const focus = document.activeElement?.id;
  const open = [...document.querySelectorAll("#sections details")].map((one) => one.open);
  $("picture").textContent = JSON.stringify(live.picture);
  $("sections").innerHTML = live.sections;
  for (const one of $("sections").querySelectorAll("[data-style]")) one.style.cssText = one.dataset.style;
  document.querySelectorAll("#sections details").forEach((one, i) => (one.open = open[i] ?? one.open));
  window.slide();
  restore(kept);
  if (focus) $(focus)?.focus();
}

async function refresh() {
  const live = await fetchJson(`${path}/live`);
  position = Math.max(position, live.position);
  draw(live);
  return live;
}

// follow events; after a lost connection, continue after the last one received
async function follow(update) {
  const answer = await request(`${path}/events`, undefined, undefined, { "Last-Event-ID": String(position) });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  if (lost) {
    notice("Connected again.", true);
    setTimeout(() => lost || notice(""), 5000);
  }
  lost = false;
  update();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("The connection ended.");
    const messages = (rest + value).split("\n\n");
    rest = messages.pop();
    const ids = messages.map((message) => /^id: (\d+)$/m.exec(message)?.[1]).filter(Boolean);
    if (!ids.length) continue;
    position = Math.max(position, Number(ids.at(-1)));
    update();
  }
}

let isStale = false;
let busy = false;
async function update() {
  isStale = true;
  if (busy) return;
  busy = true;
  while (isStale) {
    isStale = false;
    const began = performance.now();
    try {
      await refresh();
    } catch (error) {
      notice(error.message);
      break;
    }
    await pause(Math.max(0.5, (2 * (performance.now() - began)) / 1000)); // a third of the server's time at most
  }
  busy = false;
}

$("next").href = `/s/${encodeURIComponent(study)}/next`;
downloadOnClick($("csv"), `${path}/readings.csv`, `${study}.csv`);
downloadOnClick($("report"), `${path}/report`, `${study}.html`);
downloadOnClick($("json"), `${path}/report`, `${study}.json`, { Accept: "application/json" });
$("how-next").href = $("next").href;
$("how-next").textContent = $("next").href;
$("how-work").textContent = `truearm work ${location.origin} ${study} -- ./measure {arm}`;
$("how-give").textContent = `POST ${location.origin}${path}/readings`;
$("how-client").textContent = `study = truearm.Client("${location.origin}", "${study}")`;

addEventListener("load", async () => {
  try {
    await refresh();
  } catch (error) {
    notice(error.status === 404 ? "Check the address, or choose a study from the list." : error.message);
    if (error.status === 404) {
      write("answer", "No such study");
      $("elsewhere").hidden = false;
      return;
    }
  }
  for (let wait = 0.5; ; wait = Math.min(2 * wait, 5)) {
    try {
      await follow(() => {
        wait = 0.5;
        update();
      });
    } catch {
      lost = true;
      notice("Connection lost. This page may be out of date; it will reconnect.");
      await pause(wait);
    }
  }
});
