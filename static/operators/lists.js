// A list is a table where its columns fit, and else one block for each row, in which each value bears its column's name.
const list = /** @type {HTMLTableElement} */ (document.querySelector("#result_list"));

function nameValues() {
  const titles = [...list.tHead.rows[0].cells].map((cell) => cell.querySelector(".text")?.textContent.trim() ?? "");
  for (const row of list.tBodies[0].rows) {
    [...row.cells].forEach((cell, index) => {
      if (cell.tagName === "TD" && titles[index]) cell.dataset.title = titles[index];
    });
  }
}

if (list) {
  const place = list.parentElement;
  let knownWidth = 0;
  nameValues();
  new ResizeObserver(() => {
    if (place.clientWidth !== knownWidth) {
      knownWidth = place.clientWidth;
      list.classList.remove("blocks");
      list.classList.toggle("blocks", place.scrollWidth > place.clientWidth);
    }
  }).observe(place);
}
