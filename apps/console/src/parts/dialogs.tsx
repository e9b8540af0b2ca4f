import { useMutation } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Dialog, DialogTrigger } from 'react-aria-components/Dialog';
import { Form } from 'react-aria-components/Form';
import { Heading } from 'react-aria-components/Heading';
import { Modal, ModalOverlay } from 'react-aria-components/Modal';
import { asProblem, type Problem } from '../api/problem.js';
import { queryClient } from '../api/query-client.js';
import { Button } from './button.js';
import { ProblemNote } from './states.js';
import { say } from './toasts.js';

interface ModalBoxProps {
  title: string;
  /** Opens it; left out where `isOpen` does. */
  trigger?: ReactNode;
  isOpen?: boolean;
  onOpenChange?: (isOpen: boolean) => void;
  children: (close: () => void) => ReactNode;
}

export function ModalBox({ title, trigger, children, ...open }: ModalBoxProps) {
  const overlay = (
    <ModalOverlay className="overlay" isDismissable {...(trigger === undefined && open)}>
      <Modal className="modal">
        <Dialog className="dialog">
          {({ close }) => (
            <>
              <Heading slot="title" level={2}>
                {title}
              </Heading>
              {children(close)}
            </>
          )}
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
  if (trigger === undefined) return overlay;
  return (
    <DialogTrigger>
      {trigger}
      {overlay}
    </DialogTrigger>
  );
}

interface ActionFormProps<Result> {
  submit: string;
  kind?: 'primary' | 'danger';
  /** Does it. What it refuses stands in the form, by the field where it names one. */
  action: () => Promise<Result>;
  /** First words of the keys of what is then read again. */
  invalidates: readonly string[];
  done?: string;
  onDone: (result: Result) => void;
  onCancel: () => void;
  children?: (problem: Problem | null) => ReactNode;
}

/** Fields and a button that does something, once, and says what came of it. */
export function ActionForm<Result>({
  submit,
  kind = 'primary',
  action,
  invalidates,
  done,
  onDone,
  onCancel,
  children,
}: ActionFormProps<Result>) {
  const mutation = useMutation({
    mutationFn: action,
    onSuccess: async (result) => {
      if (done !== undefined) say(done);
      onDone(result);
      await Promise.all(invalidates.map((key) => queryClient.invalidateQueries({ queryKey: [key] })));
    },
  });
  const problem = mutation.error ? asProblem(mutation.error) : null;
  return (
    <Form
      validationBehavior="aria"
      onSubmit={(event) => {
        event.preventDefault();
        if (!mutation.isPending) mutation.mutate();
      }}
    >
      {children?.(problem)}
      {problem !== null && <ProblemNote problem={problem} />}
      <div className="dialog-actions">
        <Button onPress={onCancel}>Cancel</Button>
        <Button type="submit" kind={kind} isBusy={mutation.isPending}>
          {mutation.isPending ? 'Working…' : submit}
        </Button>
      </div>
    </Form>
  );
}

interface AskProps {
  title: string;
  question: ReactNode;
  trigger: ReactNode;
  submit: string;
  kind?: 'primary' | 'danger';
  action: () => Promise<unknown>;
  invalidates: readonly string[];
  done: string;
  onDone?: () => void;
}

/** Asks before something is done that takes something away. */
export function Ask({ title, question, trigger, kind = 'danger', onDone, ...form }: AskProps) {
  return (
    <ModalBox title={title} trigger={trigger}>
      {(close) => (
        <>
          <div>{question}</div>
          <ActionForm
            kind={kind}
            {...form}
            onDone={() => {
              close();
              onDone?.();
            }}
            onCancel={close}
          />
        </>
      )}
    </ModalBox>
  );
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
  const mutation = useMutation({
    mutationFn: action,
    onSuccess: async () => {
      say(done);
      await Promise.all(invalidates.map((key) => queryClient.invalidateQueries({ queryKey: [key] })));
    },
    onError: (error) => setProblem(asProblem(error)),
  });
  return (
    <>
      <Button isSmall kind={kind} isBusy={mutation.isPending} onPress={() => mutation.mutate()}>
        {label}
      </Button>
      <Refusal title={label} problem={problem} onClose={() => setProblem(null)} />
    </>
  );
}

/** What the platform refused, where no form is there to say so. */
export function Refusal({ title, problem, onClose }: { title: string; problem: Problem | null; onClose: () => void }) {
  return (
    <ModalBox title={title} isOpen={problem !== null} onOpenChange={onClose}>
      {(close) => (
        <>
          {problem !== null && <ProblemNote problem={problem} />}
          <div className="dialog-actions">
            <Button onPress={close}>Close</Button>
          </div>
        </>
      )}
    </ModalBox>
  );
}
