// The page is whole without this: a cell is a link to its details. With it the details open beside the matrix, and verdicts can be filtered.
"use strict";

const sheet = document.getElementById("sheet");
const verdict = document.getElementById("verdict");
const count = document.getElementById("count");
// Where nothing was played there is nothing to filter.
const cells = [...document.querySelectorAll(".matrix td:not(.none)")];

function open(link) {
  const group = document.getElementById(link.hash.slice(1));
  const body = document.getElementById("sheet-body");
  document.getElementById("sheet-title").textContent = group.dataset.title;
  document.getElementById("sheet-told").textContent = group.dataset.told;
  const found = [...group.querySelectorAll(".finding:not([hidden])")].map((each) => each.cloneNode(true));
  body.replaceChildren(...(found.length ? found : ["Nothing with this verdict here."]));
  sheet.showModal();
  sheet.scrollTop = 0;
  document.getElementById("sheet-title").focus();
}

function number(cell) {
  const found = (cell.dataset.red || "").split(" ").find((part) => part.startsWith(verdict.value + ":"));
  return found ? Number(found.split(":")[1]) : 0;
}

function filter() {
  const option = verdict.selectedOptions[0];
  const chosen = verdict.value;
  for (const cell of cells) {
    const hits = chosen ? number(cell) : 0;
    const [first, second] = [cell.querySelector(".count"), cell.querySelector(".word")];
    cell.className = !chosen ? cell.dataset.class : hits ? `${option.dataset.class} hit` : "none";
    first.textContent = chosen ? String(hits) : first.dataset.all;
    second.textContent = !chosen ? second.dataset.all : hits ? option.dataset.word : "none";
    cell.parentElement.classList.toggle("filtered", chosen !== "");
  }
  for (const each of document.querySelectorAll("main .finding")) each.hidden = chosen !== "" && each.dataset.verdict !== chosen;
  for (const each of document.querySelectorAll("main details:not(.areas)")) each.hidden = !each.querySelector(".finding:not([hidden])");
  const left = document.querySelectorAll("main .finding:not([hidden])").length;
  count.textContent = chosen ? `${left} results below, and only they are counted in the cells` : "";
}

// From cell to cell with the arrow keys; those without details are passed over.
function step(event) {
  const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const link = event.target.closest("td > a");
  if (!link || !(event.key in moves)) return;
  event.preventDefault();
  const [down, along] = moves[event.key];
  const rows = [...link.closest("tbody").rows];
  let [row, column] = [rows.indexOf(link.closest("tr")) + down, link.parentElement.cellIndex + along];
  while (rows[row] && rows[row].cells[column]) {
    const next = rows[row].cells[column].querySelector("a");
    if (next && column > 0) return next.focus();
    [row, column] = [row + down, column + along];
  }
}

for (const table of document.querySelectorAll(".matrix")) {
  table.addEventListener("keydown", step);
  table.addEventListener("click", (event) => {
    const link = event.target.closest("td > a");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    open(link);
  });
}
// A shade at the right edge of a table as long as there is more of it.
function edge(box) {
  box.parentElement.classList.toggle("more", box.scrollWidth - box.clientWidth - box.scrollLeft > 1);
  box.parentElement.style.setProperty("--bar", `${box.offsetWidth - box.clientWidth - 2}px`);
}

const resized = new ResizeObserver((entries) => { for (const each of entries) edge(each.target); });
for (const box of document.querySelectorAll(".scroll")) {
  box.addEventListener("scroll", () => edge(box), { passive: true });
  resized.observe(box);
}
// On a small screen the matrix comes first.
if (matchMedia("(max-width: 48rem)").matches) for (const each of document.querySelectorAll(".areas")) each.open = false;

document.getElementById("close").addEventListener("click", () => sheet.close());
sheet.addEventListener("click", (event) => { if (event.target === sheet) sheet.close(); });
verdict.addEventListener("change", filter);
document.getElementById("filter").hidden = false;
filter();
