// The orb: its colour says the state, its size what is heard. Drawn on a canvas behind the button.

import { meterLevel } from "../audio/pcm.js";
import { byId } from "./dom.js";

const TURNS = Math.PI * 2;
const CORE = 0.225; // radii as shares of the canvas
const SWELL = 0.06;
const MEMBRANES = [
  { reach: 0.035, sway: 0.55, lobes: 3, speed: 0.5, alpha: 0.38 },
  { reach: 0.07, sway: 0.85, lobes: 4, speed: -0.36, alpha: 0.22 },
  { reach: 0.11, sway: 1.1, lobes: 3, speed: 0.28, alpha: 0.12 },
];
const RESTLESSNESS = { connecting: 0.5, queued: 0.25, processing: 0.75, reconnecting: 0.35, "your-turn": 0.5 };

export class Orb {
  #canvas = byId("orb-canvas", HTMLCanvasElement);
  #pen = this.#canvas.getContext("2d");
  #readLevel;
  #state = "idle";
  #level = 0;
  #colours = null;
  #time = 0;
  #lastAt = 0;
  #isStill = matchMedia("(prefers-reduced-motion: reduce)");
  #drawnLevel = -1;

  /** `readLevel()` tells the loudness to show now, in [0, 1]. */
  constructor(readLevel) {
    this.#readLevel = readLevel;
    this.#isStill.addEventListener("change", () => this.#refresh());
    new MutationObserver(() => this.#refresh()).observe(document.body, { attributeFilter: ["data-state", "data-muted"] });
    requestAnimationFrame((at) => this.#frame(at));
  }

  set state(state) {
    this.#state = state;
    this.#refresh();
  }

  #refresh() {
    const style = getComputedStyle(document.body);
    const target = ["--orb-light", "--orb-deep"].map((name) => rgb(style.getPropertyValue(name)));
    this.#colours = { from: this.#colours?.now ?? target, target, now: target, share: this.#colours ? 0 : 1 };
    this.#drawnLevel = -1;
  }

  #frame(at) {
    requestAnimationFrame((next) => this.#frame(next));
    const elapsed = Math.min(0.1, (at - this.#lastAt) / 1000);
    if (elapsed < 0.03) {
      return; // thirty pictures a second are enough, and kind to batteries
    }
    this.#lastAt = at;
    const wanted = meterLevel(this.#readLevel());
    this.#level += (wanted - this.#level) * (wanted > this.#level ? 0.6 : 0.22);
    this.#colours ?? this.#refresh();
    this.#colours.share = this.#isStill.matches ? 1 : Math.min(1, this.#colours.share + elapsed * 3.5);
    this.#colours.now = mixed(this.#colours);
    if (this.#isStill.matches) {
      this.#level = Math.round(this.#level * 8) / 8; // steps instead of motion
      if (this.#drawnLevel === this.#level) {
        return;
      }
    } else {
      this.#time += elapsed * (1 + 1.6 * (RESTLESSNESS[this.#state] ?? 0));
    }
    this.#drawnLevel = this.#level;
    this.#draw();
  }

  #draw() {
    const pen = this.#pen;
    const size = this.#canvas.width;
    const middle = size / 2;
    const [light, deep] = this.#colours.now;
    const breath = this.#isStill.matches ? 0 : Math.sin(this.#time * 1.1) * 0.006;
    const radius = size * (CORE + breath + SWELL * this.#level);
    pen.clearRect(0, 0, size, size);

    const halo = pen.createRadialGradient(middle, middle, radius * 0.9, middle, middle, size * 0.49);
    halo.addColorStop(0, css(light, 0.26 + 0.2 * this.#level));
    halo.addColorStop(1, css(light, 0));
    pen.fillStyle = halo;
    pen.fillRect(0, 0, size, size);

    for (const membrane of MEMBRANES.toReversed()) {
      pen.fillStyle = css(light, membrane.alpha);
      this.#membrane(middle, radius, size, membrane);
      pen.fill();
    }

    const core = pen.createRadialGradient(
      middle - radius * 0.35, middle - radius * 0.45, radius * 0.08, middle, middle, radius,
    );
    core.addColorStop(0, css(light, 1));
    core.addColorStop(0.45, css(between(light, deep, 0.72), 1));
    core.addColorStop(0.85, css(deep, 1));
    core.addColorStop(1, css(between(deep, light, 0.18), 1));
    pen.fillStyle = core;
    pen.beginPath();
    pen.arc(middle, middle, radius, 0, TURNS);
    pen.fill();
  }

  /** One skin around the core: a circle that sways with the level and, a little, with time. */
  #membrane(middle, radius, size, { reach, sway, lobes, speed, alpha }) {
    const pen = this.#pen;
    const isStill = this.#isStill.matches;
    const restless = RESTLESSNESS[this.#state] ?? 0;
    const base = radius + size * reach * (0.35 + 0.65 * this.#level + 0.25 * restless);
    const swing = isStill ? 0 : size * 0.013 * sway * (0.25 + 1.9 * this.#level + 0.8 * restless);
    pen.beginPath();
    for (let step = 0; step <= 96; step += 1) {
      const angle = (step / 96) * TURNS;
      const wave =
        Math.sin(angle * lobes + this.#time * speed * 3 + alpha * 40) * 0.6 +
        Math.sin(angle * (lobes - 1) - this.#time * speed * 2) * 0.4;
      const at = base + swing * wave;
      pen.lineTo(middle + Math.cos(angle) * at, middle + Math.sin(angle) * at);
    }
    pen.closePath();
  }
}

/** "#aabbcc" as [r, g, b]. */
function rgb(text) {
  const value = Number.parseInt(text.trim().slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

function css(colour, alpha) {
  return `rgb(${colour.map(Math.round).join(" ")} / ${alpha})`;
}

function mixed({ from, target, share }) {
  return target.map((colour, which) => between(from[which], colour, share));
}

/** `share` of the way from one colour to another. */
function between(from, to, share) {
  return from.map((value, part) => value + (to[part] - value) * share);
}
