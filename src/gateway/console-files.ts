import { fileURLToPath } from "node:url";

/** From the sources, from `dist/main.js`, and from a chunk beside it. */
const place = import.meta.url.endsWith(".ts")
  ? "../../dist/console"
  : import.meta.url.includes("/chunks/")
    ? "../console"
    : "./console";

/** Where the build has the console's pages. */
export const consoleFiles: string = fileURLToPath(new URL(place, import.meta.url));
