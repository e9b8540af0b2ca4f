import { pageWindow, requirePlatformAdmin, type CallContext, type PageFromOne } from '@atoll/contracts';
import { type CreateFlavour, type Flavour, type FlavourPage } from '@atoll/contracts/pods';
import { readPage, Statements, Transactions } from '@atoll/database';
import { AppError, invalidField } from '@atoll/errors';
import { Injectable } from '@nestjs/common';

interface Row {
  name: string;
  vcpus: number;
  memory_gb: string;
  created_at: Date;
}

/** Sizes of VMs, by the operator. One that exists never changes. */
@Injectable()
export class FlavoursService {
  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
  ) {}

  async create({ name, vcpus, memory_gb }: CreateFlavour, context: CallContext): Promise<Flavour> {
    requirePlatformAdmin(context.caller);
    return this.transactions.once(context, async (manager) => {
      const [row] = await manager.query<Row[]>(
        'INSERT INTO flavour (name, vcpus, memory_gb) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING name, vcpus, memory_gb, created_at',
        [name, vcpus, memory_gb],
      );
      if (!row) throw new AppError('conflict', `A flavour named ${name} exists already.`);
      return flavourView(row);
    });
  }

  async list(asked: PageFromOne): Promise<FlavourPage> {
    const { page, limit, offset } = pageWindow(asked, 1);
    const { total, rows } = await readPage<Row>(this.statements, {
      from: 'flavour',
      order: 'created_at, name',
      window: 'LIMIT $1 OFFSET $2',
      values: [limit, offset],
    });
    return { data: rows.map(flavourView), pagination: { page, limit, total } };
  }

  /** Throws `invalid_input` for a name that is none. */
  async find(name: string): Promise<{ vcpus: number; memoryGb: string }> {
    const query = 'SELECT vcpus, memory_gb AS "memoryGb" FROM flavour WHERE name = $1';
    const [found] = await this.statements.query<{ vcpus: number; memoryGb: string }>(query, [name]);
    if (!found) throw invalidField('flavour', 'exists', 'must be the name of a flavour');
    return found;
  }
}

function flavourView({ name, vcpus, memory_gb, created_at }: Row): Flavour {
  return { name, vcpus, memory_gb: Number(memory_gb), created_at: created_at.toISOString() };
}
