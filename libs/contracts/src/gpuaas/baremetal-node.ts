import { ApiProperty, IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Flag, Instant, ListOf, Nested, OneOf, Text, WholeNumber } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';
import { Nothing, PageFromOne, PageOf } from '../page.js';
import { BaremetalAttempt } from './baremetal-attempt.js';
import { BaremetalDifference, BaremetalFindings, BaremetalHostSpecs, BaremetalSpecs } from './baremetal-specs.js';

/** How Atoll logs in: by password, or by private key. Write-only. */
export class BaremetalCredential {
  @Text({
    max: 1_024,
    optional: true,
    description: 'Password; either this or `private_key`. Not allowed if `tenant_sudo` is true.',
  })
  password?: string;

  @Text({
    max: 16_384,
    optional: true,
    multiline: true,
    format: 'ssh-private-key',
    description:
      'Private key in OpenSSH or PEM format; with `passphrase` if it is encrypted. In OpenSSH format with at most 100 rounds (`ssh-keygen -a`).',
  })
  private_key?: string;

  @Text({ max: 1_024, optional: true, description: 'Passphrase of an encrypted `private_key`.' })
  passphrase?: string;
}

export class BaremetalReinstall {
  @Text({
    max: 2_000,
    pattern: /^https?:\/\/[^\s@]+$/,
    patternHint: 'an http or https URL without a user part',
    example: 'https://maas.example/hooks/reinstall',
    description: 'Address of the hook, called with a signed body to reinstall the host.',
  })
  url!: string;
}

/** As `BaremetalReinstall`, in responses. */
export class BaremetalHook extends BaremetalReinstall {}

const hostPattern =
  /^(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)$/;

const baremetalDrivers = ['ssh', 'simulated'] as const;
export type BaremetalDriver = (typeof baremetalDrivers)[number];
const homeRules = ['archive', 'remove'] as const;
export type HomeRule = (typeof homeRules)[number];

const aHostKey = {
  max: 50,
  pattern: /^SHA256:[A-Za-z0-9+/]{43}$/,
  patternHint: 'a fingerprint as ssh-keygen -l shows it, such as SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU',
  example: 'SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU',
};

export class RegisterBaremetalNode {
  @Text({ max: 100, example: 'metal-01', description: 'Name, unique among the nodes.' })
  name!: string;

  @NumberedId({ example: '1' })
  region_id!: string;

  @Text({
    max: 253,
    pattern: hostPattern,
    patternHint: 'a host name or an IP address, without a scheme, a user or a port',
    example: 'metal-01.example',
    description: 'Host name or IP address.',
  })
  host!: string;

  @WholeNumber({ min: 1, max: 65_535, optional: true, example: 22, description: 'SSH port, 22 unless given.' })
  port?: number;

  @Text({
    max: 32,
    optional: true,
    pattern: /^[A-Za-z_][A-Za-z0-9_.-]*$/,
    patternHint: 'a user name',
    example: 'atoll',
    description: 'User that Atoll logs in as: root, the default, or one with password-less sudo.',
  })
  ssh_user?: string;

  @Nested(() => BaremetalCredential, { description: 'Credential of `ssh_user`; never returned.' })
  credential!: BaremetalCredential;

  @Text({
    ...aHostKey,
    optional: true,
    description: 'Host key that is expected; the one of the first check unless given.',
  })
  host_key?: string;

  @OneOf('BaremetalDriver', baremetalDrivers, {
    optional: true,
    description: 'Driver; ssh if left out. simulated has no host: words in the name of the node choose its failures.',
  })
  driver?: BaremetalDriver;

  @Flag({
    optional: true,
    description:
      'Whether tenants get sudo, default false. Such a host goes to the next tenant only after a reinstall. Requires a credential with `private_key`.',
  })
  tenant_sudo?: boolean;

  @OneOf('HomeRule', homeRules, {
    optional: true,
    description: 'Handling of home folders at release, archive unless given.',
  })
  home?: HomeRule;

  @Nested(() => BaremetalReinstall, { optional: true, description: 'Hook that installs the host anew.' })
  reinstall?: BaremetalReinstall;

  @Nested(() => BaremetalSpecs, { description: 'Specs of the host.' })
  specs!: BaremetalSpecs;
}

export class BaremetalNodePath {
  @NumberedId({ example: '1' })
  node_id!: string;
}

export class UpdateBaremetalNodeBody {
  @Nested(() => BaremetalCredential, { optional: true, description: 'Credential of `ssh_user`.' })
  credential?: BaremetalCredential;

  @Text({
    ...aHostKey,
    optional: true,
    nullable: true,
    description:
      'Host key that is expected; null: the one of the next check. After a tenant with sudo, setting another host_key, or null, confirms that the host was reinstalled.',
  })
  host_key?: string | null;

  @Flag({ optional: true, description: 'Whether the node accepts no new tenants.' })
  maintenance?: boolean;

  @Flag({
    optional: true,
    description: 'Whether the node permanently accepts no new tenants, so that no request waits for it.',
  })
  retired?: boolean;

  @Nested(() => BaremetalReinstall, {
    optional: true,
    nullable: true,
    description: 'Hook that installs the host anew; null for none.',
  })
  reinstall?: BaremetalReinstall | null;

  @OneOf('HomeRule', homeRules, { optional: true, description: 'Handling of home folders at release.' })
  home?: HomeRule;
}

export class UpdateBaremetalNode extends IntersectionType(BaremetalNodePath, UpdateBaremetalNodeBody) {}

export class ListBaremetalNodes extends PageFromOne {
  @NumberedId({ optional: true, example: '1' })
  region_id?: string;
}

const baremetalNodeStatuses = [
  'Checking',
  'Available',
  'In service',
  'Releasing',
  'Check failed',
  'Clean failed',
] as const;
export type BaremetalNodeStatus = (typeof baremetalNodeStatuses)[number];

export class BaremetalNode {
  @NumberedId({ example: '1' })
  node_id!: string;

  @Text({ max: 100, example: 'metal-01' })
  name!: string;

  @NumberedId({ example: '1' })
  region_id!: string;

  @Text({ max: 253, example: 'metal-01.example', description: 'Host name or IP address.' })
  host!: string;

  @ApiProperty({ type: 'integer', example: 22, description: 'SSH port.' })
  port!: number;

  @Text({ max: 32, example: 'root', description: 'User that Atoll logs in as.' })
  ssh_user!: string;

  @Text({ ...aHostKey, nullable: true, description: 'Host key that is pinned; null until the first check.' })
  host_key!: string | null;

  @OneOf('BaremetalDriver', baremetalDrivers, { description: 'Driver.' })
  driver!: BaremetalDriver;

  @Flag({ description: 'Whether tenants get sudo.' })
  tenant_sudo!: boolean;

  @OneOf('HomeRule', homeRules, { description: 'Handling of home folders at release.' })
  home!: HomeRule;

  @Nested(() => BaremetalHook, { nullable: true, description: 'Hook that installs the host anew; null for none.' })
  reinstall!: BaremetalHook | null;

  @Nested(() => BaremetalHostSpecs, { description: 'Specs of the host, as declared.' })
  specs!: BaremetalHostSpecs;

  @Nested(() => BaremetalFindings, { nullable: true, description: 'Findings of the last check; null before it.' })
  found!: BaremetalFindings | null;

  @ListOf(() => BaremetalDifference, {
    max: 4,
    description: 'Differences between `specs` and `found`. The node is offered once they are accepted.',
  })
  differences!: BaremetalDifference[];

  @OneOf('BaremetalNodeStatus', baremetalNodeStatuses, { example: 'Available', description: 'Status.' })
  status!: BaremetalNodeStatus;

  @Text({ max: 500, nullable: true, description: 'Reason of the status, or of the maintenance.' })
  reason!: string | null;

  @Flag({ description: 'Whether the node accepts no new tenants.' })
  maintenance!: boolean;

  @Flag({ description: 'Whether the node permanently accepts no new tenants.' })
  retired!: boolean;

  @Instant({ nullable: true, description: 'Instant since which the host cannot be reached; null while it can.' })
  unreachable_since!: string | null;

  @Uuid({ nullable: true, description: 'Id of the instance on it, or of the last one while the host is not clean.' })
  instance_id!: string | null;

  @ListOf(() => BaremetalAttempt, { max: 20, description: 'Last attempts that belong to no instance.' })
  attempts!: BaremetalAttempt[];

  @Instant()
  created_at!: string;
}

export class BaremetalNodePage extends PageOf(() => BaremetalNode) {}

export class ReinstallCallback {
  @Text({ max: 200, description: 'Single-use token that was sent with the call of the hook.' })
  token!: string;

  @OneOf('ReinstallOutcome', ['done', 'failed'], { description: 'Outcome of the reinstall.' })
  status!: 'done' | 'failed';

  @Text({ max: 300, optional: true, description: 'Reason of a failure.' })
  reason?: string;

  @Text({
    ...aHostKey,
    optional: true,
    description:
      'Host key of the host as it is installed now; unless given, the next check pins the one that the host shows.',
  })
  host_key?: string;
}

export const baremetalNodes = contract('gpuaas.baremetal_nodes', {
  register: operation(RegisterBaremetalNode, BaremetalNode),
  list: operation(ListBaremetalNodes, BaremetalNodePage),
  get: operation(BaremetalNodePath, BaremetalNode),
  update: operation(UpdateBaremetalNode, BaremetalNode),
  check: operation(BaremetalNodePath, BaremetalNode),
  accept: operation(BaremetalNodePath, BaremetalNode),
  delete: operation(BaremetalNodePath, Nothing),
  reinstalled: operation(ReinstallCallback, Nothing),
});
