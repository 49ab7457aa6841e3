/** Runs the generator's script for each list of arguments that its parent sends, in one process: most of a run goes into loading what it needs. */
const script = new URL("../../scripts/generate.ts", import.meta.url).href;
let runs = 0;

process.on("message", async (args: string[]) => {
  let output = "";
  console.error = (words: string) => {
    output += `${words}\n`;
  };
  process.argv.splice(2, Number.POSITIVE_INFINITY, ...args);
  process.exitCode = 0;
  // Each as a module of its own, which does its work as it is loaded.
  await import(`${script}?run=${++runs}`);
  process.send?.({ code: process.exitCode, output });
});
