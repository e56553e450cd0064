const $ = id => document.getElementById(id);
const screen_ = $('screen'), typing = $('typing');
const WORDS = {automation: 'automation works', pausing: 'pauses after this step', paused: 'paused',
  taking_over: 'yours after this step', human: 'a person has control'};
const WHY = {tab_closed: 'The tab has closed.', task_over: 'The task is over.', tab_crashed: 'The page has crashed.',
  browser_lost: 'The browser has ended.', agent_absent: 'The agent can’t be reached.', expired: 'This link has expired.',
  unavailable: 'This tab can’t be shown.', farm_stops: 'The farm is stopping.', not_understood: 'The agent does not understand.',
  elsewhere: 'Another coordinator shows this tab now.'};
/* What may be seen again soon, maybe by another coordinator. */
const AGAIN = ['elsewhere', 'agent_absent', 'farm_stops'];
const TRIES = 12;
let scene = null, wire = null, wait = 500, tries = 3, drawn = 0, held = new Map(), buttons = 0, at = {x: 0, y: 0};

const mine = () => scene !== null && scene.mode === 'control' && scene.phase === 'human' && (scene.by === '' || scene.by === scene.you);
const message = text => { $('message').textContent = text; $('message').hidden = !text; };

function look() {
  const box = $('stage').getBoundingClientRect(), ratio = Math.min(window.devicePixelRatio || 1, 2);
  return {width: Math.max(1, Math.round(box.width * ratio)), height: Math.max(1, Math.round(box.height * ratio)),
    fps: document.hidden ? 0 : mine() ? 30 : 10, overlay: new URLSearchParams(location.search).get('overlay') !== '0'};
}

function show() {
  const human = scene.phase === 'human', by = scene.by ? ` (${scene.by})` : '';
  $('label').textContent = scene.label;
  $('job').textContent = scene.job || '';
  document.title = `${scene.job || scene.label} · tabfarm live`;
  $('dot').dataset.phase = scene.phase || 'none';
  $('state').textContent = mine() ? 'you have control' : (WORDS[scene.phase] || '') + (human || scene.phase === 'paused' ? by : '');
  $('buttons').hidden = scene.mode !== 'control' || !scene.job_id;
  $('take_over').disabled = mine() || (scene.phase === 'taking_over' && scene.by === scene.you);
  $('hand_back').disabled = !human && scene.phase !== 'taking_over';
  $('pause').disabled = scene.phase !== 'automation';
  $('resume').disabled = scene.phase !== 'paused' && scene.phase !== 'pausing';
  $('asked').hidden = !scene.asked;
  $('asked').textContent = scene.asked;
  $('viewers').textContent = `${scene.viewers.length} watching: ${scene.viewers.join(', ')}`;
  $('left').textContent = scene.expires_in_s === null ? '' : `link ends in ${Math.ceil(scene.expires_in_s / 60)} min`;
  screen_.classList.toggle('mine', mine());
  if (mine() && document.activeElement !== typing) typing.focus({preventScroll: true});
}

function heard(said) {
  switch (said.op) {
    case 'scene': { const had = mine(); scene = said; message(''); show(); if (had !== mine()) wire.tellLook(); break; }
    case 'drawn': drawn++; wait = 500; tries = TRIES; screen_.dataset.seq = said.seq; break;
    case 'refused': message(`${said.what}: ${said.why}`); break;
    case 'closed':
      if (AGAIN.includes(said.reason)) { again(`${WHY[said.reason]} Trying again …`); break; }
      over(WHY[said.reason] || said.reason);
      /* Maybe the task had only been lent the tab, and begins now: one more look. */
      if (said.reason === 'task_over') { tries = 1; setTimeout(begin, 1000); }
      break;
    case 'broken': again('Connection lost; trying again …'); break;
  }
}
function again(why) {
  if (tries-- <= 0) { if (scene?.phase !== 'over') over('There is nothing to be seen here.'); return; }
  if (scene?.phase !== 'over') message(why);
  setTimeout(begin, wait); wait = Math.min(wait * 2, 10000);
}
function over(why) {
  message(why);
  if (scene !== null) scene = {...scene, phase: 'over', by: ''};
  $('state').textContent = ''; $('dot').dataset.phase = 'none'; $('buttons').hidden = true; screen_.classList.remove('mine');
}
function begin() { held.clear(); buttons = 0; wire = stream(location.pathname, screen_, look, heard); }

for (const action of ['take_over', 'hand_back', 'pause', 'resume', 'stop'])
  $(action).onclick = () => { if (action !== 'stop' || confirm('Stop this job?')) wire.say({op: 'ask', action}); };

const act = what => { if (mine()) wire.say({op: 'input', act: what}); };
const modifiers = e => (e.altKey ? 1 : 0) | (e.ctrlKey ? 2 : 0) | (e.metaKey ? 4 : 0) | (e.shiftKey ? 8 : 0);
function place(e) {
  const box = screen_.getBoundingClientRect(), clip = n => Math.min(1, Math.max(0, n));
  return {x: clip((e.clientX - box.left) / box.width), y: clip((e.clientY - box.top) / box.height)};
}
const NAMES = ['left', 'middle', 'right', 'back', 'forward'];
function mouse(kind) {
  return e => {
    if (!mine() || e.pointerType === 'touch') return;
    e.preventDefault();
    typing.focus({preventScroll: true});
    at = place(e);
    if (kind === 'down') { screen_.setPointerCapture(e.pointerId); buttons |= 1 << e.button; }
    else if (buttons & 1 << e.button) buttons &= ~(1 << e.button);
    else return;
    act({kind: 'mouse', act: kind, ...place(e), button: NAMES[e.button] || 'none', clicks: clicks(kind, e), modifiers: modifiers(e)});
  };
}
let last = {at: 0, x: 0, y: 0, button: -1, count: 0};
function clicks(kind, e) {
  if (kind === 'down') {
    const near = Math.hypot(e.clientX - last.x, e.clientY - last.y) < 5 && e.button === last.button && e.timeStamp - last.at < 500;
    last = {at: e.timeStamp, x: e.clientX, y: e.clientY, button: e.button, count: near ? last.count % 3 + 1 : 1};
  }
  return Math.max(1, last.count);
}
screen_.addEventListener('pointerdown', mouse('down'));
screen_.addEventListener('pointerup', mouse('up'));
let moved = null;
screen_.addEventListener('pointermove', e => {
  if (!mine() || e.pointerType === 'touch') return;
  if (moved === null) requestAnimationFrame(() => { const at = moved; moved = null; act(at); });
  moved = {kind: 'mouse', act: 'move', ...place(e), button: buttons & 1 ? 'left' : 'none', modifiers: modifiers(e)};
});
screen_.addEventListener('contextmenu', e => { if (mine()) e.preventDefault(); });
screen_.addEventListener('wheel', e => {
  if (!mine()) return;
  e.preventDefault();
  const by = e.deltaMode === 1 ? 20 : e.deltaMode === 2 ? 400 : 1, within = n => Math.min(10000, Math.max(-10000, n * by));
  act({kind: 'wheel', ...place(e), dx: within(e.deltaX), dy: within(e.deltaY), modifiers: modifiers(e)});
}, {passive: false});
function touch(kind) {
  return e => {
    if (!mine()) return;
    e.preventDefault();
    const points = [...e.touches].slice(0, 10).map(t => ({id: t.identifier % 32, ...place(t)}));
    act({kind: 'touch', act: kind, points, modifiers: modifiers(e)});
  };
}
for (const [event, kind] of [['touchstart', 'start'], ['touchmove', 'move'], ['touchend', 'end'], ['touchcancel', 'cancel']])
  screen_.addEventListener(event, touch(kind), {passive: false});

function key(kind) {
  return e => {
    if (!mine() || e.isComposing || e.key === 'Process' || e.key === 'Dead' || e.key === 'Unidentified') return;
    const paste = (e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'v';
    if (paste) return;
    e.preventDefault();
    const name = e.code || e.key;
    const press = {kind: 'key', act: kind, key: e.key, code: e.code, key_code: Math.min(255, e.keyCode || 0), location: e.location, repeat: e.repeat, modifiers: modifiers(e)};
    if (kind === 'down') held.set(name, press); else if (!held.delete(name)) return;
    act(press);
  };
}
/* Whoever goes elsewhere with something pressed releases it there, where nobody hears it here. */
function letGo() {
  for (const press of held.values()) act({...press, act: 'up', repeat: false, modifiers: 0});
  NAMES.forEach((button, n) => { if (buttons & 1 << n) act({kind: 'mouse', act: 'up', ...at, button, clicks: 1, modifiers: 0}); });
  held.clear(); buttons = 0;
}
addEventListener('blur', letGo);
typing.addEventListener('blur', letGo);
screen_.addEventListener('pointercancel', letGo);
typing.addEventListener('keydown', key('down'));
typing.addEventListener('keyup', key('up'));
typing.addEventListener('compositionend', e => { if (e.data) act({kind: 'text', text: e.data}); typing.value = ''; });
typing.addEventListener('input', e => { if (e.isComposing) return; if (e.inputType === 'insertText' && e.data) act({kind: 'text', text: e.data}); typing.value = ''; });
typing.addEventListener('paste', e => {
  e.preventDefault();
  const text = e.clipboardData.getData('text/plain').slice(0, 100000);
  if (text) act({kind: 'text', text, pasted: true});
});
screen_.addEventListener('dragover', e => { if (mine()) e.preventDefault(); });
screen_.addEventListener('drop', async e => {
  if (!mine()) return;
  e.preventDefault();
  const at = place(e);
  for (const file of [...e.dataTransfer.files].slice(0, 5)) {
    if (file.size > 8 * 1024 * 1024) { message(`${file.name}: a file has at most 8 MiB`); continue; }
    wire.bytes({op: 'input', act: {kind: 'drop', ...at, name: file.name}}, await file.arrayBuffer());
  }
});
document.addEventListener('visibilitychange', () => { if (document.hidden) letGo(); wire.tellLook(); });
let resized = 0;
new ResizeObserver(() => { clearTimeout(resized); resized = setTimeout(() => wire.tellLook(), 250); }).observe($('stage'));
setInterval(() => { $('rate').textContent = `${drawn}/s`; drawn = 0; }, 1000);
begin();
