import { createPrivateKey, X509Certificate } from 'node:crypto';
import { ClusterError } from '../cluster-error.js';
import type { Certificate, Door, ObjectRef } from '../objects.js';
import type { DoorSight, FoundObject, Trouble } from '../observations.js';
import { tables, type SimulatedStore } from './simulated-store.js';

/** Seals and opens the key of a certificate for the database. */
export interface SecretKeeper {
  seal(secret: string, purpose: string): string;
  open(sealed: string, purpose: string): { toString(encoding: 'utf8'): string };
}

/**
 * The code of a listener's error if the port is in use. Other errors, such as a wrong address, do not depend on the
 * port.
 */
export const portTaken = 'EADDRINUSE';

/** A door as a process that listens needs it. */
export interface WantedDoor {
  readonly cluster: string;
  readonly id: string;
  readonly run: number;
  readonly podId: string;
  readonly transport: 'tcp' | 'udp';
  readonly port: number;
  readonly externalPort: number;
  readonly sealedTls: string | null;
}

/** For the keeper of secrets: where the certificate of a door belongs. */
export function tlsPurpose({ cluster, id }: Pick<WantedDoor, 'cluster' | 'id'>): string {
  return `simulated_cluster.door.tls:${cluster}:${id}`;
}

/** Where the keys of certificates stand, for a keeper of secrets that changes its key. */
export const sealedDoors = {
  table: tables.door,
  column: 'sealed_tls',
  purposeBy: ['cluster', 'id'],
  purposeOf: (cluster: string, id: string): string => tlsPurpose({ cluster, id }),
} as const;

/**
 * The doors of one simulated cluster, as rows: whichever process has claimed the listeners opens and closes what they
 * say.
 */
export class SimulatedDoors {
  constructor(
    private readonly store: SimulatedStore,
    private readonly cluster: string,
    private readonly secrets: SecretKeeper,
    private readonly ring: () => void,
  ) {}

  async open({ ref, podId, transport, port, externalPort, tls }: Door): Promise<void> {
    const purpose = tlsPurpose({ cluster: this.cluster, id: ref.id });
    const [known] = await this.store.query<{ sealed_tls: string | null }>(
      `SELECT sealed_tls FROM ${tables.door} WHERE cluster = $1 AND id = $2 AND run = $3`,
      [this.cluster, ref.id, ref.run],
    );
    if (tls) requireFitting(tls);
    const text = tls && JSON.stringify({ certificate: tls.certificate, key: tls.key });
    if (known && text === (known.sealed_tls && this.secrets.open(known.sealed_tls, purpose).toString('utf8'))) return;
    await this.store.query(
      `INSERT INTO ${tables.door} (cluster, id, run, pod_id, transport, port, external_port, sealed_tls)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (cluster, id, run) DO UPDATE SET sealed_tls = excluded.sealed_tls, changed_at = clock_timestamp()`,
      [this.cluster, ref.id, ref.run, podId, transport, port, externalPort, text && this.secrets.seal(text, purpose)],
    );
    this.ring();
  }

  async observe(refs: readonly ObjectRef[]): Promise<DoorSight[]> {
    const rows = await this.store.query<{ id: string; run: number; is_open: boolean; trouble: string | null }>(
      `SELECT id, run, trouble, EXISTS (SELECT FROM ${tables.claim} WHERE holder = opened_by AND until > clock_timestamp()) AS is_open
       FROM ${tables.door} JOIN unnest($2::text[], $3::integer[]) wanted (id, run) USING (id, run) WHERE cluster = $1`,
      [this.cluster, refs.map(({ id }) => id), refs.map(({ run }) => run)],
    );
    const byRef = new Map(rows.map((row) => [`${row.id} ${row.run}`, row]));
    return refs.map(({ id, run }): DoorSight => {
      const row = byRef.get(`${id} ${run}`);
      if (!row) return { phase: 'absent' };
      if (row.is_open) return { phase: 'open', host: null };
      return { phase: 'opening', trouble: row.trouble === null ? null : troubleOf(row.trouble) };
    });
  }

  /** The door is absent once its listener is closed, or if no process listens. */
  async remove(ref: ObjectRef): Promise<void> {
    const key = [this.cluster, ref.id, ref.run];
    const removed = await this.store.query(
      `DELETE FROM ${tables.door} WHERE cluster = $1 AND id = $2 AND run = $3
         AND NOT EXISTS (SELECT FROM ${tables.claim} WHERE holder = opened_by AND until > clock_timestamp()) RETURNING id`,
      key,
    );
    if (removed.length > 0) return this.ring();
    const closing = await this.store.query(
      `UPDATE ${tables.door} SET is_closing = true WHERE cluster = $1 AND id = $2 AND run = $3 AND NOT is_closing RETURNING id`,
      key,
    );
    if (closing.length > 0) this.ring();
  }

  async *list(): AsyncGenerator<FoundObject> {
    const rows = await this.store.query<{ id: string; run: number; requested_at: Date }>(
      `SELECT id, run, requested_at FROM ${tables.door} WHERE cluster = $1 ORDER BY id, run`,
      [this.cluster],
    );
    for (const { id, run, requested_at } of rows) yield { ref: { kind: 'door', id, run }, createdAt: requested_at };
  }
}

/** Depends on the code of the listener's error: another port helps only if this one is in use. */
function troubleOf(code: string): Trouble {
  if (code === portTaken) return { code: 'port_in_use', message: 'Something else on the host listens on this port.' };
  return { code: 'unreachable', message: 'The cluster cannot listen on its public address at the moment.' };
}

/** Throws `invalid` for a key that is not that of the certificate, and says nothing of it. */
function requireFitting({ certificate, key }: Certificate): void {
  try {
    if (new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))) return;
  } catch {
    // What the library says may quote the key.
  }
  throw new ClusterError('invalid', 'The certificate and the key do not match.');
}
