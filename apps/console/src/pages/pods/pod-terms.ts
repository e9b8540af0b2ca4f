import type { Schemas } from '../../api/client.js';

/** What is typed and chosen for a pod. */
export interface PodTerms {
  name: string;
  image: string;
  subscription: string;
  vgpus: string;
  command: string;
  ports: string;
  variables: string;
  /** Id of a shared volume; empty: none. */
  volume: string;
  path: string;
}

export const emptyTerms: PodTerms = {
  name: '',
  image: '',
  subscription: '',
  vgpus: '1',
  command: '',
  ports: '',
  variables: '',
  volume: '',
  path: '/data',
};

/** The call that creates it. What was left empty is left out. */
export function podBody(team_id: string, terms: PodTerms): Schemas['CreatePod'] {
  const { name, image, subscription, vgpus, command, ports, variables, volume, path } = terms;
  return {
    team_id,
    subscription_id: subscription,
    name,
    image,
    vgpus: Number(vgpus),
    restart: 'always',
    ...(command.trim() !== '' && { command: ['/bin/sh', '-c', command] }),
    ...(ports.trim() !== '' && { ports: portsIn(ports) }),
    ...(variables.trim() !== '' && { env: variablesIn(variables) }),
    ...(volume !== '' && { volumes: [{ volume_id: volume, path }] }),
  };
}

/** Port numbers with blanks or commas between them. What is no number is left to the platform to refuse. */
function portsIn(text: string): number[] {
  return text
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(Number);
}

/**
 * Environment variables, `NAME=value` on a line each; a line without `=` has an empty value. Blank lines are left out.
 */
function variablesIn(text: string): Record<string, string> {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  return Object.fromEntries(
    lines.map((line) => {
      const [name = '', ...value] = line.split('=');
      return [name.trim(), value.join('=')];
    }),
  );
}
