const $ = id => document.getElementById(id);
const tiles = new Map();
const look = () => ({width: 320, height: 200, fps: 1});

/* Only what is in view is captured. */
const watcher = new IntersectionObserver(entries => {
  for (const entry of entries) {
    const tile = tiles.get(entry.target.dataset.context);
    if (!tile) continue;
    tile.seen = entry.isIntersecting;
    if (tile.seen) open(tile); else close(tile);
  }
});
function open(tile) {
  if (tile.wire || !tile.seen || document.hidden) return;
  tile.wire = stream(tile.link.href, tile.canvas, look, said => {
    if (said.op === 'scene') tile.phase.textContent = `${tile.name} · ${said.phase || ''}`;
    if (said.op === 'drawn') { tile.canvas.dataset.seq = said.seq; tile.wait = 1000; }
    if (said.op !== 'closed' && said.op !== 'broken') return;
    tile.wire = null;
    setTimeout(open, tile.wait, tile); tile.wait = Math.min(tile.wait * 2, 10000);
  });
}
function close(tile) { if (tile.wire) { tile.wire.close(); tile.wire = null; } }
function add(tab) {
  const link = document.createElement('a'), canvas = document.createElement('canvas'), phase = document.createElement('span');
  link.href = `live/${encodeURIComponent(tab.context).replaceAll('%40', '@')}`;
  link.dataset.context = tab.context;
  canvas.width = 320; canvas.height = 200;
  canvas.setAttribute('aria-hidden', 'true');
  const name = `${tab.label}${tab.job ? ' · ' + tab.job : ''}`;
  phase.textContent = name;
  link.append(canvas, phase);
  $('wall').append(link);
  tiles.set(tab.context, {link, canvas, phase, name, wire: null, seen: false, wait: 1000});
  watcher.observe(link);
}
function remove(context) {
  const tile = tiles.get(context);
  close(tile); tile.seen = false; watcher.unobserve(tile.link); tile.link.remove(); tiles.delete(context);
}
let wait = 500;
function begin() {
  const address = new URL(location.pathname, location.href);
  address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  const socket = new WebSocket(address);
  let closed = false;
  socket.onmessage = event => {
    const said = JSON.parse(event.data);
    if (said.op === 'closed') {
      $('state').textContent = said.detail || said.reason;
      if (said.reason === 'farm_stops') return;  // it may be back soon, or another coordinator be there
      closed = true;
      for (const tile of tiles.values()) { tile.seen = false; close(tile); }
      return;
    }
    wait = 500;
    const there = new Set(said.tabs.map(tab => tab.context));
    for (const context of [...tiles.keys()]) if (!there.has(context)) remove(context);
    for (const tab of said.tabs) if (!tiles.has(tab.context)) add(tab);
    $('state').textContent = said.tabs.length ? `${said.tabs.length} in use` : 'nothing is in use';
  };
  socket.onclose = () => { if (!closed) { setTimeout(begin, wait); wait = Math.min(wait * 2, 10000); } };
}
document.addEventListener('visibilitychange', () => {
  for (const tile of tiles.values()) { watcher.unobserve(tile.link); tile.seen = false; close(tile); if (!document.hidden) watcher.observe(tile.link); }
});
begin();
