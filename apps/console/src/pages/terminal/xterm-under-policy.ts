/**
 * Lets xterm.js work under a Content-Security-Policy with `style-src 'self'`, which blocks what it makes itself: style
 * elements, and `style` as an attribute. From now until the function that it returns is called, such an element is a
 * constructed stylesheet of the document, and such an attribute is set through the object model; the policy allows
 * both.
 */
export function adoptStyles(): () => void {
  const create = document.createElement.bind(document);
  const adopted = new Set<CSSStyleSheet>();

  const adoptedStyle = () => {
    const element = create('xterm-style');
    element.style.display = 'none';
    const sheet = new CSSStyleSheet();
    adopted.add(sheet);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    Object.defineProperty(element, 'textContent', { set: (text: string) => sheet.replaceSync(text) });
    element.remove = () => {
      withdraw(new Set([sheet]));
      Element.prototype.remove.call(element);
    };
    return element;
  };

  const span = () => {
    const element = create('span');
    element.setAttribute = (name, value) => {
      if (name === 'style') element.style.cssText = value;
      else Element.prototype.setAttribute.call(element, name, value);
    };
    return element;
  };

  const own = { style: adoptedStyle, span };
  Object.defineProperty(document, 'createElement', {
    configurable: true,
    value: (tag: string, options?: ElementCreationOptions) =>
      tag === 'style' || tag === 'span' ? own[tag]() : create(tag, options),
  });
  return () => {
    Reflect.deleteProperty(document, 'createElement');
    withdraw(adopted);
  };
}

function withdraw(sheets: ReadonlySet<CSSStyleSheet>): void {
  document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !sheets.has(sheet));
}
