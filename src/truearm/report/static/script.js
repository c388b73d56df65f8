"use strict";
// The page is complete without this script. It shows the intervals at the contamination that the slider sets; all
// numbers and words were computed when the page was written.
function slide() {
  const picture = document.getElementById("picture");
  const controls = document.querySelector(".controls");
  if (!picture || !controls) return;
  const view = JSON.parse(picture.textContent);

  const slider = document.getElementById("eps");
  const chosen = document.getElementById("eps-chosen");
  const standing = document.getElementById("standing");
  const rows = [...document.querySelectorAll("#intervals .row:not(.axis)")];

  const adversary = () => controls.querySelector("input[name=adversary]:checked").value;

  function place(rect, [x, width]) {
    rect.setAttribute("x", x);
    rect.setAttribute("width", width);
  }

  function draw() {
    const at = Number(slider.value);
    const frame = view.frames[adversary()][at];
    rows.forEach((row, i) => {
      const [kind, where, state, line, core] = frame.rows[i];
      row.className = `row ${kind}`;
      place(row.querySelector(".sampling"), line);
      place(row.querySelector(".core"), core);
      row.querySelector(".where").textContent = where;
      row.querySelector(".state").textContent = state;
      row.querySelector("svg").setAttribute("aria-label", `${view.what}: ${where}`);
    });
    chosen.textContent = view.percent[at];
    slider.setAttribute("aria-valuetext", `${view.percent[at]} may be bad`);
    if (standing.textContent !== frame.sentence) standing.textContent = frame.sentence;
    mark(".above", view.declared);
    mark(".below", view.breakdown[adversary()]);
  }

  function mark(side, label) {
    const box = controls.querySelector(`.marks${side}`);
    box.replaceChildren();
    if (!label) return;
    const share = label.at / (view.percent.length - 1);
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
// on a phone everything below the chart and its table starts folded
if (matchMedia("(max-width: 46rem)").matches) {
  document.querySelectorAll("details.fold").forEach((part) => { part.open = false; });
}
slide();
