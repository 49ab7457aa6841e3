import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

type TabsOf = { tabs: readonly Tab[]; open: string; onOpen: (id: string) => void; label: string };
type Tab = { id: string; name: string; count?: number | undefined; body: () => ComponentChildren };

/** Tabs by the ARIA pattern: arrows move between them. Which one is open is the caller's to keep, in the address as a rule. */
export function Tabs({ tabs, open, onOpen, label }: TabsOf) {
  const name = useId();
  const list = useRef<HTMLDivElement>(null);
  const shown = tabs.find(({ id }) => id === open) ?? tabs[0];
  // If the tabs are wider than the screen, the open one is scrolled into view. The page itself does not scroll.
  useLayoutEffect(() => {
    const row = list.current;
    const tab = row?.querySelector("[aria-selected='true']")?.getBoundingClientRect();
    if (!row || !tab) return;
    const { left, right } = row.getBoundingClientRect();
    if (tab.right > right) row.scrollLeft += tab.right - right;
    if (tab.left < left) row.scrollLeft -= left - tab.left;
  }, [shown?.id]);
  if (!shown) return null;
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const next = (tabs.indexOf(shown) + step + tabs.length) % tabs.length;
    onOpen(tabs[next]?.id ?? "");
    (list.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
        {tabs.map(({ id, name: word, count }) => (
          <button
            key={id}
            type="button"
            role="tab"
            id={`${name}-${id}`}
            aria-selected={id === shown.id}
            aria-controls={`${name}-panel`}
            tabIndex={id === shown.id ? 0 : -1}
            onClick={() => onOpen(id)}
          >
            {word}
            {count !== undefined && <span class="count">{count}</span>}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${name}-panel`} aria-labelledby={`${name}-${shown.id}`} class="tab-panel" tabIndex={0}>
        {shown.body()}
      </div>
    </>
  );
}
