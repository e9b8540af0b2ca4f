import { Statements } from '@atoll/database';
import { Sealer } from '@atoll/seal';
import { generateKeyPair } from '@atoll/ssh';
import { Injectable } from '@nestjs/common';
import { hostKeyPurpose } from '../model/ssh-host-key.entity.js';

/** The host key, sealed in the database. The first replica that needs it makes it. */
@Injectable()
export class SshHostKey {
  constructor(
    private readonly statements: Statements,
    private readonly sealer: Sealer,
  ) {}

  async read(): Promise<string> {
    const known = await this.#find();
    if (known !== null) return known;
    const { privateKey: made } = generateKeyPair();
    await this.statements.query('INSERT INTO ssh_host_key (id, sealed) VALUES (1, $1) ON CONFLICT DO NOTHING', [
      this.sealer.seal(made, hostKeyPurpose),
    ]);
    const kept = await this.#find();
    if (kept === null) throw new Error('The SSH host key was not stored.');
    return kept;
  }

  async #find(): Promise<string | null> {
    const [row] = await this.statements.query<{ sealed: string }>('SELECT sealed FROM ssh_host_key WHERE id = $1', [1]);
    return row ? this.sealer.open(row.sealed, hostKeyPurpose).toString() : null;
  }
}
