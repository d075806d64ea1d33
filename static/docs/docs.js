// What makes the documentation quicker to use. Without it everything can be read, copied by hand and searched.

const LANGUAGE = "voiceapp.docs.language";

/** Shows every example on the page in one language. */
function choose(language) {
  for (const choice of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll(".example input[type=radio]"))) {
    if (choice.value === language) choice.checked = true;
  }
}

function remembered() {
  try {
    return localStorage.getItem(LANGUAGE);
  } catch {
    return null; // a browser may keep nothing
  }
}

function remember(language) {
  try {
    localStorage.setItem(LANGUAGE, language);
  } catch {
    // then it is chosen again on the next page
  }
}

choose(remembered());
document.addEventListener("change", ({ target }) => {
  if (target instanceof HTMLInputElement && target.matches(".example input[type=radio]")) {
    choose(target.value);
    remember(target.value);
  }
});

/** The example that is shown beside a button. */
function shownBeside(button) {
  const codes = [...button.closest(".example").querySelectorAll("code")];
  return codes.find((code) => code.checkVisibility());
}

async function copy(button) {
  const code = shownBeside(button);
  const label = button.firstElementChild;
  try {
    await navigator.clipboard.writeText(code.textContent);
    label.textContent = "Copied";
  } catch {
    // Pages may write to the clipboard over HTTPS and on this machine only.
    getSelection().selectAllChildren(code);
    label.textContent = "Press Ctrl+C (⌘C)";
  }
  setTimeout(() => {
    label.textContent = "Copy";
  }, 2000);
}

for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".example .copy"))) {
  button.hidden = false;
}
document.addEventListener("click", ({ target }) => {
  const button = target instanceof Element && target.closest(".example .copy");
  if (button) copy(button);
});

document.addEventListener("keydown", (event) => {
  const search = document.getElementById("search");
  const isTyping = event.target instanceof HTMLElement && event.target.matches("input:not([type=radio]), textarea, select");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  event.preventDefault();
  search.focus();
});
