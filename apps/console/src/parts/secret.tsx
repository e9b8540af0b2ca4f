import { say } from './toasts.js';
import { Button } from './button.js';

/** Something that is shown once. It is in no query, no address and no storage. */
export function Secret({ label, value }: { label: string; value: string }) {
  const copy = async () => {
    await navigator.clipboard.writeText(value);
    say(`${label} was copied.`);
  };
  return (
    <div className="stack">
      <p>
        <strong>{label}</strong>, shown this once. Keep it before you close this.
      </p>
      <div className="secret">
        <code>{value}</code>
        <Button isSmall onPress={() => void copy()}>
          Copy
        </Button>
      </div>
    </div>
  );
}
