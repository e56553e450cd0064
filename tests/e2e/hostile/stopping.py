"""Pages that try to hang, to crash or to exhaust their renderer."""

from farm.protocol.failures import Reason
from tests.e2e.hostile.page import FINE, HANGS, SLOW, Hostile

_ENDED = HANGS | {Reason.PAGE_CRASHED}
_WASM_LOOP = (  # (module (func (export "f") (loop br 0)))
    "new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array("
    "[0,97,115,109,1,0,0,0,1,4,1,96,0,0,3,2,1,0,7,5,1,1,102,0,0,10,9,1,7,0,3,64,12,0,11,11]"
    "))).exports.f()"
)

STOPPING = (
    Hostile(name="endless-loop", script="for (;;) {}", ends=HANGS),
    Hostile(name="late-loop", script="setTimeout(() => { for (;;) {} }, 200)", ends=HANGS),
    Hostile(
        name="microtasks",
        script="const again = () => Promise.resolve().then(again); setTimeout(again, 100)",
        ends=HANGS,
    ),
    Hostile(
        name="recursion", script="const f = () => { try { f() } finally { f() } }; f()", ends=HANGS
    ),
    Hostile(name="backtracking", script="/^(a+)+$/.test('a'.repeat(60) + 'b')", ends=HANGS),
    Hostile(name="wasm-loop", script=f"setTimeout(() => {{ {_WASM_LOOP} }}, 100)", ends=HANGS),
    Hostile(
        name="atomics-wait",
        script="const w = new Worker(URL.createObjectURL(new Blob(["
        "'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)'])));"
        "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
        headers={
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Embedder-Policy": "require-corp",
        },
    ),
    Hostile(name="debugger", script="setInterval(() => { debugger }, 1)"),
    Hostile(
        name="synchronous-request",
        script="setTimeout(() => { const x = new XMLHttpRequest();"
        "x.open('GET', '/never', false); x.send() }, 100)",
        ends=HANGS,
    ),
    Hostile(
        name="blocked-unload",
        script="onbeforeunload = e => { e.preventDefault(); for (;;) {} };"
        "onpagehide = onunload = () => { for (;;) {} }",
    ),
    Hostile(
        name="unload-and-reload",
        script="onbeforeunload = () => 'stay'; setInterval(() => location.reload(), 30)",
        ends=SLOW | {Reason.SCRIPT_ERROR, Reason.NAVIGATION_FAILED},
    ),
    Hostile(
        name="allocation",
        script="'a'.repeat(1 << 28).split('')",
        ends=_ENDED | {Reason.NAVIGATION_FAILED},
    ),
    Hostile(
        name="memory",
        script="setTimeout(() => { const kept = []; for (;;)"
        " kept.push(new Array(1 << 20).fill(Math.random())) }, 50)",
        ends=_ENDED,
        heavy=True,
    ),
    Hostile(
        name="huge-dom",
        script="setInterval(() => { const f = document.createDocumentFragment();"
        "for (let i = 0; i < 20000; i++) f.append(document.createElement('p'));"
        "document.body.append(f) }, 1)",
        ends=SLOW | {Reason.PAGE_CRASHED},
    ),
    Hostile(
        name="deep-dom",
        script="let at = document.body; for (let i = 0; i < 40000; i++)"
        " { const d = document.createElement('div'); at.append(d); at = d }; at.offsetTop",
        ends=SLOW | {Reason.PAGE_CRASHED, Reason.NAVIGATION_FAILED},
    ),
    Hostile(
        name="mutations",
        script="new MutationObserver(() => document.body.toggleAttribute('x'))"
        ".observe(document.body, {attributes: true}); document.body.toggleAttribute('x')",
        ends=HANGS,
    ),
    Hostile(
        name="giant-canvas",
        script="for (let i = 0; i < 40; i++) { const c = document.createElement('canvas');"
        "c.width = c.height = 8192; document.body.append(c); const g = c.getContext('2d');"
        "g.fillRect(0, 0, 8192, 8192) }",
        ends=SLOW | {Reason.PAGE_CRASHED},
        heavy=True,
    ),
    Hostile(
        name="webgl",
        script="for (let i = 0; i < 200; i++) { const c = document.createElement('canvas');"
        "c.width = c.height = 4096; const g = c.getContext('webgl'); if (g) {"
        "g.clearColor(1, 0, 0, 1); g.clear(g.COLOR_BUFFER_BIT) } document.body.append(c) }",
        ends=SLOW | {Reason.PAGE_CRASHED},
        heavy=True,
    ),
    Hostile(
        name="css-bomb",
        body="<style>" + ":is(*,*) " * 60 + "{color:red} *{filter:blur(9px) blur(9px);"
        "background:repeating-conic-gradient(red 0 1%,blue 0 2%)}</style>" + "<div>" * 400,
        ends=SLOW,
    ),
    Hostile(
        name="svg-bomb",
        body="<svg width=900 height=900><defs><g id=g0><circle r=9 /></g>"
        + "".join(f"<g id=g{n}>" + f"<use href='#g{n - 1}'/>" * 10 + "</g>" for n in range(1, 8))
        + "</defs><use href='#g7'/></svg>",
        ends=SLOW | {Reason.PAGE_CRASHED},
    ),
    Hostile(
        name="thousand-frames",
        script="for (let i = 0; i < 1000; i++) { const f = document.createElement('iframe');"
        "f.srcdoc = '<p>x'; document.body.append(f) }",
        ends=SLOW,
        heavy=True,
    ),
    Hostile(
        name="frames-in-frames",
        script="const f = document.createElement('iframe'); f.srcdoc ="
        " document.documentElement.outerHTML.replaceAll('<iframe', '<i'); document.body.append(f)",
        ends=FINE | HANGS,
    ),
    Hostile(
        name="worker-bomb",
        script="const code = URL.createObjectURL(new Blob([`const u = '${'x'}';"
        "onmessage = e => { for (let i = 0; i < 4; i++) { const w = new Worker(e.data);"
        "w.postMessage(e.data) } for (;;) {} }`]));"
        "for (let i = 0; i < 4; i++) { const w = new Worker(code); w.postMessage(code) }",
        ends=SLOW | {Reason.PAGE_CRASHED},
        heavy=True,
    ),
)
