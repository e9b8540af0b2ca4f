import { eventEntities } from '@atoll/events';
import { TeamEntity, TeamSnapshotEntity, WorkspaceEntity } from '../directory/known-team.entity.js';
import { PriceAuditEntity, PriceEntity, SkuEntity } from '../prices/price.entity.js';
import { OpenSegmentEntity, RegionEntity, SegmentEntity, SeriesEntity, TimelineEntity, UsageFactEntity } from '../usage/usage.entity.js';
import { Billing1790000000000 } from './migrations/1790000000000-billing.js';

/** The PostgreSQL schema that the billing service owns. */
export const billingSchema = {
  schema: 'billing',
  entities: [
    ...eventEntities,
    OpenSegmentEntity,
    PriceAuditEntity,
    PriceEntity,
    RegionEntity,
    SegmentEntity,
    SeriesEntity,
    SkuEntity,
    TeamEntity,
    TeamSnapshotEntity,
    TimelineEntity,
    UsageFactEntity,
    WorkspaceEntity,
  ],
  migrations: [Billing1790000000000],
};
