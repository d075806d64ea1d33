/* global Alpine, htmx, getCurrentTab, theme, searchForm, searchDropdown, searchCommand */
// Lets the admin theme's pages run under a policy without eval: Alpine finds their components here by name, and <body>
// gets data in place of expressions that only evaluated code could read.
htmx.config.includeIndicatorStyles = false; // an inline style sheet
htmx.config.allowEval = false;

const page = (activeTab) => {
  const { pathname, search } = location;
  return {
    activeTab,
    sidebarMobileOpen: false,
    sidebarDesktopOpen: localStorage.getItem("sidebarDesktopOpen") !== "0",
    window: { location: { pathname, search } }, // what addresses of forms are made of
    localStorage: { setItem: (name, value) => localStorage.setItem(name, value) },
    init() {
      this.activeTab = (activeTab && getCurrentTab()) || activeTab;
    },
  };
};

// For screen readers: the main landmark is missing, each part that scrolls would be one, and icons are words.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelector("#main")?.setAttribute("role", "main");
  for (const icon of document.querySelectorAll(".material-symbols-outlined")) {
    const { textContent } = icon.closest("a, button, h1") ?? icon.parentElement;
    if (textContent.trim() !== icon.textContent.trim()) icon.setAttribute("aria-hidden", "true");
  }
  for (const head of document.querySelectorAll("thead th")) {
    if (!head.textContent.trim() && !head.firstElementChild) head.setAttribute("role", "presentation");
  }
});
addEventListener("load", () => {
  for (const part of document.querySelectorAll(".simplebar-content-wrapper")) part.setAttribute("role", "group");
});

document.addEventListener("alpine:init", () => {
  // Alpine would write it as an attribute, which the policy forbids; theme.css has the width.
  Alpine.mapAttributes(({ name, value }) => ({ name: name === "x-bind:style" ? "data-style" : name, value }));
  const { body } = document;
  const tab = body.getAttribute("x-data")?.match(/activeTab: '([^']*)'/)?.[1] ?? "";
  body.removeAttribute("x-init");
  body.setAttribute("x-data", "page");
  Alpine.data("page", () => page(tab));
  for (const component of [theme, searchForm, searchDropdown, searchCommand]) Alpine.data(component.name, component);
});
