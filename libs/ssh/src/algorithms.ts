import type { Algorithms } from 'ssh2';

/**
 * What both of our ends offer: nothing with SHA-1, no CBC, no compression. ssh2's own defaults still hold hmac-sha1,
 * ssh-rsa and zlib. Of OpenSSH 8.5 and newer, all of it; RHEL 8's 8.0 has a common choice in each list.
 */
export const algorithms: Algorithms = {
  // No group of finite fields: an exchange with group 18 takes a server 18 ms, before it knows who asks; with a curve 2
  // ms. A client pays for neither.
  kex: [
    'curve25519-sha256',
    'curve25519-sha256@libssh.org',
    'ecdh-sha2-nistp256',
    'ecdh-sha2-nistp384',
    'ecdh-sha2-nistp521',
  ],
  serverHostKey: [
    'ssh-ed25519',
    'ecdsa-sha2-nistp256',
    'ecdsa-sha2-nistp384',
    'ecdsa-sha2-nistp521',
    'rsa-sha2-512',
    'rsa-sha2-256',
  ],
  cipher: [
    'aes128-gcm@openssh.com',
    'aes256-gcm@openssh.com',
    'chacha20-poly1305@openssh.com',
    'aes128-ctr',
    'aes256-ctr',
  ],
  hmac: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256', 'hmac-sha2-512'],
  compress: ['none'],
};
