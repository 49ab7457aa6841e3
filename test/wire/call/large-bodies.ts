// Bodies near the limit of their surface, each as slow as possible. F13: none fails, and none blocks others.
const KIB = 1024;
const MIB = KIB * KIB;

/** A body of as many pieces as fit between head and tail, at most `most`. */
function filler(bytes: number) {
  return (head: string, piece: (n: number) => string, tail: string, most = Number.POSITIVE_INFINITY): Buffer => {
    const pieces = [];
    let size = head.length + tail.length;
    for (let n = 0; n < most; n++) {
      const next = piece(n);
      size += Buffer.byteLength(next);
      if (size > bytes) break;
      pieces.push(next);
    }
    return Buffer.from(head + pieces.join("") + tail);
  };
}

/** A body may have 10 000 values, which is about the number of pieces. */
const READ = 9_980;
const X90 = "x".repeat(90);
function integerKey(n: number) {
  return `,"${(n * 429_496) % 4294967291}":1`;
}

function restBodies(): [name: string, body: Buffer, path: string][] {
  const CHAT = "/api/v1/chat/send";
  const TRIGGER = "/api/v1/skills/trigger";
  const COMPLETIONS = "/v1/chat/completions";
  type Fill = (head: string, piece: (n: number) => string, tail: string, most?: number) => Buffer;
  const fill = filler(MIB);
  const ASKS = '{"role":"user","content":"';
  const MESSAGE = `,${ASKS}${"é".repeat(100)}"}`;
  const PART = `{"type":"text","text":"${"é".repeat(140)}"}`;
  const said = (piece: string) => fill('{"message":"', () => piece, '"}');
  const chat: Fill = (head, ...more) => fill(`{"message":"x"${head}`, ...more);
  const params: Fill = (head, ...more) => fill(`{"skill_id":"tell","params":{${head}`, ...more);
  const asks: Fill = (head, ...more) => fill(`{"model":"main","messages":[${head}`, ...more);
  return [
    ["unknown fields", chat("", (n) => `,"k${n}":1`, "}"), CHAT],
    ["as many unknown fields as are read", chat("", (n) => `,"k${n}${X90}":1`, "}", READ), CHAT],
    ["fields that are nearly one", fill('{"messag":"x"', (n) => `,"messagf${n}":1`, "}", READ), CHAT],
    ["the same key again and again", chat("", () => ',"a":1', "}"), CHAT],
    ["skills that are numbers", chat(',"skill_ids":[1', () => ",1", "]}", READ), CHAT],
    ["as many long skills as are read", chat(',"skill_ids":["a"', (n) => `,"${n}${X90}"`, "]}", READ), CHAT],
    ["an id that is nearly one", chat(',"session_id":"', () => " !", '\\u00e9"}'), CHAT],
    ["a session in pairs", chat(',"session_id":"', () => "😀", '"}'), CHAT],
    ["open brackets", Buffer.alloc(MIB, "["), CHAT],
    ["open brackets in a text that never ends", Buffer.from(`{"message":"${"[".repeat(MIB - 12)}`), CHAT],
    ["backslashes", Buffer.from(`{"message":"${"\\".repeat(MIB - 12)}`), CHAT],
    ["digits", Buffer.from(`{"message":${"9".repeat(MIB - 12)}}`), CHAT],
    ["a key name", Buffer.from(`{"${"x".repeat(MIB - 10)}":1}`), CHAT],
    ["quotes", Buffer.alloc(MIB, '"'), CHAT],
    ["a message", said("x"), CHAT],
    ["a message in pairs", said("😀"), CHAT],
    ["a message in halves of pairs", said("\\ud800"), CHAT],
    ["prose of two bytes a character", said("naïve — text with words "), CHAT],
    ["keys like integers", params('"":1', integerKey, "}}", READ), TRIGGER],
    ["empty lists", params('"a":[[]', () => ",[]", "]}}"), TRIGGER],
    ["as many long keys as are read", params('"a":1', (n) => `,"k${n}${X90}":1`, "}}", READ), TRIGGER],
    ["as many long numbers as are read", params('"a":[1', () => `,${"1".repeat(100)}`, "]}}", READ), TRIGGER],
    ["params of lines of prose", params('"a":"', () => "naïve \\n— text with words ", '"}}'), TRIGGER],
    ["messages that are none", asks("1", () => ",1", "]}", READ), COMPLETIONS],
    ["as many messages as are read", asks(MESSAGE.slice(1), () => MESSAGE, "]}", 3_300), COMPLETIONS],
    [
      "as many parts as are read",
      asks(`{"role":"user","content":[${PART}`, () => `,${PART}`, "]}]}", 3_000),
      COMPLETIONS,
    ],
    ["a message in pairs, for OpenAI", asks(ASKS, () => "😀", '"}]}'), COMPLETIONS],
  ];
}

function rpcBodies(): [name: string, body: string | Buffer][] {
  const fill = filler(MIB);
  const big = "x".repeat(20_000);
  const callOf = (n: number) => `,{"id":0.${n}1,"jsonrpc":"2.0","method":"agent.`;
  const listing = (n: number) => `${callOf(n)}list","params":{"${big}":"\\u0041"}}`;
  const sending = (n: number) =>
    `${callOf(n)}sendMessage","params":{"agentName":"main","sessionId":"s${n}","message":"${big}"}}`;
  const LIST = '{"jsonrpc":"2.0","id":1,"method":"agent.list","params":{';
  const SEND = '{"id":1,"jsonrpc":"2.0","method":"agent.sendMessage","params":{';
  const readIn = `"jsonrpc":"2.0","id":1,"method":"session.get","params":{"sessionId":`;
  const longKey = (n: number) => `,"k${n}${X90}":1`;
  return [
    ["unknown params", fill(`${LIST}"a":1`, (n) => `,"k${n}":1`, "}}")],
    ["as many as are read", fill(`${LIST}"a":1`, longKey, "}}", READ)],
    ["members of a call, and an id that has to be looked for", fill('{"id":1.5', longKey, "}", READ)],
    ["a batch of calls with such ids", fill("[0", listing, "]", 49)],
    ["a batch of such messages", fill("[0", sending, "]", 49)],
    ["a batch of invalid calls", fill("[0", () => ",0", "]")],
    ["open brackets in a text", `{"jsonrpc":"2.0","id":"${"[".repeat(MIB - 50)}","method":""}`],
    ["backslashes", `{"jsonrpc":"2.0","id":"${"\\\\".repeat(MIB / 2 - 50)}","method":""}`],
    ["an id of digits", `{"jsonrpc":"2.0","method":"","id":${"9".repeat(MIB - 50)}}`],
    ["an id in pairs", fill(`{"jsonrpc":"2.0","method":"agent.list","id":"`, () => "😀", '"}')],
    ["a session id that is nearly one", `{${readIn}"${" !".repeat(MIB / 2 - 60)}"}}`],
    ["a method", `{"jsonrpc":"2.0","id":1,"method":"${"é".repeat(MIB / 2 - 50)}"}`],
    ["a message in pairs", fill(`${SEND}"agentName":"main","message":"`, () => "😀", '"}}')],
    ["an agent in pairs", fill(`${SEND}"message":"x","agentName":"`, () => "😀", '"}}')],
    ["other names for what is required", fill(`${SEND}"a":1`, (n) => `,"agentN${n}":1`, "}}", READ)],
    ["long names in place of what is required", fill(`${SEND}"a":1`, longKey, "}}", READ)],
  ];
}

/** The parser is that of the other surfaces; these are slow in the further steps of a webhook. */
function hookBodies(): [name: string, path: string, body: Buffer][] {
  const MOST = 256 * KIB;
  const fill = filler(MOST);
  const field = (n: number) => `,"k${n}":"${"x".repeat(10)}"`;
  const metadata = (n: number) => `,"k${n}${"x".repeat(10)}":1`;
  return [
    ["unknown fields", "/hooks/wake", fill('{"text":"x"', (n) => `,"k${n}":1`, "}")],
    ["keys like integers", "/hooks", fill('{"":1', integerKey, "}", READ)],
    [
      "a session that is nearly one",
      "/hooks/agent",
      fill('{"message":"x","session":"webhook:', () => " !", '\\u00e9"}'),
    ],
    ["other names for what is required", "/hooks/agent", fill('{"a":1', (n) => `,"messag${n}":1`, "}", READ)],
    ["a value that the message is made of", "/hooks/any", fill('{"it":{"a":1', field, "}}", READ)],
    ["a value in pairs that the message is made of", "/hooks/any", fill('{"it":"', () => "😀", '"}')],
    ["what is signed", "/hooks/signed", Buffer.alloc(MOST, "[")],
    ["as much metadata as is read", "/hooks/wake", fill('{"text":"x","metadata":{"a":1', metadata, "}}", READ)],
  ];
}

export const LARGE_REST_BODIES = restBodies();
export const LARGE_RPC_BODIES = rpcBodies();
export const LARGE_HOOK_BODIES = hookBodies();
