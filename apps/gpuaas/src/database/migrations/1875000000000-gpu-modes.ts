import type { MigrationInterface, QueryRunner } from 'typeorm';

const isBeyond = (gpu: string) =>
  `(${gpu}state = 'spatial' AND ${gpu}turns_used <> 0 OR ${gpu}state IN ('temporal', 'configured_temporal') AND ${gpu}slots_used <> 0)`;

/**
 * A GPU at rest holds slots alone or turns alone, by its mode: what would leave it with more is not committed. Looked
 * at when the transaction ends, since a GPU that comes to rest first moves and then gives its leases their places. A
 * GPU that holds more already can be given back.
 */
export class GpuModes1875000000000 implements MigrationInterface {
  readonly name = 'GpuModes1875000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE FUNCTION gpuaas.require_mode() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         IF EXISTS (SELECT FROM gpuaas.gpu WHERE gpu_id = NEW.gpu_id AND ${isBeyond('')}) THEN
           RAISE EXCEPTION 'GPU % would hold more than it has in its mode.', NEW.gpu_id USING ERRCODE = 'check_violation', CONSTRAINT = 'gpu_mode';
         END IF;
         RETURN NULL;
       END $$`,
    );
    await runner.query(
      `CREATE CONSTRAINT TRIGGER gpu_mode AFTER UPDATE ON gpu DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW WHEN (${isBeyond('NEW.')} AND NOT ${isBeyond('OLD.')}) EXECUTE FUNCTION gpuaas.require_mode()`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TRIGGER gpu_mode ON gpu');
    await runner.query('DROP FUNCTION gpuaas.require_mode()');
  }
}
