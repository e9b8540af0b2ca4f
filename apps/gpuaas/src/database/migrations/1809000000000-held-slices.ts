import type { MigrationInterface, QueryRunner } from 'typeorm';

const held = 'NOT is_added AND lost_reason IS NULL';
const columns = 'lease_id, subscription_id, gpu_id, is_slot, gpu_instance_id, held_from';
const insert = (from: string, clock: string) => `INSERT INTO gpuaas.held_slice (${columns})
  SELECT lease_id, subscription_id, gpu_id, turn IS NULL, gpu_instance_id, ${clock} FROM ${from} WHERE ${held}`;
const close = (of: string, clock: string) =>
  `UPDATE gpuaas.held_slice SET held_until = ${clock} WHERE lease_id = ${of} AND held_until IS NULL`;
/** What a lease is measured by. An instance that becomes known was there before. */
const changes = `(OLD.subscription_id, OLD.gpu_id, OLD.turn IS NULL, OLD.is_added, OLD.lost_reason IS NULL, OLD.gpu_instance_id)
  IS DISTINCT FROM (NEW.subscription_id, NEW.gpu_id, NEW.turn IS NULL, NEW.is_added, NEW.lost_reason IS NULL, NEW.gpu_instance_id)`;
const triggers: Record<string, { event: string; function: string }> = {
  lease_begins: { event: 'INSERT ON lease REFERENCING NEW TABLE AS added FOR EACH STATEMENT', function: 'hold_slices' },
  lease_ends: {
    event: 'DELETE ON lease REFERENCING OLD TABLE AS removed FOR EACH STATEMENT',
    function: 'let_slices_go',
  },
  lease_changes: { event: `UPDATE ON lease FOR EACH ROW WHEN (${changes})`, function: 'change_held_slice' },
};

/**
 * The instants between which leases are held, for metrics. Kept by triggers, so that no statement that writes leases
 * can forget it. Of leases that are held already it is not known since when, so their figures begin with the migration.
 */
export class HeldSlices1809000000000 implements MigrationInterface {
  readonly name = 'HeldSlices1809000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('LOCK TABLE lease IN SHARE ROW EXCLUSIVE MODE');
    await runner.query(
      `CREATE TABLE held_slice (
        held_slice_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        lease_id bigint NOT NULL,
        subscription_id bigint NOT NULL REFERENCES subscription,
        gpu_id bigint NOT NULL REFERENCES gpu,
        is_slot boolean NOT NULL,
        gpu_instance_id smallint,
        held_from timestamptz(3) NOT NULL,
        held_until timestamptz(3)
      )`,
    );
    await runner.query('CREATE INDEX ON held_slice (subscription_id, held_from)');
    await runner.query('CREATE UNIQUE INDEX held_slice_open ON held_slice (lease_id) WHERE held_until IS NULL');
    await runner.query('CREATE INDEX held_slice_closed ON held_slice (held_until) WHERE held_until IS NOT NULL');
    await runner.query(insert('lease', 'clock_timestamp()'));
    const define = (name: string, declared: string, body: string) =>
      runner.query(
        `CREATE FUNCTION gpuaas.${name}() RETURNS trigger LANGUAGE plpgsql AS $$ ${declared} BEGIN ${body}; RETURN NULL; END $$`,
      );
    await define('hold_slices', '', insert('added', 'clock_timestamp()'));
    await define('let_slices_go', '', close('ANY (ARRAY(SELECT lease_id FROM removed))', 'clock_timestamp()'));
    await define(
      'change_held_slice',
      'DECLARE clock timestamptz(3) := clock_timestamp();',
      `UPDATE gpuaas.held_slice SET gpu_instance_id = NEW.gpu_instance_id
         WHERE lease_id = NEW.lease_id AND held_until IS NULL AND gpu_instance_id IS NULL AND is_slot = (NEW.turn IS NULL) AND NEW.lost_reason IS NULL;
       IF NOT FOUND THEN ${close('NEW.lease_id', 'clock')}; ${insert('(SELECT NEW.*) now_held', 'clock')}; END IF`,
    );
    for (const [name, trigger] of Object.entries(triggers)) {
      await runner.query(`CREATE TRIGGER ${name} AFTER ${trigger.event} EXECUTE FUNCTION gpuaas.${trigger.function}()`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [name, trigger] of Object.entries(triggers)) {
      await runner.query(`DROP TRIGGER ${name} ON lease`);
      await runner.query(`DROP FUNCTION gpuaas.${trigger.function}()`);
    }
    await runner.query('DROP TABLE held_slice');
  }
}
