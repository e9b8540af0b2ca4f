import { readFileSync } from 'node:fs';
import { teamRoles, type TeamRole } from '@atoll/contracts';

/** A team that a value of the claim opens. */
interface SsoGrant {
  value: string;
  team_id: string;
  role: TeamRole;
}

export interface SsoProviderSettings {
  /** Part of its paths. */
  id: string;
  /** As people see it. */
  name: string;
  issuer: string;
  client_id: string;
  client_secret: string;
  scope: string;
  /** The operator's word that an address which this provider calls verified finds the account that has it. */
  trust_email: boolean;
  mapping: { claim: string; grants: SsoGrant[] };
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Reads `ATOLL_SSO_FILE`. Throws an Error that names the faulty place, never a secret. */
export function readSsoFile(path: string): SsoProviderSettings[] {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Error(
      `ATOLL_SSO_FILE: ${path} cannot be read as JSON: ${error instanceof Error ? error.message.replace(/ in JSON.*/s, '') : ''}`,
    );
  }
  const { providers } = content as { providers?: unknown };
  if (!Array.isArray(providers)) throw fault('providers must be a list');
  const read = providers.map((provider, index) =>
    readProvider(provider as Record<string, unknown>, `providers[${index}]`),
  );
  if (new Set(read.map(({ id }) => id)).size < read.length) throw fault('two providers have one id');
  return read;
}

function readProvider(given: Record<string, unknown>, place: string): SsoProviderSettings {
  const text = (field: string, otherwise?: string): string => {
    const value = given[field] ?? otherwise;
    if (typeof value !== 'string' || value === '') throw fault(`${place}.${field} must be a text`);
    return value;
  };
  const id = text('id');
  if (!/^[a-z0-9-]{1,32}$/.test(id)) throw fault(`${place}.id must be lower-case letters, digits and hyphens`);
  const issuer = text('issuer');
  if (!/^https:|^http:\/\/(?:localhost|127\.0\.0\.1)(?=[:/]|$)/.test(issuer))
    throw fault(`${place}.issuer must be an https URL`);
  const { claim = 'groups', grants = [] } = (given['mapping'] ?? {}) as { claim?: unknown; grants?: unknown };
  if (typeof claim !== 'string' || !Array.isArray(grants))
    throw fault(`${place}.mapping must have a claim and a list of grants`);
  return {
    id,
    issuer,
    name: text('name', id),
    client_id: text('client_id'),
    client_secret: text('client_secret'),
    scope: text('scope', 'openid email profile'),
    trust_email: given['trust_email'] === true,
    mapping: {
      claim,
      grants: grants.map((grant, index) => readGrant(grant as Partial<SsoGrant>, `${place}.mapping.grants[${index}]`)),
    },
  };
}

function readGrant({ value, team_id, role }: Partial<SsoGrant>, place: string): SsoGrant {
  const isRole = teamRoles.some((known) => known === role);
  if (typeof value !== 'string' || typeof team_id !== 'string' || !uuid.test(team_id) || !role || !isRole) {
    throw fault(`${place} must have a value, the team_id of a team, and a role of: ${teamRoles.join(', ')}`);
  }
  return { value, team_id, role };
}

function fault(what: string): Error {
  return new Error(`ATOLL_SSO_FILE: ${what}.`);
}
