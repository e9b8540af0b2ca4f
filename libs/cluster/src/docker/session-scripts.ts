import type { ShellRequest } from '../shell.js';
import type { EngineKind } from './engine.js';

/**
 * Says the id of the session before the command begins, on the stream that the session begins with. `$1`: what marks
 * the end of the output; `$2` and `$3`: rows and columns; the rest is the command. Podman has no size for a terminal
 * before it is resized.
 */
const begin = { terminal: 'stty rows "$2" cols "$3" 2>/dev/null; echo "$$"', pipes: 'echo "$$" >&2' };

/**
 * Podman drops what it has not read yet of the output when a process ends while input for it is on its way: conmon
 * closes its socket with that input unread, which resets it, and Podman ends the stream at the first error. So a shell
 * outlives the command there, and writes a mark behind the output, at which `ExecShell` sends no more input. On pipes
 * it takes the input that was on its way, to its end. A terminal's input has no end, so it waits a moment there;
 * without a `sleep` that takes fractions of a second it does not wait.
 *
 * The shell is one process for as long as the command runs. The signals of a session (RFC 4254, 6.10) reach it too: it
 * catches them, and its child has them as they were. The command begins in a child by `exec`, so that none of the
 * shell's own programs takes its place, in the shell's group of processes, to which the terminal belongs. The shell has
 * no stderr, on which it would name the signal that ended the command.
 */
const run = `command trap : ABRT ALRM FPE HUP ILL INT PIPE QUIT SEGV TERM USR1 USR2; exec 3>&2 2>/dev/null
(shift 3; exec "$@") 2>&3 3>&-; set -- "$1" "$?"`;
/**
 * Writes the mark as soon as there is room for it: where the command has left its outputs in non-blocking mode, a write
 * to a full one fails. Where nobody can read it any more, the shell ends: by PIPE, or when its terminal is none.
 */
const markWhile = (again: string) => `until printf '\\036%s\\036' "$1" >&3; do ${again} || exit "$2"; done`;
/** `cat` ends with 1 where the command has left its input in non-blocking mode, and it is empty for the moment. */
const takeInput = `if command -v cat >/dev/null; then while cat >/dev/null; [ $? = 1 ]; do sleep 0.1 || break; done
else while read -r _; do :; done; fi`;
const runOn = {
  terminal: `${run}; ${markWhile('[ -t 3 ] && sleep 0.1')}; sleep 0.1; exit "$2"`,
  pipes: `${run}; trap - PIPE; ${markWhile('sleep 0.1')}; ${takeInput}; exit "$2"`,
};

const logIn = ['sh', '-c', 'if command -v bash >/dev/null 2>&1; then exec bash -l; else exec sh -l; fi'];

/**
 * What an exec runs for a session. `mark`: written between two bytes 0x1e behind the output, on Podman.
 *
 * The shell that stays there has neither the command nor its own script among its arguments, where `pkill -f` in the
 * session would find them and end the session itself. They are in variables, one a word, whose names begin as those
 * that no pod may set. The command does not get them.
 */
export function sessionExec(
  { command, terminal }: ShellRequest,
  kind: EngineKind,
  mark: string,
): { Cmd: string[]; Env: string[] } {
  const on = terminal ? 'terminal' : 'pipes';
  const size = terminal ? [String(terminal.rows), String(terminal.columns)] : ['', ''];
  const words = [mark, ...size, ...(command ?? logIn)].map((word, at) => ({ name: `ATOLL_SESSION_${at}`, word }));
  const script = `set -- ${words.map(({ name }) => `"$${name}"`).join(' ')}
unset ATOLL_SESSION ${words.map(({ name }) => name).join(' ')}
${begin[on]}; ${kind === 'podman' ? runOn[on] : 'shift 3; exec "$@"'}`;
  return {
    Cmd: ['sh', '-c', 'eval "$ATOLL_SESSION"'],
    Env: [`ATOLL_SESSION=${script}`, ...words.map(({ name, word }) => `${name}=${word}`)],
  };
}

/**
 * `$1`: a signal, `$2`: the session of the processes that get it, or their parent. The kernel's table of processes
 * (proc(5), `stat`): after the name in parentheses come state, parent, group, session. Only a shell is needed, since
 * many images have no `ps` or `pkill`.
 */
const signalWhose = (
  field: 'parent' | 'session',
) => `for d in /proc/[0-9]*; do { read -r l < "$d/stat"; } 2>/dev/null || continue
p=\${d#/proc/}; set -- "$1" "$2" \${l##*) }; [ "$${field === 'parent' ? 4 : 6}" = "$2" ] && kill -s "$1" "$p"; done 2>/dev/null`;

/** `$1`: a signal, `$2`: a session. */
export const signalSession = signalWhose('session');

/**
 * `$1`: a session. HUP as a terminal that is closed sends it, then KILL to the command if it is still there after 5 s:
 * the session's first process, and on Podman the child of that.
 */
const hangUp = `(set -- HUP "$1"; ${signalSession}); n=0
while kill -0 "$1" 2>/dev/null && [ $n -lt 25 ]; do sleep 0.2 || break; n=$((n+1)); done`;
const kill = 'kill -s KILL "$1" 2>/dev/null';
export const endSession: Record<EngineKind, string> = {
  docker: `${hangUp}; ${kill}`,
  podman: `${hangUp}; (set -- KILL "$1"; ${signalWhose('parent')}); ${kill}`,
};
