// Takes records from the page in one go. Called with the elements (one record each) and the spec,
// or with the spec alone: then spec.list, as plain CSS, says which elements are records, and
// without it the document is the one record. Answers {elsewhere: true} where plain CSS in the
// document does not tell: no match, not CSS, or shadow roots in which there may be more.
//
// Runs in the page's own world, so the page may have replaced anything: built-in methods of arrays
// and strings are avoided, and what the DOM offers is taken from the prototypes, because a form
// with <input name="innerHTML"> hides the property of that name. Leaves nothing behind.
//
// Answers {n, records, cut, next}: how many elements there were, what the fields gave (in the
// order of the spec; Python knows the names), how many texts were cut. As one JSON text where the
// page has not changed what that means, because it is far cheaper to carry.
(first, second) => {
  const alone = second === undefined;
  const spec = alone ? first : second;
  const getter = (prototype, name) => {
    const found = Object.getOwnPropertyDescriptor(prototype, name);
    return node => Reflect.apply(found.get, node, []);
  };
  const method = (prototype, name) => {
    const found = prototype[name];
    return (node, ...args) => Reflect.apply(found, node, args);
  };
  const textContent = getter(Node.prototype, 'textContent');
  const nodeType = getter(Node.prototype, 'nodeType');
  const firstChild = getter(Node.prototype, 'firstChild');
  const nextSibling = getter(Node.prototype, 'nextSibling');
  const baseURI = getter(Node.prototype, 'baseURI');
  const localName = getter(Element.prototype, 'localName');
  const firstElement = getter(Element.prototype, 'firstElementChild');
  const shadowRoot = getter(Element.prototype, 'shadowRoot');
  const innerHTML = getter(Element.prototype, 'innerHTML');
  const outerHTML = getter(Element.prototype, 'outerHTML');
  const getAttribute = method(Element.prototype, 'getAttribute');
  const inElement = method(Element.prototype, 'querySelectorAll');
  const inDocument = method(Document.prototype, 'querySelectorAll');
  const inFragment = method(DocumentFragment.prototype, 'querySelectorAll');

  const SKIPPED = {__proto__: null, script: 1, style: 1, template: 1, noscript: 1};
  const BREAKS = {__proto__: null, address: 1, article: 1, aside: 1, blockquote: 1, br: 1, dd: 1,
    details: 1, dialog: 1, div: 1, dl: 1, dt: 1, fieldset: 1, figcaption: 1, figure: 1, footer: 1,
    form: 1, h1: 1, h2: 1, h3: 1, h4: 1, h5: 1, h6: 1, header: 1, hr: 1, li: 1, main: 1, nav: 1,
    ol: 1, option: 1, p: 1, pre: 1, section: 1, summary: 1, table: 1, tbody: 1, td: 1, tfoot: 1,
    th: 1, thead: 1, tr: 1, ul: 1};
  const ABSOLUTE = {__proto__: null, href: 1, src: 1, action: 1};

  let cut = 0;
  const bounded = text => {
    if (text.length <= spec.maxText) return text;
    cut++;
    let short = '';
    for (let i = 0; i < spec.maxText; i++) short += text[i];
    return short;
  };

  // Text as the markup has it: a space where a block or a line break parts words, no scripts.
  // Not innerText, whose answer depends on styles and the window's size, and costs a layout.
  const walk = node => {
    let text = '';
    for (let child = firstChild(node); child !== null; child = nextSibling(child)) {
      const type = nodeType(child);
      if (type === 3 || type === 4) {
        text += textContent(child);
      } else if (type === 1) {
        const name = localName(child);
        if (SKIPPED[name]) continue;
        const inner = firstElement(child) === null ? textContent(child) : walk(child);
        text += BREAKS[name] ? ' ' + inner + ' ' : inner;
      }
    }
    return text;
  };
  const textOf = node => {
    if (typeof node !== 'object') return String(node);
    const type = nodeType(node);
    if (type === 9) return walk(node);
    if (type !== 1 || firstElement(node) === null || SKIPPED[localName(node)]) {
      return textContent(node);
    }
    return walk(node);
  };

  const xpath = (root, expression) => {
    const owner = nodeType(root) === 9 ? root : root.ownerDocument || document;
    const relative = expression[0] === '/' && root !== owner ? '.' + expression : expression;
    const result = Reflect.apply(Document.prototype.evaluate, owner, [relative, root, null, 0, null]);
    switch (result.resultType) {
      case 1: return [result.numberValue];
      case 2: return result.stringValue === '' ? [] : [result.stringValue];
      case 3: return [result.booleanValue];
    }
    const found = [];
    for (let n = result.iterateNext(); n !== null; n = result.iterateNext()) found[found.length] = n;
    return found;
  };
  const css = (root, selector) => {
    const type = nodeType(root);
    const light = type === 9 ? inDocument(root, selector)
      : type === 11 ? inFragment(root, selector) : inElement(root, selector);
    if (light.length === 0 && type === 1 && shadowRoot(root) !== null) {
      return inFragment(shadowRoot(root), selector);
    }
    return light;
  };
  const invalid = (path, selector, error) => {
    throw {__proto__: null, toString: () => '', path, selector, why: String(error && error.message)};
  };
  const query = (root, target, path) => {
    if (target === null) return [root];
    if (typeof root !== 'object') return [];
    try {
      return target.xpath ? xpath(root, target.text) : css(root, target.text);
    } catch (error) {
      return invalid(path, target.written, error);
    }
  };

  const absolute = (name, value, node) => {
    if (value === null || !ABSOLUTE[name]) return value;
    try {
      return new URL(value, baseURI(node)).href;
    } catch {
      return value;
    }
  };
  const property = (node, name) => {
    const value = node[name];
    if (value === undefined || value === null) return null;
    if (typeof value === 'boolean') return value;
    if (typeof value === 'number') return value - value === 0 ? value : null;
    return bounded(String(value));
  };
  const attribute = (node, name) => {
    if (typeof node !== 'object' || nodeType(node) !== 1) return null;
    const value = absolute(name, getAttribute(node, name), node);
    return value === null ? null : bounded(value);
  };
  const take = (found, field) => {
    const node = typeof found === 'object' && nodeType(found) === 9
      && field.kind !== 'text' && field.kind !== 'prop' ? document.documentElement : found;
    switch (field.kind) {
      case 'attribute': return attribute(node, field.name);
      case 'prop': return property(node, field.name);
      case 'inner': return typeof node === 'object' ? bounded(innerHTML(node)) : null;
      case 'outer': return typeof node === 'object' ? bounded(outerHTML(node)) : null;
    }
    if (typeof node === 'object' && nodeType(node) === 2) {
      return bounded(absolute(node.name, node.value, node.ownerElement));
    }
    return bounded(textOf(node));
  };

  // Finds the records as Playwright would, without Playwright: its own selector engine is put into
  // each new document at a cost of a third of the whole visit.
  const inTheOpen = () => {
    if (spec.list === null) return [document];
    try {
      const scope = spec.within === null ? document : inDocument(document, spec.within)[0];
      if (scope === undefined) return null;
      const found = css(scope, spec.list);
      if (found.length === 0) return null;
      const everything = inDocument(document, '*');
      for (let i = 0; i < everything.length; i++) {
        if (shadowRoot(everything[i]) !== null) return null;
      }
      return found;
    } catch {
      return null;
    }
  };
  const roots = alone ? inTheOpen() : first;
  if (roots === null) return {elsewhere: true};

  const record = (root, fields) => {
    const values = [];
    for (let i = 0; i < fields.length; i++) values[i] = read(root, fields[i]);
    return values;
  };
  const list = (found, limit, each) => {
    const values = [];
    for (let i = 0; i < found.length && values.length < limit; i++) {
      values[values.length] = each(found[i]);
    }
    return values;
  };
  const read = (root, field) => {
    if (field.kind === 'value') return null;
    const found = query(root, field.selector, field.path);
    if (field.kind === 'exists') return found.length > 0;
    if (field.kind === 'count') return found.length;
    if (field.kind !== 'fields') {
      if (field.all) return list(found, field.limit, node => take(node, field));
      return found.length > 0 ? take(found[0], field) : null;
    }
    if (field.list === null) return found.length > 0 ? record(found[0], field.fields) : null;
    if (found.length === 0) return [];
    const rows = query(found[0], field.list, field.path);
    return list(rows, field.limit, node => record(node, field.fields));
  };

  let answer;
  try {
    answer = {n: roots.length, records: list(roots, spec.limit, root => record(root, spec.fields))};
  } catch (error) {
    if (!error || error.path === undefined) throw error;
    return {invalid: error.selector, path: error.path, why: error.why};
  }
  answer.cut = cut;
  const changed = Object.prototype.toJSON || Array.prototype.toJSON || String.prototype.toJSON
    || Number.prototype.toJSON || Boolean.prototype.toJSON;
  return changed ? answer : JSON.stringify(answer);
}
