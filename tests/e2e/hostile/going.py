"""Pages that won't stay or lead where they must not, and that pretend to be ours."""

from farm.protocol.failures import Reason
from tests.e2e.hostile.page import FINE, SLOW, Hostile

_METADATA = "http://169.254.169.254/latest/meta-data/"
_DENIED = "egress_denied"
_GOING = SLOW | {Reason.NAVIGATION_FAILED, Reason.SCRIPT_ERROR, Reason.EGRESS_DENIED}

GOING = (
    Hostile(name="reloads", script="setInterval(() => location.reload(), 30)", ends=_GOING),
    Hostile(name="meta-refresh", body="<meta http-equiv=refresh content=0>", ends=_GOING),
    Hostile(name="refresh-header", headers={"Refresh": "0"}, ends=_GOING),
    Hostile(name="endless-script-redirect", script="location = '?' + Math.random()", ends=_GOING),
    Hostile(
        name="hash-loop",
        script="onhashchange = () => { location.hash = Math.random() }; location.hash = 1",
        ends=_GOING,
    ),
    Hostile(
        name="form-loop",
        body="<form id=f method=post action='/page/form-loop'></form>",
        script="f.submit()",
        ends=_GOING,
    ),
    Hostile(
        name="local-files",
        script="location = 'file:///etc/passwd'; open('file:///etc/passwd');"
        " const f = document.createElement('iframe'); f.src = 'file:///etc/passwd';"
        " document.body.append(f)",
        steps=(
            {"goto": "SITE/page/local-files"},
            {"wait": "300ms"},
            {"assert": {"url": "http*://**"}},
        ),
    ),
    Hostile(
        name="browser-pages",
        script="location = 'chrome://settings'; open('chrome://quit');"
        " open('view-source:file:///etc/passwd'); open('devtools://devtools')",
        steps=(
            {"goto": "SITE/page/browser-pages"},
            {"wait": "300ms"},
            {"assert": {"url": "http*://**"}},
        ),
    ),
    Hostile(
        name="data-pages",
        script="location = 'data:text/html,<script>for (;;);</' + 'script>'",
        steps=(
            {"goto": "SITE/page/data-pages"},
            {"wait": "300ms"},
            {"assert": {"url": "http*://**"}},
        ),
    ),
    Hostile(name="javascript-urls", script="location = 'javascript:for(;;);'", ends=SLOW),
    Hostile(
        name="other-programs",
        script="for (const to of ['mailto:a@b.example', 'tel:1',"
        " 'ms-word:x', 'steam://run/1', 'intent://x#Intent;end']) { location = to;"
        " const f = document.createElement('iframe'); f.src = to; document.body.append(f);"
        " open(to) }",
        ends=_GOING,
    ),
    Hostile(
        name="protocol-handlers",
        script="try { navigator.registerProtocolHandler('web+x',"
        " '/%s'); navigator.registerProtocolHandler('mailto', '/%s') } catch {}",
    ),
    Hostile(
        name="metadata-by-script", script=f"location = '{_METADATA}'", ends=_GOING, notice=_DENIED
    ),
    Hostile(
        name="metadata-by-fetch",
        script=f"fetch('{_METADATA}', {{mode: 'no-cors'}}).catch(() => 0)",
        notice=_DENIED,
    ),
    Hostile(name="metadata-by-frame", body=f"<iframe src='{_METADATA}'></iframe>", notice=_DENIED),
    Hostile(
        name="metadata-by-redirect",
        script="fetch('/to-metadata', {mode: 'no-cors'}).catch(() => 0)",
        notice=_DENIED,
    ),
    Hostile(
        name="metadata-by-worker",
        script="new Worker(URL.createObjectURL(new Blob(["
        f"`fetch('{_METADATA}', {{mode: 'no-cors'}}).catch(() => 0)`])))",
        notice=_DENIED,
    ),
    Hostile(
        name="metadata-by-beacon",
        script=f"navigator.sendBeacon('{_METADATA}', 'x')",
        notice=_DENIED,
    ),
    Hostile(
        name="metadata-by-job", steps=({"goto": _METADATA},), ends=frozenset({Reason.EGRESS_DENIED})
    ),
    Hostile(
        name="file-by-job",
        steps=({"goto": "file:///etc/passwd"},),
        ends=frozenset({Reason.VALUE_INVALID, Reason.EGRESS_DENIED}),
    ),
    Hostile(
        name="other-machines",
        script="for (const to of ['http://127.0.0.1:1/',"
        " 'http://10.0.0.1/', 'http://[::1]:1/', 'http://localtest.invalid/'])"
        " fetch(to, {mode: 'no-cors'}).catch(() => 0)",
        notice=_DENIED,
    ),
    Hostile(
        name="false-overlay",
        body="<div popover=manual id=p style='inset:0'>agent-1 · T1 · idle"
        " <button id=stop>Stop</button></div>",
        script="p.showPopover(); for (const name of Object.getOwnPropertyNames(window)) if ("
        "/farm|binding|playwright|cdc_/i.test(name)) try { window[name](JSON.stringify({op:"
        " 'stop', attempt: 'x'})) } catch {} ; console.debug('{\"op\":\"stop\"}');"
        " document.documentElement.remove = () => 0",
        ends=FINE,
    ),
    Hostile(
        name="window-games",
        script="for (let i = 0; i < 99; i++) { moveTo(-9999, -9999);"
        " resizeTo(1, 1); focus(); blur(); close(); stop() } onblur = () => focus()",
        ends=FINE | {Reason.PAGE_CLOSED},
    ),
    Hostile(
        name="self-closing",
        steps=({"goto": "SITE/page/self-closing"}, {"wait": "60s"}),
        script="setTimeout(() => { open('', '_self'); window.close() }, 100)",
        ends=frozenset({Reason.PAGE_CLOSED, Reason.JOB_TIMEOUT}),
    ),
    Hostile(
        name="document-replaced",
        script="setInterval(() => { document.open(); document.write("
        "'<p>x'); document.close(); document.documentElement.replaceWith("
        "document.createElement('html')) }, 5)",
        ends=_GOING,
    ),
    Hostile(
        name="prototypes",
        script="Object.prototype.toJSON = () => { throw 1 };"
        " Array.prototype.map = Array.prototype.push = JSON.stringify = Promise.prototype.then ="
        " document.querySelector = () => { for (;;) {} }",
        ends=SLOW | {Reason.SCRIPT_ERROR},
    ),
)
