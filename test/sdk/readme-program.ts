/** The blocks of a README in one language, each with its text. */
function blocksOf(page: string, language: string): string[] {
  return [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, name, code]) =>
    name === language && code ? [code] : [],
  );
}

/** One TypeScript program of all blocks: the imports first, and each block in its own scope, except the one that creates the client. */
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
