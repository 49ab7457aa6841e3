/** A request that a curl command can repeat. */
type CurlRequest = {
  method: string;
  url: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | undefined;
};

/** A text in single quotes, as a shell takes it. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** A header whose value names a variable stands in double quotes, so that the shell fills it in. */
const header = (name: string, value: string): string => {
  const text = `${name}: ${value}`;
  return /\$[A-Z_]+/.test(value) ? `"${text.replaceAll(/["\\`]/g, "\\$&")}"` : quoted(text);
};

/** A word that the body does not have as a line, to end it with. */
const endOf = (body: string): string => {
  let end = "EOF";
  while (body.split("\n").includes(end)) end += "_";
  return end;
};

/** The command that sends a request again. Secrets are named by variables, never written out. */
export const curlOf = ({ method, url, headers = {}, body }: CurlRequest): string => {
  const parts = [
    `curl ${method === "GET" || (method === "POST" && body !== undefined) ? "" : `-X ${method} `}${quoted(url)}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${header(name, value)}`),
  ];
  if (body === undefined) return parts.join(" \\\n  ");
  const end = endOf(body);
  return `${[...parts, `--data-binary @- <<'${end}'`].join(" \\\n  ")}\n${body}\n${end}`;
};

/** The command that sends a message to an agent. */
export const chatCommand = (origin: string, body: object, key = "$REST_API_KEY"): string =>
  curlOf({
    ...{ method: "POST", url: `${origin}/api/v1/chat/send`, body: JSON.stringify(body) },
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
  });
