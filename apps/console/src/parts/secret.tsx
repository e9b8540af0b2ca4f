import { isMasked } from '../format/masked.js';
import { Copy } from './copy.js';

interface SecretProps {
  /** A noun that begins a sentence. */
  label: string;
  /** Masked or null where the platform repeats an answer that was lost: it keeps no secrets. */
  value: string | null;
  /** How another is made; for what an answer that may be a repeat has. */
  another?: string;
}

/** Something that is shown once. It is in no query, no address and no storage. */
export function Secret({ label, value, another }: SecretProps) {
  if (value === null || isMasked(value)) {
    return (
      <p>
        <strong className="given">{label}</strong> was made, but the answer with it was lost. It cannot be shown again.{' '}
        {another}
      </p>
    );
  }
  return (
    <div className="stack">
      <p>
        <strong className="given">{label}</strong>, shown this once. Keep it before you close this.
      </p>
      <div className="secret">
        <code>{value}</code>
        <Copy name={label} value={value} />
      </div>
    </div>
  );
}
