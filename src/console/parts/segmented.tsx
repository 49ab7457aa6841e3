type Choice<Value extends string> = readonly [value: Value, word: string, why?: string | undefined];

type SegmentedOf<Value extends string> = {
  label: string;
  chosen: Value;
  choose: (value: Value) => void;
  choices: readonly Choice<Value>[];
};

/** A row of buttons, one of them pressed. A button that cannot be chosen shows the reason. */
export function Segmented<Value extends string>({ label, chosen, choose, choices }: SegmentedOf<Value>) {
  return (
    <div class="segmented" role="group" aria-label={label}>
      {choices.map(([value, word, why]) => (
        <button
          key={value}
          type="button"
          aria-pressed={value === chosen}
          aria-disabled={why !== undefined}
          title={why}
          onClick={() => why === undefined && choose(value)}
        >
          {word}
        </button>
      ))}
    </div>
  );
}
