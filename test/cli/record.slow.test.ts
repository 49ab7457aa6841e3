import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { Gateway } from "#generated/clients/typescript/src/index.ts";
import { emptyFolder } from "./cli.ts";
import { startCommands } from "./gateway.ts";

const { run, start, json, gateway, secrets } = await startCommands();
const folder = emptyFolder(afterAll);
writeFileSync(join(folder, "alert.json"), '{"status":"firing","title":"disk"}');
writeFileSync(join(folder, "push.json"), '{"who":"ada"}');
const here = { cwd: folder };
async function sendAlert(): Promise<string> {
  return (await run(["hooks", "send", "alert.json", "-q"], here)).out.trim();
}

test("hooks send sends the webhook token, and prints where to find the result", async () => {
  const { code, out } = await run(["hooks", "send", "alert.json"], here);
  expect([code, out]).toEqual([
    0,
    expect.stringMatching(
      /^answer +turn started\nmapping +alert\n[\s\S]*Next: agent-gateway deliveries show dlv_\w+\n$/,
    ),
  ]);
});

test("hooks send signs like a sender", async () => {
  const signed = ["hooks", "send", "push.json", "--as", "github", "--mapping", "github"];
  const good = await run([...signed, "--secret-env", "GITHUB_SECRET"], {
    ...here,
    env: { GITHUB_SECRET: secrets.GITHUB_SECRET },
  });
  expect([good.code, good.out]).toEqual([0, expect.stringContaining("turn started")]);
  const wrong = await run([...signed, "--secret", "another-secret-of-some-length"], here);
  expect([wrong.code, wrong.err]).toEqual([
    4,
    expect.stringMatching(
      /signature is missing, wrong, or too old.*\nNext: agent-gateway deliveries list --outcome refused/,
    ),
  ]);
  expect(await run(signed, here)).toMatchObject({ code: 2, err: expect.stringContaining("--secret-env NAME") });
  expect(await run(["hooks", "send", "gone.json"], here)).toMatchObject({
    code: 2,
    err: "gone.json cannot be read: it does not exist.\nNext: agent-gateway hooks send --help\n",
  });
});

test("hooks test prints the mapping that matches, and the pair that does not", async () => {
  const match = await run(["hooks", "test", "alert.json"], here);
  expect([match.code, match.out]).toEqual([
    0,
    expect.stringMatching(
      /✕ github: headers\.x-github-event must be "push", and is missing\n✓ alert matches {2}→ main\n {4}Look: disk\nalert would start a turn\.\n$/,
    ),
  ]);
  expect((await run(["hooks", "test", "push.json"], here)).code).toBe(1);
  const elsewhere = await run(["hooks", "test", "push.json", "-H", "x-github-event: push"], here);
  expect([elsewhere.code, elsewhere.out]).toEqual([1, expect.stringContaining("Try it with --mapping github")]);
  const pushed = await run(["hooks", "test", "push.json", "--mapping", "github", "-H", "x-github-event: push"], here);
  expect([pushed.code, pushed.out]).toEqual([0, expect.stringContaining("ada pushed")]);
  expect((await run(["hooks", "test", await sendAlert()])).out).toContain("✓ alert matches");
});

test("deliveries show prints the timeline, and with --raw the request", async () => {
  const id = await sendAlert();
  await run(["deliveries", "replay", id, "--wait"]);
  const { out } = await run(["deliveries", "show", id]);
  for (const words of ["POST /hooks", "✓ Mapping `alert` matched", "✓ Reply completed in", "completed, answered 200"])
    expect(out).toContain(words);
  expect(out).not.toContain('"firing"');
  const raw = await run(["deliveries", "show", id, "--raw"]);
  expect(raw.out).toContain('{"status":"firing","title":"disk"}');
  expect(raw.out).not.toContain(secrets.WEBHOOK_TOKEN);
});

test("deliveries show prints the pair that failed of an unmatched request", async () => {
  writeFileSync(join(folder, "resolved.json"), '{"status":"resolved"}');
  const sent = await run(["hooks", "send", "resolved.json", "--mapping", "alert", "-q"], here);
  const { out } = await run(["deliveries", "show", sent.out.trim()]);
  expect(out).toMatch(/No mapping matched\n +alert: body\.status must be "firing", and is "resolved"\n/);
});

test("deliveries list filters, and prints only ids with -q", async () => {
  const id = await sendAlert();
  const { out } = await run(["deliveries", "list", "--surface", "hooks", "--mapping", "alert", "--from", "1h", "-q"]);
  expect(out.split("\n")).toContain(id);
  expect((await json("deliveries", "list", "--id", id)).deliveries).toHaveLength(1);
  expect(await run(["deliveries", "list", "--outcome", "fine"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("Allowed choices are"),
  });
  expect(await run(["deliveries", "list", "--from", "yesterday"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("Write 2h or 15m"),
  });
});

test("deliveries tail prints a line for each request when it arrives, with the reason for a refusal", async () => {
  const tail = start(["deliveries", "tail"]);
  const ids: string[] = [];
  // The first may arrive before the tail has started.
  while (!ids.some((id) => tail.result.out.includes(id))) ids.push(await sendAlert());
  await run(
    [
      "hooks",
      "send",
      "push.json",
      "--as",
      "github",
      "--mapping",
      "github",
      "--secret",
      "another-secret-of-some-length",
    ],
    here,
  );
  await tail.until(({ out }) =>
    /dlv_\w+ {2}refused {4}401 {2}POST \/hooks\/github {2}The signature does not match the body\./.test(out),
  );
  tail.child.kill("SIGINT");
  expect(await tail.ended).toMatchObject({ code: 130, err: "" });
});

test("deliveries tail prints JSON, one object per line", async () => {
  const tail = start(["deliveries", "tail", "--json", "--surface", "hooks"]);
  while (!tail.result.out.includes("\n")) await sendAlert();
  expect(JSON.parse(tail.result.out.split("\n")[0] ?? "")).toMatchObject({ surface: "hooks", mapping: "alert" });
});

test("deliveries replay sends a request again, with another body if one is given", async () => {
  const id = await sendAlert();
  const again = await json("deliveries", "replay", id);
  expect(again).toMatchObject({ replay_of: id, mapping: "alert" });
  const edited = await run(["deliveries", "replay", id, "--wait", "--body", '{"status":"firing","title":"fan"}']);
  expect([edited.code, edited.out]).toEqual([0, expect.stringContaining("Look: fan")]);
  expect(await run(["deliveries", "replay", id, "--body", "{"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("--body is not JSON"),
  });
});

test("deliveries curl prints a command that a shell runs, with secrets as variables", async () => {
  const { out } = await run(["deliveries", "curl", await sendAlert()]);
  expect(out).not.toContain(secrets.WEBHOOK_TOKEN);
  const env = { PATH: process.env.PATH, WEBHOOK_TOKEN: secrets.WEBHOOK_TOKEN };
  expect(String(execFileSync("sh", ["-c", out.replace("curl ", "curl -s ")], { env }))).toContain("turn started");
});

test("turns are listed, shown, followed and cancelled", async () => {
  const { turn_id } = await json("api", "POST", "/api/v1/chat/send", "agent=slow", "message=one two", "wait=false");
  expect((await run(["turns", "list", "--agent", "slow", "-q"])).out).toContain(turn_id);
  const cancelled = await run(["turns", "cancel", turn_id]);
  expect([cancelled.code, cancelled.out]).toEqual([0, expect.stringContaining(`${turn_id} is cancelled.`)]);
  const shown = await run(["turns", "show", turn_id]);
  expect(shown.out).toMatch(/state +cancelled/);
  expect(shown.err).toMatch(/Next: agent-gateway deliveries show dlv_/);
  const { turn_id: ended } = await json("send", "main", "All of it", "--no-stream");
  expect((await run(["turns", "show", ended, "--follow"])).out).toBe("All of it\n");
  expect((await run(["turns", "show", "turn_x"])).code).toBe(5);
});

test("sessions are listed, shown, compacted, and deleted after a question", async () => {
  await run(["send", "main", "Remember this", "--session", "chat:kept", "-q"]);
  expect((await run(["sessions", "list", "--agent", "main", "-q"])).out.split("\n")).toContain("chat:kept");
  expect((await run(["sessions", "show", "chat:kept"])).out).toMatch(
    /user\n {2}Remember this\n.*assistant\n {2}Remember this\n$/,
  );
  expect((await run(["sessions", "compact", "chat:kept"])).out).toMatch(/^Nothing was compacted\. /);
  const unasked = await run(["sessions", "delete", "chat:kept"]);
  expect([unasked.code, unasked.err]).toEqual([2, expect.stringContaining("Next: confirm with --yes")]);
  const asked = start(["sessions", "delete", "chat:kept"], { terminal: true });
  await asked.until(({ out }) => out.includes("[y/N]"));
  asked.type("y\r");
  expect(await asked.ended).toMatchObject({ code: 0, out: expect.stringContaining("chat:kept is deleted.") });
  expect((await run(["sessions", "show", "chat:kept"])).code).toBe(5);
});

test("events are listed, printed live, and replayed", async () => {
  const tail = start(["events", "tail"]);
  let id = "";
  while (id === "" || !tail.result.out.includes("queued"))
    id = (await json("api", "POST", "/hooks/wake", "text=look at this")).eventId;
  expect((await run(["events", "list", "--status", "queued", "-q"])).out).toContain(id);
  expect((await run(["events", "list"])).out).toContain("look at this");
  const replayed = await run(["events", "replay", id]);
  expect([replayed.code, replayed.err]).toEqual([1, expect.stringContaining("event-not-dead")]);
  expect((await run(["agents", "beat", "main"])).out).toMatch(/^A heartbeat started\./);
  await tail.until(({ out }) => out.includes("handled"));
});

test("open prints the page of an id, with a one-time sign-in code in the fragment", async () => {
  const { out } = await run(["open", "dlv_01M7YN0XENG6PX2VW8BN0JQS4T"]);
  const [page, key = ""] = out.trimEnd().split("#code=");
  expect(page).toBe(`${gateway.url}/console/d/dlv_01M7YN0XENG6PX2VW8BN0JQS4T`);
  const redeem = () => new Gateway({ url: gateway.url, key, maxRetries: 0 }).codes.redeem();
  expect(await redeem()).toEqual({ name: "console", kind: "console", token: secrets.CONSOLE_TOKEN });
  await expect(redeem()).rejects.toMatchObject({ name: "unauthenticated" });
  expect((await run(["open", "agent:main:main"])).out).toContain("/console/s/agent%3Amain%3Amain#");
  expect(await run(["open", "what"])).toMatchObject({ code: 2, err: expect.stringContaining("what is not the id") });
});

test("hooks send signs with the secret of this folder's configuration, and only for this machine", async () => {
  const cwd = emptyFolder();
  writeFileSync(join(cwd, "push.json"), '{"who":"ann"}');
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference in a configuration looks like that
  const verify = '{ type: "github", secret: "${GITHUB_SECRET}" }';
  writeFileSync(join(cwd, "gateway.json5"), `{ webhooks: { mappings: { github: { verify: ${verify} }, alert: {} } } }`);
  const send = ["hooks", "send", "push.json", "--as", "github", "--mapping"];
  expect(await run([...send, "github"], { cwd, env: { GITHUB_SECRET: secrets.GITHUB_SECRET } })).toMatchObject({
    code: 2,
    err: expect.stringContaining("--secret-env GITHUB_SECRET\n"),
  });
  writeFileSync(join(cwd, "gateway.env"), `GITHUB_SECRET=${secrets.GITHUB_SECRET}\n`);
  expect(await run([...send, "github"], { cwd })).toMatchObject({ code: 0 });
  expect(await run([...send, "nope"], { cwd })).toMatchObject({
    code: 2,
    err: expect.stringContaining("no verify.secret for nope. The mappings are github, alert.\n"),
  });
  expect(await run([...send, "github", "--url", "http://gateway.test"], { cwd })).toMatchObject({
    code: 2,
    err: expect.stringContaining("There is no secret to sign with.\n"),
  });
});

test("hooks send lists the configured mappings", async () => {
  const cwd = emptyFolder();
  writeFileSync(join(cwd, "push.json"), "{}");
  expect(await run(["hooks", "send", "push.json", "--mapping", "nope"], { cwd })).toMatchObject({
    code: 5,
    err: "No mapping is named nope. The mappings are github, alert.\nNext: name one: --mapping NAME\n",
  });
});

test("notifications list, replay and test show an endpoint that does not answer", async () => {
  await run(["send", "bad", "hi"]);
  const listed = await run(["notifications", "list", "--endpoint", "ops"]);
  expect(listed.out).toMatch(
    /^NOTIFICATION +EVENT +STATE +TRIES +CREATED +REASON\nntf_\w+\.ops +turn\.failed +(waiting|retrying)/,
  );
  const id = (await run(["notifications", "list", "-q"])).out.trim();
  const replayed = await run(["notifications", "replay", id]);
  expect([replayed.code, replayed.out]).toEqual([
    0,
    `${id} is queued again for ops.\nNext: agent-gateway notifications list --endpoint ops\n`,
  ]);
  const tested = await run(["notifications", "test", "ops"]);
  expect([tested.code, tested.out]).toEqual([
    1,
    expect.stringMatching(/^ops did not accept the test event: .+, \d+ ms\.\n$/),
  ]);
  expect(await json("notifications", "list", "--state", "delivered")).toEqual({ notifications: [], next_cursor: null });
  const unknown = await run(["notifications", "test", "opps"]);
  expect([unknown.code, unknown.err]).toEqual([5, expect.stringContaining("Did you mean `ops`?")]);
});
