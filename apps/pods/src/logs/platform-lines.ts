import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';

/** Lines that the platform writes into the log of a pod, of stream `platform`. */
@Injectable()
export class PlatformLines {
  /**
   * Within the transaction of what it tells; it is in the log within seconds. `message`: one line for the team of the
   * pod.
   */
  async write(manager: EntityManager, podId: string, message: string): Promise<void> {
    await manager.query('INSERT INTO platform_line (pod_id, message) VALUES ($1, $2)', [podId, message]);
  }
}
