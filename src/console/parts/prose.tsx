/** A sentence of the gateway's, in which code stands between backticks. */
export const Prose = ({ text }: { text: string }) => (
  <>{text.split(/`([^`]+)`/).map((part, n) => (n % 2 === 1 ? <code key={n}>{part}</code> : part))}</>
);
