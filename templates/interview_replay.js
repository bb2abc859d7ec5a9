"use strict";
(() => {
  const part = (name) => document.getElementById("replay-" + name);
  const { lines, names, versions, frames } = JSON.parse(part("data").textContent);
  const slider = part("at"), play = part("play"), now = part("now"), code = part("code");
  const KINDS = [["same", " "], ["added", "+"], ["gone", "-"]];
  const end = frames[frames.length - 1].place;
  let here = -1;      // the frame that is shown
  let drawn = null;   // the version that is shown
  let timer = null;   // while it plays

  function element(tag, text, kind) {
    const made = document.createElement(tag);
    made.textContent = text;
    made.className = kind;
    return made;
  }

  function draw(version) {
    if (version === drawn) return;
    drawn = version;
    const rows = version === null ? [] : versions[version];
    code.replaceChildren(...rows.map(([mark, line]) => element("span", KINDS[mark][1] + " " + lines[line], KINDS[mark][0])));
    if (version === null) code.textContent = "There is no code yet.";
    const changed = code.querySelector(".added, .gone");
    code.scrollTop = changed ? Math.max(0, changed.offsetTop - code.clientHeight / 3) : 0;
  }

  function show(number, place) {
    slider.value = place === undefined ? frames[number].place : place;
    if (number === here) return;
    here = number;
    const frame = frames[number];
    slider.setAttribute("aria-valuetext", frame.clock + ", " + frame.says);
    part("clock").textContent = frame.clock;
    part("says").textContent = frame.says;
    part("count").textContent = "(" + (number + 1) + " of " + frames.length + ")";
    part("held").textContent = [frame.held, ...frame.flips].filter(Boolean).join(" · ");
    part("properties").replaceChildren(
      ...frame.holding.map((name) => element("li", "☑ " + names[name], "good")),
      ...frame.lacking.map((name) => element("li", "☐ " + names[name], "dim")),
    );
    draw(frame.version);
  }

  function at(place) {
    let number = 0;
    while (number + 1 < frames.length && frames[number + 1].place <= place) number += 1;
    return number;
  }

  function step(by) {
    stop();
    show(Math.min(frames.length - 1, Math.max(0, here + by)));
  }

  function stepVersion(by) {
    stop();
    let number = here;
    do number += by; while (frames[number] && frames[number].version === frames[here].version);
    if (!frames[number]) return;
    while (number > 0 && frames[number - 1].version === frames[number].version) number -= 1;  // where it was new
    show(number);
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    now.setAttribute("aria-live", "polite");
  }

  function start() {
    let place = here === frames.length - 1 ? 0 : Number(slider.value);
    let last = performance.now();
    now.setAttribute("aria-live", "off");  // a screen reader could not follow
    play.textContent = "Pause";
    show(at(place), place);
    timer = setInterval(() => {
      const time = performance.now();
      place += (time - last) / 1000 * Number(part("speed").value);
      last = time;
      show(at(Math.min(place, end)), Math.min(place, end));
      if (place >= end) stop();
    }, 50);
  }

  const toggle = () => timer === null ? start() : stop();
  const KEYS = {
    ArrowLeft: () => step(-1), ArrowDown: () => step(-1), ArrowRight: () => step(1), ArrowUp: () => step(1),
    PageUp: () => stepVersion(-1), PageDown: () => stepVersion(1),
    Home: () => step(-frames.length), End: () => step(frames.length), " ": toggle,
  };
  play.addEventListener("click", toggle);
  part("back").addEventListener("click", () => step(-1));
  part("forward").addEventListener("click", () => step(1));
  slider.addEventListener("input", () => {
    const place = Number(slider.value);
    stop();
    show(at(place), place);
  });
  slider.addEventListener("keydown", (event) => {
    if (!(event.key in KEYS) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  document.getElementById("replay").hidden = false;
  stop();
  show(0);
})();
