"""Pages of many shapes, with what is to be read of each, and pages in many encodings."""

from typing import Any

SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "articles": (
        "<main>"
        + "".join(
            f"<article class=p data-sku=S{n}><h3><a href='/p/{n}?a=1&b=ü#f'>Thing {n}</a></h3>"
            f"<p class=price>EUR {n},{n:03}.50</p><ul class=tags><li>a</ul>"
            f"<img src=i{n}.png alt=''>"
            "</article>"
            for n in range(1, 9)
        )
        + "</main>",
        {
            "list": "article.p",
            "fields": {
                "title": "h3 a",
                "url": "h3 a@href",
                "sku": "@data-sku",
                "none": ".nothing",
                "price": {"selector": ".price", "type": "number"},
                "currency": {"selector": ".price", "regex": "[A-Z]{3}"},
                "tags": {"selector": ".tags li", "all": True},
                "image": "img@src",
                "has": {"selector": "img", "exists": True},
                "count": {"selector": "*", "count": True},
                "alt": "img@alt",
                "default": {"selector": ".nothing", "default": {"a": [1]}},
                "page": {"value": "${page.url} ${page.title}"},
            },
        },
    ),
    "from the outside in": (
        "<section class=a><div class=r><b>1</b><p><b>2</b></p></div></section>"
        "<div class=r><b>3</b><p class=a><b>4</b></p></div>",
        {
            "list": ".r",
            "fields": {
                "anywhere": {"selector": ".a b", "all": True},
                "self": {"selector": ".r b", "all": True},
                "child": {"selector": "> b", "all": True},
                "scope": {"selector": ":scope p > b", "all": True},
                "body": {"selector": "body b", "count": True},
                "beside": {"selector": "+ .r", "count": True},
            },
        },
    ),
    "css of today": (
        "<ul><li>a<i>1</i><li class='X y'>b<li disabled>c<li><input checked disabled><li></ul>",
        {
            "list": "ul",
            "fields": {
                "has": {"selector": "li:has(> i)", "all": True},
                "not": {"selector": "li:not(:has(i), :empty)", "all": True},
                "is": {"selector": ":is(li, i):nth-child(odd)", "all": True},
                "of": {"selector": ":nth-child(1 of .y)", "all": True},
                "case": {"selector": "[class~=x i]", "all": True},
                "last": {"selector": "li:nth-last-of-type(2)", "html": "outer"},
                "checked": {"selector": "input:checked", "count": True},
                "disabled": {"selector": ":disabled", "count": True},
                "empty": {"selector": "li:empty", "count": True},
                "upper": {"selector": "LI", "count": True},
            },
        },
    ),
    "xpath": (
        "<table id=t><tr><th>Name<td>Ann<tr><th>Age<td>7 <b>years</b></table>"
        "<p><a href=x>l</a><!-- no --><a>m</a>",
        {
            "list": "xpath///table//tr",
            "fields": {
                "name": "xpath/./th",
                "value": "xpath/td",
                "absolute": {"selector": "xpath///th", "all": True},
                "document": {"selector": "xpath//html/body/p/a", "count": True},
                "text": {"selector": "xpath/.//text()", "all": True},
                "number": "xpath/count(ancestor::*)",
                "half": "xpath/count(td) div 2",
                "string": "xpath/normalize-space(td)",
                "truth": "xpath/boolean(td/b)",
                "href": "xpath/ancestor::body//a/@href",
                "up": "xpath/../../@id",
                "of": "xpath/following-sibling::tr[th='Age']/td",
            },
        },
    ),
    "nested": (
        "<div class=s><b>S</b><i>3.5 of 5</i></div><div class=v><q>one</q><u>A</u></div>"
        "<div class=v><q>two</q></div>",
        {
            "fields": {
                "seller": {
                    "selector": ".s",
                    "fields": {"name": "b", "rating": {"selector": "i", "type": "number"}},
                },
                "reviews": {"list": ".v", "limit": 5, "fields": {"text": "q", "by": "u"}},
                "few": {"list": ".v", "limit": 1, "fields": {"text": "q"}},
                "none": {"list": ".w", "fields": {"text": "q"}},
                "inside": {"selector": ".w", "list": ".v", "fields": {"text": "q"}},
                "gone": {"selector": ".w", "fields": {"text": "q"}},
            },
        },
    ),
    "markup": (
        "<div class=t title='a&lt;b&quot;&amp;&nbsp;'>x &amp; y &lt;<!-- c --><br><IMG src=a>"
        "<svg viewBox='0 0 1 1'><foreignObject/></svg><template><i>q</i></template>"
        "<textarea>\n a</textarea><pre>\n\nb</pre><script>if (a < b) {}</script>&nbsp;</div>",
        {
            "fields": {
                "inner": {"selector": ".t", "html": "inner"},
                "outer": {"selector": ".t", "html": "outer"},
                "whole": {"html": "outer"},
                "title": ".t@title",
                "text": ".t",
                "template": "template",
                "script": "script",
            }
        },
    ),
    "words": (
        "<p>one<b>two</b> three<br>four<div>five<span>six</span></div>se\u00a0ven\u2009x"
        "<ul><li>a<li>b</ul><style>p{}</style><noscript><p>no</p></noscript><select><option>o"
        "<option>p</select><table><td>1<td>2</table>\u00ad\u200bz",
        {
            "fields": {
                "text": "body",
                "p": "p",
                "list": "ul",
                "table": "table",
                "select": "select",
                "noscript": "noscript",
                "hidden": {"selector": "noscript p", "exists": True},
            }
        },
    ),
    "broken markup": (
        "<p>a<p>b</div><b><i>c</b>d</i><table><p>moved<tr><td>x</table></body>late<a href=1>2<a>3"
        "<li>l<dd>d<form><form><input></form><h1>h</h2><math><mi>m</mi></math></p>e<frame>",
        {
            "fields": {
                "html": {"html": "outer"},
                "text": "body",
                "links": {"selector": "a", "all": True},
            }
        },
    ),
    "properties": (
        "<form><input id=i value=' v '><input type=checkbox class=c checked><select id=s>"
        "<option value=1>a<option selected> b  c </select><textarea id=t>\nx\n</textarea>"
        "<button value=go>Go</button></form><a id=l href=' /x y '>l</a><img id=m src='a%20b.png'>"
        "<a id=e>e</a>",
        {
            "fields": {
                "value": {"selector": "#i", "prop": "value"},
                "box": {"selector": ".c", "prop": "value"},
                "checked": {"selector": ".c", "prop": "checked"},
                "unchecked": {"selector": "#i", "prop": "checked"},
                "chosen": {"selector": "#s", "prop": "value"},
                "area": {"selector": "#t", "prop": "value"},
                "button": {"selector": "button", "prop": "value"},
                "href": {"selector": "#l", "prop": "href"},
                "src": {"selector": "#m", "prop": "src"},
                "no_href": {"selector": "#e", "prop": "href"},
                "id": {"selector": "#e", "prop": "id"},
                "tag": {"selector": "#e", "prop": "tagName"},
                "none": {"selector": "#e", "prop": "value"},
                "text": {"selector": "form", "prop": "textContent"},
                "class": {"selector": ".c", "prop": "className"},
                "number": {"selector": "#i", "prop": "value", "type": "number"},
            }
        },
    ),
    "addresses": (
        "<base href='/base/dir/'><a href='x'></a><a href='../y'></a><a href='//h.example/z'></a>"
        "<a href='?q=ü&amp;r=%zz'></a><a href='#f'></a><a href='HTTP://EX.example:80/a/./b/../c'></a>"
        "<a href='mailto:a@b'></a><a href='javascript:void 0'></a><a href=''></a><a></a>"
        "<a href='http://['></a><a href=' \t/t\nrim '></a><a href='http://0x7f.1/'></a>"
        "<a href='http://bücher.example/ä'></a><a href='data:text/plain,x y'></a>",
        {"list": "a", "fields": {"href": "@href", "in_list": {"selector": "xpath/@href"}}},
    ),
    "numbers": (
        "".join(
            f"<p>{text}</p>"
            for text in (
                "1,234.5",
                "-3",
                "\u2212 4",
                "1.234,56",
                "12 500",
                "0.1",
                "1e5",
                "no",
                "7%",
                "٣",
                "1'000",
                "99999999999999999999",
                "-0",
                ".5",
            )
        ),
        {
            "list": "p",
            "fields": {
                "n": {"type": "number"},
                "m": {"type": "number", "decimal": ","},
                "t": {},
                "r": {"regex": r"(\d+)\D*$", "type": "number"},
            },
        },
    ),
    "json inside": (
        '<script type="application/ld+json">{"a": [1, 2.0, "\\u00e9", null, 1e400]}</script>'
        '<script id=b type=application/json>{"a": {"b": "<!-- x --> & \\ud83d\\ude00"}}</script>'
        "<p>{no</p>",
        {
            "fields": {
                "ld": {"selector": "script[type='application/ld+json']", "type": "json"},
                "b": {"selector": "#b", "type": "json"},
                "bad": {"selector": "p", "type": "json"},
            }
        },
    ),
    "within": (
        "<div class=o><i>0</i></div><div id=w><div class=o><i>1</i></div>"
        "<div class=o><i>2</i></div></div>",
        {
            "within": "#w",
            "list": ".o",
            "limit": 1,
            "fields": {"n": {"selector": "i", "type": "number"}},
        },
    ),
    "unique": (
        "<p>a</p><p>a</p><p>b</p><p>a</p>",
        {"list": "p", "unique_by": "t", "fields": {"t": {}}},
    ),
    "a shadow": (
        "<x-a><template shadowrootmode=open><b>in</b></template></x-a><x-a><b>out</b></x-a>",
        {"list": "x-a", "fields": {"b": "b", "t": {}}},
    ),
    "a fragment of text": (
        "just text, no tags & more",
        {"fields": {"text": "body", "html": {"html": "outer"}}},
    ),
    "deep": (
        "<div>" * 200 + "x",
        {"fields": {"text": "body", "n": {"selector": "div", "count": True}}},
    ),
    "entities": (
        "<p title='&notit; &amp=1 &copy'>&eacute;&#x1F600;&#0;&#128;&lt;b&gt;"
        "&NotEqualTilde;&copy</p>",
        {"fields": {"t": "p", "a": "p@title"}},
    ),
    "null and returns": (
        "<pre>a\r\nb\rc\0d</pre><p title='x\r\ny'>",
        {"fields": {"raw": {"selector": "pre", "html": "inner"}, "t": "p@title"}},
    ),
}

CHARSETS: dict[str, tuple[bytes, str]] = {
    "utf-8 by header": ("<p>é ü 漢 😀".encode(), "text/html; charset=utf-8"),
    "latin-1 by header": ("<p>é ü €".encode("cp1252"), "text/html; charset=ISO-8859-1"),
    "quoted charset": ("<p>é".encode(), 'text/html; charset="UTF-8"'),
    "meta charset": ("<meta charset=windows-1251><p>Привет".encode("cp1251"), "text/html"),
    "meta http-equiv": (
        "<meta http-equiv=Content-Type content='text/html; charset=koi8-r'><p>Привет".encode(
            "koi8-r"
        ),
        "text/html",
    ),
    "header before meta": ("<meta charset=koi8-r><p>é".encode(), "text/html; charset=utf-8"),
    "bom before header": (b"\xef\xbb\xbf" + "<p>é".encode(), "text/html; charset=windows-1252"),
    "utf-16 with bom": (b"\xff\xfe" + "<p>é漢".encode("utf-16-le"), "text/html"),
    "utf-16be by header": ("<p>é漢".encode("utf-16-be"), "text/html; charset=utf-16be"),
    "meta says utf-16": ("<meta charset=utf-16><p>é".encode(), "text/html"),
    "shift_jis": ("<meta charset=shift_jis><p>日本語 ｱ".encode("cp932"), "text/html"),
    "euc-jp": ("<p>日本語".encode("euc-jp"), "text/html; charset=euc-jp"),
    "gbk": ("<p>中文".encode("gbk"), "text/html; charset=gb2312"),
    "big5": ("<p>中文".encode("big5"), "text/html; charset=big5"),
    "euc-kr": ("<p>한국어".encode("euc-kr"), "text/html; charset=euc-kr"),
    "unknown charset": ("<meta charset=utf-8><p>é".encode(), "text/html; charset=nonsense"),
    "broken utf-8": (b"<p>a\xc3b\xe2\x82c\xf0\x9f\x98\xff", "text/html; charset=utf-8"),
    "nothing said, utf-8": ("<p>naïve café".encode(), "text/html"),
    "nothing said, latin": ("<p>na\xefve caf\xe9 \x80".encode("latin-1"), "text/html"),
    "json": ('{"a": "é", "b": [1, 2]}\n'.encode(), "application/json"),
    "text": ("\na <b> & é\n".encode(), "text/plain; charset=utf-8"),
    "no type at all": (b"<!doctype html><title>t</title><p>x", ""),
}
