// What every report does for its reader: tips, sorting, copying. Charts of `compare` are in compare.js.
"use strict";

// One tip for the whole page: `data-tip` says what rests under the pointer or has the focus.
(() => {
  const tip = document.getElementById("tip");
  const show = (target, x, y) => {
    tip.textContent = target.dataset.tip;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - box.width - 4))}px`;
    tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18}px`;
  };
  const hide = () => { tip.hidden = true; };
  const tipped = (event) => event.target.closest?.("[data-tip]");
  document.addEventListener("pointermove", (e) => (tipped(e) ? show(tipped(e), e.clientX, e.clientY) : hide()));
  document.addEventListener("pointerdown", (e) => (tipped(e) ? show(tipped(e), e.clientX, e.clientY) : hide()));
  document.addEventListener("focusin", (e) => {
    const target = tipped(e);
    // A click focuses too, and the pointer has shown its tip already.
    if (!target || !e.target.matches(":focus-visible")) return;
    const box = target.getBoundingClientRect();
    show(target, box.left, box.bottom - 12);
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (e) => { if (e.key === "Escape") hide(); });
  document.addEventListener("scroll", hide, { passive: true, capture: true });
})();

// Tables: a heading sorts by its column, again the other way round. Cells say with `data-v` what
// to compare where their text is not it. The sort is stable, so earlier sorts break ties. A table in
// groups, each a body of its own under a heading row, keeps them.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, at) => row.cells[at].dataset.v ?? row.cells[at].textContent;
  heads.forEach((head, at) => head.firstElementChild.addEventListener("click", () => {
    const groups = [...table.tBodies].map((body) => [body, [...body.rows].filter((r) => !r.classList.contains("group"))]);
    const rows = groups.flatMap(([, own]) => own);
    const numbers = rows.every((r) => key(r, at).trim() !== "" && Number.isFinite(Number(key(r, at))));
    const down = head.ariaSort === "ascending";
    const order = (a, b) => (down ? -1 : 1) * (numbers
      ? Number(key(a, at)) - Number(key(b, at))
      : key(a, at).localeCompare(key(b, at), "en", { numeric: true }));
    for (const [body, own] of groups) body.append(...own.sort(order));
    for (const other of heads) other.ariaSort = "none";
    head.ariaSort = down ? "descending" : "ascending";
  }));
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      // Without leave to write the clipboard the text is at least selected.
      getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// A command may take more lines: between its arguments first. What is copied stays as it is.
for (const code of document.querySelectorAll(".command code")) {
  const parts = code.textContent.split(/(\s+)/);
  if (parts.length < 2 || code.children.length > 0) continue;
  code.replaceChildren(...parts.map((part, i) => {
    if (i % 2 === 1) return part;
    const argument = document.createElement("span");
    argument.className = "argument";
    argument.textContent = part;
    return argument;
  }));
}

// A policy's name may take more lines: between its parts first.
for (const name of document.querySelectorAll(".policy")) {
  const parts = name.textContent.split(/(?=[+,])/);
  if (parts.length < 2 || name.children.length > 0) continue;
  name.replaceChildren(...parts.flatMap((part, i) => (i > 0 ? [document.createElement("wbr"), part] : [part])));
}
