import { notFound, pageWindow, requirePlatformAdmin, type CallContext, type Nothing } from '@atoll/contracts';
import {
  type BaremetalCredential,
  type BaremetalNode,
  type BaremetalNodePage,
  type BaremetalNodePath,
  type BaremetalSpecs,
  type ListBaremetalNodes,
  type RegisterBaremetalNode,
  type UpdateBaremetalNode,
} from '@atoll/contracts/gpuaas';
import { readPage, Statements, Transactions, unique } from '@atoll/database';
import { AppError, invalidField, requireSomeField } from '@atoll/errors';
import { boards } from '@atoll/gpu';
import { BadPrivateKey, checkPrivateKey, isDiallable, type SshCredential } from '@atoll/ssh';
import { causeOf } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { isIP } from 'node:net';
import { GpuaasSettings } from '../../gpuaas-settings.js';
import { requireRegion } from '../../model/known-region.js';
import { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';
import type { BaremetalNodeState } from '../../model/baremetal-node.machine.js';
import { BaremetalNodeSteps } from './baremetal-node-steps.js';
import { BaremetalSecrets } from '../hosts/baremetal-secrets.js';
import { BaremetalNodeReader } from './baremetal-node-reader.js';
import { ReinstallHook } from './reinstall-hook.js';
import { isToBeCleaned, isToBeReinstalled } from './baremetal-node-rows.js';

/** The inventory of bare-metal hosts. */
@Injectable()
export class BaremetalNodesService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly nodes: BaremetalNodeSteps,
    private readonly secrets: BaremetalSecrets,
    private readonly reader: BaremetalNodeReader,
    private readonly hook: ReinstallHook,
    private readonly settings: GpuaasSettings,
  ) {}

  async register(input: RegisterBaremetalNode, context: CallContext): Promise<BaremetalNode> {
    requirePlatformAdmin(context.caller);
    const { region_id: regionId, specs, name, host, port = 22, ssh_user: sshUser = 'root', driver = 'ssh' } = input;
    this.requireDiallable(host);
    const credential = readCredential(input.credential);
    if (input.tenant_sudo) requireKey(credential);
    this.secrets.required();
    this.requireHook(input.reinstall);
    const values = {
      name,
      regionId,
      host,
      port,
      sshUser,
      driver,
      credential: '',
      hostKey: input.host_key ?? null,
      tenantSudo: input.tenant_sudo ?? false,
      home: input.home ?? 'archive',
      reinstallUrl: input.reinstall?.url ?? null,
      gpuModel: readGpuModel(specs),
      gpuCount: specs.gpu_count,
      cpuCores: specs.cpu_cores,
      memoryGb: specs.memory_gb,
    };
    return this.transactions.once(context, async (manager) => {
      await requireRegion(manager, regionId);
      const { nodeId } = await unique(
        this.nodes.insert(manager, values, causeOf(context)),
        'A node with this name, or with this host and port, is already registered.',
      );
      // Its lane is named after its id, which it has only now.
      await this.nodes.assignLanes(manager, [nodeId]);
      await manager.query('UPDATE baremetal_node SET credential = $2 WHERE node_id = $1', [
        nodeId,
        this.secrets.sealCredential(credential, nodeId),
      ]);
      return this.view(manager, nodeId);
    });
  }

  async list(
    { region_id: regionId, ...asked }: ListBaremetalNodes,
    { caller }: CallContext,
  ): Promise<BaremetalNodePage> {
    requirePlatformAdmin(caller);
    const { manager } = this.dataSource;
    await requireRegion(manager, regionId);
    const { page, limit, offset } = pageWindow(asked, 1);
    const { total, rows } = await readPage(this.statements, {
      from: `baremetal_node WHERE state <> 'removed' AND ($1::bigint IS NULL OR region_id = $1)`,
      order: 'created_at, node_id',
      window: 'LIMIT $2 OFFSET $3',
      values: [regionId ?? null, limit, offset],
    });
    const nodes = rows.map((raw) => this.nodes.rowOf(raw));
    return { data: await this.reader.views(manager, nodes), pagination: { page, limit, total } };
  }

  async get({ node_id }: BaremetalNodePath, { caller }: CallContext): Promise<BaremetalNode> {
    requirePlatformAdmin(caller);
    return this.view(this.dataSource.manager, node_id);
  }

  async update({ node_id, ...input }: UpdateBaremetalNode, context: CallContext): Promise<BaremetalNode> {
    requireSomeField(input, 'credential', 'host_key', 'maintenance', 'retired', 'reinstall', 'home');
    requirePlatformAdmin(context.caller);
    const credential = input.credential && readCredential(input.credential);
    this.requireHook(input.reinstall);
    return this.transactions.run(async (manager) => {
      const node = await this.lock(manager, node_id);
      if (credential && node.tenantSudo) requireKey(credential);
      await manager.query(
        `UPDATE baremetal_node SET credential = coalesce($2, credential), host_key = CASE WHEN $3 THEN $4 ELSE host_key END,
           reinstall_url = CASE WHEN $5 THEN $6 ELSE reinstall_url END, home = coalesce($7, home), is_retired = coalesce($8, is_retired),
           failures = CASE WHEN $9 = false THEN 0 ELSE failures END,
           is_maintenance = coalesce($9, is_maintenance),
           maintenance_code = CASE WHEN $9 THEN 'operator' WHEN NOT $9 THEN NULL ELSE maintenance_code END,
           maintenance_reason = CASE WHEN $9 IS NULL THEN maintenance_reason END
         WHERE node_id = $1`,
        [
          node_id,
          credential ? this.secrets.sealCredential(credential, node_id) : null,
          input.host_key !== undefined,
          input.host_key ?? null,
          input.reinstall !== undefined,
          input.reinstall?.url ?? null,
          input.home ?? null,
          input.retired ?? null,
          input.maintenance ?? null,
        ],
      );
      // The key of a host that was installed anew: nothing of its last tenant is left.
      if (confirmsReinstall(node, input)) await this.nodes.forgetInstance(manager, node);
      await this.nodes.offer(manager, node.nodeId);
      if (credential) await this.nodes.touch(manager, [node_id], ['available', 'in_service']);
      if (input.retired) await this.nodes.reconsider(manager, node_id);
      return this.view(manager, node_id);
    });
  }

  /**
   * Looks at the host again, and cleans it first where it was not: at once. Repeated while it checks, it changes
   * nothing.
   */
  async check({ node_id }: BaremetalNodePath, context: CallContext): Promise<BaremetalNode> {
    requirePlatformAdmin(context.caller);
    return this.transactions.once(context, async (manager) => {
      const node = await this.lock(manager, node_id);
      // Its hook says when it is installed.
      if (node.state === 'reinstalling') throw inUse(node, 'it is checked when its hook has answered');
      if (isToBeReinstalled(node)) {
        throw new AppError(
          'conflict',
          'The last tenant of the node had root: reinstall the host and set its new host_key, or null, then check it.',
        );
      }
      if (isToBeCleaned(node)) await this.nodes.touch(manager, [node_id]);
      else if (node.state !== 'checking') {
        const moved = await this.nodes.move(manager, node, 'CHECK', causeOf(context, 'check'), { failures: 0 });
        if (!moved) throw inUse(node, 'it is checked when it is free');
      }
      return this.view(manager, node_id);
    });
  }

  /** Takes the host as it was found. */
  async accept({ node_id }: BaremetalNodePath, context: CallContext): Promise<BaremetalNode> {
    requirePlatformAdmin(context.caller);
    return this.transactions.once(context, async (manager) => {
      const node = await this.lock(manager, node_id);
      if (node.state !== 'check_failed' || node.lastError?.code !== 'specs_differ') {
        throw new AppError(
          'conflict',
          'There is nothing to accept: the last check of the node found no different specs.',
        );
      }
      await this.nodes.move(manager, node, 'ACCEPT', causeOf(context, 'accept'), { accepted: node.found });
      return this.view(manager, node_id);
    });
  }

  async remove({ node_id }: BaremetalNodePath, context: CallContext): Promise<Nothing> {
    requirePlatformAdmin(context.caller);
    return this.transactions.run(async (manager) => {
      const node = await this.lock(manager, node_id);
      // What is left of a tenant on the host stays there.
      const moved = await this.nodes.move(manager, node, 'REMOVE', causeOf(context, 'delete'));
      if (!moved)
        throw inUse(node, node.state === 'reinstalling' ? 'wait until its hook has answered' : 'release it first');
      await this.nodes.reconsider(manager, node_id);
      await manager.query(`UPDATE baremetal_node SET credential = '' WHERE node_id = $1`, [node_id]);
      if (node.instanceId !== null) await this.nodes.forgetInstance(manager, node);
      return {};
    });
  }

  private requireDiallable(host: string): void {
    const address = addressIn(host);
    if (address === undefined || isDiallable(address, { allowLoopback: this.settings.allowLoopbackHosts })) return;
    throw invalidField(
      'host',
      'isDiallable',
      'must not be a loopback, link-local, multicast, metadata or reserved address.',
    );
  }

  private requireHook(reinstall: object | null | undefined): void {
    if (!reinstall || this.hook.isUsable) return;
    throw invalidField(
      'reinstall',
      'isUsable',
      'needs ATOLL_REINSTALL_SECRET in the environment of the gpuaas service.',
    );
  }

  private async lock(manager: EntityManager, nodeId: string): Promise<BaremetalNodeEntity> {
    const node = await this.nodes.lock(manager, nodeId);
    if (!node || (node.state as BaremetalNodeState) === 'removed') throw notFound('node');
    return node;
  }

  private async view(manager: EntityManager, nodeId: string): Promise<BaremetalNode> {
    const node = await this.nodes.find(nodeId, manager);
    const [view] = node && node.state !== 'removed' ? await this.reader.views(manager, [node]) : [];
    if (!view) throw notFound('node');
    return view;
  }
}

/** The key that is pinned already confirms nothing: a client that sends all that it knows of a node sends it too. */
function confirmsReinstall(node: BaremetalNodeEntity, { host_key: hostKey }: { host_key?: string | null }): boolean {
  return isToBeReinstalled(node) && hostKey !== undefined && (hostKey === null || hostKey !== node.hostKey);
}

/** Throws `invalid_input` for what is no way to log in. */
function readCredential({ password, private_key: privateKey, passphrase }: BaremetalCredential): SshCredential {
  if ((password === undefined) === (privateKey === undefined)) {
    throw invalidField('credential', 'isOneOf', 'must hold either password or private_key.');
  }
  if (privateKey === undefined) {
    if (passphrase !== undefined)
      throw invalidField('credential.passphrase', 'isOneOf', 'is allowed only with private_key.');
    return { password: password ?? '' };
  }
  try {
    checkPrivateKey(privateKey, passphrase);
  } catch (error) {
    if (error instanceof BadPrivateKey)
      throw invalidField('credential.private_key', 'isPrivateKey', `is not usable: ${error.message}`);
    throw error;
  }
  return { privateKey, ...(passphrase !== undefined && { passphrase }) };
}

/** For a host whose tenants get root. Throws `invalid_input` for a password, which each log-in shows to the host. */
function requireKey(credential: SshCredential): void {
  if (!('password' in credential)) return;
  throw invalidField(
    'credential.password',
    'isAllowed',
    'is not allowed where tenant_sudo is true: use private_key, which is never shown to the host.',
  );
}

function inUse({ state }: BaremetalNodeEntity, hint: string): AppError {
  const what = state === 'in_service' ? 'in service' : state === 'releasing' ? 'being released' : 'being reinstalled';
  return new AppError('conflict', `The node is ${what}: ${hint}.`);
}

/** Spelt as the board that has it is; null where the host has no GPUs. */
function readGpuModel({ gpu_model, gpu_count }: BaremetalSpecs): string | null {
  const model = gpu_model ?? null;
  if (gpu_count === 0 && model !== null) {
    throw invalidField('specs.gpu_model', 'isEmpty', 'must be left out where gpu_count is 0.');
  }
  if (gpu_count > 0 && model === null) {
    throw invalidField('specs.gpu_model', 'isNotEmpty', 'must name the GPUs unless gpu_count is 0.');
  }
  return boards.find((board) => board.name.toLowerCase() === model?.toLowerCase())?.name ?? model;
}

/**
 * The address that a host is, in whatever spelling resolvers take for one, such as 127.1 or 0x7f000001; undefined for a
 * name.
 */
function addressIn(host: string): string | undefined {
  if (isIP(host) !== 0) return host;
  if (host.toLowerCase() === 'localhost') return '127.0.0.1';
  if (!/^(?:.*\.)?(?:\d+|0x[\da-f]*)$/i.test(host)) return undefined;
  if (!URL.canParse(`http://${host}`))
    throw invalidField('host', 'isHost', 'must be a host name or an IP address; a host name cannot end in a number.');
  return new URL(`http://${host}`).hostname;
}
