import { eventEntities } from '@atoll/events';
import { teamDirectoryEntities } from '@atoll/team-directory';
import { CurrencyEntity, PriceAuditEntity, PriceEntity, SkuEntity } from '../prices/price.entity.js';
import {
  OpenSegmentEntity,
  RegionEntity,
  SegmentEntity,
  SeriesEntity,
  TimelineEntity,
  UsageFactEntity,
} from '../usage/usage.entity.js';
import { Billing1790000000000 } from './migrations/1790000000000-billing.js';
import { TeamStanding1795000000000 } from './migrations/1795000000000-team-standing.js';
import { FactDetails1799000000000 } from './migrations/1799000000000-fact-details.js';
import { WorkspaceRevisions1801000000000 } from './migrations/1801000000000-workspace-revisions.js';
import { CallNonces1805000000000 } from './migrations/1805000000000-call-nonces.js';
import { FormerUnits1806000000000 } from './migrations/1806000000000-former-units.js';
import { Currency1884000000000 } from './migrations/1884000000000-currency.js';

/** The PostgreSQL schema that the billing service owns. */
export const billingSchema = {
  entities: [
    ...eventEntities,
    ...teamDirectoryEntities,
    CurrencyEntity,
    OpenSegmentEntity,
    PriceAuditEntity,
    PriceEntity,
    RegionEntity,
    SegmentEntity,
    SeriesEntity,
    SkuEntity,
    TimelineEntity,
    UsageFactEntity,
  ],
  migrations: [
    Billing1790000000000,
    TeamStanding1795000000000,
    FactDetails1799000000000,
    WorkspaceRevisions1801000000000,
    CallNonces1805000000000,
    FormerUnits1806000000000,
    Currency1884000000000,
  ],
};
