import { expect, it } from '@jest/globals';
import type { Operation } from '@atoll/contracts';
import { gpuaasBatches, subscriptions } from '@atoll/contracts/gpuaas';
import { pods } from '@atoll/contracts/pods';
import { imagePolicies } from '@atoll/contracts/teams';
import { AppError, stillRunning } from '@atoll/errors';
import type { Rpc } from '@atoll/rpc';
import { contextOf, errorOf, operator } from '@atoll/testing';
import { subscribe } from './subscribing.js';

const asked = { team_id: 'team', pool_id: '1', vgpus: 2, image_uuid: 'image' };

/** What is called where the pods are refused with this error. */
async function calledWhere(error: AppError): Promise<string[]> {
  const called: string[] = [];
  const answers = new Map<string, () => unknown>([
    [imagePolicies.teamImages.subject, () => ({ data: [{ id: 'image', reference: 'busybox' }] })],
    [subscriptions.subscribe.subject, () => ({ subscription_id: '7' })],
    [pods.list.subject, () => ({ data: [], pagination: { page: 1, limit: 100, total: 0 } })],
    [gpuaasBatches.undo.subject, () => ({})],
  ]);
  const call = ({ subject }: Operation) => {
    called.push(subject);
    const answer = answers.get(subject);
    return answer ? Promise.resolve(answer()) : Promise.reject(error);
  };
  expect(await errorOf(subscribe({ call } as unknown as Rpc, asked, contextOf(operator)))).toBe(error);
  return called;
}

it('a subscription whose pods are refused is undone, and left to another call with the same key that is at it', async () => {
  expect(await calledWhere(new AppError('conflict', 'There is no room.'))).toContain(gpuaasBatches.undo.subject);
  expect(await calledWhere(stillRunning())).not.toContain(gpuaasBatches.undo.subject);
});
