import type { GatewayEntry, GatewayNews, Store } from "#store/store.ts";
import type { Frame } from "./frame.ts";
import { keepText, readText } from "./texts.ts";

export const gatewayMethods = (frame: Frame): Pick<Store, "appendGatewayEntry" | "readGatewayEntries"> => ({
  appendGatewayEntry: async (news, { now, keep }) => {
    const args = [JSON.stringify(keepNews(news)), now, keep];
    const { gateway } = await frame.call<{ gateway: ToldNews }>("append_gateway_entry", args);
    return entriesOf(gateway)[0] as GatewayEntry;
  },
  readGatewayEntries: ({ after, limit }) => {
    // Who has begun to follow the stream reads what is there already.
    frame.gatewayTellings.ask();
    return readGateway(frame, after, limit);
  },
});

export const readGateway = async (
  frame: Frame,
  after: number,
  limit: number,
): Promise<{ entries: GatewayEntry[]; first: number; last: number }> => {
  type Page = { entries: GatewayEntry[]; first: number; last: number };
  const page = await frame.call<Page>("read_gateway", [after, limit]);
  return { ...page, entries: page.entries.map(readEntry) };
};

/** What a call has told, as it answers it: places grow by one. */
export type ToldNews = { first: number; at: number; news: readonly GatewayNews[] };

export const entriesOf = ({ first, at, news }: ToldNews): GatewayEntry[] =>
  news.map((one, n) => readEntry({ seq: first + n, at, ...one }));

/** The one text in it that came from elsewhere. */
const keepNews = (news: GatewayNews): GatewayNews =>
  news.name === "event.dead" ? { ...news, reason: keepText(news.reason) } : news;

/** An entry as the database tells of it, in our words. */
export const readEntry = (entry: GatewayEntry): GatewayEntry =>
  entry.name === "event.dead" ? { ...entry, reason: readText(entry.reason) } : entry;
