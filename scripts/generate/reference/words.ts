/** Text as HTML holds it. */
export const escapeHtml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** A line of a description: `code`, **strong** and *stress*, as the specs use them. */
export const inline = (text: string): string =>
  escapeHtml(text)
    .split(/(`[^`]*`)/)
    .map((part) =>
      part.startsWith("`")
        ? `<code>${part.slice(1, -1)}</code>`
        : part.replaceAll(/\*\*([^*]+)\*\*/g, "<strong>$1</strong>").replaceAll(/\*([^*\s][^*]*)\*/g, "<em>$1</em>"),
    )
    .join("");

/** A description of several paragraphs, or of lists. */
export const prose = (text: string): string =>
  text
    .trim()
    .split(/\n{2,}/)
    .filter((block) => block !== "")
    .map((block) => {
      const lines = block.split("\n");
      if (!lines.every((line) => /^(- |\s)/.test(line))) return `<p>${inline(lines.join(" "))}</p>`;
      const items = block.split(/^- /m).slice(1);
      return `<ul>${items.map((item) => `<li>${inline(item.trim().replaceAll(/\s*\n\s*/g, " "))}</li>`).join("")}</ul>`;
    })
    .join("\n");

export const code = (text: string): string => `<code>${escapeHtml(text)}</code>`;

/** An example, as a caller writes or reads it. */
export const sample = (title: string, text: string): string =>
  `<figure>${title === "" ? "" : `<figcaption>${inline(title)}</figcaption>`}<pre>${escapeHtml(text)}</pre></figure>`;

export const pretty = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
