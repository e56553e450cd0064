"""Pages that flood whoever listens, and that fill what they are given to write on."""

from tests.e2e.hostile.page import HANGS, SLOW, Hostile

_SOME = "for (let i = 0; i < 2000; i++)"

FLOODING = (
    Hostile(
        name="console",
        script=f"setInterval(() => {{ {_SOME} console.log('x'.repeat(999)) }}, 1)",
        ends=SLOW,
        heavy=True,
    ),
    Hostile(
        name="errors",
        script="setInterval(() => { for (let i = 0; i < 300; i++)"
        " setTimeout(() => { throw new Error('x'.repeat(9999)) }) }, 1)",
        ends=SLOW,
        heavy=True,
    ),
    Hostile(
        name="requests",
        script="setInterval(() => { for (let i = 0; i < 40; i++)"
        " fetch('/nothing?' + Math.random()).catch(() => 0) }, 5)",
        ends=SLOW,
        heavy=True,
    ),
    Hostile(
        name="posts",
        script="setInterval(() => { for (let i = 0; i < 10; i++)"
        " fetch('/nothing', {method: 'POST', body: 'x'.repeat(9999)}).catch(() => 0) }, 20)",
        ends=SLOW,
        heavy=True,
    ),
    Hostile(
        name="websockets",
        script="setInterval(() => { new WebSocket('ws://' + location.host + '/nothing') }, 2)",
        ends=SLOW,
    ),
    Hostile(
        name="workers",
        script="for (let i = 0; i < 60; i++)"
        " new Worker(URL.createObjectURL(new Blob(['setInterval(() => postMessage(1), 1)'])))",
        ends=SLOW,
        heavy=True,
    ),
    Hostile(
        name="history",
        script="let n = 0; setInterval(() => { try { for (let i = 0; i < 500; i++)"
        " history.pushState({x: 'x'.repeat(9999)}, '', '#' + n++) } catch {} }, 1)",
        ends=SLOW,
        heavy=True,
    ),
    Hostile(
        name="title",
        script=f"setInterval(() => {{ {_SOME} document.title ="
        " Math.random() + 'x'.repeat(99999) }, 1)",
        ends=SLOW,
        heavy=True,
    ),
    Hostile(
        name="post-message",
        script="const m = 'x'.repeat(999); onmessage = () =>"
        " { postMessage(m, '*'); postMessage(m, '*') }; postMessage(m, '*')",
        ends=SLOW | HANGS,
        heavy=True,
    ),
    Hostile(
        name="alerts",
        script="setInterval(() => { alert('again'); confirm('and'); prompt('again') }, 5)",
        ends=SLOW,
        notice="dialog",
    ),
    Hostile(
        name="popups",
        script="for (let i = 0; i < 500; i++) open('about:blank', '_blank')",
        ends=SLOW,
        notice="popup_closed",
        heavy=True,
    ),
    Hostile(
        name="popups-of-popups",
        script="open('/page/popups-of-popups')",
        ends=SLOW,
        notice="popup_opened",
        heavy=True,
    ),
    Hostile(name="print", script="setInterval(() => print(), 50)", ends=SLOW),
    Hostile(
        name="fullscreen",
        body="<button id=go onclick='document.documentElement.requestFullscreen()'>x</button>",
        steps=({"goto": "SITE/page/fullscreen"}, {"click": "#go"}, {"wait_for": "#go"}),
    ),
    Hostile(
        name="local-storage",
        script="const x = 'x'.repeat(99999); try { for (let i = 0;; i++)"
        " localStorage.setItem(i, x) } catch {}",
        ends=SLOW,
    ),
    Hostile(
        name="indexed-db",
        script="const o = indexedDB.open('x'); o.onupgradeneeded = () =>"
        " o.result.createObjectStore('x'); o.onsuccess = () => { const more = () => { const t ="
        " o.result.transaction('x', 'readwrite'); t.objectStore('x').put(new Uint8Array(4e6),"
        " Math.random()); t.oncomplete = more }; more() }",
        ends=SLOW,
    ),
    Hostile(
        name="origin-private-files",
        script="navigator.storage?.getDirectory().then(async d =>"
        " { for (let i = 0;; i++) { const w = await (await d.getFileHandle('x' + i,"
        " {create: true})).createWritable(); await w.write(new Uint8Array(4e6));"
        " await w.close() } })",
        ends=SLOW,
    ),
    Hostile(
        name="cache-storage",
        script="caches.open('x').then(async c => { for (let i = 0;; i++)"
        " await c.put('/x' + i, new Response(new Uint8Array(4e6))) })",
        ends=SLOW,
    ),
    Hostile(
        name="cookies",
        script="for (let i = 0; i < 400; i++) document.cookie = i + '=' + 'x'.repeat(4000)",
        steps=({"goto": "SITE/page/cookies"}, {"goto": "SITE/page/plain", "optional": True}),
        ends=SLOW,
    ),
    Hostile(
        name="downloads",
        script="setInterval(() => { const a = document.createElement('a');"
        " a.download = '../../etc/x' + Math.random(); a.href = URL.createObjectURL("
        "new Blob([new Uint8Array(1e6)])); a.click() }, 30)",
        ends=SLOW,
        notice="download_cancelled",
    ),
    Hostile(
        name="endless-download",
        script="location = '/endless-download'",
        ends=SLOW,
        notice="download_cancelled",
    ),
    Hostile(
        name="file-choosers",
        body="<input type=file id=f onclick='setTimeout(() => f.click(), 9)'>",
        steps=({"goto": "SITE/page/file-choosers"}, {"click": "#f"}, {"wait": "300ms"}),
        notice="file_chooser_cancelled",
    ),
    Hostile(
        name="service-worker",
        script="navigator.serviceWorker.register('/worker.js').then(() =>"
        " setInterval(() => fetch('/nothing?' + Math.random()).catch(() => 0), 1))",
        ends=SLOW,
    ),
    Hostile(
        name="permissions",
        script="setInterval(() => { Notification.requestPermission();"
        " navigator.geolocation.getCurrentPosition(() => 0); navigator.clipboard?.readText()"
        ".catch(() => 0); navigator.mediaDevices?.getUserMedia({audio: true, video: true})"
        ".catch(() => 0); navigator.usb?.requestDevice({filters: []}).catch(() => 0);"
        " navigator.bluetooth?.requestDevice({acceptAllDevices: true}).catch(() => 0) }, 20)",
        ends=SLOW,
    ),
    Hostile(
        name="clipboard",
        body="<button id=go onclick='for (let i = 0; i < 99; i++)"
        ' { navigator.clipboard?.writeText("x".repeat(1e6)); document.execCommand("copy") }\'>x'
        "</button>",
        steps=({"goto": "SITE/page/clipboard"}, {"click": "#go"}),
    ),
)
