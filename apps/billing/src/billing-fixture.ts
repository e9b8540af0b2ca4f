import { teamChanged, type TeamChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { InProcessBus } from '@atoll/rpc';
import { aTeam, OwnerOfTeams, ServiceUnderTest, startServiceUnderTest, type StartedService } from '@atoll/testing';
import type { BillingSettings } from './billing-settings.js';
import { service } from './service.js';

export { errorOf, memberOf, operator } from '@atoll/testing';

/** A team as billing was told of it. */
export interface ToldTeam {
  team_id: string;
  workspaces: { id: string; name: string }[];
}

/** The billing service under test. */
export class BillingFixture extends ServiceUnderTest {
  private constructor(
    started: StartedService,
    readonly owner: OwnerOfTeams,
  ) {
    super(started);
  }

  /** `teams`: what their owner has. */
  static async start(
    options: Partial<BillingSettings> & { teams?: TeamChanged[]; isOwnerAway?: boolean } = {},
  ): Promise<BillingFixture> {
    const { teams = [], isOwnerAway = false, ...settings } = options;
    const bus = new InProcessBus();
    const owner = new OwnerOfTeams(bus);
    owner.teams.push(...teams);
    if (isOwnerAway) owner.leave();
    const started = await startServiceUnderTest(service, { settings, bus, listensTo: ['billing.price_changed'] });
    return new BillingFixture(started, owner);
  }

  /** Tells billing of a new team with these workspaces. */
  async team(...workspaceNames: string[]): Promise<ToldTeam> {
    const workspaces = ['default', ...workspaceNames].map((name) => ({ id: newId(), name }));
    const team = aTeam(workspaces);
    await this.tell(teamChanged, team);
    return { team_id: team.team_id, workspaces };
  }
}
