import { Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';

/**
 * The names of time zones that may stand in a profile: those of the tz database as PostgreSQL has it, links included,
 * that this process knows as well. Intl alone would take bare offsets and any case, and lists no links.
 */
@Injectable()
export class Timezones {
  private names?: Promise<ReadonlySet<string>>;

  constructor(private readonly statements: Statements) {}

  async has(name: string): Promise<boolean> {
    this.names ??= this.load();
    return (await this.names).has(name) && isKnownHere(name);
  }

  private async load(): Promise<ReadonlySet<string>> {
    try {
      const rows = await this.statements.query<{ name: string }>('SELECT name FROM pg_timezone_names', []);
      return new Set(rows.map(({ name }) => name));
    } catch (error) {
      this.names = undefined;
      throw error;
    }
  }
}

function isKnownHere(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    return false;
  }
}
