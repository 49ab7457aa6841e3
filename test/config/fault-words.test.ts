// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { describe, expect, test } from "vitest";
import { formOfPattern } from "#config/forms.ts";
import bundled from "#generated/config.schema.json" with { type: "json" };
import { refusal, refused } from "./configs.ts";

const stores = ["memory", "sqlite", "postgres"];
const built = { stores, backends: ["echo", "http", "model", "command", "a2a", "acp"] };

/** Every kind of fault that a configuration can have, with the words for it: what is wrong, and what to write. */
describe("the words for", () => {
  test.each<[object, string | string[]]>([
    [{ agents: [] }, 'agents must be an object, for example `{ main: { backend: "echo" } }`.'],
    [{ agents: null }, 'agents must be an object, for example `{ main: { backend: "echo" } }`.'],
    [{ defaultAgent: "main" }, "defaultAgent is no key of the configuration; did you mean `gateway.defaultAgent`?"],
    [{ port: 1 }, "port is no key of the configuration; did you mean `gateway.port`?"],
    [{ gatewy: {} }, "gatewy is no key of the configuration; did you mean `gateway`?"],
    [{ gateway: { prot: 1 } }, "gateway.prot is no key of gateway; did you mean `port`?"],
    [{ skills: { colour: 1 } }, "skills.colour is no key of skills; it has dirs."],
    [{ gateway: { port: "18789" } }, "gateway.port must be a whole number, without quotes."],
    [{ gateway: { port: 1.5 } }, "gateway.port must be a whole number."],
    [{ gateway: { port: 70000 } }, "gateway.port must be at most 65535."],
    [{ gateway: { port: -1 } }, "gateway.port must be at least 0."],
    [{ gateway: null }, "gateway must be an object, in braces: `{…}`."],
    [{ gateway: { host: "" } }, "gateway.host must not be empty."],
    [{ gateway: { openai: { enabled: "true" } } }, "gateway.openai.enabled must be `true` or `false`, without quotes."],
    [{ gateway: { rpc: { auth: { type: "basic" } } } }, "gateway.rpc.auth.type must be `bearer`."],
    [
      { gateway: { listeners: [] } },
      'gateway.listeners must not be empty, for example `[{ port: 8080, surfaces: ["rest"] }, { port: 9090, surfaces: ["metrics"] }]`.',
    ],
    [{ gateway: { listeners: [{}] } }, "gateway.listeners[0].port is missing. Add it, for example `port: 8080`."],
    [
      { gateway: { listeners: [{ port: 1, tls: {} }] } },
      [
        'gateway.listeners[0].tls.cert is missing. Add it, for example `cert: "./tls/cert.pem"`.',
        'gateway.listeners[0].tls.key is missing. Add it, for example `key: "./tls/key.pem"`.',
      ],
    ],
    [
      { gateway: { listeners: [{ port: 1, surfaces: ["rest", "web"] }] } },
      "gateway.listeners[0].surfaces[1] must be `rest`, `rpc`, `webhooks`, `console`, `docs` or `metrics`.",
    ],
    [
      { gateway: { listeners: [{ port: 1, surfaces: ["rest", "rest"] }] } },
      "gateway.listeners[0].surfaces has the same entry twice: remove one of them.",
    ],
    [
      {
        gateway: {
          listeners: [
            { port: 0 },
            { port: 0 },
            { port: 0 },
            { port: 0 },
            { port: 0 },
            { port: 0 },
            { port: 0 },
            { port: 0 },
            { port: 0 },
            { port: 0 },
            { port: 0 },
            { port: 0 },
            { port: 0 },
            { port: 0 },
            { port: 0 },
            { port: 0 },
            { port: 0 },
          ],
        },
      },
      "gateway.listeners must have at most 16 entries.",
    ],
    [
      { gateway: { rest: { auth: { keys: [{}] } } } },
      [
        'gateway.rest.auth.keys[0].name is missing. Add it, for example `name: "ci"`.',
        'gateway.rest.auth.keys[0].key is missing. Add it, for example `key: "${REST_API_KEY}"`.',
      ],
    ],
    [
      { gateway: { rest: { auth: { keys: ["abc"] } } } },
      'gateway.rest.auth.keys[0] must be an object, for example `{ name: "ci", key: "${REST_API_KEY}" }`.',
    ],
    [
      { gateway: { rest: { auth: { keys: [{ name: "a", key: "b", scopes: ["adnim"] }] } } } },
      "gateway.rest.auth.keys[0].scopes[0] must be `chat` or `admin`; did you mean `admin`?",
    ],
    [
      { gateway: { rpc: { auth: { tokens: [{}] } } } },
      [
        'gateway.rpc.auth.tokens[0].name is missing. Add it, for example `name: "ci"`.',
        'gateway.rpc.auth.tokens[0].token is missing. Add it, for example `token: "${RPC_TOKEN}"`.',
        'gateway.rpc.auth.tokens[0].permissions is missing. Add it, for example `permissions: ["agent.list", "session.list", "system.health"]`.',
      ],
    ],
    [
      { gateway: { rpc: { auth: { tokens: [{ name: "a", token: "b", permissions: "all" }] } } } },
      'gateway.rpc.auth.tokens[0].permissions must be `"*"` or a list, for example `["agent.list", "session.list", "system.health"]`.',
    ],
    [
      {
        gateway: {
          rpc: { auth: { tokens: [{ name: "a".repeat(65), token: "b", permissions: ["agent.lst", "everything"] }] } },
        },
      },
      "gateway.rpc.auth.tokens[0].name must have at most 64 characters.",
    ],
    [
      { gateway: { clearTextFrom: ["x"] } },
      "gateway.clearTextFrom[0] must be an IP address or a network, for example `10.0.0.0/8` or `fd00::/8`.",
    ],
    [
      { gateway: { clearTextFrom: "10.0.0.0/8" } },
      'gateway.clearTextFrom must be a list, for example `["172.16.0.0/12"]`.',
    ],
    [{ webhooks: { token: "" } }, 'webhooks.token must not be empty, for example `"${WEBHOOK_TOKEN}"`.'],
    [{ webhooks: { token: 5 } }, 'webhooks.token must be text or a list, for example `"${WEBHOOK_TOKEN}"`.'],
    [{ webhooks: { token: [] } }, 'webhooks.token must not be empty, for example `"${WEBHOOK_TOKEN}"`.'],
    [{ webhooks: { token: [5] } }, "webhooks.token[0] must be text or an object."],
    [
      { webhooks: { token: [{ valu: "x" }] } },
      [
        'webhooks.token[0].value is missing. Add it, for example `value: "${WEBHOOK_TOKEN}"`.',
        "webhooks.token[0].valu is no key of webhooks.token[0]; did you mean `value`?",
      ],
    ],
    [
      { webhooks: { token: [{ value: "x", since: "1 March" }] } },
      'webhooks.token[0].since must be a day as year-month-day, for example `"2026-03-01"`.',
    ],
    [
      { webhooks: { token: [{ value: "x", since: "2026-99-99" }] } },
      'webhooks.token[0].since must be a day as year-month-day, for example `"2026-03-01"`.',
    ],
    [
      { webhooks: { token: [{ value: "x", since: 20260301 }] } },
      'webhooks.token[0].since must be a day as year-month-day, for example `"2026-03-01"`.',
    ],
    [
      { webhooks: { path: "hooks" } },
      "webhooks.path must be a path of letters, digits, `.`, `_`, `~` and `-` that begins with `/` and does not end with one, for example `/hooks`.",
    ],
    [
      { webhooks: { mappings: { wake: { match: {}, message: "x" } } } },
      "webhooks.mappings.wake must be a name that begins with a small letter, then small letters, digits and `-`, at most 64 characters, but not `wake` or `agent`, which are taken.",
    ],
    [
      { webhooks: { mappings: { Push: { match: {}, message: "x" } } } },
      "webhooks.mappings.Push must be a name that begins with a small letter, then small letters, digits and `-`, at most 64 characters, but not `wake` or `agent`, which are taken.",
    ],
    [
      {
        webhooks: {
          token: "xxxxxxxxxxxxxxxxxxxxxxx",
          mappings: { push: { match: { "header.x": "a" }, message: "x" } },
        },
      },
      'webhooks.mappings.push.match["header.x"] must be a place in the request, `headers.<name>` or `body.<dotted path>`, for example `headers.x-github-event` or `body.action`. Did you mean `headers.x`?',
    ],
    [
      { webhooks: { token: "xxxxxxxxxxxxxxxxxxxxxxx", mappings: { push: { match: { ref: "a" }, message: "x" } } } },
      "webhooks.mappings.push.match.ref must be a place in the request, `headers.<name>` or `body.<dotted path>`, for example `headers.x-github-event` or `body.action`.",
    ],
    [
      { webhooks: { token: "xxxxxxxxxxxxxxxxxxxxxxx", mappings: { push: { match: { "body.": "a" }, message: "x" } } } },
      'webhooks.mappings.push.match["body."] must be a place in the request, `headers.<name>` or `body.<dotted path>`, for example `headers.x-github-event` or `body.action`.',
    ],
    [
      {
        webhooks: {
          token: "xxxxxxxxxxxxxxxxxxxxxxx",
          mappings: { push: { match: { "headers.x y": "a" }, message: "x" } },
        },
      },
      'webhooks.mappings.push.match["headers.x y"] names a header that no request can have.',
    ],
    [
      {
        webhooks: {
          token: "xxxxxxxxxxxxxxxxxxxxxxx",
          mappings: { push: { match: { "headers.authorization": "a" }, message: "x" } },
        },
      },
      'webhooks.mappings.push.match["headers.authorization"] names a header that may hold a secret: mappings never read those.',
    ],
    [
      {
        webhooks: {
          token: "xxxxxxxxxxxxxxxxxxxxxxx",
          mappings: { push: { match: { "body.a..b": "a" }, message: "x" } },
        },
      },
      'webhooks.mappings.push.match["body.a..b"] has an empty step: between two dots stands a key or an index.',
    ],
    [
      { webhooks: { token: "xxxxxxxxxxxxxxxxxxxxxxx", mappings: { push: { match: { "body.a": {} }, message: "x" } } } },
      'webhooks.mappings.push.match["body.a"] must be text, a number, `true`, `false` or a list.',
    ],
    [
      { webhooks: { token: "xxxxxxxxxxxxxxxxxxxxxxx", mappings: { push: { match: { "body.a": [] }, message: "x" } } } },
      'webhooks.mappings.push.match["body.a"] must not be empty.',
    ],
    [
      { webhooks: { token: "xxxxxxxxxxxxxxxxxxxxxxx", mappings: { push: { match: undefined, message: "x" } } } },
      'webhooks.mappings.push.match is missing. Add it, for example `match: { "headers.x-github-event": "push", "body.ref": "refs/heads/main" }`.',
    ],
    [
      { webhooks: { token: "xxxxxxxxxxxxxxxxxxxxxxx", mappings: { push: { match: {}, message: undefined } } } },
      'webhooks.mappings.push.message is missing. Add it, for example `message: "{body.pusher.name} pushed {body.head_commit.message}"`.',
    ],
    [
      { webhooks: { token: "xxxxxxxxxxxxxxxxxxxxxxx", mappings: { push: { match: {}, message: "" } } } },
      'webhooks.mappings.push.message must not be empty, for example `"{body.pusher.name} pushed {body.head_commit.message}"`.',
    ],
    [
      { webhooks: { token: "xxxxxxxxxxxxxxxxxxxxxxx", mappings: { push: { match: {}, message: " " } } } },
      "webhooks.mappings.push.message is blank: write what the agent is told.",
    ],
    [
      { webhooks: { token: "xxxxxxxxxxxxxxxxxxxxxxx", mappings: { push: { match: {}, message: "{foo}" } } } },
      "webhooks.mappings.push.message holds `{foo}`, which is no placeholder: write {body.<path>} or {headers.<name>}, or {{ for a brace.",
    ],
    [
      {
        webhooks: {
          token: "xxxxxxxxxxxxxxxxxxxxxxx",
          mappings: { push: { match: {}, message: "x", session: "main" } },
        },
      },
      "webhooks.mappings.push.session must be the name of a session that begins with `webhook:`, for example `webhook:github`.",
    ],
    [
      {
        webhooks: { token: "xxxxxxxxxxxxxxxxxxxxxxx", mappings: { push: { match: {}, message: "x", agent: "mian" } } },
      },
      "webhooks.mappings.push.agent names an agent that is not configured; did you mean `main`?",
    ],
    [
      { webhooks: { token: "xxxxxxxxxxxxxxxxxxxxxxx", mappings: { push: { match: {}, message: "x", agent: "zzz" } } } },
      "webhooks.mappings.push.agent names an agent that is not configured; there is `main`.",
    ],
    [
      {
        webhooks: {
          token: "xxxxxxxxxxxxxxxxxxxxxxx",
          mappings: { push: { match: {}, message: "x", delivery: "announced" } },
        },
      },
      "webhooks.mappings.push.delivery must be `none` or `announce`; did you mean `announce`?",
    ],
    [
      { webhooks: { token: "xxxxxxxxxxxxxxxxxxxxxxx", mappings: { push: { match: {}, message: "x", verify: {} } } } },
      [
        'webhooks.mappings.push.verify.type is missing. Add it, for example `type: "github"`.',
        'webhooks.mappings.push.verify.secret is missing. Add it, for example `secret: "${GITHUB_SECRET}"`.',
      ],
    ],
    [
      {
        webhooks: {
          token: "xxxxxxxxxxxxxxxxxxxxxxx",
          mappings: { push: { match: {}, message: "x", verify: { type: "githb", secret: [] } } },
        },
      },
      [
        "webhooks.mappings.push.verify.type must be `standard-webhooks`, `github`, `stripe` or `slack`; did you mean `github`?",
        'webhooks.mappings.push.verify.secret must not be empty, for example `"${GITHUB_SECRET}"`.',
      ],
    ],
    [
      {
        webhooks: {
          token: "xxxxxxxxxxxxxxxxxxxxxxx",
          mappings: { push: { match: { "headers.x-a": ["a"], "headers.X-A": "b" }, message: "x" } },
        },
      },
      'webhooks.mappings.push.match["headers.X-A"] is the same place as headers.x-a: write it once.',
    ],
    [
      {
        webhooks: {
          token: "xxxxxxxxxxxxxxxxxxxxxxx",
          mappings: { push: { match: { "body.a": "1", "body.a.b": "2" }, message: "x" } },
        },
      },
      'webhooks.mappings.push.match["body.a.b"] can never match together with `body.a`: when that one matches, this one has another value.',
    ],
    [
      {
        webhooks: {
          token: "xxxxxxxxxxxxxxxxxxxxxxx",
          mappings: { push: { match: { "headers.x": " " }, message: "x" } },
        },
      },
      'webhooks.mappings.push.match["headers.x"] can never match: no header has such a value, or one with a space around it.',
    ],
    [{ agents: { main: {} } }, 'agents.main.backend is missing. Add it, for example `backend: "echo"`.'],
    [
      { agents: { main: { backend: "ecko" } } },
      "agents.main.backend must be `echo`, `model`, `a2a`, `http`, `command` or `acp`; did you mean `echo`?",
    ],
    [
      { agents: { main: { backend: "chatgpt" } } },
      "agents.main.backend must be `echo`, `model`, `a2a`, `http`, `command` or `acp`.",
    ],
    [
      { agents: { main: { backend: 5 } } },
      "agents.main.backend must be `echo`, `model`, `a2a`, `http`, `command` or `acp`.",
    ],
    [
      { agents: { main: { backend: "http" } } },
      'agents.main.http is missing. It says how to reach the agent, for example `http: { url: "https://agent.example.com/turns" }`.',
    ],
    [
      { agents: { main: { backend: "a2a" } } },
      'agents.main.a2a is missing. It says how to reach the agent, for example `a2a: { url: "https://agent.example.com" }`.',
    ],
    [
      { agents: { main: { backend: "command" } } },
      'agents.main.command is missing. It says how to reach the agent, for example `command: { run: ["python3", "./agent.py"] }`.',
    ],
    [
      { agents: { main: { backend: "acp" } } },
      'agents.main.acp is missing. It says how to reach the agent, for example `acp: { run: ["its-program", "--acp"] }`.',
    ],
    [
      { agents: { main: { backend: "model" } } },
      'agents.main.models is missing. It says which model each name stands for, for example `models: { fast: { provider: "openai", model: "gpt-5-mini" } }`.',
    ],
    [
      { agents: { main: { backend: "model", models: ["x"] } } },
      'agents.main.models must say which model each name stands for, for example `models: { fast: { provider: "openai", model: "gpt-5-mini" } }`.',
    ],
    [
      { agents: { main: { backend: "model", models: { f: { provider: "opnai", model: "x" } } } } },
      "agents.main.models.f.provider names a provider that is not configured; there is none yet: add it to `providers`.",
    ],
    [
      {
        agents: {
          main: {
            backend: "model",
            model: "fst",
            fallbacks: ["zzzz"],
            models: { fast: { provider: "openai", model: "x" } },
            tools: ["x/y"],
          },
        },
        providers: { openai: { type: "openai", apiKey: "x" } },
      },
      [
        "agents.main.model names a model that is not among this agent's `models`; did you mean `fast`?",
        "agents.main.fallbacks[0] names a model that is not among this agent's `models`; there is `fast`.",
        "agents.main.tools[0] names a server of tools that is not configured; there is none yet: add it to `tools`.",
      ],
    ],
    [
      {
        agents: { main: { backend: "model", models: { fast: { provider: "opnai", model: "x" } } } },
        providers: { openai: { type: "openai" } },
      },
      'providers.openai.apiKey is missing. Add it, for example `apiKey: "${OPENAI_API_KEY}"`.',
    ],
    [
      {
        agents: { main: { backend: "model", models: { fast: { provider: "opnai", model: "x" } } } },
        providers: { openai: { type: "openai", apiKey: "y" } },
      },
      "agents.main.models.fast.provider names a provider that is not configured; did you mean `openai`?",
    ],
    [
      { agents: { main: { backend: "model", models: { fast: {} } } } },
      [
        'agents.main.models.fast.provider is missing. Add it, for example `provider: "openai"`.',
        'agents.main.models.fast.model is missing. Add it, for example `model: "gpt-5-mini"`.',
      ],
    ],
    [
      {
        agents: {
          main: { backend: "model", models: { fast: { provider: "p", model: "m", price: {}, temperature: 5 } } },
        },
      },
      [
        "agents.main.models.fast.price.input is missing. Add it, for example `input: 0.25`.",
        "agents.main.models.fast.price.output is missing. Add it, for example `output: 2`.",
        "agents.main.models.fast.temperature must be at most 2.",
      ],
    ],
    [
      { agents: { main: { backend: "echo", http: { url: "https://x" } } } },
      "agents.main.http is for the backend `http`, but this agent's is `echo`: remove it, or change the backend.",
    ],
    [
      { agents: { main: { backend: "http", http: { url: "https://x" }, echo: { chunks: 3 } } } },
      "agents.main.echo is for the backend `echo`, but this agent's is `http`: remove it, or change the backend.",
    ],
    [
      { agents: { main: { backend: "http", http: { url: "ftp://x" } } } },
      "agents.main.http.url must be an address that begins with `https://` or `http://`, for example `https://example.com/path`.",
    ],
    [
      { agents: { main: { backend: "http", http: {} } } },
      'agents.main.http.url is missing. Add it, for example `url: "https://agent.example.com/turns"`.',
    ],
    [
      { agents: { main: { backend: "http", http: { url: "https://x", headers: { "a b": "c", x: "a\nb" } } } } },
      [
        'agents.main.http.headers["a b"] must be the name of a header, for example `authorization`.',
        "agents.main.http.headers.x must be text in one line.",
      ],
    ],
    [
      {
        agents: {
          main: {
            backend: "http",
            http: { url: "https://x" },
            models: { a: { provider: "x", model: "y" } },
            fallbacks: ["x"],
            tools: ["a/b"],
          },
        },
      },
      [
        'agents.main.models must be a list of names for the backend `http`, for example `["fast"]`: only the backend `model` says what they stand for.',
        "agents.main.fallbacks is for the backend `model`, but this agent's is `http`: remove it, or change the backend.",
        "agents.main.tools is for the backend `model`, but this agent's is `http`: remove it, or change the backend.",
      ],
    ],
    [
      { agents: { main: { backend: "command", command: { run: "python3 x" } } } },
      'agents.main.command.run must be a list, for example `["python3", "./agent.py"]`.',
    ],
    [
      { agents: { main: { backend: "command", command: { run: [] } } } },
      'agents.main.command.run must not be empty, for example `["python3", "./agent.py"]`.',
    ],
    [
      {
        agents: {
          main: { backend: "command", command: { run: ["nonexistent-x"], env: { "1A": "x" }, output: "json" } },
        },
      },
      [
        "agents.main.command.env.1A must be the name of a variable: letters, digits and `_`, not a digit first.",
        "agents.main.command.output must be `text` or `json-lines`.",
      ],
    ],
    [
      { agents: { main: { backend: "echo", tools: ["files"] } } },
      "agents.main.tools[0] must be the tool of a server as `server/tool`, or `server/*` for all of its tools.",
    ],
    [
      { agents: { main: { backend: "echo", heartbeat: { every: "30 minutes" } } } },
      "agents.main.heartbeat.every must be a span of time, a number with `ms`, `s`, `m`, `h` or `d`, for example `30m`, or `off`.",
    ],
    [
      { agents: { main: { backend: "echo", heartbeat: { every: 30 } } } },
      "agents.main.heartbeat.every must be a span of time, a number with `ms`, `s`, `m`, `h` or `d`, for example `30m`, or `off`.",
    ],
    [
      { agents: { main: { backend: "echo", heartbeat: "30m" } } },
      'agents.main.heartbeat must be an object, for example `{ every: "30m" }`.',
    ],
    [
      { agents: { main: { backend: "echo", deadline: 5 } } },
      "agents.main.deadline must be a span of time, a number with `ms`, `s`, `m`, `h` or `d`, for example `30m` or `7d`.",
    ],
    [
      { agents: { main: { backend: "echo", timeouts: { connect: "1d" } } } },
      "agents.main.timeouts.connect must be a span of time, a number with `ms`, `s`, `m` or `h`, for example `30s`.",
    ],
    [
      { agents: { main: { backend: "echo", skills: "summarise" } } },
      'agents.main.skills must be a list, for example `["summarise"]`.',
    ],
    [
      { agents: { main: { backend: "echo", model: "" } } },
      'agents.main.model must not be empty, for example `"fast"`.',
    ],
    [
      { agents: { "1st": { backend: "echo" } } },
      "agents.1st must be a name that begins with a letter, then letters, digits, `.`, `_` and `-`, at most 64 characters.",
    ],
    [
      { agents: { a: { backend: "echo" }, b: { backend: "echo" } } },
      'gateway.defaultAgent is missing. There are several agents (`a`, `b`): say which one answers a request that names none, for example `gateway: { defaultAgent: "a" }`.',
    ],
    [
      { gateway: { defaultAgent: "mian" } },
      "gateway.defaultAgent names an agent that is not configured; did you mean `main`?",
    ],
    [
      { gateway: { announceTo: "ops" } },
      "gateway.announceTo names a channel that is not configured; there is none yet: add it to `channels`.",
    ],
    [
      { sessions: { retention: "100000d" } },
      "sessions.retention must be a span of time, a number with `ms`, `s`, `m`, `h` or `d`, for example `30m` or `7d`.",
    ],
    [
      { limits: { storeBytes: "1GB" } },
      "limits.storeBytes must be a size, a number of bytes or a number with `B`, `KiB`, `MiB` or `GiB`, for example `1GiB`.",
    ],
    [
      { limits: { storeBytes: true } },
      "limits.storeBytes must be a size, a number of bytes or a number with `B`, `KiB`, `MiB` or `GiB`, for example `1GiB`.",
    ],
    [{ limits: { storeBytes: 0 } }, "limits.storeBytes must be at least 1."],
    [{ store: { type: "redis" } }, "store.type must be `memory`, `sqlite` or `postgres`."],
    [
      { store: { type: "sqlit", path: "x" } },
      "store.type must be `memory`, `sqlite` or `postgres`; did you mean `sqlite`?",
    ],
    [{ store: {} }, "store.type is missing. It must be `memory`, `sqlite` or `postgres`."],
    [{ store: "sqlite" }, 'store must be an object, for example `{ type: "memory" }`.'],
    [{ store: { type: "sqlite" } }, 'store.path is missing. Add it, for example `path: "./gateway.db"`.'],
    [{ store: { type: "postgres" } }, 'store.url is missing. Add it, for example `url: "${DATABASE_URL}"`.'],
    [
      { store: { type: "postgres", url: "mysql://x" } },
      "store.url must be the address of a PostgreSQL database, which begins with `postgres://`.",
    ],
    [
      { store: { type: "memory", path: "x" } },
      'store.path is for `type: "sqlite"`, not for `type: "memory"`: remove it, or change the type.',
    ],
    [
      { channels: { ops: { type: "webhook", url: "ftp://x", secret: "y" } } },
      "channels.ops.url must be an address that begins with `https://` or `http://`, for example `https://example.com/path`.",
    ],
    [
      { channels: { ops: { type: "webhook", url: "https://x" } } },
      'channels.ops.secret is missing. Add it, for example `secret: "${OPS_SECRET}"`.',
    ],
    [
      { channels: { ops: { type: "slack", url: "https://x", secret: "y" } } },
      'channels.ops.secret is for `type: "webhook"`, not for `type: "slack"`: remove it, or change the type.',
    ],
    [{ channels: { ops: { type: "email", url: "https://x" } } }, "channels.ops.type must be `webhook` or `slack`."],
    [
      { channels: { ops: { type: "slack", url: "$SLACK_URL" } } },
      "channels.ops.url must be an address that begins with `https://` or `http://`, for example `https://example.com/path`. To take it from a variable, write `${SLACK_URL}`.",
    ],
    [
      { tools: { t: { type: "http" } } },
      'tools.t.url is missing. Add it, for example `url: "https://tools.example.com/mcp"`.',
    ],
    [
      { tools: { t: { type: "stdio", url: "https://x" } } },
      [
        'tools.t.run is missing. Add it, for example `run: ["python3", "./agent.py"]`.',
        'tools.t.url is for `type: "http"`, not for `type: "stdio"`: remove it, or change the type.',
      ],
    ],
    [
      { tools: { t: { type: "stdio" } } },
      'tools.t.run is missing. Add it, for example `run: ["python3", "./agent.py"]`.',
    ],
    [{ tools: { t: { run: ["x"] } } }, "tools.t.type is missing. It must be `stdio` or `http`."],
    [
      { providers: { p: { type: "openai-compatible" } } },
      'providers.p.baseUrl is missing. Add it, for example `baseUrl: "http://127.0.0.1:11434/v1"`.',
    ],
    [
      { providers: { p: { type: "open-ai", apiKey: "x" } } },
      "providers.p.type must be `openai`, `anthropic`, `google` or `openai-compatible`; did you mean `openai`?",
    ],
  ])("%j", async (sections, said) => {
    expect(await refused(sections, { built })).toEqual([said].flat());
  });

  test.each([
    ["{}", '1:1: agents is missing. Add at least one, for example `agents: { main: { backend: "echo" } }`.'],
    [
      "{ agents: {} }",
      '1:11: agents must not be empty: add at least one, for example `{ main: { backend: "echo" } }`.',
    ],
    [
      "{ agents: { main: { backend: echo } } }",
      "1:30: the file is not JSON5: this text has no quotes and was not expected: put it in quotes, or look for a missing comma, quote or bracket before it.",
    ],
    [
      "{ agents: { main: { backend: 'echo' } ",
      "1:39: the file is not JSON5: the text ends too early: close what is open.",
    ],
    [
      "{ agents { main: 1 } }",
      "1:10: the file is not JSON5: `{` was not expected: look for a missing comma, quote or bracket before it.",
    ],
    [
      "{ agents: { main: { backend: 'echo' }, main: {backend:'echo'} } }",
      "1:40: agents.main is written twice: keep one of them.",
    ],
  ])("the text %j", async (text, said) => {
    expect(await refusal(text)).toEqual([`gateway.json5:${said}`]);
  });
});

type Schema = { [key: string]: unknown };

const schemas: Schema[] = [];
const visit = (node: unknown): void => {
  if (typeof node !== "object" || node === null) return;
  if (!Array.isArray(node)) schemas.push(node as Schema);
  for (const [key, inner] of Object.entries(node)) if (key !== "examples" && key !== "default") visit(inner);
};
visit(bundled);

test("every pattern of the schema has words", () => {
  const patterns = schemas.flatMap(({ pattern }) => (typeof pattern === "string" ? [pattern] : []));
  expect(patterns.length).toBeGreaterThan(10);
  expect(patterns.filter((pattern) => formOfPattern(pattern) === undefined)).toEqual([]);
});

test("every key that has to be there has an example", () => {
  const shared = bundled.$defs as Record<string, Schema>;
  const hasExample = (schema: Schema): boolean =>
    schema.examples !== undefined ||
    schema.enum !== undefined ||
    schema.const !== undefined ||
    (typeof schema.$ref === "string" && hasExample(refersTo(schema.$ref)));
  const refersTo = (ref: string): Schema => shared[ref.replace("#/$defs/", "").split("/")[0] as string] ?? {};
  const without = schemas.flatMap(({ properties, required }) =>
    ((required ?? []) as string[]).filter((key) => !hasExample((properties as Record<string, Schema>)[key] ?? {})),
  );
  expect(without).toEqual([]);
});
