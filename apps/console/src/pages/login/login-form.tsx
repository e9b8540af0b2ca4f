import { useState, type ReactNode } from 'react';
import { Form } from 'react-aria-components/Form';
import { asProblem, type Problem } from '../../api/problem.js';
import { Button } from '../../parts/button.js';
import { ProblemNote } from '../../parts/states.js';

interface LoginFormProps {
  submit: string;
  action: () => Promise<void>;
  /** Fields that say themselves what the platform says of them. */
  fields?: readonly string[];
  children: (problem: Problem | null) => ReactNode;
}

/** A form for users who are not logged in: performs one action, or shows why it failed. */
export function LoginForm({ submit, action, fields = [], children }: LoginFormProps) {
  const [isWorking, setWorking] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const run = async () => {
    setWorking(true);
    setProblem(null);
    try {
      await action();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setWorking(false);
    }
  };
  const faulty = Object.keys(problem?.fields ?? {});
  const isToldByFields = faulty.length > 0 && faulty.every((name) => fields.includes(name));
  return (
    <Form
      onSubmit={(event) => {
        event.preventDefault();
        if (!isWorking) void run();
      }}
    >
      {children(problem)}
      {problem !== null && !isToldByFields && <ProblemNote problem={problem} isInForm />}
      <Button type="submit" kind="primary" isBusy={isWorking}>
        {isWorking ? 'Checking…' : submit}
      </Button>
    </Form>
  );
}
