import { defineService } from '@atoll/service';
import { teamsSchema } from './database/schema.js';
import { TeamsModule } from './teams.module.js';
import { TeamsSettings } from './teams-settings.js';
import { Administrators } from './users/administrators.service.js';

export { newAdminKey } from './users/admin-key.js';

export const service = defineService({
  name: 'teams',
  settings: TeamsSettings,
  database: teamsSchema,
  module: TeamsModule,
  started: async (app, { adminEmail, adminKey }) => {
    const { apiKey, link } = await app
      .get(Administrators)
      .ensure({ email: adminEmail, ...(adminKey !== undefined && { apiKey: adminKey }) });
    return { ...(apiKey !== undefined && { adminKey: apiKey }), ...(link !== undefined && { adminLink: link }) };
  },
});
