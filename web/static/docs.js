// Shows the OpenAPI document of this server with Swagger UI, and lets it be tried.
"use strict";

// Creating comes before looking, and deleting last, so that whoever clicks from the top
// to the bottom finds what the examples name.
const methodOrder = ["post", "get", "put", "patch", "delete"];

function byMethod(a, b) {
  return methodOrder.indexOf(a.get("method")) - methodOrder.indexOf(b.get("method"));
}

// The event stream never ends, and Swagger UI shows an answer when it has ended.
const endless = new Set(["/events"]);

function oncelog() {
  return {
    statePlugins: {
      spec: {
        wrapSelectors: {
          allowTryItOutFor: (original, system) => (state, path, method) =>
            !endless.has(path) && original(state, path, method),
        },
      },
    },
  };
}

// Swagger UI has its dark colours under a class of the document; theme.js says when the
// theme changes.
const dark = matchMedia("(prefers-color-scheme: dark)");

function paint() {
  const theme = document.documentElement.dataset.theme;
  document.documentElement.classList.toggle("dark-mode", theme ? theme === "dark" : dark.matches);
}

document.addEventListener("themechange", paint);
paint();

const ui = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#operations",
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [oncelog],
  layout: "BaseLayout",
  validatorUrl: null, // by default it asks a server elsewhere
  queryConfigEnabled: false, // a link must not make this page show another document
  deepLinking: true,
  docExpansion: "list",
  operationsSorter: byMethod,
  defaultModelsExpandDepth: -1, // the schemas are shown with the operations
  syntaxHighlight: { activated: false },
  displayRequestDuration: true,
  showMutatedRequest: false,
  onComplete: () => document.documentElement.classList.add("ready"),
});

// Swagger UI follows the fragment only when it starts.
addEventListener("hashchange", () => ui.getSystem().layoutActions.parseDeepLinkHash(location.hash));
