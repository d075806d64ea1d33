// The browser's storage, which pages within other sites may be kept from.

/** `localStorage` or `sessionStorage`; where the browser forbids it, one that lasts as long as the page. */
export function storageOf(name) {
  try {
    return window[name];
  } catch {
    const kept = new Map();
    return {
      getItem: (key) => kept.get(key) ?? null,
      setItem: (key, value) => kept.set(key, value),
      removeItem: (key) => kept.delete(key),
    };
  }
}
