const label = '[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?';
const part = '[a-z0-9]+(?:(?:[.]|_{1,2}|-+)[a-z0-9]+)*';
/** A first part with a dot or a port is a registry, and localhost is; any other belongs to the path. */
const partWithoutDot = '[a-z0-9]+(?:(?:_{1,2}|-+)[a-z0-9]+)*';
const registry = [
  String.raw`${label}(?:[.]${label})+(?::\d{1,5})?`,
  String.raw`${label}:\d{1,5}`,
  'localhost',
  String.raw`\[[0-9A-Fa-f]*:[0-9A-Fa-f:]*\](?::\d{1,5})?`,
].join('|');
const repository = `(?:(?:(?:${registry})/${part}|${partWithoutDot})(?:/${part})*|${part})`;
const digest = 'sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}';

/**
 * A field that names an image, by the grammar of https://github.com/distribution/reference; the teams service reads it
 * in full.
 */
export const imageReference = {
  max: 512,
  pattern: new RegExp(String.raw`^${repository}(?::\w[\w.-]{0,127})?(?:@(?:${digest}))?$`),
  patternHint: 'an image reference such as docker.io/library/nginx:1.29',
  example: 'docker.io/library/nginx:1.29',
  description: 'Reference of an image; `nginx` is read as `docker.io/library/nginx`.',
};
