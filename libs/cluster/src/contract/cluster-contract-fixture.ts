import { afterAll, beforeAll, describe } from '@jest/globals';
import { describeWhere } from '@atoll/testing';
import { Installation, type ClusterUnderTest, type ContractOptions } from './cluster-under-test-fixture.js';
import { connectionLaws } from './connections-fixture.js';
import { crashLaws } from './crashes-fixture.js';
import { doorLaws } from './doors-fixture.js';
import { installationLaws } from './installations-fixture.js';
import { lateStartLaws } from './late-starts-fixture.js';
import { logLaws } from './logs-fixture.js';
import { podLaws } from './pods-fixture.js';
import { restoreLaws } from './restores-fixture.js';
import { shellLaws } from './shells-fixture.js';
import { volumeLaws } from './volumes-fixture.js';

/** What every driver keeps. `lacking`: what this machine lacks for the cluster, as in `describeWhere`. */
export function clusterContract(name: string, lacking: string | undefined, options: ContractOptions): void {
  describeWhere(lacking, `the contract of clusters, ${name}`, () => {
    let cluster: ClusterUnderTest;
    let installation: Installation;
    beforeAll(async () => {
      cluster = await options.start();
      installation = new Installation(cluster);
    });
    afterAll(async () => {
      await installation?.leave();
      await cluster?.stop();
    });
    const here = () => installation;
    const { capabilities, lacks = [] } = options;
    describe('installations', () => installationLaws(here, capabilities, lacks));
    describe('crashes', () => crashLaws(here, lacks));
    describe('pods', () => podLaws(here));
    describe('late starts of pods', () => lateStartLaws(here, 'pod'));
    if (capabilities.vms) describe('late starts of VMs', () => lateStartLaws(here, 'vm'));
    describe('doors', () => doorLaws(here, capabilities, lacks));
    if (capabilities.volumes) describe('volumes', () => volumeLaws(here, capabilities));
    if (!lacks.includes('restores')) describe('restores', () => restoreLaws(here, capabilities));
    if (capabilities.shell === 'exec' && !lacks.includes('scripts')) describe('shells', () => shellLaws(here));
    if (capabilities.connect) describe('connections', () => connectionLaws(here));
    describe('logs', () => logLaws(here, lacks));
  });
}
