import { useMutation } from '@tanstack/react-query';
import { useBlocker } from '@tanstack/react-router';
import { createContext, use, useEffect, useEffectEvent, useId, useRef, useState, type ReactNode } from 'react';
import { Dialog, DialogTrigger, OverlayTriggerStateContext } from 'react-aria-components/Dialog';
import { Heading } from 'react-aria-components/Heading';
import { Modal, ModalOverlay } from 'react-aria-components/Modal';
import { asProblem, isOfRole, type Problem } from '../api/problem.js';
import { queryClient } from '../api/query-client.js';
import { Button, RowHead } from './button.js';
import { HoldRows } from './held-rows.js';
import { Empty, Loaded, ProblemNote, type LoadedProps } from './states.js';
import { say } from './toasts.js';

interface ModalBoxProps {
  title: string;
  /** Opens it; left out where `isOpen` does. */
  trigger?: ReactNode;
  isOpen?: boolean;
  onOpenChange?: (isOpen: boolean) => void;
  children: ReactNode;
}

const KeepOpen = createContext<(why: string | undefined) => void>(() => undefined);

/**
 * Stands in a dialog that shows what is shown once, or waits for it: no click beside it closes it, no Escape, and no
 * way to another page. The end of a session does.
 */
export function KeptOpen({ why }: { why: string }) {
  const keep = use(KeepOpen);
  useEffect(() => {
    keep(why);
    return () => keep(undefined);
  }, [keep, why]);
  return null;
}

/** A dialog. Its content is reset each time that it opens. */
export function ModalBox({ title, trigger, children, isOpen, ...changes }: ModalBoxProps) {
  const [whyKept, keep] = useState<string>();
  const isKept = whyKept !== undefined;
  const overlay = (
    <ModalOverlay
      className="overlay"
      isDismissable={!isKept}
      isKeyboardDismissDisabled={isKept}
      {...(trigger === undefined && { isOpen, ...changes })}
    >
      <Modal className="modal">
        <Dialog className="dialog">
          <Heading slot="title" level={2} className="given">
            {title}
          </Heading>
          <RowHead value={undefined}>
            <RowsHeld />
            <ClosedByBack {...(isKept && { whyKept })} />
            <KeepOpen value={keep}>{children}</KeepOpen>
          </RowHead>
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
  if (trigger === undefined) return overlay;
  return (
    <DialogTrigger {...changes}>
      {trigger}
      {overlay}
    </DialogTrigger>
  );
}

/** Stands in an open dialog: the row and the data that it is in stay in the page. */
function RowsHeld() {
  const hold = use(HoldRows);
  useEffect(hold, [hold]);
  return null;
}

/** Closes the dialog in which it is called. */
export function useClose(): () => void {
  const state = use(OverlayTriggerStateContext);
  return () => state?.close();
}

/** The open dialogs, the uppermost last. */
const openDialogs = new Set<string>();

/**
 * Stands in an open dialog: Back closes it if it is the uppermost, as Escape does, and the page below stays. One that
 * is kept open says why, and no way leads to another page.
 */
export function ClosedByBack({ whyKept }: { whyKept?: string }) {
  const close = useClose();
  const id = useId();
  useEffect(() => {
    openDialogs.add(id);
    return () => void openDialogs.delete(id);
  }, [id]);
  const isKept = whyKept !== undefined;
  useBlocker({
    shouldBlockFn: ({ action }) => {
      // The router asks all open dialogs, in no order that can be relied on.
      if (action === 'BACK' && [...openDialogs].at(-1) !== id) return false;
      if (isKept) say(whyKept);
      else if (action === 'BACK') close();
      return isKept || action === 'BACK';
    },
    enableBeforeUnload: isKept,
  });
  return null;
}

/** The last line of a dialog that asks for nothing: what else can be done, and a button that closes it. */
export function DialogEnd({
  label,
  kind,
  children,
}: {
  label: 'Close' | 'Done';
  kind?: 'primary';
  children?: ReactNode;
}) {
  const close = useClose();
  return (
    <div className="dialog-actions">
      {children}
      <Button onPress={close} {...(kind && { kind })}>
        {label}
      </Button>
    </div>
  );
}

/** Says in a dialog why there is no form in it. */
export function DialogEmpty(reason: { title: string; children: ReactNode }) {
  return (
    <>
      <Empty {...reason} />
      <DialogEnd label="Close" />
    </>
  );
}

interface DialogLoadedProps<Data, Choice> extends Omit<LoadedProps<Data>, 'children' | 'without'> {
  /** What the form chooses from, of the data. */
  choices: (data: Data) => readonly Choice[];
  /** Stands in place of the form where there is nothing to choose from. */
  none: ReactNode;
  children: (choices: readonly Choice[]) => ReactNode;
}

/**
 * Data that a dialog needs before it shows its form; while it loads, and if it fails, a button closes the dialog. A
 * form that is shown stays when nothing is left to choose from: somebody types in it.
 */
export function DialogLoaded<Data, Choice>({ choices, none, children, ...props }: DialogLoadedProps<Data, Choice>) {
  const [last, setLast] = useState<Data>();
  const { data } = props.query;
  if (data !== undefined && data !== last && choices(data).length > 0) setLast(data);
  return (
    <Loaded {...props} without={<DialogEnd label="Close" />}>
      {(loaded) => {
        const chosenFrom = choices(last ?? loaded);
        return (
          <>
            <RowsHeld />
            {chosenFrom.length === 0 ? none : children(chosenFrom)}
          </>
        );
      }}
    </Loaded>
  );
}

/** Refetches the data that a change affects: all queries whose keys begin with one of these words. */
export async function readAgain(invalidates: readonly string[]): Promise<void> {
  await Promise.all(invalidates.map((key) => queryClient.invalidateQueries({ queryKey: [key] })));
}

interface ActProps {
  label: string;
  action: () => Promise<unknown>;
  invalidates: readonly string[];
  done: string;
  kind?: 'primary' | 'normal' | 'plain';
}

/** A button that does something at once; what it refuses is shown in a dialog. */
export function Act({ label, action, invalidates, done, kind = 'normal' }: ActProps) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const isUnderWay = useRef(false);
  const mutation = useMutation({
    mutationFn: action,
    onSuccess: async () => {
      say(done);
      await readAgain(invalidates);
    },
    onError: (error) => setProblem(asProblem(error)),
  });
  const press = () => {
    if (isUnderWay.current) return;
    isUnderWay.current = true;
    mutation.mutate(undefined, { onSettled: () => (isUnderWay.current = false) });
  };
  return (
    <>
      <Button isSmall kind={kind} isBusy={mutation.isPending} onPress={press}>
        {label}
      </Button>
      <Refusal title={label} problem={problem} onClose={() => setProblem(null)} />
    </>
  );
}

/**
 * Reads data again once what shows this is closed, and not before: what is read may remove the dialog that it is in.
 */
export function ReadAtClose({ invalidates }: { invalidates: readonly string[] }) {
  const close = useEffectEvent(() => void readAgain(invalidates));
  useEffect(() => () => close(), []);
  return null;
}

/** What the platform refused, where no form is there to say so. */
export function Refusal({ title, problem, onClose }: { title: string; problem: Problem | null; onClose: () => void }) {
  return (
    <ModalBox title={title} isOpen={problem !== null} onOpenChange={onClose}>
      {problem !== null && isOfRole(problem) && <ReadAtClose invalidates={['profile']} />}
      {problem !== null && <ProblemNote problem={problem} />}
      <DialogEnd label="Close" />
    </ModalBox>
  );
}
