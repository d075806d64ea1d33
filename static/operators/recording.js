// Follows the sound of a recorded conversation: a line over its waveform, and the words that are spoken.
const section = document.querySelector("#recording");
const player = section.querySelector("audio");
const lengthS = Number(player.dataset.length); // known before it is fetched, which the audit notes
const waveform = section.querySelector("svg");
/** @type {NodeListOf<HTMLButtonElement>} */
const captions = section.querySelectorAll("button[data-begins]");

player.addEventListener("timeupdate", () => {
  const at = player.currentTime;
  waveform.querySelector(".now").setAttribute("x", String((at / lengthS) * waveform.viewBox.baseVal.width));
  for (const { dataset, classList } of captions) {
    classList.toggle("is-spoken", at >= Number(dataset.begins) && at < Number(dataset.ends));
  }
});
waveform.addEventListener("click", ({ offsetX }) => {
  player.currentTime = (offsetX / waveform.clientWidth) * lengthS;
});
for (const caption of captions) {
  caption.addEventListener("click", () => {
    player.currentTime = Number(caption.dataset.begins);
    player.play();
  });
}
