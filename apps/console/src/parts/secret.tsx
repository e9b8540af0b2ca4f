import { Copy } from './copy.js';

/** Something that is shown once. It is in no query, no address and no storage. */
export function Secret({ label, value }: { label: string; value: string }) {
  return (
    <div className="stack">
      <p>
        <strong>{label}</strong>, shown this once. Keep it before you close this.
      </p>
      <div className="secret">
        <code>{value}</code>
        <Copy name={label} value={value} />
      </div>
    </div>
  );
}
