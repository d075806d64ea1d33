// Keeps a part of the page true: the server says that something changed, and the part is taken from the page anew.
const { stream, part } = document.currentScript.dataset;
const source = new EventSource(stream);
let isFetching = false;
let isStale = false;

function isInUse(shown) {
  return shown.contains(document.activeElement) || shown.querySelector("input:checked") !== null;
}

async function renew() {
  const response = await fetch(location.href);
  const shown = document.querySelector(part);
  if (!response.ok || response.redirected) {
    source.close(); // signed out, or gone
    return;
  }
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html").querySelector(part);
  if (fresh && shown && !isInUse(shown)) shown.replaceWith(fresh);
}

source.addEventListener("message", async () => {
  isStale = true;
  if (isFetching) return;
  isFetching = true;
  while (isStale) {
    isStale = false;
    await renew();
  }
  isFetching = false;
});
addEventListener("pagehide", () => source.close());
