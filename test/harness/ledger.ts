// The account of one test file: every reply that a gateway says it gave must have been held to the contract by the client that got it.

import { writePairs } from "./pairs.ts";

type Given = { requestId: string; operation: string; status: number };

const given: Given[] = [];
const checked = new Set<string>();
const faults: string[] = [];
let sent = 0;
let settled = 0;

/** Sends a request, which is settled when its reply was checked, or when there will be none. */
export async function settling<T>(exchange: () => Promise<T>): Promise<T> {
  sent++;
  try {
    return await exchange();
  } finally {
    settled++;
  }
}

/** A gateway's access line says that it gave this reply. */
export function noteGiven(reply: Given): void {
  given.push(reply);
}

/** A client held the reply of this request to the contract. */
export function noteChecked(requestId: string): void {
  checked.add(requestId);
}

/** A broken contract fails the test that met it, and the file too: a test that expects an error must not swallow it. */
export function noteFault(fault: string): void {
  faults.push(fault);
}

/** Lists the open items; it is empty when every reply was checked and none was wrong. */
function openItems(): string[] {
  const unseen = given.filter(({ requestId, status }) => status !== CALLER_GONE && !checked.has(requestId));
  return [
    ...new Set(faults),
    ...unseen.map(({ operation, status, requestId }) => `${operation} ${status} (${requestId}) was not checked`),
    ...(sent === settled ? [] : [`${sent} requests were made, ${settled} settled`]),
  ];
}

/** The access line's status of a caller that left before its answer. */
const CALLER_GONE = 499;

/** The account of the next file, which may be in the same process, begins empty. */
export function closeLedger(): void {
  writePairs();
  const open = openItems();
  given.length = faults.length = sent = settled = 0;
  checked.clear();
  if (open.length > 0) throw new Error(`Replies that were not held to the contract:\n  ${open.join("\n  ")}`);
}
