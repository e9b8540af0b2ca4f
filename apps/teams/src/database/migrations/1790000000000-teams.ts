import { createIdempotencyTable, dropIdempotencyTable, newId } from '@atoll/database';
import { createEventTables, dropEventTables } from '@atoll/events';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const tables = [
  `CREATE TABLE "user" (
    id uuid PRIMARY KEY,
    email text NOT NULL UNIQUE,
    name text NOT NULL,
    timezone text NOT NULL DEFAULT 'UTC',
    platform_admin boolean NOT NULL DEFAULT false,
    created_at timestamptz(3) NOT NULL DEFAULT now()
  )`,
  `CREATE TABLE image_policy (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    description text NOT NULL,
    is_default boolean NOT NULL DEFAULT false,
    created_at timestamptz(3) NOT NULL DEFAULT now()
  )`,
  `CREATE UNIQUE INDEX ON image_policy (is_default) WHERE is_default`,
  `CREATE INDEX ON image_policy (created_at, id)`,
  `CREATE TABLE image_object (
    id uuid PRIMARY KEY,
    policy_id uuid NOT NULL REFERENCES image_policy ON DELETE CASCADE,
    name text NOT NULL,
    reference text NOT NULL
  )`,
  `CREATE INDEX ON image_object (policy_id, id)`,
  `CREATE TABLE team (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    description text NOT NULL,
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'deleting')),
    is_suspended boolean NOT NULL DEFAULT false,
    policy_id uuid NOT NULL REFERENCES image_policy,
    revision integer NOT NULL DEFAULT 1,
    deletion_attempt_id uuid,
    deletion_deadline timestamptz(3),
    created_at timestamptz(3) NOT NULL DEFAULT now(),
    deleted_at timestamptz(3)
  )`,
  `CREATE INDEX ON team (created_at, id) WHERE deleted_at IS NULL`,
  `CREATE INDEX ON team (policy_id)`,
  `CREATE INDEX ON team (deletion_deadline) WHERE deletion_deadline IS NOT NULL`,
  `CREATE TABLE deletion_answer (
    attempt_id uuid,
    holder text,
    holds text,
    PRIMARY KEY (attempt_id, holder)
  )`,
  `CREATE TABLE team_capacity (
    team_id uuid PRIMARY KEY,
    gpu_ids bigint[] NOT NULL,
    has_pool_subscription boolean NOT NULL,
    revision bigint NOT NULL
  )`,
  `CREATE TABLE workspace (
    id uuid PRIMARY KEY,
    team_id uuid NOT NULL REFERENCES team,
    name text NOT NULL,
    is_default boolean NOT NULL DEFAULT false,
    created_at timestamptz(3) NOT NULL DEFAULT now(),
    UNIQUE (team_id, name)
  )`,
  `CREATE TABLE membership (
    id uuid PRIMARY KEY,
    team_id uuid NOT NULL REFERENCES team,
    user_id uuid NOT NULL REFERENCES "user",
    role text NOT NULL CHECK (role IN ('team_owner', 'team_admin', 'member', 'billing_viewer', 'viewer')),
    created_at timestamptz(3) NOT NULL DEFAULT now(),
    UNIQUE (team_id, user_id)
  )`,
  `CREATE INDEX ON membership (team_id, created_at, id)`,
  `CREATE INDEX ON membership (user_id)`,
  `CREATE TABLE api_key (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES "user",
    team_id uuid,
    digest bytea NOT NULL UNIQUE,
    mask text NOT NULL,
    expiry_date timestamptz(3),
    ip_whitelist text NOT NULL DEFAULT '',
    issued_by_owner boolean NOT NULL DEFAULT false,
    revoked_at timestamptz(3),
    created_at timestamptz(6) NOT NULL DEFAULT clock_timestamp(),
    FOREIGN KEY (team_id, user_id) REFERENCES membership (team_id, user_id) ON DELETE CASCADE
  )`,
  `CREATE INDEX ON api_key (team_id, user_id, created_at)`,
  `CREATE INDEX ON api_key (user_id) WHERE team_id IS NULL`,
];

export class Teams1790000000000 implements MigrationInterface {
  readonly name = 'Teams1790000000000';

  async up(runner: QueryRunner): Promise<void> {
    await createIdempotencyTable(runner, 'teams');
    await createEventTables(runner, 'teams');
    for (const statement of tables) await runner.query(statement);
    await runner.query(
      `INSERT INTO image_policy (id, name, description, is_default) VALUES ($1, 'default', 'Allows every image.', true)`,
      [newId()],
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'DROP TABLE api_key, membership, workspace, team_capacity, deletion_answer, team, image_object, image_policy, "user"',
    );
    await dropEventTables(runner, 'teams');
    await dropIdempotencyTable(runner, 'teams');
  }
}
