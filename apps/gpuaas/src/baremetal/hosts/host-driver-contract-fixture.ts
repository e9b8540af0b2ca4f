import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { newId } from '@atoll/database';
import { generateKeyPair } from '@atoll/ssh';
import { StepFailed, type StepContext } from '@atoll/state-machine';
import type { HostDriver, HostRef, Tenancy } from './host-driver.js';

/** A host under contract. */
export interface HostUnderContract {
  readonly driver: HostDriver;
  readonly host: HostRef;
  /** Whether this opens the door of the host. */
  opens(username: string, secret: { password: string } | { privateKey: string; publicKey: string }): Promise<boolean>;
  stop(): Promise<void>;
}

const patient = (): StepContext => ({ signal: AbortSignal.timeout(60_000) });
let fence = 0;

export function aTenancy(more: Partial<Tenancy> = {}): Tenancy {
  const instanceId = newId();
  fence += 1;
  return {
    instanceId,
    username: `atl-${instanceId.replaceAll('-', '').slice(-10)}`,
    password: 'K7mQ2vXw9RtYb4NcHs8ZpLfA',
    proofKey: generateKeyPair(),
    keys: [],
    hasSudo: false,
    home: 'remove',
    fence: String(fence),
    ...more,
  };
}

/** The tenancy in its next state. */
export function later(tenancy: Tenancy): Tenancy {
  fence += 1;
  return { ...tenancy, fence: String(fence) };
}

export async function codeOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    return error instanceof StepFailed ? error.code : String(error);
  }
  return 'none';
}

/** What holds for every driver of hosts. */
export function describeContract(start: () => Promise<HostUnderContract>): void {
  let under: HostUnderContract;
  beforeAll(async () => {
    under = await start();
  });
  afterAll(() => under.stop());

  const provision = async (tenancy: Tenancy): Promise<void> => {
    const { driver, host } = under;
    await driver.createUser(host, tenancy, patient());
    await driver.placeKeys(host, tenancy, patient());
    await driver.setPassword(host, tenancy, patient());
    await driver.verify(host, tenancy, patient());
  };

  it('finds the host, and pins what it shows', async () => {
    const { hostKey, found } = await under.driver.inspect({ ...under.host, hostKey: null }, patient());
    expect(hostKey).toMatch(/^SHA256:[A-Za-z0-9+/]{43}$/);
    expect(Object.keys(found).sort()).toEqual(['cpu_cores', 'gpu_count', 'gpu_model', 'memory_gb']);
    expect(await codeOf(under.driver.reach(under.host, patient()))).toBe('none');
  });

  it('lets the user in by password and by the keys of the team, and by nothing once it is revoked; each step may be repeated', async () => {
    const { driver, host } = under;
    const key = generateKeyPair();
    let tenancy = aTenancy({ keys: [key.publicKey] });
    const { username, password, proofKey } = tenancy;
    for (const step of ['createUser', 'placeKeys', 'setPassword', 'verify'] as const) {
      tenancy = later(tenancy);
      await driver[step](host, tenancy, patient());
      await driver[step](host, tenancy, patient());
    }
    const doors = () =>
      Promise.all([under.opens(username, { password }), under.opens(username, key), under.opens(username, proofKey)]);
    expect(await doors()).toEqual([true, true, false]);
    expect(await codeOf(driver.inspect(host, patient()))).toBe('leftovers');
    tenancy = later(tenancy);
    await driver.revoke(host, tenancy, patient());
    await driver.revoke(host, tenancy, patient());
    expect(await doors()).toEqual([false, false, false]);
    expect(await codeOf(driver.inspect(host, patient()))).toBe('none');
  });

  it('lets nobody of the team in before all is proved, so that nobody prevents it', async () => {
    const { driver, host } = under;
    const key = generateKeyPair();
    const tenancy = aTenancy({ keys: [key.publicKey] });
    const { username, proofKey } = tenancy;
    const doors = () => Promise.all([under.opens(username, key), under.opens(username, proofKey)]);
    await driver.createUser(host, tenancy, patient());
    await driver.placeKeys(host, tenancy, patient());
    await driver.setPassword(host, tenancy, patient());
    expect(await doors()).toEqual([false, true]);
    const wrong = { ...tenancy, password: 'wrong' };
    expect(await codeOf(driver.verify(host, wrong, patient()))).toBe('password_refused');
    expect((await doors())[0]).toBe(false);
    await driver.verify(host, tenancy, patient());
    expect(await doors()).toEqual([true, false]);
    // As after an answer that was lost.
    await driver.placeKeys(host, later(tenancy), patient());
    expect(await doors()).toEqual([false, true]);
    await driver.revoke(host, later(tenancy), patient());
  });

  it('changes the keys of an active user, and leaves his password', async () => {
    const { driver, host } = under;
    const [old, fresh] = [generateKeyPair(), generateKeyPair()];
    const tenancy = aTenancy({ keys: [old.publicKey] });
    await provision(tenancy);
    await driver.changeKeys(host, { ...later(tenancy), keys: [fresh.publicKey] }, patient());
    const { username, password } = tenancy;
    expect(
      await Promise.all([
        under.opens(username, old),
        under.opens(username, fresh),
        under.opens(username, { password }),
      ]),
    ).toEqual([false, true, true]);
    await driver.revoke(host, later(tenancy), patient());
  });

  it('takes back what was done in part, whatever the part', async () => {
    const { driver, host } = under;
    for (const steps of [['createUser'], ['createUser', 'placeKeys', 'setPassword']] as const) {
      const tenancy = aTenancy();
      for (const step of steps) await driver[step](host, tenancy, patient());
      await driver.revoke(host, later(tenancy), patient());
      expect(await codeOf(driver.inspect(host, patient()))).toBe('none');
    }
  });

  it('does nothing that is older than what the host has seen', async () => {
    const { driver, host } = under;
    const old = aTenancy();
    await driver.revoke(host, later(old), patient());
    expect(await codeOf(driver.createUser(host, old, patient()))).toBe('superseded');
    expect(await driver.seen(host, patient())).toBe(String(fence));
    expect(await codeOf(driver.inspect(host, patient()))).toBe('none');
  });

  it('holds one tenancy at a time', async () => {
    const { driver, host } = under;
    const first = aTenancy();
    await driver.createUser(host, first, patient());
    expect(await codeOf(driver.createUser(host, aTenancy(), patient()))).toBe('host_in_use');
    await driver.revoke(host, later(first), patient());
  });

  it('ends with its signal', async () => {
    const context = { signal: AbortSignal.abort() };
    expect(await codeOf(under.driver.createUser(under.host, aTenancy(), context))).not.toBe('none');
    expect(await codeOf(under.driver.inspect(under.host, patient()))).toBe('none');
  });
}
