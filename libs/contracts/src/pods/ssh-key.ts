import { IntersectionType } from '@nestjs/swagger';
import { broadcast, contract, operation } from '../contract.js';
import { Flag, Instant, Text } from '../fields.js';
import { Uuid } from '../id-fields.js';
import { Nothing, PageFromOne, PageOf } from '../page.js';

const nameField = { max: 100, description: 'Name of the key, for its user.', example: 'laptop' };
const exampleLine = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk1VtH6q6zYQ9lkWYf5kqIbHnp1TmJ0m3zqUQvXr2Zt';

export class SshKey {
  @Uuid()
  ssh_key_id!: string;

  @Text(nameField)
  name!: string;

  @Text({ max: 64, description: 'Type of the key.', example: 'ssh-ed25519' })
  type!: string;

  @Text({
    max: 64,
    description: 'SHA-256 of the key, as `ssh-keygen -l` shows it.',
    example: 'SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU',
  })
  fingerprint!: string;

  @Text({ max: 16_384, description: 'Public key as in `authorized_keys`, without its comment.', example: exampleLine })
  public_key!: string;

  @Flag({
    description:
      'Whether it was added without a second factor: it opens nothing in a team that required one when its user joined.',
  })
  lacks_second_factor!: boolean;

  @Instant()
  created_at!: string;
}

export class SshKeyPage extends PageOf(() => SshKey) {}

export class AddSshKey {
  @Text({
    ...nameField,
    optional: true,
    description: 'Name of the key, for its user; the comment of the key if left out.',
  })
  name?: string;

  @Text({
    max: 16_384,
    description:
      'One line of `authorized_keys`: ssh-ed25519, ecdsa-sha2-nistp256/384/521, or ssh-rsa of at least 3072 bits.',
    format: 'ssh-public-key',
    // Most copies of an id_….pub end with a line feed.
    multiline: true,
    example: `${exampleLine} ada@laptop`,
  })
  public_key!: string;
}

export class SshKeyPath {
  @Uuid()
  ssh_key_id!: string;
}

export class RenameSshKeyBody {
  @Text(nameField)
  name!: string;
}

export class RenameSshKey extends IntersectionType(SshKeyPath, RenameSshKeyBody) {}

/** The SSH keys of the caller, who acts for themselves as a whole: by a session, or by a key without a team. */
export const sshKeys = contract('pods.ssh_keys', {
  add: operation(AddSshKey, SshKey),
  list: operation(PageFromOne, SshKeyPage),
  get: operation(SshKeyPath, SshKey),
  rename: operation(RenameSshKey, SshKey),
  remove: operation(SshKeyPath, Nothing),
});

class SshKeysChanged {
  /** Whoever lets this user in by a key must look again. */
  @Uuid()
  user_id!: string;
}

/** Told after commit when a user has added or removed a key. */
export const sshKeysChanged = broadcast('pods.ssh_keys_changed', SshKeysChanged);
