import type { Tenancy } from './host-driver.js';

/**
 * What is run on a host, for `sh` as of POSIX. A script is given whole through standard input, so that nothing of it
 * shows in `ps`; it is one function that is called at its end, so that a script which was cut off does nothing.
 * `echo "atoll-failed <code> <sentence>"` and an exit code of 1 say what went wrong.
 */

/** `sh` as root, for root and for a user with password-less sudo. The command line is the same for all scripts. */
export const rootShell = `if [ "$(id -u)" = 0 ]; then exec sh -s; else exec sudo -n sh -s; fi`;

/** Written by each script before anything else: what comes without it never had the privileges. */
export const readyMark = 'atoll-ready';

/** Tools that the scripts call, and that a minimal host may lack. */
export const tools = [
  'useradd',
  'usermod',
  'userdel',
  'groupadd',
  'groupdel',
  'chpasswd',
  'getent',
  'pkill',
  'flock',
  'runuser',
  'ipcrm',
  'find',
  'sed',
  'cut',
  'grep',
];

/**
 * The first of the numbers that users and their groups get: it and the fence, which grows with each tenancy, so that no number comes twice on a
 * host and what a tenant leaves on it belongs to nobody. Above the subordinate ids of login.defs, the containers of systemd and the usual range
 * of directories, and below what systemd reserves (https://systemd.io/UIDS-GIDS). Users with such a number get no subordinate ids.
 */
const firstId = 2_001_000_000;

const stateFolder = '/var/lib/atoll';

const prelude = `
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
umask 022
fail() { echo "atoll-failed $1 $2"; exit 1; }
run() {
  output=$("$@" 2>&1 </dev/null 9>&-) || fail "$1_failed" "$1 ended with code $?: $(printf '%s' "$output" | head -n 1 | cut -c 1-200)"
}
lacking=
for tool in ${tools.join(' ')}; do command -v "$tool" >/dev/null 2>&1 || lacking="$lacking $tool"; done
[ -z "$lacking" ] || fail tool_missing "The host lacks:$lacking."
`;

/** One script at a time, and none that is older than what the host has seen. */
const fencing = `
mkdir -p ${stateFolder} || fail host_disk "The host cannot write to ${stateFolder}."
chmod 700 ${stateFolder}
exec 9>>${stateFolder}/lock || fail host_disk "The host cannot write to ${stateFolder}."
flock -w 20 9 || fail host_locked "Another script of Atoll is still running on the host."
seen=$(cat ${stateFolder}/fence 2>/dev/null)
case "$seen" in ''|*[!0-9]*|????????????????*) seen=0 ;; esac
[ "$seen" -le "$fence" ] || fail superseded "The host has been told something newer."
echo "$fence" > ${stateFolder}/fence.new && mv ${stateFolder}/fence.new ${stateFolder}/fence || fail host_disk "The host cannot write to ${stateFolder}."
`;

function script(body: string): string {
  return `main() {\necho ${readyMark}\n${body}\n}\nmain </dev/null\n`;
}

/** Only what was generated, or checked by its pattern, stands in a script. */
function forTenancy({ instanceId, username, fence }: Tenancy, body: string): string {
  for (const text of [instanceId, username, fence]) {
    if (!/^[A-Za-z0-9-]+$/.test(text)) throw new Error('Not fit for a script.');
  }
  return script(`id=${instanceId} user=${username} fence=${fence}
${prelude}
${fencing}
entry=$(getent passwd "$user")
case "$entry" in ''|*":atoll $id:"*) ;; *) fail user_exists "The host has a user $user who is not of this instance." ;; esac
${body}`);
}

/** Facts as lines `atoll-fact <name> <value>`. */
export const inspectScript = script(`${prelude}
[ "$(uname -s)" = Linux ] || fail not_linux "The host does not run Linux."
left=$(getent passwd | grep ':atoll [0-9a-f-]*:' | cut -d : -f 1 | tr '\\n' ' ')
[ -z "$left" ] || fail leftovers "The host still has users of earlier instances: $left"
echo "atoll-fact fence $(cat ${stateFolder}/fence 2>/dev/null)"
echo "atoll-fact cpu_cores $(nproc 2>/dev/null)"
echo "atoll-fact memory_kb $(sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo)"
if command -v nvidia-smi >/dev/null 2>&1; then
  gpus=$(nvidia-smi -L 2>/dev/null </dev/null) || fail gpus_failed "nvidia-smi does not work on the host."
  echo "atoll-fact gpu_count $(printf '%s' "$gpus" | grep -c '^GPU ')"
  echo "atoll-fact gpu_model $(printf '%s' "$gpus" | sed -n '1s/^GPU [0-9]*: \\(.*\\) (UUID.*/\\1/p')"
fi
if command -v sshd >/dev/null 2>&1; then
  settings=$(sshd -T 2>/dev/null </dev/null) || settings=
  case "$settings" in
    *"kbdinteractiveauthentication yes"*) ;;
    *"passwordauthentication no"*) fail no_password_login "The sshd of the host refuses passwords: set PasswordAuthentication yes." ;;
  esac
fi`);

/** Says whether the platform may do what it must. */
export const reachScript = script(prelude);

export function createUserScript(tenancy: Tenancy): string {
  const sudo = `
[ -d /etc/sudoers.d ] || fail tool_missing "The host lacks sudo."
printf '%s ALL=(ALL) NOPASSWD: ALL\\n' "$user" > ${stateFolder}/sudoers.new && chmod 440 ${stateFolder}/sudoers.new &&
  mv ${stateFolder}/sudoers.new /etc/sudoers.d/$user || fail host_disk "The host cannot write to /etc/sudoers.d."`;
  return forTenancy(
    tenancy,
    `holder=$(cat ${stateFolder}/instance 2>/dev/null)
[ -z "$holder" ] || [ "$holder" = "$id" ] || fail host_in_use "The host holds another instance."
echo "$id" > ${stateFolder}/instance || fail host_disk "The host cannot write to ${stateFolder}."
shell=/bin/bash
[ -x "$shell" ] || shell=/bin/sh
if [ -z "$entry" ]; then
  number=$((${firstId} + fence))
  [ -z "$(getent group "$user")" ] || run groupdel "$user"
  run groupadd --gid "$number" "$user"
  run useradd --uid "$number" --gid "$number" --no-log-init --create-home --shell "$shell" --comment "atoll $id" "$user"
fi
${tenancy.hasSudo ? sudo : ''}`,
  );
}

/** As the user itself, in whose folder a root that follows links could be led astray. Lines outside of the block are the tenant's own. */
export function keysScript(tenancy: Tenancy, keys: readonly string[]): string {
  if (keys.some((key) => !/^[a-z0-9-]+ [A-Za-z0-9+/=]+$/.test(key))) throw new Error('Not fit for a script.');
  return forTenancy(
    tenancy,
    `[ -n "$entry" ] || fail user_missing "The host has no user $user."
home=$(printf '%s' "$entry" | cut -d : -f 6)
output=$(runuser -u "$user" -- env -i HOME="$home" PATH="$PATH" sh -c '
umask 077
cd "$HOME" && mkdir -p .ssh && chmod 700 .ssh && touch .ssh/authorized_keys || exit
sed "/^# atoll begins/,/^# atoll ends/d" .ssh/authorized_keys > .ssh/authorized_keys.atoll || exit
cat >> .ssh/authorized_keys.atoll && mv .ssh/authorized_keys.atoll .ssh/authorized_keys' 2>&1 9>&- <<'ATOLL_KEYS'
# atoll begins: kept by the platform
${keys.join('\n')}
# atoll ends
ATOLL_KEYS
) || fail keys_failed "The keys could not be written: $(printf '%s' "$output" | head -n 1 | cut -c 1-200)"`,
  );
}

export function passwordScript(tenancy: Tenancy): string {
  const { username, password } = tenancy;
  if (!/^[A-Za-z0-9]+$/.test(password)) throw new Error('Not fit for a script.');
  return forTenancy(
    tenancy,
    `[ -n "$entry" ] || fail user_missing "The host has no user $user."
output=$(chpasswd 2>&1 9>&- <<'ATOLL_PASSWORD'
${username}:${password}
ATOLL_PASSWORD
) || fail chpasswd_failed "chpasswd ended with code $?: $(printf '%s' "$output" | head -n 1 | cut -c 1-200)"`,
  );
}

const archive = `
if [ -d "$home" ]; then
  mkdir -p "$(dirname "$home")/.atoll-archive" && chmod 700 "$(dirname "$home")/.atoll-archive" &&
    mv "$home" "$(dirname "$home")/.atoll-archive/$user-$id" || fail host_disk "The home folder cannot be archived."
fi`;
const remove = `
if [ -d "$home" ]; then
  mkdir -p "$(dirname "$home")/.atoll-removed" && chmod 700 "$(dirname "$home")/.atoll-removed" &&
    mv "$home" "$(dirname "$home")/.atoll-removed/$user-$id" || fail host_disk "The home folder cannot be removed."
  (rm -rf "$(dirname "$home")/.atoll-removed" >/dev/null 2>&1 9>&- &)
fi`;

/** First the door is shut, then all else. What a large home folder takes to remove, nobody waits for. */
export function revokeScript(tenancy: Tenancy): string {
  return forTenancy(
    tenancy,
    `if [ -n "$entry" ]; then
  uid=$(printf '%s' "$entry" | cut -d : -f 3)
  home=$(printf '%s' "$entry" | cut -d : -f 6)
  case "$home" in /*/"$user") ;; *) fail home_unknown "The home folder of $user is not where it was made." ;; esac
  rm -f "/etc/sudoers.d/$user"
  run usermod --lock --expiredate 1 "$user"
  [ ! -e "/var/lib/systemd/linger/$user" ] || rm -f "/var/lib/systemd/linger/$user"
  rm -f "/var/spool/cron/crontabs/$user" "/var/spool/cron/$user"
  tries=0
  while pkill -KILL -u "$uid" 9>&- || pkill -KILL -U "$uid" 9>&-; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || fail processes_left "Processes of $user do not end."
    sleep 0.05
  done
  # Shared memory, semaphores and message queues of System V, those of others refused.
  runuser -u "$user" -- ipcrm --all </dev/null >/dev/null 2>&1 9>&-
  for folder in /tmp /var/tmp /dev/shm /dev/mqueue /var/spool/at /var/spool/cron; do
    [ ! -d "$folder" ] || find "$folder" -xdev -mindepth 1 -uid "$uid" -prune -exec rm -rf {} + </dev/null 2>/dev/null
  done
  ${tenancy.home === 'archive' ? archive : remove}
  run userdel "$user"
fi
[ -z "$(getent passwd "$user")" ] || fail user_left "The host still has the user $user."
[ -z "$(getent group "$user")" ] || run groupdel "$user"
[ "$(cat ${stateFolder}/instance 2>/dev/null)" != "$id" ] || rm -f ${stateFolder}/instance`,
  );
}
