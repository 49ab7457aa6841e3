import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import openapi from "#generated/openapi.json" with { type: "json" };
import openrpc from "#generated/openrpc.json" with { type: "json" };
import { root } from "#test/harness/process.ts";
import { contractDiff } from "../../scripts/contract-diff/command.ts";
import { type Contract, compareContracts } from "../../scripts/contract-diff/contracts.ts";
import type { JsonObject } from "../../scripts/generate/json.ts";

// biome-ignore lint/suspicious/noExplicitAny: documents are edited in any place.
type Edited = Record<keyof Contract, any>;

function read(name: keyof Contract) {
  return JSON.parse(readFileSync(join(root, "specs/released", `${name}.json`), "utf8"));
}
const released: Contract = { openapi: read("openapi"), openrpc: read("openrpc"), pushes: read("pushes") };

/** The clients that a change of the contract breaks, and its additions. */
function changed(edit: (contract: Edited) => void) {
  const after = structuredClone(released);
  edit(after);
  const changes = compareContracts(released, after).map(
    ({ breaks, who, where, what }) => [breaks, `${who} | ${where}: ${what}`] as const,
  );
  return {
    breaking: changes.flatMap(([breaks, words]) => (breaks ? [words] : [])),
    notes: changes.flatMap(([breaks, words]) => (breaks ? [] : [words])),
  };
}
function shapes({ openapi }: Edited) {
  return openapi.components.schemas;
}
/** Lets `turn.completed` have a second body, which no constant tells from the first. */
function withEvent(contract: Edited) {
  const { Announcement } = shapes(contract);
  const properties = {
    ...Announcement.properties,
    data: { type: "object", properties: { usage: { type: "object" } } },
  };
  shapes(contract).TurnEnd = { ...Announcement, properties };
  const media = contract.openapi.webhooks["turn.completed"].post.requestBody.content["application/json"];
  media.schema = { oneOf: [media.schema, { $ref: "#/components/schemas/TurnEnd" }] };
}
function send({ openapi }: Edited) {
  return openapi.paths["/api/v1/chat/send"].post;
}
const SEND = "Clients that call POST /api/v1/chat/send (chat.send; SDKs: gateway.chat.send)";

describe("a breaking change is found, with the place and the affected clients", () => {
  test.each<[string, (contract: Edited) => void, string]>([
    [
      "an operation that was removed",
      ({ openapi }) => delete openapi.paths["/api/v1/turns/{turn_id}/cancel"],
      "SDKs: gateway.turns.cancel) | : the operation was removed",
    ],
    [
      "a method that was removed",
      ({ openrpc }) => openrpc.methods.shift(),
      "(SDKs: gateway.rpc.agent.list) | : the method was removed",
    ],
    [
      "a push that was removed",
      ({ pushes }) => delete pushes.channels.socket.messages["turn.completed"],
      "Readers of the push turn.completed | : it was removed",
    ],
    [
      "a field of a reply that was removed",
      (contract) => delete shapes(contract).ChatCompleted.properties.reply,
      `${SEND} | the reply 200.reply: the field was removed`,
    ],
    [
      "a field of a reply, deep inside",
      (contract) => delete shapes(contract).Usage.properties.total,
      `${SEND} | the reply 200.usage.total: the field was removed`,
    ],
    [
      "a field of a reply that may be missing",
      (contract) => shapes(contract).ChatCompleted.required.pop(),
      "| the reply 200.usage: it may be missing now",
    ],
    [
      "a field of a reply that may be null",
      (contract) => {
        shapes(contract).ChatCompleted.properties.reply.type = ["string", "null"];
      },
      "| the reply 200.reply: it may be null now",
    ],
    [
      "a value of a reply that was removed",
      (contract) => shapes(contract).TurnStatus.enum.pop(),
      `the reply 200.status: the value "cancelled" was removed`,
    ],
    [
      "a field of an event that was removed",
      (contract) => delete shapes(contract).TurnFailedEvent.properties.data.properties.error,
      `${SEND} | an event of the stream.data.error: the field was removed`,
    ],
    [
      "a field of an announcement that was removed",
      (contract) => delete shapes(contract).AnnouncedTurn.properties.reply,
      "| the body.data.reply: the field was removed",
    ],
    [
      "a field of an announcement that was removed, next to another body of the same type",
      (contract) => {
        withEvent(contract);
        delete shapes(contract).AnnouncedTurn.properties.reply;
      },
      "Receivers of turn.completed | the body.data.reply: the field was removed",
    ],
    [
      "a field of a push that was removed",
      ({ pushes }) => delete pushes.channels.socket.messages["turn.completed"].payload.properties.reply,
      "Readers of the push turn.completed | its params.reply: the field was removed",
    ],
    [
      "a field of a result that was removed",
      ({ openrpc }) => delete openrpc.components.schemas.SentMessage.properties.turnId,
      "gateway.rpc.agent.sendMessage) | the result.turnId: the field was removed",
    ],
    [
      "a success that is no longer returned",
      (contract) => delete send(contract).responses["202"],
      `${SEND} | the reply 202: it is no longer returned`,
    ],
    [
      "a new field that must be sent",
      (contract) => {
        shapes(contract).ChatRequest.properties.why = { type: "string" };
        shapes(contract).ChatRequest.required.push("why");
      },
      `${SEND} | the request.why: it is new and must be sent`,
    ],
    [
      "a field that must be sent now",
      (contract) => shapes(contract).ChatRequest.required.push("user_id"),
      `${SEND} | the request.user_id: it must be sent now`,
    ],
    [
      "a field that is refused now",
      (contract) => delete shapes(contract).ChatRequest.properties.skill_ids,
      `${SEND} | the request.skill_ids: the field is refused now`,
    ],
    [
      "a value that is no longer accepted",
      (contract) => shapes(contract).WakeRequest.properties.mode.enum.pop(),
      `| the request.mode: "now" is no longer accepted`,
    ],
    [
      "a type that is no longer accepted",
      (contract) => {
        shapes(contract).ChatRequest.properties.message = { type: "object" };
      },
      `${SEND} | the request.message: a string is no longer accepted`,
    ],
    [
      "a limit that is tighter",
      (contract) => {
        shapes(contract).ChatRequest.properties.skill_ids.maxItems = 2;
      },
      `${SEND} | the request.skill_ids: its maxItems is 2 now, and was 64`,
    ],
    [
      "a pattern that is new",
      (contract) => {
        shapes(contract).ChatRequest.properties.message.pattern = "^a";
      },
      `${SEND} | the request.message: its pattern is "^a" now`,
    ],
    [
      "a parameter that is refused now",
      ({ openapi }) => {
        openapi.paths["/api/v1/deliveries"].get.parameters = [];
      },
      "gateway.deliveries.list) | the query parameter surface: it is refused now",
    ],
    [
      "a param that must be sent now",
      ({ openrpc }) => {
        openrpc.methods[3].params[2].required = true;
      },
      "gateway.rpc.agent.sendMessage) | the param channel: it must be sent now",
    ],
  ])("%s", (_, edit, words) => {
    expect(changed(edit).breaking).toContainEqual(expect.stringContaining(words));
  });
});

describe("a compatible change passes", () => {
  test.each<[string, (contract: Edited) => void, string]>([
    [
      "an operation that is new",
      ({ openapi }) => {
        openapi.paths["/api/v1/new"] = { get: structuredClone(openapi.paths["/healthz"].get) };
      },
      "GET /api/v1/new | : the operation is new",
    ],
    [
      "a request to receivers that is new",
      ({ openapi }) => {
        openapi.webhooks["turn.failed"] = structuredClone(openapi.webhooks["turn.completed"]);
      },
      "Receivers of turn.failed | : it is new",
    ],
    ["a second body of a type that is sent", withEvent, ""],
    [
      "a field of a reply that is new",
      (contract) => {
        shapes(contract).ChatCompleted.properties.mood = { type: "string" };
      },
      `${SEND} | the reply 200.mood: the field is new`,
    ],
    [
      "a field of a request that may be sent",
      (contract) => {
        shapes(contract).ChatRequest.properties.mood = { type: "string" };
      },
      `${SEND} | the request.mood: the field is new`,
    ],
    [
      "a value of a reply that is new",
      (contract) => shapes(contract).TurnStatus.enum.push("asleep"),
      `the value "asleep" is new`,
    ],
    [
      "a limit that is wider",
      (contract) => {
        shapes(contract).ChatRequest.properties.skill_ids.maxItems = 128;
      },
      "",
    ],
    [
      "a type that is also accepted",
      (contract) => {
        shapes(contract).ChatRequest.properties.message.type = ["string", "null"];
      },
      "the request.message: null is also accepted",
    ],
    [
      "an error that is new",
      (contract) => send(contract)["x-errors"].push("not-found"),
      `${SEND} | its errors: not-found is new`,
    ],
    [
      "a shape with another name",
      (contract) => {
        shapes(contract).Answer = shapes(contract).ChatCompleted;
        delete shapes(contract).ChatCompleted;
        const text = JSON.stringify(contract.openapi).replaceAll(
          '"#/components/schemas/ChatCompleted"',
          '"#/components/schemas/Answer"',
        );
        contract.openapi = JSON.parse(text);
      },
      "",
    ],
    [
      "other words",
      (contract) => {
        send(contract).summary = "Say something";
      },
      "",
    ],
  ])("%s", (_, edit, words) => {
    const { breaking, notes } = changed(edit);
    expect(breaking).toEqual([]);
    if (words !== "") expect(notes).toContainEqual(expect.stringContaining(words));
  });

  test("the contract of the last release is in the repository", () => {
    expect(changed(() => {})).toEqual({ breaking: [], notes: [] });
  });
});

describe("the tools of the MCP door", () => {
  const released = { openapi: openapi as unknown as JsonObject, openrpc: openrpc as unknown as JsonObject, pushes: {} };
  const changesOf = (edit: (contract: Edited) => void) => {
    const after = structuredClone(released);
    edit(after);
    return compareContracts(released, after).flatMap(({ breaks, who, where, what }) =>
      who.startsWith("MCP") ? [`${breaks ? "breaks" : "note"} | ${who} | ${where}: ${what}`] : [],
    );
  };
  const toolOf = ({ openapi }: Edited, path: string, method = "get") => openapi.paths[path][method]["x-mcp"];

  test.each<[string, (contract: Edited) => void, string]>([
    [
      "that was removed",
      ({ openapi }) => delete openapi.paths["/api/v1/turns"].get["x-mcp"],
      "breaks | MCP clients that call list_turns | : the tool was removed",
    ],
    [
      "with another name",
      ({ openrpc }) => {
        openrpc.methods.find(({ name }: { name: string }) => name === "usage.stats")["x-mcp"].name = "usages";
      },
      "breaks | MCP clients that call usage | : the tool was removed",
    ],
    [
      "with a new argument that must be sent",
      (contract) => {
        shapes(contract).DryRunRequest.properties.method = { type: "string" };
        shapes(contract).DryRunRequest.required.push("method");
      },
      "breaks | MCP clients that call dry_run_mapping | its arguments.method: it is new and must be sent",
    ],
    [
      "with an argument that is refused now",
      ({ openapi }) => openapi.paths["/api/v1/turns"].get.parameters.shift(),
      "breaks | MCP clients that call list_turns | its arguments.status: the field is refused now",
    ],
    [
      "with a field of the result that was removed",
      (contract) => delete shapes(contract).TurnSummary.properties.preview,
      "breaks | MCP clients that call list_turns | its result.turns[].preview: the field was removed",
    ],
    [
      "that needs another scope",
      (contract) => {
        toolOf(contract, "/api/v1/turns/{turn_id}").scope = "admin";
        delete contract.openapi.paths["/api/v1/turns"].get["x-mcp"]; // There are at most 12 tools for operators.
      },
      "breaks | MCP clients that call turn_get | : its scope is admin now",
    ],
    [
      "that no longer only reads",
      (contract) => {
        toolOf(contract, "/api/v1/mappings/dry-run", "post").hint = "write";
      },
      "breaks | MCP clients that call dry_run_mapping | : its hint is write now",
    ],
    [
      "that is new",
      ({ openapi }) => {
        const tool = { name: "list_mappings", title: "List mappings", hint: "read", scope: "admin" };
        openapi.paths["/api/v1/mappings"].get["x-mcp"] = tool;
        delete openapi.paths["/api/v1/turns"].get["x-mcp"];
      },
      "note | MCP clients | list_mappings: the tool is new",
    ],
    [
      "with a new field of the result",
      (contract) => {
        shapes(contract).Turn.properties.mood = { type: "string" };
      },
      "note | MCP clients that call cancel_turn | its result.mood: the field is new",
    ],
  ])("a tool %s", (_, edit, words) => {
    expect(changesOf(edit)).toContain(words);
  });

  test("other words are not a change", () => {
    const edit = (contract: Edited) => {
      toolOf(contract, "/api/v1/turns").description = "Something else.";
    };
    expect(changesOf(edit)).toEqual([]);
  });
});

describe("npm run contract:diff", () => {
  const run = (...args: string[]) => {
    let [stdout, stderr] = ["", ""];
    const status = contractDiff(args, {
      print: (text) => (stdout += `${text}\n`),
      complain: (text) => (stderr += `${text}\n`),
    });
    return { status, stdout, stderr };
  };
  const specs = (edit: (text: string) => string): string => {
    const folder = mkdtempSync(join(tmpdir(), "contract-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    cpSync(join(root, "specs"), folder, { recursive: true });
    const file = join(folder, "schemas/chat.yaml");
    writeFileSync(file, edit(readFileSync(file, "utf8")));
    return folder;
  };

  test("passes today, as a process", () => {
    const { status, stdout } = spawnSync(process.execPath, ["--import", "tsx", "scripts/contract-diff.ts"], {
      cwd: root,
      encoding: "utf8",
    });
    expect([status, stdout]).toEqual([0, expect.stringContaining("No breaking changes")]);
  });

  test("fails for a broken contract, with the changes, the affected clients and the next step", () => {
    const { status, stdout, stderr } = run(
      "--specs",
      specs((text) =>
        text
          .replaceAll("    reply: { type: string,", "    answer: { type: string,")
          .replaceAll("status, reply,", "status, answer,"),
      ),
    );
    expect(status).toBe(1);
    expect(stdout).toContain(`${SEND}\n  breaks  the reply 200.reply: the field was removed\n`);
    expect(stderr).toContain("mark the old one `deprecated`");
  });

  test("updates the last release's contract, and reports what is missing", () => {
    const folder = mkdtempSync(join(tmpdir(), "released-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    expect(run("--released", folder)).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("--renew writes it"),
    });
    expect(run("--released", folder, "--renew").status).toBe(0);
    expect(run("--released", folder)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("0 changes since the last release"),
    });
    expect(run("--wrong")).toMatchObject({ status: 2, stderr: expect.stringContaining("--renew") });
  });
});
