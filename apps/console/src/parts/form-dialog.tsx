import { useMutation } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useRef, useState, type ReactNode } from 'react';
import { Form } from 'react-aria-components/Form';
import { idempotencyKey, type IdempotencyHeader } from '../api/client.js';
import { asProblem, faultAt, isOfRole, type Problem } from '../api/problem.js';
import { useUser } from '../api/user-context.js';
import { currentSession, onSessionChange } from '../session/session.js';
import { Button } from './button.js';
import { DialogEnd, KeptOpen, ModalBox, ReadAtClose, readAgain, useClose } from './dialogs.js';
import { ProblemNote } from './states.js';
import { say } from './toasts.js';
import { forgetUnsent, keepUnsent, unsentOf } from './unsent.js';

/** What the fields of a form stand on. */
interface FormState<Values> {
  values: Values;
  set: (change: Partial<Values>) => void;
  /** The value of a field, its setter, and the platform's error for it; `path`: its name in the call, if different. */
  field: <Name extends keyof Values & string>(
    name: Name,
    path?: string,
  ) => { value: Values[Name]; onChange: (value: Values[Name]) => void; error: string | undefined };
  problem: Problem | null;
}

interface DialogFormProps<Values, Result> {
  initial: Values;
  submit: string;
  kind?: 'primary' | 'danger';
  /**
   * Performs the action. The form shows its error, beside the field that it names. `header` carries the idempotency
   * key, so that repeats count once. `touched` names what the user has set, whatever to.
   */
  action: (values: Values, header: IdempotencyHeader, touched: ReadonlySet<string>) => Promise<Result>;
  /** First words of the keys of what is then read again; after `shown`, once that is closed. */
  invalidates: readonly string[];
  done?: string | ((values: Values, result: Result) => string);
  /** What comes after it where the dialog was still open, once that has closed; not with `shown`. */
  onDone?: (result: Result) => void;
  /**
   * Content that replaces the form afterwards, such as a secret that is shown only once; the dialog stays open for it,
   * from the moment that the action begins; one without an answer can be closed after `mostKeptMs`.
   */
  shown?: (result: Result) => ReactNode;
  /**
   * Names the form and the thing that it is about, among all of its page: what was typed is kept when the session ends
   * under it. Left out, it is not: of what is secret, or takes something away.
   */
  keptAs?: string;
  children?: (form: FormState<Values>) => ReactNode;
}

/** How long a dialog stays open for an answer that does not come, in milliseconds. */
const mostKeptMs = 30_000;

/** Whether an answer is awaited and may still come soon. */
function useSoon(isAwaited: boolean): boolean {
  const [isOverdue, setOverdue] = useState(false);
  useEffect(() => {
    if (!isAwaited) return;
    const timer = setTimeout(() => setOverdue(true), mostKeptMs);
    return () => {
      clearTimeout(timer);
      setOverdue(false);
    };
  }, [isAwaited]);
  return isAwaited && !isOverdue;
}

/**
 * What the form begins with: its `initial` values, and what was typed in it when the session of the same user ended
 * under it, with its idempotency key.
 */
function useFormStart<Values extends object>(initial: Values, keptAs: string | undefined) {
  const userId = useUser().id;
  const form = keptAs === undefined ? undefined : `${location.pathname} ${keptAs}`;
  const [unsent] = useState(() => unsentOf(userId, form));
  useEffect(() => {
    if (unsent) forgetUnsent();
  }, [unsent]);
  const [header] = useState(() => unsent?.header ?? idempotencyKey());
  const [touched] = useState(() => new Set(unsent?.touched));
  const [values, setValues] = useState(unsent ? { ...initial, ...unsent.values } : initial);
  const keep = () => {
    if (form === undefined || touched.size === 0) return;
    // The others are read again: somebody may change them before the log-in.
    const typed = Object.fromEntries(Object.entries(values).filter(([name]) => touched.has(name)));
    keepUnsent({ form, userId, values: typed, touched, header });
  };
  return { header, touched, values, setValues, keep, isResumed: unsent !== undefined };
}

/** Calls `keep` where the session ends otherwise than by a log-out that its user wants. */
function useSessionEnd(keep: () => void): void {
  const onChange = useEffectEvent(() => {
    const session = currentSession();
    if (session.kind === 'none' && session.ended !== 'logout') keep();
  });
  useEffect(() => onSessionChange(() => onChange()), []);
}

/** A form in a dialog: its button performs one action, once, shows the outcome, and closes the dialog. */
export function DialogForm<Values extends object, Result>(props: DialogFormProps<Values, Result>) {
  const { initial, submit, kind = 'primary', action, invalidates, done, onDone, shown, keptAs, children } = props;
  const { header, touched, values, setValues, keep, isResumed } = useFormStart(initial, keptAs);
  const [isRoleRefused, setRoleRefused] = useState(false);
  const isUnderWay = useRef(false);
  const close = useClose();
  // The trigger keeps the state of its dialog for the next form: the late answer of a form that was closed must not
  // close that one.
  const isMounted = useRef(false);
  useEffect(() => {
    isMounted.current = true;
    return () => void (isMounted.current = false);
  }, []);
  const mutation = useMutation({
    mutationFn: () => action(values, header, touched),
    onSuccess: async (result) => {
      if (done !== undefined) say(typeof done === 'string' ? done : done(values, result));
      if (isMounted.current) {
        if (shown) return;
        close();
        onDone?.(result);
      }
      await readAgain(invalidates);
    },
    onError: async (error) => {
      const refusal = asProblem(error);
      if (isOfRole(refusal)) setRoleRefused(true);
      // What was sent first was done, and its answer was lost.
      if (refusal.code === 'idempotency_mismatch') await readAgain(invalidates);
    },
  });
  useSessionEnd(() => {
    if (!mutation.isSuccess) keep();
  });
  const isKept = useSoon(shown !== undefined && mutation.isPending);
  if (shown && mutation.data !== undefined) {
    return (
      <>
        <ReadAtClose invalidates={invalidates} />
        {shown(mutation.data)}
      </>
    );
  }
  const problem = mutation.error ? asProblem(mutation.error) : null;
  const set = (change: Partial<Values>) => {
    for (const name of Object.keys(change)) touched.add(name);
    setValues((before) => ({ ...before, ...change }));
  };
  const field: FormState<Values>['field'] = (name, path = name) => ({
    value: values[name],
    onChange: (value) => {
      touched.add(name);
      setValues((before) => ({ ...before, [name]: value }));
    },
    error: problem ? faultAt(problem, path) : undefined,
  });
  return (
    <Form
      validationBehavior="aria"
      onSubmit={(event) => {
        event.preventDefault();
        // A second click may come before the first has changed what is shown.
        if (isUnderWay.current) return;
        isUnderWay.current = true;
        mutation.mutate(undefined, { onSettled: () => (isUnderWay.current = false) });
      }}
    >
      {isResumed && <p className="hint">This is what you had typed when your session ended.</p>}
      {children?.({ values, set, field, problem })}
      {problem !== null && <ProblemNote problem={problem} isInForm />}
      {isRoleRefused && <ReadAtClose invalidates={['profile']} />}
      <div className="dialog-actions">
        {isKept && <KeptOpen why="Wait for the answer." />}
        <Button onPress={close} isDisabled={isKept}>
          Cancel
        </Button>
        <Button type="submit" kind={kind} isBusy={mutation.isPending}>
          {mutation.isPending ? 'Working…' : submit}
        </Button>
      </div>
    </Form>
  );
}

interface FormDialogProps<Values, Result> extends DialogFormProps<Values, Result> {
  title: string;
  trigger: ReactNode;
}

/** A button that opens a form. What was typed and not sent is gone when it is closed. */
export function FormDialog<Values extends object, Result>({
  title,
  trigger,
  ...form
}: FormDialogProps<Values, Result>) {
  return (
    <ModalBox title={title} trigger={trigger}>
      <DialogForm {...form} />
    </ModalBox>
  );
}

interface AskProps {
  title: string;
  question: ReactNode;
  /** Opens it; a small button with the words of `submit` if left out. */
  trigger?: ReactNode;
  submit: string;
  kind?: 'primary' | 'danger';
  action: (values: object, header: IdempotencyHeader) => Promise<unknown>;
  invalidates: readonly string[];
  done: string;
  onDone?: () => void;
}

/** Asks before something is done that takes something away. */
export function Ask({ question, trigger, kind = 'danger', ...form }: AskProps) {
  const opener = (
    <Button isSmall kind={kind === 'danger' ? 'danger' : 'normal'}>
      {form.submit}
    </Button>
  );
  return (
    <FormDialog initial={{}} kind={kind} trigger={trigger ?? opener} {...form}>
      {() => <div>{question}</div>}
    </FormDialog>
  );
}

/** What a form has found out, and a button that closes the dialog. */
export function Found({ children }: { children: ReactNode }) {
  return (
    <>
      {children}
      <DialogEnd label="Done" kind="primary" />
    </>
  );
}

/** What a form has made and shows only once, and the button that alone closes the dialog. */
export function Made({ children }: { children: ReactNode }) {
  return (
    <>
      <ShownOnce />
      <Found>{children}</Found>
    </>
  );
}

/** Keeps the dialog open that it stands in. */
export function ShownOnce() {
  return <KeptOpen why="Close the dialog first: what it shows is shown only once." />;
}
