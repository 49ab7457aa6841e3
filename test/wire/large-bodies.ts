// Bodies near the limit of their door, each made to take long. F13: none fails, and none makes others wait.

const KIB = 1024;
const MIB = KIB * KIB;

/** A body of as many pieces as fit between head and tail, until a piece is empty. */
const filler =
  (most: number) =>
  (head: string, piece: (n: number) => string, tail: string): Buffer => {
    const pieces = [];
    for (let n = 0, size = head.length + tail.length; ; n++) {
      const next = piece(n);
      size += Buffer.byteLength(next);
      if (next === "" || size > most) break;
      pieces.push(next);
    }
    return Buffer.from(head + pieces.join("") + tail);
  };

const restBodies = (): [name: string, body: Buffer, path: string][] => {
  const CHAT = "/api/v1/chat/send";
  const TRIGGER = "/api/v1/skills/trigger";
  const COMPLETIONS = "/v1/chat/completions";
  const MOST = MIB;
  const fill = filler(MOST);
  const ASKS = '{"role":"user","content":"';
  const MESSAGE = `,${ASKS}${"é".repeat(100)}"}`;
  const PART = `{"type":"text","text":"${"é".repeat(140)}"}`;
  const filled = (head: string, piece: string, tail: string) => fill(head, () => piece, tail);
  return [
    ["unknown fields", fill('{"message":"x"', (n) => `,"k${n}":1`, "}"), CHAT],
    [
      "as many unknown fields as are read",
      fill('{"message":"x"', (n) => (n < 9_990 ? `,"k${n}${"x".repeat(90)}":1` : ""), "}"),
      CHAT,
    ],
    [
      "keys like integers",
      fill('{"skill_id":"tell","params":{"":1', (n) => `,"${(n * 7919) % 4294967291}":1`, "}}"),
      TRIGGER,
    ],
    [
      "as many such keys as are read",
      fill('{"skill_id":"no","params":{"":1', (n) => (n < 9_990 ? `,"${(n * 429_496) % 4294967291}":1` : ""), "}}"),
      TRIGGER,
    ],
    ["the same key again and again", fill('{"message":"x"', () => ',"a":1', "}"), CHAT],
    ["empty lists", fill('{"skill_id":"tell","params":{"a":[[]', () => ",[]", "]}}"), TRIGGER],
    ["skills that are numbers", fill('{"message":"x","skill_ids":[1', () => ",1", "]}"), CHAT],
    ["as many such skills as are read", Buffer.from(`{"message":"x","skill_ids":[1${",1".repeat(9_990)}]}`), CHAT],
    ["open brackets", Buffer.alloc(MOST, "["), CHAT],
    [
      "open brackets in a text that never ends",
      Buffer.concat([Buffer.from('{"message":"'), Buffer.alloc(MOST - 12, "[")]),
      CHAT,
    ],
    ["backslashes", Buffer.concat([Buffer.from('{"message":"'), Buffer.alloc(MOST - 12, "\\")]), CHAT],
    ["digits", Buffer.concat([Buffer.from('{"message":'), Buffer.alloc(MOST - 12, "9"), Buffer.from("}")]), CHAT],
    ["an id that is nearly one", fill('{"message":"x","session_id":"', () => " !", '\\u00e9"}'), CHAT],
    ["a key name", Buffer.from(`{"${"x".repeat(MOST - 10)}":1}`), CHAT],
    ["a key name of a param", filled('{"skill_id":"tell","params":{"', "é", '":1}}'), TRIGGER],
    ["quotes", Buffer.alloc(MOST, '"'), CHAT],
    ["a message", filled('{"message":"', "x", '"}'), CHAT],
    ["a message in pairs", filled('{"message":"', "😀", '"}'), CHAT],
    ["a message in halves of pairs", filled('{"message":"', "\\ud800", '"}'), CHAT],
    ["a message that is escaped", filled('{"message":"', "\\u20ac", '"}'), CHAT],
    ["a message of quotes", filled('{"message":"', '\\"', '"}'), CHAT],
    ["a session in pairs", filled('{"message":"x","session_id":"', "😀", '"}'), CHAT],
    ["fields that are nearly one", fill('{"messag":"x"', (n) => (n < 9_990 ? `,"messagf${n}":1` : ""), "}"), CHAT],
    [
      "as many long skills as are read",
      fill('{"message":"x","skill_ids":["a"', (n) => (n < 9_990 ? `,"${n}${"x".repeat(90)}"` : ""), "]}"),
      CHAT,
    ],
    [
      "as many long keys as are read",
      fill('{"skill_id":"tell","params":{"a":1', (n) => (n < 9_990 ? `,"k${n}${"x".repeat(90)}":1` : ""), "}}"),
      TRIGGER,
    ],
    [
      "messages that are none",
      fill('{"model":"main","messages":[1', (n) => (n < 9_990 ? ",1" : ""), "]}"),
      COMPLETIONS,
    ],
    [
      "as many messages as are read",
      fill('{"model":"main","messages":[{"role":"user","content":"x"}', (n) => (n < 3_300 ? MESSAGE : ""), "]}"),
      COMPLETIONS,
    ],
    ["prose of two bytes a character", filled('{"message":"', "naïve — text with words ", '"}'), CHAT],
    ["params in pairs", filled('{"skill_id":"tell","params":{"a":"', "😀", '"}}'), TRIGGER],
    [
      "params of lines of prose",
      filled('{"skill_id":"tell","params":{"a":"', "naïve \\n— text with words ", '"}}'),
      TRIGGER,
    ],
    ["a user in pairs", filled('{"message":"x","user_id":"', "😀", '"}'), CHAT],
    [
      "as many long numbers as are read",
      fill('{"skill_id":"tell","params":{"a":[1', (n) => (n < 9_980 ? `,${"1".repeat(100)}` : ""), "]}}"),
      TRIGGER,
    ],
    [
      "as many parts as are read",
      fill(
        `{"model":"main","messages":[{"role":"user","content":[${PART}`,
        (n) => (n < 3_000 ? `,${PART}` : ""),
        "]}]}",
      ),
      COMPLETIONS,
    ],
    ["a message in pairs, for OpenAI", filled(`{"model":"main","messages":[${ASKS}`, "😀", '"}]}'), COMPLETIONS],
  ];
};

const rpcBodies = (): [name: string, body: string | Buffer][] => {
  const fill = (head: string, piece: (n: number) => string, tail: string, most = Infinity) =>
    filler(MIB)(head, (n) => (n < most ? piece(n) : ""), tail);
  const big = "x".repeat(20_000);
  const asks = '"jsonrpc":"2.0","method":"agent.sendMessage","params":';
  return [
    [
      "unknown params",
      fill('{"jsonrpc":"2.0","id":1,"method":"agent.list","params":{"a":1', (n) => `,"k${n}":1`, "}}"),
    ],
    [
      "as many as are read",
      fill(
        '{"jsonrpc":"2.0","id":1,"method":"agent.list","params":{"a":1',
        (n) => `,"k${n}${"x".repeat(90)}":1`,
        "}}",
        9_990,
      ),
    ],
    [
      "members of a call, and an id that has to be looked for",
      fill('{"id":1.5', (n) => `,"k${n}${"x".repeat(90)}":1`, "}", 9_990),
    ],
    [
      "a batch of calls with such ids",
      fill("[0", (n) => `,{"id":0.${n}1,"jsonrpc":"2.0","method":"agent.list","params":{"${big}":"\\u0041"}}`, "]", 49),
    ],
    [
      "a batch of such messages",
      fill(
        "[0",
        (n) =>
          `,{"id":0.${n}1,"jsonrpc":"2.0","method":"agent.sendMessage","params":{"agentName":"main","sessionId":"s${n}","message":"${big}"}}`,
        "]",
        49,
      ),
    ],
    ["a batch of what is no call", fill("[0", () => ",0", "]")],
    ["open brackets", "[".repeat(MIB)],
    ["open brackets in a text", `{"jsonrpc":"2.0","id":"${"[".repeat(MIB - 50)}","method":""}`],
    ["backslashes", `{"jsonrpc":"2.0","id":"${"\\\\".repeat(MIB / 2 - 50)}","method":""}`],
    ["an id of digits", `{"jsonrpc":"2.0","method":"","id":${"9".repeat(MIB - 50)}}`],
    [
      "a session id that is nearly one",
      `{"jsonrpc":"2.0","id":1,"method":"session.get","params":{"sessionId":"${" !".repeat(MIB / 2 - 60)}"}}`,
    ],
    ["a method", `{"jsonrpc":"2.0","id":1,"method":"${"é".repeat(MIB / 2 - 50)}"}`],
    ["a message", fill(`{"id":1,${asks}{"agentName":"main","message":"`, () => "x", '"}}')],
    ["a message in pairs", fill(`{"id":1,${asks}{"agentName":"main","message":"`, () => "😀", '"}}')],
    ["an agent in pairs", fill(`{"id":1,${asks}{"message":"x","agentName":"`, () => "😀", '"}}')],
    ["an id in pairs", fill(`{"jsonrpc":"2.0","method":"agent.list","id":"`, () => "😀", '"}')],
    ["other names for what is required", fill(`{"id":1,${asks}{"a":1`, (n) => `,"agentN${n}":1`, "}}", 9_990)],
    [
      "long names in place of what is required",
      fill(`{"id":1,${asks}{"a":1`, (n) => `,"k${n}${"x".repeat(90)}":1`, "}}", 9_990),
    ],
  ];
};

const hookBodies = (): [name: string, path: string, body: Buffer][] => {
  const MOST = 256 * KIB;
  const fill = filler(MOST);
  return [
    ["unknown fields", "/hooks/wake", fill('{"text":"x"', (n) => `,"k${n}":1`, "}")],
    [
      "as many keys as are read",
      "/hooks",
      fill('{"a":1', (n) => (n < 9_990 ? `,"k${n}${"x".repeat(14)}":1` : ""), "}"),
    ],
    [
      "keys like integers",
      "/hooks",
      fill('{"":1', (n) => (n < 9_990 ? `,"${(n * 429_496) % 4294967291}":1` : ""), "}"),
    ],
    ["the same key again and again", "/hooks/wake", fill('{"text":"x"', () => ',"a":1', "}")],
    ["empty lists", "/hooks", fill("[[]", () => ",[]", "]")],
    ["open brackets", "/hooks", Buffer.alloc(MOST, "[")],
    [
      "open brackets in a text that never ends",
      "/hooks",
      Buffer.concat([Buffer.from('{"a":"'), Buffer.alloc(MOST - 6, "[")]),
    ],
    ["backslashes", "/hooks/wake", Buffer.concat([Buffer.from('{"text":"'), Buffer.alloc(MOST - 9, "\\")])],
    ["digits", "/hooks", Buffer.concat([Buffer.from('{"a":'), Buffer.alloc(MOST - 6, "9"), Buffer.from("}")])],
    [
      "a session that is nearly one",
      "/hooks/agent",
      fill('{"message":"x","session":"webhook:', () => " !", '\\u00e9"}'),
    ],
    [
      "a value that the message is made of",
      "/hooks/any",
      fill('{"it":{"a":1', (n) => (n < 9_900 ? `,"k${n}":"${"x".repeat(10)}"` : ""), "}}"),
    ],
    ["what is signed", "/hooks/signed", Buffer.alloc(MOST, "[")],
    ["a value in pairs that the message is made of", "/hooks/any", fill('{"it":"', () => "😀", '"}')],
    [
      "as much metadata as is read",
      "/hooks/wake",
      fill('{"text":"x","metadata":{"a":1', (n) => (n < 9_990 ? `,"k${n}${"x".repeat(10)}":1` : ""), "}}"),
    ],
    [
      "other names for what is required",
      "/hooks/agent",
      fill('{"a":1', (n) => (n < 9_990 ? `,"messag${n}":1` : ""), "}"),
    ],
  ];
};

export const LARGE_REST_BODIES = restBodies();
export const LARGE_RPC_BODIES = rpcBodies();
export const LARGE_HOOK_BODIES = hookBodies();
