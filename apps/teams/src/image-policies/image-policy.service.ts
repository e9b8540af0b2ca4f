import {
  notFound,
  pageWindow,
  requirePlatformAdmin,
  type CallContext,
  type Nothing,
  type PageFromOne,
} from '@atoll/contracts';
import {
  type AssignPolicy,
  type CreateImagePolicy,
  type ImagePolicy,
  type ImagePolicyPage,
  type ImagePolicyPath,
  type NewImageObject,
  type UpdateImagePolicy,
} from '@atoll/contracts/teams';
import { newId, readPage, Statements, Transactions, Writers } from '@atoll/database';
import { AppError, requireSomeField } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import { IsNull, type EntityManager } from 'typeorm';
import { fieldError, refuseFields } from '../invalid-field.js';
import { TeamChanges } from '../changes/team-changes.js';
import { TeamEntity } from '../model/team.entity.js';
import { policyJson, policyQuery } from './image-policy-query.js';
import { ImageObjectEntity, ImagePolicyEntity } from '../model/image-policy.entity.js';
import { parseImageReference } from './image-reference.js';

/** The operator's lists of images, of which each team has one. */
@Injectable()
export class ImagePoliciesService {
  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly writers: Writers,
    private readonly changes: TeamChanges,
  ) {}

  async list(asked: PageFromOne, { caller }: CallContext): Promise<ImagePolicyPage> {
    requirePlatformAdmin(caller);
    const { page, limit, offset } = pageWindow(asked, 1);
    const { total, rows } = await readPage<{ policy: ImagePolicy }>(this.statements, {
      from: 'image_policy',
      order: 'created_at, id',
      window: 'LIMIT $1 OFFSET $2',
      columns: `${policyJson('row')} AS policy`,
      values: [limit, offset],
    });
    return { data: rows.map(({ policy }) => policy), pagination: { page, limit, total } };
  }

  async get({ id }: ImagePolicyPath, { caller }: CallContext): Promise<ImagePolicy> {
    requirePlatformAdmin(caller);
    const [row] = await this.statements.query<{ policy: ImagePolicy }>(policyQuery, [id]);
    if (!row) throw notFound('image policy');
    return row.policy;
  }

  async create(
    { name, description = '', objects = [] }: CreateImagePolicy,
    context: CallContext,
  ): Promise<ImagePolicy> {
    requireReferences(objects);
    requirePlatformAdmin(context.caller);
    return this.transactions.once(context, async (manager) => {
      const id = newId();
      await manager.insert(ImagePolicyEntity, { id, name, description });
      await insertObjects(manager, id, objects);
      return read(manager, id);
    });
  }

  async update({ id, ...body }: UpdateImagePolicy, { caller }: CallContext): Promise<ImagePolicy> {
    requireSomeField(body, 'name', 'description', 'objects');
    requireReferences(body.objects ?? []);
    requirePlatformAdmin(caller);
    return this.transactions.run(async (manager) => {
      const policy = await lock(manager, id);
      if (policy.isDefault && body.objects?.length) {
        throw new AppError(
          'conflict',
          'The default policy allows every image and has no objects. Create another policy and assign it.',
        );
      }
      const { name = policy.name, description = policy.description, objects } = body;
      await manager.update(ImagePolicyEntity, { id }, { name, description });
      if (objects) {
        await manager.delete(ImageObjectEntity, { policyId: id });
        await insertObjects(manager, id, objects);
      }
      return read(manager, id);
    });
  }

  async delete({ id }: ImagePolicyPath, { caller }: CallContext): Promise<Nothing> {
    requirePlatformAdmin(caller);
    await this.transactions.run(async (manager) => {
      const policy = await lock(manager, id);
      if (policy.isDefault) throw new AppError('conflict', 'The default policy cannot be deleted.');
      if (await manager.existsBy(TeamEntity, { policyId: id, deletedAt: IsNull() })) {
        throw new AppError('conflict', 'The policy is assigned to a team. Assign it another policy first.');
      }
      // What is left refers to it from teams that are deleted, whose rows are kept.
      const { id: defaultId } = await manager.findOneByOrFail(ImagePolicyEntity, { isDefault: true });
      await manager.update(TeamEntity, { policyId: id }, { policyId: defaultId });
      await manager.delete(ImagePolicyEntity, { id });
    });
    return {};
  }

  /** In place of the policy that the team had. */
  async assign({ id, team_id }: AssignPolicy, context: CallContext): Promise<ImagePolicy> {
    requirePlatformAdmin(context.caller);
    return this.writers.once(team_id, context, async (manager) => {
      await lock(manager, id);
      await this.changes.lockForGrowth(manager, team_id, context.caller);
      await manager.update(TeamEntity, { id: team_id }, { policyId: id });
      return read(manager, id);
    });
  }
}

/** So that a policy is not deleted while it is being assigned, and of two changes one is later. */
async function lock(manager: EntityManager, id: string): Promise<ImagePolicyEntity> {
  const policy = await manager.findOne(ImagePolicyEntity, { where: { id }, lock: { mode: 'for_no_key_update' } });
  if (!policy) throw notFound('image policy');
  return policy;
}

async function read(manager: EntityManager, id: string): Promise<ImagePolicy> {
  const [row] = await manager.query<{ policy: ImagePolicy }[]>(policyQuery, [id]);
  if (!row) throw notFound('image policy');
  return row.policy;
}

async function insertObjects(
  manager: EntityManager,
  policyId: string,
  objects: readonly NewImageObject[],
): Promise<void> {
  const rows = objects.map(({ name, reference }) => ({ id: newId(), policyId, name, reference }));
  if (rows.length > 0) await manager.insert(ImageObjectEntity, rows);
}

function requireReferences(objects: readonly NewImageObject[]): void {
  const wrong = objects.flatMap(({ reference }, index) => (parseImageReference(reference) === null ? [index] : []));
  const message = 'must be an image reference such as docker.io/library/nginx:1.29';
  refuseFields(wrong.map((index) => fieldError(`objects.${index}.reference`, 'isImageReference', message)));
}
