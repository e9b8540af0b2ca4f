import { Injectable } from '@nestjs/common';

/** The public keys by which members of a team log in to its hosts. */
@Injectable()
export class TeamKeys {
  /** Each as a line of `authorized_keys`, without a comment, sorted. */
  of(_teamId: string): Promise<string[]> {
    return Promise.resolve([]);
  }
}
