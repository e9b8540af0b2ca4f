import { ClusterError, type ClusterErrorCode } from '../cluster-error.js';
import type { ObjectRef, PodRun, PodSlice } from '../objects.js';
import type { FoundObject, RunSight } from '../observations.js';
import { endingOf, lifeOf, scenarioOf } from './scenario.js';
import type { LoggedRun } from './simulated-logs.js';
import { tables, type SimulatedStore } from './simulated-store.js';
import type { SimulatedVolumes } from './simulated-volumes.js';

/** Of a `PodRun`, what is kept: nothing of its environment. */
interface KeptSpec {
  readonly image: string;
  readonly command: readonly string[];
  readonly slices: readonly PodSlice[];
  readonly owner: PodRun['owner'];
  /** Ids. */
  readonly volumes: readonly string[];
  /** Of a VM: whose log-in it takes. */
  readonly sshKeys?: readonly string[];
}

type StartedRun = Pick<PodRun, 'ref' | 'podName' | 'image' | 'command' | 'slices' | 'owner' | 'volumes'>;

interface Row {
  id: string;
  run: number;
  name: string;
  spec: KeptSpec;
  ready_at: Date | null;
  trouble: ClusterErrorCode | null;
  ends_at: Date | null;
  exit_code: number | null;
  is_out_of_memory: boolean;
  stop_requested_at: Date | null;
  now: Date;
}

const columns = `id, run, name, spec, nullif(ready_at, 'infinity') AS ready_at, trouble, ends_at, exit_code, is_out_of_memory, stop_requested_at,
  clock_timestamp()::timestamptz(3) AS now`;

/**
 * The runs of pods, or of VMs, in simulated clusters. When a run is requested it is decided when its image will be
 * there, and when and how it ends: what it is at any instant follows from its row, so nothing has to run for it, and no
 * crash of a process changes it.
 */
export class SimulatedRuns {
  constructor(
    private readonly store: SimulatedStore,
    private readonly cluster: string,
    private readonly pullMs: number,
    private readonly volumes: SimulatedVolumes,
    private readonly changed: () => void,
    private readonly kind: 'pod' | 'vm' = 'pod',
  ) {}

  async start(
    { ref, podName, image, command, slices, owner, volumes }: StartedRun,
    isWanted: () => Promise<boolean>,
  ): Promise<void> {
    if (volumes.length > 0) {
      if (await this.find(ref)) return;
      await this.volumes.write(volumes.map(({ volumeId }) => volumeId));
    }
    const life = lifeOf(scenarioOf(podName, image), this.pullMs);
    const spec: KeptSpec = { image, command, slices, owner, volumes: volumes.map(({ volumeId }) => volumeId) };
    const created = await this.store.query(
      `INSERT INTO ${tables.run} (cluster, kind, id, run, name, spec, requested_at, ready_at, trouble, ends_at, exit_code, is_out_of_memory)
       SELECT $1, $11, $2, $3, $4, $5, now, coalesce(now + $6::integer * interval '1 millisecond', 'infinity'), $7,
         now + ($6::integer + $8::integer) * interval '1 millisecond', $9, $10
       FROM (SELECT clock_timestamp()::timestamptz(3) AS now) clock ON CONFLICT DO NOTHING RETURNING id`,
      [
        this.cluster,
        ref.id,
        ref.run,
        podName,
        JSON.stringify(spec),
        life.pullMs,
        life.trouble,
        life.runsMs,
        life.exitCode,
        life.isOutOfMemory,
        this.kind,
      ],
    );
    if (created.length > 0) await this.removeUnless(ref, isWanted);
    this.changed();
  }

  private async removeUnless(ref: ObjectRef, isWanted: () => Promise<boolean>): Promise<void> {
    let isNeeded = false;
    try {
      isNeeded = await isWanted();
    } finally {
      if (!isNeeded) await this.remove(ref);
    }
  }

  /** What a guest does with the keys that it is told. */
  async setKeys({ id, run }: ObjectRef, sshKeys: readonly string[]): Promise<void> {
    await this.store.query(
      `UPDATE ${tables.run} SET spec = jsonb_set(spec, '{sshKeys}', $5::jsonb) WHERE cluster = $1 AND kind = $4 AND id = $2 AND run = $3`,
      [this.cluster, id, run, this.kind, JSON.stringify(sshKeys)],
    );
  }

  /** Whom a VM lets in: for specs. */
  async keysOf(ref: ObjectRef): Promise<readonly string[]> {
    return (await this.find(ref))?.spec.sshKeys ?? [];
  }

  async stop(ref: ObjectRef, graceMs: number): Promise<void> {
    const row = await this.find(ref);
    if (!row || row.stop_requested_at) return;
    const { afterMs, exitCode } = endingOf(scenarioOf(row.name, row.spec.image), graceMs);
    await this.store.query(
      `UPDATE ${tables.run} SET stop_requested_at = now, exit_code = CASE WHEN ends_at <= end_at THEN exit_code ELSE $5 END,
         is_out_of_memory = is_out_of_memory AND ends_at <= end_at, ends_at = LEAST(ends_at, end_at)
       FROM (SELECT clock_timestamp()::timestamptz(3) AS now, clock_timestamp()::timestamptz(3) + $4 * interval '1 millisecond' AS end_at) clock
       WHERE cluster = $1 AND kind = $6 AND id = $2 AND run = $3 AND stop_requested_at IS NULL`,
      [this.cluster, ref.id, ref.run, afterMs, exitCode, this.kind],
    );
    this.changed();
  }

  async observe(refs: readonly ObjectRef[]): Promise<RunSight[]> {
    return (await this.findAll(refs)).map(sightOf);
  }

  async remove(ref: ObjectRef): Promise<void> {
    const row = await this.find(ref);
    if (!row) return;
    const values = [this.cluster, ref.id, ref.run];
    await this.store.query(`DELETE FROM ${tables.line} WHERE cluster = $1 AND id = $2 AND run = $3`, values);
    await this.store.query(`DELETE FROM ${tables.run} WHERE cluster = $1 AND kind = $4 AND id = $2 AND run = $3`, [
      ...values,
      this.kind,
    ]);
  }

  async *list(): AsyncGenerator<FoundObject> {
    let after = ['', 0] as [string, number];
    for (;;) {
      const rows = await this.store.query<{ id: string; run: number; requested_at: Date }>(
        `SELECT id, run, requested_at FROM ${tables.run} WHERE cluster = $1 AND kind = $4 AND (id, run) > ($2, $3) ORDER BY id, run LIMIT 1000`,
        [this.cluster, ...after, this.kind],
      );
      for (const { id, run, requested_at } of rows)
        yield { ref: { kind: this.kind, id, run }, createdAt: requested_at };
      const last = rows.at(-1);
      if (!last || rows.length < 1000) return;
      after = [last.id, last.run];
    }
  }

  /** For specs: removes runs as if by hand, outside the platform. */
  async lose(refs: readonly ObjectRef[]): Promise<void> {
    for (const ref of refs) await this.remove(ref);
  }

  /** Of each run what its log follows from, in order. */
  async logged(refs: readonly ObjectRef[]): Promise<(LoggedRun | undefined)[]> {
    return (await this.findAll(refs)).map((row) => row && loggedOf(row));
  }

  /** Throws `not_found` unless it runs now. */
  async requireRunning(ref: ObjectRef): Promise<LoggedRun> {
    const row = await this.find(ref);
    if (!row || sightOf(row).phase !== 'running') throw new ClusterError('not_found', 'The pod does not run.');
    return loggedOf(row);
  }

  private async find(ref: ObjectRef): Promise<Row | undefined> {
    return (await this.findAll([ref]))[0];
  }

  /** In the order of `refs`. */
  private async findAll(refs: readonly ObjectRef[]): Promise<(Row | undefined)[]> {
    const rows = await this.store.query<Row>(
      `SELECT ${columns} FROM ${tables.run} JOIN unnest($2::text[], $3::integer[]) wanted (id, run) USING (id, run) WHERE cluster = $1 AND kind = $4`,
      [this.cluster, refs.map(({ id }) => id), refs.map(({ run }) => run), this.kind],
    );
    const byRef = new Map(rows.map((row) => [`${row.id} ${row.run}`, row]));
    return refs.map(({ id, run }) => byRef.get(`${id} ${run}`));
  }
}

/** What could not be pulled has said nothing. */
function loggedOf({ name, spec, ready_at, trouble, ends_at, exit_code, now }: Row): LoggedRun {
  return {
    podName: name,
    image: spec.image,
    scenario: scenarioOf(name, spec.image),
    slices: spec.slices,
    readyMs: trouble ? Infinity : (ready_at?.getTime() ?? Infinity),
    endsMs: ends_at?.getTime() ?? null,
    exitCode: exit_code,
    nowMs: now.getTime(),
  };
}

function sightOf(row: Row | undefined): RunSight {
  if (!row) return { phase: 'absent' };
  const { ready_at, ends_at, now, trouble, exit_code, is_out_of_memory, stop_requested_at } = row;
  const isReady = ready_at !== null && ready_at <= now;
  if (ends_at && ends_at <= now) {
    const startedAt = ready_at && ready_at <= ends_at && !trouble ? ready_at : null;
    const exit = {
      code: startedAt ? exit_code : null,
      outOfMemory: is_out_of_memory ? ('yes' as const) : ('no' as const),
    };
    return { phase: 'ended', startedAt, exit: { ...exit, reason: null, at: ends_at } };
  }
  if (stop_requested_at) return { phase: 'stopping' };
  if (isReady && trouble)
    return { phase: 'preparing', pull: null, trouble: { code: trouble, message: messages[trouble] ?? 'It failed.' } };
  if (isReady && ready_at) return { phase: 'running', startedAt: ready_at, trouble: null };
  return { phase: 'preparing', pull: { doneBytes: 250_000_000, totalBytes: 1_000_000_000 }, trouble: null };
}

const messages: Partial<Record<ClusterErrorCode, string>> = {
  image_not_found: 'The registry has no such image.',
  image_needs_login: 'The registry needs a log-in for this image.',
};
