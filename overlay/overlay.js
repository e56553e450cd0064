// The overlay of one page. It runs before the page's own scripts, in a world that those can't reach:
// of all this they see one element at the end of the document, with nothing to be read in it.
// It shows nothing until it is told to: `draw` puts it into the page, `remove` takes it out.
((name) => {
  "use strict";
  if (window !== window.top) return;
  const before = globalThis[name]?.end();

  const BURST = 20; // so often it comes back at once; after that once a tick
  const TICK_MS = 500;
  const WAITING = 20; // so much may wait to be heard
  const STYLE = `
    :host {
      all: initial !important; position: fixed !important; inset: 0 !important;
      display: block !important; z-index: 2147483647 !important; pointer-events: none !important;
    }
    :host::backdrop { display: none !important; }
    /* Four strips and no frame: that would be as large as the page, and painted whole. */
    .frame > div { position: absolute; background: var(--colour); }
    .frame > .top, .frame > .bottom { left: 0; right: 0; height: 4px; }
    .frame > .left, .frame > .right { top: 4px; bottom: 4px; width: 4px; }
    .frame > .top { top: 0; box-shadow: 0 1px #fff, 0 2px #000; }
    .frame > .bottom { bottom: 0; box-shadow: 0 -1px #fff, 0 -2px #000; }
    .frame > .left { left: 0; box-shadow: 1px 0 #fff, 2px 0 #000; }
    .frame > .right { right: 0; box-shadow: -1px 0 #fff, -2px 0 #000; }
    .panel {
      position: absolute; box-sizing: border-box; max-width: min(420px, 100%); padding: 4px 6px;
      border: 1px solid #fff; border-radius: 6px; box-shadow: 0 0 0 1px #000;
      background: #16181d; color: #fff; font: 12px/1.5 system-ui, sans-serif;
    }
    .row, .controls { display: flex; align-items: center; gap: 6px; }
    .controls { margin-left: auto; }
    .row > span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    .state { padding: 0 5px; border-radius: 4px; background: var(--colour); flex: none; }
    button {
      all: unset; box-sizing: border-box; min-width: 24px; min-height: 20px; padding: 0 5px;
      border: 1px solid #9aa0a6; border-radius: 4px; text-align: center; cursor: pointer; white-space: nowrap; flex: none;
      pointer-events: auto; touch-action: none;
    }
    button:focus-visible { outline: 2px solid #fff; }
    button[data-do="move"] { cursor: move; }
    [inert] button { pointer-events: none; color: #9aa0a6; }
    .bar { height: 3px; margin-top: 3px; background: #444; }
    .bar > div { height: 100%; background: var(--colour); }
    [hidden] { display: none !important; }
    @media (prefers-reduced-motion: no-preference) { .bar > div { transition: width 200ms; } }
  `;

  let picture = null; // what is shown; null while nothing is
  let drawnAt = 0;
  let budget = BURST;
  let timer = 0;
  let host = null;
  let parts = null;

  const make = (kind, attributes = {}, ...children) => {
    const element = document.createElementNS("http://www.w3.org/1999/xhtml", kind);
    for (const key of Object.keys(attributes)) element.setAttribute(key, attributes[key]);
    element.append(...children);
    return element;
  };

  // What people say waits here until it is asked for, and who asks waits until there is something.
  const said = [];
  let heard = null;

  const tell = (what) => {
    if (said.length < WAITING) said.push(JSON.stringify(what));
    if (heard) heard(said.shift());
    heard = null;
  };

  const listen = () =>
    new Promise((resolve) => {
      if (said.length) resolve(said.shift());
      else heard = resolve;
    });

  const build = () => {
    // A name of its own: no page can have defined such an element, no selector means it.
    host = make(`tabfarm-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`);
    const root = host.attachShadow({ mode: "closed" });
    const sheet = new CSSStyleSheet(); // which, unlike <style>, no policy of the page forbids
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    const button = (what) => make("button", { type: "button", "data-do": what });
    parts = {
      worker: make("span"), state: make("span", { class: "state" }), job: make("span"),
      task: make("span"),
      step: make("span"), time: make("span"), done: make("div"), note: make("span"),
      move: button("move"), fold: button("fold"), stop: button("stop"),
      wait: button("wait"), hands: button("hands"),
    };
    parts.controls = make(
      "div", { class: "controls" }, parts.wait, parts.hands, parts.stop, parts.fold, parts.move,
    );
    parts.said = make("div", { class: "row", role: "status" }, parts.note);
    parts.bar = make("div", { class: "bar", role: "progressbar", "aria-valuemin": "0" }, parts.done);
    parts.rest = make(
      "div", {}, make("div", { class: "row" }, parts.job, parts.task),
      make("div", { class: "row" }, parts.step, parts.time), parts.bar,
    );
    parts.panel = make(
      "div", { class: "panel", role: "group" },
      make("div", { class: "row" }, parts.worker, parts.state, parts.controls), parts.said, parts.rest,
    );
    const strips = ["left", "right", "top", "bottom"].map((side) => make("div", { class: side }));
    parts.frame = make("div", { class: "frame" }, ...strips);
    root.append(parts.frame, parts.panel);
    parts.move.textContent = "\u2725";
    parts.move.setAttribute("aria-label", "Move the overlay: drag, or use the arrow keys");
    parts.stop.setAttribute("aria-label", "Stop this job");
    parts.wait.setAttribute("aria-label", "Pause this job, or let it go on");
    parts.hands.setAttribute("aria-label", "Take this tab over, or hand it back");
    control();
  };

  // What a person does to the controls.

  const placed = () => {
    tell({ kind: "placed", x: picture.x, y: picture.y, collapsed: picture.collapsed });
    render();
  };

  const shift = (dx, dy) => {
    const box = parts.panel.getBoundingClientRect();
    const along = (at, by, room) => (room < 1 ? at : Math.min(1, Math.max(0, at + by / room)));
    picture.x = along(picture.x, dx, window.innerWidth - box.width);
    picture.y = along(picture.y, dy, window.innerHeight - box.height);
  };

  const ARROWS = { ArrowLeft: [-20, 0], ArrowRight: [20, 0], ArrowUp: [0, -20], ArrowDown: [0, 20] };

  const wish = (what) => tell({ kind: "control", run: picture.run, what });
  const paused = () => picture.holder === "paused" || picture.holder === "pausing";
  const taken = () => picture.holder === "human" || picture.holder === "taking_over";

  const PRESSED = {
    stop: () => {
      picture.stopping = true;
      tell({ kind: "stop", run: picture.run });
      render();
    },
    wait: () => wish(paused() ? "resume" : "pause"),
    hands: () => wish(taken() ? "hand_back" : "take_over"),
  };

  // A press that was seen on the screen and can't come through the page, as input is kept out of it.
  // The page's area is taken to reach to the lower edge of its window, and to be as wide.
  const press = ({ key, x, y, width, height }) => {
    if (!picture?.run) return false;
    if (key) {
      PRESSED.hands();
      return true;
    }
    if (!host.isConnected || picture.holder === "human") return false; // then it comes through the page
    const left = x - (width - window.innerWidth) / 2;
    const top = y - (height - window.innerHeight);
    for (const part of [parts.stop, parts.wait, parts.hands]) {
      const box = part.getBoundingClientRect();
      if (!part.hidden && left >= box.left && left < box.right && top >= box.top && top < box.bottom) {
        PRESSED[part.dataset.do]();
        return true;
      }
    }
    return false;
  };

  // What kind of thing a person in control does, and never what; listened to only while they are.
  const KINDS = {
    pointerdown: "pointer", keydown: "key", wheel: "wheel", touchstart: "touch", paste: "paste", drop: "drop",
  };
  const acts = {};
  const acted = (event) => {
    const act = KINDS[event.type];
    if (!event.isTrusted || event.target === host || performance.now() < (acts[act] ?? 0)) return;
    acts[act] = performance.now() + 1000;
    tell({ kind: "acted", act });
  };
  const follow = (human) => {
    const change = human ? window.addEventListener : window.removeEventListener;
    for (const type of Object.keys(KINDS)) change.call(window, type, acted, { capture: true, passive: true });
  };

  const control = () => {
    const on = (part, type, act) =>
      part.addEventListener(type, (event) => {
        if (event.isTrusted && picture?.live) act(event);
      });
    on(parts.fold, "click", () => {
      picture.collapsed = !picture.collapsed;
      placed();
    });
    for (const part of [parts.stop, parts.wait, parts.hands]) on(part, "click", () => PRESSED[part.dataset.do]());
    on(parts.move, "pointerdown", (event) => parts.move.setPointerCapture(event.pointerId));
    on(parts.move, "pointermove", (event) => {
      if (!parts.move.hasPointerCapture(event.pointerId)) return;
      shift(event.movementX, event.movementY);
      render();
    });
    on(parts.move, "pointerup", placed);
    on(parts.move, "keydown", (event) => {
      if (!ARROWS[event.key]) return;
      event.preventDefault();
      shift(...ARROWS[event.key]);
      placed();
    });
    // The page's business is neither where a person's focus was nor what happens in here.
    host.addEventListener("mousedown", (event) => event.preventDefault());
    for (const type of ["pointerdown", "pointerup", "mousedown", "mouseup", "click", "keydown", "keyup"])
      host.addEventListener(type, (event) => event.stopPropagation());
  };

  // What is shown.

  const time = () => {
    const seconds = Math.floor((picture.elapsed_ms + performance.now() - drawnAt) / 1000);
    const two = (number) => String(number).padStart(2, "0");
    const minutes = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
    return seconds < 3600 ? minutes : `${Math.floor(seconds / 3600)}:${minutes}`;
  };

  const render = () => {
    const { x, y, collapsed, run, step, steps } = picture;
    const done = Math.max(0, step - 1);
    for (const part of [parts.frame, parts.panel]) part.style.setProperty("--colour", picture.colour);
    parts.worker.textContent = picture.worker;
    parts.state.textContent = picture.state;
    parts.job.textContent = picture.job;
    parts.task.textContent = picture.task;
    parts.step.textContent = step ? `step ${step} of ${steps}: ${picture.step_name}` : "starting";
    parts.time.textContent = run ? time() : "";
    parts.done.style.setProperty("width", `${steps ? (100 * done) / steps : 0}%`);
    parts.bar.setAttribute("aria-valuenow", done);
    parts.bar.setAttribute("aria-valuemax", steps);
    parts.bar.setAttribute("aria-label", "Steps done");
    parts.panel.setAttribute("aria-label", `tabfarm worker ${picture.worker}`);
    parts.panel.style.setProperty("left", `${100 * x}%`);
    parts.panel.style.setProperty("top", `${100 * y}%`);
    parts.panel.style.setProperty("transform", `translate(${-100 * x}%, ${-100 * y}%)`);
    parts.note.textContent = picture.note;
    parts.said.hidden = !picture.note || !run;
    parts.wait.hidden = !run || taken();
    parts.wait.textContent = paused() ? "Resume" : "Pause";
    parts.hands.hidden = !run;
    parts.hands.textContent = taken() ? "Hand back" : "Take over";
    parts.rest.hidden = collapsed || !run;
    parts.stop.hidden = !run;
    parts.stop.textContent = picture.stopping ? "Stopping" : "Stop";
    parts.fold.hidden = !run;
    parts.fold.textContent = collapsed ? "+" : "\u2013";
    parts.fold.setAttribute("aria-label", collapsed ? "Show more" : "Show less");
    parts.fold.setAttribute("aria-expanded", String(!collapsed));
    parts.controls.inert = !picture.live;
  };

  // Staying in the page, whatever it does; but never at its pace.

  const enter = () => {
    if (host.popover !== "manual") host.popover = "manual";
    try {
      if (host.matches(":popover-open")) host.hidePopover();
      host.showPopover();
    } catch {
      // Not now, as the document is going away; it is in the page, or the next tick finds out.
    }
  };

  const attach = () => {
    const to = document.documentElement;
    if (!to || (host.parentNode === to && host.matches(":popover-open")) || budget < 1) return;
    budget -= 1;
    if (host.parentNode !== to) to.append(host);
    enter();
  };

  // Whatever enters the top layer later lies above us, until we enter it again.
  const raise = (event) => {
    const { target } = event;
    if (event.type === "toggle") {
      const over = target !== host && target.matches?.("dialog, [popover]");
      if (!over || event.newState !== "open") return;
    }
    if (!host.isConnected || budget < 1) return;
    budget -= 1;
    enter();
  };

  const watch = () => {
    // Every time anew: document.open() takes listeners and observers away, but not the timer.
    attach();
    observer.disconnect();
    observer.observe(document, { childList: true });
    if (document.documentElement) observer.observe(document.documentElement, { childList: true });
    observer.observe(host, { attributes: true, attributeFilter: ["popover"] });
    document.addEventListener("toggle", raise, true);
    document.addEventListener("fullscreenchange", raise, true);
    if (picture?.holder === "human") follow(true);
  };

  const observer = new MutationObserver(watch);

  const tick = () => {
    budget = Math.min(BURST, budget + 1);
    watch();
    const now = picture.run ? time() : "";
    if (parts.time.textContent !== now) parts.time.textContent = now;
  };

  const draw = (next) => {
    if ((picture?.holder === "human") !== (next.holder === "human")) follow(next.holder === "human");
    picture = next;
    drawnAt = performance.now();
    budget = Math.max(budget, 1);
    if (host === null) build();
    render();
    watch();
    timer ||= setInterval(tick, TICK_MS);
  };

  const remove = () => {
    follow(false);
    picture = null;
    clearInterval(timer);
    timer = 0;
    observer.disconnect();
    document.removeEventListener("toggle", raise, true);
    document.removeEventListener("fullscreenchange", raise, true);
    host?.remove();
  };

  const end = () => {
    const last = picture && { ...picture, elapsed_ms: picture.elapsed_ms + performance.now() - drawnAt };
    remove();
    return last;
  };

  globalThis[name] = { draw, remove, listen, end, press };
  if (before) draw(before);
})
