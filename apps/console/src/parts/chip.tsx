type Tone = 'good' | 'warn' | 'bad' | 'busy' | 'calm';

const tones: Record<string, Tone> = {
  active: 'good',
  ready: 'good',
  running: 'good',
  Active: 'good',
  Available: 'good',
  'In service': 'good',
  ok: 'good',
  subscribing: 'busy',
  unsubscribing: 'busy',
  initialising: 'busy',
  pending: 'busy',
  pulling: 'busy',
  stopping: 'busy',
  provisioning: 'busy',
  updating: 'busy',
  resizing: 'busy',
  deleting: 'busy',
  Requested: 'busy',
  Provisioning: 'busy',
  Releasing: 'busy',
  Checking: 'busy',
  invited: 'warn',
  suspended: 'warn',
  cordoned: 'warn',
  registered: 'warn',
  partial: 'warn',
  degraded: 'warn',
  unreachable: 'bad',
  succeeded: 'good',
  interrupted: 'warn',
  maintenance: 'warn',
  failed: 'bad',
  init_failed: 'bad',
  Failed: 'bad',
  'Check failed': 'bad',
  'Clean failed': 'bad',
};

/** A state in its own word; the colour only repeats it: that of the state `as` where this one has none of its own. */
export function Chip({ state, as = state }: { state: string; as?: string }) {
  return (
    <span className="chip" data-tone={tones[state] ?? tones[as] ?? 'calm'}>
      {state.replaceAll('_', ' ')}
    </span>
  );
}
