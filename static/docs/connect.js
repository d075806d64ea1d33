/** A copy button at each program and at a new key, and the program opened that the address names. */

for (const code of document.querySelectorAll(":is(.program, .new-key) pre > code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy-program";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    button.textContent = await copied(code) ? "Copied" : "Selected: press Ctrl+C";
  });
  code.parentElement?.before(button);
}

/**
 * Where the clipboard is closed to pages, as it is without https, the text is selected instead.
 * @param {Element} code
 */
async function copied(code) {
  try {
    await navigator.clipboard.writeText(code.textContent ?? "");
    return true;
  } catch {
    getSelection()?.selectAllChildren(code);
    return false;
  }
}

function openNamed() {
  document.getElementById(location.hash.slice(1))?.closest("details")?.setAttribute("open", "");
}

addEventListener("hashchange", openNamed);
openNamed();
