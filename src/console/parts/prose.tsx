/** A sentence of the gateway's, in which code stands between backticks. */
export function Prose({ text }: { text: string }) {
  return <>{text.split(/`([^`]+)`/).map((part, n) => (n % 2 === 1 ? <code key={n}>{part}</code> : part))}</>;
}
