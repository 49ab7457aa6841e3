import MiniSearch from "minisearch";

/** A section of a page in the index: its address, its heading, its page, its text, and the weight of its kind of page. */
export type Row = [href: string, title: string, page: string, text: string, weight: number];
export type Hit = { href: string; title: string; page: string };

/** Synonyms: words of other products, and the words of this documentation. */
const SYNONYMS: Record<string, string[]> = {
  auth: ["authentication"],
  async: ["asyncio"],
  bearer: ["token"],
  callback: ["announcement"],
  cluster: ["several"],
  container: ["docker"],
  db: ["store"],
  database: ["store"],
  debug: ["troubleshoot"],
  env: ["environment"],
  getting: ["quickstart"],
  helm: ["kubernetes"],
  https: ["tls"],
  k8s: ["kubernetes"],
  library: ["client", "sdk"],
  login: ["sign"],
  max: ["limit", "largest"],
  otel: ["opentelemetry"],
  password: ["token", "secret"],
  persist: ["store"],
  quota: ["limit"],
  reconnect: ["resume"],
  sdk: ["client"],
  ssl: ["tls"],
  signin: ["sign"],
  sse: ["stream"],
  started: ["quickstart"],
  subscribe: ["push"],
  throttle: ["limit"],
  unauthorized: ["unauthenticated"],
  ws: ["websocket"],
};

const STOP = new Set([
  "a",
  "an",
  "and",
  "do",
  "how",
  "i",
  "in",
  "is",
  "my",
  "of",
  "on",
  "or",
  "the",
  "to",
  "what",
  "with",
]);

/** A name such as chat.send or session-busy is indexed as one word and by each of its parts. */
function wordsOf(text: string): string[] {
  return text.split(/[\s/,;:()"'`{}[\]]+/).flatMap((word) => [word, ...word.split(/[._-]/)]);
}

/** Reduces stream, streams, streamed and streaming to one form. Names with other characters stay unchanged. */
function stemOf(word: string): string {
  const lower = word.toLowerCase().replace(/[.!?]+$/, "");
  if (!/^[a-z]{4,}$/.test(lower)) return lower;
  const singular = lower.replace(/(?<=[^aeious])ies$/, "y").replace(/(?<=[^su])s$/, "");
  return singular.replace(/(?<=[a-z]{3})(ing|ed|e)$/, "");
}

function termOf(word: string): string | null {
  return STOP.has(word.toLowerCase()) ? null : stemOf(word) || null;
}

/** Searches the site: returns the sections that have every word of the query or, if there are none, those that have some of its words. */
export function openSearch(rows: readonly Row[]): (query: string) => Hit[] {
  const index = new MiniSearch({
    fields: ["title", "page", "text"],
    storeFields: ["href", "title", "page", "weight"],
    tokenize: wordsOf,
    processTerm: termOf,
    searchOptions: {
      boost: { title: 4, page: 2 },
      prefix: (term) => term.length > 2,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      weights: { prefix: 0.4, fuzzy: 0.15 },
      boostDocument: (_id, _term, stored) => Number(stored?.weight ?? 1),
    },
  });
  index.addAll(rows.map(([href, title, page, text, weight], id) => ({ id, href, title, page, text, weight })));

  const everyWord = (query: string) => ({
    combineWith: "AND" as const,
    queries: [...new Set(query.split(/\s+/).filter((word) => termOf(word) !== null))].map((word) => ({
      combineWith: "OR" as const,
      queries: [word, ...(SYNONYMS[word.toLowerCase()] ?? [])],
    })),
  });

  return (query) => {
    const whole = query.trim().toLowerCase();
    const asked = everyWord(query);
    const all = asked.queries.length === 0 ? [] : index.search(asked);
    const found = all.length > 0 ? all : index.search({ ...asked, combineWith: "OR" });
    // A query that is a name, such as session-busy, chat.send or POST /rpc, finds the section with that heading first.
    const isNamed = ({ title, href }: Hit) => title.toLowerCase() === whole || href.toLowerCase().endsWith(`#${whole}`);
    const hits = found.map(({ href, title, page }): Hit => ({ href, title, page }));
    if (!/[._/-]/.test(whole)) return hits;
    return [...hits.filter(isNamed), ...hits.filter((hit) => !isNamed(hit))];
  };
}
