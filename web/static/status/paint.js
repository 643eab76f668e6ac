// What drawings need: the colours of the theme, and when to draw again.

let colours = null;

/** The colours of the theme as a canvas takes them. */
export function palette() {
  if (colours === null) {
    const probe = document.createElement("span");
    document.body.append(probe);
    const resolve = (name) => {
      probe.style.setProperty("color", `var(--${name})`);
      return getComputedStyle(probe).color;
    };
    colours = {
      ink: resolve("ink"), ink2: resolve("ink-2"), ink3: resolve("ink-3"), line: resolve("line"), surface: resolve("surface"),
      accent: resolve("accent"), wait: resolve("wait"), lost: resolve("lost"), font: getComputedStyle(document.body).fontFamily,
    };
    probe.remove();
  }
  return colours;
}

document.addEventListener("themechange", () => {
  colours = null;
});

/** Calls draw when the size of an element or the theme changes, until what it returns is called. */
export function onResize(element, draw) {
  const observer = new ResizeObserver(() => draw());
  const themed = () => draw();
  observer.observe(element);
  document.addEventListener("themechange", themed);
  document.fonts.ready.then(draw);
  return () => {
    observer.disconnect();
    document.removeEventListener("themechange", themed);
  };
}
