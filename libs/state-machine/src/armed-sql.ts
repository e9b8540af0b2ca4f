import type { TransientRule } from './definition.js';

/** SQL for entered_at, deadline_at and due_at of a row that enters a state at `now`, an expression. */
export function armedSql(rule: TransientRule | undefined, hasStep: boolean, now: string): string {
  const none = 'NULL::timestamptz';
  if (rule?.portion !== undefined) return `${now}, ${none}, ${none}`;
  return `${now}, ${rule ? `${now} + interval '${rule.deadlineMs} milliseconds'` : none}, ${hasStep ? now : none}`;
}
