// The two or three lines that every view would repeat.

const SVG = "http://www.w3.org/2000/svg";

/**
 * The element with this id; a page without it, or with one of another kind, is broken, so say which.
 * @template {Element} [T=HTMLElement]
 * @param {string} id
 * @param {new () => T} [kind]
 * @returns {T}
 */
export function byId(id, kind = /** @type {any} */ (HTMLElement)) {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) {
    throw new Error(`The page has no ${kind.name} #${id}.`);
  }
  return element;
}

/**
 * A new element: tag, class, then text or children.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {string} className
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) {
    element.className = className;
  }
  element.append(...children);
  return element;
}

/** A picture from the page's sprite. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#icon-${name}`);
  svg.append(use);
  return svg;
}

/** Offer `content` as a file. */
export function download(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = make("a", "");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
