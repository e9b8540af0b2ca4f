import { ApiPropertyOptional, IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Instant, ListOf, Nested, OneOf, Text, WholeNumber } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';
import { imageReference } from '../image-reference.js';
import { IncludeEnded, PageFromOne, PageOf } from '../page.js';
import { Amount, CommandLine, dnsLabel, dnsLabelHint, PortNumbers, Variables } from './pod-fields.js';

export const podNameField = { max: 63, pattern: dnsLabel, patternHint: dnsLabelHint, example: 'notebook-qwert' };
const nameField = {
  max: 57,
  pattern: dnsLabel,
  patternHint: dnsLabelHint,
  example: 'notebook',
  description: 'Shown beside `pod_name`, which is this and a suffix of five letters.',
};
const imageField = {
  ...imageReference,
  example: 'docker.io/library/python:3.13',
  description: 'An image that the team’s policy allows.',
};
/**
 * Absolute, of plain segments, and nowhere in what the system of the image needs: neither `/` nor below /proc, /sys,
 * /dev.
 */
const mountPath = /^(?!\/(?:proc|sys|dev|etc|run|var\/run)(?:\/|$))(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+)+$/;

export class PodPath {
  @Text(podNameField)
  pod_name!: string;
}

export class PodMount {
  @NumberedId({ example: '5' })
  volume_id!: string;

  @Text({
    max: 255,
    pattern: mountPath,
    patternHint:
      'an absolute path such as /data/sets, whose names have letters, digits, ".", "_" and "-" alone and are not "." or "..", without a "/" at its end, and outside of /proc, /sys, /dev, /etc, /run and /var/run',
    example: '/data',
  })
  path!: string;
}

/** As it is answered. */
class MountedVolume extends PodMount {}

const restartPolicies = ['never', 'on_failure', 'always'] as const;
export type RestartPolicy = (typeof restartPolicies)[number];

/** Stops a pod whose GPU slices are not used. */
export class IdleStop {
  @WholeNumber({ min: 1, max: 10_080, example: 60, description: 'Minutes without use after which the pod is stopped.' })
  minutes!: number;

  @WholeNumber({ min: 1, max: 100, example: 5, description: 'Percent of use below which a slice counts as idle.' })
  gpu_below_percent!: number;
}

/** As it is answered. */
export class IdleStopOfPod extends IdleStop {}

export class CreatePod {
  @Uuid({ example: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10' })
  team_id!: string;

  @Uuid({ optional: true, description: 'The workspace of the subscription if left out.' })
  workspace_id?: string;

  @NumberedId({ example: '42', description: 'The subscription whose GPU slices the pod gets.' })
  subscription_id!: string;

  @Text(nameField)
  name!: string;

  @Text(imageField)
  image!: string;

  @ApiPropertyOptional({ default: 1 })
  @WholeNumber({
    min: 1,
    max: 1_000,
    optional: true,
    example: 1,
    description: 'Number of vGPUs of the subscription, all on one node.',
  })
  vgpus?: number;

  @Amount({ min: 0.1, max: 512, optional: true, example: 4, description: 'Cores.' })
  cpu?: number;

  @Amount({ min: 0.1, max: 8_192, optional: true, example: 16, description: 'Memory, 10^9 bytes.' })
  memory_gb?: number;

  @CommandLine({
    max: 256,
    optional: true,
    example: ['python', 'train.py'],
    description: 'Replaces the entry point and command of the image.',
  })
  command?: string[];

  @Variables({
    optional: true,
    example: { EPOCHS: '10' },
    description: 'Environment variables. Write-only: never shown again.',
  })
  env?: Record<string, string>;

  @PortNumbers({
    max: 100,
    optional: true,
    example: [8080],
    description: 'Ports on which it listens. Informational: they are not exposed.',
  })
  ports?: number[];

  @ListOf(() => PodMount, { max: 20, optional: true, description: 'Shared volumes to mount.' })
  volumes?: PodMount[];

  @ApiPropertyOptional({ default: 'always' })
  @OneOf('RestartPolicy', restartPolicies, {
    optional: true,
    example: 'always',
    description: 'Restart policy when the process ends by itself.',
  })
  restart?: RestartPolicy;

  @WholeNumber({
    min: 1,
    max: 525_600,
    optional: true,
    example: 480,
    description: 'Minutes from each start after which it is stopped.',
  })
  max_duration_minutes?: number;

  @Nested(() => IdleStop, { optional: true })
  idle_stop?: IdleStop;
}

const podStatuses = ['pending', 'pulling', 'running', 'stopping', 'stopped', 'failed'] as const;
export type PodStatus = (typeof podStatuses)[number];

export class Pod {
  @Uuid()
  pod_id!: string;

  @Text(podNameField)
  pod_name!: string;

  @Text({ max: 57, example: 'notebook' })
  name!: string;

  @Uuid()
  team_id!: string;

  @Uuid()
  workspace_id!: string;

  @NumberedId({ example: '42' })
  subscription_id!: string;

  @NumberedId({ example: '1' })
  gpuaas_id!: string;

  @NumberedId({ example: '1' })
  region_id!: string;

  @Text({ max: 512, example: 'docker.io/library/python:3.13' })
  image!: string;

  @WholeNumber({ min: 1, max: 1_000, example: 1 })
  vgpus!: number;

  @Text({ max: 64, example: '1g.10gb' })
  profile!: string;

  @OneOf('PodStatus', podStatuses, { example: 'running' })
  status!: PodStatus;

  @Text({ max: 500, nullable: true, description: 'Reason why it failed, stopped or waits.' })
  reason!: string | null;

  @WholeNumber({ min: 0, max: 255, nullable: true, description: 'Exit code of the last run that ended; null before.' })
  exit_code!: number | null;

  @WholeNumber({ min: 0, max: 1_000_000_000, description: 'Runs after the first since it was last started.' })
  restarts!: number;

  @ListOf(() => MountedVolume, { max: 20, description: 'Shared volumes that are mounted.' })
  volumes!: MountedVolume[];

  @WholeNumber({
    min: 1,
    max: 525_600,
    nullable: true,
    description: 'Minutes from each start after which it is stopped; null for no limit.',
  })
  max_duration_minutes!: number | null;

  @Nested(() => IdleStopOfPod, { nullable: true })
  idle_stop!: IdleStopOfPod | null;

  @Instant({
    nullable: true,
    description:
      'Instant at which the pod will be stopped for its maximum duration; null if it has none, has ended or has not run yet.',
  })
  stops_at!: string | null;

  @Instant()
  created_at!: string;

  @Instant({ nullable: true, description: 'Instant at which the present or last run began.' })
  started_at!: string | null;

  @Instant({ nullable: true, description: 'Instant at which the pod was deleted; null while it exists.' })
  deleted_at!: string | null;
}

export class PodPage extends PageOf(() => Pod) {}

class PodsOfTeam {
  @Uuid({ example: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10' })
  team_id!: string;

  @NumberedId({ optional: true, example: '42' })
  subscription_id?: string;
}

export class ListPods extends IntersectionType(PodsOfTeam, PageFromOne, IncludeEnded) {}

export const podActions = ['start', 'stop', 'restart'] as const;

export class PodAction extends PodPath {
  @OneOf('PodActionName', podActions, { example: 'stop' })
  action!: (typeof podActions)[number];
}

export class UpdatePodBody {
  @Text({ ...nameField, optional: true, description: 'The name that is shown; `pod_name` stays.' })
  name?: string;

  @Text({ ...imageField, optional: true })
  image?: string;

  @ListOf(() => PodMount, { max: 20, optional: true, description: 'Replaces all mounts.' })
  volumes?: PodMount[];
}

export class UpdatePod extends IntersectionType(PodPath, UpdatePodBody) {}

export const pods = contract('pods.pods', {
  create: operation(CreatePod, Pod),
  list: operation(ListPods, PodPage),
  get: operation(PodPath, Pod),
  act: operation(PodAction, Pod),
  update: operation(UpdatePod, Pod),
  delete: operation(PodPath, Pod),
});
