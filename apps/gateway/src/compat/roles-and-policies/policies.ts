import { Uuid } from '@atoll/contracts';
import {
  ShownFlag,
  ShownInstant,
  ShownInteger,
  ShownList,
  ShownObject,
  ShownText,
  ShownUuid,
} from '../http/old-answers.js';

/** What old programs know as policies, besides those of images: they exist once each, and hold nothing. */
const emptyPolicies = {
  pricing: '5e2c8c54-3d36-4b70-8a53-6b1b51c1da01',
  resource: '5e2c8c54-3d36-4b70-8a53-6b1b51c1da02',
  service: '5e2c8c54-3d36-4b70-8a53-6b1b51c1da03',
  'instance-type': '5e2c8c54-3d36-4b70-8a53-6b1b51c1da04',
} as const;
export type EmptyPolicyType = keyof typeof emptyPolicies;
export const emptyPolicyTypes = Object.keys(emptyPolicies) as EmptyPolicyType[];

const defaultName = 'default';

export function emptyPolicy(type: EmptyPolicyType): NamedOne {
  return { id: emptyPolicies[type], name: defaultName };
}

export class NamedOne {
  @ShownUuid('Id.')
  id!: string;

  @ShownText('Name.', { example: 'default' })
  name!: string;
}

export class DefaultPolicy extends NamedOne {
  @ShownText('Kind of the policy.', { example: 'image' })
  type!: string;
}

export class PricingPolicy {
  @ShownObject(() => NamedOne, 'The policy.')
  policy!: NamedOne;
}

export class OldImageObject {
  @ShownUuid('Id of the image.')
  id!: string;

  @ShownText('Name of the image.', { example: 'nginx' })
  name!: string;

  @ShownText('Reference of the image.', { example: 'docker.io/library/nginx:1.29' })
  description!: string;
}

export class OldImagePolicy extends NamedOne {
  @ShownText('Description in free text.')
  description!: string;

  @ShownFlag('Whether this is the policy of a new team.')
  is_default!: boolean;

  @ShownFlag('Whether the platform made the policy.')
  is_system_defined!: boolean;

  @ShownText('Kind of the policy: image.', { example: 'image' })
  type!: string;

  @ShownList(() => OldImageObject, 'Images of the policy; none where it allows all.')
  objects!: OldImageObject[];

  @ShownList(() => NamedOne, 'Teams with the policy.')
  teams!: NamedOne[];
}

export class RegionDetails {
  @ShownInteger('Id of the region.')
  id!: number;

  @ShownText('Name of the region.')
  region_name!: string;

  @ShownText('Street address; empty, since it is not known.')
  address!: string;

  @ShownText('City of the region.')
  city!: string;

  @ShownText('Country of the region.')
  country!: string;

  @ShownText('Country of the region (ISO 3166-1 alpha-2); empty where it is not known.', { example: 'NO' })
  country_code!: string;
}

export class RegionAccess {
  @ShownInteger('Id of the region.')
  region_id!: number;

  @ShownText('Name of the region.')
  region_name!: string;

  @ShownText('Access to the region: unlimited.')
  access!: string;

  @ShownObject(() => RegionDetails, 'The region.')
  region_details!: RegionDetails;
}

export class ResourcePolicy extends NamedOne {
  @ShownFlag('Whether the platform made the policy.')
  is_system_defined!: boolean;

  @ShownFlag('Whether this is the policy of a new team.')
  is_default!: boolean;

  @ShownList(() => NamedOne, 'Limits in all regions: none.')
  globals!: NamedOne[];

  @ShownList(() => RegionAccess, 'Regions that a team may use: all.')
  regions!: RegionAccess[];

  @ShownList(() => NamedOne, 'Teams with the policy: all.')
  teams!: NamedOne[];

  @ShownInstant('Instant of creation.')
  created_at!: string;

  @ShownInstant('Instant of the last change.')
  updated_at!: string;
}

export class PolicyPath {
  @Uuid({ description: 'Id of the policy.' })
  id!: string;
}

export class AssignedTeam {
  @Uuid()
  team_id!: string;
}

export class AssignedPolicy extends AssignedTeam {
  @Uuid()
  policy_id!: string;
}
