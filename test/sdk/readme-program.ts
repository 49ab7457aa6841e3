/** The blocks of a README in one language, each with the text of its own. */
function blocksOf(page: string, language: string): string[] {
  return [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, name, code]) =>
    name === language && code ? [code] : [],
  );
}

/** One TypeScript program of all blocks: the imports in front, and each block by itself, but for the one that makes the client. */
export function typescriptProgram(page: string, given: string): string {
  const imports = new Set<string>();
  const blocks = blocksOf(page, "ts").map((block) =>
    block.replace(/^import .*\n/gm, (line) => {
      imports.add(line);
      return "";
    }),
  );
  const [first = "", ...others] = blocks;
  return `${[...imports].join("")}${given}\n${first}\n${others.map((block) => `{\n${block}}\n`).join("\n")}`;
}

/** One Python program of all blocks. */
export function pythonProgram(page: string): string {
  return blocksOf(page, "python").join("\n");
}
