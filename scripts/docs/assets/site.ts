import { type Hit, openSearch, type Row } from "./search.ts";

// The pages work without this script. It adds a search, a choice of the theme, buttons that copy code, and tabs that remember the language.

declare global {
  var docsIndex: Row[] | undefined;
}

function remembered(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}
function remember(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // A browser may forbid storage; the choice then applies only to this page.
  }
}

const THEMES = ["auto", "light", "dark"];
function showTheme(theme: string): void {
  document.documentElement.dataset.theme = theme;
  const button = document.querySelector<HTMLButtonElement>("button.theme");
  if (!button) return;
  button.hidden = false;
  button.textContent = { auto: "Auto", light: "Light", dark: "Dark" }[theme] ?? theme;
  button.setAttribute("aria-label", `Theme: ${theme}`);
  button.onclick = () => {
    const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] as string;
    remember("docs-theme", next);
    showTheme(next);
  };
}

function chooseTab(value: string): void {
  for (const input of document.querySelectorAll<HTMLInputElement>(`.tabs > input[value="${value}"]`))
    input.checked = true;
}

function addCopyButtons(): void {
  for (const figure of document.querySelectorAll<HTMLElement>("figure.block")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(figure.querySelector("code")?.textContent ?? "");
        button.textContent = "Copied";
      } catch {
        button.textContent = "Select it, and press Ctrl C";
      }
      setTimeout(() => {
        button.textContent = "Copy";
      }, 2_000);
    });
    figure.append(button);
  }
}

let search: Promise<(query: string) => Hit[]> | undefined;
/** The index is a script, because a page of a local file cannot fetch. */
function loadSearch(): Promise<(query: string) => Hit[]> {
  search ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "search-index.js";
    script.onerror = () => reject(new Error("The search index could not be loaded."));
    script.onload = () => resolve(openSearch(globalThis.docsIndex ?? []));
    document.head.append(script);
  });
  return search;
}

const SHOWN = 12;
function startSearch(): void {
  const box = document.querySelector<HTMLElement>("search");
  const input = box?.querySelector("input");
  const found = document.getElementById("found");
  if (!box || !input || !found) return;
  box.hidden = false;

  const show = (...content: Node[]): void => {
    found.replaceChildren(...content);
    found.hidden = content.length === 0;
  };
  const say = (words: string): void => {
    const line = document.createElement("p");
    line.textContent = words;
    show(line);
  };
  const look = async (): Promise<void> => {
    const query = input.value.trim();
    if (query === "") return show();
    let find: (query: string) => Hit[];
    try {
      find = await loadSearch();
    } catch (error) {
      return say((error as Error).message);
    }
    if (input.value.trim() !== query) return;
    const results = find(query).slice(0, SHOWN);
    if (results.length === 0) return say(`No results for “${query}”.`);
    show(
      ...results.map((result) => {
        const link = document.createElement("a");
        link.href = result.href;
        const title = document.createElement("b");
        title.textContent = result.title;
        const page = document.createElement("span");
        page.textContent = result.page;
        link.append(title, page);
        return link;
      }),
    );
  };
  input.addEventListener("focus", () => void loadSearch().catch(() => undefined));
  input.addEventListener("input", () => void look());
  box.addEventListener("keydown", (event) => {
    const stops = [input, ...found.querySelectorAll("a")];
    const at = stops.indexOf(document.activeElement as HTMLAnchorElement);
    if (event.key === "ArrowDown") stops[Math.min(at + 1, stops.length - 1)]?.focus();
    else if (event.key === "ArrowUp") stops[Math.max(at - 1, 0)]?.focus();
    else if (event.key === "Enter" && at === 0) (stops[1] as HTMLElement | undefined)?.click();
    else if (event.key === "Escape") {
      input.value = "";
      show();
      input.focus();
    } else return;
    event.preventDefault();
  });
  // A result on this page changes only the address.
  found.addEventListener("click", () => show());
  document.addEventListener("click", (event) => {
    if (!box.contains(event.target as Node)) show();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping =
      (event.target as HTMLElement).closest("input:not([type=radio], [type=checkbox]), textarea") !== null;
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    input.focus();
  });
}

showTheme(remembered("docs-theme") ?? "auto");
const language = remembered("docs-language");
if (language !== null && /^\w+$/.test(language)) chooseTab(language);
document.addEventListener("change", ({ target }) => {
  if (!(target instanceof HTMLInputElement) || !target.matches(".tabs > input")) return;
  const { top } = target.getBoundingClientRect();
  chooseTab(target.value);
  remember("docs-language", target.value);
  // Groups above may have changed their height; the used one stays in place.
  scrollBy({ top: target.getBoundingClientRect().top - top, behavior: "instant" });
});
addCopyButtons();
startSearch();
