const places = ['openssh', 'ssh', ''].flatMap((folder) =>
  ['/usr/lib', '/usr/libexec'].map((root) => [root, folder, 'sftp-server'].filter(Boolean).join('/')),
);

/** The image's own sftp server; OpenSSH's is in one of these places, whatever the distribution. */
export const sftpCommand = [
  'sh',
  '-c',
  `for s in ${places.join(' ')}; do [ -x "$s" ] && exec "$s"; done
echo "The image of this pod has no sftp server. Install one (Debian: openssh-sftp-server), or copy with scp -O or tar." >&2; exit 127`,
];

const variable = /^(?:LANG|LC_[A-Z]{1,20}|COLORTERM|TERM_PROGRAM)$/;
const variablesAtMost = 32;
const longestValue = 256;

/** Whether a client may set this variable: what a terminal needs, as Debian's sshd accepts it. */
export function isAccepted(env: ReadonlyMap<string, string>, name: string, value: string): boolean {
  return variable.test(name) && value.length <= longestValue && env.size < variablesAtMost;
}
