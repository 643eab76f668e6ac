// Applies the theme that was chosen before the page is painted, and offers to change it.
// Not a module: it must run before anything is shown.
"use strict";

(() => {
  const themes = ["auto", "light", "dark"];
  const root = document.documentElement;

  function stored() {
    try {
      const t = localStorage.getItem("oncelog.theme");
      return themes.includes(t) ? t : "auto";
    } catch {
      return "auto"; // storage is switched off
    }
  }

  function apply(theme) {
    if (theme === "auto") {
      delete root.dataset.theme;
    } else {
      root.dataset.theme = theme;
    }
    document.dispatchEvent(new Event("themechange"));
  }

  apply(stored());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("themechange")));

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    let theme = stored();
    const show = () => {
      button.textContent = `Theme: ${theme}`;
    };
    button.addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      try {
        localStorage.setItem("oncelog.theme", theme);
      } catch {
        // It holds for this page only.
      }
      apply(theme);
      show();
    });
    show();
  });
})();
