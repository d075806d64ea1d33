// The chosen theme, before anything is drawn: a plain script, which the page waits for.

{
  const given = document.documentElement.getAttribute("data-theme") ?? "system";
  const apply = (chosen) => {
    const theme = chosen === "system" ? given : chosen;
    document.documentElement.setAttribute("data-theme", theme);
    for (const meta of /** @type {NodeListOf<HTMLMetaElement>} */ (document.querySelectorAll('meta[name="theme-color"]'))) {
      const scheme = meta.dataset.scheme;
      meta.media = theme === "system" ? `(prefers-color-scheme: ${scheme})` : theme === scheme ? "all" : "not all";
    }
  };
  const kept = () => {
    try {
      return JSON.parse(localStorage.getItem("voiceapp.preferences") ?? "{}").theme ?? "system";
    } catch {
      return "system"; // storage is forbidden
    }
  };
  apply(kept());
  addEventListener("storage", () => apply(kept()));
  document.addEventListener("theme", (event) => event instanceof CustomEvent && apply(event.detail));
}
