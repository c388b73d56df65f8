"use strict";
// The page is complete without this script. It moves the intervals to the contamination a reader asks about; every
// number and every word it shows was computed when the page was written.
function slide() {
  const picture = document.getElementById("picture");
  const controls = document.querySelector(".controls");
  if (!picture || !controls) return;
  const view = JSON.parse(picture.textContent);

  const slider = document.getElementById("eps");
  const chosen = document.getElementById("eps-chosen");
  const standing = document.getElementById("standing");
  const rows = [...document.querySelectorAll("#intervals .row[data-arm]")];

  const adversary = () => controls.querySelector("input[name=adversary]:checked").value;

  function place(row, [low, high, coreLow, coreHigh]) {
    const inside = (x) => Math.min(Math.max(x, 0), 1000);
    const stretch = (name, from, to) => {
      const rect = row.querySelector(name);
      rect.setAttribute("x", inside(from));
      rect.setAttribute("width", Math.max(0, inside(to) - inside(from)));
    };
    stretch(".sampling", low, high);
    stretch(".core", coreLow, coreHigh);
    row.classList.toggle("open-low", low < 0);
    row.classList.toggle("open-high", high > 1000);
  }

  function draw() {
    const at = Number(slider.value);
    const eps = view.eps[at];
    const world = view.adversaries[adversary()];
    const cells = view.intervals[world.intervals][at];
    const sentence = world.sentences[world.sentence[at]];
    rows.forEach((row) => {
      const arm = Number(row.dataset.arm);
      const [where, ...ends] = cells[arm];
      const isSettled = world.points[arm] !== null && eps <= world.points[arm];
      const isBest = arm === view.leader && sentence.decided;
      place(row, ends);
      row.classList.toggle("excluded", isSettled && !view.may_tie[arm]);
      row.classList.toggle("best", isBest);
      row.querySelector(".where").textContent = where;
      row.querySelector(".state").textContent = world.states[arm][isSettled || isBest ? 1 : 0];
      row.querySelector("svg").setAttribute("aria-label", `${view.what}: ${where}`);
    });
    chosen.textContent = view.percent[at];
    slider.setAttribute("aria-valuetext", `${view.percent[at]} may be bad`);
    const said = world.openings[at] + sentence.text;
    if (standing.textContent !== said) standing.textContent = said;
    mark(".above", view.declared);
    mark(".below", world.breakdown);
  }

  function mark(side, label) {
    const box = controls.querySelector(`.marks${side}`);
    box.replaceChildren();
    if (!label) return;
    const share = label.at / (view.eps.length - 1);
    const span = document.createElement("span");
    span.textContent = label.text;
    span.style.left = `${100 * share}%`;
    if (share < 0.25) span.className = "start";
    if (share > 0.75) span.className = "end";
    box.append(span);
  }

  controls.hidden = false;
  document.querySelector(".scriptless").hidden = true;
  controls.addEventListener("input", draw);
  draw();
}
// On a phone everything below the chart and its table starts folded.
if (matchMedia("(max-width: 46rem)").matches) {
  document.querySelectorAll("details.fold").forEach((part) => { part.open = false; });
}
slide();
