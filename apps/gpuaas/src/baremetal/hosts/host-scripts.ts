import type { Tenancy } from './host-driver.js';

/**
 * What is run on a host, for `sh` as of POSIX. A script is given whole through standard input, so that nothing of it
 * shows in `ps`; it is one function that is called at its end, so that a script which was cut off does nothing.
 * `echo "atoll-failed <code> <sentence>"` and an exit code of 1 say what went wrong.
 */

/** `sh` as root, for root and for a user with password-less sudo. The command line is the same for all scripts. */
export const rootShell = `if [ "$(id -u)" = 0 ]; then exec sh -s; else exec sudo -n sh -s; fi`;

/** Printed by each script first: a failure without it means that the script never got its privileges. */
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
  'timeout',
  'ipcrm',
  'find',
  'sed',
  'cut',
  'grep',
];

/**
 * The first of the numbers that users and their groups get: it and the fence, which grows with each try, so that no
 * number comes twice on a host and what a tenant leaves on it belongs to nobody. Above the subordinate ids of
 * login.defs, the containers of systemd and the usual range of directories, and below what systemd reserves
 * (https://systemd.io/UIDS-GIDS). Users with such a number get no subordinate ids.
 */
const firstId = 2_001_000_000;

const stateFolder = '/var/lib/atoll';
/** Reserve files, deleted to make room for locking out a tenant who has filled the disk. */
const reserves = [`${stateFolder}/reserve`, '/etc/atoll-reserve'].join(' ');

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

/** Runs one script at a time, and none that is older than the newest that the host has seen. */
const fencing = `
mkdir -p ${stateFolder} || fail host_disk "The host cannot write to ${stateFolder}."
chmod 700 ${stateFolder}
exec 9>>${stateFolder}/lock || fail host_disk "The host cannot write to ${stateFolder}."
flock -w 20 9 || fail host_locked "Another script of Atoll is still running on the host."
seen=$(cat ${stateFolder}/fence 2>/dev/null)
case "$seen" in ''|*[!0-9]*|????????????????*) seen=0 ;; esac
[ "$seen" -le "$fence" ] || fail superseded "The host has received a newer command."
echo "$fence" > ${stateFolder}/fence.new && mv ${stateFolder}/fence.new ${stateFolder}/fence || fail host_disk "The host cannot write to ${stateFolder}."
`;

function script(body: string): string {
  return `main() {\necho ${readyMark}\n${body}\n}\nmain </dev/null\n`;
}

/** Makes what is not there. Many small files: a disk may also be out of inodes. */
const keepReserves = `
for folder in ${reserves}; do
  [ ! -d "$folder" ] || continue
  if ! (
    mkdir -p -m 700 "$folder.new" || exit
    for file in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do head -c 65536 /dev/urandom > "$folder.new/$file" || exit; done
    mv "$folder.new" "$folder"
  ) 2>/dev/null; then
    rm -rf "$folder.new"
    fail host_disk "The disk of the host is full."
  fi
done`;

/**
 * Only what was generated, or checked by its pattern, stands in a script. `first` is run before anything that other
 * scripts, or a full disk, can hold up.
 */
function forTenancy({ instanceId, username, fence }: Tenancy, body: string, first = ''): string {
  for (const text of [instanceId, username, fence]) {
    if (!/^[A-Za-z0-9-]+$/.test(text)) throw new Error('Not fit for a script.');
  }
  return script(`id=${instanceId} user=${username} fence=${fence}
${prelude}
# A user can change much of its comment by chfn: what this folder says goes before.
find_entry() {
  entry=$(getent passwd "$user")
  case "$entry" in
    ''|*":atoll $id:"*) ;;
    *) [ "$(cat ${stateFolder}/instance 2>/dev/null)" = "$id" ] || fail user_exists "The host has a user $user who is not of this instance." ;;
  esac
}
find_entry
${first}
${fencing}
find_entry
${body}`);
}

/** Names, a line each. */
const usersOfInstances = `getent passwd | grep -e ':atoll [0-9a-f-]*:' -e '^atl-[0-9a-f]*:' | cut -d : -f 1`;

const tellFence = `echo "atoll-fact fence $(cat ${stateFolder}/fence 2>/dev/null)"`;

/** Facts as lines `atoll-fact <name> <value>`. */
export const inspectScript = script(`${prelude}
[ "$(uname -s)" = Linux ] || fail not_linux "The host does not run Linux."
left=$(${usersOfInstances} | tr '\\n' ' ')
[ -z "$left" ] || fail leftovers "The host still has users of earlier instances: $left"
${tellFence}
echo "atoll-fact machine_id $(cat /etc/machine-id 2>/dev/null)"
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

export const seenScript = script(`${prelude}${tellFence}`);

/** Says whether the platform may do what it must. */
export const reachScript = script(prelude);

export function createUserScript(tenancy: Tenancy): string {
  const sudo = `
[ -d /etc/sudoers.d ] || fail tool_missing "The host lacks sudo."
printf '%s ALL=(ALL) NOPASSWD: ALL\\n' "$user" > ${stateFolder}/sudoers.new && chmod 440 ${stateFolder}/sudoers.new &&
  mv ${stateFolder}/sudoers.new /etc/sudoers.d/$user || fail host_disk "The host cannot write to /etc/sudoers.d."`;
  return forTenancy(
    tenancy,
    `others=$(${usersOfInstances} | grep -vxF "$user")
[ -z "$others" ] || fail host_in_use "The host holds another instance."
echo "$id" > ${stateFolder}/instance || fail host_disk "The host cannot write to ${stateFolder}."
shell=/bin/bash
[ -x "$shell" ] || shell=/bin/sh
${keepReserves}
if [ -z "$entry" ]; then
  number=$((${firstId} + fence))
  [ -z "$(getent group "$user")" ] || run groupdel "$user"
  run groupadd --gid "$number" "$user"
  run useradd --uid "$number" --gid "$number" -K SUB_UID_COUNT=0 -K SUB_GID_COUNT=0 --no-log-init --create-home --shell "$shell" \\
    --comment "atoll $id" "$user"
fi
${tenancy.hasSudo ? sudo : ''}`,
  );
}

/**
 * As the user itself, in whose folder a root that follows links could be led astray. The user can stop such a process,
 * take it over, or have it wait for ever: it is ended in time, and holds no pipe of root's and no lock. Lines outside
 * of the block are the tenant's own.
 */
export function keysScript(tenancy: Tenancy, keys: readonly string[]): string {
  if (keys.some((key) => !/^[a-z0-9-]+ [A-Za-z0-9+/=]+$/.test(key))) throw new Error('Not fit for a script.');
  return forTenancy(
    tenancy,
    `[ -n "$entry" ] || fail user_missing "The host has no user $user."
home=$(printf '%s' "$entry" | cut -d : -f 6)
umask 077
cat > ${stateFolder}/keys <<'ATOLL_KEYS' || fail host_disk "The host cannot write to ${stateFolder}."
# atoll begins: kept by the platform
${keys.join('\n')}
# atoll ends
ATOLL_KEYS
(
  ulimit -f 4096
  exec timeout -k 5 10 runuser -u "$user" -- env -i HOME="$home" PATH="$PATH" sh -c '
umask 077
cd "$HOME" && mkdir -p .ssh && chmod 700 .ssh && cd .ssh && rm -rf authorized_keys.atoll || exit
if [ -f authorized_keys ]; then sed "/^# atoll begins/,/^# atoll ends/d" authorized_keys > authorized_keys.atoll || exit; else rm -rf authorized_keys; fi
cat >> authorized_keys.atoll && mv authorized_keys.atoll authorized_keys'
) < ${stateFolder}/keys > ${stateFolder}/keys.said 2>&1 9>&-
code=$?
said=$(head -n 1 ${stateFolder}/keys.said | cut -c 1-200)
rm -f ${stateFolder}/keys ${stateFolder}/keys.said
case "$code" in
  0) ;;
  124|137) fail keys_failed "The keys could not be written in time." ;;
  *) fail keys_failed "The keys could not be written: $said" ;;
esac`,
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

/**
 * First locks the user out, regardless of the disk, other scripts and the fence number. Then does everything else under
 * the lock. A large home folder is removed in the background.
 */
export function revokeScript(tenancy: Tenancy): string {
  const shut = `
end_processes() {
  tries=0
  while pkill -KILL -u "$uid" 9>&- || pkill -KILL -U "$uid" 9>&-; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || fail processes_left "Processes of $user do not end."
    sleep 0.05
  done
}
make_room() {
  rm -rf ${reserves}
  for folder in /tmp /var/tmp /dev/shm /dev/mqueue /run/lock /var/lock /var/crash /var/mail /var/spool/mail /var/spool/at /var/spool/cron; do
    [ ! -d "$folder" ] || find "$folder/" -xdev -mindepth 1 -uid "$uid" -prune -exec rm -rf {} + </dev/null 2>/dev/null
  done
}
shut() {
  [ -n "$entry" ] || return 0
  uid=$(printf '%s' "$entry" | cut -d : -f 3)
  rm -f "/etc/sudoers.d/$user" "/var/lib/systemd/linger/$user" "/var/spool/cron/crontabs/$user" "/var/spool/cron/$user"
  if ! usermod --lock --expiredate 1 "$user" </dev/null >/dev/null 2>&1 9>&-; then
    end_processes
    make_room
    run usermod --lock --expiredate 1 "$user"
  fi
  end_processes
  make_room
}
shut`;
  return forTenancy(
    tenancy,
    `shut
if [ -n "$entry" ]; then
  home=$(printf '%s' "$entry" | cut -d : -f 6)
  case "$home" in /*/"$user") ;; *) fail home_unknown "The home folder of $user is not where it was made." ;; esac
  # Shared memory, semaphores and message queues of System V, those of others refused.
  timeout -k 5 10 runuser -u "$user" -- ipcrm --all </dev/null >/dev/null 2>&1 9>&-
  ${tenancy.home === 'archive' ? archive : remove}
  run userdel "$user"
fi
[ -z "$(getent passwd "$user")" ] || fail user_left "The host still has the user $user."
[ -z "$(getent group "$user")" ] || run groupdel "$user"
${keepReserves}
[ "$(cat ${stateFolder}/instance 2>/dev/null)" != "$id" ] || rm -f ${stateFolder}/instance`,
    shut,
  );
}
