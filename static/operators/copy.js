// A button that copies the field it names, shown as soon as it does; where pages may not write to the clipboard, it selects the field instead.
for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-copies]"))) {
  const field = /** @type {HTMLInputElement} */ (document.getElementById(button.dataset.copies));
  const told = button.parentElement.querySelector("output");
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      told.value = "Copied.";
    } catch {
      told.value = "Press Ctrl+C (⌘C).";
    }
  });
  button.hidden = false;
}
