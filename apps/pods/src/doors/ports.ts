import { AppError, invalidField } from '@atoll/errors';
import { fairShare } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { ExposureEntity } from '../model/exposure.entity.js';
import { PodsSettings } from '../pods-settings.js';

/** Exposed services of a team: external ports are few, and cost nothing. */
export const mostOfTeam = 200;

/** How long a port that something else on the host has is not chosen again. */
const foreignMs = 600_000;

/** In SQL: whether a `reserved_port` is taken, by a service or by something else on the host. */
const isInUse = '(service_id IS NOT NULL OR until > clock_timestamp())';

/** The first and the last of `ATOLL_EXPOSED_PORTS`. Throws where they are none. */
export function rangeOf(exposedPorts: string): [first: number, last: number] {
  const [first = 0, last = 0] = exposedPorts.split('-').map(Number);
  if (first > last || last > 65_535)
    throw new Error('ATOLL_EXPOSED_PORTS must be from a lower to a higher port, 65535 at most.');
  return [first, last];
}

/** External ports: each is reserved for one exposed service of a public host, or free. */
@Injectable()
export class ExternalPorts {
  readonly first: number;
  readonly last: number;

  constructor({ exposedPorts }: PodsSettings) {
    [this.first, this.last] = rangeOf(exposedPorts);
  }

  /** Throws `invalid_input` for a port that the platform does not expose. */
  requireOffered(port: number): void {
    if (port >= this.first && port <= this.last) return;
    throw invalidField('external_port', 'isOffered', `must be from ${this.first} to ${this.last}`);
  }

  /**
   * Throws `conflict` where the team has its share of the ports of a host, which is less than `mostOfTeam` once most of
   * them are in use.
   */
  async requireShare(manager: EntityManager, publicHost: string, teamId: string): Promise<void> {
    const all = this.last - this.first + 1;
    const [{ used = 0 } = {}] = await manager.query<{ used: number }[]>(
      `SELECT count(*)::int AS used FROM reserved_port WHERE public_host = $1 AND external_port BETWEEN $2 AND $3 AND ${isInUse}`,
      [publicHost, this.first, this.last],
    );
    const share = fairShare({ all, free: all - used, most: mostOfTeam });
    // Where none is free, the error of the port says so.
    if (share === 0 || share === mostOfTeam) return;
    const [{ own = 0 } = {}] = await manager.query<{ own: number }[]>(
      `SELECT count(*)::int AS own FROM reserved_port JOIN exposure USING (service_id) JOIN pod USING (pod_id)
       WHERE reserved_port.public_host = $1 AND team_id = $2`,
      [publicHost, teamId],
    );
    if (own < share) return;
    throw new AppError(
      'conflict',
      `${all - used} of ${all} external ports are free: a team may have ${share} now, and the team has ${own}. Delete an exposed service, or retry later.`,
    );
  }

  /**
   * Reserves this port. Throws `port_in_use` where another service has it; waits for a transaction that is about to.
   */
  async reserve(manager: EntityManager, publicHost: string, port: number, serviceId: string): Promise<void> {
    const taken = await manager.query<{ external_port: number }[]>(
      `INSERT INTO reserved_port (public_host, external_port, service_id) VALUES ($1, $2, $3)
       ON CONFLICT (public_host, external_port) DO UPDATE SET service_id = excluded.service_id, until = NULL
         WHERE reserved_port.service_id IS NULL OR reserved_port.service_id = excluded.service_id RETURNING external_port`,
      [publicHost, port, serviceId],
    );
    if (taken.length === 0) throw new AppError('port_in_use', `The external port ${port} is used by another service.`);
  }

  /** Reserves any free port. Throws `port_in_use` where there is none. */
  async pick(manager: EntityManager, publicHost: string, serviceId: string): Promise<number> {
    const picked = await this.pickAny(manager, publicHost, serviceId);
    if (picked !== undefined) return picked;
    throw new AppError('port_in_use', `All external ports from ${this.first} to ${this.last} are in use.`);
  }

  /** As `pick`; undefined where there is none. */
  async pickAny(manager: EntityManager, publicHost: string, serviceId: string): Promise<number | undefined> {
    for (;;) {
      const [free] = await manager.query<{ port: number }[]>(
        // What is reserved is read once. A look for each port of the range would probe the index as often.
        `SELECT port FROM (
           SELECT generate_series($2::integer, $3::integer) AS port
           EXCEPT SELECT external_port FROM reserved_port WHERE public_host = $1 AND ${isInUse}
         ) free ORDER BY random() LIMIT 1`,
        [publicHost, this.first, this.last],
      );
      if (!free) return undefined;
      const taken = await manager.query<object[]>(
        `INSERT INTO reserved_port (public_host, external_port, service_id) VALUES ($1, $2, $3)
         ON CONFLICT (public_host, external_port) DO UPDATE SET service_id = excluded.service_id, until = NULL
           WHERE reserved_port.service_id IS NULL RETURNING external_port`,
        [publicHost, free.port, serviceId],
      );
      if (taken.length > 0) return free.port;
    }
  }

  /** Gives back what a service has reserved. */
  async release(manager: EntityManager, serviceId: string): Promise<void> {
    await manager.query('DELETE FROM reserved_port WHERE service_id = $1', [serviceId]);
  }

  /** Gives back all that a service has reserved but its external port. Their doors are closed. */
  async releaseOthers(
    manager: EntityManager,
    { serviceId, externalPort }: Pick<ExposureEntity, 'serviceId' | 'externalPort'>,
  ): Promise<void> {
    await manager.query('DELETE FROM reserved_port WHERE service_id = $1 AND external_port <> $2', [
      serviceId,
      externalPort,
    ]);
  }

  /** Throws `conflict` while a service has another port beside its external port: an old door is open there. */
  async requireNoOther(
    manager: EntityManager,
    { serviceId, externalPort }: Pick<ExposureEntity, 'serviceId' | 'externalPort'>,
  ): Promise<void> {
    const [old] = await manager.query<{ external_port: number }[]>(
      'SELECT external_port FROM reserved_port WHERE service_id = $1 AND external_port <> $2 LIMIT 1',
      [serviceId, externalPort],
    );
    if (old)
      throw new AppError(
        'conflict',
        `The former external port ${old.external_port} of the service is not closed yet; retry the update later.`,
      );
  }

  /** Something else on the host has the port of a service: it is nobody's, and is not chosen for a while. */
  async markForeign(manager: EntityManager, serviceId: string, port: number): Promise<void> {
    await manager.query(
      `UPDATE reserved_port SET service_id = NULL, until = clock_timestamp() + $3 * interval '1 millisecond'
       WHERE service_id = $1 AND external_port = $2`,
      [serviceId, port, foreignMs],
    );
  }
}
