import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import { animationOf, framesOf } from "./animated-webp.ts";
import { callers, codeFor, TOKENS } from "./browser.ts";
import { REPLIES } from "./seed.ts";

const VIEW = { width: 1180, height: 430 };
/** The side bar is omitted. */
const CLIP = { x: 208, y: 0, width: VIEW.width - 208, height: VIEW.height };
const EVERY_MS = 220;
const LAST_MS = 2_500;
const WORD_MS = 60;

/** A service whose agents write their replies word by word. */
export async function startWriters() {
  const server = createServer(async (req, res) => {
    let body = "";
    for await (const part of req) body += part;
    const { text } = (JSON.parse(body) as { message: { text: string } }).message;
    if (text.includes("overloaded")) return void res.writeHead(503).end();
    const [, reply = "Noted."] = REPLIES.find(([word]) => text.includes(word)) ?? [];
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (const piece of reply.match(/\S+\s*/g) ?? []) {
      res.write(`data: ${JSON.stringify({ text: piece })}\n\n`);
      await sleep(WORD_MS);
    }
    const usage = { input: 180 + text.length, output: Math.ceil(reply.length / 4) };
    res.end(`event: done\ndata: ${JSON.stringify({ usage })}\n\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => void server.close().closeAllConnections(),
  };
}

/** A few seconds of work from several systems. */
async function work(url: string): Promise<void> {
  const { rest, hook, stranger } = callers({ url });
  const chat = (message: string, agent: string) => rest("/api/v1/chat/send", { message, agent, user_id: "ada" });
  const deploy = {
    kind: "deploy",
    environment: "production",
    service: "checkout",
    version: "1.8.2",
    by: { name: "grace" },
  };
  const steps: (() => Promise<unknown>)[] = [
    () => chat("Where is my order 4711?", "support"),
    () => hook("/hooks/agent", { message: "ada pushed: Sweep by the monotonic clock", agent: "review" }),
    () => hook("/hooks/invoices", { type: "invoice.paid", data: { object: { id: "in_1PxK" } } }),
    () => chat("Can I still change the address?", "support"),
    () => hook("/hooks/deploys", deploy),
    () => chat("Translate this: overloaded", "translate"),
    () => stranger("/hooks/wake", { text: "let me in" }),
    () => hook("/hooks/agent", { message: "Summarise the incident INC-204", agent: "on-call" }),
    () => chat("Great, thank you!", "support"),
  ];
  for (const step of steps) {
    void step().catch(() => {});
    await sleep(1_000);
  }
  await sleep(2_500);
}

/** Records the view Tail while work arrives. */
export async function filmTail(browser: Browser, url: string): Promise<Buffer> {
  const context = await browser.newContext({ viewport: VIEW, colorScheme: "dark" });
  const page = await context.newPage();
  await page.goto(`${url}/console?view=tail#code=${await codeFor(url, TOKENS.console)}`);
  await page.getByRole("log").or(page.getByText("No request")).first().waitFor();
  await sleep(1_500);
  const working = work(url);
  const shots = await shotsOf(page, working);
  await context.close();
  const blank = await browser.newPage();
  const frames = await framesOf(blank, shots);
  await blank.close();
  return animationOf(frames, CLIP);
}

async function shotsOf(page: Page, working: Promise<void>): Promise<{ png: Buffer; ms: number }[]> {
  const shots: { png: Buffer; ms: number }[] = [];
  let isOver = false;
  void working.then(() => {
    isOver = true;
  });
  while (!isOver) {
    const began = performance.now();
    const png = await page.screenshot({ clip: CLIP, animations: "allow", caret: "initial" });
    await sleep(Math.max(0, EVERY_MS - (performance.now() - began)));
    shots.push({ png, ms: performance.now() - began });
  }
  const last = shots.at(-1);
  if (last) last.ms = LAST_MS;
  return shots;
}
