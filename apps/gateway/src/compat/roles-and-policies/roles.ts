import { applyDecorators } from '@nestjs/common';
import { Transform } from 'class-transformer';
import { OneOf, type TeamRole } from '@atoll/contracts';
import { ShownList, ShownText, ShownUuid } from '../http/old-answers.js';

export class OldRole {
  @ShownUuid('Id of the role, the same on every platform.')
  id!: string;

  @ShownText('Name of the role.', { example: 'team_member' })
  name!: string;

  @ShownText('Name of the role for people.', { example: 'Member' })
  label!: string;
}

export class OldRoles {
  @ShownList(() => OldRole, 'Roles in a team.')
  roles!: OldRole[];
}

/** The old roles, each with the role that it stands for. */
const table = [
  ['7b0f5f2e-5d0a-4c55-9a4e-0c1d6f0a7e01', 'team_admin', 'Administrator', 'team_admin'],
  ['7b0f5f2e-5d0a-4c55-9a4e-0c1d6f0a7e02', 'team_member', 'Member', 'member'],
  ['7b0f5f2e-5d0a-4c55-9a4e-0c1d6f0a7e03', 'read_only_member', 'Read only', 'viewer'],
  ['7b0f5f2e-5d0a-4c55-9a4e-0c1d6f0a7e04', 'finance_manager', 'Finance', 'billing_viewer'],
] as const satisfies readonly (readonly [string, string, string, TeamRole])[];

export const oldRoles: OldRole[] = table.map(([id, name, label]) => ({ id, name, label }));

/** A team_owner is shown as a team_admin. */
export function oldRoleOf(role: TeamRole): OldRole {
  const [id, name, label] = table.find((row) => row[3] === role) ?? table[0];
  return { id, name, label };
}

/** A role by its id, its old name or its name on the main API; what is none of them stays as it is, and is refused. */
function roleNamed(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const row = table.find(([id, name, , role]) => id === value.toLowerCase() || name === value || role === value);
  return row?.[3] ?? value;
}

const accepted = ['team_admin', 'member', 'viewer', 'billing_viewer'] as const satisfies readonly TeamRole[];

/** A role in a request: its id is meant, its name is taken too. It is the role of the main API from here on. */
export function RoleGiven({ optional = false, nullable = false } = {}): PropertyDecorator {
  return applyDecorators(
    Transform(({ value }: { value: unknown }) => roleNamed(value)),
    OneOf('GivenRole', accepted, {
      optional,
      nullable,
      spelt: table.flatMap(([id, name]) => [id, name]),
      description: 'Id or name of a role that GET /roles lists; a name of the main API is taken too.',
    }),
  );
}
