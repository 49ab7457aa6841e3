import type { RawExchange } from "../app/raw-exchange.ts";
import { duration } from "../lib/format.ts";
import { Body } from "./json.tsx";
import { State } from "./state.tsx";

/** The request's line and headers, and the answer, as they went over the wire. */
export function Exchange({ of, isWhole = false }: { of: RawExchange; isWhole?: boolean }) {
  const { request, status, statusText, headers, text, ms, isOpen } = of;
  const isGood = status < 400;
  return (
    <section class="section exchange" aria-label="Exchange">
      <header>
        <span role="status">
          <State of={isGood ? "ok" : "failed"} word={`${status} ${statusText}`.trim()} />
        </span>
        <span class="mono">{duration(ms)}</span>
        {isOpen && <span class="muted">receiving…</span>}
      </header>
      <details class="fold" open={isWhole}>
        <summary>Request</summary>
        <pre class="raw" tabIndex={0}>
          {head(`${request.method} ${request.path}`, Object.entries(request.shownHeaders))}
          {request.body !== undefined && `\n\n${request.body}`}
        </pre>
      </details>
      <details class="fold" open={isWhole}>
        <summary>Response headers ({headers.length})</summary>
        <pre class="raw" tabIndex={0}>
          {head(`${status} ${statusText}`, headers)}
        </pre>
      </details>
      {text === "" ? <p class="muted">No body{isOpen && " yet"}.</p> : <Body text={text} what="the response" />}
    </section>
  );
}

function head(first: string, headers: readonly (readonly [string, string])[]): string {
  return [first, ...headers.map(([name, value]) => `${name}: ${value}`)].join("\n");
}
