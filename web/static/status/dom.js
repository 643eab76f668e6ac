// Builds and updates elements. Text always goes in as text, never as markup.

/**
 * Makes an element. In props, "class" and other names are attributes, "on…" are
 * listeners, "style" is an object of CSS properties; null and false leave one out.
 * Children are nodes, texts, or arrays of them.
 */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Like h, for SVG. */
export function svg(tag, props, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) {
      continue;
    }
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), value);
    } else if (name === "style") {
      // By the object model: a style attribute is what the policy of the page forbids.
      for (const [property, v] of Object.entries(value)) {
        element.style.setProperty(property, v);
      }
    } else {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) {
      append(element, child);
    } else if (child !== null && child !== undefined && child !== false) {
      element.append(child);
    }
  }
}

/** Replaces what is in an element. */
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Sets the text of an element if it is another one, so that nothing is redrawn or read out in vain. */
export function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

/** Sets or removes an attribute if it is another one. */
export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) {
    element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value === true ? "" : value)) {
    element.setAttribute(name, value === true ? "" : value);
  }
}

/**
 * A list of names and values that change: facts({id: "name"}) gives {element, set(id, value)}.
 * A value is a text or nodes.
 */
export function facts(names, props) {
  const values = {};
  const element = h("dl", { class: "facts", ...props }, Object.entries(names).map(([id, name]) => {
    values[id] = h("dd", { id: `fact-${id}` }, "–");
    return h("div", null, h("dt", null, name), values[id]);
  }));
  return {
    element,
    set(id, value) {
      if (typeof value === "string") {
        setText(values[id], value);
      } else {
        replace(values[id], value);
      }
    },
  };
}
