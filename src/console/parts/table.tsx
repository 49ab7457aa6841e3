import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useKeys } from "../app/keys.ts";
import { go } from "../app/router.ts";

export type Column<Row> = {
  name: string;
  /** The content of the cell. In the first column it becomes the row's link. */
  cell: (row: Row) => ComponentChildren;
  /** Its width in px, or in % of the table; without one it gets the rest. */
  width?: `${number}px` | `${number}%`;
  /** The least width in px of a column with a width. */
  min?: number;
  /** The order in which columns give way in a narrower table: 1 first, below 900 px; 2 below 720 px; 3 below 560 px. */
  drop?: 1 | 2 | 3;
  align?: "end";
  /** Below 440 px a row is two lines: the column stands in the first, in the second, or in neither. */
  narrow?: "first" | "second" | "none";
};

/** The minimum width of a column. */
const LEAST_PX = 80;

export type TableOf<Row> = {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  keyOf: (row: Row) => string;
  /** Where a row leads; its first cell is the link, stretched over the row. */
  hrefOf?: (row: Row) => string;
  selected?: string | undefined;
  /** Shows rows after the last one or before the first one; false if there are none. */
  more?: (to: "older" | "newer") => boolean;
};

/** A real table. `j` and `k` move through its rows, Enter opens one. */
export function Table<Row>({ label, rows, columns, keyOf, hrefOf, selected, more }: TableOf<Row>) {
  const table = useRef<HTMLTableElement>(null);
  /** A step that waits for the rows it leads to. */
  const waits = useRef(0);
  const move = (step: number) => {
    const links = [...(table.current?.querySelectorAll<HTMLAnchorElement>("tbody a.row-link") ?? [])];
    const chosen = links.indexOf(document.activeElement as HTMLAnchorElement);
    const from = chosen >= 0 ? chosen : links.findIndex((link) => link.closest("tr")?.ariaSelected === "true");
    const to = from + step;
    waits.current = 0;
    if (!links[to] && more?.(step > 0 ? "older" : "newer")) {
      waits.current = step;
      return;
    }
    const next = links[Math.min(links.length - 1, Math.max(0, to))];
    next?.focus();
    next?.closest("tr")?.scrollIntoView({ block: "nearest" });
    // With an inspector open, moving is opening.
    if (next && table.current?.closest(".split:not(.single)")) go(next.pathname + next.search, { replace: true });
  };
  useLayoutEffect(() => {
    if (waits.current !== 0) move(waits.current);
  }, [rows]);
  const before = useRef(selected);
  useLayoutEffect(() => {
    const left = before.current;
    before.current = selected;
    // The inspector had the focus when it closed, so the focus returns to the row that was selected.
    if (selected !== undefined || left === undefined || document.activeElement !== document.body) return;
    const row = table.current?.tBodies[0]?.rows[rows.findIndex((one) => keyOf(one) === left)];
    row?.querySelector<HTMLElement>("a.row-link")?.focus();
  }, [selected]);
  const steps = [
    { key: "j", does: "Next row", run: () => move(1) },
    { key: "k", does: "Previous row", run: () => move(-1) },
  ];
  useKeys(hrefOf ? steps : []);
  // Column widths and breakpoints are relative to the frame.
  return (
    <div class="rows-frame">
      <table class="rows" aria-label={label} ref={table}>
        <colgroup>
          {columns.map(({ name, width, min, drop }) => (
            <col key={name} data-drop={drop} style={width ? { width: widthOf(width, min) } : {}} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {columns.map(({ name, align, drop }) => (
              <th key={name} scope="col" class={align === "end" ? "end" : ""} data-drop={drop}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const key = keyOf(row);
            return (
              <tr key={key} aria-selected={hrefOf ? key === selected : undefined}>
                {columns.map(({ name, cell, align, drop, narrow = "second" }, n) => (
                  <td
                    key={name}
                    class={align === "end" ? "end" : ""}
                    data-narrow={narrow}
                    data-drop={drop}
                    data-name={name}
                  >
                    {n === 0 && hrefOf ? (
                      <a class="row-link" href={hrefOf(row)}>
                        {cell(row)}
                      </a>
                    ) : (
                      cell(row)
                    )}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** A percentage is of the frame: as such, the table's layout does not combine it with a least width. */
function widthOf(width: string, min = LEAST_PX): string {
  return `max(${min}px, ${width.replace("%", "cqi")})`;
}
