import { onceAvailable } from '@atoll/database';
import { defineService } from '@atoll/service';
import { teamsSchema } from './database/schema.js';
import { secondFactorPurpose } from './model/second-factor.entity.js';
import { signingKeyPurpose } from './model/signing-key.entity.js';
import { TeamsModule } from './teams.module.js';
import { readSsoFile } from './sso/sso-file.js';
import { TeamsSettings } from './teams-settings.js';
import { Administrators } from './users/administrators.service.js';

export { newAdminKey } from './users/admin-key.js';

export const service = defineService({
  name: 'teams',
  settings: TeamsSettings,
  checks: ({ ssoFile }) => [() => ssoFile !== undefined && readSsoFile(ssoFile)],
  database: teamsSchema,
  module: TeamsModule,
  sealed: [
    { table: 'signing_key', column: 'sealed', purposeBy: ['kid'], purposeOf: signingKeyPurpose },
    { table: 'second_factor', column: 'sealed', purposeBy: ['user_id'], purposeOf: secondFactorPurpose },
  ],
  started: async (app, { adminEmail, adminKey }) => {
    const administrators = app.get(Administrators);
    const known = { email: adminEmail, ...(adminKey !== undefined && { apiKey: adminKey }) };
    const { apiKey, acceptsBrought, link } = await onceAvailable(() => administrators.ensure(known));
    return {
      ...(apiKey !== undefined && { adminKey: apiKey }),
      ...(acceptsBrought && { acceptsBroughtKey: true }),
      ...(link !== undefined && { adminLink: link }),
    };
  },
});
