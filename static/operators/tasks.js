// Keeps the statuses on the pages of tasks true while there is work in progress.
const place = location.pathname.match(/^(.*\/tasks\/task\/)(?:(\d+)\/change\/)?$/);
const cells = new Map();

function find(id, row) {
  const found = {};
  for (const name of ["status", "done", "took", "code"]) {
    found[name] = row.querySelector(`.field-${name} .readonly`) ?? row.querySelector(`.field-${name}`);
  }
  cells.set(id, found);
}

if (place) {
  const [, root, alone] = place;
  if (alone) {
    find(alone, document.querySelector("#content-main"));
  } else {
    for (const row of document.querySelectorAll("#result_list tbody tr")) {
      const link = /** @type {HTMLAnchorElement} */ (row.querySelector("th a"));
      const id = link?.pathname.match(/(\d+)\/change\/$/)?.[1];
      if (id) find(id, row);
    }
  }
  const isOver = (found) => /^(Succeeded|Failed|Canceled)$/.test(found.status?.textContent.trim());
  if ([...cells.values()].some((found) => !isOver(found))) {
    const source = new EventSource(`${root}live/?ids=${[...cells.keys()].join(",")}`);
    source.addEventListener("message", (message) => {
      for (const [id, news] of Object.entries(JSON.parse(message.data))) {
        for (const [name, text] of Object.entries(news)) {
          const cell = cells.get(id)?.[name];
          if (cell && cell.textContent !== text) cell.textContent = text;
        }
      }
    });
    source.addEventListener("over", () => {
      source.close();
      if (alone) location.reload(); // for the results
    });
    addEventListener("pagehide", () => source.close());
  }
}
